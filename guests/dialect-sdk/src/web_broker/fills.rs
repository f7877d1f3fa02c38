//! The fills of an order, which its details have (`CLMOrderListDetail`).

use crate::text::{field, of, price, shares, time};
use crate::{Field, ListedFill, ReasonCode, Refusal, Request};

/// Field of an answer that holds the fills of an order.
pub const FILL_ROWS: &str = "aYakuzyouSikkouList";

/// The request for the details of an order, which is named by its number together with its business day.
///
/// # Errors
/// An order whose business day is not known.
pub fn list_fills(venue_order_id: &str, business_day: Option<&str>) -> Result<Request, Refusal> {
    let Some(day) = business_day else {
        let words = "the order's business day is not known";
        return Err(Refusal::new(ReasonCode::InternalError, "BUSINESS_DAY_UNKNOWN", words));
    };
    Ok(Request {
        id: "CLMOrderListDetail".to_owned(),
        fields: vec![field("sOrderNumber", venue_order_id), field("sEigyouDay", day)],
        lists: Vec::new(),
        password_field: None,
    })
}

/// Reads a row of the fills.
///
/// # Errors
/// Why it cannot be read.
pub fn read_fill(row: &[Field]) -> Result<ListedFill, String> {
    let quantity = of(row, "sYakuzyouSuryou").and_then(shares).filter(|shares| *shares > 0);
    let quantity = quantity.ok_or("the fill has no shares")?;
    let price = of(row, "sYakuzyouPrice").and_then(price).ok_or("the fill has no price")?;
    let when = match of(row, "sYakuzyouDate") {
        None => None,
        Some(text) => Some(time(text).ok_or("the fill's time is none")?),
    };
    Ok(ListedFill { quantity, price, time: when })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fields, shown};

    #[test]
    fn details_are_asked_for_by_number_and_day_without_a_password() {
        let made = list_fills("11000021", Some("20260511")).unwrap();
        assert_eq!(
            (made.id.as_str(), shown(&made).as_str(), made.password_field),
            ("CLMOrderListDetail", "sOrderNumber=11000021 sEigyouDay=20260511", None)
        );
        let refused = list_fills("11000021", None).unwrap_err();
        assert!(refused.text.starts_with("BUSINESS_DAY_UNKNOWN: "), "{refused:?}");
    }

    #[test]
    fn a_fill_has_shares_a_price_and_perhaps_a_time() {
        let usual = [
            ("sYakuzyouWarningCode", ""),
            ("sYakuzyouSuryou", "100"),
            ("sYakuzyouPrice", "2300.0000"),
            ("sYakuzyouDate", "20260511091402"),
        ];
        let row = |change: &[(&str, &str)]| {
            let kept = usual.iter().filter(|(name, _)| change.iter().all(|(one, _)| one != name));
            read_fill(&fields(&kept.chain(change).copied().collect::<Vec<_>>()))
        };
        let fill = row(&[]).unwrap();
        assert_eq!((fill.quantity, fill.price.as_str()), (100, "2300"));
        assert_eq!(fill.time.as_deref(), Some("20260511091402"));
        assert_eq!(row(&[("sYakuzyouDate", " ")]).unwrap().time, None);
        for (name, value) in [
            ("sYakuzyouSuryou", "0"),
            ("sYakuzyouSuryou", ""),
            ("sYakuzyouPrice", "0.0000"),
            ("sYakuzyouPrice", "x"),
            ("sYakuzyouDate", "20260511"),
        ] {
            assert!(row(&[(name, value)]).is_err(), "{name}={value}");
        }
    }
}
