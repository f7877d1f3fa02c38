//! Everything that is wrong or odd in a trades or bar file, counted instead of stopping at the first.
//!
//! Memory is fixed for each code, whatever the number of rows.

use std::collections::BTreeMap;

use chrono::Datelike;
use domain::time::NANOS_PER_MINUTE;
use domain::{ExchangeCalendar, JstDate, TsNanos, VendorCode, session};

use crate::catalog::{BarFile, TradeFile};
use crate::error::{CellProblem, DataError};
use crate::limits::AUDIT_EXAMPLES_MAX;
use crate::reader::{
    BadRow, BadRowFn, BarRow, BarSink, NoTradeRow, ReadOptions, ReadSummary, TradeRow, TradeSink,
    read_bars_past_bad_rows, read_past_bad_rows,
};

/// What a row breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// An id that its code had before on that day.
    Duplicate,
    /// A timestamp before that of an earlier row of the code.
    OutOfOrder,
    /// A time outside its session.
    OffSession,
    /// No date, or one outside the file's period.
    Date,
    /// No price, or one that no share has.
    Price,
    /// No number of shares, or one that nobody trades.
    Quantity,
    /// A code that no issue of the exchange can have.
    Code,
    /// A bar whose open, high, low and close contradict each other.
    Range,
    /// Anything else: cells missing or too many, quotes, unreadable times and ids.
    Layout,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Duplicate,
        Self::OutOfOrder,
        Self::OffSession,
        Self::Date,
        Self::Price,
        Self::Quantity,
        Self::Code,
        Self::Range,
        Self::Layout,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::OutOfOrder => "out_of_order",
            Self::OffSession => "off_session",
            Self::Date => "bad_date",
            Self::Price => "bad_price",
            Self::Quantity => "bad_quantity",
            Self::Code => "bad_code",
            Self::Range => "bad_range",
            Self::Layout => "bad_layout",
        }
    }

    fn of(error: &DataError) -> Self {
        let DataError::Cell { problem, .. } = error else { return Self::Layout };
        match **problem {
            CellProblem::DuplicateId { .. }
            | CellProblem::FallingId { .. }
            | CellProblem::BarTwice { .. } => Self::Duplicate,
            CellProblem::DateOrder { .. }
            | CellProblem::TimeOrder { .. }
            | CellProblem::BarOrder { .. } => Self::OutOfOrder,
            CellProblem::Hours { .. } | CellProblem::Session | CellProblem::MinuteHours => {
                Self::OffSession
            }
            CellProblem::BarRange { .. } => Self::Range,
            CellProblem::Date | CellProblem::Period(_) => Self::Date,
            CellProblem::Price => Self::Price,
            CellProblem::Quantity => Self::Quantity,
            CellProblem::Code | CellProblem::TooManyCodes => Self::Code,
            _ => Self::Layout,
        }
    }
}

/// Rows by what they break.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefectCounts([u64; Defect::ALL.len()]);

impl DefectCounts {
    /// Rows that break this.
    #[must_use]
    pub fn of(&self, defect: Defect) -> u64 {
        self.0[defect as usize]
    }

    /// Rows that break anything.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn add(&mut self, defect: Defect) {
        self.0[defect as usize] += 1;
    }
}

/// What an audit looks for beside the rules of rows.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// A stretch without a trade of a code inside a session counts as quiet from so many minutes on.
    pub quiet_minutes: u64,
    /// The exchange's business days.
    pub calendar: ExchangeCalendar,
}

impl Default for AuditOptions {
    /// 30 minutes; the calendar by rule.
    fn default() -> Self {
        Self { quiet_minutes: 30, calendar: ExchangeCalendar::default() }
    }
}

/// One code of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAudit {
    /// The vendor's code.
    pub code: VendorCode,
    /// Sound rows with a trade.
    pub rows: u64,
    /// Sound rows of a bar file that say that there was no trade.
    pub rows_without_trade: u64,
    /// Shares in them.
    pub volume: u128,
    /// Days with a row.
    pub days: u32,
    /// Days on which other codes of the file have rows and this one has none.
    pub missing_days: Vec<JstDate>,
    /// Timestamp of the first sound row.
    pub first: TsNanos,
    /// Timestamp of the last sound row.
    pub last: TsNanos,
    /// Stretches without a trade inside a session, from the threshold on.
    pub quiet: u64,
    /// The longest of them, in minutes.
    pub longest_quiet_minutes: u64,
    /// Rows at the timestamp and price of the row before; the vendor sums such trades into one row.
    pub same_timestamp_and_price: u64,
    /// Rows that break a rule.
    pub defects: DefectCounts,
}

