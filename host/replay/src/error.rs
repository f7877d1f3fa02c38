//! Why a request for a replay comes to nothing.

use std::io;
use std::path::PathBuf;

use domain::instrument::InstrumentError;
use domain::{InstrumentId, JstDate};
use marketdata::{DataError, TableError};
use results::output::FolderError;
use sandbox::SandboxError;
use thiserror::Error;
use trader::StrategyError;

use crate::instruments::InstrumentsError;
use crate::options::OptionsError;
use crate::run::ReplayError;

/// Why a request came to nothing.
#[derive(Debug, Error)]
pub enum RequestError {
    /// It was ended while data were read.
    #[error("interrupted while reading {file}; nothing was run")]
    Cancelled {
        /// The file.
        file: String,
    },
    /// It was ended while the strategy was compiled.
    #[error("interrupted while the strategy was compiled; nothing was run")]
    Stopped,
    /// The system gives no thread.
    #[error("cannot start a thread that compiles the strategy: {0}")]
    Thread(#[source] io::Error),
    /// The dates are in the wrong order.
    #[error("--from {first} is after --to {last}")]
    Dates {
        /// First date asked for.
        first: JstDate,
        /// Last date asked for.
        last: JstDate,
    },
    /// No rows of an instrument.
    #[error(transparent)]
    NoData(#[from] Box<NoData>),
    /// An instrument that the vendor cannot have.
    #[error(transparent)]
    Instrument(#[from] InstrumentError),
    /// An option makes no sense.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Lot or price steps of an instrument are not known.
    #[error(transparent)]
    Instruments(#[from] InstrumentsError),
    /// The folder's instrument table or calendar cannot be used.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The strategy cannot be loaded.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// The strategy cannot be started by the sandbox.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The folder of the results cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The run was stopped by its results.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

impl RequestError {
    /// Whether what was asked for cannot be, whatever the data say.
    #[must_use]
    pub const fn is_wrong_arguments(&self) -> bool {
        match self {
            Self::Instruments(error) => error.is_wrong_arguments(),
            Self::Dates { .. }
            | Self::Options(_)
            | Self::Instrument(_)
            | Self::Replay(ReplayError::Options(_)) => true,
            _ => false,
        }
    }
}

/// A data folder has no rows of an instrument in the range asked for.
#[derive(Debug, Error)]
#[error(
    "{folder} has no {what} of {instrument} (vendor code {code}) from {first} to {last}{holds}; check the \
     code and the dates{not_read}"
)]
pub struct NoData {
    /// The data folder.
    pub folder: PathBuf,
    /// `trades`, or `bars` and when trades count.
    pub what: &'static str,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Its code in the vendor's files.
    pub code: String,
    /// First date asked for, in words.
    pub first: String,
    /// Last date asked for, in words.
    pub last: String,
    /// What trades files the folder has, and some of their codes, in words; empty where that is not known.
    pub holds: String,
    /// What of the folder was set aside, in words; empty where nothing was.
    pub not_read: String,
}
