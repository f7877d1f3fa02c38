//! A strategy with real orders: what it and the order desk tell each other, and the checks of its start and its end
//! (specification 4, P84, P86, P91, P97 to P107, P110, P121, P122, P126 to P128).
//!
//! The desk reports on its own thread. [`Shared::desk_event`] sends each event to clients and to the strategy's feed, in
//! that order. A start and an end ask the desk on the strategy's thread and wait for the answer.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::clock::wall_now;
use domain::fault::FaultKind;
use domain::{
    InstrumentId, InstrumentIx, OrderEvent, OrderOrigin, Price, Rejection, ShortText, TickTable,
};
use ipc::error_code;
use live::feed::FeedSender;
use live::notify::NoticeKind;
use live::real::{Broker, BrokerNews};
use orders::event::{
    DeskEvent, DeskOrderEvent, OwnOrder, Reply, Shortfall, Standing, StrategyEvent, VenueStage,
};
use orders::{DeskCommand, Recipient};
use replay::instruments::{Choices, InstrumentChoices, TickChoice};
use venues::RequestContext as VenueRequest;
use venues::local_broker::STRATEGY;
use venues::web_broker::{Masters, Ticks};

use super::WEB_BROKER;
use crate::limits::{ENDS_TIME, TAKEOVER_TIME, VENUE_STATE_TIME};
use crate::load::{Refusal, invalid};
use crate::present::desk_event;
use crate::session::{Core, Shared};
use crate::startup::{OnPositionMismatch, OwnOrdersAtEnd};

/// The request whose answer the strategy's own thread takes from its feed.
const STOP: &str = "stop";
/// Every other request of a strategy's run.
const ASK: &str = "ask";

/// The strategy's end of the order desk.
#[derive(Debug, Default)]
pub(crate) struct StrategyOrders(Mutex<Ends>);

#[derive(Debug, Default)]
struct Ends {
    /// There while a strategy with real orders starts or runs.
    run: Option<Trading>,
    /// There while an answer of the desk is waited for.
    answers: Option<Sender<Answer>>,
}

#[derive(Debug)]
struct Trading {
    strategy_id: ShortText,
    feed: FeedSender,
    /// The desk has handed the strategy its position: what it reports from now on is the strategy's to know.
    has_begun: bool,
}

/// An answer of the desk to the strategy's thread.
#[derive(Debug)]
enum Answer {
    State(VenueStage),
    TakenOver(Result<Standing, String>),
    OwnOrders(Vec<OwnOrder>),
}

impl StrategyOrders {
    fn lock(&self) -> MutexGuard<'_, Ends> {
        // Nothing is left half done under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self) -> Receiver<Answer> {
        let (sender, receiver) = channel();
        self.lock().answers = Some(sender);
        receiver
    }

    fn answer(&self, answer: Answer) {
        if let Some(answers) = &self.lock().answers {
            // Who has waited too long is gone.
            let _ = answers.send(answer);
        }
    }

    /// Gives the strategy that runs news, if it is this one.
    fn tell(&self, strategy_id: &str, news: BrokerNews) -> bool {
        let ends = self.lock();
        let of_run = |run: &&Trading| run.has_begun && *run.strategy_id == *strategy_id;
        let Some(run) = ends.run.as_ref().filter(of_run) else { return false };
        run.feed.broker(news);
        true
    }

    /// The strategy that runs with real orders.
    fn running(&self) -> Option<ShortText> {
        let ends = self.lock();
        ends.run.as_ref().filter(|run| run.has_begun).map(|run| run.strategy_id.clone())
    }
}

impl Shared {
    /// Takes an event of the desk, on the desk's thread: clients get it, then the strategy.
    pub(super) fn desk_event(&self, to: Recipient, event: &DeskEvent) {
        if self.answer_strategy(to, event) {
            return;
        }
        if let DeskEvent::Order(order) = event
            && let Some(strategy_id) = order.origin.as_ref().and_then(OrderOrigin::strategy_id)
        {
            return self.strategy_order(strategy_id, order, event);
        }
        // Made before the lock: a list may be long.
        if let Some(told) = desk_event(event) {
            self.lock().hub.send_to(to, &told);
        }
        if let DeskEvent::Strategy(event) = event {
            self.strategy_news(event);
        }
    }

