//! Finished orders can be taken out of the exchange while a run goes on; nothing else changes.

use crate::common::{self, limit, market, options, until};
use domain::OrderCommand;
use domain::Origin;
use domain::execution::ExecutionClient;
use domain::market::Trade;
use domain::session::TradingHours;
use domain::strategy::Action;
use domain::{InstrumentIx, Money, OrderSide, OrderStatus, Price, Quantity, TsNanos};
use exchange::Exchange;

use OrderSide::Buy;

const ONLY: InstrumentIx = InstrumentIx(0);

struct Bench {
    exchange: Exchange,
    second: u32,
}

impl Bench {
    fn new(orders_max: u32) -> Self {
        let mut options = options();
        options.model.orders_max = orders_max;
        let instruments = options.instruments;
        let exchange = Exchange::new(options.model, &instruments, Money::from_yen(1_000_000_000));
        let mut bench = Self { exchange, second: 0 };
        let hours = TradingHours::of(bench.now().jst_date());
        bench.exchange.begin_day(hours, ONLY, Some(Price::from_yen(1_000)));
        bench.exchange.set_last_price(ONLY, Price::from_yen(1_000), bench.now());
        bench
    }

    fn now(&self) -> TsNanos {
        TsNanos::from_nanos(common::at(6, f64::from(self.second)))
    }

    fn send(&mut self, action: Action) {
        let now = self.now();
        match action {
            Action::Order(command) => self.exchange.execute(now, Origin::Strategy, command),
            other => panic!("{other:?}"),
        }
    }

    fn cancel(&mut self, now: TsNanos, client_order_id: &str) {
        let command = OrderCommand::Cancel { client_order_id: client_order_id.into() };
        self.exchange.execute(now, Origin::Strategy, command);
    }

    fn warnings(&mut self) -> Vec<String> {
        self.exchange.take_warnings().into_iter().map(|warning| warning.text).collect()
    }

    fn trade(&mut self, yen: i64) {
        self.second += 1;
        let now = self.now();
        let trade = Trade {
            ts_event: now,
            instrument: ONLY,
            price: Price::from_yen(yen),
            quantity: Quantity::new(1_000),
        };
        self.exchange.take_trade(&trade);
    }

    fn done(&mut self) -> Vec<String> {
        let mut done = Vec::new();
        self.exchange.take_done(|order| {
            done.push(format!("{} {}", order.request.client_order_id, order.status));
        });
        done
    }
}

#[test]
fn finished_orders_come_out_in_the_order_of_their_sending() {
    let mut bench = Bench::new(100);
    bench.send(limit("O-1", Buy, 100, "990"));
    bench.send(limit("O-2", Buy, 100, "980"));
    bench.send(market("O-3", Buy, 100));
    bench.send(market("O-4", Buy, 150));
    bench.trade(1_000);
    assert_eq!(bench.done(), ["O-3 FILLED", "O-4 REJECTED"]);
    assert_eq!(bench.done(), Vec::<String>::new());
    // A late cancel finishes before the older order.
    let now = bench.now();
    bench.cancel(now, "O-2");
    bench.trade(985);
    assert_eq!(bench.done(), ["O-1 FILLED", "O-2 CANCELED"]);
    assert_eq!(bench.exchange.into_orders().len(), 0);
}

#[test]
fn ids_of_orders_that_were_taken_out_stay_taken() {
    let mut bench = Bench::new(100);
    bench.send(market("O-1", Buy, 100));
    bench.trade(1_000);
    assert_eq!(bench.done(), ["O-1 FILLED"]);
    let now = bench.now();
    bench.cancel(now, "O-1");
    assert_eq!(
        bench.warnings(),
        ["`O-1` was not cancelled: it is FILLED"],
        "the same words as before"
    );
    bench.send(market("O-1", Buy, 100));
    let mut refused = Vec::new();
    bench.exchange.take_done(|order| refused.push(order.clone()));
    assert_eq!(refused[0].status, OrderStatus::Rejected);
    assert!(refused[0].rejection.as_ref().unwrap().text.contains("was used before"));
    bench.cancel(now, "O-1");
    assert_eq!(
        bench.warnings(),
        ["`O-1` was not cancelled: it is FILLED"],
        "the first order with an id keeps it"
    );
}

#[test]
fn working_orders_keep_their_place_while_others_are_taken_out() {
    let mut bench = Bench::new(3_000);
    bench.send(until(7, limit("first", Buy, 100, "990")));
    for number in 0..1_000 {
        bench.send(market(&format!("O-{number}"), Buy, 100));
        bench.trade(1_000);
        assert_eq!(bench.done(), [format!("O-{number} FILLED")]);
    }
    bench.send(limit("last", Buy, 100, "990"));
    bench.trade(989);
    assert_eq!(bench.done(), ["first FILLED", "last FILLED"]);
}

#[test]
fn the_order_too_many_is_not_kept() {
    let mut bench = Bench::new(2);
    bench.send(market("O-1", Buy, 100));
    bench.trade(1_000);
    assert_eq!(bench.done(), ["O-1 FILLED"]);
    bench.send(market("O-2", Buy, 100));
    assert!(!bench.exchange.is_exhausted(), "the limit itself is allowed");
    bench.exchange.take_events();
    bench.send(market("O-3", Buy, 100));
    assert!(bench.exchange.is_exhausted(), "orders that were taken out count too");
    assert!(bench.exchange.take_events().is_empty());
    assert_eq!(bench.exchange.into_orders().len(), 1);
}
