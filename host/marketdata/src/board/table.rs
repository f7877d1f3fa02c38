//! Recorded rows as Parquet columns, and back.

use std::path::Path;
use std::sync::Arc;

use domain::market_update::{
    AggressorSide, Board, Level, SideRule, Symbol, TimeSource, TradePrint,
};
use domain::{ShortText, TsNanos};

use crate::limits::BOARD_LEVELS_MAX;
use crate::parquet::{Field, Kind, ParquetError, TableReader, Values};

/// Columns before the levels of an order book.
const DEPTH_HEAD: usize = 7;

/// Columns that order books and trades share.
fn head_fields() -> Vec<Field> {
    vec![
        Field::required("received_ns", Kind::Int),
        Field::required("symbol", Kind::Text),
        Field::required("stream_session_id", Kind::Text),
        Field::required("sequence_id", Kind::Int),
        Field::required("timestamp_ms", Kind::Int),
    ]
}

/// The columns of order books, levels from 1 to 10 in the venue's order, usually the
/// best first. A level that is not there has neither price
/// nor quantity. Prices and quantities are exact decimals with four digits; `received_ns` is in nanoseconds,
/// `timestamp_ms` in milliseconds since 1970 UTC.
#[must_use]
pub fn depth_fields() -> Vec<Field> {
    let mut fields = head_fields();
    fields.push(Field::required("timestamp_source", Kind::Text));
    fields.push(Field::optional("last_price", Kind::Yen));
    for side in ["bid", "ask"] {
        for level in 1..=BOARD_LEVELS_MAX {
            fields.push(Field::optional(format!("{side}_price_{level}"), Kind::Yen));
            fields.push(Field::optional(format!("{side}_qty_{level}"), Kind::Yen));
        }
    }
    fields
}

/// The columns of recorded trades.
#[must_use]
pub fn trade_print_fields() -> Vec<Field> {
    let mut fields = head_fields();
    fields.push(Field::required("price", Kind::Yen));
    fields.push(Field::required("qty", Kind::Yen));
    fields.push(Field::required("side", Kind::Text));
    fields.push(Field::optional("side_rule", Kind::Text));
    fields.push(Field::required("after_gap", Kind::Bool));
    fields
}

fn int(values: Vec<Option<i64>>) -> Values {
    Values::Int(values)
}

/// Sound rows have numbers that fit.
fn signed(number: u64) -> Option<i64> {
    Some(number.cast_signed())
}

fn head_columns<'a>(
    rows: impl Iterator<Item = (TsNanos, Symbol, &'a Arc<str>, u64, u64)> + Clone,
) -> Vec<Values> {
    let text = |text: &str| Some(ShortText::from(text));
    vec![
        int(rows.clone().map(|row| signed(row.0.nanos())).collect()),
        Values::Text(rows.clone().map(|row| text(row.1.as_str())).collect()),
        Values::Text(rows.clone().map(|row| text(row.2)).collect()),
        int(rows.clone().map(|row| signed(row.3)).collect()),
        int(rows.map(|row| signed(row.4)).collect()),
    ]
}

/// Order books as the columns of [`depth_fields`].
pub(super) fn depth_columns(rows: &[Board]) -> Vec<Values> {
    let mut columns = head_columns(rows.iter().map(|row| {
        let session = &row.stream_session_id;
        (row.received, row.symbol, session, row.sequence_id, row.timestamp_ms)
    }));
    let sources = rows.iter().map(|row| Some(row.timestamp_source.name().into()));
    columns.push(Values::Text(sources.collect()));
    columns.push(int(rows.iter().map(|row| row.last_price).collect()));
    for side in [|row: &Board| &row.bids, |row: &Board| &row.asks] as [fn(&Board) -> &Vec<Level>; 2]
    {
        for index in 0..BOARD_LEVELS_MAX {
            let level = |row| side(row).get(index);
            columns.push(int(rows.iter().map(|row| level(row).map(|one| one.price)).collect()));
            columns.push(int(rows.iter().map(|row| level(row).map(|one| one.quantity)).collect()));
        }
    }
    columns
}