/// A whole file.
#[derive(Debug)]
pub struct FileAudit {
    /// Sound rows with a trade, of all codes.
    pub rows: u64,
    /// Rows that break a rule; those without a readable code are here only.
    pub defects: DefectCounts,
    /// The first messages, one for each bad row, at most [`AUDIT_EXAMPLES_MAX`].
    pub examples: Vec<String>,
    /// The codes in rising order.
    pub codes: Vec<CodeAudit>,
    /// Days with a row of any code.
    pub days: Vec<JstDate>,
    /// Business days between the first and the last row on which no code has a row.
    pub empty_days: Vec<JstDate>,
    /// Days with rows on which the exchange is closed.
    pub closed_days: Vec<JstDate>,
    /// Timestamp of the first sound row of any code.
    pub first: Option<TsNanos>,
    /// Timestamp of the last sound row of any code.
    pub last: Option<TsNanos>,
    /// Why reading ended before the end of the file; the counts go up to there.
    pub stopped: Option<DataError>,
}

impl FileAudit {
    /// Whether no row breaks a rule and the file could be read to its end.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.defects.total() == 0 && self.stopped.is_none()
    }
}

/// Reads a whole file and counts what is wrong or odd.
///
/// # Errors
/// [`DataError::Cancelled`] when `progress` asks to stop; everything else is in the audit.
pub fn audit_file(
    file: &TradeFile,
    options: &AuditOptions,
    progress: &mut crate::reader::ProgressFn<'_>,
) -> Result<FileAudit, DataError> {
    audit(options, &mut |auditor, bad_row| {
        read_past_bad_rows(file, &ReadOptions::default(), progress, auditor, bad_row)
    })
}

/// Reads a whole bar file and counts what is wrong or odd, like [`audit_file`].
///
/// # Errors
/// As for trades.
pub fn audit_bar_file(
    file: &BarFile,
    options: &AuditOptions,
    progress: &mut crate::reader::ProgressFn<'_>,
) -> Result<FileAudit, DataError> {
    audit(options, &mut |auditor, bad_row| {
        read_bars_past_bad_rows(file, &ReadOptions::default(), progress, auditor, bad_row)
    })
}

/// Reads a file into an auditor.
type ReadFn<'a> = dyn FnMut(&mut Auditor, &mut BadRowFn<'_>) -> Result<ReadSummary, DataError> + 'a;

fn audit(options: &AuditOptions, read: &mut ReadFn<'_>) -> Result<FileAudit, DataError> {
    let mut auditor = Auditor { options: options.clone(), codes: Vec::new() };
    let (mut defects, mut examples) = (DefectCounts::default(), Vec::new());
    let mut by_code: BTreeMap<VendorCode, DefectCounts> = BTreeMap::new();
    let mut bad_row = |bad: BadRow| {
        let defect = Defect::of(&bad.error);
        defects.add(defect);
        // Codes are limited by the reader, but a bad row can name any code there is.
        if let Some(code) = bad.code
            && (by_code.len() < crate::limits::FILE_CODES_MAX || by_code.contains_key(&code))
        {
            by_code.entry(code).or_default().add(defect);
        }
        if examples.len() < AUDIT_EXAMPLES_MAX {
            examples.push(bad.error.to_string());
        }
    };
    let stopped = match read(&mut auditor, &mut bad_row) {
        Ok(_) => None,
        Err(cancelled @ DataError::Cancelled { .. }) => return Err(cancelled),
        Err(error) => Some(error),
    };
    Ok(auditor.finish(defects, &mut by_code, examples, stopped))
}

/// What is counted of one code, row by row.
struct Totals {
    code: VendorCode,
    rows: u64,
    rows_without_trade: u64,
    volume: u128,
    first: u64,
    last: u64,
    last_price: i64,
    /// One bit for each day of the month; a file has at most one month.
    days: u32,
    quiet: u64,
    longest_quiet: u64,
    repeated: u64,
}

struct Auditor {
    options: AuditOptions,
    /// By the reader's index of the code; one whose rows so far are all bad has an index and no rows.
    codes: Vec<Option<Totals>>,
}

impl Auditor {
    fn totals(&mut self, index: usize, code: VendorCode, timestamp: u64) -> &mut Totals {
        if self.codes.len() <= index {
            self.codes.resize_with(index + 1, || None);
        }
        self.codes[index].get_or_insert_with(|| Totals::new(code, timestamp))
    }

    fn quiet_nanos(&self) -> u64 {
        self.options.quiet_minutes.saturating_mul(NANOS_PER_MINUTE)
    }
}

