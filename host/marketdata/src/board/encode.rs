//! Rows as bytes of a journal: whole numbers little-endian, texts behind their length.

use std::sync::Arc;

use domain::TsNanos;
use domain::market_update::{
    AggressorSide, Board, Level, SideRule, Symbol, TimeSource, TradePrint,
};

use super::row::BoardRow;

const DEPTH: u8 = 0;
const TRADE: u8 = 1;
/// In the place of a rule or a price where there is none.
const NONE: u8 = u8::MAX;

/// Writes a sound row ([`BoardRow::is_sound`]) to the end of `bytes`.
pub(super) fn push_row(bytes: &mut Vec<u8>, row: &BoardRow) {
    match row {
        BoardRow::Depth(row) => {
            bytes.push(DEPTH);
            let head = (&row.symbol, &*row.stream_session_id, row.sequence_id);
            push_head(bytes, head, row.received, row.timestamp_ms);
            bytes.push(number_of(TimeSource::ALL, row.timestamp_source));
            bytes.push(if row.last_price.is_some() { 1 } else { NONE });
            push_i64(bytes, row.last_price.unwrap_or(0));
            for side in [&row.bids, &row.asks] {
                // At most `BOARD_LEVELS_MAX`.
                bytes.push(side.len() as u8);
                for level in side {
                    push_i64(bytes, level.price);
                    push_i64(bytes, level.quantity);
                }
            }
        }
        BoardRow::Trade(row) => {
            bytes.push(TRADE);
            let head = (&row.symbol, &*row.stream_session_id, row.sequence_id);
            push_head(bytes, head, row.received, row.timestamp_ms);
            push_i64(bytes, row.price);
            push_i64(bytes, row.quantity);
            bytes.push(number_of(AggressorSide::ALL, row.side));
            bytes.push(row.side_rule.map_or(NONE, |rule| number_of(SideRule::ALL, rule)));
            bytes.push(u8::from(row.after_gap));
        }
    }
}

fn push_head(
    bytes: &mut Vec<u8>,
    (symbol, session, sequence_id): (&Symbol, &str, u64),
    received: TsNanos,
    timestamp_ms: u64,
) {
    for text in [symbol.as_str(), session] {
        // At most `SESSION_ID_BYTES_MAX`.
        bytes.push(text.len() as u8);
        bytes.extend_from_slice(text.as_bytes());
    }
    for number in [sequence_id, received.nanos(), timestamp_ms] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

fn push_i64(bytes: &mut Vec<u8>, number: i64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn number_of<T: PartialEq>(all: &[T], wanted: T) -> u8 {
    // The lists have fewer than ten.
    all.iter().position(|one| *one == wanted).map_or(NONE, |index| index as u8)
}

/// The rows of a block, one after the other; ends after an error.
pub(super) struct Rows<'a> {
    rest: &'a [u8],
    /// The session read last: thousands of rows have the same.
    session: Arc<str>,
}

/// A block whose checksum is right has bytes that are no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoRow;

impl<'a> Rows<'a> {
    pub(super) fn new(block: &'a [u8]) -> Self {
        Self { rest: block, session: Arc::from("") }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.u64().map(u64::cast_signed)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.byte()?;
        std::str::from_utf8(self.take(usize::from(length))?).ok()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(usize::from(self.byte()?)).copied()
    }

    fn levels(&mut self) -> Option<Vec<Level>> {
        let count = self.byte()?;
        (0..count).map(|_| Some(Level { price: self.i64()?, quantity: self.i64()? })).collect()
    }

    fn row(&mut self) -> Option<BoardRow> {
        let kind = self.byte()?;
        let symbol = Symbol::new(self.text()?)?;
        let session = self.text()?;
        if *self.session != *session {
            self.session = Arc::from(session);
        }
        let stream_session_id = Arc::clone(&self.session);
        let sequence_id = self.u64()?;
        let received = TsNanos::from_nanos(self.u64()?);
        let timestamp_ms = self.u64()?;
        let row = match kind {
            DEPTH => {
                let timestamp_source = self.one_of(TimeSource::ALL)?;
                let has_last_price = self.byte()? != NONE;
                let last_price = Some(self.i64()?).filter(|_| has_last_price);
                let (bids, asks) = (self.levels()?, self.levels()?);
                BoardRow::Depth(Board {
                    symbol,
                    stream_session_id,
                    sequence_id,
                    received,
                    timestamp_ms,
                    timestamp_source,
                    last_price,
                    bids,
                    asks,
                })
            }
            TRADE => BoardRow::Trade(TradePrint {
                symbol,
                stream_session_id,
                sequence_id,
                received,
                timestamp_ms,
                price: self.i64()?,
                quantity: self.i64()?,
                side: self.one_of(AggressorSide::ALL)?,
                side_rule: match self.byte()? {
                    NONE => None,
                    number => Some(*SideRule::ALL.get(usize::from(number))?),
                },
                after_gap: self.byte()? != 0,
            }),
            _ => return None,
        };
        row.is_sound().then_some(row)
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<BoardRow, NoRow>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let row = self.row().ok_or(NoRow);
        if row.is_err() {
            self.rest = &[];
        }
        Some(row)
    }
}
