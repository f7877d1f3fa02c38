//! What the tests of this folder share.

use domain::adjustment::Adjustment;
use domain::fault::Fault;
use domain::market::{Trade, Window};
use domain::strategy::{Outcome, StrategyRuntime};
use domain::{
    AccountEvent, AccountEventKind, Instrument, InstrumentIx, Money, Price, Quantity, Split,
    TickTable, TsNanos,
};
use sandbox::{Artefact, Sandbox, SandboxConfig, SandboxError, StrategyModule};
use tests::wat;
use wit_component::StringEncoding;

/// A strategy from its bytes.
pub(crate) fn prepared(name: &str, bytes: Vec<u8>) -> Result<StrategyModule, SandboxError> {
    Sandbox::new(SandboxConfig::default())?.prepare(Artefact::from_bytes(name, bytes)?)
}

/// A guest of `guests/test`.
pub(crate) fn guest(name: &str) -> StrategyModule {
    prepared(name, wat::component(&wat::module(name), StringEncoding::UTF8)).unwrap()
}

pub(crate) fn instrument() -> Instrument {
    Instrument {
        id: "7203.TSE".parse().unwrap(),
        lot: Quantity::new(100),
        ticks: TickTable::Normal,
    }
}

/// One trade, handed over alone.
pub(crate) fn one(strategy: &mut dyn StrategyRuntime, number: u64) -> Result<Outcome, Box<Fault>> {
    let trade = Trade {
        ts_event: TsNanos::from_nanos(1_736_121_600_000_000_000 + number * 1_000_000_000),
        instrument: InstrumentIx(0),
        price: Price::from_yen(1_000 + (number % 7).cast_signed()),
        quantity: Quantity::new(100),
    };
    strategy.advance(Window::OneTrade(trade), 1)
}

/// A split of two shares into three.
pub(crate) fn split() -> AccountEvent {
    let split = Split {
        adjustment: Adjustment::from_terms(3, 2).unwrap(),
        quantity: 150,
        cash_paid: Money::from_yen(5),
        last_price: Some(Price::from_yen(1_000)),
    };
    AccountEvent {
        ts_event: TsNanos::from_nanos(1_736_175_600_000_000_000),
        instrument: InstrumentIx(0),
        kind: AccountEventKind::Split(split),
    }
}