    /// Takes an answer that only the strategy's thread waits for.
    fn answer_strategy(&self, to: Recipient, event: &DeskEvent) -> bool {
        let orders = &self.live.orders;
        match event {
            DeskEvent::Strategy(StrategyEvent::TakenOver { taken, .. }) => {
                if let (Ok(standing), Some(run)) = (taken, &mut orders.lock().run) {
                    run.has_begun = true;
                    run.feed.broker(BrokerNews::Standing(standing.clone()));
                }
                let taken = taken.clone().map_err(|unsettled| unsettled.message);
                orders.answer(Answer::TakenOver(taken));
            }
            DeskEvent::Strategy(StrategyEvent::OwnOrders { request_id, orders: own, .. }) => {
                if request_id == STOP {
                    if let Some(run) = &orders.lock().run {
                        run.feed.broker(BrokerNews::Left(own.clone()));
                    }
                } else {
                    orders.answer(Answer::OwnOrders(own.clone()));
                }
            }
            DeskEvent::Reply(reply) if to == Recipient::Client(STRATEGY) => {
                if let Reply::VenueState(standing) = reply {
                    orders.answer(Answer::State(standing.stage));
                }
            }
            _ => return false,
        }
        true
    }

    /// An event of a strategy's order. A fill of the strategy that runs comes with its marker and its position as one
    /// (P102).
    fn strategy_order(&self, strategy_id: &str, order: &DeskOrderEvent, event: &DeskEvent) {
        let runs = self.live.orders.running().is_some_and(|running| *running == *strategy_id);
        {
            let mut core = self.lock();
            if let Some(event) = desk_event(event) {
                core.hub.broadcast(&event);
            }
            if runs && let Core { hub, run: Some(run), .. } = &mut *core {
                let fill = run.broker_event(hub, order);
                if let Some(fill) = &fill {
                    self.notifier.tell(crate::start::fill_notice(run, fill));
                }
            }
        }
        if runs
            && order.is_written
            && let Some((_, event)) = order.for_sender()
        {
            self.live.orders.tell(strategy_id, BrokerNews::Order(event));
        }
    }

    /// What the desk says of the strategy that runs.
    fn strategy_news(&self, event: &StrategyEvent) {
        let halt = |strategy_id: &str, text: String| {
            self.live.orders.tell(strategy_id, BrokerNews::Fail(FaultKind::Halt(text)));
        };
        match event {
            StrategyEvent::Cash(cash) => {
                if let Some(strategy_id) = self.live.orders.running() {
                    self.live.orders.tell(&strategy_id, BrokerNews::Cash(*cash));
                }
            }
            StrategyEvent::FillNotWritten { strategy_id, why } => halt(
                strategy_id,
                format!(
                    "POSITION_FILE: a fill cannot be written to {} ({why}); free space on the disk and start again",
                    orders::AUDIT_FILE
                ),
            ),
            StrategyEvent::CameBack { strategy_id, client_order_id, venue_order_id, .. } => {
                let text = format!(
                    "ORDER_CAME_BACK: {client_order_id} is at the broker after all, with the number {venue_order_id}"
                );
                halt(strategy_id, text);
            }
            StrategyEvent::EndUnknown { strategy_id, order } => {
                halt(strategy_id, format!("ORDER_END_UNKNOWN: {order}"));
            }
            StrategyEvent::Mismatch(shortfall) => {
                let Some(strategy_id) = self.live.orders.running() else { return };
                let text = mismatch(&strategy_id, std::slice::from_ref(shortfall));
                self.strategy_error(error_code::POSITION_MISMATCH, &text);
                if self.config.strategy_rules.on_position_mismatch == OnPositionMismatch::Stop {
                    halt(&strategy_id, format!("POSITION_MISMATCH: {text}"));
                }
            }
            StrategyEvent::SecondPasswordNeeded { .. } => {
                let text = format!("{WEB_BROKER}: it wants the second password");
                self.notice(NoticeKind::PasswordNeeded, &text);
            }
            _ => {}
        }
    }

