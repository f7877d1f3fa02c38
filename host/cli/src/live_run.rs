//! `kumiki live`: a strategy on the live market, on paper or with real orders, through the engine that runs
//! (specification 2, "Replay and live control"; specification 4, P81 to P87, P108, P119, P122 to P127). The engine runs
//! it: this program starts it, follows it and stops it, and may go away while it runs.

mod holdings;
mod notes;
mod real;
mod told;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use domain::clock::{self, Stopwatch};
use domain::limits::INSTRUMENTS_MAX;
use domain::text::on_one_line;
use domain::{Money, price};
use engine::client::{Client, ClientError, Received};
use ipc::{
    Command, Decimal, EngineKind, EngineMode, EngineStartConfig, EngineStarted, EngineStopped,
    Event, GetSession, RunEnd, Session, SessionState, Shutdown, StartEngine, StopEngine,
    VenueLifecycle, error_code,
};

use crate::args::{Format, LiveRunArgs, LiveRunCommand, LiveStatusArgs, LiveStopArgs};
use crate::execution::{in_words, on_the_wire};
use crate::interrupt::{HangUp, Interrupt};
use crate::order::asked::{ANSWER_TIME, Answer, Attendant, Desk, LOOK, Nobody};
use crate::running_engine::{self, Folders, StartedEngine};
use crate::terminal::{grouped, pairs};
use crate::{Ending, order, output, strategy, wrong_arguments};

use notes::Notes;
use told::Told;

/// The venue whose market data the strategy gets.
const VENUE: &str = "local_broker";
/// The venue of orders on paper.
const PAPER: &str = "paper";
/// The most shares of one order on paper, unless the user says otherwise: a slip of the keyboard is more.
const PAPER_MAX_QTY: u64 = 100_000;
/// How often the state of a run is told, where it has changed.
const STATE_EVERY: Duration = Duration::from_secs(60);
/// How often notes of the journal are looked for.
const NOTES_EVERY: Duration = Duration::from_secs(1);
/// The same as [`STATE_EVERY`] after a fill.
const STATE_AFTER_FILL: Duration = Duration::from_secs(10);
/// How long it is waited for the end of an engine.
const END_TIME: Duration = Duration::from_secs(10);
/// What a strategy's file ends with.
const WASM: &str = ".wasm";

/// Runs a command.
pub(crate) fn run(command: &LiveRunCommand) -> Result<Ending> {
    match command {
        LiveRunCommand::Run(run) => start_and_follow(run),
        LiveRunCommand::Status(status) => self::status(status),
        LiveRunCommand::Stop(stop) => self::stop(stop),
        LiveRunCommand::Positions(positions) => holdings::show(positions),
        LiveRunCommand::Adjust(adjust) => holdings::adjust(adjust),
    }
}

/// What a run is asked to be.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    strategy_id: String,
    config: EngineStartConfig,
}

impl Wanted {
    fn of(args: &LiveRunArgs) -> Result<Self> {
        let ids: Vec<String> = args.instruments.iter().map(ToString::to_string).collect();
        let named: BTreeSet<&String> = ids.iter().collect();
        if named.len() < ids.len() {
            return Err(wrong_arguments("--instrument names an instrument twice; name each once"));
        }
        if ids.len() > INSTRUMENTS_MAX {
            let text = format!(
                "{} instruments; a strategy trades {INSTRUMENTS_MAX} at most, so name {INSTRUMENTS_MAX} or fewer",
                ids.len()
            );
            return Err(wrong_arguments(text));
        }
        if args.cash <= Money::ZERO {
            return Err(wrong_arguments(format!("--cash is {} yen; write more than 0", args.cash)));
        }
        if let Err(why) = args.execution.model().check() {
            return Err(wrong_arguments(why.to_string()));
        }
        let strategy_id = args.id.clone().unwrap_or_else(|| name_of(&args.strategy).to_owned());
        if !(1..=64).contains(&strategy_id.chars().count()) {
            return Err(wrong_arguments(format!(
                "`{strategy_id}` has not 1 to 64 characters; give the run a name with --id NAME"
            )));
        }
        let limits = real::limits(args)?;
        let is_on_paper = !args.real;
        let config = EngineStartConfig {
            instrument_id: ids[0].clone(),
            instrument_ids: Some(ids),
            granularity: Some(args.granularity.into()),
            initial_cash: is_on_paper.then(|| Decimal::from(args.cash)),
            strategy_file: Some(file_of(&args.strategy)?),
            strategy_init_kwargs: Some(strategy::parameters(&args.params).into_iter().collect()),
            execution: is_on_paper.then(|| on_the_wire(&args.execution, args.lot, args.ticks)),
            paper: is_on_paper.then_some(true),
            ..limits
        };
        Ok(Self { strategy_id, config })
    }

