//! The session with the web broker: one request under way, each sent once, and its outcome.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use domain::JstDate;
use domain::clock::wall_now;
use domain::order_mapping::{BrokerAnswer, BrokerRequest, Field};
use http_client::{AttemptError, OneAttempt};
use secrecy::SecretString;

use crate::web_broker::addresses::{AddressError, Addresses};
use crate::web_broker::encoding::{from_cp932, percent_decode, percent_decoded_text};
use crate::web_broker::events::EventAddress;
use crate::web_broker::hiding::{Hidden, repeated};
use crate::web_broker::json::{self, Value};
use crate::web_broker::limits::ANSWER_BYTES_MAX;
use crate::web_broker::login::{self, Credentials, Login, LoginAnswer, LoginFailure, Session};
use crate::web_broker::masters::{MASTER_QUESTION, Masters, MastersError};
use crate::web_broker::numbers::{NumbersError, RequestNumbers};
use crate::web_broker::release::{LoginKind, Release};
use crate::web_broker::request::{self, Prepared};
use crate::web_broker::{WebBrokerConfig, masters_cache};

/// Name of the file of request numbers, in its folder.
pub const NUMBERS_FILE: &str = "web_broker_p_no";

/// Why a transport cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The address is refused.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The request numbers cannot be used.
    #[error(transparent)]
    Numbers(#[from] NumbersError),
    /// HTTP cannot be used.
    #[error("{0}")]
    Http(String),
}

/// The outcome of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Called {
    /// Its number; `None` if it got none. It belongs in the audit log only (specification 4, P6).
    pub p_no: Option<u64>,
    /// The answer, or why there is none.
    pub result: Result<Answered, CallFailure>,
}

/// Shows no number.
impl fmt::Debug for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p_no, result } = self;
        let (has_number, name) = (p_no.is_some(), "Called");
        f.debug_struct(name).field("has_number", &has_number).field("result", result).finish()
    }
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answered {
    /// Its texts, without the number and the times; `errno` is empty for `0`.
    pub answer: BrokerAnswer,
    /// Its lists by name; the broker's `""` is an empty one. Any other value is not a list, so that it proves
    /// no absence. A row that is not a record has no fields.
    pub lists: BTreeMap<String, Vec<Vec<Field>>>,
}

/// Why a request has no answer. No text holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// Certainly nothing was sent.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The broker's server refuses the connection: nothing was sent (specification 4, P32).
    #[error("not sent: {0}")]
    Refused(String),
    /// The request may have arrived, and its outcome is unknown (specification 4, P18).
    #[error("no clear answer: {0}")]
    Unknown(String),
    /// There is no session.
    #[error("not logged in")]
    NotLoggedIn,
}

/// The session with the web broker. Its methods take `&mut self`, so that only one request is under way.
pub struct Transport {
    pub(crate) addresses: Addresses,
    numbers: RequestNumbers,
    pub(crate) http: OneAttempt,
    decodes_answers: bool,
    session: Option<Session>,
    /// The session before the present or last one.
    last_session: Option<Session>,
    /// A secret of the caller's that is redacted in answers.
    also_hidden: Option<SecretString>,
    /// The announced release that was reported already.
    reported_release: String,
    pub(crate) config: WebBrokerConfig,
}

impl Transport {
    /// Prepares for a login: checks the address and opens the request numbers. `decodes_answers` comes from the
    /// dialect: whether answers are percent-encoded (specification 4, P5).
    ///
    /// # Errors
    /// [`TransportError`], in one line.
    pub fn new(config: &WebBrokerConfig, decodes_answers: bool) -> Result<Self, TransportError> {
        let addresses = Addresses::new(config)?;
        let numbers = RequestNumbers::open(&config.state_dir.join(NUMBERS_FILE))?;
        let (connect, answer) = (config.connect_timeout, config.answer_timeout);
        let http = OneAttempt::new(addresses.is_this_machine(), connect, answer);
        let http = http.map_err(TransportError::Http)?;
        let config = config.clone();
        Ok(Self {
            addresses,
            numbers,
            http,
            decodes_answers,
            session: None,
            last_session: None,
            also_hidden: None,
            reported_release: String::new(),
            config,
        })
    }

    /// The allowed addresses.
    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Redacts a secret in the next answers; `None` ends that. The second password is one while it is held,
    /// also in answers to requests without it.
    pub fn also_hide(&mut self, secret: Option<SecretString>) {
        self.also_hidden = secret;
    }

