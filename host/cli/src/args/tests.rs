//! Helps, earlier names, and values of arguments.

use ::replay::instruments::{InstrumentName, TickChoice};
use domain::Quantity;

use super::replay::{parse_lot, parse_ticks};
use super::*;

#[test]
fn the_arguments_fit_together() {
    command().debug_assert();
}

/// All commands below one, as they are called, without those that are hidden.
fn below(command: &clap::Command, called: &str) -> Vec<(String, clap::Command)> {
    let own = (called.to_owned(), command.clone());
    let shown =
        command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let others = shown.flat_map(|one| below(one, &format!("{called} {}", one.get_name())));
    std::iter::once(own).chain(others).collect()
}

fn all() -> Vec<(String, clap::Command)> {
    let mut command = command();
    command.build();
    below(&command, "kumiki")
}

#[test]
fn texts_below_the_flags_fit_terminals() {
    for (name, command) in all() {
        let texts = [command.get_after_help(), command.get_after_long_help()];
        for text in texts.into_iter().flatten().map(ToString::to_string) {
            // Paragraphs are wrapped where they are shown; what stands by itself would be torn.
            let is_paragraph = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let lines: Vec<&str> = text.lines().collect();
            for line in lines.iter().filter(|line| !is_paragraph(line)) {
                assert!(line.chars().count() <= HELP_COLUMNS_MAX, "{name}: {line}");
            }
            for pair in lines.windows(2) {
                assert!(
                    !pair.iter().all(|line| is_paragraph(line)),
                    "{name} breaks a paragraph: {pair:?}"
                );
                // A manual page would take the two for one line.
                assert!(
                    !(pair[0].starts_with(' ') && is_paragraph(pair[1])),
                    "{name} needs an empty line: {pair:?}"
                );
            }
        }
    }
}

/// As it is shown where no terminal is that is narrower.
#[test]
fn lines_of_helps_are_short() {
    let all = all();
    assert!(all.len() >= 45 || cfg!(not(feature = "database")), "{}", all.len());
    for (name, mut command) in all {
        for text in [command.render_help(), command.render_long_help()] {
            for line in text.to_string().lines() {
                let columns = console::measure_text_width(line);
                assert!(columns <= HELP_COLUMNS_MAX, "{name}: {columns} columns: {line}");
            }
        }
    }
}

/// Lines of a screen.
const SCREEN: usize = 40;
/// Columns of a narrow one.
const NARROW: usize = 80;

#[test]
fn helps_fit_a_screen_and_end_with_two_examples() {
    for (name, mut command) in all() {
        let text = command.render_help().to_string();
        let lines = text.lines().count();
        assert!(lines <= SCREEN, "{name}: {lines} lines\n{text}");
        let (_, examples) = text.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{name}"));
        assert!(
            examples.lines().filter(|line| line.starts_with("  kumiki ")).count() == 2,
            "{text}"
        );
    }
}

/// The helps with the most options, on a narrow screen.
#[test]
fn helps_of_runs_and_sweeps_show_what_is_needed_first() {
    let all = all();
    for (name, last) in [("replay run", "execution"), ("replay sweep", "grid")] {
        let called = format!("kumiki {name}");
        let found = all.iter().find(|(command, _)| *command == called);
        let (_, command) = found.unwrap_or_else(|| panic!("no {called}"));
        let text = command.clone().term_width(NARROW).render_help().to_string();
        assert!(text.lines().count() <= SCREEN, "{text}");
        assert!(text.lines().all(|line| console::measure_text_width(line) <= NARROW), "{text}");
        assert!(text.trim_end().ends_with(&format!("All options: kumiki help {name}")), "{text}");
        for flag in
            ["data", "instrument", "from", "to", "granularity", "param", "cash", "out", last]
        {
            assert!(text.contains(&format!("--{flag} <")), "{name} --{flag}");
        }
    }
    let long = all.into_iter().find(|(command, _)| command == "kumiki replay run");
    let long =
        long.map(|(_, mut command)| command.render_long_help().to_string()).unwrap_or_default();
    assert!(long.contains("--window <") && long.contains("--guest-limit <"), "{long}");
    assert!(
        long.trim_end().rsplit("\n\n").next().is_some_and(|last| last.starts_with("Examples:\n")),
        "{long}"
    );
}