    /// The web broker can take orders (specification 4, P84).
    pub(super) fn check_order_desk(&self) -> Result<(), Refusal> {
        let not_ready = |why: &str| (error_code::VENUE_NOT_READY, format!("{WEB_BROKER}: {why}"));
        if self.live.web_broker.get().is_none() {
            let why = "this engine has no such venue; start it with one, see `kumiki help serve`";
            return Err(not_ready(why));
        }
        let phase = self.config.web_broker.as_ref().map(|web_broker| web_broker.rules.phase);
        if let Some(phase) = phase.filter(|phase| !phase.takes_notices()) {
            let phase = phase.as_str();
            return Err(not_ready(&format!(
                "in order_phase {phase} the broker's notices of fills are not read; strategies need O2 or O3"
            )));
        }
        let answers = self.live.orders.answers();
        if self.live.ask_desk(ASK, DeskCommand::VenueState).is_err() {
            return Err(not_ready("it takes no commands; try again"));
        }
        match answers.recv_timeout(VENUE_STATE_TIME) {
            Ok(Answer::State(VenueStage::Ready)) => Ok(()),
            Ok(Answer::State(stage)) => {
                Err(not_ready(&format!("it is {stage:?}; log in first with RequestVenueLogin")))
            }
            _ => Err(not_ready("it does not answer; try again")),
        }
    }

    /// Takes over what the strategy left behind: unknown orders, working ones, its position (P104, P105, P107, P126).
    /// Its events and its position go to `feed` from here on.
    pub(super) fn take_over(
        &self,
        strategy_id: &str,
        instruments: &[InstrumentId],
        feed: FeedSender,
    ) -> Result<Standing, Refusal> {
        let strategy_id = ShortText::from(strategy_id);
        let run = Trading { strategy_id: strategy_id.clone(), feed, has_begun: false };
        self.live.orders.lock().run = Some(run);
        let answers = self.live.orders.answers();
        let not_ready = |why: &str| (error_code::VENUE_NOT_READY, format!("{WEB_BROKER}: {why}"));
        let commands = [
            DeskCommand::StrategyRuns(Some(strategy_id.clone())),
            DeskCommand::TakeOver(strategy_id.clone()),
        ];
        for command in commands {
            if self.live.ask_desk(ASK, command).is_err() {
                return Err(not_ready("it takes no commands; try again"));
            }
        }
        let standing = match self.wait(&answers, TAKEOVER_TIME) {
            Some(Answer::TakenOver(Ok(standing))) => standing,
            Some(Answer::TakenOver(Err(message))) => {
                return Err((error_code::ORDERS_UNSETTLED, message));
            }
            _ => return Err(not_ready("it does not answer; try again")),
        };
        let is_traded = |id: &str| instruments.iter().any(|one| one.to_string() == id);
        let other = standing.held.iter().find(|held| !is_traded(&held.instrument_id));
        if let Some(other) = other {
            let shares = if other.quantity == 0 { other.margin } else { other.quantity };
            let text = format!("INSTRUMENT_IDS: holds {shares} of {}", other.instrument_id);
            return Err(invalid(text));
        }
        if !standing.shortfalls.is_empty()
            && self.config.strategy_rules.on_position_mismatch == OnPositionMismatch::Stop
        {
            let text = mismatch(&strategy_id, &standing.shortfalls);
            return Err((error_code::POSITION_MISMATCH, text));
        }
        Ok(standing)
    }

    /// Tells clients of what a run starts with that does not fit the account; called after its start.
    pub(super) fn warn_of_shortfalls(&self, strategy_id: &str, standing: &Standing) {
        if !standing.shortfalls.is_empty() {
            let text = mismatch(strategy_id, &standing.shortfalls);
            self.strategy_error(error_code::POSITION_MISMATCH, &text);
        }
    }

