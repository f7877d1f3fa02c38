//! What a new order asks for, read from its fields by the form's own rules.

use domain::{JstDate, Price};

use super::broker::Broker;
use super::config::Form;
use super::order::Terms;
use super::refusal::{EXPIRY, EXPIRY_CONDITION, NO_ISSUE, NO_POSITION, Refusal, STOP_REFUSED};
use super::request::Request;
use super::times;

/// Business days that an order may last.
const EXPIRY_DAYS_MAX: u32 = 10;

/// One character of a field, of those that it may be.
pub(super) fn one_of(request: &Request, name: &str, allowed: &str) -> Result<char, Refusal> {
    let text = request.needed(name)?;
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) if allowed.contains(character) => Ok(character),
        _ => Err(Refusal::Parameter(format!("{name} is not one of {allowed}"))),
    }
}

pub(super) fn price_of(request: &Request, name: &str) -> Result<Price, Refusal> {
    let wrong = || Refusal::Parameter(format!("{name} is not a price"));
    let price: Price = request.needed(name)?.parse().map_err(|_| wrong())?;
    if price > Price::default() { Ok(price) } else { Err(wrong()) }
}

pub(super) fn shares_of(request: &Request, name: &str) -> Result<u64, Refusal> {
    let text = request.needed(name)?;
    let shares = text.parse().ok().filter(|shares| *shares > 0 && !text.starts_with(['0', '+']));
    shares.ok_or_else(|| Refusal::Parameter(format!("{name} is not a number of shares")))
}

impl Broker {
    /// The terms of a new order.
    pub(super) fn read_terms(&self, request: &Request) -> Result<Terms, Refusal> {
        let issue = self.issue_index(request.needed("sIssueCode")?).ok_or(NO_ISSUE)?;
        one_of(request, "sSizyouC", "0").or_else(|refusal| match request.text("sSizyouC") {
            "00" => Ok('0'),
            _ => Err(refusal),
        })?;
        let tax = one_of(request, "sZyoutoekiKazeiC", "1356")?;
        let side = one_of(request, "sBaibaiKubun", "1357")?;
        let condition = one_of(request, "sCondition", "0246")?;
        let credit = one_of(request, "sGenkinShinyouKubun", "02468")?;
        let quantity = shares_of(request, "sOrderSuryou")?;
        let is_settlement = matches!(side, '5' | '7');
        let (price, trigger) = self.read_prices(request, is_settlement)?;
        let expires = self.read_expiry(request.needed("sOrderExpireDay")?, condition)?;
        let mut terms = Terms {
            issue,
            tax,
            side,
            condition,
            credit,
            quantity,
            price,
            trigger,
            expires,
            closes: Vec::new(),
        };
        terms.closes = self.read_closes(request, &terms)?;
        Ok(terms)
    }

    /// Limit and trigger, by the form's own rules.
    fn read_prices(
        &self,
        request: &Request,
        is_settlement: bool,
    ) -> Result<(Option<Price>, Option<Price>), Refusal> {
        let wrong = |text: &str| Err(Refusal::Parameter(text.to_owned()));
        let plain = request.needed("sOrderPrice")?;
        let (zyouken, then) = match self.config.form {
            // Only stops have these fields there.
            Form::Spec if !request.has("sGyakusasiZyouken") => ("0", "*"),
            _ => (request.needed("sGyakusasiZyouken")?, request.text("sGyakusasiPrice")),
        };
        let is_stop = match self.config.form {
            Form::Spec => zyouken != "0",
            Form::V4r8 | Form::V4r10 => match one_of(request, "sGyakusasiOrderType", "012")? {
                '0' if zyouken != "0" || then != "*" => {
                    return wrong("sGyakusasiOrderType is 0, but a stop is given");
                }
                '0' => false,
                // A live limit order with a stop beside it: not simulated.
                '2' => return Err(STOP_REFUSED),
                _ if plain != "*" => return wrong("sOrderPrice of a stop must be *"),
                _ => true,
            },
        };
        if !is_stop {
            return match plain {
                "*" if is_settlement => Ok((None, None)),
                "*" => wrong("sOrderPrice is *, and the order is no stop"),
                "0" => Ok((None, None)),
                _ => Ok((Some(price_of(request, "sOrderPrice")?), None)),
            };
        }
        let trigger = price_of(request, "sGyakusasiZyouken")?;
        match then {
            "*" | "" => wrong("sGyakusasiPrice of a stop is missing"),
            "0" => Ok((None, Some(trigger))),
            _ => Ok((Some(price_of(request, "sGyakusasiPrice")?), Some(trigger))),
        }
    }

    /// A last day; none where it is today.
    pub(super) fn read_expiry(
        &self,
        text: &str,
        condition: char,
    ) -> Result<Option<JstDate>, Refusal> {
        if text == "0" {
            return Ok(None);
        }
        if condition != '0' {
            return Err(EXPIRY_CONDITION);
        }
        let date = times::parse_day(text)
            .ok_or_else(|| Refusal::Parameter("sOrderExpireDay is not a date".to_owned()))?;
        let ahead = self.calendar.business_days_between(self.day, date, EXPIRY_DAYS_MAX);
        let is_open = self.calendar.is_business_day(date);
        if date < self.day || !is_open || ahead > EXPIRY_DAYS_MAX {
            return Err(EXPIRY);
        }
        Ok(Some(date))
    }

    /// The positions that an order closes, and shares of each.
    fn read_closes(&self, request: &Request, terms: &Terms) -> Result<Vec<(u64, u64)>, Refusal> {
        let parameter = |text: &str| Refusal::Parameter(text.to_owned());
        if !terms.closes_position() {
            return match terms.is_settlement() {
                true => {
                    Err(parameter("genbiki and genwatasi repay: sGenkinShinyouKubun is 4 or 8"))
                }
                false => Ok(Vec::new()),
            };
        }
        let free = |number: u64, open: u64| open.saturating_sub(self.being_closed(number));
        let mut left = terms.quantity;
        let mut closes = Vec::new();
        match request.text("sTatebiType") {
            "1" => {
                let mut rows = request.rows("aCLMKabuHensaiData");
                let text = |row: &serde_json::Map<_, serde_json::Value>, name: &str| {
                    row.get(name).and_then(|value| value.as_str()?.parse::<u64>().ok())
                };
                rows.sort_by_key(|row| text(row, "sTatebiZyuni"));
                for row in rows {
                    let (Some(number), Some(shares), Some(_)) = (
                        text(row, "sTategyokuNumber"),
                        text(row, "sOrderSuryou"),
                        text(row, "sTatebiZyuni"),
                    ) else {
                        return Err(parameter("aCLMKabuHensaiData lacks a number"));
                    };
                    let found = self.ledger.closable(terms).find(|known| known.number == number);
                    let room = found.map_or(0, |known| free(number, known.open()));
                    if shares == 0 || shares > room || shares > left {
                        return Err(NO_POSITION);
                    }
                    left -= shares;
                    closes.push((number, shares));
                }
            }
            // By day, profit or loss: the oldest first, as they are numbered.
            "*" | "2" | "3" | "4" => {
                for known in self.ledger.closable(terms) {
                    let taken = left.min(free(known.number, known.open()));
                    if taken > 0 {
                        left -= taken;
                        closes.push((known.number, taken));
                    }
                }
            }
            _ => return Err(parameter("sTatebiType is not one of *1234")),
        }
        if left > 0 { Err(NO_POSITION) } else { Ok(closes) }
    }
}
