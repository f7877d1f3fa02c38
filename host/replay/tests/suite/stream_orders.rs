//! What holds a strategy's orders back before they leave (specification 4, P95, P96, P114, P115 and P123), orders that
//! are executed again (P120), and records that cannot be kept (P128).

use crate::common::feed::Feed;
use crate::common::{Script, at, limit, market, modify, options, stop, tagged};
use domain::fault::FaultKind;
use domain::strategy::Action;
use domain::{
    InstrumentIx, Money, OrderCommand, OrderModify, OrderSide, OrderStatus, Quantity, TsNanos,
};
use replay::stream::{StreamStep, execute_again, stream};
use results::RunStatus;
use results::sink::{InMemory, Record, RunSink};
use trader::OrderLimits;

use OrderSide::{Buy, Sell};

/// A trade each second at 1,000 yen, so many of them.
fn flat(trades: u32) -> Feed {
    (1..=trades)
        .fold(Feed::default(), |feed, second| feed.trade(6, f64::from(second), "1000", 10_000))
}

/// What the strategy hears of rejections, and the orders that were sent.
fn refused(feed: Feed, script: Script, limits: OrderLimits) -> (Vec<String>, Vec<String>) {
    let mut script = script;
    feed.run(&mut script, &options(), limits).unwrap();
    let of = |word: &str| -> Vec<String> {
        let lines = script.told.iter().filter(|line| line.contains(word));
        lines.cloned().collect()
    };
    let ids = of("SUBMITTED");
    let sent = ids.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    let texts = of("_ERROR").into_iter().chain(of("VENUE_"));
    (texts.map(|line| line.split(" t=").next().unwrap().to_owned()).collect(), sent)
}

fn none() -> OrderLimits {
    OrderLimits::default()
}

fn shares(quantity: u64) -> OrderModify {
    OrderModify { quantity: Some(Quantity::new(quantity)), ..OrderModify::default() }
}

fn priced(price: &str) -> OrderModify {
    OrderModify { price: Some(price.parse().unwrap()), ..OrderModify::default() }
}

#[test]
fn p114_a_sell_has_its_shares() {
    let script = Script::default()
        .after(0, market("B-1", Buy, 300))
        .after(2, limit("S-1", Sell, 200, "1100"))
        .after(3, limit("S-2", Sell, 200, "1100"))
        .after(4, limit("O-1", Sell, 100, "1100"))
        .after(5, modify(shares(200)))
        .after(6, tagged(market("M-1", Sell, 100), &["cash_margin=margin_credit_new"]));
    let (texts, sent) = refused(flat(7), script, none());
    assert_eq!(sent, ["B-1", "S-1", "O-1"]);
    assert_eq!(
        texts[..2],
        [
            "S-2 REJECTED VALIDATION_ERROR: POSITION: 200 shares to sell, 300 held, 200 of them in other sell orders",
            "O-1 ACCEPTED VALIDATION_ERROR: POSITION: 200 shares to sell, 300 held, 200 of them in other sell orders",
        ]
    );
    assert!(texts[2].contains("M-1 REJECTED VENUE_UNSUPPORTED: MARGIN"), "{texts:?}");
}

#[test]
fn p114_a_refused_change_leaves_its_order_as_it_is() {
    let mut script = Script::default()
        .after(0, market("B-1", Buy, 100))
        .after(2, limit("O-1", Sell, 100, "1005"))
        .after(3, modify(shares(200)));
    let feed = flat(4).trade(6, 9.0, "1010", 10_000);
    let result = feed.run(&mut script, &options(), none()).unwrap();
    let order = &result.orders[1];
    assert_eq!((order.status, order.request.quantity), (OrderStatus::Filled, Quantity::new(100)));
    assert_eq!(order.rejection, None);
    assert_eq!(result.totals.position_end, 0);
}