/// Trades as the columns of [`trade_print_fields`].
pub(super) fn trade_columns(rows: &[TradePrint]) -> Vec<Values> {
    let mut columns = head_columns(rows.iter().map(|row| {
        let session = &row.stream_session_id;
        (row.received, row.symbol, session, row.sequence_id, row.timestamp_ms)
    }));
    let text = |name: &'static str| Some(ShortText::from(name));
    columns.push(int(rows.iter().map(|row| Some(row.price)).collect()));
    columns.push(int(rows.iter().map(|row| Some(row.quantity)).collect()));
    columns.push(Values::Text(rows.iter().map(|row| text(row.side.name())).collect()));
    let rules = rows.iter().map(|row| row.side_rule.and_then(|rule| text(rule.name())));
    columns.push(Values::Text(rules.collect()));
    columns.push(Values::Bool(rows.iter().map(|row| Some(row.after_gap)).collect()));
    columns
}

/// The columns of a row group, taken one after the other.
struct Columns {
    columns: std::vec::IntoIter<Values>,
}

impl Columns {
    fn ints(&mut self) -> Option<Vec<Option<i64>>> {
        match self.columns.next()? {
            Values::Int(values) => Some(values),
            _ => None,
        }
    }

    fn texts(&mut self) -> Option<Vec<Option<ShortText>>> {
        match self.columns.next()? {
            Values::Text(values) => Some(values),
            _ => None,
        }
    }

    fn bools(&mut self) -> Option<Vec<Option<bool>>> {
        match self.columns.next()? {
            Values::Bool(values) => Some(values),
            _ => None,
        }
    }
}

/// The columns that order books and trades share.
struct Head {
    received: Vec<Option<i64>>,
    symbol: Vec<Option<ShortText>>,
    session: Vec<Option<ShortText>>,
    sequence_id: Vec<Option<i64>>,
    timestamp_ms: Vec<Option<i64>>,
    /// The session read last: thousands of rows have the same.
    known: Arc<str>,
}

impl Head {
    fn take(columns: &mut Columns) -> Option<Self> {
        Some(Self {
            received: columns.ints()?,
            symbol: columns.texts()?,
            session: columns.texts()?,
            sequence_id: columns.ints()?,
            timestamp_ms: columns.ints()?,
            known: Arc::from(""),
        })
    }

    fn at(&mut self, index: usize) -> Option<(TsNanos, Symbol, Arc<str>, u64, u64)> {
        let number = |values: &[Option<i64>]| u64::try_from(values[index]?).ok();
        let session = self.session[index].as_deref()?;
        if *self.known != *session {
            self.known = Arc::from(session);
        }
        Some((
            TsNanos::from_nanos(number(&self.received)?),
            Symbol::new(self.symbol[index].as_deref()?)?,
            Arc::clone(&self.known),
            number(&self.sequence_id)?,
            number(&self.timestamp_ms)?,
        ))
    }
}

/// Reads the order books of a file, row group by row group, in their order.
///
/// # Errors
/// [`ParquetError`], or that of `take`.
pub fn read_depth<E: From<ParquetError>>(
    path: &Path,
    mut take: impl FnMut(Board) -> Result<(), E>,
) -> Result<(), E> {
    let reader = open(path, &depth_fields())?;
    for group in 0..reader.groups() {
        let columns = reader.group(group)?;
        let rows = columns.first().map_or(0, Values::len);
        let damaged = || wrong(path, "a row is no order book");
        let mut group = DepthGroup::take(columns).ok_or_else(damaged)?;
        for index in 0..rows {
            take(group.at(index).ok_or_else(damaged)?)?;
        }
    }
    Ok(())
}

