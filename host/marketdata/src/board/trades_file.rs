//! The trades of a recorded day in the vendor's layout, so that `kumiki replay` runs over them.
//!
//! | a recorded trade | in the file |
//! |---|---|
//! | of a symbol with 4 or 5 characters, at a time of a session, in whole shares | a row at the venue's time, in the order of receipt; `TransactionId` counts from 1 |
//! | whose time is further than [`TRADE_CLOCK_OFF_MAX`] from its receipt, also of another day | a row at the time of receipt (`off_clock`) |
//! | earlier than the one before it of the same symbol | a row at the time of that one (`moved`) |
//! | that adds up what a gap left out | left out: strategies do not get it (specification 4, P55) |
//! | of a symbol whose code another symbol has that came before it, as `72030` after `7203` | left out |
//! | of another symbol, another day, another hour, or with a value that the layout does not hold | left out |
//!
//! What is left out stands in the Parquet files and is counted, and so does every time as the venue told it.
//! A segment whose table is damaged is left out as a whole, counted and named; the others are written.
//! The file's own head says from which segments it was made, so it can be seen whether it is up to date, and
//! that it is no vendor's. One that lacks a segment never is, so a segment that is mended comes in at the next
//! start. One that has trades of segments that are damaged or gone now is kept beside the new one. The head says
//! so in an extra field, which has always the same length: a [`Draft`] grows with each segment and gets its head
//! at its end. It is one gzip member, because not every reader goes on after the first. The field is one that every reader of gzip files passes over; a
//! comment, as files of before have it, is refused by DuckDB.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFile;
use domain::market_update::{Symbol, TradePrint};
use domain::price::UNITS_PER_YEN;
use domain::session::{AFTERNOON_OPEN, AUCTION_SLACK, CLOSE, MORNING_CLOSE, MORNING_OPEN};
use domain::text::with_causes;
use domain::{InstrumentId, JstDate, TsNanos, VendorCode};
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use crate::convert::{HEADER, push_line};
use crate::limits::{
    DAMAGED_NAMED_MAX, DAY_SYMBOLS_MAX, PRICE_YEN_MAX, ROW_QUANTITY_MAX, SET_ASIDE_MAX,
    TRADE_CLOCK_OFF_MAX,
};
use crate::parquet::ParquetError;
use crate::reader::TradeRow;
use crate::sample::COMPRESSION_LEVEL;

use super::ending::Looks;
use super::folder::{BoardFolder, DayFolder};
use super::table::read_trade_prints;
use super::writer::RecorderError;

/// Begin of the note in the head of such a file.
const NOTE: &str = "kumiki recording, segments ";
/// The name of the extra field that has it.
const NOTE_FIELD: [u8; 2] = *b"KU";
/// Bytes of the note with spaces behind it; the longest has fewer.
const NOTE_BYTES: usize = 160;
/// Where the extra field begins in the file, behind the ten bytes of every head and the field's length.
const NOTE_AT: u64 = 12;
/// Nanoseconds in one millisecond.
const NANOS_PER_MILLI: u64 = 1_000_000;

/// What became of the trades of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradesFileReport {
    /// The day in Japan.
    pub date: JstDate,
    /// Rows of the file; without any there is no file.
    pub rows: u64,
    /// Rows among them whose time was before that of the row before of the same symbol, and is that now.
    pub moved: u64,
    /// Rows among them whose time is that of receipt, because the venue's cannot be believed.
    pub off_clock: u64,
    /// Trades left out that add up what a gap left out.
    pub after_gap: u64,
    /// Trades left out whose symbol is no code of the vendor.
    pub no_code: u64,
    /// Trades left out of a symbol whose code another symbol has.
    pub same_code: u64,
    /// Trades left out that were made on another day in Japan.
    pub other_day: u64,
    /// Trades left out that were made outside of the sessions.
    pub outside_hours: u64,
    /// Trades left out whose price or quantity the layout does not hold.
    pub no_value: u64,
    /// Segments left out whose table cannot be read; how many trades they have is not known.
    pub damaged_segments: usize,
    /// Why, of the first [`DAMAGED_NAMED_MAX`] of them, each in one line with its file.
    pub damaged: Vec<String>,
    /// Segments that the file before had and that are not there any more.
    pub gone_segments: usize,
    /// Where the file is that was made while these could be read; it is kept, as it has their trades.
    pub before: Option<PathBuf>,
}

