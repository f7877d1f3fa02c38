//! What the broker answers: envelopes, and the fields of each request.

use domain::{Money, clock};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::broker::{Broker, Session};
use super::config::Form;
use super::faults::FaultKind;
use super::order::{Order, State};
use super::refusal::Refusal;
use super::request::Request;
use super::times;

/// An answer, its fields in order.
pub(crate) type Answer = Map<String, Value>;

/// A host of the vendor's, for the fault that gives its addresses.
const PRODUCTION_HOST: &str = "kabuka.e-shiten.jp";
/// The requests that fault `late-lists` hits.
const LATE_LISTS: [&str; 4] =
    ["CLMOrderList", "CLMOrderListDetail", "CLMGenbutuKabuList", "CLMShinyouTategyokuList"];
/// The largest `p_no`.
const P_NO_MAX: u64 = 9_999_999_999;

/// Yen without decimals, cut off.
pub(crate) fn yen(money: Money) -> String {
    (money.units() / 10_000).to_string()
}

/// Adds fields.
pub(crate) fn add(answer: &mut Answer, fields: &[(&str, &str)]) {
    for (name, value) in fields {
        answer.insert((*name).to_owned(), json!(value));
    }
}

/// Rows of a list; none is an empty text.
pub(crate) fn rows(rows: Vec<Answer>) -> Value {
    if rows.is_empty() {
        json!("")
    } else {
        Value::Array(rows.into_iter().map(Value::Object).collect())
    }
}

impl Broker {
    /// The fields that every answer begins with.
    pub(crate) fn envelope(&self, request: &Request, id: &str, errno: i64, text: &str) -> Answer {
        let now = times::milli(clock::wall_now());
        let mut answer = Answer::new();
        add(
            &mut answer,
            &[
                ("p_sd_date", &now),
                ("p_no", request.text("p_no")),
                ("p_rv_date", &now),
                ("p_errno", &errno.to_string()),
                ("p_err", text),
                ("sCLMID", id),
            ],
        );
        answer
    }

    /// The answer to a refusal.
    pub(crate) fn refused(&self, request: &Request, id: &str, refusal: &Refusal) -> Answer {
        match refusal {
            Refusal::Business(code, text) => {
                let mut answer = self.envelope(request, id, 0, "");
                let code = code.to_string();
                add(&mut answer, &[("sResultCode", &code), ("sResultText", text)]);
                add(&mut answer, &[("sWarningCode", "0"), ("sWarningText", "")]);
                answer
            }
            Refusal::Parameter(text) => {
                self.envelope(request, id, -1, &format!("parameter error: {text}."))
            }
            Refusal::Session(errno, text) => self.envelope(request, id, i64::from(*errno), text),
        }
    }

    fn accepted(&self, request: &Request, id: &str) -> Answer {
        let mut answer = self.envelope(request, id, 0, "");
        add(&mut answer, &[("sResultCode", "0"), ("sResultText", "")]);
        answer
    }

    /// What every request must have: a rising number, a fresh time, names instead of numbers.
    pub(crate) fn check_envelope(
        &mut self,
        request: &Request,
        is_login: bool,
        needs_rising: bool,
    ) -> Result<(), Refusal> {
        let number: Option<u64> = request.text("p_no").parse().ok();
        let number = number.filter(|number| (1..=P_NO_MAX).contains(number));
        let number = number.ok_or_else(|| Refusal::Parameter("p_no is not a number".to_owned()))?;
        let sent = times::parse_milli(request.text("p_sd_date"))
            .ok_or_else(|| Refusal::Parameter("p_sd_date is not a time".to_owned()))?;
        if let Some(session) = self.session.as_mut().filter(|_| !is_login && needs_rising) {
            if number <= session.last_p_no {
                self.counts.p_no_refused += 1;
                return Err(Refusal::Session(6, "p_no did not advance."));
            }
            session.last_p_no = number;
        }
        if let Some(most) = self.config.send_date_age_max {
            // Its own clock only: taking it ahead does not make clients late.
            let age = clock::wall_now().nanos().saturating_sub(sent.nanos());
            if u128::from(age) > most.as_nanos() {
                return Err(Refusal::Session(8, "p_sd_date is too old."));
            }
        }
        match request.text("sJsonOfmt").parse::<u32>() {
            Ok(format) if format & 4 != 0 => Ok(()),
            _ => Err(Refusal::Parameter("sJsonOfmt must have bit 4: names of fields".to_owned())),
        }
    }