    /// A run with real orders has ended: its orders are cancelled where that is wanted, and what still works is told
    /// (P110, P127).
    pub(super) fn end_orders(&self, strategy_id: &str, has_failed: bool) {
        let id = ShortText::from(strategy_id);
        let has_begun = self.live.orders.running().is_some();
        let answers = self.live.orders.answers();
        let rules = self.config.strategy_rules;
        let (command, at_most) = match has_failed && rules.on_failure == OwnOrdersAtEnd::CancelAll {
            true => (DeskCommand::CancelOwn(id), ENDS_TIME),
            false => (DeskCommand::OwnOrders(id), VENUE_STATE_TIME),
        };
        if has_begun {
            let asked = self.live.ask_desk(ASK, command).ok();
            let text = match asked.and_then(|()| self.wait(&answers, at_most)) {
                Some(Answer::OwnOrders(left)) if left.is_empty() => None,
                Some(Answer::OwnOrders(left)) => {
                    Some(format!("orders of the strategy still work: {}", listed(&left)))
                }
                _ => Some(
                    "the order desk does not say which orders of the strategy still work; look at the \
                     order list"
                        .to_owned(),
                ),
            };
            if let Some(text) = text {
                self.strategy_error(error_code::ORDERS_WORKING, &text);
            }
        }
        // The desk may have ended with the engine.
        let _ = self.live.ask_desk(ASK, DeskCommand::StrategyRuns(None));
        *self.live.orders.lock() = Ends::default();
    }

    /// Waits for an answer of the desk, at most so long, and not longer than the engine runs.
    fn wait(&self, answers: &Receiver<Answer>, at_most: Duration) -> Option<Answer> {
        const LOOK: Duration = Duration::from_millis(50);
        let watch = domain::clock::Stopwatch::start();
        while watch.elapsed() < at_most {
            if let Ok(answer) = answers.recv_timeout(LOOK) {
                return Some(answer);
            }
            if self.live.desk_has_ended() {
                return None;
            }
        }
        None
    }
}

/// What the account lacks of a strategy's position, in words.
fn mismatch(strategy_id: &str, shortfalls: &[Shortfall]) -> String {
    let each = shortfalls.iter().map(|one| {
        let Shortfall { instrument_id, strategy, together, account } = one;
        let all = match together == strategy {
            true => String::new(),
            false => format!(", all strategies {together}"),
        };
        format!("{instrument_id}: the strategy holds {strategy} shares{all}, the account {account}")
    });
    let each: Vec<String> = each.collect();
    // Another strategy may have the number that is wrong.
    let whose = match shortfalls.iter().any(|one| one.together != one.strategy) {
        true => {
            "one of the strategies of `kumiki live positions` by `kumiki live adjust`".to_owned()
        }
        false => format!("it with `kumiki live adjust {strategy_id}`"),
    };
    format!("{}; if shares were sold by hand, split or moved, correct {whose}", each.join("; "))
}