#[test]
fn p115_lost_market_data_let_only_what_shrinks_pass() {
    let script = Script::default()
        .after(0, market("B-1", Buy, 100))
        .after(1, limit("O-1", Buy, 300, "900"))
        // Lost from here on.
        .after(2, market("B-2", Buy, 100))
        .after(2, modify(priced("901")))
        .after(2, modify(shares(400)))
        .after(2, modify(shares(200)))
        .after(2, limit("S-1", Sell, 100, "1100"))
        .after(2, tagged(market("M-1", Sell, 100), &["cash_margin=margin_general_new"]))
        // And back.
        .after(3, market("B-3", Buy, 100));
    let feed = Feed::default().trade(6, 1.0, "1000", 10_000);
    let feed = feed.step(StreamStep::MarketDataLost(true)).trade(6, 2.0, "1000", 10_000);
    let feed = feed.step(StreamStep::MarketDataLost(false)).trade(6, 3.0, "1000", 10_000);
    let (texts, sent) = refused(feed, script, none());
    assert_eq!(sent, ["B-1", "O-1", "S-1", "B-3"]);
    assert_eq!(texts.len(), 4, "{texts:?}");
    assert!(texts.iter().all(|text| text.contains("VALIDATION_ERROR: MARKET_DATA: ")), "{texts:?}");
}

#[test]
fn p115_cancels_pass_while_market_data_are_lost() {
    let cancel = Action::Order(OrderCommand::Cancel { client_order_id: "O-1".into() });
    let mut script = Script::default().after(1, limit("O-1", Buy, 100, "900")).after(2, cancel);
    let feed = Feed::default().trade(6, 1.0, "1000", 100);
    let feed = feed.step(StreamStep::MarketDataLost(true)).trade(6, 2.0, "1000", 100);
    feed.run(&mut script, &options(), none()).unwrap();
    assert!(script.told.contains(&"O-1 CANCELED t=2".to_owned()), "{:?}", script.told);
}

#[test]
fn p95_shares_of_an_order_and_of_a_change() {
    let limits = OrderLimits { max_qty: Some(Quantity::new(200)), ..none() };
    let script = Script::default()
        .after(1, limit("O-1", Buy, 200, "900"))
        .after(2, limit("O-2", Buy, 300, "900"))
        .after(3, modify(shares(300)));
    let (texts, sent) = refused(flat(4), script, limits);
    assert_eq!(sent, ["O-1"]);
    assert_eq!(
        texts,
        [
            "O-2 REJECTED VALIDATION_ERROR: MAX_QTY: 300 shares; an order may have 200",
            "O-1 ACCEPTED VALIDATION_ERROR: MAX_QTY: 300 shares; an order may have 200",
        ]
    );
}

#[test]
fn p95_what_an_order_is_worth() {
    let limits = OrderLimits { max_notional: Some(Money::from_yen(130_000)), ..none() };
    // A market order may cost the day's upper limit, 1,300 yen.
    let script = Script::default()
        .after(0, market("B-1", Buy, 100))
        .after(2, limit("O-1", Buy, 100, "900"))
        .after(3, market("B-2", Buy, 200))
        .after(4, modify(shares(200)))
        .after(5, limit("S-1", Sell, 100, "1300.5"));
    let (texts, sent) = refused(flat(6), script, limits);
    assert_eq!(sent, ["B-1", "O-1"]);
    assert_eq!(
        texts,
        [
            "B-2 REJECTED VALIDATION_ERROR: MAX_NOTIONAL_JPY: worth up to 260000 yen; an order may be worth 130000",
            "O-1 ACCEPTED VALIDATION_ERROR: MAX_NOTIONAL_JPY: worth up to 180000 yen; an order may be worth 130000",
            "S-1 REJECTED VALIDATION_ERROR: MAX_NOTIONAL_JPY: worth up to 130050 yen; an order may be worth 130000",
        ]
    );
}

#[test]
fn p119_before_the_first_trade_a_market_order_has_no_value() {
    let limits = OrderLimits { max_notional: Some(Money::from_yen(130_000)), ..none() };
    let mut script = Script::default()
        .after(0, market("B-1", Buy, 100))
        .after(0, limit("B-2", Buy, 100, "900"))
        .after(0, stop("B-3", Buy, 100, "1100"))
        .after(1, market("B-4", Buy, 100));
    let options = replay::ReplayOptions { base_prices: vec![], ..options() };
    flat(2).run(&mut script, &options, limits).unwrap();
    let told = |id: &str| script.told.iter().find(|line| line.starts_with(id)).unwrap();
    assert!(told("B-1").contains("VENUE_REJECTED: NO_REFERENCE_PRICE"), "{:?}", script.told);
    assert!(told("B-2").contains("SUBMITTED"), "{:?}", script.told);
    assert!(told("B-3").contains("VENUE_REJECTED: NO_REFERENCE_PRICE"), "{:?}", script.told);
    assert!(told("B-4").contains("SUBMITTED"), "{:?}", script.told);
}

