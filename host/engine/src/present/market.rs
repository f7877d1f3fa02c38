//! Market data as clients get them: order books, trades and bars (specification 4, P53 to P56, P75).

use domain::market::{Bar, BarGranularity, Trade};
use domain::market_update::{AggressorSide, Board, Level, SideRule, TimeSource, TradePrint};
use domain::time::NANOS_PER_MINUTE;
use domain::{Quantity, TsNanos};
use ipc::{
    BookLevel, Decimal, DepthSnapshot, Event, GetHistory, History, Kline, KlineInterval,
    KlineUpdate, Subscribed, Text, TickerInfo, TimestampSource, TradeRow, TradeSide, Trades,
    Unsubscribed,
};
use marketdata::MadeBar;
use venues::local_broker::VENUE;

use super::{optional, text};
use crate::history::Rows;
use crate::outbox::TradesHead;

/// The local broker's market as clients know it (specification 1, "Identifiers").
pub const EXCHANGE: &str = "LocalBrokerStock";

/// Market data of a ticker begin, at a venue and its exchange.
pub(super) fn subscribed<'a>(
    request_id: Text<'a>,
    (venue, exchange): (&'a str, &'a str),
    ticker: &'a str,
    display_name_ja: Option<Text<'a>>,
) -> Event<'a> {
    let ticker_info = TickerInfo {
        symbol: text(ticker),
        exchange: text(exchange),
        market_kind: "Stock".into(),
        display_name_ja,
    };
    let (venue, ticker) = (text(venue), text(ticker));
    Event::Subscribed(Subscribed { request_id, venue, ticker, ticker_info })
}

/// Market data of a ticker end.
pub(super) fn unsubscribed<'a>(request_id: Text<'a>, venue: &'a str, ticker: &'a str) -> Event<'a> {
    let (venue, ticker) = (text(venue), text(ticker));
    Event::Unsubscribed(Unsubscribed { request_id, venue, ticker })
}

/// Trades of one ticker.
pub(crate) fn trades(head: &TradesHead, trades: Vec<TradeRow>) -> Trades<'_> {
    Trades {
        venue: text(&head.venue),
        exchange: text(&head.exchange),
        ticker: text(&head.ticker),
        instrument_id: optional(&head.instrument_id),
        stream_session_id: text(&head.stream_session_id),
        trades,
    }
}

/// The same as an event.
pub(crate) fn trades_event(head: &TradesHead, rows: Vec<TradeRow>) -> Event<'_> {
    Event::Trades(trades(head, rows))
}

/// The event of an order book.
pub(crate) fn depth_event(board: &Board) -> Event<'_> {
    Event::DepthSnapshot(depth(board))
}

/// An order book of the local broker's.
#[must_use]
pub fn depth(board: &Board) -> DepthSnapshot<'_> {
    DepthSnapshot {
        request_id: None,
        venue: text(VENUE),
        exchange: text(EXCHANGE),
        ticker: text(board.symbol.as_str()),
        stream_session_id: text(&board.stream_session_id),
        sequence_id: board.sequence_id,
        received_ms: board.received.millis(),
        timestamp_ms: board.timestamp_ms,
        timestamp_source: match board.timestamp_source {
            TimeSource::Venue => TimestampSource::Venue,
            TimeSource::Received => TimestampSource::Received,
        },
        last_price: board.last_price.map(Decimal::from_units),
        bids: levels(&board.bids),
        asks: levels(&board.asks),
    }
}

fn levels(levels: &[Level]) -> Vec<BookLevel> {
    let level = |level: &Level| BookLevel {
        price: Decimal::from_units(level.price),
        qty: Decimal::from_units(level.quantity),
    };
    levels.iter().map(level).collect()
}

/// A trade of the local broker's.
#[must_use]
pub fn live_trade(trade: &TradePrint) -> TradeRow {
    TradeRow {
        price: Decimal::from_units(trade.price),
        qty: Decimal::from_units(trade.quantity),
        side: match trade.side {
            AggressorSide::Buy => TradeSide::Buy,
            AggressorSide::Sell => TradeSide::Sell,
            AggressorSide::Unknown => TradeSide::Unknown,
        },
        side_rule: trade.side_rule.map(|rule| match rule {
            SideRule::AtAsk => ipc::SideRule::AtAsk,
            SideRule::AtBid => ipc::SideRule::AtBid,
            SideRule::Midpoint => ipc::SideRule::Midpoint,
            SideRule::InsideNearer => ipc::SideRule::InsideNearer,
            SideRule::Crossed => ipc::SideRule::Crossed,
            SideRule::OneSided => ipc::SideRule::OneSided,
            SideRule::AfterGap => ipc::SideRule::AfterGap,
            SideRule::Auction => ipc::SideRule::Auction,
        }),
        ts_ms: trade.timestamp_ms,
        ts_ns: None,
        sequence_id: trade.sequence_id,
        received_ms: Some(trade.received.millis()),
        after_gap: trade.after_gap.then_some(true),
    }
}

