//! What strategies hold: a fold over the lines of the audit log (specification 4, P100, P101, P125).
//!
//! | line | what becomes of it |
//! |---|---|
//! | filled, of a strategy's order for cash | BUY: shares and cost rise; SELL: shares and their part of the cost go, the difference is profit or loss of that day in Japan |
//! | filled, of a strategy's order on margin | margin shares and their cost rise or fall, apart from shares bought with cash; what ends shares is profit or loss of that day |
//! | adjusted | shares and cost are as the person says; no shares are none on margin, too |
//! | submit, of a strategy | the corrections before it were told: a run has begun that knows them |
//! | filled, of a person or from elsewhere; every other line | nothing |
//!
//! It needs no rule against a fill that comes twice: the desk writes each fill once.

use std::collections::{BTreeMap, VecDeque};

use domain::account::Position;
use domain::{JstDate, Money, OrderOrigin, OrderSide, Price, Quantity, ShortText, TsNanos};
use ipc::{AuditAdjusted, AuditFilled};

use crate::event::StrategyHolding;
use crate::limits::{CORRECTIONS_MAX, REALISED_DAYS_MAX};

/// Shares of one instrument that one strategy holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Shares bought with cash; never negative.
    pub quantity: i64,
    /// What they cost, fees not counted.
    pub cost: Money,
    /// Shares of orders on margin, bought less sold.
    pub margin: i64,
    /// What they cost; below zero what they were sold for.
    pub margin_cost: Money,
}

/// What all strategies hold, by the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holdings {
    held: BTreeMap<(ShortText, ShortText), Held>,
    /// Profit and loss of sales by strategy and day, the newest [`REALISED_DAYS_MAX`] days of each.
    realised: BTreeMap<ShortText, BTreeMap<JstDate, Money>>,
    /// Corrections since the strategy's last order, in words; the newest [`CORRECTIONS_MAX`].
    corrections: BTreeMap<ShortText, VecDeque<String>>,
}

/// A fill of a strategy's order, as the fold counts it.
#[derive(Debug, Clone, Copy)]
struct StrategyFill<'a> {
    strategy_id: &'a str,
    instrument_id: &'a str,
    side: OrderSide,
    is_margin: bool,
    quantity: Quantity,
    price: Price,
    ts: TsNanos,
}

/// Why a fill does not count, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncounted {
    /// So many shares were sold beyond what the strategy holds.
    Oversold(u64),
    /// Its value does not fit into an amount of money.
    TooLarge,
}

impl Holdings {
    /// Counts a `filled` line; one that is not of a strategy's order changes nothing.
    ///
    /// # Errors
    /// [`Uncounted`], where the line sells more than is held: what is held is gone then. Or where its value is
    /// no amount of money: nothing has changed then.
    pub fn filled(&mut self, line: &AuditFilled<'_>) -> Result<(), Uncounted> {
        let origin = OrderOrigin::read(line.context.origin, line.context.strategy_id.as_deref());
        let (Some(strategy_id), Some(side)) = (origin.strategy_id(), line.order_side) else {
            return Ok(());
        };
        self.fill(StrategyFill {
            strategy_id,
            instrument_id: &line.instrument_id,
            side,
            is_margin: line.margin,
            quantity: line.counted_qty.unwrap_or(line.last_qty).into(),
            price: line.last_price.into(),
            ts: TsNanos::from_nanos(line.ts.saturating_mul(1_000_000)),
        })
    }