    /// `CLMAuthLoginRequest`.
    pub(crate) fn login(&mut self, request: &Request) -> Answer {
        let id = "CLMAuthLoginAck";
        if self.faults.has(FaultKind::Offline) {
            return self.refused(request, id, &Refusal::Session(9, "service offline."));
        }
        if request.id() != "CLMAuthLoginRequest" {
            let refusal = Refusal::Parameter("sCLMID is not served here".to_owned());
            return self.refused(request, request.id(), &refusal);
        }
        if let Err(refusal) = self.check_envelope(request, true, false) {
            return self.refused(request, id, &refusal);
        }
        let is_right = match self.config.form {
            Form::Spec | Form::V4r8 => {
                request.text("sUserId") == self.config.user && self.is_login_password(request)
            }
            Form::V4r10 if !self.is_auth_id(request) => {
                // As the vendor does it: the id in clear, and no result.
                let text = format!("sAuthId:[{}] is not valid.", request.text("sAuthId"));
                return self.envelope(request, id, -1, &text);
            }
            Form::V4r10 => true,
        };
        let refused = self.faults.standing(FaultKind::RefuseLogin);
        if refused.is_some() || !is_right {
            let code = refused.and_then(|code| u32::try_from(code).ok()).unwrap_or(10_031);
            let refusal = Refusal::Business(code, "ログインできません");
            return self.refused(request, id, &refusal);
        }
        // One session for an account: the one before is over.
        self.end_stream(Some(2));
        self.counts.logins += 1;
        let mut answer = self.accepted(request, id);
        let (tax, before) = (self.config.tax_account.to_string(), self.last_login.clone());
        self.last_login = times::second(self.clock());
        add(
            &mut answer,
            &[
                ("sZyoutoekiKazeiC", &tax),
                ("sSecondPasswordOmit", "0"),
                ("sLastLoginDate", &before),
            ],
        );
        let flags = [
            ("sSogoKouzaKubun", "1"),
            ("sHogoAdukariKouzaKubun", "1"),
            ("sFurikaeKouzaKubun", "1"),
            ("sGaikokuKouzaKubun", "1"),
            ("sMRFKouzaKubun", "0"),
            ("sTokuteiKouzaKubunGenbutu", "1"),
            ("sTokuteiKouzaKubunSinyou", "1"),
            ("sTokuteiKouzaKubunTousin", "0"),
            ("sTokuteiHaitouKouzaKubun", "1"),
            ("sTokuteiKanriKouzaKubun", "0"),
            ("sSinyouKouzaKubun", "1"),
            ("sSakopKouzaKubun", "0"),
            ("sMMFKouzaKubun", "0"),
            ("sTyukokufKouzaKubun", "0"),
            ("sKawaseKouzaKubun", "0"),
            ("sHikazeiKouzaKubun", "1"),
        ];
        add(&mut answer, &flags);
        let is_unread = self.faults.has(FaultKind::UnreadDocuments);
        add(&mut answer, &[("sKinsyouhouMidokuFlg", if is_unread { "1" } else { "0" })]);
        let token = Uuid::new_v4().simple().to_string();
        let doors = [
            ("sUrlRequest", "http", "request"),
            ("sUrlMaster", "http", "master"),
            ("sUrlPrice", "http", "price"),
            ("sUrlEvent", "http", "event"),
            ("sUrlEventWebSocket", "ws", "event_ws"),
        ];
        let root = self.config.form.root();
        for (name, scheme, door) in doors {
            let address = if is_unread {
                String::new()
            } else if self.faults.has(FaultKind::ProductionHost) {
                format!("{scheme}s://{PRODUCTION_HOST}{root}/{door}/{token}/")
            } else {
                format!("{scheme}://127.0.0.1:{}{root}/{door}/{token}/", self.port)
            };
            let address = match &self.login_key {
                Some(key) if self.config.form == Form::V4r10 && !is_unread => {
                    key.encrypted(&address)
                }
                _ => address,
            };
            add(&mut answer, &[(name, &address)]);
        }
        add(&mut answer, &[("sUpdateInformWebDocument", ""), ("sUpdateInformAPISpecFunction", "")]);
        let last_p_no = request.text("p_no").parse().unwrap_or_default();
        self.session = (!is_unread).then_some(Session { token, last_p_no });
        answer
    }

