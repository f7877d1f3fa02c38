//! What holds a strategy's orders back before they leave: its position, lost market data, and limits of its own. A
//! refused order is told as rejected and the run goes on. A cancel is never refused.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use domain::account::{PortfolioView, Position, WorkingOrder};
use domain::execution::ExecutionClient;
use domain::order::OrderTrigger;
use domain::tags::{CashMargin, OrderTags};
use domain::{
    JstDate, Money, OrderCommand, OrderRequest, OrderSide, Price, Quantity, ReasonCode, Rejection,
    TsNanos,
};

use serde::{Deserialize, Serialize};

use crate::rows::LastPrices;

/// The time over which orders are counted (specification 4, P96).
const RATE_NANOS: u64 = 60_000_000_000;

/// The most that a strategy's orders may be; none is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderLimits {
    /// Shares of an order (specification 4, P95).
    pub max_qty: Option<Quantity>,
    /// What an order is worth (specification 4, P95).
    pub max_notional: Option<Money>,
    /// Orders sent within 60 s (specification 4, P96).
    pub max_orders_per_minute: Option<u32>,
    /// Orders that work at the same time (specification 4, P96).
    pub max_open_orders: Option<u32>,
    /// The day's loss from which on it buys no more (specification 4, P96).
    pub max_daily_loss: Option<Money>,
    /// Shares of an instrument that are held and that working orders would buy (specification 4, P123).
    pub max_position_qty: Option<Quantity>,
}

/// Holds the orders of one strategy back.
#[derive(Debug)]
pub struct OrderGuard {
    /// Whether market data are lost at present, so that it buys no more (specification 4, P115).
    pub market_data_lost: bool,
    /// The clock by which sent orders are counted; none: the time of the market. Real orders count by the engine's,
    /// because a market that stands still sends no rows.
    pub clock: Option<fn() -> TsNanos>,
    limits: OrderLimits,
    /// When the orders of the last 60 s left, as many as are allowed.
    sent: VecDeque<TsNanos>,
    /// What was gained and lost before the present day.
    realised_before: Money,
    /// The same for each day that [`Self::clock`] has shown: a clock that goes back finds its day's loss again.
    days: BTreeMap<JstDate, Money>,
    /// What is held and works; every order needs the memory again.
    view: PortfolioView,
}

/// An order as it would be, and what stands beside it.
struct Wanted<'a> {
    request: Cow<'a, OrderRequest>,
    /// The order that it is a change of.
    before: Option<&'a WorkingOrder>,
    /// Shares held of its instrument, on margin and for cash, and for cash alone.
    held: i64,
    cash_shares: i64,
    /// Shares that it would still trade.
    leaves: i128,
    /// Shares that the other working orders of its instrument and side still trade.
    others: i128,
    /// Those of them that trade for cash.
    others_for_cash: i128,
    tags: OrderTags,
}

fn refuse(text: String) -> Result<(), Rejection> {
    Err(Rejection::new(ReasonCode::ValidationError, text))
}

/// Shares of a working order that are still to trade.
fn leaves(order: &WorkingOrder) -> i128 {
    i128::from(order.request.quantity.shares()) - i128::from(order.filled_quantity.shares())
}

/// An order's tags. Those that make no sense are rejected by name where the order goes.
fn tags_of(request: &OrderRequest) -> OrderTags {
    OrderTags::parse(&request.tags, request.time_in_force).unwrap_or_default()
}

impl OrderGuard {
    /// Holds orders against limits, and against the position and lost market data always.
    #[must_use]
    pub fn new(limits: OrderLimits) -> Self {
        Self {
            market_data_lost: false,
            clock: None,
            limits,
            sent: VecDeque::new(),
            realised_before: Money::ZERO,
            days: BTreeMap::new(),
            view: PortfolioView::default(),
        }
    }

    /// A day of the market begins, with no loss of its own. With a clock, the clock alone begins days.
    pub(crate) fn begin_day(&mut self, execution: &impl ExecutionClient) {
        match self.clock {
            Some(_) => self.look_at_clock(execution),
            None => self.forget_loss(execution),
        }
    }

    /// Begins a day if the clock has one. Called before each fill is booked, so that the fill counts for its day.
    pub fn look_at_clock(&mut self, execution: &impl ExecutionClient) {
        let Some(today) = self.clock.map(|clock| clock().jst_date()) else { return };
        match self.days.get(&today) {
            Some(before) => self.realised_before = *before,
            None => {
                self.forget_loss(execution);
                self.days.insert(today, self.realised_before);
            }
        }
    }

