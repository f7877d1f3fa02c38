//! Rankings by modules against rankings by formulas, and what becomes of modules that fail.

use std::fs;
use std::sync::LazyLock;

use domain::Random;
use proptest::prelude::*;
use ranking::{
    CancelToken, EngineOptions, FormulaRegistry, RankEngine, RankError, RankOrder, RankQuery,
    Ranking,
};
use tempfile::TempDir;
use tests::daily_rows;

use crate::common::{engine, file, first_issue, formula, params, query, registry};

fn rank(engine: &RankEngine, query: &RankQuery) -> Result<Ranking, RankError> {
    engine.rank(query, &CancelToken::new())
}

/// A row with the bits of its values: day, code, rank, close, value, volume.
type Bits = (u32, u32, u32, u64, Option<u64>, Option<u64>);

fn rows(ranking: &Ranking) -> Vec<Bits> {
    let bits = |row: &ranking::RankRow| {
        (
            row.day,
            row.code,
            row.rank,
            row.close.to_bits(),
            row.sort_value.map(f64::to_bits),
            row.volume.map(f64::to_bits),
        )
    };
    ranking.rows.iter().map(bits).collect()
}

static ENGINE: LazyLock<RankEngine> = LazyLock::new(|| engine(2));
static MIRROR: LazyLock<(TempDir, FormulaRegistry)> =
    LazyLock::new(|| registry(&["formula-mirror"]));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_module_that_mirrors_a_formula_gives_the_same_rows(
        lag in prop_oneof![1_u32..8, 100_u32..200, Just(2_600)],
        start in 0_usize..150,
        length in 0_usize..150,
        limit in prop_oneof![1_u32..30, Just(500)],
        ascending in any::<bool>(),
        picked in proptest::option::of(proptest::collection::vec(0_usize..60, 0..20)),
    ) {
        let bound = MIRROR.1.bind("mirror", &params(&[("lag", f64::from(lag))])).unwrap();
        let by_module = query(&ENGINE, bound, limit);
        let all = rank(&ENGINE, &query(&ENGINE, formula("Close"), 1)).unwrap();
        let day = |place: usize| all.days[place.min(all.days.len() - 1)];
        let code = |place: &usize| all.codes[place % all.codes.len()].to_string();
        let by_module = RankQuery {
            from: day(start),
            to: day(start + length),
            order: if ascending { RankOrder::Asc } else { RankOrder::Desc },
            codes: picked.map(|picked| picked.iter().map(code).collect()),
            ..by_module
        };
        let text = format!("(Close - Close[-{lag}]) / Close[-{lag}] * 100");
        let by_formula = RankQuery { sort_by: formula(&text), ..by_module.clone() };
        let (module, formula) =
            (rank(&ENGINE, &by_module).unwrap(), rank(&ENGINE, &by_formula).unwrap());
        prop_assert_eq!(&module.days, &formula.days);
        prop_assert_eq!(rows(&module), rows(&formula));
    }
}

/// A module's columns are adjusted as those of a formula are.
#[test]
fn a_module_sees_adjusted_columns() {
    let folder = tempfile::tempdir().unwrap();
    let stream = &mut Random::of_seed(5);
    let first: domain::JstDate = "2024-01-01".parse().unwrap();
    let mut stored = Vec::new();
    for code in 1_300..1_330 {
        for date in first.iter_days().take(90) {
            let factor = [0.5, 0.2, 10.0, 1.0 / 3.0][stream.place(4)];
            let factor = if stream.place(40) == 0 { factor } else { 1.0 };
            let yen = 100 + i64::try_from(stream.place(500)).unwrap();
            stored.push(daily_rows::row(&code.to_string(), date, yen, Some(factor)));
        }
    }
    daily_rows::publish(folder.path(), &stored);
    let options = EngineOptions { threads: 2, ..EngineOptions::default() };
    let engine = RankEngine::open(folder.path(), options).unwrap();
    let mut spans = 0;
    for lag in [1, 7, 60] {
        let bound = MIRROR.1.bind("mirror", &params(&[("lag", f64::from(lag))])).unwrap();
        let text = format!("(Close - Close[-{lag}]) / Close[-{lag}] * 100");
        let adjusted = RankQuery { adjusted: true, ..query(&engine, bound, 500) };
        let module = rank(&engine, &adjusted).unwrap();
        let expected =
            rank(&engine, &RankQuery { sort_by: formula(&text), ..adjusted.clone() }).unwrap();
        assert_eq!(rows(&module), rows(&expected), "lag {lag}");
        let raw = rank(&engine, &RankQuery { adjusted: false, ..adjusted }).unwrap();
        assert_ne!(rows(&module), rows(&raw), "lag {lag}");
        assert_eq!(module.splits, expected.splits);
        let marked = module.rows.iter().filter(|row| module.spans_split(row) == Some(true));
        spans += marked.count();
    }
    assert!(spans > 500, "{spans} rows with a split in their lags");
}

