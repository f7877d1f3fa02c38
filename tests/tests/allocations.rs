//! What orders take from the allocator where a guest is called directly: nothing, once the buffers of a run have
//! grown. Where a folder is written its tables take some for each row.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test ends at the first surprise")]

use allocation_counter::measure;
use domain::Money;
use replay::{ReplayOptions, TradeSeries, Unpaced, replay};
use results::sink::TotalsOnly;
use sandbox::{CallPath, Limits, Sandbox, SandboxConfig, StrategyModule};
use tests::{built, sample};

/// Days of the data; the first half of them lets buffers grow.
const DAYS: u32 = 12;
/// Orders of the later days for each allocation in them: a day that has more orders than any before it needs
/// more memory, and so does a table of all ids.
const ORDERS_OF_AN_ALLOCATION: u64 = 20;

/// Allocations, and orders, of a run over the first days.
fn replayed(
    module: &StrategyModule,
    (series, days): (&TradeSeries, usize),
    options: &ReplayOptions,
) -> [u64; 2] {
    let is_strict = options.window == 1;
    let mut strategy = module.instantiate_quick(Limits::default(), is_strict).unwrap();
    let mut orders = 0;
    let counted = measure(|| {
        let days = series.days().take(days);
        let totals = replay(days, &mut strategy, options, &mut TotalsOnly, &mut Unpaced).unwrap();
        orders = totals.order_counts.all;
    });
    [counted.count_total, orders]
}

#[test]
fn orders_take_nothing_from_the_allocator() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    sample::write(&data, "72030", DAYS, 10_000, 7);
    let series = sample::load(&data, "72030", &folder.path().join("cache"));
    let config = SandboxConfig { call_path: Some(CallPath::Direct), ..SandboxConfig::default() };
    let module = Sandbox::new(config).unwrap().load(&built::strategy("sma-cross")).unwrap();
    for window in [1, 1_024] {
        let mut options = sample::options(r#"{"fast":5,"slow":20}"#, window, "0.5");
        options.cash = Money::from_yen(100_000_000);
        let of = |days| replayed(&module, (&series, days), &options);
        let (half, whole) = (of(DAYS as usize / 2), of(DAYS as usize));
        let [allocations, orders] = [whole[0] - half[0], whole[1] - half[1]];
        let told = format!("window {window}: {half:?} allocations and orders, then {whole:?}");
        eprintln!("{told}");
        assert!(orders > 1_000, "{told}");
        assert!(allocations * ORDERS_OF_AN_ALLOCATION <= orders, "{told}");
    }
}
