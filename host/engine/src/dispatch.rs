//! Answers the commands of clients.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::{InstrumentId, OrderFilter, Origin, ReasonCode, Rejection};
use ipc::{EngineMode, Event, Multiplier, OrderListFilter, SessionState, error_code};
use replay::RunCommand;

use crate::VENUE;
use crate::command::{AccountCommand, ClientCommand, MarketCommand, SessionCommand, VenueCommand};
use crate::console::{Page, forbidden};
use crate::decode::decode;
use crate::hub::{ClientId, OrderList};
use crate::limits::{LIST_ROWS_MAX, LISTS_WAITING_MAX};
use crate::live::{LOCAL_BROKER, WEB_BROKER};
use crate::present::session as present;
use crate::run::{PAPER, Run, RunKind};
use crate::session::{CommandContext, Core, Shared, UnderWay};

/// Venues that live trading knows.
const BROKERS: [&str; 2] = [WEB_BROKER, LOCAL_BROKER];

/// What a live engine says to commands for venues.
const NO_VENUE: &str = "this engine runs without that venue; live venues are web_broker and \
                        local_broker";
/// What a replay says to commands about logins.
pub(crate) const NO_LOGIN: &str = "a replay has no venue to log in at";

impl Shared {
    /// Answers one message of a client, which may be a page.
    pub(crate) fn handle(self: &Arc<Self>, client: ClientId, page: Option<&Page>, text: &str) {
        let now = self.started.elapsed();
        let command = match decode(text) {
            Ok(command) => command,
            Err(wrong) => {
                let mut core = self.lock();
                let event = match self.config.mode {
                    EngineMode::Replay => wrong.event(core.now(), VENUE, Some(Origin::Client)),
                    EngineMode::Live => {
                        let venue = match wrong.venue() {
                            Some(LOCAL_BROKER) => LOCAL_BROKER,
                            _ => WEB_BROKER,
                        };
                        wrong.event(domain::clock::wall_now(), venue, None)
                    }
                };
                return match event {
                    Event::OrderRejected(_) => {
                        core.hub.broadcast(&event);
                        core.hub.count_error(client, now);
                    }
                    _ => core.hub.refuse(client, &event, now),
                };
            }
        };
        let request_id = command.request_id().map(|id| id.as_text().into_owned());
        let op = command.op();
        let venue = command.venue().map(str::to_owned);
        let (request_id, venue) = (request_id.as_deref(), venue.as_deref());
        let to = CommandContext { client, op, request_id, venue, now };
        let command = ClientCommand::from(command);
        if page.is_some_and(|page| !page.may_send(&command)) {
            return self.lock().hub.refuse(client, &forbidden(request_id), now);
        }
        match command {
            ClientCommand::Session(command) => self.session_command(&to, command),
            ClientCommand::Venue(command) => self.venue_command(&to, command),
            ClientCommand::Password(command) => self.password_command(&to, command),
            ClientCommand::Strategies(command) => self.strategies_command(&to, command),
            ClientCommand::Console(command) => self.console_command(&to, command),
        }
    }

    fn session_command(self: &Arc<Self>, to: &CommandContext<'_>, command: SessionCommand) {
        match command {
            SessionCommand::Hello => {
                let text = "this connection has had its Hello; send Hello once";
                self.lock().error(to, error_code::VALIDATION_ERROR, text);
            }
            SessionCommand::Ping => {
                let pong = present::pong(to, domain::clock::wall_now());
                self.lock().hub.send(to.client, &pong);
            }
            SessionCommand::Shutdown => {
                tracing::info!("a client ends the engine");
                self.shutdown.cancel();
            }
            SessionCommand::GetSession => {
                let core = self.lock();
                core.hub.send(to.client, &present::session(&core, to));
            }
            SessionCommand::Load(load) => self.load(to, &load),
            SessionCommand::Start(start) => self.start(to, &start),
            SessionCommand::Stop(strategy_id) => self.lock().stop(to, &strategy_id),
            SessionCommand::SetSpeed(multiplier) => self.lock().set_speed(to, multiplier),
        }
    }

