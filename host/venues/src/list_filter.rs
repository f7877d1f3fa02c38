//! Which orders of a broker's list a client wants (specification 2, `OrderListFilter`).

use domain::{JstDate, OrderStatus, ReasonCode, Rejection, TsNanos};
use ipc::{OrderListFilter, OrderRecordWire};

/// Characters of a wrong value that are told.
const SHOWN_CHARS: usize = 32;

/// Which orders a client wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    status: Option<OrderStatus>,
    instrument_id: Option<String>,
    /// Placed on this date in Japan; none: all that the broker lists.
    pub date: Option<JstDate>,
}

impl ListFilter {
    /// Reads a filter. Whether its instrument is one is for the venue to say.
    ///
    /// # Errors
    /// What is none of what it takes.
    pub fn read(filter: &OrderListFilter) -> Result<Self, Rejection> {
        let invalid = |text| Rejection::new(ReasonCode::ValidationError, text);
        let shown = |text: &str| text.chars().take(SHOWN_CHARS).collect::<String>();
        let status = filter.status.as_deref().map(|text| {
            let known = OrderStatus::ALL.iter().find(|status| status.as_str() == text);
            let wrong = || {
                invalid(format!(
                    "STATUS: `{}` is not an order status; write one like ACCEPTED",
                    shown(text)
                ))
            };
            known.copied().ok_or_else(wrong)
        });
        let date = filter.date.as_deref().map(|text| {
            let is_plain = text.len() == 8 && text.bytes().all(|digit| digit.is_ascii_digit());
            let dashed = is_plain.then(|| format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]));
            let date = dashed.and_then(|text| text.parse().ok());
            let wrong =
                || invalid(format!("DATE: `{}` is not a date; write YYYYMMDD", shown(text)));
            date.ok_or_else(wrong)
        });
        Ok(Self {
            status: status.transpose()?,
            instrument_id: filter.instrument_id.clone(),
            date: date.transpose()?,
        })
    }

    /// Whether an order is wanted.
    #[must_use]
    pub fn takes(&self, row: &OrderRecordWire<'_>) -> bool {
        let day = || TsNanos::from_nanos(row.ts_event_ms.saturating_mul(1_000_000)).jst_date();
        self.status.is_none_or(|status| status == row.status)
            && self.instrument_id.as_deref().is_none_or(|id| id == row.instrument_id)
            && self.date.is_none_or(|date| date == day())
    }
}