impl TradesFileReport {
    const fn new(date: JstDate) -> Self {
        Self {
            date,
            rows: 0,
            moved: 0,
            off_clock: 0,
            after_gap: 0,
            no_code: 0,
            same_code: 0,
            other_day: 0,
            outside_hours: 0,
            no_value: 0,
            damaged_segments: 0,
            damaged: Vec::new(),
            gone_segments: 0,
            before: None,
        }
    }

    fn damaged(&mut self, error: &ParquetError) {
        self.damaged_segments += 1;
        if self.damaged.len() < DAMAGED_NAMED_MAX {
            self.damaged.push(with_causes(error));
        }
    }

    /// Trades of whole segments that are not in the file.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        let no_row = self.no_code + self.same_code + self.no_value;
        self.after_gap + no_row + self.other_day + self.outside_hours
    }

    /// Which segments the file lacks and what to do about it, in one line; nothing where it lacks none.
    #[must_use]
    pub fn lacks(&self) -> Option<String> {
        let (date, count, gone) = (self.date, self.damaged_segments, self.gone_segments);
        let before = self.before.as_ref().map_or(String::new(), |path| {
            format!("; the earlier file {} has them", path.display())
        });
        let gone = (gone > 0).then(|| {
            format!("segments of the file of {date} are gone ({gone}), so it lacks their trades")
        });
        if count == 0 {
            let what = "put them back in their place and start the engine again";
            return gone.map(|gone| format!("{gone}{before}; {what}"));
        }
        let gone = gone.map_or(String::new(), |gone| format!("; {gone}"));
        let more = count - self.damaged.len();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Some(format!(
            "the trades of {count} damaged segments are not in the file of {date}: {}{more}{gone}{before}; put \
             whole copies of them in their place, or move them away, and start the engine again",
            self.damaged.join("; ")
        ))
    }
}

/// Tells what became of the trades of a day.
pub(super) fn log(report: &TradesFileReport) {
    let TradesFileReport { date, rows, moved, off_clock, after_gap, .. } = report;
    let left_out = report.left_out();
    if *off_clock > 0 {
        tracing::warn!(
            %date, off_clock,
            "the venue's time of trades is more than {} minutes from their receipt: the day's \
             trades file has the time of receipt. If there are many, check this machine's clock",
            TRADE_CLOCK_OFF_MAX.as_secs() / 60
        );
    }
    if report.same_code > 0 {
        tracing::warn!(
            %date, trades = report.same_code,
            "the day's trades file leaves out the trades of a symbol: another symbol has the same \
             code there, like 7203 and 72030. The Parquet files have them"
        );
    }
    if let Some(lacks) = report.lacks() {
        let (damaged_segments, gone_segments) = (report.damaged_segments, report.gone_segments);
        tracing::warn!(%date, damaged_segments, gone_segments, "{lacks}");
    }
    let TradesFileReport { other_day, outside_hours, no_value, no_code, .. } = report;
    tracing::info!(
        %date, rows, left_out, after_gap, other_day, outside_hours, no_value, no_code, moved,
        "the trades of a recorded day are written"
    );
}

