//! The moving-average crossover: long while the average of the last `fast` trade prices is above
//! that of the last `slow`, else flat. Integers only.

use kumiki_sdk::prelude::*;

/// Longest average that may be asked for, in trades.
const LENGTH_MAX: usize = 100_000;

/// The strategy. Parameters: `fast` and `slow` (trades in each average), `quantity` (shares).
#[derive(Debug)]
pub struct SmaCross {
    fast: usize,
    slow: usize,
    quantity: Quantity,
    /// The last `slow` prices; `oldest` is where the next one goes.
    prices: Box<[i64]>,
    oldest: usize,
    seen: usize,
    sum_fast: i64,
    sum_slow: i64,
}

impl SmaCross {
    /// Takes in a price; tells whether `slow` prices were seen.
    fn push(&mut self, price: i64) -> bool {
        let mut leaves_fast = self.oldest + self.slow - self.fast;
        if leaves_fast >= self.slow {
            leaves_fast -= self.slow;
        }
        // Slots not written yet hold 0, so the sums need no special case at the start.
        self.sum_fast += price - self.prices[leaves_fast];
        self.sum_slow += price - self.prices[self.oldest];
        self.prices[self.oldest] = price;
        self.oldest += 1;
        if self.oldest == self.slow {
            self.oldest = 0;
        }
        if self.seen < self.slow {
            self.seen += 1;
        }
        self.seen == self.slow
    }

    /// Whether the fast average stands above (`Greater`) or below (`Less`) the slow one, exactly:
    /// the sums are compared across, so nothing is divided.
    fn compare(&self) -> std::cmp::Ordering {
        let across = |sum: i64, length: usize| i128::from(sum) * length as i128;
        // Sums of real prices fit 64 bits also after the multiplication; the wide way is for the rest.
        match (
            self.sum_fast.checked_mul(self.slow as i64),
            self.sum_slow.checked_mul(self.fast as i64),
        ) {
            (Some(fast), Some(slow)) => fast.cmp(&slow),
            _ => across(self.sum_fast, self.slow).cmp(&across(self.sum_slow, self.fast)),
        }
    }
}

impl Strategy for SmaCross {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        let fast = params.count("fast", 20, 1..=LENGTH_MAX)?;
        let slow = params.count("slow", 100, 1..=LENGTH_MAX)?;
        let quantity = params.quantity("quantity", Quantity::new(100))?;
        if fast >= slow {
            return Err(ParamError::new(format!(
                "parameter `fast` is {fast} and `slow` is {slow}; fast must be below slow"
            )));
        }
        Ok(Self {
            fast,
            slow,
            quantity,
            prices: vec![0; slow].into_boxed_slice(),
            oldest: 0,
            seen: 0,
            sum_fast: 0,
            sum_slow: 0,
        })
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        if !self.push(trade.price.units()) || context.has_working_orders(trade.instrument) {
            return;
        }
        match self.compare() {
            std::cmp::Ordering::Greater if context.position(trade.instrument).is_flat() => {
                context.submit(Order::market(trade.instrument, Side::Buy, self.quantity));
            }
            std::cmp::Ordering::Less if context.position(trade.instrument).is_long() => {
                let held = context.position(trade.instrument).shares();
                context.submit(Order::market(trade.instrument, Side::Sell, held));
            }
            _ => {}
        }
    }
}

kumiki_sdk::register!(SmaCross);

#[cfg(test)]
mod tests {
    use super::*;
    use kumiki_sdk::Action;
    use kumiki_sdk::testing::TestHost;

    fn only_order(actions: &[Action]) -> (Side, u64) {
        match actions {
            [Action::Submit(order)] => (order.side, order.quantity.shares()),
            other => panic!("expected one order, got {other:?}"),
        }
    }

    #[test]
    fn buys_above_and_sells_below() {
        let mut host =
            TestHost::<SmaCross>::new(r#"{"fast": 1, "slow": 3, "quantity": 200}"#).unwrap();
        assert_eq!(host.trade("10", 100), []);
        assert_eq!(host.trade("10", 100), []);
        assert_eq!(only_order(&host.trade("11", 100)), (Side::Buy, 200));
        assert_eq!(host.trade("12", 100), [], "an order is working");
        host.fill_all("12");
        assert_eq!(host.trade("13", 100), [], "already long");
        assert_eq!(only_order(&host.trade("9", 100)), (Side::Sell, 200));
        host.fill_all("9");
        assert!(host.position().is_flat());
        assert_eq!(host.trade("8", 100), [], "already flat");
    }

    #[test]
    fn equal_averages_do_nothing() {
        let mut host = TestHost::<SmaCross>::new(r#"{"fast": 2, "slow": 4}"#).unwrap();
        for _ in 0..20 {
            assert_eq!(host.trade("10.1", 100), []);
        }
    }

    #[test]
    fn an_expired_order_is_sent_again() {
        let mut host = TestHost::<SmaCross>::new(r#"{"fast": 1, "slow": 2}"#).unwrap();
        host.trade("10", 100);
        assert_eq!(host.trade("11", 100).len(), 1);
        assert_eq!(host.expire_all(), []);
        assert_eq!(host.trade("12", 100).len(), 1);
    }

    #[test]
    fn the_averages_agree_with_a_plain_computation() {
        let mut strategy =
            SmaCross::new(&mut Params::from_json(r#"{"fast": 3, "slow": 7}"#).unwrap()).unwrap();
        let prices: Vec<i64> = (0..200_i64).map(|step| 1_000 + step * step * 7_919 % 613).collect();
        for (index, price) in prices.iter().enumerate() {
            let ready = strategy.push(*price);
            assert_eq!(ready, index >= 6);
            let last = |count: usize| prices[..=index].iter().rev().take(count).sum::<i64>();
            assert_eq!((strategy.sum_fast, strategy.sum_slow), (last(3), last(7)));
        }
    }

    #[test]
    fn huge_prices_compare_exactly() {
        let mut strategy =
            SmaCross::new(&mut Params::from_json(r#"{"fast": 1, "slow": 2}"#).unwrap()).unwrap();
        strategy.push(i64::MAX / 4);
        strategy.push(i64::MAX / 4 + 1);
        assert_eq!(strategy.compare(), std::cmp::Ordering::Greater);
    }

    #[test]
    fn parameters_are_checked_together() {
        let message = |json: &str| TestHost::<SmaCross>::new(json).unwrap_err().to_string();
        assert_eq!(
            message(r#"{"fast": 100}"#),
            "parameter `fast` is 100 and `slow` is 100; fast must be below slow"
        );
        assert_eq!(
            message(r#"{"fats": 1}"#),
            "unknown parameter `fats`; this strategy has: fast, slow, quantity"
        );
    }
}