    fn fill(&mut self, fill: StrategyFill<'_>) -> Result<(), Uncounted> {
        let value = Money::checked_notional(fill.price, fill.quantity);
        let shares = i64::try_from(fill.quantity.shares()).ok();
        let (Some(value), Some(shares)) = (value, shares) else { return Err(Uncounted::TooLarge) };
        let key = (fill.strategy_id.into(), fill.instrument_id.into());
        let held = self.held.entry(key).or_default();
        if fill.is_margin {
            return self.fill_margin(&fill, shares, value);
        }
        match fill.side {
            OrderSide::Buy => {
                let cost = held.cost.checked_add(value);
                let quantity = held.quantity.checked_add(shares);
                let (Some(cost), Some(quantity)) = (cost, quantity) else {
                    return Err(Uncounted::TooLarge);
                };
                (held.cost, held.quantity) = (cost, quantity);
                Ok(())
            }
            OrderSide::Sell => {
                let sold = shares.min(held.quantity);
                let over = fill.quantity.shares() - sold.unsigned_abs();
                if sold > 0 {
                    let cost = held.cost.share_of(sold, held.quantity);
                    let value =
                        Money::checked_notional(fill.price, Quantity::new(sold.unsigned_abs()));
                    held.quantity -= sold;
                    held.cost -= cost;
                    let profit = value.unwrap_or_default() - cost;
                    self.realise(fill.strategy_id, fill.ts.jst_date(), profit);
                }
                if over > 0 { Err(Uncounted::Oversold(over)) } else { Ok(()) }
            }
        }
    }

    fn fill_margin(
        &mut self,
        fill: &StrategyFill<'_>,
        shares: i64,
        value: Money,
    ) -> Result<(), Uncounted> {
        let key = (fill.strategy_id.into(), fill.instrument_id.into());
        let held = self.held.entry(key).or_default();
        let (quantity, cost) = (held.margin, held.margin_cost);
        let fits = |held: i64, more: i64| {
            i64::try_from(held.unsigned_abs().saturating_add(more.unsigned_abs())).is_ok()
        };
        if !(fits(quantity, shares) && fits(cost.units(), value.units())) {
            return Err(Uncounted::TooLarge);
        }
        let mut position = Position { quantity, cost, ..Position::default() };
        let sign = fill.side.sign();
        let profit = position.trade(shares * sign, Money::from_units(value.units() * sign));
        (held.margin, held.margin_cost) = (position.quantity, position.cost);
        if profit != Money::ZERO {
            self.realise(fill.strategy_id, fill.ts.jst_date(), profit);
        }
        Ok(())
    }

    fn realise(&mut self, strategy_id: &str, day: JstDate, profit: Money) {
        let days = self.realised.entry(strategy_id.into()).or_default();
        let sum = days.entry(day).or_default();
        *sum = Money::from_units(sum.units().saturating_add(profit.units()));
        while days.len() > REALISED_DAYS_MAX {
            days.pop_first();
        }
    }

    /// Takes an `adjusted` line.
    pub fn adjusted(&mut self, line: &AuditAdjusted<'_>) {
        let key = (ShortText::from(&*line.strategy_id), ShortText::from(&*line.instrument_id));
        let quantity = Quantity::from(line.quantity).shares();
        let held = self.held.entry(key).or_default();
        let before = held.quantity;
        held.quantity = i64::try_from(quantity).unwrap_or(i64::MAX);
        held.cost = line.cost.into();
        if quantity == 0 {
            // No shares are none on margin, too.
            (held.margin, held.margin_cost) = (0, Money::ZERO);
        }
        let words = format!(
            "{}: {before} shares became {quantity}, which cost {} yen: {}",
            line.instrument_id, held.cost, line.why
        );
        let corrections = self.corrections.entry(ShortText::from(&*line.strategy_id)).or_default();
        if corrections.len() >= CORRECTIONS_MAX {
            corrections.pop_front();
        }
        corrections.push_back(words);
    }

    /// Takes a `submit` line of a strategy's order: its run was told of the corrections before it.
    pub fn submitted(&mut self, strategy_id: &str) {
        self.corrections.remove(strategy_id);
    }

    /// The corrections of what a strategy holds since a run of it sent an order, in words.
    #[must_use]
    pub fn corrections(&self, strategy_id: &str) -> Vec<String> {
        let corrections = self.corrections.get(strategy_id);
        corrections.into_iter().flatten().cloned().collect()
    }