/// Numbers of segments as the log names them, the first [`DAMAGED_NAMED_MAX`].
pub(super) fn named(segments: &[u32]) -> String {
    let names = segments.iter().take(DAMAGED_NAMED_MAX).map(|segment| format!("{segment:06}"));
    let mut text = names.collect::<Vec<_>>().join(", ");
    if let Some(more) = segments.len().checked_sub(DAMAGED_NAMED_MAX).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// What the head of a file says that was made from these segments without those among them that are damaged.
fn note_of(segments: &[u32], damaged: &[u32]) -> String {
    let last = segments.last().copied().unwrap_or(0);
    let mut text = format!("{NOTE}{} to {last:06}", segments.len() - damaged.len());
    for (index, segment) in damaged.iter().take(DAMAGED_NAMED_MAX).enumerate() {
        text.push_str(if index == 0 { " without " } else { "," });
        text.push_str(&format!("{segment:06}"));
    }
    if damaged.len() > DAMAGED_NAMED_MAX {
        text.push_str(" and more");
    }
    text
}

/// The extra field with a note.
fn extra_of(note: &str) -> Vec<u8> {
    let text = format!("{note:NOTE_BYTES$}");
    let bytes = (text.len() as u16).to_le_bytes();
    [&NOTE_FIELD[..], &bytes[..], text.as_bytes()].concat()
}

/// Whether a file with this note has the trades of a segment.
fn has_segment(note: &str, segment: u32) -> bool {
    let (made, without) = note.split_once(" without ").unwrap_or((note, ""));
    let last = made.rsplit(' ').next().and_then(|last| last.parse().ok()).unwrap_or(0);
    let is_left_out = without.contains(&format!("{segment:06}")) || without.ends_with(" and more");
    segment <= last && !is_left_out
}

/// Segments of which a file with this note has the trades, and that are none of these.
fn gone_of(note: &str, segments: &[u32]) -> usize {
    let count = note.strip_prefix(NOTE).and_then(|text| text.split(' ').next()?.parse().ok());
    let had = match note.ends_with(" and more") {
        // Which it lacks is not said, so each of these may be in it.
        true => segments.len(),
        false => segments.iter().filter(|segment| has_segment(note, **segment)).count(),
    };
    count.unwrap_or(0_usize).saturating_sub(had)
}

/// What a file's own head says.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// There is no file.
    None,
    /// A recorder made it, with this note.
    Ours(String),
    /// A recorder of before made it, in a way that not all programs can read.
    OursOfBefore,
    /// Somebody else's.
    Theirs,
}

fn segments_with_trades(day: &DayFolder) -> Result<Vec<u32>, RecorderError> {
    let listed = day.list().map_err(RecorderError::io("list", day.path()))?;
    Ok(listed.finished(&listed.trades).collect())
}

fn head_of(path: &Path) -> Result<Head, RecorderError> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Head::None),
        // A pipe of this name would be waited for.
        Ok(found) if !found.is_file() => return Ok(Head::Theirs),
        other => other.map_err(RecorderError::io("read", path))?,
    };
    let file = File::open(path).map_err(RecorderError::io("read", path))?;
    let text = GzDecoder::new(BufReader::new(file));
    let Some(head) = text.header() else { return Ok(Head::Theirs) };
    let note = head.extra().and_then(|extra| extra.strip_prefix(&NOTE_FIELD)?.get(2..));
    let note = note.map(|note| String::from_utf8_lossy(note).trim_end().to_owned());
    let is_old = head.comment().is_some_and(|comment| comment.starts_with(NOTE.as_bytes()));
    Ok(match note {
        Some(note) if note.starts_with(NOTE) => Head::Ours(note),
        _ if is_old => Head::OursOfBefore,
        _ => Head::Theirs,
    })
}

/// Segments of a day that its file lacks, also those of which only the journal is there.
pub(super) fn lacking(folder: &BoardFolder, day: &DayFolder) -> Vec<u32> {
    let Ok(listed) = day.list() else { return Vec::new() };
    let mut segments: Vec<u32> = listed.finished(&listed.trades).collect();
    segments.extend(&listed.journals);
    segments.sort_unstable();
    if let Ok(Head::Ours(note)) = head_of(&folder.trades_file(day.date())) {
        segments.retain(|segment| !has_segment(&note, *segment));
    }
    segments
}

/// Whether the file of a day is made from all its finished segments. A file that is no recorder's is left
/// alone.
pub(super) fn is_up_to_date(folder: &BoardFolder, day: &DayFolder) -> Result<bool, RecorderError> {
    let segments = segments_with_trades(day)?;
    let head = head_of(&folder.trades_file(day.date()))?;
    Ok(segments.is_empty() || head == Head::Ours(note_of(&segments, &[])))
}

/// Writes the trades of a day's finished segments in the vendor's layout, without those that are damaged.
/// Nothing where it has none. The same segments give the same bytes.
///
/// # Errors
/// [`RecorderError`]; the file is as it was then.
pub fn make_trades_file(
    folder: &BoardFolder,
    day: &DayFolder,
) -> Result<Option<TradesFileReport>, RecorderError> {
    let mut draft = Draft::begin(folder, day)?;
    draft.extend(&|| false)?;
    draft.commit(folder)
}

/// The file with the trades of a day while it is written, under another name. It grows with each segment that
/// is finished, so that the end of a day has little to do.
#[derive(Debug)]
pub(super) struct Draft {
    day: DayFolder,
    /// Segments that were read, rising.
    segments: Vec<u32>,
    /// Those among them that cannot be.
    damaged: Vec<u32>,
    rows: Rows,
    out: GzEncoder<AtomicFile>,
}