#[test]
fn p119_a_run_on_paper_has_no_margin_account() {
    let tags =
        ["cash_margin=margin_credit_new", "cash_margin=margin_general_repay", "tategyoku=A-1"];
    let script = tags.iter().zip(1..).fold(Script::default(), |script, (tag, number)| {
        script.after(number, tagged(market(&format!("M-{number}"), Buy, 100), &[tag]))
    });
    let (texts, sent) = refused(flat(4), script.after(4, market("B-1", Buy, 100)), none());
    assert_eq!(sent, ["B-1"], "no other leaves");
    assert_eq!(texts.len(), tags.len(), "{texts:?}");
    for (text, tag) in texts.iter().zip(tags) {
        assert!(text.contains(&format!("REJECTED VENUE_UNSUPPORTED: MARGIN: `{tag}`")), "{text}");
    }
}

#[test]
fn p123_held_and_bought_together() {
    let limits = OrderLimits { max_position_qty: Some(Quantity::new(300)), ..none() };
    let script = Script::default()
        .after(0, market("B-1", Buy, 100))
        .after(2, limit("O-1", Buy, 100, "900"))
        .after(3, limit("B-2", Buy, 200, "900"))
        .after(4, modify(shares(300)))
        .after(5, modify(shares(200)))
        .after(6, limit("S-1", Sell, 100, "1100"));
    let (texts, sent) = refused(flat(7), script, limits);
    assert_eq!(sent, ["B-1", "O-1", "S-1"]);
    assert_eq!(
        texts,
        [
            "B-2 REJECTED VALIDATION_ERROR: MAX_POSITION: 100 shares held, 100 in other BUY orders and 200 in this one; 300 are allowed",
            "O-1 ACCEPTED VALIDATION_ERROR: MAX_POSITION: 100 shares held, 0 in other BUY orders and 300 in this one; 300 are allowed",
        ]
    );
}

#[test]
fn p96_orders_of_the_last_60_seconds() {
    let limits = OrderLimits { max_orders_per_minute: Some(2), ..none() };
    let script = (1..=4).fold(Script::default(), |script, number| {
        script.after(number, limit(&format!("B-{number}"), Buy, 100, "900"))
    });
    let script = script.after(5, market("B-5", Buy, 100));
    // After 1, 2 and 3 s, just before the first one is 60 s ago, and when it is.
    let feed = flat(3).trade(6, 60.5, "1000", 100).trade(6, 61.0, "1000", 100);
    let (texts, sent) = refused(feed, script, limits);
    assert_eq!(sent, ["B-1", "B-2", "B-5"]);
    let text =
        "VALIDATION_ERROR: MAX_ORDERS_PER_MINUTE: 2 orders were sent within 60 s; 2 are allowed";
    assert_eq!(texts, [format!("B-3 REJECTED {text}"), format!("B-4 REJECTED {text}")]);
}

#[test]
fn p96_orders_that_work() {
    let limits = OrderLimits { max_open_orders: Some(1), ..none() };
    let cancel = Action::Order(OrderCommand::Cancel { client_order_id: "O-1".into() });
    let script = Script::default()
        .after(1, limit("O-1", Buy, 100, "900"))
        .after(1, limit("B-2", Buy, 100, "900"))
        .after(2, modify(shares(200)))
        .after(3, cancel)
        .after(4, limit("B-3", Buy, 100, "900"));
    let (texts, sent) = refused(flat(5), script, limits);
    assert_eq!(sent, ["O-1", "B-3"]);
    let text = "VALIDATION_ERROR: MAX_OPEN_ORDERS: 1 orders work; 1 may";
    assert_eq!(texts, [format!("B-2 REJECTED {text}")]);
}