    fn forget_loss(&mut self, execution: &impl ExecutionClient) {
        execution.view_portfolio(&mut self.view, false);
        self.realised_before = self.view.account.realised_pnl;
    }

    /// Counts what the strategy gained or lost on the present day before its session began (specification 4, P96).
    pub fn add_realised(&mut self, realised: Money) {
        self.realised_before -= realised;
        if let Some(clock) = self.clock {
            self.days.insert(clock().jst_date(), self.realised_before);
        }
    }

    /// Checks a command of the strategy. A new order that passes counts as sent. A command that cannot have an
    /// effect passes too: what executes it knows why.
    pub(crate) fn check(
        &mut self,
        now: TsNanos,
        command: &OrderCommand,
        execution: &impl ExecutionClient,
        prices: &LastPrices,
    ) -> Result<(), Rejection> {
        if !matches!(command, OrderCommand::Submit(_) | OrderCommand::Modify { .. }) {
            return Ok(());
        }
        let now = self.clock.map_or(now, |clock| clock());
        self.look_at_clock(execution);
        // A clock that has gone back would keep them for too long.
        self.sent.iter_mut().for_each(|sent| *sent = (*sent).min(now));
        let is_over = |sent: &mut TsNanos| sent.plus_nanos(RATE_NANOS) <= now;
        while self.sent.pop_front_if(is_over).is_some() {}
        execution.view_portfolio(&mut self.view, true);
        // An order desk sends a change once the one before it is done.
        let is_queued = self.clock.is_some();
        let Some(mut wanted) = Wanted::of(command, &self.view, is_queued) else { return Ok(()) };
        if let Some(shares) = execution.cash_shares(wanted.request.instrument) {
            wanted.cash_shares = shares;
        }
        wanted.check_position()?;
        if self.market_data_lost && wanted.opens() && wanted.grows() {
            let text = "MARKET_DATA: market data are lost; until they are back only sells, cancels \
                        and changes to fewer shares pass";
            return refuse(text.to_owned());
        }
        self.check_size(&wanted, execution)?;
        if wanted.before.is_none() {
            self.check_count()?;
        }
        if wanted.is_buy() && wanted.grows() {
            self.check_loss(prices)?;
        }
        if wanted.before.is_none() && self.limits.max_orders_per_minute.is_some() {
            self.sent.push_back(now);
        }
        Ok(())
    }

    /// P95 and P123.
    fn check_size(
        &self,
        wanted: &Wanted<'_>,
        execution: &impl ExecutionClient,
    ) -> Result<(), Rejection> {
        let OrderLimits { max_qty, max_notional, max_position_qty, .. } = self.limits;
        let quantity = wanted.request.quantity;
        if let Some(most) = max_qty.filter(|most| quantity > *most) {
            return refuse(format!("MAX_QTY: {quantity} shares; an order may have {most}"));
        }
        if let Some(most) = max_notional {
            let value = execution.order_value(&wanted.request)?;
            if value > most {
                return refuse(format!(
                    "MAX_NOTIONAL_JPY: worth up to {value} yen; an order may be worth {most}"
                ));
            }
        }
        let may_pass = wanted.is_buy() || wanted.tags.is_margin();
        let Some(most) = max_position_qty.filter(|_| may_pass) else { return Ok(()) };
        let Wanted { held, others, leaves, .. } = *wanted;
        let side = wanted.request.side;
        // A margin SELL goes as far below zero as a BUY above it.
        let position = i128::from(held) * i128::from(side.sign()) + others + leaves;
        if position <= i128::from(most.shares()) {
            return Ok(());
        }
        refuse(format!(
            "MAX_POSITION: {held} shares held, {others} in other {side} orders and {leaves} in this \
             one; {most} are allowed"
        ))
    }

    /// P96, of new orders.
    fn check_count(&self) -> Result<(), Rejection> {
        let OrderLimits { max_orders_per_minute, max_open_orders, .. } = self.limits;
        if let Some(most) = max_orders_per_minute.filter(|most| self.sent.len() >= *most as usize) {
            return refuse(format!(
                "MAX_ORDERS_PER_MINUTE: {} orders were sent within 60 s; {most} are allowed",
                self.sent.len()
            ));
        }
        let open = self.view.working_orders.len();
        match max_open_orders.filter(|most| open >= *most as usize) {
            Some(most) => refuse(format!("MAX_OPEN_ORDERS: {open} orders work; {most} may")),
            None => Ok(()),
        }
    }

