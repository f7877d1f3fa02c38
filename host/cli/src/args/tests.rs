//! Helps, and values of arguments.

use super::*;

#[test]
fn the_arguments_fit_together() {
    Cli::command().debug_assert();
}

/// All texts below the flags of a command, and of those below it.
fn after_helps(command: &clap::Command) -> Vec<(String, String)> {
    let own =
        command.get_after_help().map(|text| (command.get_name().to_owned(), text.to_string()));
    let below = command.get_subcommands().flat_map(after_helps);
    own.into_iter().chain(below).collect()
}

#[test]
fn helps_fit_terminals() {
    let helps = after_helps(&Cli::command());
    assert!(helps.len() >= 5, "{helps:?}");
    for (name, text) in helps {
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
        }
    }
}

/// A command as it is called, its help in short and as a whole, and those of all below it.
fn shown_helps(command: &clap::Command, called: &str) -> Vec<(String, String)> {
    let mut own = command.clone();
    let shown = [own.render_help(), own.render_long_help()];
    let shown = shown.map(|text| (called.to_owned(), text.to_string()));
    let below = command.get_subcommands().flat_map(|below| {
        let called = format!("{called} {}", below.get_name());
        shown_helps(below, &called)
    });
    shown.into_iter().chain(below).collect()
}

/// As it is shown where no terminal is that is narrower.
#[test]
fn lines_of_helps_are_short() {
    let mut command = Cli::command();
    command.build();
    let helps = shown_helps(&command, "kumiki");
    assert!(helps.len() >= 50, "{}", helps.len());
    for (called, text) in helps {
        for line in text.lines() {
            let columns = console::measure_text_width(line);
            assert!(columns <= HELP_COLUMNS_MAX, "{called}: {columns} columns: {line}");
        }
    }
}

#[test]
fn what_is_wrong_stands_beside_the_usage_of_its_command() {
    let told = |line: &str| {
        let arguments = line.split(' ').map(OsString::from);
        asked_for(arguments).error(ErrorKind::ValueValidation, "wrong").to_string()
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