    /// Whether there is a session, as far as this side knows.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        self.session.is_some()
    }

    /// Begins a session (`CLMAuthLoginRequest`), which ends the one before. Its addresses stay inside.
    ///
    /// # Errors
    /// [`LoginFailure`]. The session before goes on only if nothing was sent.
    pub async fn login(&mut self, credentials: &Credentials) -> Result<Login, LoginFailure> {
        let kind = match credentials {
            Credentials::Password { .. } => LoginKind::Password,
            Credentials::Key { .. } => LoginKind::Key,
        };
        if kind != self.addresses.login_kind() {
            return Err(LoginFailure::OtherCredentials);
        }
        for secret in credentials.texts() {
            self.http.hide(secret);
            repeated(secret).iter().for_each(|form| self.http.hide(form));
        }
        let mut request = login::login_request(credentials);
        let prepared = Prepared::new(&request, None);
        login::wipe(&mut request.fields);
        let prepared = prepared.map_err(|error| LoginFailure::NotSent(error.to_string()))?;
        let mut exchanged = self.exchange(&prepared, None).await;
        let (is_missing, mut fits) = (exchanged.is_missing, Ok(()));
        if let Ok(answered) = &mut exchanged.result {
            if let Credentials::Key { private_key, .. } = credentials {
                fits = login::decrypt(&mut answered.answer, private_key);
            }
            // Also those of a refused login.
            for secret in login::secrets_of(&answered.answer) {
                self.http.hide(&secret);
            }
        }
        let answer = match self.called(prepared.id(), exchanged, &[]).result {
            Ok(answered) => LoginAnswer(answered.answer),
            Err(_) if is_missing => {
                self.session = None;
                let of_dialect = Release::of_dialect(&self.config.dialect);
                return Err(match self.addresses.release() == of_dialect {
                    true => LoginFailure::Retired,
                    false => LoginFailure::RetiredPath,
                });
            }
            Err(CallFailure::NotSent(text)) => return Err(LoginFailure::NotSent(text)),
            Err(CallFailure::Refused(text)) => return Err(LoginFailure::Unreachable(text)),
            Err(failure) => {
                // The broker may have ended the session before.
                self.session = None;
                let text = match failure {
                    CallFailure::Unknown(text) => text,
                    other => other.to_string(),
                };
                return Err(LoginFailure::Unknown(text));
            }
        };
        let read = match fits {
            Ok(()) => login::read(&answer.0, &self.addresses),
            Err(name) => Err(LoginFailure::KeyDoesNotFit(name)),
        };
        if read.is_err() {
            self.session = None;
        }
        let (session, mut login) = read?;
        if let Some(before) = &self.last_session {
            login.changed = session.changed_since(before);
            login.is_first = false;
        }
        if let Some(date) = request::date(&login.next_release)
            && login.next_release != self.reported_release
        {
            tracing::warn!(
                %date,
                "the broker announces a new version of its interface; this one ends about 30 days after it"
            );
            self.reported_release.clone_from(&login.next_release);
        }
        self.last_session = Some(session.clone());
        self.session = Some(session);
        let changed = login.changed.len();
        tracing::info!(host = self.addresses.host(), changed, "logged in at the web broker");
        Ok(login)
    }

    /// Ends the session (`CLMAuthLogoutRequest`). On this side it is gone even if the request fails.
    ///
    /// # Errors
    /// [`CallFailure`], for the log.
    pub async fn logout(&mut self) -> Result<(), CallFailure> {
        let called = self.call(&login::logout_request(), None).await;
        self.session = None;
        called.result.map(drop)
    }

    /// Sends a request to `sUrlRequest`: orders, lists, balances.
    pub async fn call(
        &mut self,
        request: &BrokerRequest,
        second_password: Option<&SecretString>,
    ) -> Called {
        let session = self.session.as_ref().map(|session| session.request.clone());
        self.ask(request, second_password, session).await
    }

    /// The same for a request without a password, with a time limit for the answer.
    pub async fn call_within(&mut self, request: &BrokerRequest, time: Duration) -> Called {
        let called = tokio::time::timeout(time, self.call(request, None)).await;
        called.unwrap_or_else(|_| {
            let text = format!("it did not come within {} s", time.as_secs_f64());
            tracing::debug!(request = request.id, text, "no answer from the web broker");
            Called { p_no: None, result: Err(CallFailure::Unknown(text)) }
        })
    }

    /// Sends a request for prices to `sUrlPrice`, by the same rules.
    pub async fn call_price(&mut self, request: &BrokerRequest) -> Called {
        let session = self.session.as_ref().map(|session| session.price.clone());
        self.ask(request, None, session).await
    }

    /// Sends a request for a part of the masters to `sUrlMaster`, by the same rules.
    pub(crate) async fn call_master(&mut self, request: &BrokerRequest) -> Called {
        let session = self.session.as_ref().map(|session| session.master.clone());
        self.ask(request, None, session).await
    }

    /// The masters of a day: from the cache on the disk, else from the broker's stream of all, else by
    /// single requests (specification 4, P4).
    ///
    /// # Errors
    /// [`MastersError`] if there are none. Without the date master, [`Masters::days`] is `None`.
    pub async fn masters(&mut self, today: JstDate) -> Result<Masters, MastersError> {
        if let Some(masters) = masters_cache::load(self, today) {
            tracing::debug!(issues = masters.issue_count(), "masters from the cache");
            return Ok(masters);
        }
        let masters = crate::web_broker::masters::ask(self, today).await?;
        if masters.is_whole() {
            masters_cache::store(self, &masters);
        }
        Ok(masters)
    }

    /// The address of the stream of events, for [`crate::web_broker::follow`]; `None` without a session.
    #[must_use]
    pub fn event_address(&self) -> Option<EventAddress> {
        let session = self.session.as_ref()?;
        let hidden = Hidden::from(self.http.secrets());
        Some(EventAddress::new(&session.event_socket, self.config.connect_timeout, hidden))
    }

    /// The address of a request for a stream at `sUrlMaster`; its number is used then.
    pub(crate) fn master_address(
        &mut self,
        request: &BrokerRequest,
    ) -> Result<SecretString, CallFailure> {
        let session = self.session.as_ref().ok_or(CallFailure::NotLoggedIn)?;
        let prepared = Prepared::new(request, None);
        let prepared = prepared.map_err(|error| CallFailure::NotSent(error.to_string()))?;
        let number = self.numbers.take();
        let number = number.map_err(|error| CallFailure::NotSent(error.to_string()))?;
        Ok(Addresses::request(&session.master, &prepared.query(number, wall_now())))
    }

    /// Reads an answer, or a record of a stream.
    pub(crate) fn read(&self, id: &str, body: &[u8]) -> Result<Answered, String> {
        read_answer(id, body, self.decodes_answers)
    }

    async fn ask(
        &mut self,
        request: &BrokerRequest,
        second_password: Option<&SecretString>,
        to: Option<SecretString>,
    ) -> Called {
        let Some(to) = to else {
            return Called { p_no: None, result: Err(CallFailure::NotLoggedIn) };
        };
        let prepared = match Prepared::new(request, second_password) {
            Ok(prepared) => prepared,
            Err(error) => {
                let result = Err(CallFailure::NotSent(error.to_string()));
                return Called { p_no: None, result };
            }
        };
        let secrets: Vec<_> = second_password.into_iter().cloned().collect();
        let exchanged = self.exchange(&prepared, Some(&to)).await;
        self.called(prepared.id(), exchanged, &secrets)
    }

    /// Takes a number, sends, waits and reads; without an address of a session it is the login. The result may
    /// hold secrets: see [`Transport::called`].
    async fn exchange(&mut self, prepared: &Prepared, to: Option<&SecretString>) -> Exchanged {
        let number = match self.numbers.take() {
            Ok(number) => number,
            Err(error) => {
                let result = Err(CallFailure::NotSent(error.to_string()));
                return Exchanged { number: None, result, is_missing: false };
            }
        };
        let query = prepared.query(number, wall_now());
        let address = match to {
            None => self.addresses.login(&query),
            Some(address) => Addresses::request(address, &query),
        };
        let id = prepared.id();
        tracing::debug!(request = id, "the engine sends a request to the web broker");
        let body = self.http.get(&address, ANSWER_BYTES_MAX).await;
        let is_missing = matches!(body, Err(AttemptError::Status(404)));
        let result = match body {
            Ok(body) => read_numbered(id, &body, self.decodes_answers)
                .and_then(|(answered, p_no)| {
                    check_belongs(&answered, p_no.as_deref(), id, number)?;
                    Ok(answered)
                })
                .map_err(CallFailure::Unknown),
            Err(error) => Err(failure(&error)),
        };
        Exchanged { number: Some(number), result, is_missing }
    }

    /// Redacts the secrets that an answer repeats.
    fn called(&self, id: &str, exchanged: Exchanged, secrets: &[SecretString]) -> Called {
        let Exchanged { number, result, .. } = exchanged;
        let mut hidden = Hidden::from(self.http.secrets());
        let sent = number.map(|number| SecretString::from(number.to_string()));
        secrets.iter().chain(&self.also_hidden).chain(&sent).for_each(|one| hidden.hide(one));
        let result = result.map(|mut answered| {
            hidden.answer(&mut answered);
            answered
        });
        match &result {
            Ok(answered) => {
                let errno = answered.answer.errno.as_str();
                tracing::debug!(request = id, errno, "the web broker has answered");
            }
            Err(failure) => {
                tracing::debug!(request = id, %failure, "no answer from the web broker")
            }
        }
        Called { p_no: number, result }
    }
}

