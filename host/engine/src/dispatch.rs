//! Answers the commands of clients.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::{InstrumentId, Origin};
use ipc::{
    Command, EngineMode, Event, GetOrderList, Multiplier, OrderListUpdated, Pong,
    ReplaySpeedChanged, SessionState, StopEngine, Subscribed, Text, TickerInfo, Unsubscribed,
    error_code,
};
use replay::RunCommand;

use crate::VENUE;
use crate::decode::decode;
use crate::hub::{ClientId, OrderList};
use crate::ledger::{ListFilter, RequestContext};
use crate::limits::{LIST_ROWS_MAX, LISTS_WAITING_MAX};
use crate::live::{LOCAL_BROKER, WEB_BROKER};
use crate::session::{Core, Refusing, Shared, UnderWay};

/// Venues that live trading knows.
const BROKERS: [&str; 2] = [WEB_BROKER, LOCAL_BROKER];

/// What a live engine says to commands for venues.
const NO_VENUE: &str = "this engine runs without that venue; live venues are web_broker and \
                        local_broker";

impl Shared {
    /// Answers one message of a client.
    pub(crate) fn handle(self: &Arc<Self>, client: ClientId, text: &str) {
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
                        core.hub.tell_all(&event);
                        core.hub.count_error(client, now);
                    }
                    _ => core.hub.refuse(client, &event, now),
                };
            }
        };
        let request_id = command.request_id().map(|id| id.as_text().into_owned());
        let op = command.op();
        let venue = command.venue().map(str::to_owned);
        let (request_id_text, venue) = (request_id.as_deref(), venue.as_deref());
        let to = Refusing { client, op, request_id: request_id_text, venue, now };
        let Some(command) = self.take_for_venue(&to, command) else { return };
        if let Some(venue) = venue
            && !self.is_here(&to, &command, venue)
        {
            return;
        }
        let asked = RequestContext { client, request_id: request_id.clone().unwrap_or_default() };
        match command {
            Command::Hello(_) => {
                self.lock().error(
                    &to,
                    error_code::VALIDATION_ERROR,
                    "this connection has had its Hello; send Hello once",
                );
            }
            Command::Ping(ping) => {
                let ts_ms = domain::clock::wall_now().millis();
                let pong = Pong { request_id: ping.request_id.as_text(), ts_ms };
                self.lock().hub.tell(client, &Event::Pong(pong));
            }
            Command::Shutdown(_) => {
                tracing::info!("a client ends the engine");
                self.shutdown.cancel();
            }
            Command::GetSession(_) => {
                let core = self.lock();
                let session = core.session(&asked.request_id);
                core.hub.tell(client, &Event::Session(Box::new(session)));
            }
            Command::LoadReplayData(load) => self.load(&to, asked, &load),
            Command::StartEngine(start) => self.start(&to, asked, &start),
            Command::StopEngine(stop) => self.lock().stop(&to, asked, &stop),
            Command::SetReplaySpeed(speed) => self.lock().set_speed(&to, speed.multiplier),
            Command::Subscribe(subscribe) => self.subscribe(&to, &subscribe.ticker, true),
            Command::Unsubscribe(unsubscribe) => self.subscribe(&to, &unsubscribe.ticker, false),
            Command::SubmitOrder(submit) => self.lock().submit(&to, asked, submit),
            order @ (Command::ModifyOrder(_)
            | Command::CancelOrder(_)
            | Command::CancelAllOrders(_)) => self.lock().change(&to, asked, &order),
            Command::GetOrderList(list) => self.lock().list(&to, &list),
            Command::GetBuyingPower(_) => {
                let core = self.lock();
                if core.state() != SessionState::Running {
                    return core.not_running(&to);
                }
                let Core { hub, run: Some(run), .. } = &*core else { return };
                let event = Event::ReplayBuyingPower(run.buying_power(to.request_id));
                hub.tell(client, &event);
            }
            Command::GetPositions(_) => {
                let core = self.lock();
                if core.state() != SessionState::Running {
                    return core.not_running(&to);
                }
                let Core { hub, run: Some(run), .. } = &*core else { return };
                hub.tell(client, &Event::PositionsUpdated(run.positions(to.request_id)));
            }
            Command::SetSecondPassword(_) | Command::ForgetSecondPassword(_) => {
                self.needs_venue(&to, "a replay needs no second password");
            }
            Command::GetBoard(_) => {
                self.needs_venue(&to, "past data have no order book");
            }
            Command::EvictLru(_) | Command::RequestVenueLogin(_) | Command::GetVenueState(_) => {
                self.needs_venue(&to, "a replay has no venue to log in at");
            }
        }
    }

    /// Whether a command names a venue that this process has (specification 4, P73); refuses it else.
    fn is_here(&self, to: &Refusing<'_>, command: &Command, venue: &str) -> bool {
        if venue == VENUE && self.config.mode == EngineMode::Replay {
            return true;
        }
        let is_known = venue == VENUE || BROKERS.contains(&venue);
        if !is_known && self.refuse_unknown_venue(to, command) {
            return false;
        }
        let mut core = self.lock();
        if !is_known {
            let known =
                format!("VENUE: `{venue}` is unknown; write replay, web_broker or local_broker");
            core.error(to, error_code::VALIDATION_ERROR, &known);
            return false;
        }
        if self.config.mode == EngineMode::Live {
            let why = if venue == VENUE {
                "VENUE: this engine trades and has no `replay`; start one with --mode replay"
            } else {
                NO_VENUE
            };
            core.error(to, error_code::VENUE_NOT_AVAILABLE, why);
            return false;
        }
        let is_balance = matches!(command, Command::GetBuyingPower(_) | Command::GetPositions(_));
        if core.state() == SessionState::Idle || is_balance {
            core.not_in_replay(to, "this process replays past data; the only venue is `replay`");
        } else {
            core.busy(to, "a replay session is open; its venue is `replay`");
        }
        false
    }

    /// Refuses a command that only venues take; `why` is why a replay does not.
    fn needs_venue(&self, to: &Refusing<'_>, why: &str) {
        match self.config.mode {
            EngineMode::Live => self.lock().error(to, error_code::VENUE_NOT_AVAILABLE, NO_VENUE),
            EngineMode::Replay => self.lock().not_in_replay(to, why),
        }
    }

    fn subscribe(&self, to: &Refusing<'_>, given: &str, wanted: bool) {
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
        let request_id = to.request_id.unwrap_or_default().into();
        let (venue, ticker) = (VENUE.into(), Text::Borrowed(ticker));
        let event = if wanted {
            let ticker_info = TickerInfo {
                symbol: ticker.clone(),
                exchange: "TSE".into(),
                market_kind: "Stock".into(),
                display_name_ja: None,
            };
            Event::Subscribed(Subscribed { request_id, venue, ticker, ticker_info })
        } else {
            Event::Unsubscribed(Unsubscribed { request_id, venue, ticker })
        };
        core.hub.tell(to.client, &event);
    }
}