#[test]
fn answers_do_not_depend_on_threads() {
    let packages = ["formula-mirror", "risk-adjusted-momentum", "limit-distance"];
    let (_folder, registry) = registry(&packages);
    for name in ["mirror", "risk-adjusted-momentum", "limit-distance"] {
        let answer = |threads: usize| {
            let engine = engine(threads);
            let bound = registry.bind(name, &[]).unwrap();
            rows(&rank(&engine, &query(&engine, bound, 20)).unwrap())
        };
        let one = answer(1);
        assert!(one.iter().any(|row| row.4.is_some()), "{name} has values");
        assert_eq!(one, answer(2), "{name}");
        assert_eq!(one, answer(1), "{name}");
    }
}

#[test]
fn instances_change_their_parameters_and_modules_take_turns() {
    let packages = [
        "formula-mirror",
        "risk-adjusted-momentum",
        "limit-distance",
        "formula-traps",
        "formula-answers-short",
        "formula-loops",
    ];
    let (_folder, registry) = registry(&packages);
    let engine = engine(1);
    let by = |name: &str, given: &[(&str, f64)]| {
        let bound = registry.bind(name, &params(given)).unwrap();
        rows(&rank(&engine, &query(&engine, bound, 5)).unwrap())
    };
    let (five, one) = (by("mirror", &[("lag", 5.0)]), by("mirror", &[("lag", 1.0)]));
    assert_ne!(five, one);
    // More modules than a worker keeps.
    for name in ["risk-adjusted-momentum", "limit-distance", "traps", "answers-short", "loops"] {
        by(name, &[]);
    }
    assert_eq!(by("mirror", &[("lag", 5.0)]), five);
    assert_eq!(by("mirror", &[("lag", 1.0)]), one);
}

#[test]
fn the_values_are_those_of_the_definition() {
    let (_folder, registry) = registry(&["limit-distance"]);
    let bound = registry.bind("limit-distance", &params(&[("side", 1.0)])).unwrap();
    let ranking = rank(&ENGINE, &query(&ENGINE, bound, 500)).unwrap();
    let before = rank(&ENGINE, &query(&ENGINE, formula("Close[-1]"), 500)).unwrap();
    let known = |row: &ranking::RankRow| {
        let is_it = |one: &&ranking::RankRow| (one.day, one.code) == (row.day, row.code);
        before.rows.iter().find(is_it).unwrap().sort_value
    };
    let mut checked = 0;
    for row in ranking.rows.iter().step_by(7) {
        let distance = known(row).map(|base| {
            let base = domain::Price::from_units((base * 10_000.0).round() as i64);
            let limits = domain::instrument::DailyLimits::around(base);
            (limits.high.units() as f64 / 10_000.0 - row.close) / row.close * 100.0
        });
        match (row.sort_value, distance) {
            (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-9),
            (found, expected) => assert_eq!(found, expected),
        }
        checked += usize::from(distance.is_some());
    }
    assert!(checked > 500, "{checked} rows");
}

#[test]
fn a_module_that_fails_is_an_error_with_its_name_and_the_first_day() {
    let packages = ["formula-traps", "formula-grows", "formula-answers-short", "formula-loops"];
    let (_folder, registry) = registry(&packages);
    let closes = first_issue(&ENGINE);
    // A close that comes again later: the first day is named, whichever worker is first.
    let later =
        |at: usize| closes[at + 1..].iter().filter(|(_, close)| *close == closes[at].1).count();
    let is_first = |at: usize| closes[..at].iter().all(|(_, close)| *close != closes[at].1);
    let at = (20..closes.len()).filter(|at| is_first(*at)).max_by_key(|at| later(*at)).unwrap();
    let (date, close) = closes[at];
    for name in ["traps", "grows", "answers-short", "loops"] {
        let bound = registry.bind(name, &params(&[("close", close)])).unwrap();
        for threads in [1, 2] {
            let engine = engine(threads);
            let failing = query(&engine, bound.clone(), 5);
            let error = rank(&engine, &failing).unwrap_err();
            assert_eq!(error.code(), "FORMULA_FAULT");
            let text = error.to_string();
            assert!(text.starts_with(&format!("formula `{name}` failed on {date}: it ")), "{text}");
            assert!(!text.contains('/') && !text.contains(".rs"), "{text}");
            // The engine goes on, and the days before are computed by a fresh instance.
            let good = RankQuery { to: closes[at - 1].0, ..failing };
            let ranking = rank(&engine, &good).unwrap();
            assert_eq!(
                rows(&ranking),
                rows(&rank(&engine, &RankQuery { sort_by: formula("Close"), ..good }).unwrap())
            );
        }
    }
}

