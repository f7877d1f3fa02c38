//! What a strategy hears of the aggressor of a trade (specification 4, P118), on both ways of calling it.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use domain::account::{PortfolioView, Position};
use domain::market::{Trade, TradeColumns, Window};
use domain::strategy::StrategyRuntime;
use domain::{Instrument, InstrumentIx, OrderSide, Price, Quantity, TickTable, TsNanos};
use sandbox::{CallPath, Limits, Sandbox, SandboxConfig, StrategyInstance, StrategyModule};

/// The strategy that notes the first answer, as `cargo xtask guests` builds it.
fn module(call_path: CallPath) -> StrategyModule {
    let test = std::env::current_exe().unwrap();
    let release = test.ancestors().find(|folder| folder.ends_with("release")).unwrap();
    let component = release.join("test-guests/asks-aggressor.wasm");
    assert!(component.is_file(), "{} is missing", component.display());
    let config = SandboxConfig { call_path: Some(call_path), ..SandboxConfig::default() };
    Sandbox::new(config).unwrap().load(&component).unwrap()
}

fn started(module: &StrategyModule) -> StrategyInstance {
    let mut instance = module.instantiate(Limits::default()).unwrap();
    let ticks = TickTable::Normal;
    let toyota = Instrument { id: "7203.TSE".parse().unwrap(), lot: Quantity::new(100), ticks };
    instance.init("{}", &[toyota]).unwrap();
    let positions = vec![Position::default()];
    instance.set_portfolio(&PortfolioView { positions, ..PortfolioView::default() });
    instance.start(TsNanos::from_nanos(1)).unwrap();
    instance
}

fn trade() -> Trade {
    Trade {
        ts_event: TsNanos::from_nanos(1_736_121_600_000_000_000),
        instrument: InstrumentIx(0),
        price: Price::from_yen(1_000),
        quantity: Quantity::new(100),
    }
}

/// The answer for a trade that is a window of its own.
fn answer(module: &StrategyModule, side: Option<OrderSide>) -> String {
    let mut instance = started(module);
    instance.set_aggressor(side);
    instance.advance(Window::OneTrade(trade()), 1).unwrap();
    instance.take_log().remove(0).message
}

#[test]
fn p118_the_aggressor_of_one_trade_is_told() {
    for call_path in [CallPath::Direct, CallPath::General] {
        let module = module(call_path);
        assert_eq!(answer(&module, Some(OrderSide::Buy)), "Buyer");
        assert_eq!(answer(&module, Some(OrderSide::Sell)), "Seller");
        assert_eq!(answer(&module, None), "NoAggressor");
    }
}

#[test]
fn p118_no_trade_of_a_larger_window_has_an_aggressor() {
    let Trade { ts_event, price, quantity, .. } = trade();
    let (times, prices, shares) = ([ts_event.nanos()], [price.units()], [quantity.shares()]);
    let rows =
        TradeColumns { ts_event: &times, instrument: &[0], price: &prices, quantity: &shares };
    for call_path in [CallPath::Direct, CallPath::General] {
        let module = module(call_path);
        let mut instance = started(&module);
        instance.set_aggressor(Some(OrderSide::Buy));
        instance.advance(Window::Trades(rows), 1).unwrap();
        assert_eq!(instance.take_log().remove(0).message, "NoAggressor");
    }
}