    /// A request of the session at one of its doors.
    pub(crate) fn answer(&mut self, door: &str, token: &str, request: &Request) -> Answer {
        let id = request.id().to_owned();
        let is_download = id == "CLMEventDownload";
        let done = self.enter(token, request, !is_download);
        let done = done.and_then(|()| self.dispatch(door, request, &id));
        done.unwrap_or_else(|refusal| self.refused(request, &id, &refusal))
    }

    /// Whether a request may come in.
    pub(crate) fn enter(
        &mut self,
        token: &str,
        request: &Request,
        needs_rising: bool,
    ) -> Result<(), Refusal> {
        if self.faults.has(FaultKind::Offline) {
            return Err(Refusal::Session(9, "service offline."));
        }
        if self.session.as_ref().is_none_or(|session| session.token != token) {
            self.counts.stale_addresses += 1;
            return Err(Refusal::Session(2, "session inactive."));
        }
        self.check_envelope(request, false, needs_rising)
    }

    fn dispatch(&mut self, door: &str, request: &Request, id: &str) -> Result<Answer, Refusal> {
        match (door, id) {
            ("request", "CLMAuthLogoutRequest") => {
                let mut answer = self.accepted(request, "CLMAuthLogoutAck");
                add(&mut answer, &[("sWarningCode", "0"), ("sWarningText", "")]);
                self.end_session();
                Ok(answer)
            }
            ("request", "CLMKabuNewOrder") => {
                let index = self.new_order(request)?;
                Ok(self.order_answer(request, id, index))
            }
            ("request", "CLMKabuCorrectOrder") => {
                let index = self.correct_order(request)?;
                Ok(self.order_answer(request, id, index))
            }
            ("request", "CLMKabuCancelOrder") => {
                let index = self.cancel_order(request)?;
                Ok(self.order_answer(request, id, index))
            }
            ("request", "CLMKabuCancelOrderAll") => {
                self.cancel_all(request)?;
                Ok(self.accepted(request, id))
            }
            ("request", _) => {
                let mut answer = self.accepted(request, id);
                add(&mut answer, &[("sWarningCode", "0"), ("sWarningText", "")]);
                if LATE_LISTS.contains(&id) {
                    self.with_late_books(|broker| broker.inquire(request, id, &mut answer))?;
                } else {
                    self.inquire(request, id, &mut answer)?;
                }
                Ok(answer)
            }
            ("master", _) if self.config.form == Form::V4r10 => {
                let mut answer = self.envelope(request, id, 0, "");
                self.single_master(id, &mut answer)?;
                Ok(answer)
            }
            ("master", "CLMMfdsGetMasterData") => {
                let mut answer = self.envelope(request, id, 0, "");
                self.direct_masters(request, &mut answer)?;
                Ok(answer)
            }
            ("price", "CLMMfdsGetMarketPriceHistory") => {
                let mut answer = self.envelope(request, id, 0, "");
                self.price_history(request, &mut answer)?;
                Ok(answer)
            }
            _ => Err(Refusal::Parameter("sCLMID is not served at this address".to_owned())),
        }
    }

    fn order_answer(&self, request: &Request, id: &str, index: usize) -> Answer {
        let order = &self.orders[index];
        let mut answer = self.accepted(request, id);
        if id == "CLMKabuNewOrder" {
            add(&mut answer, &[("sWarningCode", "0"), ("sWarningText", "")]);
        }
        add(
            &mut answer,
            &[
                ("sOrderNumber", &order.number.to_string()),
                ("sEigyouDay", &times::day(order.day)),
                ("sOrderUkewatasiKingaku", &yen(self.estimate(order))),
            ],
        );
        if id != "CLMKabuCancelOrder" {
            add(&mut answer, &[("sOrderTesuryou", "0"), ("sOrderSyouhizei", "0")]);
        }
        if id == "CLMKabuNewOrder" {
            let rate = if order.terms.credit == '0' { "-" } else { "0.00000" };
            add(&mut answer, &[("sKinri", rate)]);
        }
        add(&mut answer, &[("sOrderDate", &times::second(self.clock()))]);
        answer
    }

    /// What an order costs as far as can be said.
    pub(crate) fn estimate(&self, order: &Order) -> Money {
        let price = order.terms.price.unwrap_or(self.last[order.terms.issue]);
        super::ledger::value(price, order.terms.quantity)
    }

    /// Changes and cancels that were held.
    pub(crate) fn held_changes(&self) -> Vec<usize> {
        let is_held = |index: &usize| {
            matches!(self.orders[*index].state, State::Changing(_) | State::Canceling)
        };
        self.open.iter().copied().filter(is_held).collect()
    }
}
