//! The journal of a run on the live market: all that its strategy was given and answered, so that each decision can
//! be made again (specification 4, P112 and P113).
//!
//! - [`Journaled`] stands around a strategy and records each call with its answer.
//! - [`JournaledStream`] stands around the market and records each step before all that it causes.
//! - [`Journal`] takes the records and writes them on a thread of its own. It never waits for the disk.
//! - [`read`] gives the records back, [`reproduce`] hands them to a component again.
//!
//! A journal is a folder with files `journal-YYYYMMDD.jsonl`, one for each day in Japan on which something happened.
//! A line is a checksum in 16 hexadecimal digits, a space, and the JSON of a [`Record`]. Prices and money are integers of
//! 1/10,000 yen, times are nanoseconds. The first line of each file is the [`Header`].
//!
//! A checksum is the xxh3 of the JSON, with the checksum of the line before as its seed; a header has the seed 0 and names
//! the last checksum of the file before. So a line or a file that is taken out is noticed.
//!
//! | record | what it is |
//! |---|---|
//! | `header` | the run, first in each file |
//! | `row` | a row of the market, before all that it causes |
//! | `portfolio` | what the strategy's queries about its account answer from here on |
//! | `call` | a call of the strategy and its answer |
//! | `host` | what else ended the day or the run, or changed the market's data; `end` is the last record |
//!
//! A crash cuts off the end of the last file at most. What is left is the start of what happened. A run that goes on is
//! read as far as it is written. A run whose manifest says that it has ended has a journal with an end.

mod journaled;
mod known_days;
mod line;
mod reader;
mod record;
mod reproduce;
mod stream;
mod writer;

pub use journaled::Journaled;
pub use known_days::KnownDays;
pub use reader::{JournalError, Records, read};
pub use record::{
    Answer, Call, FaultRecord, Header, HostRecord, Input, JOURNAL_VERSION, Record, Row, RowKind,
    RunKind,
};
pub(crate) use reproduce::load as load_component;
pub use reproduce::{
    Difference, Output, OutputKind, ReproduceError, Reproduced, STRATEGY_FILE, reproduce,
};
pub use stream::JournaledStream;
pub use writer::{JOURNAL_WAITING_BYTES_MAX, Journal, JournalFile, JournalFiles};
