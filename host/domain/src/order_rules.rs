//! Rules of new orders and of lists of orders that replay and broker share, by their texts alone
//! (specification 2, "SubmitOrderRequest" and `OrderListFilter`; specification 4, P32).

use std::fmt::Display;

use crate::instrument::InstrumentId;
use crate::order::{OrderStatus, ReasonCode, Rejection};
use crate::text::ShortText;
use crate::time::{JstDate, TsNanos};

/// Characters of one tag.
pub const TAG_CHARS_MAX: usize = 128;
/// Digits of the symbol of a future or an option.
const DERIVATIVE_DIGITS: usize = 9;

fn invalid(text: impl AsRef<str>) -> Rejection {
    Rejection::new(ReasonCode::ValidationError, text)
}

/// The first characters of a text, for a rejection that repeats it.
#[must_use]
pub fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

/// Checks the id and the tags of a new order, of which a venue takes so many.
///
/// # Errors
/// `VALIDATION_ERROR` with the field.
pub fn check_texts(
    client_order_id: &str,
    tags: &[String],
    tags_max: usize,
) -> Result<(), Rejection> {
    if client_order_id.trim().is_empty() {
        return Err(invalid("CLIENT_ORDER_ID: it needs 1 to 36 characters, not only spaces"));
    }
    if tags.len() > tags_max || tags.iter().any(|tag| tag.chars().nth(TAG_CHARS_MAX).is_some()) {
        let text = format!(
            "TAGS: an order takes at most {tags_max} tags of at most {TAG_CHARS_MAX} characters"
        );
        return Err(invalid(text));
    }
    Ok(())
}

/// The symbol of an instrument's name.
fn symbol(instrument_id: &str) -> &str {
    instrument_id.split('.').next().unwrap_or_default()
}

/// Refuses a future or an option, whose name is shown in the way of the venue.
///
/// # Errors
/// `UNSUPPORTED_INSTRUMENT`.
pub fn check_stock(instrument_id: &str, shown: impl Display) -> Result<(), Rejection> {
    let symbol = symbol(instrument_id);
    let is_derivative =
        symbol.len() == DERIVATIVE_DIGITS && symbol.bytes().all(|digit| digit.is_ascii_digit());
    if is_derivative {
        let text = format!("FUTURES: `{shown}` is not a stock; orders take only stocks");
        return Err(Rejection::new(ReasonCode::UnsupportedInstrument, text));
    }
    Ok(())
}

/// The symbol of a stock of Tokyo; a rejection repeats so many characters of another name.
///
/// # Errors
/// `UNSUPPORTED_INSTRUMENT` for a future or an option, `VALIDATION_ERROR` for what is no instrument.
pub fn stock_symbol(instrument_id: &str, chars_shown: usize) -> Result<ShortText, Rejection> {
    let shown = cut(instrument_id, chars_shown);
    check_stock(instrument_id, &shown)?;
    if instrument_id.parse::<InstrumentId>().is_err() {
        return Err(invalid(format!(
            "INSTRUMENT_ID: `{shown}` is not an instrument of Tokyo; write it like 7203.TSE"
        )));
    }
    Ok(symbol(instrument_id).into())
}

/// Which orders a list holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderFilter {
    /// Only orders of this status.
    pub status: Option<OrderStatus>,
    /// Only orders of this instrument; whether it is one is for the venue to say.
    pub instrument_id: Option<String>,
    /// Placed on this date in Japan; none: all that the venue lists.
    pub date: Option<JstDate>,
}

impl OrderFilter {
    /// Reads the texts of a filter; a rejection repeats so many characters of a wrong one.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` with the field.
    pub fn read(
        status: Option<&str>,
        instrument_id: Option<String>,
        date: Option<&str>,
        chars_shown: usize,
    ) -> Result<Self, Rejection> {
        let status = status.map(|text| {
            let known = OrderStatus::ALL.iter().find(|status| status.as_str() == text);
            known.copied().ok_or_else(|| {
                invalid(format!(
                    "STATUS: `{}` is not an order status; write one like ACCEPTED",
                    cut(text, chars_shown)
                ))
            })
        });
        let date = date.map(|text| {
            let is_plain = text.len() == 8 && text.bytes().all(|digit| digit.is_ascii_digit());
            let dashed = is_plain.then(|| format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]));
            let date = dashed.and_then(|text| text.parse().ok());
            date.ok_or_else(|| {
                let shown = cut(text, chars_shown);
                invalid(format!("DATE: `{shown}` is not a date; write YYYYMMDD"))
            })
        });
        Ok(Self { status: status.transpose()?, instrument_id, date: date.transpose()? })
    }

    /// Whether an order is in the list.
    #[must_use]
    pub fn takes(&self, status: OrderStatus, instrument_id: &str, placed: TsNanos) -> bool {
        self.status.is_none_or(|wanted| wanted == status)
            && self.instrument_id.as_deref().is_none_or(|wanted| wanted == instrument_id)
            && self.date.is_none_or(|date| date == placed.jst_date())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<T: std::fmt::Debug>(refused: Result<T, Rejection>) -> String {
        refused.unwrap_err().to_string()
    }

    #[test]
    fn an_id_is_no_blank_and_tags_have_an_end() {
        let tags = |count: usize, chars: usize| vec!["x".repeat(chars); count];
        assert_eq!(check_texts("a", &tags(2, TAG_CHARS_MAX), 2), Ok(()));
        assert!(text(check_texts(" ", &[], 2)).contains("CLIENT_ORDER_ID: it needs 1 to 36"));
        for tags in [tags(3, 1), tags(1, TAG_CHARS_MAX + 1)] {
            assert_eq!(
                text(check_texts("a", &tags, 2)),
                "VALIDATION_ERROR: TAGS: an order takes at most 2 tags of at most 128 characters"
            );
        }
    }

    #[test]
    fn only_stocks_have_a_symbol() {
        assert_eq!(stock_symbol("7203.TSE", 8).as_deref(), Ok("7203"));
        assert_eq!(
            text(stock_symbol("160060018.OSE", 8)),
            "UNSUPPORTED_INSTRUMENT: FUTURES: `16006001` is not a stock; orders take only stocks"
        );
        assert_eq!(
            text(stock_symbol("no stock at all", 8)),
            "VALIDATION_ERROR: INSTRUMENT_ID: `no stock` is not an instrument of Tokyo; write it \
             like 7203.TSE"
        );
    }

    #[test]
    fn a_filter_takes_what_fits_all_of_its_fields() {
        let read = |status, date| OrderFilter::read(status, Some("7203.TSE".into()), date, 4);
        let filter = read(Some("ACCEPTED"), Some("20261120")).unwrap();
        let placed = TsNanos::from_jst("2026-11-20".parse().unwrap(), 0).unwrap();
        let later = placed.plus_nanos(crate::time::NANOS_PER_DAY);
        assert!(filter.takes(OrderStatus::Accepted, "7203.TSE", placed));
        assert!(!filter.takes(OrderStatus::Filled, "7203.TSE", placed));
        assert!(!filter.takes(OrderStatus::Accepted, "6758.TSE", placed));
        assert!(!filter.takes(OrderStatus::Accepted, "7203.TSE", later));
        assert!(text(read(Some("accepted"), None)).contains("STATUS: `acce` is not"));
        assert!(text(read(None, Some("2026-11-20"))).contains("DATE: `2026` is not a date"));
    }
}