/// Orders for people: ids, numbers and what is left of them.
fn listed(orders: &[OwnOrder]) -> String {
    let each = orders.iter().map(|order| {
        let number = order
            .venue_order_id
            .as_deref()
            .map_or_else(|| "outcome unknown".to_owned(), |number| format!("number {number}"));
        let OwnOrder { client_order_id, instrument_id, side, leaves, .. } = order;
        format!("{client_order_id} ({number}, {side} {leaves} {instrument_id})")
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Lots and price steps of the broker's masters (P85). An instrument whose lot the broker does not send has that of a
/// paper run.
pub(super) fn units_of(
    masters: &Masters,
    instruments: &[InstrumentId],
) -> Result<InstrumentChoices, Refusal> {
    let mut choices = InstrumentChoices { lots: Choices::default(), ticks: Choices::default() };
    for id in instruments {
        let issue = masters.issue(id.symbol()).ok_or_else(|| {
            invalid(format!("INSTRUMENT_ID: the broker's list of issues has no {id}"))
        })?;
        if issue.lot.shares() > 1 {
            let _ = choices.lots.add(Some(id.clone()), issue.lot);
        }
        let table = masters.ticks(issue).and_then(table_of);
        if let Some(table) = table {
            let _ = choices.ticks.add(Some(id.clone()), TickChoice::Table(table));
        }
    }
    Ok(choices)
}

/// The exchange's table that has the broker's steps.
fn table_of(ticks: &Ticks) -> Option<TickTable> {
    let is_same = |table: &TickTable| {
        let edges =
            || table.bands().map(|(up_to, _)| up_to).chain(ticks.bands().iter().map(|band| band.0));
        edges().all(|edge| {
            let above = Price::from_units(edge.units().saturating_add(1));
            [edge, above].into_iter().all(|price| table.tick_at(price) == ticks.tick_at(price))
        })
    };
    let one_step = match ticks.bands() {
        [(_, step)] => Some(TickTable::Fixed(*step)),
        _ => None,
    };
    TickTable::OFFICIAL.into_iter().find(is_same).or(one_step)
}

/// The broker as the strategy's thread reaches it.
#[derive(Debug)]
pub(super) struct EngineBroker {
    pub(super) shared: Arc<Shared>,
    pub(super) strategy_id: ShortText,
    pub(super) instruments: Vec<InstrumentId>,
    /// Places in the desk's table by the instruments' names.
    pub(super) places: BTreeMap<String, InstrumentIx>,
}

impl EngineBroker {
    pub(super) fn new(
        shared: &Arc<Shared>,
        strategy_id: &str,
        instruments: &[InstrumentId],
    ) -> Self {
        let names = instruments.iter().map(ToString::to_string);
        let places = shared.live.web_broker.get().map(|desk| desk.places(names.collect()));
        Self {
            shared: Arc::clone(shared),
            strategy_id: strategy_id.into(),
            instruments: instruments.to_vec(),
            places: places.unwrap_or_default(),
        }
    }
}

impl Broker for EngineBroker {
    fn place(&self, instrument: &InstrumentId) -> Option<InstrumentIx> {
        self.places.get(&instrument.to_string()).copied()
    }

    fn upper_limit(&self, instrument: &InstrumentId) -> Option<Price> {
        let masters = self.shared.live.web_broker.get()?.masters()?;
        masters.issue(instrument.symbol())?.upper_limit
    }

    fn send(&mut self, command: DeskCommand) -> Result<(), Rejection> {
        self.shared.live.ask_desk(ASK, command).map_err(|()| {
            let text = "BUSY: the order desk takes no more commands now, or has ended";
            Rejection::new(domain::ReasonCode::InternalError, text)
        })
    }

    fn refused(&mut self, event: &OrderEvent) {
        let instrument = self.instruments.get(usize::from(event.instrument.0));
        let event = DeskEvent::Order(DeskOrderEvent {
            request_id: None,
            origin: Some(OrderOrigin::Strategy(self.strategy_id.clone())),
            client_order_id: Some(event.client_order_id.clone()),
            venue_order_id: event.venue_order_id.clone(),
            instrument: event.instrument,
            instrument_id: instrument.map(|id| id.to_string().into()).unwrap_or_default(),
            side: event.side,
            ts_event: wall_now(),
            status: event.status,
            is_written: true,
            kind: event.kind.clone(),
        });
        if let Some(event) = desk_event(&event) {
            self.shared.lock().hub.broadcast(&event);
        }
    }

    fn end_own(&mut self) -> bool {
        let strategy_id = self.strategy_id.clone();
        let command = match self.shared.config.strategy_rules.on_stop {
            OwnOrdersAtEnd::CancelAll => DeskCommand::CancelOwn(strategy_id),
            OwnOrdersAtEnd::Keep => DeskCommand::OwnOrders(strategy_id),
        };
        self.shared.live.ask_desk(STOP, command).is_ok()
    }
}

impl super::Venues {
    /// Gives the desk a command of the strategy's run.
    fn ask_desk(&self, request_id: &str, command: DeskCommand) -> Result<(), ()> {
        let desk = self.web_broker.get().ok_or(())?;
        desk.strategy_command(
            VenueRequest { client: STRATEGY, request_id: request_id.to_owned() },
            command,
        )
    }

    /// The engine ends: a run that waits for the ends of its orders hears which of them are left now.
    pub(crate) fn ask_what_is_left(&self) {
        let Some(strategy_id) = self.orders.running() else { return };
        for request_id in [STOP, ASK] {
            let _ = self.ask_desk(request_id, DeskCommand::OwnOrders(strategy_id.clone()));
        }
    }

    /// The desk has ended with the engine: nobody waits for its answers any more.
    pub(crate) fn desk_is_gone(&self) {
        if let Some(run) = &self.orders.lock().run {
            run.feed.broker(BrokerNews::Left(Vec::new()));
        }
    }

    fn desk_has_ended(&self) -> bool {
        self.web_broker.get().is_none_or(super::OrderDesk::has_ended)
    }
}
