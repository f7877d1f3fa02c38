//! Trades of several instruments as one stream: by time, at equal times by the instrument's
//! position, inside an instrument by row. Rows are merged block by block into buffers that are used
//! again, so the memory does not depend on the length of a day.

use domain::limits::INSTRUMENTS_MAX;
use domain::market::TradeColumns;

use crate::series::TradingDay;

/// Rows of one block at least.
const BLOCK_ROWS_MIN: usize = 8_192;

/// Merges the trades of one day after the other.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    block_rows: usize,
    /// The next row of each instrument.
    next: [usize; INSTRUMENTS_MAX],
    ts_event: Vec<u64>,
    instrument: Vec<u16>,
    price: Vec<i64>,
    quantity: Vec<u64>,
}

impl Merge {
    /// A merge whose blocks hold at least one window of rows.
    pub(crate) fn new(window: usize) -> Self {
        Self { block_rows: window.max(BLOCK_ROWS_MIN), ..Self::default() }
    }

    /// Starts with the first rows of a day.
    pub(crate) fn start(&mut self) {
        self.next = [0; INSTRUMENTS_MAX];
    }

    /// The next rows of the day that was started; none at its end.
    pub(crate) fn block(&mut self, day: &[TradingDay<'_>]) -> Option<TradeColumns<'_>> {
        self.ts_event.clear();
        self.instrument.clear();
        self.price.clear();
        self.quantity.clear();
        let columns = day_columns(day);
        while self.ts_event.len() < self.block_rows {
            let room = self.block_rows - self.ts_event.len();
            let Some((index, rows)) = next_run(&columns, &self.next, room) else { break };
            let (ts_event, price, quantity) = columns[index];
            self.ts_event.extend_from_slice(&ts_event[rows.clone()]);
            self.price.extend_from_slice(&price[rows.clone()]);
            self.quantity.extend_from_slice(&quantity[rows.clone()]);
            // There are at most 4 instruments.
            self.instrument.resize(self.ts_event.len(), index as u16);
            self.next[index] = rows.end;
        }
        (!self.ts_event.is_empty()).then_some(TradeColumns {
            ts_event: &self.ts_event,
            instrument: &self.instrument,
            price: &self.price,
            quantity: &self.quantity,
        })
    }
}

type Columns<'a> = (&'a [u64], &'a [i64], &'a [u64]);

fn day_columns<'a>(day: &'a [TradingDay<'_>]) -> [Columns<'a>; INSTRUMENTS_MAX] {
    let mut columns: [Columns<'a>; INSTRUMENTS_MAX] = [(&[], &[], &[]); INSTRUMENTS_MAX];
    for (columns, day) in columns.iter_mut().zip(day) {
        *columns = (day.ts_event(), day.price(), day.quantity());
    }
    columns
}

/// The instrument whose turn it is, and its rows before any other instrument's turn; at most `room`.
fn next_run(
    columns: &[Columns<'_>; INSTRUMENTS_MAX],
    next: &[usize; INSTRUMENTS_MAX],
    room: usize,
) -> Option<(usize, std::ops::Range<usize>)> {
    let heads = columns.iter().zip(next).enumerate();
    let heads = heads.filter_map(|(index, ((ts, ..), &row))| Some((*ts.get(row)?, index)));
    // The smallest and the second smallest of (time, instrument).
    let mut first: Option<(u64, usize)> = None;
    let mut second: Option<(u64, usize)> = None;
    for head in heads {
        if first.is_none_or(|first| head < first) {
            second = first;
            first = Some(head);
        } else if second.is_none_or(|second| head < second) {
            second = Some(head);
        }
    }
    let (_, index) = first?;
    let from = next[index];
    let ts_event = columns[index].0;
    let end = ts_event.len().min(from + room);
    let is_before = |ts: u64| second.is_none_or(|second| (ts, index) < second);
    let count = ts_event[from..end].iter().take_while(|ts| is_before(**ts)).count();
    Some((index, from..from + count))
}

/// How many of the first `seen` merged rows of a day belong to each instrument.
pub(crate) fn seen_of_each(day: &[TradingDay<'_>], seen: usize) -> [usize; INSTRUMENTS_MAX] {
    let columns = day_columns(day);
    let mut next = [0; INSTRUMENTS_MAX];
    let mut left = seen;
    while left > 0 {
        let Some((index, rows)) = next_run(&columns, &next, left) else { break };
        left -= rows.len();
        next[index] = rows.end;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type OneRow = (u64, u16, i64, u64);

    fn merged(parts: &[Vec<(u64, i64)>], window: usize) -> Vec<OneRow> {
        let columns: Vec<(Vec<u64>, Vec<i64>, Vec<u64>)> = parts
            .iter()
            .map(|rows| {
                let ts = rows.iter().map(|row| row.0).collect();
                let price = rows.iter().map(|row| row.1).collect();
                (ts, price, (0..rows.len() as u64).collect())
            })
            .collect();
        let day: Vec<TradingDay<'_>> = columns
            .iter()
            .map(|(ts, price, row)| {
                TradingDay::split(ts, price, row).next().unwrap_or(TradingDay::empty())
            })
            .collect();
        let mut merge = Merge::new(window);
        merge.block_rows = window;
        merge.start();
        let mut all = Vec::new();
        while let Some(rows) = merge.block(&day) {
            assert!(rows.ts_event.len() <= window);
            for row in 0..rows.ts_event.len() {
                all.push((
                    rows.ts_event[row],
                    rows.instrument[row],
                    rows.price[row],
                    rows.quantity[row],
                ));
            }
        }
        for seen in 0..=all.len() {
            let mut expected = [0; INSTRUMENTS_MAX];
            all[..seen].iter().for_each(|row| expected[usize::from(row.1)] += 1);
            assert_eq!(seen_of_each(&day, seen), expected);
        }
        all
    }

    #[test]
    fn time_then_instrument_then_row() {
        let rows = merged(
            &[vec![(1, 10), (3, 11), (3, 12)], vec![(1, 20), (2, 21), (3, 22)], vec![(3, 30)]],
            100,
        );
        let order: Vec<_> = rows.iter().map(|row| (row.0, row.2)).collect();
        assert_eq!(order, [(1, 10), (1, 20), (2, 21), (3, 11), (3, 12), (3, 22), (3, 30)]);
    }

    proptest! {
        #[test]
        fn a_merge_is_a_stable_sort_in_blocks_of_any_size(
            parts in prop::collection::vec(prop::collection::vec(0..20_u64, 0..30), 1..=4),
            window in 1..40_usize,
        ) {
            let parts: Vec<Vec<(u64, i64)>> = parts
                .into_iter()
                .enumerate()
                .map(|(index, mut times)| {
                    times.sort_unstable();
                    times.into_iter().map(|ts| (ts, index as i64)).collect()
                })
                .collect();
            let mut expected: Vec<OneRow> = Vec::new();
            for (index, rows) in parts.iter().enumerate() {
                let rows = rows.iter().enumerate();
                expected.extend(rows.map(|(row, &(ts, price))| (ts, index as u16, price, row as u64)));
            }
            expected.sort_by_key(|row| (row.0, row.1));
            prop_assert_eq!(merged(&parts, window), expected);
        }
    }
}