/// The result of a request, with the secrets that it may repeat.
struct Exchanged {
    number: Option<u64>,
    result: Result<Answered, CallFailure>,
    /// There is nothing at the address (HTTP status 404).
    is_missing: bool,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("addresses", &self.addresses)
            .field("is_logged_in", &self.is_logged_in())
            .finish_non_exhaustive()
    }
}

pub(crate) fn failure(error: &AttemptError) -> CallFailure {
    match error {
        AttemptError::Refused => CallFailure::Refused(error.to_string()),
        AttemptError::NotSent(text) => CallFailure::NotSent(text.clone()),
        _ => CallFailure::Unknown(error.to_string()),
    }
}

/// Reads the bytes of an answer. The text of an error shows none of them.
///
/// # Errors
/// Why it is not an answer.
pub fn read_answer(id: &str, body: &[u8], decodes: bool) -> Result<Answered, String> {
    read_numbered(id, body, decodes).map(|(answered, _)| answered)
}

/// Checks that an answer belongs to a request: it repeats its number and its name, if it has them. An answer to
/// another request says nothing about this one.
fn check_belongs(
    answered: &Answered,
    p_no: Option<&str>,
    id: &str,
    number: u64,
) -> Result<(), String> {
    if p_no.is_some_and(|p_no| p_no.parse() != Ok(number)) {
        return Err("the answer has the number of another request".to_owned());
    }
    let named = domain::order_mapping::field(&answered.answer.fields, "sCLMID");
    // The answer to a request for a master has its name, or that of its records.
    let stem = |name: &str| {
        let name = name.trim_end_matches("Request").trim_end_matches("Ack");
        let master = name.strip_prefix(MASTER_QUESTION).or_else(|| name.strip_prefix("CLM"));
        master.unwrap_or(name).to_owned()
    };
    if named.is_some_and(|named| !named.is_empty() && stem(named) != stem(id)) {
        return Err("the answer has the name of another request".to_owned());
    }
    Ok(())
}