    /// P96, of what buys.
    fn check_loss(&self, prices: &LastPrices) -> Result<(), Rejection> {
        let Some(most) = self.limits.max_daily_loss else { return Ok(()) };
        let prices = prices.or_zero();
        let loss_of = |position: &Position| {
            let price = prices[usize::from(position.instrument.0)];
            // What has not traded yet is worth what it cost.
            match price == Price::default() {
                true => Money::ZERO,
                false => position.cost - Money::from_units(position.quantity * price.units()),
            }
        };
        let open: Money = self.view.positions.iter().map(loss_of).sum();
        let realised = self.view.account.realised_pnl - self.realised_before;
        let loss = open - realised;
        if loss < most {
            return Ok(());
        }
        refuse(format!(
            "MAX_DAILY_LOSS_JPY: {loss} yen were lost today; from {most} on it only sells"
        ))
    }
}

impl<'a> Wanted<'a> {
    /// What a command asks for. None where it has no effect: the order does not work or cannot change now (where
    /// changes are queued, it can), or there is no such instrument.
    fn of(command: &'a OrderCommand, view: &'a PortfolioView, is_queued: bool) -> Option<Self> {
        let (request, before) = match command {
            OrderCommand::Submit(request) => (Cow::Borrowed(request), None),
            OrderCommand::Modify { client_order_id, change } => {
                let is_it =
                    |order: &&WorkingOrder| order.request.client_order_id == *client_order_id;
                let order = view.working_orders.iter().find(is_it)?;
                let may_change = order.status.transition(OrderTrigger::SendModify).is_ok();
                if !(may_change || is_queued) {
                    return None;
                }
                (Cow::Owned(change.applied_to(&order.request)), Some(order))
            }
            OrderCommand::Cancel { .. } | OrderCommand::CancelAll { .. } => return None,
        };
        let position = view.positions.get(usize::from(request.instrument.0))?;
        let filled = before.map_or(Quantity::ZERO, |order| order.filled_quantity);
        let is_other = |order: &&WorkingOrder| {
            before.is_none_or(|before| !std::ptr::eq(before, *order))
                && order.request.instrument == request.instrument
                && order.request.side == request.side
        };
        let is_for_cash = |order: &&WorkingOrder| !tags_of(&order.request).is_margin();
        let orders = || view.working_orders.iter().filter(is_other);
        let others = orders().map(leaves).sum();
        let others_for_cash = orders().filter(is_for_cash).map(leaves).sum();
        let leaves = i128::from(request.quantity.shares()) - i128::from(filled.shares());
        let (tags, held) = (tags_of(&request), position.quantity);
        let cash_shares = held;
        Some(Self { request, before, held, cash_shares, leaves, others, others_for_cash, tags })
    }

    fn is_buy(&self) -> bool {
        self.request.side == OrderSide::Buy
    }

    /// Whether it buys, or opens a margin position.
    fn opens(&self) -> bool {
        let is_new =
            matches!(self.tags.cash_margin, CashMargin::CreditNew | CashMargin::GeneralNew);
        self.is_buy() || is_new
    }

    /// Whether it is more than a change to fewer shares.
    fn grows(&self) -> bool {
        self.before.is_none_or(|before| {
            let before = &before.request;
            let is_same = |one: &OrderRequest, other: &OrderRequest| {
                (one.price, one.trigger_price) == (other.price, other.trigger_price)
            };
            self.request.quantity >= before.quantity || !is_same(&self.request, before)
        })
    }

