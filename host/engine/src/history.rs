//! What was traded so far, for clients that come late (`GetHistory`). A replay reads it again from its data, and never
//! beyond the row that the run handled last. Of the live market the newest rows are kept.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use domain::market::{BarGranularity, Trade};
use domain::market_update::Symbol;
use domain::{InstrumentIx, JstDate, Price, Quantity, TsNanos};
use ipc::{EngineMode, GetHistory, HistoryKind, Kline, KlineInterval, TradeRow, error_code};
use marketdata::make_bars;
use replay::{MarketDay, MarketSeries};

use crate::limits::{HISTORY_BARS_MAX, HISTORY_TRADES_MAX, LIVE_BARS_KEPT, LIVE_TRADES_KEPT};
use crate::live::LOCAL_BROKER;
use crate::load::Refusal;
use crate::present::market as wire;
use crate::session::Core;

/// What an answer is made from.
#[derive(Debug)]
pub(crate) enum PastOf {
    /// Rows that were kept.
    Kept(Rows),
    /// What a run has read so far.
    Run(Past, Reached),
}

impl PastOf {
    /// The rows of the answer. Those of a run are read from the cache.
    pub(crate) fn rows(self, asked: &GetHistory) -> Rows {
        match self {
            Self::Kept(rows) => rows,
            Self::Run(past, reached) => past.rows(asked, &reached),
        }
    }
}

impl Core {
    /// Where the answer to a question about the past comes from, as of now.
    pub(crate) fn past_of(&self, mode: EngineMode, asked: &GetHistory) -> Result<PastOf, Refusal> {
        let ticker = &*asked.ticker;
        match (mode, &*asked.venue) {
            (EngineMode::Live, LOCAL_BROKER) => Ok(PastOf::Kept(self.live_past.rows(asked))),
            (EngineMode::Replay, crate::VENUE) => {
                if let Some((past, reached)) = self.run.as_ref().and_then(|run| run.past(ticker)) {
                    return Ok(PastOf::Run(past, reached));
                }
                // Nothing has run yet.
                let mut loaded = self.loaded.iter();
                let is_loaded = loaded.any(|loaded| crate::ticker(&loaded.name) == ticker);
                let text = || format!("{ticker} is not loaded; send LoadReplayData");
                match is_loaded {
                    true => Ok(PastOf::Kept(Rows::default())),
                    false => Err((error_code::NOT_LOADED, text())),
                }
            }
            (_, venue) => Err((
                error_code::VENUE_NOT_AVAILABLE,
                format!("VENUE: `{venue}` trades nothing here; write replay or local_broker"),
            )),
        }
    }
}

/// The rows that a run replays of one instrument.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) series: Arc<MarketSeries>,
    /// Rows of each date of the run that has any.
    pub(crate) rows: Vec<(JstDate, u64)>,
    /// The last price before the run's first day, where it is known.
    pub(crate) base_price: Option<Price>,
}

/// How far a run has come with one instrument.
#[derive(Debug, Clone)]
pub(crate) struct Reached {
    pub(crate) run_id: String,
    pub(crate) interval: KlineInterval,
    /// Rows that were handled.
    pub(crate) rows: u64,
    /// Whether the last bar that trades made may still grow.
    pub(crate) is_growing: bool,
}

/// Rows of an answer, the oldest first, and whether there are older ones.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) stream_session_id: Option<String>,
    pub(crate) interval: Option<KlineInterval>,
    pub(crate) trades: Vec<TradeRow>,
    pub(crate) klines: Vec<Kline>,
    pub(crate) more: bool,
}

/// Rows that an answer may have.
fn most(asked: &GetHistory) -> usize {
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    limit.min(match asked.kind {
        HistoryKind::Trades => HISTORY_TRADES_MAX,
        HistoryKind::Bars => HISTORY_BARS_MAX,
    })
}

impl Past {
    /// Rows up to the one that the run has handled last. Reads them from the cache.
    pub(crate) fn rows(&self, asked: &GetHistory, reached: &Reached) -> Rows {
        let mut rows = match asked.kind {
            HistoryKind::Trades => self.trades(asked, reached),
            HistoryKind::Bars => self.bars(asked, reached),
        };
        rows.stream_session_id = Some(reached.run_id.clone());
        rows.interval = Some(reached.interval);
        rows
    }

    /// The days with the number of the first row of each, counted from 0.
    fn days(&self) -> impl Iterator<Item = (JstDate, u64, u64)> {
        self.rows.iter().scan(0, |first, (date, rows)| {
            let from = *first;
            *first += rows;
            Some((*date, from, *rows))
        })
    }

