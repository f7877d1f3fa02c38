//! A run in a few numbers. Money is exact text in yen; ratios are ordinary numbers.

use domain::{Money, OrderSide, OrderStatus};
use serde::Serialize;

use crate::record::{EquityRow, FillRow, RunResult};

/// A run in a few numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// `completed`, `interrupted` or `failed`.
    pub status: String,
    /// First trade seen, in Japan time.
    pub first_trade: String,
    /// Last trade seen, in Japan time.
    pub last_trade: String,
    /// Trades that the strategy has seen.
    pub trades_seen: u64,
    /// Orders sent.
    pub orders: u64,
    /// Orders filled wholly.
    pub orders_filled: u64,
    /// Orders refused.
    pub orders_rejected: u64,
    /// Orders whose time ran out.
    pub orders_expired: u64,
    /// Orders cancelled.
    pub orders_canceled: u64,
    /// Fills.
    pub fills: u64,
    /// Times the position went from held to flat.
    pub round_trips: u64,
    /// Round trips with a profit, per round trip; none without a round trip.
    pub win_rate: Option<f64>,
    /// Money at the start, yen.
    pub cash_start: String,
    /// Money at the end, yen.
    pub cash_end: String,
    /// Shares held at the end.
    pub position_end: i64,
    /// Money and value of shares at the end, yen.
    pub equity_end: String,
    /// Equity at the end minus cash at the start, yen.
    pub profit: String,
    /// Profit per cash at the start; none without cash.
    pub return_ratio: Option<f64>,
    /// Profit and loss of sold shares, yen.
    pub realised_pnl: String,
    /// Largest fall of the equity from its highest point so far, at the end of minutes, yen.
    pub max_drawdown: String,
    /// The same, per highest point.
    pub max_drawdown_ratio: f64,
    /// Fees, yen.
    pub commission: String,
    /// Value of everything bought and sold, yen.
    pub turnover: String,
    /// Our shares per shares traded on the market.
    pub participation: f64,
    /// xxh3-128 of the event log.
    pub event_log_digest: String,
}

impl Summary {
    /// The summary of a run.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "ratios for people; exact values stand beside")]
    pub fn new(result: &RunResult) -> Self {
        let count = |wanted: OrderStatus| {
            result.orders.iter().filter(|order| order.status == wanted).count() as u64
        };
        let profit = result.equity_end - result.cash_start;
        let (drawdown, drawdown_ratio) = max_drawdown(result.cash_start, &result.equity);
        let trips = round_trips(&result.fills);
        let wins = trips.iter().filter(|pnl| **pnl > Money::ZERO).count();
        let moment = |pick: fn(&(domain::TsNanos, domain::TsNanos)) -> domain::TsNanos| {
            result.span.as_ref().map_or("none".to_owned(), |span| pick(span).to_string())
        };
        let value =
            |fill: &FillRow| Money::checked_notional(fill.price, fill.quantity).unwrap_or_default();
        let per_cash = profit.approximate_yen() / result.cash_start.approximate_yen();
        Self {
            status: result.status.as_str().to_owned(),
            first_trade: moment(|span| span.0),
            last_trade: moment(|span| span.1),
            trades_seen: result.trades_seen,
            orders: result.orders.len() as u64,
            orders_filled: count(OrderStatus::Filled),
            orders_rejected: count(OrderStatus::Rejected),
            orders_expired: count(OrderStatus::Expired),
            orders_canceled: count(OrderStatus::Canceled),
            fills: result.fills.len() as u64,
            round_trips: trips.len() as u64,
            win_rate: (!trips.is_empty()).then(|| wins as f64 / trips.len() as f64),
            cash_start: result.cash_start.to_string(),
            cash_end: result.cash_end.to_string(),
            position_end: result.position_end,
            equity_end: result.equity_end.to_string(),
            profit: profit.to_string(),
            return_ratio: (result.cash_start > Money::ZERO).then_some(per_cash),
            realised_pnl: result.realised_pnl.to_string(),
            max_drawdown: drawdown.to_string(),
            max_drawdown_ratio: drawdown_ratio,
            commission: result.commission.to_string(),
            turnover: result.fills.iter().map(value).sum::<Money>().to_string(),
            participation: if result.market_volume == 0 {
                0.0
            } else {
                result.our_volume.shares() as f64 / result.market_volume as f64
            },
            event_log_digest: result.digest.to_string(),
        }
    }
}

/// Profit and loss of each way from flat to flat, fees included.
fn round_trips(fills: &[FillRow]) -> Vec<Money> {
    let (mut held, mut money, mut trips) = (0_i64, Money::ZERO, Vec::new());
    for fill in fills {
        let value = Money::checked_notional(fill.price, fill.quantity).unwrap_or_default();
        let shares = fill.quantity.shares().cast_signed();
        match fill.side {
            OrderSide::Buy => {
                held += shares;
                money -= value;
            }
            OrderSide::Sell => {
                held -= shares;
                money += value;
            }
        }
        money -= fill.commission;
        if held == 0 {
            trips.push(std::mem::take(&mut money));
        }
    }
    trips
}

/// The largest fall from the highest point so far, in money and per highest point. Each largest is
/// found by itself, so they may belong to different falls.
fn max_drawdown(start: Money, equity: &[EquityRow]) -> (Money, f64) {
    let (mut peak, mut deepest, mut ratio) = (start, Money::ZERO, 0.0_f64);
    for row in equity {
        peak = peak.max(row.equity);
        let fall = peak - row.equity;
        deepest = deepest.max(fall);
        if peak > Money::ZERO {
            ratio = ratio.max(fall.approximate_yen() / peak.approximate_yen());
        }
    }
    (deepest, ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{InstrumentIx, Price, Quantity, TsNanos};

    fn fill(side: OrderSide, price: i64, quantity: u64) -> FillRow {
        FillRow {
            ts_event: TsNanos::default(),
            instrument: InstrumentIx(0),
            client_order_id: "O".into(),
            venue_order_id: "V".into(),
            trade_id: "T".into(),
            side,
            price: Price::from_yen(price),
            quantity: Quantity::new(quantity),
            cumulative_quantity: Quantity::new(quantity),
            leaves_quantity: Quantity::ZERO,
            commission: Money::from_yen(1),
        }
    }

    #[test]
    fn round_trips_by_hand() {
        let trips = round_trips(&[
            fill(OrderSide::Buy, 100, 10),
            fill(OrderSide::Buy, 110, 10),
            fill(OrderSide::Sell, 120, 20),
            fill(OrderSide::Buy, 50, 1),
            fill(OrderSide::Sell, 40, 1),
            fill(OrderSide::Buy, 1, 1),
        ]);
        // 2,400 - 1,000 - 1,100 - 3 fees; 40 - 50 - 2 fees; the last is still open.
        assert_eq!(trips, [Money::from_yen(297), Money::from_yen(-12)]);
    }

    #[test]
    fn drawdown_by_hand() {
        let rows = [110, 90, 120, 102].map(|yen| EquityRow {
            ts_event: TsNanos::default(),
            price: Price::default(),
            quantity: 0,
            cash: Money::ZERO,
            equity: Money::from_yen(yen),
        });
        let (deepest, ratio) = max_drawdown(Money::from_yen(100), &rows);
        assert_eq!(deepest, Money::from_yen(20));
        assert!((ratio - 20.0 / 110.0).abs() < 1e-12);
    }
}