#[test]
fn what_a_module_refuses_is_told() {
    let (folder, registry) = registry(&["formula-mirror", "limit-distance"]);
    let error = |name: &str, given: &[(&str, f64)]| {
        let error = registry.bind(name, &params(given)).unwrap_err();
        (error.code(), error.to_string())
    };
    assert_eq!(
        error("mirror", &[("lag", 2.5)]),
        (
            "FORMULA_PARAMS_INVALID",
            "formula `mirror` says: parameter `lag` is 2.5; it must be a whole number".to_owned()
        )
    );
    let (code, text) = error("mirror", &[("lag", 2_601.0)]);
    assert_eq!(
        (code, text.as_str()),
        ("FORMULA_PARAMS_INVALID", "parameter `lag` is 2601; it may be 1 to 2600")
    );
    assert_eq!(error("mirror", &[("days", 1.0)]).0, "FORMULA_PARAMS_INVALID");
    let (code, text) = error("momentum", &[]);
    assert_eq!(code, "FORMULA_UNKNOWN");
    assert!(text.contains("there are: limit-distance, mirror"), "{text}");
    // Another file under the listed name: not with this hash. What is in memory stays as it was.
    registry.bind("limit-distance", &[]).unwrap();
    fs::copy(file("formula-traps"), folder.path().join("mirror.wasm")).unwrap();
    let fresh = FormulaRegistry::open(folder.path(), None).unwrap();
    let error = fresh.bind("mirror", &[]).unwrap_err();
    assert_eq!(error.code(), "FORMULA_REFUSED");
    assert!(error.to_string().contains("does not match formulas.toml"), "{error}");
    let listed = fresh.list().unwrap();
    assert!(listed[0].details.is_ok() && listed[1].details.is_err());
}

#[test]
fn a_module_may_be_replaced_while_the_registry_is_open() {
    let (folder, registry) = registry(&["formula-mirror"]);
    let before = registry.bind("mirror", &[]).unwrap();
    let list = fs::read_to_string(folder.path().join("formulas.toml")).unwrap();
    fs::copy(file("limit-distance"), folder.path().join("new.wasm")).unwrap();
    let added = registry.add(&folder.path().join("new.wasm")).unwrap();
    let list =
        list.replace(before.sha256(), &added.listed.sha256).replace("mirror.wasm", "new.wasm");
    fs::write(folder.path().join("formulas.toml"), list).unwrap();
    assert_eq!(registry.bind("mirror", &[]).unwrap().sha256(), added.listed.sha256);
    assert_ne!(before.sha256(), added.listed.sha256);
}

#[test]
fn what_is_no_module_is_not_added() {
    let (folder, registry) = registry(&[]);
    let strategy = registry.add(&tests::built::strategy("sma-cross")).unwrap_err().to_string();
    assert!(strategy.contains("a formula may import nothing"), "{strategy}");
    let path = folder.path().join("text.wasm");
    fs::write(&path, "no module").unwrap();
    assert!(registry.add(&path).unwrap_err().to_string().contains("is not WebAssembly"));
    assert!(
        registry
            .add(&folder.path().join("none.wasm"))
            .unwrap_err()
            .to_string()
            .contains("none.wasm")
    );
    assert!(!folder.path().join("formulas.toml").exists());
}

#[test]
fn a_module_has_no_statement() {
    let (_folder, registry) = registry(&["formula-mirror"]);
    let by_module = query(&ENGINE, registry.bind("mirror", &[]).unwrap(), 5);
    let error = ENGINE.rank_by_sql(&by_module, &CancelToken::new()).unwrap_err();
    assert_eq!(error.code(), "NO_STATEMENT");
    assert_eq!(ENGINE.explain(&by_module, &CancelToken::new()).unwrap_err().code(), "NO_STATEMENT");
}

#[test]
fn answers_are_kept_by_content_and_parameters() {
    let (_folder, registry) = registry(&["formula-mirror"]);
    let options = EngineOptions { threads: 1, ..Default::default() };
    let engine = RankEngine::open(&crate::common::DATA, options).unwrap();
    let by = |lag: f64| {
        let bound = registry.bind("mirror", &params(&[("lag", lag)])).unwrap();
        rows(&rank(&engine, &query(&engine, bound, 5)).unwrap())
    };
    let (one, two) = (by(1.0), by(2.0));
    assert_ne!(one, two);
    assert_eq!((by(1.0), by(2.0)), (one, two));
}