/// Reads the trades of a file likewise.
///
/// # Errors
/// [`ParquetError`], or that of `take`.
pub fn read_trade_prints<E: From<ParquetError>>(
    path: &Path,
    mut take: impl FnMut(TradePrint) -> Result<(), E>,
) -> Result<(), E> {
    let reader = open(path, &trade_print_fields())?;
    for group in 0..reader.groups() {
        let columns = reader.group(group)?;
        let rows = columns.first().map_or(0, Values::len);
        let damaged = || wrong(path, "a row is no trade");
        let mut group = TradeGroup::take(columns).ok_or_else(damaged)?;
        for index in 0..rows {
            take(group.at(index).ok_or_else(damaged)?)?;
        }
    }
    Ok(())
}

fn open(path: &Path, fields: &[Field]) -> Result<TableReader, ParquetError> {
    let reader = TableReader::open(path)?;
    if reader.fields() != fields {
        return Err(wrong(path, "its columns are not those of a recording of this version"));
    }
    Ok(reader)
}

fn wrong(path: &Path, reason: &str) -> ParquetError {
    ParquetError::Damaged { path: path.to_path_buf(), reason: reason.to_owned() }
}

struct DepthGroup {
    head: Head,
    source: Vec<Option<ShortText>>,
    last_price: Vec<Option<i64>>,
    /// Prices and quantities of bids, then of asks.
    levels: Vec<Vec<Option<i64>>>,
}

impl DepthGroup {
    fn take(columns: Vec<Values>) -> Option<Self> {
        debug_assert_eq!(columns.len(), DEPTH_HEAD + 4 * BOARD_LEVELS_MAX);
        let mut columns = Columns { columns: columns.into_iter() };
        Some(Self {
            head: Head::take(&mut columns)?,
            source: columns.texts()?,
            last_price: columns.ints()?,
            levels: (0..4 * BOARD_LEVELS_MAX).map(|_| columns.ints()).collect::<Option<_>>()?,
        })
    }

    fn side(&self, index: usize, first: usize) -> Vec<Level> {
        let pairs = self.levels[first..first + 2 * BOARD_LEVELS_MAX].chunks_exact(2);
        let level = |pair: &[Vec<Option<i64>>]| {
            Some(Level { price: pair[0][index]?, quantity: pair[1][index]? })
        };
        pairs.map_while(level).collect()
    }

    fn at(&mut self, index: usize) -> Option<Board> {
        let (received, symbol, stream_session_id, sequence_id, timestamp_ms) =
            self.head.at(index)?;
        Some(Board {
            symbol,
            stream_session_id,
            sequence_id,
            received,
            timestamp_ms,
            timestamp_source: TimeSource::of_name(self.source[index].as_deref()?)?,
            last_price: self.last_price[index],
            bids: self.side(index, 0),
            asks: self.side(index, 2 * BOARD_LEVELS_MAX),
        })
    }
}

struct TradeGroup {
    head: Head,
    price: Vec<Option<i64>>,
    quantity: Vec<Option<i64>>,
    side: Vec<Option<ShortText>>,
    side_rule: Vec<Option<ShortText>>,
    after_gap: Vec<Option<bool>>,
}

impl TradeGroup {
    fn take(columns: Vec<Values>) -> Option<Self> {
        let mut columns = Columns { columns: columns.into_iter() };
        Some(Self {
            head: Head::take(&mut columns)?,
            price: columns.ints()?,
            quantity: columns.ints()?,
            side: columns.texts()?,
            side_rule: columns.texts()?,
            after_gap: columns.bools()?,
        })
    }

    fn at(&mut self, index: usize) -> Option<TradePrint> {
        let (received, symbol, stream_session_id, sequence_id, timestamp_ms) =
            self.head.at(index)?;
        let side_rule = match self.side_rule[index].as_deref() {
            None => None,
            Some(name) => Some(SideRule::of_name(name)?),
        };
        Some(TradePrint {
            symbol,
            stream_session_id,
            sequence_id,
            received,
            timestamp_ms,
            price: self.price[index]?,
            quantity: self.quantity[index]?,
            side: AggressorSide::of_name(self.side[index].as_deref()?)?,
            side_rule,
            after_gap: self.after_gap[index]?,
        })
    }
}