/// The same, with the number that the answer repeats.
fn read_numbered(
    id: &str,
    body: &[u8],
    decodes: bool,
) -> Result<(Answered, Option<String>), String> {
    // Either all of an answer is encoded as %XX, or its texts may be.
    let is_spelled = !body.trim_ascii_start().starts_with(b"{");
    let text = match decodes && is_spelled {
        true => from_cp932(&percent_decode(body)),
        false => from_cp932(body),
    };
    let text = text.ok_or("the answer is not Shift-JIS")?;
    let value = json::parse(&text)
        .map_err(|error| format!("the engine cannot read the answer: {error}"))?;
    let Value::Record(entries) = value else {
        return Err("the answer is not a JSON record".to_owned());
    };
    let decoded = |text: String| match decodes && !is_spelled {
        true => percent_decoded_text(&text),
        false => text,
    };
    let mut p_no = None;
    let mut answered = Answered::default();
    answered.answer.id = id.to_owned();
    for (name, value) in entries {
        let is_null = value == Value::Null;
        let value = if is_null { Value::Text(String::new()) } else { value };
        match value {
            Value::Text(text) => match name.as_str() {
                "p_no" => p_no = Some(text),
                "p_sd_date" | "p_rv_date" => {}
                "p_errno" if text == "0" => {}
                "p_errno" => answered.answer.errno = text,
                "p_err" => answered.answer.error_text = decoded(text),
                _ if text.is_empty() && !is_null && is_list_name(&name) => {
                    answered.lists.insert(name, Vec::new());
                }
                _ => answered.answer.fields.push(Field::new(name, decoded(text))),
            },
            Value::List(rows) => {
                let mut read = Vec::with_capacity(rows.len());
                for row in rows {
                    // One odd row does not hide the others: it becomes a row without fields, which is
                    // unreadable.
                    let mut row = json::fields(row).unwrap_or_default();
                    for field in &mut row {
                        field.value = decoded(std::mem::take(&mut field.value));
                    }
                    read.push(row);
                }
                answered.lists.insert(name, read);
            }
            Value::Null | Value::Record(_) => {
                return Err(
                    "the engine cannot read the answer: it has a record in place of a text"
                        .to_owned(),
                );
            }
        }
    }
    Ok((answered, p_no))
}

/// Lists have names like `aOrderList`; those of masters have the name of their records.
fn is_list_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next() == Some('a') && letters.next().is_some_and(|letter| letter.is_ascii_uppercase())
        || name.starts_with("CLM")
}