/// What was traded so far.
pub(crate) fn history(request_id: &str, asked: GetHistory, rows: Rows) -> Event<'static> {
    Event::History(History {
        request_id: request_id.to_owned().into(),
        venue: asked.venue.into(),
        ticker: asked.ticker.into(),
        kind: asked.kind,
        stream_session_id: rows.stream_session_id.map(Into::into),
        trades: rows.trades,
        interval: rows.interval.unwrap_or(KlineInterval::Minute),
        klines: rows.klines,
        more: rows.more,
    })
}

/// A trade of a replay, which knows no quotes.
pub(crate) fn replay_trade(trade: &Trade, sequence_id: u64) -> TradeRow {
    TradeRow {
        price: trade.price.into(),
        qty: shares(trade.quantity),
        side: TradeSide::Unknown,
        side_rule: None,
        ts_ms: trade.ts_event.millis(),
        ts_ns: Some(trade.ts_event.nanos()),
        sequence_id,
        received_ms: None,
        after_gap: None,
    }
}

/// How long a bar is.
pub(crate) const fn interval(granularity: BarGranularity) -> KlineInterval {
    match granularity {
        BarGranularity::Minute => KlineInterval::Minute,
        BarGranularity::Day => KlineInterval::Day,
    }
}

/// A bar made from trades.
pub(crate) fn made_bar(made: &MadeBar, is_final: bool) -> Kline {
    let turnover = i64::try_from(made.turnover).ok().map(Decimal::from_units);
    kline(&made.bar, turnover, is_final)
}

/// A final minute bar of the live market.
pub(crate) fn live_bar<'a>(symbol: &'a str, instrument_id: &'a str, kline: Kline) -> Event<'a> {
    Event::KlineUpdate(KlineUpdate {
        venue: text(VENUE),
        ticker: text(symbol),
        instrument_id: text(instrument_id),
        interval: KlineInterval::Minute,
        klines: vec![kline],
    })
}

/// A bar of a file, which does not have the value of its trades.
pub(crate) fn file_bar(bar: &Bar) -> Kline {
    kline(bar, None, true)
}

fn kline(bar: &Bar, turnover: Option<Decimal>, is_final: bool) -> Kline {
    let open = match bar.granularity {
        BarGranularity::Minute => {
            TsNanos::from_nanos(bar.ts_event.nanos().saturating_sub(NANOS_PER_MINUTE))
        }
        BarGranularity::Day => crate::ledger::midnight(bar.ts_event.jst_date()),
    };
    Kline {
        open_time_ms: open.millis(),
        close_time_ms: bar.ts_event.millis(),
        open: bar.open.into(),
        high: bar.high.into(),
        low: bar.low.into(),
        close: bar.close.into(),
        volume: shares(bar.volume),
        turnover,
        is_final,
    }
}

/// Shares as a decimal number; the largest where they do not fit, which no market has.
fn shares(count: Quantity) -> Decimal {
    Decimal::from_shares(count).unwrap_or(Decimal::from_units(i64::MAX))
}

#[cfg(test)]
mod tests {
    use domain::{InstrumentIx, Price};
    use marketdata::GrowingBar;

    use super::*;

    #[test]
    fn a_minute_has_its_start_and_its_end() {
        let trade = Trade {
            ts_event: TsNanos::from_nanos(70_000_000_000),
            instrument: InstrumentIx(0),
            price: Price::from_yen(103),
            quantity: Quantity::new(200),
        };
        let mut growing = None;
        assert!(GrowingBar::take(&mut growing, BarGranularity::Minute, &trade).is_none());
        let kline = made_bar(&growing.unwrap().so_far(), false);
        assert_eq!((kline.open_time_ms, kline.close_time_ms), (60_000, 120_000));
        assert_eq!((kline.volume.to_string(), kline.is_final), ("200".to_owned(), false));
        assert_eq!(kline.turnover.map(|value| value.to_string()).as_deref(), Some("20600"));
    }
}
