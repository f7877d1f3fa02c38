//! What answers mean: failures of the session, and the broker's result codes.

use super::told;
use crate::text::{line, name, of};
use crate::{Accepted, Answer, Outcome, ReasonCode, Refusal, Verdict};

/// What a failure of the session or the transport (`p_errno`) means (specification 4, P2, P18, P23b).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// There is none.
    None,
    /// The session is gone.
    SessionExpired,
    /// The broker has no data, or the request was wrong.
    NoData,
    /// The venue is closed, and nothing was done.
    Closed,
    /// The service is offline; it is unknown whether it did something.
    Offline,
    /// The broker is busy; it is unknown whether it did something.
    Busy,
    /// The request itself was refused.
    Refused,
    /// A number that the vendor's list has not.
    Other,
    /// It is no number.
    Garbage,
}

/// The meaning of `p_errno`.
#[must_use]
pub fn failure(errno: &str) -> Failure {
    match errno {
        "" | "0" => Failure::None,
        "1" => Failure::NoData,
        "2" => Failure::SessionExpired,
        "9" => Failure::Offline,
        "-2" | "-3" => Failure::Busy,
        "-12" | "-62" => Failure::Closed,
        "6" | "8" | "-1" => Failure::Refused,
        other => match other.strip_prefix('-').unwrap_or(other).parse::<u32>() {
            Ok(_) => Failure::Other,
            Err(_) => Failure::Garbage,
        },
    }
}

/// What a result code says, by the dialect that knows its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// The second password is wrong; whether that counts toward the lock.
    WrongPassword(bool),
    /// Everything else.
    Refused(ReasonCode),
}

/// A refusal that the broker surely did not act on.
#[must_use]
pub fn refused(code: ReasonCode, text: String) -> Verdict {
    Verdict::Refused(Refusal { code, text })
}

/// Judges an answer: `p_errno` by the vendor's list, `other` for the numbers that are not on it, then
/// `sResultCode`, whose families `judged` knows.
#[must_use]
pub fn judge_result(
    answer: &Answer,
    other: impl FnOnce(&str, String) -> Verdict,
    judged: impl FnOnce(&str) -> Judged,
) -> Outcome {
    let errno = answer.errno.trim();
    let tag = format!("P_ERRNO_{}", errno.replace('-', "MINUS_"));
    let text = |own: &str| told(&tag, Some(&answer.error_text), own);
    let is_list = answer.id == "CLMOrderList" || answer.id == "CLMOrderListDetail";
    let failure = failure(errno);
    let verdict = match failure {
        Failure::None => result(answer, judged),
        Failure::SessionExpired => Verdict::SessionExpired,
        Failure::NoData if is_list => Verdict::NoData,
        Failure::NoData => {
            refused(ReasonCode::VenueRejected, text("the broker has no data for it"))
        }
        Failure::Closed => {
            refused(ReasonCode::MarketClosed, text("the broker is outside its hours"))
        }
        Failure::Offline => Verdict::Unknown(text("the broker is offline")),
        Failure::Busy => Verdict::Unknown(text("the broker is busy")),
        Failure::Refused => {
            refused(ReasonCode::VenueRejected, text("the broker refuses the request"))
        }
        Failure::Other => other(errno, text("the broker answered with a failure")),
        Failure::Garbage => {
            Verdict::Unknown(told("P_ERRNO", None, "the answer's failure is no number"))
        }
    };
    let venue_closed = matches!(failure, Failure::Closed | Failure::Offline);
    Outcome { verdict, venue_closed }
}

fn result(answer: &Answer, judged: impl FnOnce(&str) -> Judged) -> Verdict {
    let fields = &answer.fields;
    let code = of(fields, "sResultCode").unwrap_or("");
    if code == "0" {
        let own = |name: &str| of(fields, name).filter(|text| *text != "0").map(line);
        let named = |field: &str| of(fields, field).and_then(name).map(str::to_owned);
        return Verdict::Accepted(Accepted {
            venue_order_id: named("sOrderNumber"),
            business_day: of(fields, "sEigyouDay").and_then(crate::text::date),
            warning_code: own("sWarningCode"),
            warning_text: own("sWarningCode").and(of(fields, "sWarningText").map(line)),
        });
    }
    if !(1..=8).contains(&code.len()) || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        let words = "the answer has no result code";
        return Verdict::Unknown(told("S_RESULT_CODE", None, words));
    }
    let text = told(code, of(fields, "sResultText"), "the broker gave no reason");
    match judged(code) {
        Judged::WrongPassword(counts) => Verdict::WrongPassword((counts, text)),
        Judged::Refused(reason) => refused(reason, text),
    }
}

/// Whether a result code says that the broker takes no orders at this time.
#[must_use]
pub fn is_out_of_hours(code: &str) -> bool {
    matches!(
        code,
        "11102"
            | "12122"
            | "13122"
            | "11246"
            | "12246"
            | "13246"
            | "11247"
            | "12247"
            | "13247"
            | "11701"
            | "12701"
            | "13701"
            | "11703"
            | "12703"
            | "13703"
    )
}