    /// Answers a command for the replay.
    pub(crate) fn replay_command(&self, to: &CommandContext<'_>, command: VenueCommand) {
        match command {
            VenueCommand::Order(order) => self.lock().order_instruction(to, &order),
            VenueCommand::Account(AccountCommand::OrderList(filter)) => {
                self.lock().list(to, &filter);
            }
            VenueCommand::Account(AccountCommand::BuyingPower) => {
                self.lock().answer_of_run(to, |run| present::buying_power(run, to.request_id));
            }
            VenueCommand::Account(AccountCommand::Positions) => {
                self.lock().answer_of_run(to, |run| present::positions(run, to.request_id));
            }
            VenueCommand::Market(MarketCommand::Subscribe(ticker)) => {
                self.subscribe(to, &ticker, true);
            }
            VenueCommand::Market(MarketCommand::Unsubscribe(ticker)) => {
                self.subscribe(to, &ticker, false);
            }
            VenueCommand::Market(MarketCommand::ReadBoard(_)) => {
                self.lock().not_in_replay(to, "past data have no order book");
            }
            VenueCommand::Market(MarketCommand::EvictLru)
            | VenueCommand::Account(AccountCommand::Login | AccountCommand::VenueState) => {
                self.lock().not_in_replay(to, NO_LOGIN);
            }
        }
    }

    /// Whether the venue of a command is the replay of this process (specification 4, P73); refuses the command else.
    pub(crate) fn is_here(
        &self,
        to: &CommandContext<'_>,
        command: &VenueCommand,
        venue: &str,
    ) -> bool {
        let is_live = self.config.mode == EngineMode::Live;
        if venue == VENUE && !is_live {
            return true;
        }
        let is_known = venue == VENUE || BROKERS.contains(&venue);
        if is_live
            && !is_known
            && let Some(id) = command.order_id()
        {
            // Commands about orders are rejected (specification 4, P23b).
            let text = match venue {
                // Its account is the strategy's alone (specification 4, P119).
                PAPER => format!(
                    "VENUE: `{PAPER}` takes orders of a strategy only; write {WEB_BROKER} or {LOCAL_BROKER}"
                ),
                _ => format!("VENUE: `{venue}` is unknown; write {WEB_BROKER} or {LOCAL_BROKER}"),
            };
            self.reject(to, id, &Rejection::new(ReasonCode::ValidationError, text));
            return false;
        }
        let mut core = self.lock();
        let is_balance = matches!(
            command,
            VenueCommand::Account(AccountCommand::BuyingPower | AccountCommand::Positions)
        );
        if !is_known {
            let known = match venue {
                PAPER if is_live => format!(
                    "VENUE: `{PAPER}` takes no commands; GetSession tells what its strategy has"
                ),
                _ => {
                    format!("VENUE: `{venue}` is unknown; write replay, web_broker or local_broker")
                }
            };
            core.error(to, error_code::VALIDATION_ERROR, &known);
        } else if is_live {
            let why = if venue == VENUE {
                "VENUE: this engine trades and has no `replay`; start one with --mode replay"
            } else {
                NO_VENUE
            };
            core.error(to, error_code::VENUE_NOT_AVAILABLE, why);
        } else if core.state() == SessionState::Idle || is_balance {
            core.not_in_replay(to, "this process replays past data; the only venue is `replay`");
        } else {
            core.busy(to, "a replay session is open; its venue is `replay`");
        }
        false
    }

    /// Refuses a command that only venues take; `why` is why a replay does not.
    pub(crate) fn needs_venue(&self, to: &CommandContext<'_>, why: &str) {
        match self.config.mode {
            EngineMode::Live => self.lock().error(to, error_code::VENUE_NOT_AVAILABLE, NO_VENUE),
            EngineMode::Replay => self.lock().not_in_replay(to, why),
        }
    }

    fn subscribe(&self, to: &CommandContext<'_>, given: &str, wanted: bool) {
        let full = if given.contains('.') { given.to_owned() } else { format!("{given}.TSE") };
        let mut core = self.lock();
        let Ok(id) = full.parse::<InstrumentId>() else {
            let text = format!("TICKER: `{given}` is not a symbol; write it like 7203 or 7203.TSE");
            return core.error(to, error_code::VALIDATION_ERROR, &text);
        };
        let full = id.to_string();
        let ticker = crate::ticker(&full);
        let Some(tickers) = core.hub.tickers(to.client) else { return };
        if wanted && tickers.len() >= crate::limits::SUBSCRIPTIONS_MAX && !tickers.contains(ticker)
        {
            let most = crate::limits::SUBSCRIPTIONS_MAX;
            let text =
                format!("TICKER: a connection takes {most} tickers; unsubscribe another one");
            return core.error(to, error_code::VALIDATION_ERROR, &text);
        }
        if wanted {
            tickers.insert(ticker.to_owned());
        } else {
            tickers.remove(ticker);
        }
        let event = present::subscription(to, ticker, wanted);
        core.hub.send(to.client, &event);
    }
}

