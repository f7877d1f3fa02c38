//! Bar files to tables and back. A table has typed columns for other programs, and then every column
//! of the vendor's under its own name as the text that stands in the file; bar files have 8 to 29 of
//! them. A row whose cells do not give its line again (quotes, a carriage return) keeps its text.

use std::io::{BufWriter, Write};
use std::path::Path;

use atomic_file::AtomicFile;
use csv::{ReaderBuilder, StringRecord};
use domain::market::BarGranularity;
use domain::{ShortText, TsNanos, VendorCode};

use crate::catalog::BarFile;
use crate::error::{DataError, shown};
use crate::limits::CONVERT_BAR_GROUP_ROWS;
use crate::parquet::{Field, Kind, ParquetError, TableReader, TableWriter, Values};
use crate::reader::{BarRow, BarSink, NoTradeRow, ProgressFn, ReadOptions, Selection, read_bars};
use crate::sample::compressed;

use super::{
    ConvertError, ConvertReport, SHOWN_CHARS, first_line, refuse_lost_bytes, tell_group, text_start,
};

/// Columns before the vendor's own.
const TYPED: usize = 7;
/// The index of the text of rows in another spelling.
const TEXT: usize = 6;

/// The typed columns of a table of bars; prices and volume are missing in rows without a trade.
#[must_use]
pub fn bar_fields() -> Vec<Field> {
    vec![
        Field::required("ts_event", Kind::Timestamp),
        Field::optional("open", Kind::Yen),
        Field::optional("high", Kind::Yen),
        Field::optional("low", Kind::Yen),
        Field::optional("close", Kind::Yen),
        Field::optional("volume", Kind::Int),
        Field::optional("text", Kind::Text),
    ]
}

/// Rows on their way into a table.
struct Group<W: Write + Send> {
    writer: TableWriter<W>,
    numbers: [Vec<Option<i64>>; TEXT],
    text: Vec<Option<ShortText>>,
    cells: Vec<Vec<Option<ShortText>>>,
    text_bytes: u64,
    report: ConvertReport,
    failed: Option<ParquetError>,
    /// The row after those that were taken is no text.
    is_no_text: bool,
}

impl<W: Write + Send> Group<W> {
    fn new(sink: W, names: &[String]) -> Result<Self, ParquetError> {
        let mut fields = bar_fields();
        fields.extend(names.iter().map(|name| Field::required(name.as_str(), Kind::Text)));
        Ok(Self {
            writer: TableWriter::new(sink, &fields)?,
            numbers: Default::default(),
            text: Vec::new(),
            cells: vec![Vec::new(); names.len()],
            text_bytes: names.iter().map(|name| name.len() as u64 + 1).sum(),
            report: ConvertReport { rows: 0, rows_with_text: 0 },
            failed: None,
            is_no_text: false,
        })
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let mut columns: Vec<Values> =
            self.numbers.iter_mut().map(|column| Values::Int(std::mem::take(column))).collect();
        columns.push(Values::Text(std::mem::take(&mut self.text)));
        columns.extend(self.cells.iter_mut().map(|column| Values::Text(std::mem::take(column))));
        self.writer.write(&columns)
    }

    fn take(&mut self, numbers: [Option<i64>; TEXT], line: &[u8]) {
        if self.failed.is_some() || self.is_no_text {
            return;
        }
        let Ok(line) = str::from_utf8(line) else {
            // Columns that this program does not use can hold anything.
            self.is_no_text = true;
            return;
        };
        let is_plain = !line.contains(['"', '\r']);
        let quoted = match is_plain {
            true => StringRecord::new(),
            false => match record(line) {
                Ok(cells) => cells,
                Err(error) => {
                    self.failed = Some(ParquetError::Write(error.to_string()));
                    return;
                }
            },
        };
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
        let mut plain = line.split(',');
        for (index, column) in self.cells.iter_mut().enumerate() {
            let cell = if is_plain { plain.next() } else { quoted.get(index) };
            column.push(Some(cell.unwrap_or_default().into()));
        }
        self.report.rows_with_text += u64::from(!is_plain);
        self.text.push((!is_plain).then(|| line.into()));
        self.text_bytes += line.len() as u64 + 1;
        self.report.rows += 1;
        if self.text.len() == CONVERT_BAR_GROUP_ROWS {
            self.failed = self.flush().err();
        }
    }
}

/// The cells of a line with quotes or another line end; the reader has counted them.
fn record(line: &str) -> csv::Result<StringRecord> {
    let mut reader = ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
    let mut record = StringRecord::new();
    reader.read_record(&mut record)?;
    Ok(record)
}

impl<W: Write + Send> BarSink for Group<W> {
    fn bar(&mut self, _row: &BarRow) {}

    fn bar_with_text(&mut self, row: &BarRow, text: &[u8]) {
        // The reader's limits keep a timestamp and a volume far below 63 bits.
        let (ts_event, volume) = (row.ts_event.cast_signed(), row.volume.cast_signed());
        let numbers = [ts_event, row.open, row.high, row.low, row.close, volume];
        self.take(numbers.map(Some), text);
    }

    fn no_trade(&mut self, row: &NoTradeRow, text: &[u8]) {
        let mut numbers = [None; TEXT];
        numbers[0] = Some(row.ts_event.cast_signed());
        self.take(numbers, text);
    }
}

