//! `kumiki sim local-broker`: a simulated local gateway, until it is told to end.

use anyhow::{Context, Result};
use domain::{Price, Quantity, TickTable};
use sim::local_broker::{Config, Issue, SecretString, Server, Source};

use crate::args::{LocalBrokerArgs, Traded};
use crate::sim::End;
use crate::{Ending, paths, wrong_arguments};

/// Runs the command.
pub(crate) fn run(args: &LocalBrokerArgs) -> Result<Ending> {
    let end = End::listen()?;
    let server = Server::start(config(args)?)?;
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

fn config(args: &LocalBrokerArgs) -> Result<Config> {
    let usual = Config::default();
    let has_data = args.data.is_some();
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
        source: source(args)?,
        speed: args.speed,
        begins: args.market_begins,
        holds_each_day: args.hold_each_day,
        first_day: args.first_day,
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

fn source(args: &LocalBrokerArgs) -> Result<Source> {
    if let Some(folder) = &args.data {
        let cache = args.cache.clone().or_else(paths::system_cache);
        return Ok(Source::Files {
            folder: folder.clone(),
            cache: cache
                .context("this system names no folder for caches; give one with --cache DIR")?,
            start: args.date.or(args.from),
            end: args.date.or(args.to),
        });
    }
    if args.still {
        return Ok(Source::Still);
    }
    let mean_gap_ms = u32::try_from(args.mean_gap.as_millis()).ok().filter(|gap| *gap > 0);
    let mean_gap_ms =
        mean_gap_ms.ok_or_else(|| wrong_arguments("--mean-gap is 1ms to 1000h".to_owned()))?;
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
