//! `kumiki sim local-broker`: a simulated local gateway, until it is told to end.

use anyhow::{Context, Result};
use domain::{Price, Quantity, TickTable};
use sim::local_broker::{Config, Issue, SecretString, Server, ServerError, Source};

use crate::args::{FeedArgs, LocalBrokerArgs, Traded};
use crate::sim::{End, dates};
use crate::{Ending, paths, wrong_arguments};

/// Runs the command.
pub(crate) fn run(args: &LocalBrokerArgs) -> Result<Ending> {
    let end = End::listen()?;
    let server = start(args)?;
    println!(
        "{{\"listening\": {}, \"base_url\": \"{}\", \"push_url\": \"{}\"}}",
        server.address.port(),
        server.base_url(),
        server.push_url()
    );
    end.wait(args.until_stdin_closes)?;
    server.stop();
    Ok(Ending::Done)
}

fn start(args: &LocalBrokerArgs) -> Result<Server> {
    Server::start(config(args)?).map_err(not_started)
}

/// Why a gateway does not start, as an error of the command.
pub(crate) fn not_started(error: ServerError) -> anyhow::Error {
    match error {
        ServerError::Config(why) => wrong_arguments(why),
        // It knows itself whether the arguments are wrong.
        ServerError::Data(error) => anyhow::Error::from(*error),
        other => anyhow::Error::from(other),
    }
}

fn config(args: &LocalBrokerArgs) -> Result<Config> {
    let usual = Config::default();
    let has_data = args.feed.data.is_some();
    let issues = if args.instruments.is_empty() {
        let count = if has_data { 1 } else { usual.issues.len() };
        usual.issues[..count].to_vec()
    } else {
        let issues = args.instruments.iter().map(|traded| issue(traded, has_data, &usual));
        issues.collect::<Result<_>>()?
    };
    Ok(Config {
        port: args.port,
        dialect: args.dialect,
        password: SecretString::from(args.password.clone()),
        any_symbol: args.instruments.is_empty() && !has_data,
        issues,
        source: source(&args.feed)?,
        speed: args.feed.speed,
        begins: args.feed.market_begins,
        holds_each_day: args.feed.hold_each_day,
        first_day: args.feed.first_day,
        board_only_permille: args.board_only,
        quote_names: args.quote_names,
        registered: args.registered.clone(),
        has_rate_limit: !args.no_rate_limit,
        cash: args.cash,
        margin: args.margin,
        faults: args.faults.clone(),
        ..usual
    })
}

/// Where the trades of a market come from.
pub(crate) fn source(args: &FeedArgs) -> Result<Source> {
    if let Some(folder) = &args.data {
        let cache = args.cache_dir.clone().or_else(paths::system_cache);
        let (start, end) = dates(args.date, args.from, args.to)?;
        return Ok(Source::Files {
            folder: folder.clone(),
            cache: cache
                .context("this system has no folder for caches; give one with --cache-dir DIR")?,
            start,
            end,
        });
    }
    if args.still {
        return Ok(Source::Still);
    }
    let mean_gap_ms = u32::try_from(args.mean_gap.as_millis()).ok().filter(|gap| *gap > 0);
    let mean_gap_ms = mean_gap_ms.ok_or_else(|| {
        wrong_arguments("--mean-gap must be 1ms to 1000h; write a time like 500ms".to_owned())
    })?;
    Ok(Source::Walk { seed: args.seed, days: args.days, mean_gap_ms })
}

/// An issue asked for: of those that are usual the rest is known.
fn issue(traded: &Traded, has_data: bool, usual: &Config) -> Result<Issue> {
    let symbol = &traded.symbol;
    if has_data && traded.base.is_some() {
        let text = format!("{symbol}: prices come from --data; leave =PRICE out");
        return Err(wrong_arguments(text));
    }
    let known = usual.issues.iter().find(|issue| issue.symbol == *symbol);
    let base = traded.base.or(known.map(|issue| issue.base)).unwrap_or(Price::from_yen(1_000));
    let issue = known.cloned().unwrap_or_else(|| Issue {
        symbol: symbol.clone(),
        name: symbol.clone(),
        lot: Quantity::new(100),
        ticks: TickTable::Normal,
        base,
    });
    Ok(Issue { base, ..issue })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command, LiveCommand, SimCommand};

    fn started(line: &str) -> Result<Server> {
        let words = ["kumiki", "sim", "local-broker", "--port", "0"].into_iter();
        let cli = Cli::try_parse_from(words.chain(line.split_whitespace()));
        let Command::Live(LiveCommand::Sim(SimCommand::LocalBroker(args))) = cli.unwrap().command
        else {
            panic!("{line}")
        };
        start(&args)
    }

    #[test]
    fn what_cannot_be_started_is_a_wrong_argument() {
        let many: String =
            (1_301..1_352).map(|code: u32| format!("--registered {code} ")).collect();
        for (line, why) in [
            ("--days 0", "0 days: it must be 1 to"),
            ("--instrument 7203=0", "7203: a lot has at least one share, a price is above 0"),
            ("--instrument 7203 --instrument 7203=100", "7203: the list names it twice"),
            ("--registered 7203@99", "cannot register 7203@99"),
            (&many, "cannot register 1351@1"),
            ("--first-day 1900-01-01", "1900-01-01 is not a day of the years 1990 to 2200"),
            ("--cash=-1", "must be 0 or above"),
            (
                "--data . --cache-dir . --from 2026-02-01 --to 2026-01-01",
                "--from 2026-02-01 is after --to 2026-01-01",
            ),
            ("--data . --cache-dir . --instrument 7203 --instrument 7203.TSE", "7203.TSE"),
        ] {
            let error = started(line).unwrap_err();
            assert!(crate::is_wrong_arguments(&error), "{line}: {error:#}");
            assert!(error.to_string().contains(why), "{line}: {error:#}");
        }
        started("--still --instrument 7203=100 --first-day 2026-05-11").unwrap().stop();
        let nowhere = started("--data /nowhere --cache-dir /nowhere").unwrap_err();
        assert!(!crate::is_wrong_arguments(&nowhere), "{nowhere:#}");
    }
}