    /// P114: a cash sell has its shares. For margin orders the broker's rules alone hold.
    fn check_position(&self) -> Result<(), Rejection> {
        let (leaves, held, others) = (self.leaves, self.cash_shares, self.others_for_cash);
        if self.is_buy() || self.tags.is_margin() || leaves + others <= i128::from(held) {
            return Ok(());
        }
        refuse(format!(
            "POSITION: {leaves} shares to sell, {held} held, {others} of them in other sell orders"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use domain::account::Account;
    use domain::execution::Warning;
    use domain::{InstrumentIx, OrderEvent, OrderType, Origin, TimeInForce};

    use super::*;

    /// An account that stands still.
    #[derive(Default)]
    struct Still {
        quantity: i64,
        cash_shares: Option<i64>,
        realised: Money,
    }

    impl ExecutionClient for Still {
        fn execute(&mut self, _: TsNanos, _: Origin, _: OrderCommand) {}

        fn refuse(&mut self, _: TsNanos, _: OrderCommand, _: Rejection) {}

        fn order_value(&self, _: &OrderRequest) -> Result<Money, Rejection> {
            Ok(Money::ZERO)
        }

        fn swap_events(&mut self, events: &mut Vec<OrderEvent>) {
            events.clear();
        }

        fn take_warnings(&mut self) -> Vec<Warning> {
            Vec::new()
        }

        fn view_portfolio(&self, view: &mut PortfolioView, _: bool) {
            view.account = Account { realised_pnl: self.realised, ..Account::default() };
            view.positions = vec![Position { quantity: self.quantity, ..Position::default() }];
        }

        fn cash_shares(&self, _: InstrumentIx) -> Option<i64> {
            self.cash_shares
        }
    }

    fn order(side: OrderSide, shares: u64, tags: &[&str]) -> OrderCommand {
        OrderCommand::Submit(OrderRequest {
            client_order_id: "O-1".into(),
            instrument: InstrumentIx(0),
            side,
            order_type: OrderType::Market,
            quantity: Quantity::new(shares),
            price: None,
            trigger_price: None,
            trigger_type: None,
            time_in_force: TimeInForce::Day,
            expire_time: None,
            post_only: false,
            reduce_only: false,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        })
    }

    /// Why an order is refused; empty where it passes.
    fn why(guard: &mut OrderGuard, account: &Still, command: &OrderCommand) -> String {
        let prices = LastPrices::new(1, &[]);
        let checked = guard.check(TsNanos::from_nanos(1), command, account, &prices);
        checked.map_or_else(|rejection| rejection.text, |()| String::new())
    }

    const MARGIN: &[&str] = &["cash_margin=margin_credit_new"];

    /// P123: shares sold on margin count below zero as bought ones count above it.
    #[test]
    fn p123_margin_sells_count_below_zero() {
        let most = Some(Quantity::new(300));
        let limits = OrderLimits { max_position_qty: most, ..OrderLimits::default() };
        let mut guard = OrderGuard::new(limits);
        for (held, side, shares, passes) in [
            (0, OrderSide::Sell, 300, true),
            (0, OrderSide::Sell, 400, false),
            (-200, OrderSide::Sell, 100, true),
            (-200, OrderSide::Sell, 200, false),
            (200, OrderSide::Sell, 500, true),
            (-200, OrderSide::Buy, 500, true),
            (-200, OrderSide::Buy, 600, false),
        ] {
            let account = Still { quantity: held, ..Still::default() };
            let text = why(&mut guard, &account, &order(side, shares, MARGIN));
            let is_refused = text.starts_with("MAX_POSITION: ");
            assert!(text.is_empty() == passes && is_refused != passes, "{held} {side}: {text}");
        }
    }

    /// P114: shares on margin are none that may be sold for cash, and hide none.
    #[test]
    fn p114_only_shares_bought_with_cash_are_sold_for_cash() {
        let mut guard = OrderGuard::new(OrderLimits::default());
        for (quantity, cash_shares, passes) in [(200, 100, false), (0, 200, true), (-100, 0, false)]
        {
            let account = Still { quantity, cash_shares: Some(cash_shares), ..Still::default() };
            let text = why(&mut guard, &account, &order(OrderSide::Sell, 200, &[]));
            assert_eq!(text.is_empty(), passes, "{quantity} {cash_shares}: {text}");
            assert!(passes || text.starts_with("POSITION: "), "{text}");
        }
    }

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    /// P96: what is sold after midnight in Japan counts for the new day, also before its first trade.
    #[test]
    fn p96_a_loss_before_the_first_trade_of_a_day_is_of_that_day() {
        let most = Some(Money::from_yen(1_000));
        let limits = OrderLimits { max_daily_loss: most, ..OrderLimits::default() };
        let mut guard = OrderGuard::new(limits);
        guard.clock = Some(|| TsNanos::from_nanos(NOW.get()));
        // 2026-11-20, 23:59 in Japan.
        NOW.set(1_795_186_740_000_000_000);
        let mut account = Still::default();
        let buy = order(OrderSide::Buy, 100, &[]);
        guard.look_at_clock(&account);
        account.realised = Money::from_yen(-1_000);
        assert!(why(&mut guard, &account, &buy).starts_with("MAX_DAILY_LOSS_JPY: "));
        // Midnight has passed: the next loss is booked before any row of the day.
        NOW.set(NOW.get() + 120_000_000_000);
        guard.look_at_clock(&account);
        assert_eq!(why(&mut guard, &account, &buy), "");
        account.realised = Money::from_yen(-2_000);
        guard.begin_day(&account);
        assert!(why(&mut guard, &account, &buy).starts_with("MAX_DAILY_LOSS_JPY: "));
        // A clock that jumps a day ahead and back forgets nothing.
        NOW.set(NOW.get() + 86_400_000_000_000);
        assert_eq!(why(&mut guard, &account, &buy), "");
        NOW.set(NOW.get() - 86_400_000_000_000);
        assert!(why(&mut guard, &account, &buy).starts_with("MAX_DAILY_LOSS_JPY: "));
    }
}