#[test]
fn p96_the_day_s_loss_ends_buying() {
    let limits = OrderLimits { max_daily_loss: Some(Money::from_yen(1_000)), ..none() };
    // 200 shares for 1,000 yen and 100 for 990: 2,000 yen are lost at 990, also when some are sold there.
    let script = Script::default()
        .after(0, market("B-1", Buy, 200))
        .after(1, limit("O-1", Buy, 300, "900"))
        .after(2, market("B-2", Buy, 100))
        .after(3, market("B-3", Buy, 100))
        .after(3, modify(shares(400)))
        .after(3, modify(shares(200)))
        .after(3, market("S-1", Sell, 100))
        .after(4, market("B-4", Buy, 100))
        // Another day.
        .after(5, market("B-5", Buy, 100));
    let feed = Feed::default()
        .trade(6, 1.0, "1000", 10_000)
        .trade(6, 2.0, "1000", 10_000)
        .trade(6, 3.0, "990", 10_000)
        .trade(6, 4.0, "990", 10_000)
        .trade(7, 1.0, "1000", 10_000);
    let (texts, sent) = refused(feed, script, limits);
    assert_eq!(sent, ["B-1", "O-1", "B-2", "S-1", "B-5"]);
    assert_eq!(texts.len(), 3, "{texts:?}");
    let text = "VALIDATION_ERROR: MAX_DAILY_LOSS_JPY: 2000 yen were lost today; from 1000 on it only sells";
    assert!(texts[0].ends_with(text), "{texts:?}");
}

/// P120: an order is executed at its instant, waits for its day, asks no guard and needs no purchase before it.
#[test]
fn p120_orders_are_executed_again_at_their_instants() {
    let again = |day: u32, seconds: f64, action: Action| {
        let Action::Order(command) = action else { panic!("{action:?}") };
        StreamStep::Order { ts_event: TsNanos::from_nanos(at(day, seconds)), command }
    };
    let cancel = OrderCommand::Cancel { client_order_id: "C-1".into() };
    let mut feed = Feed::default()
        .step(again(6, 0.0, market("B-1", Buy, 100)))
        .trade(6, 1.0, "1000", 10_000)
        .step(again(6, 1.0, market("S-1", Sell, 300)))
        .step(again(6, 1.5, limit("C-1", Buy, 100, "1000")))
        .step(again(6, 1.7, Action::Order(cancel)))
        .trade(6, 2.0, "990", 10_000)
        .step(again(7, 0.5, market("B-2", Buy, 100)))
        .trade(7, 1.0, "1000", 10_000);
    let (mut script, mut rows) = (Script::default(), InMemory::default());
    let held = [(InstrumentIx(0), 300)];
    let totals = execute_again(&mut feed, &mut script, &options(), &held, &mut rows).unwrap();
    assert_eq!(totals.status, RunStatus::Interrupted);
    let result = rows.into_result(totals);
    let fills: Vec<_> = result
        .fills
        .iter()
        .map(|fill| (&*fill.client_order_id, fill.ts_event.nanos(), fill.quantity.shares()))
        .collect();
    let expected = [("B-1", at(6, 1.0), 100), ("S-1", at(6, 2.0), 300), ("B-2", at(7, 1.0), 100)];
    assert_eq!(fills, expected);
    let status = |id: &str| {
        let order = result.orders.iter().find(|order| &*order.request.client_order_id == id);
        order.unwrap().status
    };
    assert_eq!(status("C-1"), OrderStatus::Canceled);
    assert!(!script.told.is_empty(), "the strategy hears of it");
}

/// Takes so many records.
struct Full(u32);

impl RunSink for Full {
    fn take(&mut self, _: Record<'_>) -> std::io::Result<()> {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err(std::io::ErrorKind::StorageFull.into()),
        }
    }
}

/// P128: what is not kept is not done; the run has a result, which says why it ended.
#[test]
fn p128_records_that_cannot_be_kept_end_the_run_with_a_journal_fault() {
    let mut script =
        Script::default().after(1, market("B-1", Buy, 100)).after(3, market("B-2", Buy, 100));
    let totals = stream(&mut flat(9), &mut script, &options(), none(), &mut Full(3)).unwrap();
    let RunStatus::Failed(fault) = &totals.status else { panic!("{:?}", totals.status) };
    let FaultKind::Journal(text) = &fault.kind else { panic!("{fault}") };
    assert!(text.starts_with("cannot write the results: "), "{text}");
    assert!(totals.trades_seen < 9, "{} trades", totals.trades_seen);
}
