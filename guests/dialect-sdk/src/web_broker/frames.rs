//! Frames of the stream of events: `p_cmd` says of which kind, `p_NT` what a notice tells.

use super::Words;
use crate::text::{date, line, name, of, price, reason, shares, time};
use crate::{Field, Fill, Frame, Notice, NoticeKind, VenuePhase};

/// The venue whose phase counts: stocks of the Tokyo exchange.
const STOCKS: &str = "0101";

/// Reads a frame.
///
/// # Errors
/// Why it cannot be read.
pub fn read_frame(words: Words, fields: &[Field]) -> Result<Frame, String> {
    let kind = words.of(fields, "p_evt_cmd", "p_cmd").ok_or("the frame does not say what it is")?;
    Ok(match kind {
        "KP" => Frame::KeepAlive,
        "ST" => Frame::Ended(line(of(fields, "p_errno").unwrap_or(""))),
        "EC" => Frame::Order(notice(words, fields)?),
        "US" if of(fields, "p_UU") == Some(STOCKS) => {
            Frame::Venue(venue_phase(of(fields, "p_US").unwrap_or("")))
        }
        _ => Frame::Other,
    })
}

/// The phase that `p_US` names (specification 4, P2).
#[must_use]
pub fn venue_phase(code: &str) -> VenuePhase {
    match code {
        "000" | "100" | "120" | "140" | "160" | "200" | "220" | "240" => VenuePhase::Open,
        // Orders for the next business day.
        "500" | "600" | "700" => VenuePhase::Open,
        "260" | "280" | "290" | "300" | "400" => VenuePhase::Closed,
        "900" => VenuePhase::NightClosing,
        // 898 and 899 are faults; what is not known is not closed.
        _ => VenuePhase::Unknown,
    }
}

/// What `p_NT` tells.
fn kind_of(code: &str) -> NoticeKind {
    match code {
        "1" => NoticeKind::Accepted,
        "2" => NoticeKind::UpdateAccepted,
        "3" => NoticeKind::CancelAccepted,
        "4" | "7" => NoticeKind::Rejected,
        "5" | "8" => NoticeKind::UpdateRefused,
        "6" | "9" => NoticeKind::CancelRefused,
        "10" => NoticeKind::Updated,
        "11" => NoticeKind::Canceled,
        "12" => NoticeKind::Filled,
        "13" | "14" => NoticeKind::Expired,
        "15" => NoticeKind::FillCanceled,
        // 16: carried over; 100: its state changed.
        _ => NoticeKind::Changed,
    }
}

fn notice(words: Words, fields: &[Field]) -> Result<Notice, String> {
    let code = of(fields, "p_NT").ok_or("the notice does not say what it tells")?;
    let kind = kind_of(code);
    let order = words.of(fields, "sOrderNumber", "p_ON").and_then(name);
    let symbol = words.of(fields, "sIssueCode", "p_IC").and_then(name);
    let business_day = match of(fields, "p_ED") {
        None => None,
        Some(text) => Some(date(text).ok_or("the notice's business day is no date")?),
    };
    let when = match of(fields, "p_EXDT") {
        None => None,
        Some(text) => Some(time(text).ok_or("the notice's time is none")?),
    };
    let side = words.of(fields, "sBaibaiKubun", "p_BBKB").and_then(super::side_of);
    Ok(Notice {
        kind,
        venue_order_id: order.ok_or("the notice names no order")?.to_owned(),
        business_day,
        symbol: symbol.ok_or("the notice names no issue")?.to_owned(),
        side: side.map(|(side, _)| side),
        quantity: of(fields, "p_CRSR").and_then(shares).filter(|quantity| *quantity > 0),
        fill: (kind == NoticeKind::Filled).then(|| fill(words, fields)).transpose()?,
        time: when,
        reason: why(kind, code, fields),
    })
}

/// P28: `p_eda_no` where the specification's names count and it is there, else `{p_ED}-{p_ENO}`.
fn fill(words: Words, fields: &[Field]) -> Result<Fill, String> {
    let specified = if words == Words::Specification { of(fields, "p_eda_no") } else { None };
    let trade_id = match specified {
        Some(number) => number.to_owned(),
        None => {
            let (day, event) = (of(fields, "p_ED"), of(fields, "p_ENO"));
            let (day, event) = day.zip(event).ok_or("the fill has no number")?;
            format!("{day}-{event}")
        }
    };
    let trade_id = name(&trade_id).ok_or("the fill's number is none")?.to_owned();
    let quantity = of(fields, "p_EXSR").and_then(shares).filter(|shares| *shares > 0);
    let quantity = quantity.ok_or("the fill has no shares")?;
    let price = of(fields, "p_EXPR").and_then(price).ok_or("the fill has no price")?;
    Ok(Fill { trade_id, quantity, price })
}

