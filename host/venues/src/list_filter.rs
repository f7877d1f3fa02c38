//! Which orders of a broker's list a client wants (specification 2, `OrderListFilter`).

use domain::{OrderFilter, Rejection};

/// Characters of a wrong value that a rejection repeats.
const CHARS_SHOWN: usize = 32;

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

impl OrderQuery {
    /// Reads the texts. Whether its instrument is one is for the venue to say.
    ///
    /// # Errors
    /// What is none of what it takes.
    pub fn read(self) -> Result<OrderFilter, Rejection> {
        let Self { status, instrument_id, date } = self;
        OrderFilter::read(status.as_deref(), instrument_id, date.as_deref(), CHARS_SHOWN)
    }
}
