//! What comes before the start of a strategy with real orders: its limits, where its orders go, what it takes over,
//! and whether that is meant (specification 4, P122, P123, P126, P127).

use std::io::{IsTerminal, Write, stderr, stdin};
use std::time::Duration;

use anyhow::{Context, Result};
use engine::client::{Client, Received};
use ipc::{EngineStartConfig, Event, SecondPasswordState, StrategyPosition, error_code};

use super::{PAPER_MAX_QTY, VENUE, Wanted, holdings, twice};
use crate::args::LiveRunArgs;
use crate::interrupt::{Interrupt, Prompt};
use crate::order::asked::{Answer, Attendant, Desk, Nobody, second_password};
use crate::order::{self, place};
use crate::terminal::pairs;
use crate::{INTERRUPTED, output, wrong_arguments};

/// How long its start may take: two times 30 s for orders of earlier runs, and their cancels (specification 4, P104,
/// P105).
pub(super) const START_TIME: Duration = Duration::from_secs(120);
/// Orders that a strategy sends in 60 s at most, unless the user says otherwise (specification 4, P123).
const ORDERS_PER_MINUTE: u64 = 30;
/// Its orders that work at the same time at most, unless the user says otherwise (specification 4, P123).
const OPEN_ORDERS: u64 = 10;

/// A configuration with the limits of a run, on paper or not, and nothing else.
pub(super) fn limits(args: &LiveRunArgs) -> Result<EngineStartConfig> {
    let given = &args.limits;
    let needed = |limit: Option<u64>, flag: &str, example: u64| {
        limit.ok_or_else(|| {
            wrong_arguments(format!(
                "--real needs {flag}, a limit of each order, like {flag} {example}"
            ))
        })
    };
    let (max_qty, max_notional) = match args.real {
        true => (
            needed(given.max_qty, "--max-qty", 100)?,
            needed(given.max_notional, "--max-notional", 500_000)?,
        ),
        false => (
            given.max_qty.unwrap_or(PAPER_MAX_QTY),
            given.max_notional.unwrap_or_else(|| twice(args.cash)),
        ),
    };
    let or_real = |limit: Option<u64>, real: u64| limit.or(args.real.then_some(real));
    Ok(EngineStartConfig {
        instrument_id: String::new(),
        instrument_ids: None,
        start_date: None,
        end_date: None,
        granularity: None,
        initial_cash: None,
        strategy_file: None,
        strategy_init_kwargs: None,
        strategy_id: None,
        multiplier: None,
        execution: None,
        max_qty: Some(max_qty),
        max_notional_jpy: Some(max_notional),
        paper: None,
        max_orders_per_minute: or_real(given.max_orders_per_minute, ORDERS_PER_MINUTE),
        max_open_orders: or_real(given.max_open_orders, OPEN_ORDERS),
        max_daily_loss_jpy: given.max_daily_loss,
        max_position_qty: or_real(given.max_position, max_qty),
    })
}

/// Checks that somebody can be asked, or has said yes.
pub(super) fn check_who_asks(args: &LiveRunArgs) -> Result<()> {
    if args.yes || stdin().is_terminal() {
        return Ok(());
    }
    Err(wrong_arguments(
        "--real asks before it starts, and there is no terminal to ask at; give --yes to start without asking",
    ))
}

/// Checks that the engine has a broker, and that the real market is meant where it is one.
pub(super) fn check_place(desk: &Desk, args: &LiveRunArgs) -> Result<()> {
    let ready = desk.client.ready();
    if !ready.dialects.contains_key(order::VENUE) {
        anyhow::bail!("the engine has no venue {}, which takes the orders", order::VENUE);
    }
    check_production(is_production(desk, order::VENUE), args.production)
}

fn check_production(is_production: bool, is_meant: bool) -> Result<()> {
    match (is_production, is_meant) {
        (true, false) => Err(wrong_arguments(
            "the engine's broker is the real market; give --production as well as --real to trade there",
        )),
        (false, true) => {
            eprintln!(
                "note: --production changes nothing: the engine's broker is not the real market"
            );
            Ok(())
        }
        (true, true) | (false, false) => Ok(()),
    }
}

fn is_production(desk: &Desk, venue: &str) -> bool {
    let capabilities = desk.client.ready().venue_capabilities.get(venue);
    capabilities.is_some_and(|venue| venue.is_production)
}

