//! What the sandbox does with formula modules, good ones and those that misbehave.

use domain::Price;
use domain::fault::FaultKind;
use domain::formula::{Column, FormulaInput, FormulaRuntime};
use domain::instrument::DailyLimits;
use domain::limits::{FORMULA_FUEL_PER_DAY, FORMULA_FUEL_PER_VALUE};
use sandbox::{FormulaInstance, FormulaModule, Limits, Sandbox, SandboxConfig};
use tests::built;

use crate::common::file;

fn module(package: &str) -> FormulaModule {
    Sandbox::new(built::keeping_sandbox()).unwrap().load_formula(&file(package)).unwrap()
}

/// An instance with its parameters set.
fn configured(package: &str, values: &[f64]) -> FormulaInstance {
    let mut instance = module(package).instantiate(Limits::formula()).unwrap();
    instance.configure(values).unwrap();
    instance
}

#[test]
fn a_module_says_what_it_is_and_what_it_reads() {
    let module = module("risk-adjusted-momentum");
    let description = module.description();
    assert_eq!(description.name, "risk-adjusted-momentum");
    let parameter = &description.parameters[0];
    assert_eq!((parameter.name.as_str(), parameter.default), ("lookback", 60.0));
    assert_eq!(module.artefact().sha256().len(), 64);
    assert!(module.artefact().imports().is_empty());
    let mut instance = module.instantiate(Limits::formula()).unwrap();
    let inputs = instance.configure(&[20.0]).unwrap();
    assert_eq!(inputs, [FormulaInput { column: Column::Close, first_lag: 0, last_lag: 20 }]);
    // It can be set anew.
    assert_eq!(instance.configure(&[5.0]).unwrap()[0].last_lag, 5);
}

#[test]
fn a_day_is_computed_with_null_as_not_a_number() {
    let mut instance = configured("formula-mirror", &[5.0]);
    let (now, before) = ([110.0, 50.0, f64::NAN, 1.0], [100.0, f64::NAN, 100.0, 3.0]);
    let mut out = [0.0; 4];
    instance.evaluate(&[&now, &before], &mut out).unwrap();
    assert_eq!(out[0], (110.0 - 100.0) / 100.0 * 100.0);
    assert!(out[1].is_nan() && out[2].is_nan());
    assert_eq!(out[3].to_bits(), ((1.0_f64 - 3.0) / 3.0 * 100.0).to_bits());
    // Days of other sizes, none included, go to the same instance.
    instance.evaluate(&[&now[..1], &before[..1]], &mut out[..1]).unwrap();
    instance.evaluate(&[&[], &[]], &mut []).unwrap();
    let large = vec![2.0; 20_000];
    let mut out = vec![0.0; 20_000];
    instance.evaluate(&[&large, &large], &mut out).unwrap();
    assert!(out.iter().all(|value| *value == 0.0));
}

/// What the day on which the first close is 7 ends with, after a good day.
fn fault(package: &str) -> (FaultKind, String) {
    let mut instance = configured(package, &[7.0]);
    let mut out = [0.0; 2];
    instance.evaluate(&[&[6.0, 7.0]], &mut out).unwrap();
    assert_eq!(out, [6.0, 7.0]);
    let fault = instance.evaluate(&[&[7.0, 8.0]], &mut out).unwrap_err();
    assert_eq!(fault.export, "evaluate");
    let again = instance.evaluate(&[&[6.0, 7.0]], &mut out).unwrap_err();
    assert!(again.to_string().contains("it was called after it had failed"), "{again}");
    (fault.kind.clone(), fault.to_string())
}

#[test]
fn a_panic_is_a_trap_with_its_frames() {
    let (kind, text) = fault("formula-traps");
    assert!(matches!(kind, FaultKind::Trap(_)), "{kind:?}");
    assert!(text.contains("at kumiki:formula/guest@1.0.0#evaluate"), "{text}");
}

#[test]
fn an_endless_loop_ends_at_its_fuel() {
    let budget = FORMULA_FUEL_PER_DAY + 2 * FORMULA_FUEL_PER_VALUE;
    assert_eq!(
        fault("formula-loops").0,
        FaultKind::Fuel { budget, per_event: FORMULA_FUEL_PER_DAY }
    );
}