    fn trades(&self, asked: &GetHistory, reached: &Reached) -> Rows {
        let before = asked.before.map_or(u64::MAX, |before| before.saturating_sub(1));
        let to = before.min(reached.rows);
        let from = to.saturating_sub(most(asked) as u64);
        let mut trades = Vec::new();
        for (date, first, rows) in self.days() {
            let (begin, end) = (from.max(first), to.min(first + rows));
            if begin >= end {
                continue;
            }
            let day = self.series.day(date);
            trades.extend((begin..end).filter_map(|number| {
                let trade = trade_of(&day, usize::try_from(number - first).ok()?)?;
                Some(wire::replay_trade(&trade, number + 1))
            }));
        }
        // Where bars are replayed there are none, nor where none are asked for.
        let more = from > 0 && !trades.is_empty();
        Rows { trades, more, ..Rows::default() }
    }

    /// Bars, day by day from the newest.
    fn bars(&self, asked: &GetHistory, reached: &Reached) -> Rows {
        let before = asked.before.unwrap_or(u64::MAX);
        let most = most(asked);
        let days: Vec<_> = self.days().take_while(|(_, first, _)| *first < reached.rows).collect();
        let mut newest_first: Vec<Kline> = Vec::new();
        for (date, first, rows) in days.into_iter().rev() {
            if newest_first.len() > most {
                break;
            }
            if crate::ledger::midnight(date).millis() >= before {
                continue;
            }
            let handled = rows.min(reached.rows - first);
            let is_last = first + handled == reached.rows;
            let day = self.series.day(date);
            let klines = klines_of(&day, handled, is_last && reached.is_growing);
            newest_first.extend(klines.into_iter().rev().filter(|bar| bar.open_time_ms < before));
        }
        let more = newest_first.len() > most && most > 0;
        newest_first.truncate(most);
        newest_first.reverse();
        Rows { klines: newest_first, more, ..Rows::default() }
    }
}

/// A trade of the one instrument of a day.
fn trade_of(day: &MarketDay<'_>, at: usize) -> Option<Trade> {
    let MarketDay::Trades(parts) = day else { return None };
    let part = parts.first()?;
    Some(Trade {
        ts_event: TsNanos::from_nanos(*part.ts_event().get(at)?),
        instrument: InstrumentIx(0),
        price: Price::from_units(*part.price().get(at)?),
        quantity: Quantity::new(*part.quantity().get(at)?),
    })
}

/// The bars of the first rows of a day: as they are, or made from trades.
fn klines_of(day: &MarketDay<'_>, rows: u64, is_growing: bool) -> Vec<Kline> {
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    match day {
        MarketDay::Bars(bars) => bars.iter().take(rows).map(wire::file_bar).collect(),
        MarketDay::Trades(parts) => {
            let Some(part) = parts.first() else { return Vec::new() };
            let rows = rows.min(part.len());
            let mut made = Vec::new();
            make_bars(
                BarGranularity::Minute,
                InstrumentIx(0),
                &part.ts_event()[..rows],
                &part.price()[..rows],
                &part.quantity()[..rows],
                &mut made,
            );
            let last = made.len();
            let bars = made.iter().zip(1..);
            bars.map(|(bar, at)| wire::made_bar(bar, at < last || !is_growing)).collect()
        }
    }
}

/// The newest rows of the live market, of the symbols that clients want.
#[derive(Debug, Default)]
pub(crate) struct LivePast {
    symbols: BTreeMap<Symbol, SymbolPast>,
}

#[derive(Debug, Default)]
struct SymbolPast {
    /// The session that numbers the trades.
    session: String,
    trades: VecDeque<TradeRow>,
    klines: VecDeque<Kline>,
}

impl LivePast {
    /// Keeps a trade. Trades of another session are none that could be numbered with it.
    pub(crate) fn trade(&mut self, symbol: Symbol, session: &str, row: &TradeRow) {
        let past = self.symbols.entry(symbol).or_default();
        if past.session != session {
            session.clone_into(&mut past.session);
            past.trades.clear();
        }
        push_newest(&mut past.trades, LIVE_TRADES_KEPT, row.clone());
    }

    /// Keeps a final bar.
    pub(crate) fn bar(&mut self, symbol: Symbol, kline: Kline) {
        let past = self.symbols.entry(symbol).or_default();
        push_newest(&mut past.klines, LIVE_BARS_KEPT, kline);
    }

    /// Keeps what is wanted alone.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.symbols.retain(|symbol, _| is_wanted(symbol.as_str()));
    }

    /// What is kept of a symbol.
    pub(crate) fn rows(&self, asked: &GetHistory) -> Rows {
        let past = Symbol::new(&asked.ticker).and_then(|symbol| self.symbols.get(&symbol));
        let Some(past) = past else { return Rows::default() };
        let (before, most) = (asked.before.unwrap_or(u64::MAX), most(asked));
        let session = (!past.session.is_empty()).then(|| past.session.clone());
        let mut rows = Rows { stream_session_id: session, ..Rows::default() };
        match asked.kind {
            HistoryKind::Trades => {
                let older = |row: &&TradeRow| row.sequence_id < before;
                (rows.trades, rows.more) = newest(past.trades.iter().filter(older), most);
            }
            HistoryKind::Bars => {
                let older = |bar: &&Kline| bar.open_time_ms < before;
                (rows.klines, rows.more) = newest(past.klines.iter().filter(older), most);
            }
        }
        rows
    }
}