    /// What a strategy holds of an instrument.
    #[must_use]
    pub fn of(&self, strategy_id: &str, instrument_id: &str) -> Held {
        let key = (strategy_id.into(), instrument_id.into());
        self.held.get(&key).copied().unwrap_or_default()
    }

    /// Shares of an instrument that all strategies hold together, bought with cash.
    #[must_use]
    pub fn together(&self, instrument_id: &str) -> i64 {
        let of = self.held.iter().filter(|((_, instrument), _)| &**instrument == instrument_id);
        of.fold(0, |sum, (_, held)| sum.saturating_add(held.quantity))
    }

    /// Profit and loss of what a strategy sold on a day in Japan, fees not counted.
    #[must_use]
    pub fn realised(&self, strategy_id: &str, day: JstDate) -> Money {
        let days = self.realised.get(strategy_id);
        days.and_then(|days| days.get(&day)).copied().unwrap_or_default()
    }

    /// What is held, by strategy and instrument; of one strategy, or of all.
    #[must_use]
    pub fn list(&self, strategy_id: Option<&str>) -> Vec<StrategyHolding> {
        let is_wanted = |id: &ShortText| strategy_id.is_none_or(|wanted| wanted == &**id);
        let held = self.held.iter().filter(|((strategy, _), held)| {
            is_wanted(strategy) && (held.quantity != 0 || held.margin != 0)
        });
        held.map(|((strategy, instrument), held)| StrategyHolding {
            strategy_id: strategy.clone(),
            instrument_id: instrument.clone(),
            quantity: held.quantity,
            cost: held.cost,
            margin: held.margin,
            margin_cost: held.margin_cost,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use domain::Origin;
    use ipc::AuditContext;

    use super::*;

    const DAY: u64 = 24 * 3_600_000;
    /// 2026-11-20, 09:30 in Japan, in milliseconds.
    const MORNING: u64 = 1_795_134_600_000;

    fn line(
        strategy: Option<&'static str>,
        side: OrderSide,
        shares: u64,
        price: &str,
    ) -> AuditFilled<'static> {
        AuditFilled {
            ts: MORNING,
            client_order_id: Some("s-1".into()),
            venue_order_id: "11".into(),
            order_ts: MORNING,
            instrument_id: "7203.TSE".into(),
            business_day: None,
            from_details: false,
            trade_id: "1".into(),
            last_qty: Quantity::new(shares).into(),
            last_price: price.parse::<Price>().unwrap().into(),
            order_side: strategy.map(|_| side),
            margin: false,
            counted_qty: None,
            context: AuditContext {
                origin: strategy.map(|_| Origin::Strategy),
                strategy_id: strategy.map(Into::into),
                wall_ms: None,
            },
        }
    }

    /// P100: by hand: 100 at 2,500 and 200 at 2,530 cost 756,000; 100 sold at 2,600 take 252,000 of it.
    #[test]
    fn p100_average_cost_and_profit_by_hand() {
        let mut holdings = Holdings::default();
        for (side, shares, price) in [
            (OrderSide::Buy, 100, "2500"),
            (OrderSide::Buy, 200, "2530"),
            (OrderSide::Sell, 100, "2600"),
        ] {
            holdings.filled(&line(Some("a"), side, shares, price)).unwrap();
        }
        let held = holdings.of("a", "7203.TSE");
        assert_eq!((held.quantity, held.cost), (200, Money::from_yen(504_000)));
        let day = "2026-11-20".parse().unwrap();
        assert_eq!(holdings.realised("a", day), Money::from_yen(8_000));
        // Another strategy, a person and an order from elsewhere have no part in it.
        holdings.filled(&line(Some("b"), OrderSide::Buy, 300, "2500")).unwrap();
        holdings.filled(&line(None, OrderSide::Buy, 300, "2500")).unwrap();
        assert_eq!(holdings.of("a", "7203.TSE").quantity, 200);
        assert_eq!(holdings.together("7203.TSE"), 500);
    }

    /// P96: profit belongs to the day in Japan of the sale.
    #[test]
    fn p96_profit_is_of_its_day_in_japan() {
        let mut holdings = Holdings::default();
        holdings.filled(&line(Some("a"), OrderSide::Buy, 200, "2500")).unwrap();
        let mut next = line(Some("a"), OrderSide::Sell, 100, "2400");
        next.ts += DAY;
        holdings.filled(&next).unwrap();
        let today = "2026-11-20".parse().unwrap();
        let tomorrow = "2026-11-21".parse().unwrap();
        assert_eq!(holdings.realised("a", today), Money::ZERO);
        assert_eq!(holdings.realised("a", tomorrow), Money::from_yen(-10_000));
    }

    #[test]
    fn what_is_sold_beyond_the_holding_counts_for_nothing_and_margin_is_apart() {
        let mut holdings = Holdings::default();
        holdings.filled(&line(Some("a"), OrderSide::Buy, 100, "2500")).unwrap();
        let sold = holdings.filled(&line(Some("a"), OrderSide::Sell, 300, "2600"));
        assert_eq!(sold, Err(Uncounted::Oversold(200)));
        assert_eq!(holdings.of("a", "7203.TSE"), Held::default());
        assert_eq!(holdings.realised("a", "2026-11-20".parse().unwrap()), Money::from_yen(10_000));
        let margin = AuditFilled { margin: true, ..line(Some("a"), OrderSide::Sell, 300, "2600") };
        holdings.filled(&margin).unwrap();
        let margin_cost = Money::from_yen(-780_000);
        let sold = Held { margin: -300, margin_cost, ..Held::default() };
        assert_eq!(holdings.of("a", "7203.TSE"), sold);
        // 400 bought back at 2,500: 300 of them end what was sold, 100 yen gained on each.
        let back = AuditFilled { margin: true, ..line(Some("a"), OrderSide::Buy, 400, "2500") };
        holdings.filled(&back).unwrap();
        let held = Held { margin: 100, margin_cost: Money::from_yen(250_000), ..Held::default() };
        assert_eq!(holdings.of("a", "7203.TSE"), held);
        assert_eq!(holdings.realised("a", "2026-11-20".parse().unwrap()), Money::from_yen(40_000));
        let end = AuditFilled { margin: true, ..line(Some("a"), OrderSide::Sell, 100, "2500") };
        holdings.filled(&end).unwrap();
        assert_eq!(holdings.of("a", "7203.TSE"), Held::default());
        // The broker told more shares than the order had left: those that count are on the line.
        let counted = Some(Quantity::new(40).into());
        let over =
            AuditFilled { counted_qty: counted, ..line(Some("a"), OrderSide::Buy, 100, "2500") };
        holdings.filled(&over).unwrap();
        assert_eq!(holdings.of("a", "7203.TSE").quantity, 40);
    }

    /// P125: a correction takes the place of what was held, and is told to the next run.
    #[test]
    fn p125_a_correction_is_told_until_a_run_has_sent_an_order() {
        let mut holdings = Holdings::default();
        holdings.filled(&line(Some("a"), OrderSide::Buy, 100, "2500")).unwrap();
        holdings.adjusted(&AuditAdjusted {
            ts: MORNING,
            strategy_id: "a".into(),
            instrument_id: "7203.TSE".into(),
            quantity: Quantity::new(300).into(),
            cost: Money::from_yen(250_000).into(),
            why: "split 3:1".into(),
        });
        let held = holdings.of("a", "7203.TSE");
        assert_eq!((held.quantity, held.cost), (300, Money::from_yen(250_000)));
        assert_eq!(
            holdings.corrections("a"),
            ["7203.TSE: 100 shares became 300, which cost 250000 yen: split 3:1"]
        );
        holdings.submitted("b");
        assert_eq!(holdings.corrections("a").len(), 1);
        holdings.submitted("a");
        assert!(holdings.corrections("a").is_empty());
        assert_eq!(holdings.list(None).len(), 1);
    }
}