pub(super) fn to_table(
    file: &BarFile,
    code: Option<VendorCode>,
    sink: AtomicFile,
    progress: &mut ProgressFn<'_>,
) -> Result<(AtomicFile, ConvertReport), ConvertError> {
    let selection = code.map_or(Selection::All, |code| Selection::Codes(vec![code]));
    let unwritable = |source| DataError::Unwritable { path: sink.unfinished_path().into(), source };
    let handle = sink.reopen().map_err(unwritable)?;
    let mut group = Group::new(BufWriter::new(handle), &column_names(&file.path)?)?;
    let summary = read_bars(file, &selection, &ReadOptions::default(), progress, &mut group);
    if let Some(error) = group.failed {
        return Err(error.into());
    }
    let summary = summary?;
    if group.is_no_text {
        // Without a code every line is a row, after that of the names.
        let row = group.report.rows + 1;
        let place = match code {
            None => format!("line {}", row + 1),
            Some(code) => format!("row {row} of code {code}"),
        };
        return Err(ConvertError::NoText { path: file.path.clone(), place });
    }
    group.flush()?;
    let report = group.report;
    refuse_lost_bytes(&file.path, code, group.text_bytes, &summary)?;
    let mut out = group.writer.finish()?;
    out.flush().map_err(unwritable)?;
    Ok((sink, report))
}

/// The names in the first line, which become those of the table's columns.
fn column_names(path: &Path) -> Result<Vec<String>, ConvertError> {
    // What is damaged is told better by the reader.
    let (start, _) = text_start(path)?;
    let line = first_line(&start);
    let names: Vec<String> = String::from_utf8_lossy(line).split(',').map(str::to_owned).collect();
    let mut lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    lower.extend(bar_fields().into_iter().map(|field| field.name));
    lower.sort();
    let count = lower.len();
    lower.dedup();
    let is_name = |name: &String| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if lower.len() < count || !names.iter().all(is_name) {
        let found = shown(line, SHOWN_CHARS);
        return Err(ConvertError::ColumnNames { path: path.into(), found });
    }
    Ok(names)
}

pub(super) fn to_text(
    from: &Path,
    to: &BarFile,
    code: Option<VendorCode>,
    sink: AtomicFile,
    progress: &mut ProgressFn<'_>,
) -> Result<(AtomicFile, ConvertReport), ConvertError> {
    let table = TableReader::open(from)?;
    let not_bars = || ConvertError::NotBars { path: from.into() };
    let names: Vec<&str> =
        table.fields().iter().skip(TYPED).map(|field| field.name.as_str()).collect();
    let code_column = names.iter().position(|name| *name == "Code").ok_or_else(not_bars)?;
    let is_minute = to.granularity == BarGranularity::Minute;
    if table.fields()[..TYPED] != bar_fields() || names.contains(&"Time") != is_minute {
        return Err(not_bars());
    }
    let unwritable = |source| DataError::Unwritable { path: to.path.clone(), source };
    let mut out = compressed(sink);
    let mut lines = names.join(",") + "\n";
    let mut report = ConvertReport { rows: 0, rows_with_text: 0 };
    let mut passed = 0;
    for index in 0..table.groups() {
        let rows = Rows::of(table.group(index)?).ok_or_else(not_bars)?;
        for row in 0..rows.text.len() {
            let wrong = |problem| ConvertError::Row { path: from.into(), row: passed, problem };
            let is_wanted =
                code.is_none_or(|code| rows.cell(code_column, row) == Some(code.as_str()));
            if is_wanted {
                if !rows.timestamp(row).is_some_and(|ts| to.period.contains(ts.jst_date())) {
                    return Err(wrong("its date is not in the period of the new file's name"));
                }
                report.rows += 1;
                report.rows_with_text += u64::from(rows.text[row].is_some());
                rows.push_line(row, &mut lines).map_err(wrong)?;
            }
            passed += 1;
        }
        out.write_all(lines.as_bytes()).map_err(unwritable)?;
        lines.clear();
        tell_group(from, &table, index, passed, progress)?;
    }
    Ok((out.finish().map_err(unwritable)?, report))
}

/// The columns of one row group that the text is made from.
struct Rows {
    ts_event: Vec<Option<i64>>,
    text: Vec<Option<ShortText>>,
    cells: Vec<Vec<Option<ShortText>>>,
}

impl Rows {
    fn of(columns: Vec<Values>) -> Option<Self> {
        let mut columns = columns.into_iter();
        let Some(Values::Int(ts_event)) = columns.next() else { return None };
        let mut texts = columns.skip(TEXT - 1).map(|column| match column {
            Values::Text(texts) => Some(texts),
            _ => None,
        });
        let text = texts.next()??;
        Some(Self { ts_event, text, cells: texts.collect::<Option<_>>()? })
    }

    fn cell(&self, column: usize, row: usize) -> Option<&str> {
        self.cells[column][row].as_deref()
    }

    fn timestamp(&self, row: usize) -> Option<TsNanos> {
        let nanos = self.ts_event[row].and_then(|nanos| u64::try_from(nanos).ok())?;
        Some(TsNanos::from_nanos(nanos))
    }

    fn push_line(&self, row: usize, lines: &mut String) -> Result<(), &'static str> {
        if let Some(text) = &self.text[row] {
            if text.contains('\n') {
                return Err("its text has a line feed inside");
            }
            lines.push_str(text);
        } else {
            for column in 0..self.cells.len() {
                let cell = self.cell(column, row).unwrap_or_default();
                if cell.contains([',', '"', '\r', '\n']) {
                    return Err("a cell has a comma, a quote or a line end inside");
                }
                if column > 0 {
                    lines.push(',');
                }
                lines.push_str(cell);
            }
        }
        lines.push('\n');
        Ok(())
    }
}
