//! Reads the vendor's market data files, caches them as columns, makes sample data.
//!
//! A [`Catalog`] lists the trades files of a folder, a [`TradeStore`] loads single codes of them as
//! columns and keeps a cache beside, [`check_file`] applies every rule to a whole file, and
//! [`write_sample`] makes data of the same layout for trying things out. [`mod@parquet`] writes and reads
//! small typed tables as Parquet files.
//!
//! This crate knows nothing of strategies, orders or wasm. Nothing that it reads is trusted: every
//! length is limited, every value checked, and a file with one fault is refused as a whole.

pub mod audit;
pub mod bars;
pub mod board;
pub mod calendar_file;
pub mod catalog;
pub mod check;
pub mod convert;
pub mod error;
pub mod instruments;
pub mod inventory;
pub mod limits;
pub mod master;
pub mod parquet;
pub mod reader;
pub mod sample;
pub mod store;

pub use audit::{AuditOptions, CodeAudit, Defect, FileAudit, audit_bar_file, audit_file};
pub use bars::{GrowingBar, MadeBar, make_bars};
pub use catalog::{BarFile, Catalog, Period, TradeFile};
pub use check::{FileReport, check_file};
pub use convert::{ConvertError, ConvertReport, convert};
pub use error::{CellProblem, DataError, GzipProblem, HeaderProblem, LineProblem};
pub use instruments::{InstrumentRow, InstrumentTable, TableError};
pub use inventory::{FileKind, Inventory, StoredFile};
pub use master::{ListedIssue, Master};
pub use reader::{
    BadRow, BadRowFn, BarRow, BarSink, FactorRow, LoadProgress, NoTradeRow, ProgressFn,
    ReadOptions, ReadSummary, Selection, TradeRow, TradeSink, read_bars, read_bars_past_bad_rows,
    read_factors, read_past_bad_rows, read_trades,
};
pub use sample::{SampleCodes, SampleReport, SampleSpec, write_sample, write_sample_with_bars};
pub use store::{BarSegment, CacheOutcome, FactorSegment, PriceGrid, TradeSegment, TradeStore};