/// What a run on paper shows first, and where the rest is.
#[test]
fn the_help_of_a_live_run_shows_what_is_needed_first() {
    let called = "kumiki live run";
    let found = all().into_iter().find(|(command, _)| command == called);
    let (_, mut command) = found.unwrap_or_else(|| panic!("no {called}"));
    let text = command.clone().term_width(NARROW).render_help().to_string();
    assert!(text.lines().count() <= SCREEN, "{text}");
    assert!(text.trim_end().ends_with("All options: kumiki help live run"), "{text}");
    for flag in
        ["instrument", "param", "cash", "granularity", "max-qty", "max-notional", "execution", "id"]
    {
        assert!(text.contains(&format!("--{flag} <")), "--{flag}\n{text}");
    }
    assert!(text.contains("[default: realistic]"), "{text}");
    let long = command.render_long_help().to_string();
    for flag in ["max-daily-loss", "max-position", "latency", "lot", "local-broker", "port"] {
        assert!(!text.contains(&format!("--{flag} <")), "--{flag} is rare\n{text}");
        assert!(long.contains(&format!("--{flag} <")), "--{flag}\n{long}");
    }
    assert!(text.contains("--real ") && long.contains("--production"), "{long}");
}

#[test]
fn a_live_run_has_limits_above_zero_and_no_dates() {
    let told = |options: &str| {
        let line = format!("kumiki live run s --instrument 7203.TSE {options}");
        read(&mut command(), words_of(&line)).unwrap_err().to_string()
    };
    for option in ["max-qty", "max-notional", "max-orders-per-minute", "max-open-orders"] {
        assert!(told(&format!("--{option} 0")).contains(&format!("--{option} <")), "{option}");
    }
    for option in ["--from 2025-01-06", "--speed 5", "--out d", "--granularity day"] {
        let name = option.split(' ').next().unwrap();
        assert!(told(option).contains(name), "{option}");
    }
    // On paper they say nothing.
    for option in ["--production", "--yes"] {
        assert!(told(option).contains("--real"), "{option}");
    }
    // P83: with real orders there is no exchange to tune.
    for option in
        ["--cash 1000000", "--execution strict", "--latency 5ms", "--lot 10", "--ticks etf"]
    {
        let told = told(&format!("--real {option}"));
        assert!(told.contains("cannot be used with"), "{option}: {told}");
    }
    let real = "kumiki live run s --instrument 7203.TSE --real --max-qty 1 --production --yes";
    assert!(read(&mut command(), words_of(real)).is_ok());
    assert!(told("--lot 1306=10").contains("instruments.csv"), "{}", told("--lot 1306=10"));
    assert!(told("--id ''").contains("1 to 64 characters"));
    assert!(told("--for soon").contains("--for"));
    let missing = read(&mut command(), words_of("kumiki live run s")).unwrap_err().to_string();
    assert!(missing.contains("--instrument <ID>"), "{missing}");
}

/// The words of a line as a shell gives them, where only single quotes stand.
fn words_of(line: &str) -> Vec<OsString> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(OsString::from)),
            _ => words.push(part.into()),
        }
    }
    words
}

fn read_line(line: &str) -> String {
    let cli = read(&mut command(), words_of(line));
    format!("{:?}", cli.unwrap_or_else(|error| panic!("{line}: {error}")))
}

#[test]
#[cfg(feature = "database")]
fn every_command_has_examples_that_are_read() {
    let shown = all().into_iter().skip(1).map(|(name, _)| name.replacen("kumiki ", "", 1));
    let mut shown: Vec<String> = shown.collect();
    let mut named: Vec<&str> = examples::EXAMPLES.iter().map(|(path, _)| *path).collect();
    shown.sort_unstable();
    named.sort_unstable();
    assert_eq!(shown, named);
    for (path, examples) in examples::EXAMPLES {
        for example in examples {
            assert!(example.starts_with(&format!("kumiki {path}")), "{example}");
            read_line(example);
        }
    }
}