    /// The limits of its orders in a line.
    fn limits_in_words(&self) -> String {
        let config = &self.config;
        let limits = [
            (config.max_qty, "shares in an order"),
            (config.max_notional_jpy, "yen in an order"),
            (config.max_orders_per_minute, "orders in a minute"),
            (config.max_open_orders, "working orders"),
            (config.max_daily_loss_jpy, "yen loss in a day"),
            (config.max_position_qty, "shares in a position"),
        ];
        let words: Vec<String> = limits
            .iter()
            .filter_map(|(limit, what)| Some(format!("{} {what}", grouped(&(*limit)?.to_string()))))
            .collect();
        words.join(", ")
    }
}

/// A strategy's name: that of its file, without the ending.
fn name_of(strategy: &str) -> &str {
    let name = Path::new(strategy).file_name().and_then(|name| name.to_str()).unwrap_or(strategy);
    name.strip_suffix(WASM).unwrap_or(name)
}

/// A strategy as the engine finds it: its folder may be another one.
fn file_of(strategy: &str) -> Result<String> {
    let is_path = Path::new(strategy).components().count() > 1 || strategy.ends_with(WASM);
    if !is_path {
        return Ok(strategy.to_owned());
    }
    let whole = std::path::absolute(strategy)?;
    let text = whole.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        wrong_arguments(format!("{} is no text; give the file another name", whole.display()))
    })
}

/// Twice an amount of money, in whole yen.
fn twice(cash: Money) -> u64 {
    let yen = i128::from(cash.units()) * 2 / i128::from(price::UNITS_PER_YEN);
    u64::try_from(yen).unwrap_or_default().max(1)
}

/// How following a run ended.
struct Outcome {
    ending: Ending,
    /// The strategy may still run.
    goes_on: bool,
    /// Clients of the engine, this one too.
    clients: u32,
}

impl Outcome {
    const fn over(ending: Ending) -> Self {
        Self { ending, goes_on: false, clients: 1 }
    }
}

/// Waits for answers until Ctrl-C.
struct Waiting<'a>(&'a Interrupt);

impl Attendant for Waiting<'_> {
    fn hear(&mut self, _: &Received) {}

    fn goes_on(&mut self, _: &mut Client) -> Result<bool> {
        Ok(!self.0.is_wanted())
    }
}

fn start_and_follow(args: &LiveRunArgs) -> Result<Ending> {
    let wanted = Wanted::of(args)?;
    if args.real {
        real::check_who_asks(args)?;
    }
    let interrupt = Interrupt::listen()?;
    let closed = HangUp::listen()?;
    let folders = Folders::of(&args.attach.engine, args.engine.cache_dir.as_deref())?;
    let found = running_engine::or_start(
        &folders,
        &args.attach.engine,
        (&args.engine, EngineMode::Live),
        &interrupt,
    )?;
    let Some((client, started)) = found else { return Ok(Ending::Interrupted) };
    let mut desk = Desk { client, format: args.attach.format, venue: VENUE };
    let mut follower = Follower { args, wanted, folders, interrupt: &interrupt, closed: &closed };
    let outcome = follower.run(&mut desk).map_err(lost)?;
    if let Some(engine) = started {
        end_started(&mut desk, &engine, &outcome)?;
    }
    Ok(outcome.ending)
}

/// An error while a run is followed: the run may go on.
fn lost(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Ended(_)) => error.context(
            "the engine ended the connection; `kumiki live status` shows whether the strategy still runs",
        ),
        _ => error,
    }
}

/// Ends an engine that this command has started, where its run is over and nobody else uses it.
fn end_started(desk: &mut Desk, engine: &StartedEngine, outcome: &Outcome) -> Result<()> {
    let log = engine.log.display();
    if outcome.goes_on || outcome.clients > 1 {
        eprintln!("the engine goes on, and its log is {log}; `kumiki live stop --engine` ends it");
        return Ok(());
    }
    end_engine(desk)
}