/// Why something was refused or lapsed, with the exchange's or the broker's number of it.
fn why(kind: NoticeKind, notice: &str, fields: &[Field]) -> Option<String> {
    let (number, words) = match kind {
        NoticeKind::Rejected => ("p_EXRC", "the order was refused"),
        NoticeKind::UpdateRefused => ("p_EXRC", "the change was refused"),
        NoticeKind::CancelRefused => ("p_EXRC", "the cancel was refused"),
        NoticeKind::Expired => ("p_EPRC", "the order lapsed"),
        _ => return None,
    };
    Some(match of(fields, number) {
        Some(code) => reason(code, words),
        None => reason(&format!("P_NT_{notice}"), words),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    fn told(change: &[(&str, &str)]) -> Result<Notice, String> {
        let usual = [
            ("p_cmd", "EC"),
            ("p_NT", "12"),
            ("p_ON", "20000123"),
            ("p_ED", "20261120"),
            ("p_ENO", "10507"),
            ("p_IC", "7203"),
            ("p_BBKB", "3"),
            ("p_CRSR", "300"),
            ("p_EXPR", "2849.500000"),
            ("p_EXSR", "100"),
            ("p_EXDT", "20261120091402"),
        ];
        let kept = usual.iter().filter(|(name, _)| change.iter().all(|(other, _)| other != name));
        let all: Vec<_> = kept.chain(change).copied().collect();
        match read_frame(Words::Vendor, &fields(&all))? {
            Frame::Order(notice) => Ok(notice),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_notice_has_a_kind() {
        use NoticeKind as Kind;
        for (codes, kind) in [
            (&["1"][..], Kind::Accepted),
            (&["2"], Kind::UpdateAccepted),
            (&["3"], Kind::CancelAccepted),
            (&["4", "7"], Kind::Rejected),
            (&["5", "8"], Kind::UpdateRefused),
            (&["6", "9"], Kind::CancelRefused),
            (&["10"], Kind::Updated),
            (&["11"], Kind::Canceled),
            (&["12"], Kind::Filled),
            (&["13", "14"], Kind::Expired),
            (&["15"], Kind::FillCanceled),
            (&["16", "100", "77"], Kind::Changed),
        ] {
            for code in codes {
                let notice = told(&[("p_NT", code)]).unwrap();
                assert_eq!((notice.kind, notice.fill.is_some()), (kind, *code == "12"), "{code}");
            }
        }
        let refused = told(&[("p_NT", "4"), ("p_EXRC", "1024")]).unwrap();
        assert_eq!(refused.reason.as_deref(), Some("1024: the order was refused"));
        let lapsed = told(&[("p_NT", "13"), ("p_EPRC", "")]).unwrap();
        assert_eq!(lapsed.reason.as_deref(), Some("P_NT_13: the order lapsed"));
    }

    /// P28
    #[test]
    fn a_fill_has_the_vendors_number() {
        let notice = told(&[("p_eda_no", "7")]).unwrap();
        let fill = notice.fill.unwrap();
        assert_eq!((fill.trade_id.as_str(), fill.quantity), ("20261120-10507", 100));
        assert_eq!((fill.price.as_str(), notice.quantity), ("2849.5", Some(300)));
        for (name, value) in [
            ("p_ENO", ""),
            ("p_EXSR", "0"),
            ("p_EXPR", "0.0"),
            ("p_EXPR", "x"),
            ("p_ON", ""),
            ("p_IC", "a b"),
            ("p_ED", "20261399"),
            ("p_EXDT", "1"),
            ("p_NT", ""),
        ] {
            assert!(told(&[(name, value)]).is_err(), "{name}={value}");
        }
    }

    /// P2
    #[test]
    fn the_last_word_on_the_venue_is_the_frame_of_stocks() {
        let phase = |code: &str, venue: &str| {
            let frame = fields(&[("p_cmd", "US"), ("p_UU", venue), ("p_US", code)]);
            read_frame(Words::Vendor, &frame).unwrap()
        };
        for (codes, expected) in [
            (&["000", "100", "120", "140", "160", "200", "220", "240"][..], VenuePhase::Open),
            (&["500", "600", "700"], VenuePhase::Open),
            (&["260", "280", "290", "300", "400"], VenuePhase::Closed),
            (&["900"], VenuePhase::NightClosing),
            (&["898", "899", "", "abc"], VenuePhase::Unknown),
        ] {
            for code in codes {
                assert_eq!(phase(code, "0101"), Frame::Venue(expected), "{code}");
                assert_eq!(phase(code, "0201"), Frame::Other);
            }
        }
    }

    #[test]
    fn other_frames_are_told_apart() {
        let frame = |pairs: &[(&str, &str)]| read_frame(Words::Vendor, &fields(pairs));
        assert_eq!(frame(&[("p_cmd", "KP")]), Ok(Frame::KeepAlive));
        assert_eq!(frame(&[("p_errno", "2"), ("p_cmd", "ST")]), Ok(Frame::Ended("2".to_owned())));
        for kind in ["SS", "FD", "NS", "XX"] {
            assert_eq!(frame(&[("p_cmd", kind)]), Ok(Frame::Other));
        }
        assert!(frame(&[("p_evt_cmd", "KP")]).is_err(), "the vendor has p_cmd");
        let specified = fields(&[("p_evt_cmd", "KP"), ("p_cmd", "XX")]);
        assert_eq!(read_frame(Words::Specification, &specified), Ok(Frame::KeepAlive), "P28");
    }
}