/// The last `most` of rows, and whether there are more.
fn newest<'a, T: Clone + 'a>(rows: impl Iterator<Item = &'a T>, most: usize) -> (Vec<T>, bool) {
    let rows: Vec<&T> = rows.collect();
    let from = rows.len().saturating_sub(most);
    (rows[from..].iter().map(|row| (*row).clone()).collect(), from > 0 && most > 0)
}

/// Adds to a list of the newest.
pub(crate) fn push_newest<T>(newest: &mut VecDeque<T>, most: usize, one: T) {
    if newest.len() >= most {
        newest.pop_front();
    }
    newest.push_back(one);
}

#[cfg(test)]
mod tests {
    use ipc::RequestId;

    use super::*;

    fn row(sequence_id: u64) -> TradeRow {
        let trade = Trade {
            ts_event: TsNanos::from_nanos(sequence_id * 1_000_000),
            instrument: InstrumentIx(0),
            price: Price::from_yen(100),
            quantity: Quantity::new(1),
        };
        wire::replay_trade(&trade, sequence_id)
    }

    fn asked(kind: HistoryKind, before: Option<u64>, limit: u32) -> GetHistory {
        let request_id = RequestId::try_from("r".to_owned()).unwrap();
        let (venue, ticker) = ("local_broker".to_owned(), "7203".to_owned());
        GetHistory { request_id, venue, ticker, kind, before, limit }
    }

    /// The newest rows are kept, those of one session only, and nothing of a symbol that nobody wants.
    #[test]
    fn the_live_market_keeps_the_newest_rows() {
        let (mut past, symbol) = (LivePast::default(), Symbol::new("7203").unwrap());
        let numbers = |past: &LivePast, before, limit| -> (Vec<u64>, bool) {
            let rows = past.rows(&asked(HistoryKind::Trades, before, limit));
            (rows.trades.iter().map(|row| row.sequence_id).collect(), rows.more)
        };
        assert_eq!(numbers(&past, None, 9), (vec![], false));
        let all = LIVE_TRADES_KEPT as u64 + 5;
        for number in 1..=all {
            past.trade(symbol, "s", &row(number));
        }
        let (kept, more) = numbers(&past, None, u32::MAX);
        assert_eq!((kept.len(), kept[0], more), (LIVE_TRADES_KEPT, 6, false));
        assert_eq!(numbers(&past, None, 2), (vec![all - 1, all], true));
        assert_eq!(numbers(&past, Some(8), 2), (vec![6, 7], false));
        past.trade(symbol, "t", &row(1));
        assert_eq!(numbers(&past, None, 9), (vec![1], false), "another session counts anew");
        past.retain(|ticker| ticker != "7203");
        assert_eq!(numbers(&past, None, 9), (vec![], false));
    }

    #[test]
    fn the_live_market_keeps_its_bars_over_sessions() {
        let (mut past, symbol) = (LivePast::default(), Symbol::new("7203").unwrap());
        let minute = 60_000_000_000;
        let stamps: Vec<u64> = (0..LIVE_BARS_KEPT as u64 + 2).map(|at| at * minute).collect();
        let prices = vec![1_000_000; stamps.len()];
        let shares = vec![1; stamps.len()];
        let mut made = Vec::new();
        make_bars(BarGranularity::Minute, InstrumentIx(0), &stamps, &prices, &shares, &mut made);
        for (at, bar) in made.iter().enumerate() {
            past.trade(symbol, if at < 9 { "s" } else { "t" }, &row(1));
            past.bar(symbol, wire::made_bar(bar, true));
        }
        let opens = |before, limit| -> (Vec<u64>, bool) {
            let rows = past.rows(&asked(HistoryKind::Bars, before, limit));
            (rows.klines.iter().map(|bar| bar.open_time_ms / 60_000).collect(), rows.more)
        };
        let (kept, more) = opens(None, u32::MAX);
        assert_eq!((kept.len(), kept[0], more), (LIVE_BARS_KEPT, 2, false));
        assert_eq!(opens(Some(4 * 60_000), 1), (vec![3], true));
    }

    /// No answer is larger, whatever is asked for.
    #[test]
    fn an_answer_has_a_limit() {
        assert_eq!(most(&asked(HistoryKind::Trades, None, u32::MAX)), HISTORY_TRADES_MAX);
        assert_eq!(most(&asked(HistoryKind::Bars, None, u32::MAX)), HISTORY_BARS_MAX);
        assert_eq!(most(&asked(HistoryKind::Bars, None, 0)), 0);
    }
}