/// Ends the engine, and waits until it has ended the connection.
fn end_engine(desk: &mut Desk) -> Result<()> {
    let request_id = desk.client.request_id()?;
    desk.client.send(&Command::Shutdown(Shutdown { request_id }))?;
    let watch = Stopwatch::start();
    while watch.elapsed() < END_TIME {
        match desk.client.next(LOOK) {
            Ok(_) => {}
            Err(ClientError::Ended(_)) => {
                eprintln!("the engine ended");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
    eprintln!("the engine has not ended within {} s; it is still ending", END_TIME.as_secs());
    Ok(())
}

/// Starts a run and follows it to its end.
struct Follower<'a> {
    args: &'a LiveRunArgs,
    wanted: Wanted,
    folders: Folders,
    interrupt: &'a Interrupt,
    closed: &'a HangUp,
}

impl Follower<'_> {
    fn run(&mut self, desk: &mut Desk) -> Result<Outcome> {
        if !desk.client.ready().dialects.contains_key(VENUE) {
            anyhow::bail!("the engine has no venue {VENUE}, which brings the market data");
        }
        if self.args.real {
            real::check_place(desk, self.args)?;
        }
        if let Some(answer) = self.make_ready(desk)? {
            return Ok(Outcome::over(order::ended(desk, answer, |_| String::new())?));
        }
        if self.args.real
            && let Some(ending) = self.make_real(desk)?
        {
            return Ok(Outcome::over(ending));
        }
        let request_id = desk.client.request_id()?;
        let Wanted { strategy_id, config } = self.wanted.clone();
        let start = StartEngine { request_id, engine: EngineKind::Live, strategy_id, config };
        // Ctrl-C counts from the start on: a run that has begun has to be stopped.
        let time = if self.args.real { real::START_TIME } else { ANSWER_TIME };
        let start = Command::StartEngine(Box::new(start));
        let answer = desk.ask_within(time, &mut Nobody, &start, |event, is_ours| {
            is_ours && matches!(event, Event::EngineStarted(_))
        })?;
        let Answer::Done(received) = answer else { return refused(desk, answer) };
        let Event::EngineStarted(started) = &received.event else {
            return Ok(Outcome::over(Ending::Problems));
        };
        match desk.format {
            Format::Json => println!("{}", received.text),
            Format::Table => print!("{}", self.begin(started)),
        }
        let told = Told::new(&started.strategy_id, &started.run_id, self.args.real);
        let notes = self.folders.of_run(&started.run_id).map(Notes::of);
        self.follow(desk, told, notes.filter(|_| desk.format == Format::Table))
    }

    /// Logs in at the desk's venue where that is needed. None: it can be used.
    fn make_ready(&self, desk: &mut Desk) -> Result<Option<Answer>> {
        let venue = desk.venue;
        let mut waiting = Waiting(self.interrupt);
        let Some(told) = desk.venue_state(&mut waiting)? else {
            return Ok(Some(Answer::Interrupted));
        };
        let why = match told.state {
            VenueLifecycle::Ready => return Ok(None),
            VenueLifecycle::TokenExpired => "the session has been ended there",
            VenueLifecycle::AppDown => "the gateway cannot be reached; start its program",
            VenueLifecycle::Disconnected | VenueLifecycle::LoggingIn => "",
        };
        if !why.is_empty() && !self.args.login {
            let text = format!("{venue}: {why}, and give --login to log in again");
            return Ok(Some(Answer::NotReady(text)));
        }
        eprintln!("logging in at {venue}; the engine may ask for the password");
        Ok(match desk.login(&mut waiting)? {
            Answer::Done(_) => None,
            other => Some(other),
        })
    }

    /// Logs in at the broker too, shows what is about to start, and asks whether it is meant. None: it is.
    fn make_real(&self, desk: &mut Desk) -> Result<Option<Ending>> {
        desk.venue = order::VENUE;
        let answer = self.make_ready(desk)?;
        let held = match answer {
            Some(answer) => return order::ended(desk, answer, |_| String::new()).map(Some),
            None => holdings::ask(desk)?,
        };
        let held = match held {
            Ok(held) => holdings::of_strategy(held, &self.wanted.strategy_id),
            Err(answer) => return order::ended(desk, answer, |_| String::new()).map(Some),
        };
        eprint!("{}", real::summary(desk, self.args, &self.wanted, &held));
        if !self.args.yes && !real::is_meant(&self.wanted.strategy_id)? {
            eprintln!("nothing was started");
            return Ok(Some(Ending::Problems));
        }
        if let Some(answer) = real::give_password(desk)? {
            return order::ended(desk, answer, |_| String::new()).map(Some);
        }
        desk.venue = VENUE;
        Ok(None)
    }

    /// What a person sees first.
    fn begin(&self, started: &EngineStarted<'_>) -> String {
        let ids: Vec<String> = self.args.instruments.iter().map(ToString::to_string).collect();
        let mut rows = vec![
            ("run", started.run_id.to_string()),
            ("strategy", format!("{} ({})", started.strategy_id, self.args.strategy)),
            ("instruments", ids.join(", ")),
        ];
        let at_most = ("at most", self.wanted.limits_in_words());
        if self.args.real {
            rows.push(("account", format!("{}: orders go to web_broker", started.account_id)));
            rows.push(at_most);
        } else {
            let account = format!("{}: on paper, no order goes to a broker", started.account_id);
            rows.extend([
                ("account", account),
                ("cash", format!("{} yen", grouped(&self.args.cash.to_string()))),
                at_most,
                ("execution", in_words(&self.args.execution.model())),
            ]);
        }
        if let Some(folder) = self.folders.of_run(&started.run_id) {
            rows.push(("folder", folder.display().to_string()));
        }
        format!(
            "{}\nCtrl-C stops the strategy. If this terminal closes, it goes on.\n\n",
            pairs(&rows)
        )
    }

    /// Tells what happens until the run is over, or until nobody follows it any more.
    fn follow(&self, desk: &mut Desk, mut told: Told, mut notes: Option<Notes>) -> Result<Outcome> {
        let watch = Stopwatch::start();
        let mut looked = Stopwatch::start();
        let mut clients = 1;
        let mut stopping: Option<(String, Stopwatch)> = None;
        let mut state = State::new(self.args.real);
        loop {
            if self.closed.is_told() || output::is_over() {
                eprintln!("the strategy goes on; `kumiki live stop` stops it");
                return Ok(Outcome { ending: Ending::Interrupted, goes_on: true, clients });
            }
            let is_over = self.args.lasts.is_some_and(|lasts| watch.elapsed() >= lasts);
            match &stopping {
                None if self.interrupt.is_wanted() || is_over => {
                    // A terminal that closes is told by a signal that asks for an end too.
                    clock::sleep(LOOK);
                    if !self.closed.is_told() {
                        let id = ask_to_stop(desk, &self.wanted.strategy_id)?;
                        stopping = Some((id, Stopwatch::start()));
                        eprintln!("stopping: working orders are cancelled; Ctrl-C leaves at once");
                    }
                    continue;
                }
                Some((_, since)) if since.elapsed() > ANSWER_TIME => {
                    output::failure(NO_ANSWER);
                    return Ok(Outcome { ending: Ending::Unknown, goes_on: true, clients });
                }
                _ => {}
            }
            if desk.format == Format::Table && stopping.is_none() {
                state.ask_if_due(desk)?;
            }
            if let Some(notes) = notes.as_mut().filter(|_| looked.elapsed() >= NOTES_EVERY) {
                looked = Stopwatch::start();
                notes.next().iter().for_each(|note| println!("warning: {}", on_one_line(note)));
            }
            let Some(received) = desk.client.next(LOOK)? else { continue };
            match &received.event {
                Event::ClientConnected(connected) => clients = connected.count,
                Event::Session(session) if state.is_answer(&session.request_id) => {
                    told.carry_in(&session.positions);
                    if let Some(line) = told.state(session) {
                        println!("{line}");
                    }
                }
                Event::Error(error) if is_of(&stopping, error.request_id.as_deref()) => {
                    output::failure(&on_one_line(&format!("{}: {}", error.code, error.message)));
                }
                event if told.is_ours(event) => {
                    state.has_filled |= matches!(event, Event::OrderFilled(_));
                    let line = told.line(event);
                    match (desk.format, line) {
                        (Format::Json, _) => println!("{}", received.text),
                        (Format::Table, Some(line)) => println!("{line}"),
                        (Format::Table, None) => {}
                    }
                    if let Event::EngineStopped(stopped) = event {
                        if desk.format == Format::Table {
                            print!("{}", told::end(stopped, Some(&told)));
                        }
                        let ending = how_it_ended(stopped, told.leaves_orders());
                        let goes_on = ending == Ending::OrdersWorking;
                        return Ok(Outcome { ending, goes_on, clients });
                    }
                }
                _ => {}
            }
        }
    }
}

/// When the state of a run is asked for.
struct State {
    asked: Option<String>,
    since: Stopwatch,
    has_filled: bool,
    is_due: bool,
}

impl State {
    /// At once where a run may have taken over a position.
    fn new(is_due: bool) -> Self {
        Self { asked: None, since: Stopwatch::start(), has_filled: false, is_due }
    }

    fn ask_if_due(&mut self, desk: &mut Desk) -> Result<()> {
        let wait = if self.has_filled { STATE_AFTER_FILL } else { STATE_EVERY };
        if !std::mem::take(&mut self.is_due) && self.since.elapsed() < wait {
            return Ok(());
        }
        let request_id = desk.client.request_id()?;
        self.asked = Some(request_id.as_text().into_owned());
        (self.since, self.has_filled) = (Stopwatch::start(), false);
        Ok(desk.client.send(&Command::GetSession(GetSession { request_id }))?)
    }

    fn is_answer(&self, request_id: &str) -> bool {
        self.asked.as_deref() == Some(request_id)
    }
}

/// Whether an error answers the wish to stop.
fn is_of(stopping: &Option<(String, Stopwatch)>, request_id: Option<&str>) -> bool {
    stopping.as_ref().is_some_and(|(id, _)| Some(id.as_str()) == request_id)
}

/// Asks the engine to stop a strategy; gives the id of the command.
fn ask_to_stop(desk: &mut Desk, strategy_id: &str) -> Result<String> {
    let request_id = desk.client.request_id()?;
    let id = request_id.as_text().into_owned();
    let strategy_id = strategy_id.to_owned();
    desk.client.send(&Command::StopEngine(StopEngine { request_id, strategy_id }))?;
    Ok(id)
}

/// What is told where no answer came in time.
const NO_ANSWER: &str =
    "no answer came in time; `kumiki live status` shows whether the strategy runs";

/// How the command ends by the end of a run; a fault is told. Orders that the run leaves come first (specification 4,
/// P127).
fn how_it_ended(stopped: &EngineStopped<'_>, leaves_orders: bool) -> Ending {
    let ending = match (stopped.status, &stopped.fault) {
        (RunEnd::Fault, Some(fault)) => {
            output::failure(&on_one_line(&format!("{}: {}", fault.code, fault.message)));
            Ending::StrategyFailed
        }
        (RunEnd::Fault, None) => Ending::StrategyFailed,
        (RunEnd::Completed | RunEnd::Stopped, _) => Ending::Done,
    };
    if leaves_orders { Ending::OrdersWorking } else { ending }
}

/// A start that did not become a run.
fn refused(desk: &mut Desk, answer: Answer) -> Result<Outcome> {
    if let Answer::Unknown(None) = answer {
        output::failure(NO_ANSWER);
        return Ok(Outcome { ending: Ending::Unknown, goes_on: true, clients: 1 });
    }
    let is_of_strategy = matches!(
        &answer,
        Answer::Refused(received) if matches!(
            &received.event,
            Event::EngineError(error) if error.code == error_code::STRATEGY_INIT_FAILED
        )
    );
    let ending = order::ended(desk, answer, |_| String::new())?;
    Ok(Outcome::over(if is_of_strategy { Ending::StrategyFailed } else { ending }))
}

/// The state of the engine's session, as it came.
fn ask_session(desk: &mut Desk) -> Result<Answer> {
    let request_id = desk.client.request_id()?;
    desk.ask(&Command::GetSession(GetSession { request_id }), |event, is_ours| {
        is_ours && matches!(event, Event::Session(_))
    })
}

fn status(args: &LiveStatusArgs) -> Result<Ending> {
    let folders = Folders::of(&args.attach.engine, None)?;
    let client = running_engine::any(&folders)?;
    let mut desk = Desk { client, format: args.attach.format, venue: VENUE };
    let answer = ask_session(&mut desk)?;
    let Answer::Done(received) = answer else { return Ok(refused(&mut desk, answer)?.ending) };
    match (desk.format, &received.event) {
        (Format::Table, Event::Session(session)) => print!("{}", in_rows(session, &folders)),
        _ => println!("{}", received.text),
    }
    Ok(Ending::Done)
}

/// The state of a session for people.
fn in_rows(session: &Session<'_>, folders: &Folders) -> String {
    let mut rows = vec![("state", format!("{:?}", session.state))];
    let count = |number: usize| grouped(&number.to_string());
    let text = |text: &Option<ipc::Text<'_>>| text.as_deref().unwrap_or("-").to_owned();
    if matches!(session.state, SessionState::Running | SessionState::Stopping) {
        let submitted = session.orders_submitted.iter().map(|order| order.status);
        let statuses = session.orders.iter().map(|order| order.status).chain(submitted);
        let working = statuses.clone().filter(|status| !status.is_final()).count();
        rows.extend([
            ("strategy", text(&session.strategy_id)),
            ("run", text(&session.run_id)),
            ("account", text(&session.account_id)),
            ("rows seen", grouped(&session.rows_done.to_string())),
            ("orders", format!("{} ({} working)", count(statuses.count()), count(working))),
            ("fills", count(session.executions.len())),
            ("signals", count(session.signals.len())),
            ("position", told::positions_in_words(&session.positions)),
        ]);
        if let Some(equity) = session.equity {
            rows.push(("equity", format!("{} yen", grouped(&equity.to_string()))));
        }
        let folder = session.run_id.as_deref().and_then(|run_id| folders.of_run(run_id));
        if let Some(folder) = folder {
            rows.push(("folder", folder.display().to_string()));
        }
    }
    if let Some(last) = &session.last_run {
        let how = told::how(last.status);
        rows.push(("last run", format!("{}: {how}, in {}", last.run_id, last.run_dir)));
        if let Some(fault) = &last.fault {
            rows.push(("", format!("{}: {}", fault.code, fault.message)));
        }
    }
    pairs(&rows)
}

fn stop(args: &LiveStopArgs) -> Result<Ending> {
    let folders = Folders::of(&args.attach.engine, None)?;
    let client = running_engine::any(&folders)?;
    let interrupt = Interrupt::listen()?;
    let mut desk = Desk { client, format: args.attach.format, venue: VENUE };
    let answer = ask_session(&mut desk)?;
    let Answer::Done(received) = answer else { return Ok(refused(&mut desk, answer)?.ending) };
    let Event::Session(session) = received.event else { return Ok(Ending::Problems) };
    let ending = match (session.state, session.strategy_id, session.run_id) {
        (SessionState::Running | SessionState::Stopping, Some(strategy), Some(run)) => {
            let is_running = session.state == SessionState::Running;
            stop_run(&mut desk, (&strategy, &run), is_running, &interrupt)?
        }
        _ if args.engine => Ending::Done,
        _ => {
            output::failure("no strategy runs");
            Ending::Problems
        }
    };
    // What did not end is not ended by force: the engine would cancel nothing more.
    match ending {
        Ending::Done | Ending::StrategyFailed if args.engine => end_engine(&mut desk)?,
        Ending::OrdersWorking if args.engine => eprintln!(
            "the engine goes on, because orders work; cancel them, or end it with the same command"
        ),
        _ => {}
    }
    Ok(ending)
}

/// Stops a run, or waits for the end of one that is ending.
fn stop_run(
    desk: &mut Desk,
    (strategy_id, run_id): (&str, &str),
    is_running: bool,
    interrupt: &Interrupt,
) -> Result<Ending> {
    let request_id = desk.client.request_id()?;
    let command = match is_running {
        true => Command::StopEngine(StopEngine { request_id, strategy_id: strategy_id.to_owned() }),
        // Somebody has asked already.
        false => Command::GetSession(GetSession { request_id }),
    };
    let mut watching = real::Watching::new(interrupt, strategy_id);
    let answer = desk.ask_before(
        &mut watching,
        &command,
        |event, _| matches!(event, Event::EngineStopped(stopped) if stopped.run_id == run_id),
    )?;
    let Answer::Done(received) = answer else { return Ok(refused(desk, answer)?.ending) };
    let Event::EngineStopped(stopped) = &received.event else { return Ok(Ending::Problems) };
    match desk.format {
        Format::Json => println!("{}", received.text),
        Format::Table => print!("{}", told::end(stopped, None).trim_start()),
    }
    Ok(how_it_ended(stopped, watching.leaves_orders()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::args::{self, Cli, LiveCommand};

    fn args_of(line: &str) -> LiveRunArgs {
        let line = format!("kumiki live run {line}");
        let cli = Cli::try_parse_from(line.split_whitespace());
        match cli.unwrap_or_else(|error| panic!("{error}")).command {
            args::Command::Live(LiveCommand::Live(LiveRunCommand::Run(run))) => *run,
            other => panic!("{other:?}"),
        }
    }

    fn wanted(line: &str) -> Result<Wanted> {
        Wanted::of(&args_of(line))
    }

    #[test]
    fn p82_a_run_says_its_limits_and_p119_that_it_is_on_paper() {
        let Wanted { strategy_id, config } = wanted("sma-cross --instrument 7203.TSE").unwrap();
        assert_eq!(strategy_id, "sma-cross");
        let told = serde_json::to_value(&config).unwrap();
        assert_eq!(
            told,
            json!({
                "instrument_id": "7203.TSE",
                "instrument_ids": ["7203.TSE"],
                "granularity": "Trade",
                "initial_cash": "10000000",
                "strategy_file": "sma-cross",
                "strategy_init_kwargs": {},
                "execution": {
                    "model": "realistic",
                    "latency_ns": 100_000_000,
                    "slippage_ticks": 1,
                    "participation_percent": 10,
                    "commission": exchange::Commission::online_broker().to_string(),
                    "same_day_round_trips": false,
                },
                "max_qty": 100_000,
                "max_notional_jpy": 20_000_000,
                "paper": true,
            })
        );
    }

    #[test]
    fn p82_a_run_takes_what_was_asked_for() {
        let line = "dir/my.own.wasm --instrument 7203.TSE --instrument 9984.TSE --param fast=5 --cash 0.5 \
                    --granularity minute --id mine --max-qty 500 --max-orders-per-minute 3 --max-open-orders 2 \
                    --max-daily-loss 50000 --max-position 600 --execution strict --latency 5ms --lot 10 --ticks etf";
        let asked = wanted(&line.replace("\\", "")).unwrap();
        let config = &asked.config;
        assert_eq!(asked.strategy_id, "mine");
        assert_eq!(config.instrument_ids.as_ref().map(Vec::len), Some(2));
        let file = config.strategy_file.clone().unwrap();
        assert!(Path::new(&file).is_absolute() && file.ends_with("my.own.wasm"), "{file}");
        assert_eq!(config.strategy_init_kwargs.as_ref().unwrap()["fast"], 5);
        assert_eq!(config.granularity, Some(ipc::Granularity::Minute));
        assert_eq!(config.max_notional_jpy, Some(1), "the least that the engine takes");
        let execution = config.execution.as_ref().unwrap();
        assert_eq!((execution.model.as_str(), execution.latency_ns), ("strict", Some(5_000_000)));
        assert_eq!((execution.lot, execution.ticks.as_deref()), (Some(10), Some("etf")));
        assert_eq!(
            asked.limits_in_words(),
            "500 shares in an order, 1 yen in an order, 3 orders in a minute, 2 working orders, \
             50,000 yen loss in a day, 600 shares in a position"
        );
        let named = wanted("dir/my.own.wasm --instrument 7203.TSE").unwrap();
        assert_eq!(named.strategy_id, "my.own");
    }

    /// P123: the limits that hold a bad strategy back are always sent; P83: and nothing of the simulated exchange.
    #[test]
    fn p83_p123_a_run_with_real_orders_says_its_limits() {
        let line = "dir/mine.wasm --instrument 7203.TSE --real --max-qty 200 --max-notional 600000";
        let Wanted { strategy_id, config } = wanted(line).unwrap();
        assert_eq!(strategy_id, "mine", "P126: by its file");
        let mut told = serde_json::to_value(&config).unwrap();
        told.as_object_mut().unwrap().remove("strategy_file");
        assert_eq!(
            told,
            json!({
                "instrument_id": "7203.TSE",
                "instrument_ids": ["7203.TSE"],
                "granularity": "Trade",
                "strategy_init_kwargs": {},
                "max_qty": 200,
                "max_notional_jpy": 600_000,
                "max_orders_per_minute": 30,
                "max_open_orders": 10,
                "max_position_qty": 200,
            })
        );
        let told = wanted(&format!(
            "{line} --max-position 500 --max-open-orders 2 --max-orders-per-minute 3 --max-daily-loss 9000"
        ));
        let config = told.unwrap().config;
        assert_eq!((config.max_position_qty, config.max_open_orders), (Some(500), Some(2)));
        assert_eq!(
            (config.max_orders_per_minute, config.max_daily_loss_jpy),
            (Some(3), Some(9_000))
        );
        for missing in ["--max-qty 200", "--max-notional 600000"] {
            let error = wanted(&line.replace(missing, "")).unwrap_err();
            assert!(crate::is_wrong_arguments(&error), "{error}");
            let flag = missing.split(' ').next().unwrap();
            assert!(error.to_string().contains(&format!("--real needs {flag}")), "{error}");
        }
    }

    #[test]
    fn what_cannot_run_is_a_wrong_argument() {
        let five = "1301 1332 1333 1375 1376".replace(' ', ".TSE --instrument ");
        for (line, why) in [
            (format!("s --instrument {five}.TSE"), "5 instruments; a strategy trades 4 at most"),
            ("s --instrument 7203.TSE --instrument 7203.TSE".to_owned(), "twice"),
            ("s --instrument 7203.TSE --cash 0".to_owned(), "--cash is 0 yen; write more than 0"),
            ("s --instrument 7203.TSE --participation 0".to_owned(), "participation is 0 percent"),
            (format!("{} --instrument 7203.TSE", "s".repeat(65)), "give the run a name with --id"),
        ] {
            let error = wanted(&line).unwrap_err();
            assert!(crate::is_wrong_arguments(&error), "{line}: {error}");
            assert!(error.to_string().contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn p108_the_status_shows_the_run_and_the_run_before() {
        let folders = Folders { config: "c".into(), cache: None };
        let rows = |fields: &str| {
            let text = format!(
                r#"{{"event":"Session","request_id":"a","instruments":[],"rows_total":0,"orders":[],"last_bars":[],
                    "last_trades":[],"sequence":1,{fields}}}"#
            );
            let Ok(Event::Session(session)) = serde_json::from_str(&text) else { panic!("{text}") };
            in_rows(&session, &folders)
        };
        let last = r#""last_run":{"run_id":"r0","run_dir":"runs/r0","final_equity":"-5","status":"fault",
                       "fault":{"code":"strategy_fault","message":"TOO_SLOW: 11 s"}}"#;
        assert_eq!(
            rows(&format!(r#""state":"Idle","rows_done":0,"positions":[],{last}"#)),
            "  state     Idle\n  last run  r0: failed, in runs/r0\n            strategy_fault: TOO_SLOW: 11 s\n"
        );
        let running = rows(
            r#""state":"Running","rows_done":12345,"run_id":"r1","strategy_id":"mine","account_id":"PAPER",
               "positions":[{"instrument_id":"7203.TSE","qty":"100","avg_open_price":"2850","market_value":"286000",
               "unrealized_pnl":"1000","side":"BUY","position_type":"cash","venue":"paper"}]"#,
        );
        for line in [
            "  strategy   mine\n",
            "  account    PAPER\n",
            "  rows seen  12,345\n",
            "  orders     0 (0 working)\n",
            "  position   7203.TSE 100 at 2,850 (+1,000 yen)\n",
        ] {
            assert!(running.contains(line), "{running}");
        }
    }

    #[test]
    fn p87_p127_the_exit_code_is_that_of_the_runs_end() {
        let stopped = |status, fault| EngineStopped {
            request_id: None,
            strategy_id: "s".into(),
            run_id: "r".into(),
            final_equity: Decimal::default(),
            status,
            fault,
            run_dir: "d".into(),
            rows_done: 0,
            ts_event_ms: 0,
        };
        assert_eq!(how_it_ended(&stopped(RunEnd::Stopped, None), false), Ending::Done);
        assert_eq!(how_it_ended(&stopped(RunEnd::Fault, None), false), Ending::StrategyFailed);
        // P127: the orders come first, however the run ended.
        for status in [RunEnd::Stopped, RunEnd::Fault] {
            assert_eq!(how_it_ended(&stopped(status, None), true), Ending::OrdersWorking);
        }
    }
}