impl TradeSink for Auditor {
    fn trade(&mut self, row: &TradeRow) {
        let quiet_nanos = self.quiet_nanos();
        let code = self.totals(row.code_index, row.code, row.ts_event);
        code.take(row.ts_event, row.price, row.quantity, quiet_nanos);
    }
}

impl BarSink for Auditor {
    fn bar(&mut self, row: &BarRow) {
        let quiet_nanos = self.quiet_nanos();
        let code = self.totals(row.code_index, row.code, row.ts_event);
        code.take(row.ts_event, row.close, row.volume, quiet_nanos);
    }

    fn no_trade(&mut self, row: &NoTradeRow, _text: &[u8]) {
        let code = self.totals(row.code_index, row.code, row.ts_event);
        code.rows_without_trade += 1;
        code.days |= 1 << TsNanos::from_nanos(row.ts_event).jst_date().day0();
        code.first = code.first.min(row.ts_event);
        code.last = code.last.max(row.ts_event);
    }
}

impl Totals {
    fn new(code: VendorCode, timestamp: u64) -> Self {
        Self {
            code,
            rows: 0,
            rows_without_trade: 0,
            volume: 0,
            first: timestamp,
            last: timestamp,
            last_price: 0,
            days: 0,
            quiet: 0,
            longest_quiet: 0,
            repeated: 0,
        }
    }

    fn take(&mut self, timestamp: u64, price: i64, quantity: u64, quiet_nanos: u64) {
        let (before, now) = (TsNanos::from_nanos(self.last), TsNanos::from_nanos(timestamp));
        let gap = timestamp.saturating_sub(self.last);
        if gap > 0 && gap >= quiet_nanos && same_session(before, now) {
            self.quiet += 1;
            self.longest_quiet = self.longest_quiet.max(gap);
        }
        self.repeated += u64::from(self.rows > 0 && gap == 0 && price == self.last_price);
        if self.rows == 0 || before.jst_day() != now.jst_day() {
            self.days |= 1 << now.jst_date().day0();
        }
        self.rows += 1;
        self.volume += u128::from(quantity);
        self.first = self.first.min(timestamp);
        self.last = self.last.max(timestamp);
        self.last_price = price;
    }
}

fn same_session(before: TsNanos, now: TsNanos) -> bool {
    let is_morning = |timestamp: TsNanos| timestamp.jst_nanos_of_day() < session::AFTERNOON_OPEN;
    before.jst_day() == now.jst_day() && is_morning(before) == is_morning(now)
}

impl Auditor {
    fn finish(
        self,
        defects: DefectCounts,
        by_code: &mut BTreeMap<VendorCode, DefectCounts>,
        examples: Vec<String>,
        stopped: Option<DataError>,
    ) -> FileAudit {
        let codes: Vec<Totals> = self.codes.into_iter().flatten().collect();
        let market = codes.iter().fold(0, |days, code| days | code.days);
        let first = codes.iter().map(|code| code.first).min().map(TsNanos::from_nanos);
        let last = codes.iter().map(|code| code.last).max().map(TsNanos::from_nanos);
        let (from, to) = (first.map(TsNanos::jst_date), last.map(TsNanos::jst_date));
        let dates = |bits: u32| -> Vec<JstDate> {
            let month = from.and_then(|date| date.with_day(1)).into_iter();
            let all = month.flat_map(|first| first.iter_days().take(31));
            all.filter(|date| Some(*date) >= from && Some(*date) <= to)
                .filter(|date| bits >> date.day0() & 1 == 1)
                .collect()
        };
        let calendar = &self.options.calendar;
        let is_open = |date: &JstDate| calendar.is_business_day(*date);
        let days = dates(market);
        let empty_days = dates(!market).into_iter().filter(is_open).collect();
        let closed_days = days.iter().copied().filter(|date| !is_open(date)).collect();
        let mut codes: Vec<CodeAudit> = codes
            .iter()
            .map(|code| CodeAudit {
                code: code.code,
                rows: code.rows,
                rows_without_trade: code.rows_without_trade,
                volume: code.volume,
                days: code.days.count_ones(),
                missing_days: dates(market & !code.days),
                first: TsNanos::from_nanos(code.first),
                last: TsNanos::from_nanos(code.last),
                quiet: code.quiet,
                longest_quiet_minutes: code.longest_quiet / NANOS_PER_MINUTE,
                same_timestamp_and_price: code.repeated,
                defects: by_code.remove(&code.code).unwrap_or_default(),
            })
            .collect();
        codes.sort_by_key(|code| code.code);
        let rows = codes.iter().map(|code| code.rows).sum();
        FileAudit {
            rows,
            defects,
            examples,
            codes,
            days,
            empty_days,
            closed_days,
            first,
            last,
            stopped,
        }
    }
}
