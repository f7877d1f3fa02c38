//! Which orders of a broker's list a client wants (specification 2, `OrderListFilter`).

use domain::{OrderFilter, Rejection};

/// Characters of a wrong value that a rejection repeats.
const CHARS_SHOWN: usize = 32;

/// A client's filter of orders, in its own texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderQuery {
    /// A status like `ACCEPTED`; `None` means all.
    pub status: Option<String>,
    /// An instrument like `7203.TSE`; `None` means all.
    pub instrument_id: Option<String>,
    /// A date in Japan as `20261124`; `None` means all that the broker lists.
    pub date: Option<String>,
}

impl OrderQuery {
    /// Reads the texts. The venue checks the instrument.
    ///
    /// # Errors
    /// A status or a date that does not exist.
    pub fn read(self) -> Result<OrderFilter, Rejection> {
        let Self { status, instrument_id, date } = self;
        OrderFilter::read(status.as_deref(), instrument_id, date.as_deref(), CHARS_SHOWN)
    }
}
