//! Components of all shapes in whole runs: each gives the digest, to the byte, of the plain one, on
//! every path that takes it.

use domain::formula::FormulaRuntime;
use replay::TradeSeries;
use results::RunResult;
use sandbox::{Artefact, CallPath, FormulaModule, Limits, Sandbox, SandboxConfig, StrategyModule};
use tests::{built, runs, sample, wat};
use wit_component::StringEncoding;

const STRATEGY: &str = "kumiki:strategy/guest@1.0.0";
const FORMULA: &str = "kumiki:formula/guest@1.0.0";
const BOTH: [CallPath; 2] = [CallPath::Direct, CallPath::General];

fn sandbox(call_path: CallPath) -> Sandbox {
    let config = SandboxConfig { call_path: Some(call_path), ..SandboxConfig::default() };
    Sandbox::new(config).unwrap()
}

fn strategy(bytes: &[u8], path: CallPath) -> Result<StrategyModule, String> {
    let artefact = Artefact::from_bytes("shape", bytes.to_vec());
    let module = artefact.and_then(|artefact| sandbox(path).prepare(artefact));
    module.map_err(|error| error.to_string())
}

/// Two days of one issue.
fn series() -> TradeSeries {
    let folder = tempfile::tempdir().unwrap();
    sample::write(folder.path(), "72030", 2, 1_500, 23);
    sample::load(folder.path(), "72030", &folder.path().join("cache"))
}