/// Earlier names of commands and flags, and their names of today: both are read as the same.
#[cfg(feature = "database")]
const EARLIER: [(&str, &str); 32] = [
    ("update --data-dir p", "data update --prices p"),
    ("update", "data update"),
    ("update board --recordings r --data-dir p", "data boards --recordings r --prices p"),
    ("--log warn update -q --codes 7203", "--log warn data update -q --codes 7203"),
    ("rank", "rank query"),
    ("rank --data-dir p --sort-by -Close", "rank query --prices p --sort-by -Close"),
    ("rank --limit 5 --threads 2", "rank query --limit 5 --jobs 2"),
    ("rank query --cache c", "rank query --cache-dir c"),
    ("rank formulas --cache c --data-dir p", "rank formulas --cache-dir c --prices p"),
    ("rank publish --data-dir p", "rank publish --prices p"),
    ("rank serve --data-dir p --cache c", "rank serve --prices p --cache-dir c"),
    ("rank serve --cors-origin http://a", "rank serve --allow-origin http://a"),
    ("rank serve --threads 3", "rank serve --jobs 3"),
    ("replay sweep merge a b --out c", "replay merge a b --out c"),
    (
        "replay run s --data d --instrument 7203.TSE --start 2025-01-06 --end 2025-01-07",
        "replay run s --data d --instrument 7203.TSE --from 2025-01-06 --to 2025-01-07",
    ),
    (
        "replay run s --data d --instrument 7203.TSE --cache c",
        "replay run s --data d --instrument 7203.TSE --cache-dir c",
    ),
    (
        "replay sweep s --data d --instrument 7203.TSE --grid a=1 --start 2025-01-06",
        "replay sweep s --data d --instrument 7203.TSE --grid a=1 --from 2025-01-06",
    ),
    ("data sample --out d --start 2025-01-06", "data sample --out d --from 2025-01-06"),
    ("data sample --daily --data-dir p", "data sample --daily --prices p"),
    ("data info d --cache c", "data info d --cache-dir c"),
    ("strategy check s --cache c", "strategy check s --cache-dir c"),
    ("strategy list --cache c", "strategy list --cache-dir c"),
    ("sql --data-dir p --market-data d", "sql --prices p --data d"),
    ("sql --rows 3 --threads 2", "sql --limit 3 --jobs 2"),
    ("sim web-broker --data d --cache c", "sim web-broker --data d --cache-dir c"),
    ("sim local-broker --data d --cache c", "sim local-broker --data d --cache-dir c"),
    ("data check d -q", "data check d --quiet"),
    ("replay narrative r --order O-1", "replay narrative r --id O-1"),
    (
        "replay sweep s --data d --instrument 7203.TSE --grid a=1 --top 3",
        "replay sweep s --data d --instrument 7203.TSE --grid a=1 --limit 3",
    ),
    ("data update --as-of 2025-12-30", "data update --to 2025-12-30"),
    (
        "data convert a.csv.gz b.parquet --code 13060",
        "data convert a.csv.gz b.parquet --instrument 13060",
    ),
    (
        "data convert a.csv.gz b.parquet --code 13060",
        "data convert a.csv.gz b.parquet --instrument 1306.TSE",
    ),
];

#[test]
#[cfg(feature = "database")]
fn earlier_names_are_read_as_those_of_today() {
    for (earlier, today) in EARLIER {
        assert_eq!(read_line(&format!("kumiki {earlier}")), read_line(&format!("kumiki {today}")));
    }
    // Two earlier names are no aliases. What a guest may use: `--limit` counts rows. And the number of issues of
    // a sample: `--codes` is a list everywhere else, and 7203 would be so many issues.
    for (line, name) in [
        ("rank query --limit memory=1MiB", "limit"),
        ("replay run s --data d --limit fuel=5", "limit"),
        ("data sample --daily --codes 7203", "write --issues N, like --issues 200"),
        ("data sample --codes 7203,9984", "--issues"),
    ] {
        let told = read(&mut command(), words_of(&format!("kumiki {line}"))).unwrap_err();
        assert!(told.to_string().contains(name), "{told}");
    }
}