impl Core {
    pub(crate) fn not_in_replay(&mut self, to: &CommandContext<'_>, why: &str) {
        self.error(to, error_code::NOT_IN_REPLAY_MODE, why);
    }

    /// Refuses a command that only a run takes.
    pub(crate) fn not_running(&self, to: &CommandContext<'_>) {
        let reason = match (self.under_way, self.state()) {
            (Some(UnderWay::Start), _) => "the run is starting; wait for EngineStarted",
            (_, SessionState::Stopping) => "the run is ending; wait for EngineStopped",
            _ => "no run is under way; send StartEngine",
        };
        self.busy(to, reason);
    }

    /// Answers with what the run says, while it runs.
    fn answer_of_run<'a>(
        &'a self,
        to: &CommandContext<'_>,
        answer: impl FnOnce(&'a Run) -> Event<'a>,
    ) {
        match &self.run {
            Some(run) if self.state() == SessionState::Running => {
                self.hub.send(to.client, &answer(run));
            }
            _ => self.not_running(to),
        }
    }

    fn stop(&mut self, to: &CommandContext<'_>, strategy_id: &str) {
        let Some(run) = self.run.as_ref().filter(|_| self.state() == SessionState::Running) else {
            return self.not_running(to);
        };
        let running = &run.setup.strategy_id;
        if running != strategy_id {
            let text = format!("STRATEGY_ID: `{strategy_id}` does not run; `{running}` does");
            return self.error(to, error_code::VALIDATION_ERROR, &text);
        }
        self.stop_run(Some(to.request()));
    }

    fn set_speed(&mut self, to: &CommandContext<'_>, multiplier: Multiplier) {
        if self.state() != SessionState::Running {
            return self.not_running(to);
        }
        if self.run.as_ref().is_some_and(|run| run.setup.kind != RunKind::Replay) {
            return self.busy(to, "a live run goes with the market; only a replay has a speed");
        }
        let Core { hub, run: Some(run), .. } = self else { return };
        run.setup.multiplier = multiplier;
        run.setup.control.send(RunCommand::SetSpeed(crate::multiplier(multiplier)));
        hub.broadcast(&present::speed_changed(to, multiplier));
    }

    /// The orders of the run, also of one that has ended, in messages of limited size.
    fn list(&mut self, to: &CommandContext<'_>, filter: &OrderListFilter) {
        let OrderListFilter { status, instrument_id, date } = filter;
        let (status, date) = (status.as_deref(), date.as_deref());
        let filter = match OrderFilter::read(status, instrument_id.clone(), date, usize::MAX) {
            Ok(filter) => filter,
            Err(rejection) => {
                let text = crate::hub::text(&self.order_rejected(to, None, &rejection, None));
                return self.hub.send_text(to.client, text);
            }
        };
        let request_id = to.request_id.unwrap_or_default().to_owned();
        let run_id = self.run.as_ref().map(|run| run.setup.run_id.clone());
        let Some(lists) = self.hub.lists(to.client) else { return };
        if lists.len() >= LISTS_WAITING_MAX {
            return self.busy(to, "too many order lists wait for this client; read them first");
        }
        lists.push_back(OrderList { request_id, run_id, filter, seen: 0, sent: 0 });
        let is_only = lists.len() == 1;
        self.hub.signal_lists(to.client);
        if is_only && self.hub.wants_list(to.client) {
            self.continue_list(to.client);
        }
    }

    /// Sends a client the next message of its first list that has messages left. Each message has the orders as
    /// they are when it is made, as all events before it say.
    pub(crate) fn continue_list(&mut self, client: ClientId) {
        let Some(mut list) = self.hub.lists(client).and_then(VecDeque::pop_front) else { return };
        let run = self.run.as_ref().filter(|run| Some(&run.setup.run_id) == list.run_id.as_ref());
        let mut orders = Vec::new();
        let mut more = false;
        let mut seen = list.seen;
        if let Some(run) = run {
            for record in run.orders.numbered().skip(list.seen) {
                let row = present::listed_order(&list.filter, run, record);
                more = row.is_some() && orders.len() == LIST_ROWS_MAX;
                if more {
                    break;
                }
                seen += 1;
                orders.extend(row);
            }
        }
        list.seen = seen;
        list.sent += orders.len() as u64;
        let next = more.then_some(list.sent);
        let event = present::order_list(&list.request_id, orders, Some(more), next);
        self.hub.send(client, &event);
        if more && let Some(lists) = self.hub.lists(client) {
            lists.push_front(list);
        }
        self.hub.signal_lists(client);
    }
}