impl Draft {
    /// Begins one without any segment.
    pub(super) fn begin(folder: &BoardFolder, day: &DayFolder) -> Result<Self, RecorderError> {
        let trades = folder.trades_folder();
        std::fs::create_dir_all(&trades).map_err(RecorderError::io("make", &trades))?;
        let failed = || RecorderError::io("write in", &trades);
        let file = AtomicFile::create_in(&trades).map_err(failed())?;
        let mut out = GzBuilder::new()
            .mtime(0)
            .extra(extra_of(NOTE))
            .write(file, Compression::new(COMPRESSION_LEVEL));
        out.write_all(HEADER.as_bytes()).map_err(failed())?;
        let (segments, damaged) = (Vec::new(), Vec::new());
        Ok(Self { day: day.clone(), segments, damaged, rows: Rows::of(day.date()), out })
    }

    pub(super) const fn day(&self) -> &DayFolder {
        &self.day
    }

    /// Whether all its segments could be read.
    pub(super) const fn is_whole(&self) -> bool {
        self.damaged.is_empty()
    }

    /// Adds the finished segments that it lacks; `false` where one belongs before those that it has, and it has
    /// to be begun anew.
    ///
    /// # Errors
    /// [`RecorderError`], also that it is given up; it must not be used any more then.
    pub(super) fn extend(&mut self, is_given_up: &dyn Fn() -> bool) -> Result<bool, RecorderError> {
        let last = self.segments.last().copied().unwrap_or(0);
        let mut segments = segments_with_trades(&self.day)?;
        segments.retain(|segment| self.segments.binary_search(segment).is_err());
        if segments.first().is_some_and(|first| *first < last) {
            return Ok(false);
        }
        for segment in segments {
            self.add(segment, is_given_up)?;
        }
        Ok(true)
    }

    fn add(&mut self, segment: u32, is_given_up: &dyn Fn() -> bool) -> Result<(), RecorderError> {
        let path = self.day.trades(segment);
        self.segments.push(segment);
        // Read as a whole first: a segment that breaks off has no rows in the file.
        let mut looks = Looks::new(is_given_up);
        match read_trade_prints(&path, |_| looks.row()) {
            Err(RecorderError::Parquet(error)) => {
                self.damaged.push(segment);
                self.rows.report.damaged(&error);
                return Ok(());
            }
            other => other?,
        }
        let trades = atomic_file::folder_of(self.out.get_ref().unfinished_path()).to_owned();
        read_trade_prints(&path, |print| {
            looks.row()?;
            self.rows.line.clear();
            if self.rows.take(&print) {
                let written = self.out.write_all(self.rows.line.as_bytes());
                written.map_err(RecorderError::io("write in", &trades))?;
            }
            Ok(())
        })
    }

    /// Puts it in the place of the day's file. Nothing where it has no segment.
    ///
    /// # Errors
    /// [`RecorderError`]; the file is as it was then.
    pub(super) fn commit(
        self,
        folder: &BoardFolder,
    ) -> Result<Option<TradesFileReport>, RecorderError> {
        if self.segments.is_empty() {
            return Ok(None);
        }
        let path = folder.trades_file(self.day.date());
        let head = head_of(&path)?;
        if head == Head::Theirs {
            return Err(RecorderError::NotOurs(path));
        }
        let failed = || RecorderError::io("write", &path);
        let mut file = self.out.finish().map_err(failed())?;
        let extra = extra_of(&note_of(&self.segments, &self.damaged));
        let headed = file.seek(SeekFrom::Start(NOTE_AT)).and_then(|_| file.write_all(&extra));
        headed.map_err(failed())?;
        let mut report = self.rows.report;
        if let Head::Ours(note) = &head {
            report.gone_segments = gone_of(note, &self.segments);
            let is_damaged = self.damaged.iter().any(|segment| has_segment(note, *segment));
            if is_damaged || report.gone_segments > 0 {
                report.before = Some(keep_before(&self.day, &path)?);
            }
        }
        if report.rows > 0 {
            file.commit(&path).map_err(failed())?;
        } else {
            atomic_file::remove_if_there(&path).map_err(RecorderError::io("remove", &path))?;
        }
        Ok(Some(report))
    }
}