#[test]
fn memory_has_a_limit() {
    match fault("formula-grows").0 {
        FaultKind::Memory { asked, allowed } => assert!(asked > allowed && allowed == 64 << 20),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_has_a_value_for_each_issue() {
    let (kind, text) = fault("formula-answers-short");
    assert_eq!(kind, FaultKind::Protocol("it answered 1 values for 2 rows".to_owned()), "{text}");
}

#[test]
fn parameters_that_a_module_does_not_take_are_refused() {
    let mut instance = module("formula-mirror").instantiate(Limits::formula()).unwrap();
    let fault = instance.configure(&[2.5]).unwrap_err();
    let words = "parameter `lag` is 2.5; it must be a whole number";
    assert_eq!(fault.kind, FaultKind::Refused(words.to_owned()));
    let mut instance = module("formula-mirror").instantiate(Limits::formula()).unwrap();
    assert!(matches!(instance.configure(&[]).unwrap_err().kind, FaultKind::Refused(_)));
    // Never set: the module has nothing to compute with.
    let mut instance = module("formula-mirror").instantiate(Limits::formula()).unwrap();
    let fault = instance.evaluate(&[&[1.0]], &mut [0.0]).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Trap(_)), "{fault}");
}

#[test]
fn a_strategy_is_no_formula_and_the_other_way_round() {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let error = sandbox.load_formula(&built::strategy("sma-cross")).unwrap_err().to_string();
    assert!(error.contains("a formula may import nothing"), "{error}");
    let error = sandbox.load(&file("formula-mirror")).map(drop).unwrap_err().to_string();
    assert!(error.contains("it is no Kumiki strategy of version 1"), "{error}");
    let missing = sandbox.load_formula(&file("formula-mirror").with_extension("none"));
    assert!(missing.unwrap_err().to_string().starts_with("cannot read the formula "));
}

#[test]
fn a_compiled_module_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache_folder = Some(folder.path().to_owned());
    let config = SandboxConfig { cache_folder, ..SandboxConfig::default() };
    for _ in 0..2 {
        let sandbox = Sandbox::new(config.clone()).unwrap();
        sandbox.load_formula(&file("limit-distance")).unwrap();
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}

/// Fuel is a meter without noise: the same on every machine.
#[test]
fn fuel_for_each_value_stays_small() {
    let rows = 4_000;
    let column: Vec<f64> = (0..rows).map(|row| f64::from(row) + 1.0).collect();
    let mut instance = configured("formula-mirror", &[5.0]);
    let mut out = vec![0.0; column.len()];
    let before = instance.fuel_used();
    instance.evaluate(&[&column, &column], &mut out).unwrap();
    let used = (instance.fuel_used() - before) / rows as u64;
    // Two values at a time: one by one takes 25.
    assert!(used <= 16, "the mirror uses {used} units for each issue");
}

#[test]
fn the_limit_distance_follows_the_exchange_s_table() {
    let bases: Vec<i64> = (1..=80)
        .flat_map(|step| [step, step * 10, step * 100, step * 10_000, step * 1_000_000])
        .flat_map(|yen| [yen - 1, yen, yen + 1])
        .filter(|yen| *yen > 0)
        .collect();
    let columns: Vec<f64> = bases.iter().map(|yen| *yen as f64).collect();
    for (side, upper) in [(1.0, true), (-1.0, false)] {
        let mut instance = configured("limit-distance", &[side]);
        let mut out = vec![0.0; columns.len()];
        instance.evaluate(&[&columns, &columns], &mut out).unwrap();
        for (base, found) in bases.iter().zip(&out) {
            let limits = DailyLimits::around(Price::from_yen(*base));
            let limit = if upper { limits.high } else { limits.low };
            let yen = (limit.units() - Price::from_yen(*base).units()).abs() as f64 / 10_000.0;
            let expected = yen / *base as f64 * 100.0;
            assert!((found - expected).abs() < 1e-9 * expected.max(1.0), "{base}: {found}");
        }
    }
}