/// Flags come before the file, and the file before what a setting is by itself.
#[test]
#[cfg(feature = "database")]
fn a_file_tunes_the_service_of_rankings() {
    let path = env::temp_dir().join(format!("kumiki-rank-{}.toml", std::process::id()));
    std::fs::write(&path, "[engine]\nport = 1\n[rank]\ntimeout = \"5s\"\nqueue = 7\nmemory = 2\n")
        .unwrap();
    let line = format!("kumiki rank serve --config {}", path.display());
    let from_file = read_line(&format!("{line} --queue 9"));
    let from_flags = read_line(&format!("{line} --queue 9 --timeout 5s --memory 2"));
    std::fs::remove_file(path).unwrap();
    assert_eq!(from_file, from_flags);
    assert!(from_file.contains("queue: 9") && from_file.contains("timeout: 5s"), "{from_file}");
}

#[test]
fn what_is_wrong_stands_beside_the_usage_of_its_command() {
    let told = |line: &str| {
        asked_for(words_of(line)).error(ErrorKind::ValueValidation, "wrong").to_string()
    };
    for (line, usage) in [
        ("kumiki serve --mode live", "Usage: kumiki serve [OPTIONS] --mode <MODE>"),
        ("kumiki order modify x", "Usage: kumiki order modify [OPTIONS]"),
        ("kumiki --log warn watch 7203", "Usage: kumiki watch [OPTIONS] <TICKER>..."),
        ("kumiki nothing", "Usage: kumiki [OPTIONS] <COMMAND>"),
    ] {
        let told = told(line);
        assert!(told.starts_with("error: wrong\n\n") && told.contains(usage), "{told}");
    }
}

#[test]
fn parameters_keep_their_kind() {
    let value = |text: &str| parse_param(text).unwrap().1.to_string();
    assert_eq!(value("fast=20"), "20");
    assert_eq!(value("on=true"), "true");
    assert_eq!(value("price=1674.1"), "1674.1");
    assert_eq!(value("name=x y"), "\"x y\"");
    assert_eq!(value("list=[1]"), "\"[1]\"");
    assert!(parse_param("fast").is_err() && parse_param("=1").is_err());
    assert_eq!(value("most=18446744073709551615"), "18446744073709551615");
    assert_eq!(value("least=-9223372036854775808"), "-9223372036854775808");
    assert_eq!(value("none=0.0e-400"), "0.0");
    assert_eq!(value("small=5e-324"), "5e-324");
    assert_eq!(value("id=1e400x"), "\"1e400x\"");
    for (text, expected) in [
        ("x=18446744073709551616", "an integer beyond 64 bits"),
        ("x=-9223372036854775809", "an integer beyond 64 bits"),
        ("x=1e-400", "nearer to 0"),
        ("x=-0.1e-999", "nearer to 0"),
        ("x=1e400", "beyond the largest fraction"),
        ("x=-1e400", "beyond the largest fraction"),
    ] {
        let error = parse_param(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn dates_say_how_they_are_written() {
    assert!(parse_date("2025-01-31").is_ok());
    for text in ["2025-13-01", "2025-02-30", "tomorrow", ""] {
        assert!(parse_date(text).unwrap_err().contains("write YYYY-MM-DD"), "{text}");
    }
}

#[test]
fn lots_and_ticks_are_for_all_or_for_one() {
    let id: InstrumentName = "1306.TSE".parse().unwrap();
    assert_eq!(parse_lot("10"), Ok((None, Quantity::new(10))));
    assert_eq!(parse_lot("1306.TSE=10"), Ok((Some(id.clone()), Quantity::new(10))));
    let etf = TickChoice::Table(domain::TickTable::Etf);
    assert_eq!(parse_ticks("1306.TSE=etf"), Ok((Some(id), etf)));
    assert!(parse_lot("0").is_err() && parse_lot("1306.TSE=x").is_err());
    let code: InstrumentName = "1306".parse().unwrap();
    assert_eq!(parse_lot("1306=10"), Ok((Some(code), Quantity::new(10))));
    assert!(parse_lot("=10").is_err() && parse_lot("13 06=10").is_err());
}

#[test]
fn ticks_are_tables_or_steps() {
    assert_eq!("auto".parse(), Ok(TickChoice::Auto));
    let step = domain::TickTable::Fixed(domain::Price::from_units(1_000));
    assert_eq!("0.1".parse(), Ok(TickChoice::Table(step)));
    assert!("0".parse::<TickChoice>().is_err() && "fine".parse::<TickChoice>().is_err());
}