impl Core {
    pub(crate) fn not_in_replay(&mut self, to: &Refusing<'_>, why: &str) {
        self.error(to, error_code::NOT_IN_REPLAY_MODE, why);
    }

    /// Refuses a command that only a run takes.
    pub(crate) fn not_running(&self, to: &Refusing<'_>) {
        let reason = match (self.under_way, self.state()) {
            (Some(UnderWay::Start), _) => "the run is starting; wait for EngineStarted",
            (_, SessionState::Stopping) => "the run is ending; wait for EngineStopped",
            _ => "no run is under way; send StartEngine",
        };
        self.busy(to, reason);
    }

    fn stop(&mut self, to: &Refusing<'_>, asked: RequestContext, stop: &StopEngine) {
        let Some(run) = self.run.as_ref().filter(|_| self.state() == SessionState::Running) else {
            return self.not_running(to);
        };
        if run.setup.strategy_id != stop.strategy_id {
            let text = format!(
                "STRATEGY_ID: `{}` does not run; `{}` does",
                stop.strategy_id, run.setup.strategy_id
            );
            return self.error(to, error_code::VALIDATION_ERROR, &text);
        }
        self.stop_run(Some(asked));
    }

    fn set_speed(&mut self, to: &Refusing<'_>, multiplier: Multiplier) {
        if self.state() != SessionState::Running {
            return self.not_running(to);
        }
        let Core { hub, run: Some(run), .. } = self else { return };
        run.setup.multiplier = multiplier;
        // A run that is over takes no more.
        let _ = run.setup.commands.send(RunCommand::SetSpeed(crate::multiplier(multiplier)));
        let request_id = to.request_id.unwrap_or_default().into();
        hub.tell_all(&Event::ReplaySpeedChanged(ReplaySpeedChanged { request_id, multiplier }));
    }

    /// The orders of the run, also of one that has ended, in messages of limited size.
    fn list(&mut self, to: &Refusing<'_>, list: &GetOrderList) {
        let filter = match ListFilter::read(&list.filter) {
            Ok(filter) => filter,
            Err(rejection) => {
                let text = crate::hub::text(&self.order_rejected(to, None, &rejection, None));
                return self.hub.tell_text(to.client, text);
            }
        };
        let request_id = to.request_id.unwrap_or_default().to_owned();
        let run_id = self.run.as_ref().map(|run| run.setup.run_id.clone());
        let Some(lists) = self.hub.lists(to.client) else { return };
        if lists.len() >= LISTS_WAITING_MAX {
            return self.busy(to, "too many order lists wait for this client; read them first");
        }
        lists.push_back(OrderList { request_id, run_id, filter, seen: 0, told: 0 });
        let is_only = lists.len() == 1;
        self.hub.tell_of_lists(to.client);
        if is_only && self.hub.wants_list(to.client) {
            self.continue_list(to.client);
        }
    }

    /// Tells a client the next message of the first list that it was not told wholly. Each message tells
    /// orders as they are when it is told, as every event before it says.
    pub(crate) fn continue_list(&mut self, client: ClientId) {
        let Some(mut list) = self.hub.lists(client).and_then(VecDeque::pop_front) else { return };
        let run = self.run.as_ref().filter(|run| Some(&run.setup.run_id) == list.run_id.as_ref());
        let mut orders = Vec::new();
        let mut more = false;
        let mut seen = list.seen;
        if let Some(run) = run {
            for record in run.orders.numbered().skip(list.seen) {
                let row = list.filter.row(record, run.instrument(record.request.instrument));
                more = row.is_some() && orders.len() == LIST_ROWS_MAX;
                if more {
                    break;
                }
                seen += 1;
                orders.extend(row);
            }
        }
        list.seen = seen;
        list.told += orders.len() as u64;
        let event = Event::OrderListUpdated(OrderListUpdated {
            request_id: Text::Borrowed(&list.request_id),
            orders,
            more: Some(more),
            next: more.then_some(list.told),
        });
        self.hub.tell(client, &event);
        if more && let Some(lists) = self.hub.lists(client) {
            lists.push_front(list);
        }
        self.hub.tell_of_lists(client);
    }
}