/// What is about to start, in lines.
pub(super) fn summary(
    desk: &Desk,
    args: &LiveRunArgs,
    wanted: &Wanted,
    held: &[StrategyPosition<'_>],
) -> String {
    let gateway = if is_production(desk, VENUE) { "production" } else { "verification" };
    let ids: Vec<String> = args.instruments.iter().map(ToString::to_string).collect();
    let rows = [
        ("orders", format!("real ones, to {}: {}", order::VENUE, place(desk))),
        ("market data", format!("{VENUE}: {gateway}")),
        ("strategy", format!("{} ({})", wanted.strategy_id, args.strategy)),
        ("instruments", ids.join(", ")),
        ("at most", wanted.limits_in_words()),
        ("takes over", holdings::in_words(held)),
    ];
    format!("{}\n", pairs(&rows))
}

/// Has the id of the strategy typed, by who means to start it.
pub(super) fn is_meant(strategy_id: &str) -> Result<bool> {
    let _prompt = Prompt::begin(|| std::process::exit(i32::from(INTERRUPTED)))?;
    eprint!("Type the strategy's id, {strategy_id}, to start it: ");
    stderr().flush()?;
    let mut line = String::new();
    stdin().read_line(&mut line).context("cannot read the answer")?;
    Ok(line.trim() == strategy_id)
}

/// Asks for the second password where the engine holds none and somebody sits at a terminal. None: the run may start.
pub(super) fn give_password(desk: &mut Desk) -> Result<Option<Answer>> {
    let Some(state) = desk.venue_state(&mut Nobody)? else { return Ok(Some(Answer::Interrupted)) };
    if state.second_password == Some(SecondPasswordState::Held) {
        return Ok(None);
    }
    if stdin().is_terminal() && stderr().is_terminal() {
        let password = second_password()?;
        if !password.expose().is_empty() {
            return Ok(match desk.set_second_password(&password)? {
                Answer::Done(_) => None,
                other => Some(other),
            });
        }
    }
    eprintln!(
        "warning: the engine holds no second password; until you give it with `kumiki order password`, each order \
         of the strategy is rejected"
    );
    Ok(None)
}

/// Waits for the end of a run until Ctrl-C, and tells the orders that it leaves.
pub(super) struct Watching<'a> {
    interrupt: &'a Interrupt,
    strategy_id: &'a str,
    leaves_orders: bool,
}

impl<'a> Watching<'a> {
    pub(super) const fn new(interrupt: &'a Interrupt, strategy_id: &'a str) -> Self {
        Self { interrupt, strategy_id, leaves_orders: false }
    }

    /// Whether orders of the run work, or are unknown, after its end.
    pub(super) const fn leaves_orders(&self) -> bool {
        self.leaves_orders
    }

    fn take(&mut self, event: &Event<'_>) -> Option<String> {
        let Event::EngineError(error) = event else { return None };
        let is_ours = error.strategy_id.as_deref() == Some(self.strategy_id);
        if !is_ours || error.code != error_code::ORDERS_WORKING {
            return None;
        }
        self.leaves_orders = true;
        Some(format!("{}: {}", error.code, error.message))
    }
}

impl Attendant for Watching<'_> {
    fn hear(&mut self, received: &Received) {
        if let Some(why) = self.take(&received.event) {
            output::failure(&why);
        }
    }

    fn goes_on(&mut self, _: &mut Client) -> Result<bool> {
        Ok(!self.interrupt.is_wanted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_market_is_meant_twice() {
        assert!(check_production(false, false).is_ok());
        assert!(check_production(true, true).is_ok());
        assert!(
            check_production(false, true).is_ok(),
            "it is a simulator: nothing more is at stake"
        );
        let error = check_production(true, false).unwrap_err();
        assert!(crate::is_wrong_arguments(&error), "{error}");
        assert!(error.to_string().contains("--production"), "{error}");
    }

    /// P127: orders that a run leaves are told by who stops it too.
    #[test]
    fn p127_orders_that_a_run_leaves_are_noted() {
        let interrupt = Interrupt::never();
        let mut watching = Watching::new(&interrupt, "mine");
        let event = |code: &str, id: &str| -> Event<'static> {
            let text = format!(
                r#"{{"event":"EngineError","code":"{code}","message":"w-1, number 77, 100 open","strategy_id":"{id}"}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        for other in [event("orders_working", "another"), event("strategy_slow", "mine")] {
            assert_eq!(watching.take(&other), None);
        }
        assert!(!watching.leaves_orders());
        let told = watching.take(&event("orders_working", "mine")).unwrap();
        assert_eq!(told, "orders_working: w-1, number 77, 100 open");
        assert!(watching.leaves_orders());
    }
}
