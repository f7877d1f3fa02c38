//! Which orders of a broker's list a client wants (specification 2, `OrderListFilter`).

use domain::{JstDate, OrderStatus, ReasonCode, Rejection, TsNanos};

/// Characters of a wrong value that are shown.
const SHOWN_CHARS: usize = 32;

/// Which orders a client wants, as it wrote that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderQuery {
    /// A status like `ACCEPTED`; none: all.
    pub status: Option<String>,
    /// An instrument like `7203.TSE`; none: all.
    pub instrument_id: Option<String>,
    /// A date in Japan as `20261124`; none: all that the broker lists.
    pub date: Option<String>,
}

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
    pub fn read(query: &OrderQuery) -> Result<Self, Rejection> {
        let invalid = |text| Rejection::new(ReasonCode::ValidationError, text);
        let shown = |text: &str| text.chars().take(SHOWN_CHARS).collect::<String>();
        let status = query.status.as_deref().map(|text| {
            let known = OrderStatus::ALL.iter().find(|status| status.as_str() == text);
            let wrong = || {
                invalid(format!(
                    "STATUS: `{}` is not an order status; write one like ACCEPTED",
                    shown(text)
                ))
            };
            known.copied().ok_or_else(wrong)
        });
        let date = query.date.as_deref().map(|text| {
            let is_plain = text.len() == 8 && text.bytes().all(|digit| digit.is_ascii_digit());
            let dashed = is_plain.then(|| format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]));
            let date = dashed.and_then(|text| text.parse().ok());
            let wrong =
                || invalid(format!("DATE: `{}` is not a date; write YYYYMMDD", shown(text)));
            date.ok_or_else(wrong)
        });
        Ok(Self {
            status: status.transpose()?,
            instrument_id: query.instrument_id.clone(),
            date: date.transpose()?,
        })
    }

    /// Whether an order is wanted; `placed` is when it was received.
    #[must_use]
    pub fn takes(&self, status: OrderStatus, instrument_id: &str, placed: TsNanos) -> bool {
        self.status.is_none_or(|wanted| wanted == status)
            && self.instrument_id.as_deref().is_none_or(|id| id == instrument_id)
            && self.date.is_none_or(|date| date == placed.jst_date())
    }
}
