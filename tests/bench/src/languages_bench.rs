//! `cargo xtask bench languages`: `sma-cross` in Rust, C, Python and JavaScript over the same trades.

use sandbox::{CallPath, Sandbox, SandboxConfig, StrategyModule};
use serde_json::json;
use tests::{built, sample};

use crate::data::scratch;
use crate::measure::rate;
use crate::replay_bench::sandboxed;

/// Trading days and trades a day: an interpreter needs tens of microseconds for each.
const DATA: (u32, u32) = (2, 20_000);

/// Prints every figure.
pub(crate) fn run() {
    let rust = built::strategy("sma-cross");
    let mut guests = vec![
        ("Rust", load(&rust, None)),
        ("Rust, general path", load(&rust, Some(CallPath::General))),
    ];
    for (language, name) in [
        ("C", "sma-cross-c"),
        ("Python", "sma-cross-python"),
        ("JavaScript", "sma-cross-javascript"),
    ] {
        match built::in_language(name) {
            Ok(path) => guests.push((language, load(&path, None))),
            Err(reason) => eprintln!("skipped: {language}: {reason}"),
        }
    }
    let folder = scratch();
    sample::write(folder.path(), "72030", DATA.0, DATA.1, 7);
    let series = sample::load(folder.path(), "72030", &folder.path().join("cache"));
    let trades = series.len();
    for window in [1, 1_024] {
        let options = sample::options("{}", window, "1");
        let mut direct = None;
        for (language, module) in &guests {
            let (taken, result) = sandboxed(&series, module, &options);
            let (rust, digest) = *direct.get_or_insert((taken, result.digest));
            assert_eq!(result.digest, digest, "{language}: the same orders");
            let more = json!({
                "trades": trades,
                "orders": result.order_counts.all,
                "calls": module.call_path().as_str(),
                "times_rust_direct": taken.best / rust.best,
            });
            let figure = format!("sma-cross in {language}, window {window}");
            rate(&figure, "M trades/s", trades as f64 / 1e6, taken, &more);
        }
    }
}

fn load(path: &std::path::Path, call_path: Option<CallPath>) -> StrategyModule {
    let cache_folder = Some(built::language_cache());
    let config = SandboxConfig { cache_folder, call_path, ..SandboxConfig::default() };
    let loaded = Sandbox::new(config).and_then(|sandbox| sandbox.load(path));
    loaded.unwrap_or_else(|error| panic!("{error}"))
}
