//! Two examples of each command, which end its help. A test reads them as the program would.

/// Commands and their examples.
pub(super) const EXAMPLES: [(&str, [&str; 2]); 58] = [
    (
        "replay",
        [
            "kumiki replay run sma-cross --data data --instrument 7203.TSE --out runs/first",
            "kumiki replay compare runs/first runs/second",
        ],
    ),
    (
        "replay run",
        [
            "kumiki replay run sma-cross --data data --instrument 7203.TSE --param fast=5",
            "kumiki replay run ./mine.wasm --data data --instrument 7203.TSE --out mine",
        ],
    ),
    (
        "replay sweep",
        [
            "kumiki replay sweep sma-cross --data data --instrument 7203.TSE --grid fast=5:50:5 --out sweep",
            "kumiki replay sweep sma-cross --data data --instrument 7203.TSE --points p.csv --out sweep",
        ],
    ),
    (
        "replay merge",
        [
            "kumiki replay merge parts/a parts/b --out sweeps/all",
            "kumiki replay merge parts/a parts/b --points points.csv --out sweeps/all",
        ],
    ),
    (
        "replay verify",
        [
            "kumiki replay verify runs/first --data data",
            "kumiki replay verify runs/mine --data data --strategy ./mine.wasm",
        ],
    ),
    (
        "replay journal",
        [
            "kumiki replay journal runs/paper-1",
            "kumiki replay journal runs/paper-1 --component ./mine.wasm --format json",
        ],
    ),
    (
        "replay compare-live",
        [
            "kumiki replay compare-live runs/paper-1",
            "kumiki replay compare-live runs/paper-1 --component ./mine.wasm --out other.html",
        ],
    ),
    (
        "replay report",
        ["kumiki replay report runs/first", "kumiki replay report runs/first --out page.html"],
    ),
    (
        "replay compare",
        [
            "kumiki replay compare runs/first runs/second",
            "kumiki replay compare runs/first runs/second --out both.html",
        ],
    ),
    (
        "replay narrative",
        [
            "kumiki replay narrative runs/first",
            "kumiki replay narrative runs/first --id O-1 --format json",
        ],
    ),
    (
        "data",
        [
            "kumiki data sample --out data --instrument 7203.TSE",
            "kumiki data update --prices prices",
        ],
    ),
    (
        "data sample",
        [
            "kumiki data sample --out data --bars --instrument 7203.TSE",
            "kumiki data sample --daily --issues 200 --days 500 --prices prices",
        ],
    ),
    ("data check", ["kumiki data check data", "kumiki data check data --per-code --format json"]),
    (
        "data convert",
        [
            "kumiki data convert data/equities_trades_202501.csv.gz january.parquet",
            "kumiki data convert january.parquet back/equities_trades_202501.csv.gz",
        ],
    ),
    ("data info", ["kumiki data info data", "kumiki data info data --scan --format json"]),
    (
        "data instruments",
        [
            "kumiki data instruments data",
            "kumiki data instruments data --date 2025-10-31 --date 2025-11-04",
        ],
    ),
    (
        "data calendar",
        [
            "kumiki data calendar data",
            "kumiki data calendar data --from 2024-01-01 --to 2026-12-31",
        ],
    ),
    (
        "data update",
        [
            "kumiki data update --prices prices --days 1000",
            "kumiki data update --prices prices --from-files jquants",
        ],
    ),
    (
        "data boards",
        [
            "kumiki data boards --recordings recordings --prices prices",
            "kumiki data boards --recordings recordings --prices prices --format json",
        ],
    ),
    ("strategy", ["kumiki strategy list", "kumiki strategy check sma-cross"]),
    (
        "strategy check",
        [
            "kumiki strategy check sma-cross",
            "kumiki strategy check ./mine.wasm --param fast=5 --format json",
        ],
    ),
    ("strategy list", ["kumiki strategy list", "kumiki strategy list --strategies mine"]),
    ("strategy limits", ["kumiki strategy limits", "kumiki strategy limits --format json"]),
    (
        "rank",
        [
            "kumiki rank query --prices prices --sort-by 'Volume / Volume[-1]' --limit 5",
            "kumiki rank serve --prices prices",
        ],
    ),
    (
        "rank query",
        [
            "kumiki rank query --prices prices --sort-by 'Volume / Volume[-1]' --limit 5",
            "kumiki rank query --prices prices --from 2020-01-01 --adjusted --out ranks.parquet",
        ],
    ),
    (
        "rank serve",
        [
            "kumiki rank serve --prices prices --listen 127.0.0.1:8080",
            "kumiki rank serve --prices copy --listen 127.0.0.1:8081 --follow http://127.0.0.1:8080",
        ],
    ),
    ("rank publish", ["kumiki rank publish", "kumiki rank publish --prices prices"]),
    (
        "rank formulas",
        [
            "kumiki rank formulas --prices prices",
            "kumiki rank formulas --prices prices --add my_formula.wasm",
        ],
    ),
    (
        "sql",
        [
            "kumiki sql --prices prices 'SELECT code, max(close) FROM daily GROUP BY code'",
            "kumiki sql --runs runs 'SELECT run, return_ratio FROM runs' --format csv",
        ],
    ),
    (
        "serve",
        [
            "kumiki serve --mode replay --data data --standalone",
            "kumiki serve --mode live --standalone --config kumiki.toml",
        ],
    ),
    ("live", ["kumiki live run sma-cross --instrument 7203.TSE", "kumiki live status"]),
    (
        "live run",
        [
            "kumiki live run sma-cross --instrument 7203.TSE --param fast=5",
            "kumiki live run ./mine.wasm --instrument 7203.TSE --max-qty 500",
        ],
    ),
    ("live positions", ["kumiki live positions", "kumiki live positions --format json"]),
    (
        "live adjust",
        [
            "kumiki live adjust sma-cross 7203.TSE 200 1325.25 --why 'split 1 to 2'",
            "kumiki live adjust sma-cross 7203.TSE 0 0 --why 'sold by hand' --yes",
        ],
    ),
    ("live status", ["kumiki live status", "kumiki live status --format json"]),
    ("live stop", ["kumiki live stop", "kumiki live stop --engine"]),
    ("order", ["kumiki order submit 7203.TSE BUY 100 --price 2850", "kumiki order list"]),
    ("order login", ["kumiki order login", "kumiki order login --config-dir config"]),
    (
        "order submit",
        [
            "kumiki order submit 7203.TSE BUY 100 --price 2850",
            "kumiki order submit 7203.TSE SELL 100 --trigger 2700 --expire 2026-12-01",
        ],
    ),
    (
        "order modify",
        [
            "kumiki order modify my-order-1 --price 2860",
            "kumiki order modify --number 77 --quantity 200 --yes",
        ],
    ),
    ("order cancel", ["kumiki order cancel my-order-1", "kumiki order cancel --number 77 --yes"]),
    (
        "order cancel-all",
        ["kumiki order cancel-all", "kumiki order cancel-all --instrument 7203.TSE --side BUY"],
    ),
    ("order list", ["kumiki order list", "kumiki order list --status ACCEPTED --format json"]),
    (
        "order settle",
        [
            "kumiki order settle my-order-1 --number 12345",
            "kumiki order settle 3f2a-O-7 --strategy --not-at-broker",
        ],
    ),
    ("order password", ["kumiki order password", "kumiki order password --config-dir config"]),
    ("order watch", ["kumiki order watch", "kumiki order watch --format json"]),
    ("console", ["kumiki console --mode replay --data data", "kumiki console --print"]),
    ("watch", ["kumiki watch 7203 9984 --login", "kumiki watch 7203 --once"]),
    ("key", ["kumiki key set jquants-api-key", "kumiki key list"]),
    (
        "key set",
        [
            "kumiki key set jquants-api-key",
            "kumiki key set web-broker-private-key --file e_api_private_key.pem",
        ],
    ),
    ("key list", ["kumiki key list", "kumiki key list --format json"]),
    (
        "key remove",
        ["kumiki key remove jquants-api-key", "kumiki key remove jquants-api-key --store kernel"],
    ),
    ("sim", ["kumiki sim web-broker", "kumiki sim local-broker"]),
    (
        "sim web-broker",
        ["kumiki sim web-broker", "kumiki sim web-broker --data data --instrument 7203 --speed 60"],
    ),
    (
        "sim local-broker",
        [
            "kumiki sim local-broker",
            "kumiki sim local-broker --data data --instrument 7203 --speed 60",
        ],
    ),
    (
        "sim market",
        [
            "kumiki sim market --speed 60",
            "kumiki sim market --data data --instrument 7203 --speed 60",
        ],
    ),
    ("completions", ["kumiki completions bash", "kumiki completions fish"]),
    ("man", ["kumiki man", "kumiki man --out /tmp/man"]),
];

/// Ends the help of each command with its examples, and with where the options are that it leaves out.
pub(super) fn add(command: clap::Command) -> clap::Command {
    EXAMPLES.iter().fold(command, |command, (path, [one, two])| {
        let words: Vec<&str> = path.split(' ').collect();
        at(command, path, &words, format!("Examples:\n  {one}\n  {two}"))
    })
}

/// Those of a command below another; a program without its database lacks some.
fn at(command: clap::Command, path: &str, words: &[&str], text: String) -> clap::Command {
    match words {
        [] => {
            let is_rare = |arg: &clap::Arg| arg.is_hide_short_help_set() && !arg.is_hide_set();
            let more = match command.get_arguments().any(is_rare) {
                true => format!("\n\nAll options: kumiki help {path}"),
                false => String::new(),
            };
            command.after_help(text + &more)
        }
        [first, ..] if command.find_subcommand(first).is_none() => command,
        [first, below @ ..] => command.mut_subcommand(first, |found| at(found, path, below, text)),
    }
}