/// Moves the file of a day's trades, which has what cannot be made again, into the day's folder, under the
/// first name that is free.
fn keep_before(day: &DayFolder, path: &Path) -> Result<PathBuf, RecorderError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let names =
        (1..=SET_ASIDE_MAX).map(|number| day.path().join(format!("{name}.before-{number}")));
    let is_free = |path: &PathBuf| matches!(std::fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
    let Some(kept) = { names }.find(is_free) else {
        let what = format!(
            "{SET_ASIDE_MAX} files before it were kept in {}; move them away",
            day.path().display()
        );
        return Err(RecorderError::io("keep", path)(io::Error::other(what)));
    };
    atomic_file::rename(path, &kept).map_err(RecorderError::io("rename", path))?;
    atomic_file::sync_folder(day.path()).map_err(RecorderError::io("write in", day.path()))?;
    Ok(kept)
}

/// The vendor's code and the time of the last row of each symbol.
#[derive(Debug)]
struct Rows {
    known: BTreeMap<Symbol, (VendorCode, u64)>,
    /// The symbol that has a code.
    codes: BTreeMap<VendorCode, Symbol>,
    report: TradesFileReport,
    line: String,
}

impl Rows {
    fn of(date: JstDate) -> Self {
        let (known, codes) = (BTreeMap::new(), BTreeMap::new());
        Self { known, codes, report: TradesFileReport::new(date), line: String::new() }
    }

    /// Writes a trade as a line, or counts why it is left out.
    fn take(&mut self, print: &TradePrint) -> bool {
        let left_out = match self.row_of(print) {
            Ok(row) => {
                push_line(&mut self.line, &row, None);
                self.line.push('\n');
                return true;
            }
            Err(left_out) => left_out(&mut self.report),
        };
        *left_out += 1;
        false
    }

    fn row_of(
        &mut self,
        print: &TradePrint,
    ) -> Result<TradeRow, fn(&mut TradesFileReport) -> &mut u64> {
        if print.after_gap {
            return Err(|report| &mut report.after_gap);
        }
        let quantity = u64::try_from(print.quantity / UNITS_PER_YEN).unwrap_or(0);
        let is_whole = print.quantity % UNITS_PER_YEN == 0;
        let has_price = (1..=PRICE_YEN_MAX * UNITS_PER_YEN).contains(&print.price);
        if !is_whole || !(1..=ROW_QUANTITY_MAX).contains(&quantity) || !has_price {
            return Err(|report| &mut report.no_value);
        }
        let told = TsNanos::from_nanos(print.timestamp_ms.saturating_mul(NANOS_PER_MILLI));
        let off = u128::from(told.nanos().abs_diff(print.received.nanos()));
        let is_off = off > TRADE_CLOCK_OFF_MAX.as_nanos();
        let made = if is_off { print.received } else { told };
        if made.jst_date() != self.report.date {
            return Err(|report| &mut report.other_day);
        }
        let sessions =
            [MORNING_OPEN..=MORNING_CLOSE + AUCTION_SLACK, AFTERNOON_OPEN..=CLOSE + AUCTION_SLACK];
        if !sessions.iter().any(|session| session.contains(&made.jst_nanos_of_day())) {
            return Err(|report| &mut report.outside_hours);
        }
        let (code, last) = match self.known.get(&print.symbol) {
            Some(known) => *known,
            None if self.known.len() < DAY_SYMBOLS_MAX => {
                let id = format!("{}.TSE", print.symbol).parse::<InstrumentId>();
                let code = id.and_then(|id| id.vendor_code());
                let code = code.map_err(|_| no_code as fn(&mut _) -> &mut _)?;
                if self.codes.get(&code).is_some_and(|symbol| *symbol != print.symbol) {
                    return Err(|report| &mut report.same_code);
                }
                (code, 0)
            }
            None => return Err(no_code),
        };
        let ts_event = made.nanos().max(last);
        self.report.moved += u64::from(ts_event != made.nanos());
        self.report.off_clock += u64::from(is_off);
        self.report.rows += 1;
        self.codes.insert(code, print.symbol);
        self.known.insert(print.symbol, (code, ts_event));
        let transaction_id = self.report.rows;
        Ok(TradeRow { code_index: 0, code, ts_event, price: print.price, quantity, transaction_id })
    }
}

const fn no_code(report: &mut TradesFileReport) -> &mut u64 {
    &mut report.no_code
}
