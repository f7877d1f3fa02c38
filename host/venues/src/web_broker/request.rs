//! Requests in the broker's form: one JSON record, which is the whole query of an address.

use domain::order_mapping::{BrokerRequest, Field};
use domain::time::NANOS_PER_SECOND;
use domain::{JstDate, TsNanos};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::web_broker::encoding::{percent_encode, to_cp932};
use crate::web_broker::json::quoted;
use crate::web_broker::limits::REQUEST_BYTES_MAX;

/// The requested form of answers: with line ends, and with names instead of numbers.
const FORMAT: &str = "5";

/// Why a request cannot be sent. The text shows no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A character that the broker's encoding does not have.
    #[error("the field {field} holds a character that the broker's encoding (CP932) does not have")]
    NotCp932 {
        /// The field's name.
        field: String,
    },
    /// Too long.
    #[error("the request {id} has more than {REQUEST_BYTES_MAX} bytes")]
    TooLong {
        /// The broker's name of the request.
        id: String,
    },
    /// The second password is missing.
    #[error("the request {id} needs the second password")]
    NoPassword {
        /// The broker's name of the request.
        id: String,
    },
}

/// A request that is ready, except for its number and time.
pub(crate) struct Prepared {
    id: String,
    /// Wiped when it is dropped, because a field may be a password.
    rest: Zeroizing<String>,
}

impl Prepared {
    /// Encodes everything except number and time: fields, password field, lists, and the requested form.
    pub(crate) fn new(
        request: &BrokerRequest,
        second_password: Option<&SecretString>,
    ) -> Result<Self, RequestError> {
        // It has its full capacity from the beginning: growth would leave copies behind.
        let mut rest = Zeroizing::new(String::with_capacity(REQUEST_BYTES_MAX));
        encode("sCLMID", &format!(",\"sCLMID\":{}", quoted(&request.id)), &mut rest)?;
        for field in &request.fields {
            let text = Zeroizing::new(format!(",{}", *pair(field)));
            encode(&field.name, &text, &mut rest)?;
        }
        if let Some(name) = &request.password_field {
            let no_password = || RequestError::NoPassword { id: request.id.clone() };
            let password = second_password.ok_or_else(no_password)?.expose_secret();
            let password = Zeroizing::new(quoted(password));
            let text = Zeroizing::new(format!(",{}:{}", quoted(name), *password));
            encode(name, &text, &mut rest)?;
        }
        for list in &request.lists {
            let row = |row: &Vec<Field>| {
                let pairs: Vec<String> = row.iter().map(|field| pair(field).to_string()).collect();
                format!("{{{}}}", pairs.join(","))
            };
            let rows = list.rows.iter().map(row).collect::<Vec<_>>().join(",");
            encode(&list.name, &format!(",{}:[{rows}]", quoted(&list.name)), &mut rest)?;
        }
        encode("sJsonOfmt", &format!(",\"sJsonOfmt\":\"{FORMAT}\"}}"), &mut rest)?;
        if rest.len() > REQUEST_BYTES_MAX {
            return Err(RequestError::TooLong { id: request.id.clone() });
        }
        Ok(Self { id: request.id.clone(), rest })
    }

    /// The broker's name of the request.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The query of the address: number and time first.
    pub(crate) fn query(&self, number: u64, now: TsNanos) -> SecretString {
        let head = format!("{{\"p_no\":\"{number}\",\"p_sd_date\":\"{}\"", sent_at(now));
        // Of the right size at once: a text that grows or shrinks leaves a copy.
        SecretString::from([percent_encode(head.as_bytes()).as_str(), &self.rest].concat())
    }
}

fn pair(field: &Field) -> Zeroizing<String> {
    let value = Zeroizing::new(quoted(&field.value));
    Zeroizing::new(format!("{}:{}", quoted(&field.name), *value))
}

fn encode(field: &str, text: &str, to: &mut String) -> Result<(), RequestError> {
    let bytes = to_cp932(text).map_err(|_| RequestError::NotCp932 { field: field.to_owned() })?;
    let bytes = Zeroizing::new(bytes);
    to.push_str(&Zeroizing::new(percent_encode(&bytes)));
    Ok(())
}

/// `p_sd_date`: Japanese time to the millisecond, `YYYY.MM.DD-HH:MM:SS.TTT`.
#[must_use]
pub fn sent_at(now: TsNanos) -> String {
    let (date, of_day) = (now.jst_date(), now.jst_nanos_of_day());
    let seconds = of_day / NANOS_PER_SECOND;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let millis = of_day / 1_000_000 % 1_000;
    format!("{}-{hour:02}:{minute:02}:{second:02}.{millis:03}", date.format("%Y.%m.%d"))
}

/// A date in the broker's form, `YYYYMMDD`; `None` if it is not one, or all zeroes.
#[must_use]
pub fn date(text: &str) -> Option<JstDate> {
    let is_date = text.len() == 8 && text.bytes().all(|digit| digit.is_ascii_digit());
    is_date.then(|| JstDate::parse_from_str(text, "%Y%m%d").ok()).flatten()
}

#[cfg(test)]
mod tests;