fn replayed(module: &StrategyModule, series: &TradeSeries, window: u32) -> RunResult {
    let options = sample::options(r#"{"fast": 5, "slow": 20}"#, window, "1");
    let mut instance = module.instantiate(Limits::default()).unwrap();
    runs::unpaced(series.days(), &mut instance, &options)
}

/// Runs a component on the given paths, with windows of 1 and of 1,024, and holds it against a run.
fn runs_like(wanted: &RunResult, series: &TradeSeries, what: &str, bytes: &[u8], on: &[CallPath]) {
    for path in BOTH {
        let module = strategy(bytes, path);
        if !on.contains(&path) {
            let reason = module.map(drop).unwrap_err();
            assert!(reason.starts_with("shape cannot be called directly: "), "{what}: {reason}");
            continue;
        }
        let module = module.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(module.call_path(), path);
        for window in [1, 1_024] {
            let run = replayed(&module, series, window);
            let what = format!("{what}, {path:?}, window {window}");
            assert_eq!(run.totals.digest, wanted.totals.digest, "{what}");
            assert_eq!(run.fills, wanted.fills, "{what}");
            assert_eq!(run.log, wanted.log, "{what}");
        }
    }
}

#[test]
fn a_strategy_runs_alike_in_every_shape() {
    let plain = std::fs::read(built::strategy("sma-cross")).unwrap();
    let series = series();
    let wanted = replayed(&strategy(&plain, CallPath::Direct).unwrap(), &series, 1);
    assert!(wanted.orders.len() > 100, "{} orders", wanted.orders.len());
    let like = |what: &str, bytes: &[u8], on: &[CallPath]| {
        runs_like(&wanted, &series, what, bytes, on);
    };
    for version in ["1.0.1", "1.1.0", "1.9.9"] {
        let of_version = wat::replaced(&plain, "@1.0.0", &format!("@{version}"));
        like(version, &of_version, &BOTH);
    }
    let exports = wat::replaced(&plain, STRATEGY, "kumiki:strategy/guest@1.1.0");
    let mixed = wat::replaced(&exports, "@1.0.0", "@1.0.1");
    like("versions 1.0.1 and 1.1.0 in one", &mixed, &[CallPath::General]);
    like("renamed", &wat::replaced(&plain, "#advance", "#renamed"), &BOTH);
    like("two programs", &wat::with_another_program(&plain), &[CallPath::General]);
    let imports = Artefact::from_bytes("inner", plain.clone()).unwrap().imports().to_vec();
    let composed = wat::composed(&plain, &imports, STRATEGY);
    like("composed", &composed, &[CallPath::General]);
}

#[test]
fn a_strategy_of_the_next_major_version_is_refused_on_both_paths() {
    let plain = std::fs::read(built::strategy("sma-cross")).unwrap();
    let late = wat::replaced(&plain, "@1.0.0", "@2.0.0");
    for path in BOTH {
        let error = strategy(&late, path).map(drop).unwrap_err();
        assert!(error.starts_with("shape is built for `kumiki:strategy/"), "{error}");
        let advice = "this Kumiki runs strategies of every version 1.x. Build it for that, or take a newer Kumiki";
        assert!(error.contains("@2.0.0`; ") && error.ends_with(advice), "{error}");
    }
}

/// How texts lie in memory: the encoding, how letters are written, their width, and what is added to
/// a count.
type Written = (StringEncoding, fn(&str) -> Vec<u8>, usize, usize);

const WRITTEN: [Written; 4] = [
    (StringEncoding::UTF8, |text| text.as_bytes().to_vec(), 1, 0),
    (StringEncoding::UTF16, wide, 2, 0),
    // The highest bit of a count says that this text is UTF-16.
    (StringEncoding::CompactUTF16, wide, 2, 1 << 31),
    (StringEncoding::CompactUTF16, narrow, 1, 0),
];

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn narrow(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()
}

#[test]
fn a_strategy_runs_alike_in_every_encoding() {
    let says = "¥ und <b>£</b>";
    let series = series();
    let component = |(encoding, encode, width, flag): Written| {
        // In UTF-8 a letter has several bytes, and the bytes are counted.
        wat::component(&wat::acting(says, encode, width, flag), encoding)
    };
    let wanted = replayed(&strategy(&component(WRITTEN[0]), BOTH[0]).unwrap(), &series, 1);
    assert!(wanted.orders.len() > 50 && !wanted.fills.is_empty(), "{}", wanted.orders.len());
    assert!(wanted.log.iter().all(|line| line.message == says));
    assert!(wanted.signals.iter().all(|one| one.1.note.as_deref() == Some(says)));
    for (place, written) in WRITTEN.into_iter().enumerate() {
        let on: &[CallPath] = if place == 0 { &BOTH } else { &[CallPath::General] };
        runs_like(&wanted, &series, &format!("encoding {place}"), &component(written), on);
    }
}

fn formula(bytes: &[u8], path: CallPath) -> Result<FormulaModule, String> {
    sandbox(path).formula_from_bytes("shape", bytes.to_vec()).map_err(|error| error.to_string())
}

/// What a formula module says of itself and answers, to the bit.
fn answered(module: &FormulaModule) -> (String, Vec<u64>) {
    const ROWS: u32 = 40;
    let description = module.description();
    let values: Vec<f64> = description.parameters.iter().map(|one| one.default).collect();
    let mut instance = module.instantiate(Limits::formula()).unwrap();
    let inputs = instance.configure(&values).unwrap();
    let lags: u32 = inputs.iter().map(|one| one.last_lag - one.first_lag + 1).sum();
    let column = |lag: u32| -> Vec<f64> {
        (0..ROWS).map(|row| f64::from(row * 37 % 11 + lag * 5 % 7 + 1)).collect()
    };
    let columns: Vec<Vec<f64>> = (0..lags).map(column).collect();
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let mut out = vec![0.0; ROWS as usize];
    for _ in 0..3 {
        instance.evaluate(&columns, &mut out).unwrap();
    }
    (format!("{description:?} {inputs:?}"), out.iter().map(|value| value.to_bits()).collect())
}

fn answers_like(wanted: &(String, Vec<u64>), what: &str, bytes: &[u8], on: &[CallPath]) {
    for path in BOTH {
        match formula(bytes, path) {
            Ok(module) => {
                assert!(on.contains(&path), "{what} on {path:?}");
                assert_eq!(answered(&module), *wanted, "{what}, {path:?}");
            }
            Err(error) => {
                assert!(!on.contains(&path), "{what}: {error}");
                assert!(error.starts_with("shape cannot be called directly: "), "{error}");
            }
        }
    }
}

#[test]
fn a_formula_answers_alike_in_every_shape() {
    let plain = std::fs::read(built::formula("risk-adjusted-momentum")).unwrap();
    let wanted = answered(&formula(&plain, CallPath::Direct).unwrap());
    let numbers: std::collections::BTreeSet<_> = wanted.1.iter().collect();
    assert!(numbers.len() > 5, "agreement means something: {wanted:?}");
    for version in ["1.0.1", "1.1.0"] {
        let of_version = wat::replaced(&plain, "@1.0.0", &format!("@{version}"));
        answers_like(&wanted, version, &of_version, &BOTH);
    }
    answers_like(&wanted, "renamed", &wat::replaced(&plain, "#evaluate", "#answered"), &BOTH);
    let general = [CallPath::General];
    answers_like(&wanted, "two programs", &wat::with_another_program(&plain), &general);
    answers_like(&wanted, "composed", &wat::composed(&plain, &[], FORMULA), &general);
    let late = wat::replaced(&plain, "@1.0.0", "@2.0.0");
    for path in BOTH {
        let error = formula(&late, path).map(drop).unwrap_err();
        let start = format!("shape is built for `{}`; ", FORMULA.replace("1.0.0", "2.0.0"));
        assert!(error.starts_with(&start), "{error}");
    }
}

#[test]
fn a_formula_speaks_every_encoding() {
    let component = |(encoding, encode, width, flag): Written| {
        let mut text = wat::whole("formula");
        let texts = [("NAME", "in-any"), ("VERSION", "1 £"), ("SUMMARY", "¥ und £")];
        for (place, says) in texts {
            let bytes = encode(says);
            let escaped: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
            let count = ((bytes.len() / width) | flag).to_string();
            text = text.replace(&format!("COUNT_OF_{place}"), &count).replace(place, &escaped);
        }
        wat::formula(&text, encoding)
    };
    let wanted = answered(&formula(&component(WRITTEN[0]), CallPath::Direct).unwrap());
    assert!(wanted.0.contains("¥ und £"), "{}", wanted.0);
    for (place, written) in WRITTEN.into_iter().enumerate() {
        let on: &[CallPath] = if place == 0 { &BOTH } else { &[CallPath::General] };
        answers_like(&wanted, &format!("encoding {place}"), &component(written), on);
    }
}
