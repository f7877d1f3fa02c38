//! The order desk: handles each command, answer, list and notice.
//!
//! Its only input and output is the audit log. Each call gives it the time as a [`Now`], and it returns what is
//! to be sent or broadcast as [`Out`]. So a test can play every crossing of messages.
//!
//! Commands wait in one queue (`queue`), because the broker takes one request at a time. A command is checked
//! when it arrives (`submit`, `change`), and again at its turn.
//!
//! - `submit`: from a new order to its request; `answers`: what answers mean for orders;
//! - `change`: changes and cancels; `cancel_all`: cancels of many;
//! - `lists` and `notices`: the broker's own data; `crate::reconcile` decides what they mean for an order;
//! - `reconciliation`: what is not settled yet; `details`: fills that a list has and no notice;
//! - `money`: balances and positions; `session`: login, freeze, password; `queue`: what waits for the broker;
//! - `strategies`: orders of strategies; `take_over`: the start of a run; `own_cancels`: the end of its orders;
//!   `settle`: what a person decides and corrects;
//! - `reports`: events of orders; `discrepancies`: events of differences.

mod answers;
mod cancel_all;
mod change;
mod details;
mod discrepancies;
mod guards;
mod list_rows;
mod lists;
mod money;
mod notices;
mod own_cancels;
mod queue;
mod reconciliation;
mod reports;
mod session;
mod settle;
mod strategies;
mod submit;
mod take_over;
mod wall;

use std::sync::Arc;
use std::time::Duration;

use domain::order_mapping::{BrokerRequest, OrderMapping};
use domain::{OrderStatus, Rejection, Secret};
use venues::ReportedOnce;
use venues::web_broker::Called;

use crate::audit::AuditSink;
use crate::audit::restore::Restored;
use crate::book::{Book, DeskOrder, Illegal, OrderKey};
use crate::command::{DeskCommand, NamedOrder};
use crate::event::DeskEvent;
use crate::instruments::InstrumentTable;
use crate::limits::{DETAILS_TIME, ORDERS_RESTORED_MAX};
use crate::password::{PasswordRules, PasswordStage, SecondPassword};
use crate::phase::OrderPhase;
use crate::session::Session;
pub use crate::session::{LoginDone, LoginFailed, SessionState};

use cancel_all::CancelsOfMany;
use queue::JobQueue;
pub(crate) use queue::{Job, JobKind};
use reconciliation::{EarlierFills, PresumedRejected, Reconciliation};
use strategies::Strategies;
pub use venues::{Now, Recipient, RequestContext};

/// The venue's name on the wire.
pub const VENUE: &str = "web_broker";

/// Output of the desk.
#[derive(Debug)]
pub enum Out {
    /// Sends an event to its recipient.
    Emit(Recipient, Box<DeskEvent>),
    /// Sends a request to the broker; the answer comes back by [`Desk::answered`] with the same ticket.
    Send {
        /// Identifies the request.
        ticket: u64,
        /// The request.
        request: Box<BrokerRequest>,
        /// The second password, where the request takes one.
        password: Option<Secret>,
        /// A time limit for the answer that is shorter than the usual one.
        within: Option<Duration>,
    },
    /// Logs in at the broker; the result comes back by [`Desk::login_ended`].
    Login {
        /// Identifies the login.
        ticket: u64,
    },
}

/// How a desk works.
#[derive(Debug, Clone, Copy)]
pub struct DeskRules {
    /// How far the venue is delivered.
    pub phase: OrderPhase,
    /// How the second password is held.
    pub password: PasswordRules,
    /// Time after which an order that no list has is not at the broker (specification 4, P20).
    pub unknown_settle: Duration,
}

impl Default for DeskRules {
    fn default() -> Self {
        Self {
            phase: OrderPhase::default(),
            password: PasswordRules::default(),
            unknown_settle: Duration::from_secs(5),
        }
    }
}

/// The order desk of one account at the web broker.
pub struct Desk {
    rules: DeskRules,
    mapping: Box<dyn OrderMapping>,
    log: Box<dyn AuditSink>,
    book: Book,
    illegal: Illegal,
    session: Session,
    password: SecondPassword,
    /// Where clients know that it stands.
    told_password: PasswordStage,
    queue: JobQueue,
    cancels: CancelsOfMany,
    reconciliation: Reconciliation,
    strategies: Strategies,
    report_rate: discrepancies::ReportRate,
    /// Rows and amounts of balances and positions that could not be read.
    money_left_out: ReportedOnce,
    wall: wall::WallWatch,
    out: Vec<Out>,
}

impl Desk {
    /// A desk whose orders are those of the log.
    #[must_use]
    pub fn new(
        rules: DeskRules,
        mapping: Box<dyn OrderMapping>,
        log: Box<dyn AuditSink>,
        restored: Restored,
        now: Now,
    ) -> Self {
        let mut book = Book::default();
        // The newest are those that may be sent again. The other places are for new orders.
        let too_many = restored.entries.len().saturating_sub(ORDERS_RESTORED_MAX);
        if too_many > 0 {
            tracing::warn!(
                orders = too_many,
                "the audit log has more orders than the desk holds; the desk leaves the oldest out"
            );
        }
        for entry in restored.entries.into_iter().skip(too_many) {
            let place = book.instruments().place(&entry.instrument_id);
            let Some(place) = place else { continue };
            let is_refused = entry.ended == Some(OrderStatus::Rejected);
            if let Some(key) = book.add(DeskOrder::restored(entry, place, now.mono))
                && is_refused
            {
                book.free_id(key);
            }
        }
        let mut presumed_rejected = PresumedRejected::default();
        for entry in restored.presumed_rejected {
            if let Some(place) = book.instruments().place(&entry.instrument_id) {
                presumed_rejected.remember(DeskOrder::restored(entry, place, now.mono));
            }
        }
        let earlier_fills = EarlierFills::new(restored.fills);
        let mut desk = Self {
            rules,
            mapping,
            log,
            book,
            illegal: Illegal::default(),
            session: Session::default(),
            password: SecondPassword::new(rules.password),
            told_password: PasswordStage::None,
            queue: JobQueue::default(),
            cancels: CancelsOfMany::default(),
            reconciliation: Reconciliation {
                earlier_fills,
                presumed_rejected,
                ..Reconciliation::default()
            },
            strategies: Strategies::new(restored.holdings),
            report_rate: discrepancies::ReportRate::default(),
            money_left_out: ReportedOnce::default(),
            wall: wall::WallWatch::default(),
            out: Vec::new(),
        };
        for key in desk.book.keys() {
            desk.take_earlier_fills(key);
        }
        desk
    }

    /// The instruments that its orders name; the decoder of commands takes their positions from here.
    #[must_use]
    pub const fn instruments(&self) -> &Arc<InstrumentTable> {
        self.book.instruments()
    }

    /// Takes a command.
    pub fn command(&mut self, context: RequestContext, command: DeskCommand, now: Now) {
        match command {
            DeskCommand::Submit(order) => self.submit(context, order, now),
            DeskCommand::Modify(change) => self.modify(context, change, now),
            DeskCommand::Cancel(order) => self.cancel(context, &order, now),
            DeskCommand::CancelAll(many) => self.cancel_all(context, many, now),
            DeskCommand::OrderList(filter) => self.order_list(context, filter, now),
            DeskCommand::BuyingPower => self.buying_power(context, now),
            DeskCommand::Positions => self.positions(context, now),
            DeskCommand::SetSecondPassword(value) => self.set_second_password(context, value, now),
            DeskCommand::ForgetSecondPassword => self.forget_second_password(now),
            DeskCommand::Login(request_id) => self.login(request_id, now),
            DeskCommand::VenueState => self.venue_state(context, now),
            DeskCommand::TakeOver(id) => self.take_over(context, id, now),
            DeskCommand::StrategyRuns(id) => self.strategy_runs(id, now),
            DeskCommand::CancelOwn(id) => self.cancel_own(context, id, now),
            DeskCommand::OwnOrders(id) => self.report_own_orders(&context, &id, now),
            DeskCommand::Settle(settle) => self.settle(&context, settle, now),
            DeskCommand::Holdings => self.report_holdings(&context),
            DeskCommand::Adjust(adjustment) => self.adjust(&context, &adjustment, now),
        }
    }

    /// Takes the output, in order.
    pub fn take_out(&mut self) -> Vec<Out> {
        std::mem::take(&mut self.out)
    }

    /// Where the session stands.
    #[must_use]
    pub const fn session_state(&self) -> SessionState {
        self.session.state()
    }

    /// Transitions of orders that were tried and are not in the state table. Each is a bug of the desk, is
    /// logged and changes nothing.
    #[must_use]
    pub const fn illegal_transitions(&self) -> u64 {
        self.illegal.count()
    }

    /// The second password while it is held, so that it is redacted in the broker's texts.
    #[must_use]
    pub fn second_password(&self) -> Option<&Secret> {
        self.password.held()
    }

    /// Runs a job at its turn: sends its request, or ends it.
    fn begin(&mut self, job: Job, now: Now) {
        if job.is_login() {
            let ticket = self.queue.start(job);
            return self.out.push(Out::Login { ticket });
        }
        if let Err(rejection) = self.session.check_active() {
            return self.refuse_job(job, &rejection, now);
        }
        match job.kind {
            JobKind::Submit(_) => self.continue_submit(job, now),
            JobKind::Change(_) => self.begin_change(job, now),
            JobKind::CancelAll { .. } => self.begin_cancel_all(job, now),
            JobKind::CancelRow(_) => self.begin_cancel_row(job, now),
            JobKind::List(_) => self.begin_list(job, now),
            JobKind::BuyingPower(_) => self.begin_buying_power(job),
            JobKind::Positions(_) => self.begin_positions(job),
            JobKind::Details(key) => self.begin_details(job, key, now),
            JobKind::Look(look) => self.begin_look(job, look),
            JobKind::Login => {}
        }
    }

    /// Sends the request of a job to the broker.
    fn send(&mut self, job: Job, request: BrokerRequest, password: Option<Secret>) {
        let password = password.filter(|_| request.password_field.is_some());
        let within = matches!(job.kind, JobKind::Details(_)).then_some(DETAILS_TIME);
        let ticket = self.queue.start(job);
        self.out.push(Out::Send { ticket, request: Box::new(request), password, within });
    }

    /// Takes the broker's answer, or the failure of the call.
    pub fn answered(&mut self, ticket: u64, called: Called, now: Now) {
        let Some(job) = self.queue.finish(ticket) else { return };
        match job.kind {
            JobKind::Submit(_) => self.submit_answered(job, called, now),
            JobKind::Change(_) => self.change_answered(job, called, now),
            JobKind::CancelAll { .. } => self.cancel_all_answered(job, called, now),
            JobKind::CancelRow(_) => self.cancel_row_answered(job, called, now),
            JobKind::List(_) => self.list_answered(job, called, now),
            JobKind::BuyingPower(_) => self.buying_power_answered(job, called, now),
            JobKind::Positions(_) => self.positions_answered(job, called, now),
            JobKind::Details(key) => self.details_answered(key, called, now),
            JobKind::Look(look) => self.look_answered(look, called, now),
            JobKind::Login => {}
        }
        self.work(now);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Now) {
        if self.password.forget_idle(now.mono) {
            tracing::info!("the engine has forgotten the second password: no command used it");
        }
        self.abandon_late(now);
        if let Some(today) = self.wall.day(now) {
            self.book.forget_before(today);
        }
        self.tick_cancels(now);
        self.tick_held(now);
        self.tick_discrepancies(now);
        self.tick_ready(now);
        self.tick_strategies(now);
        if self.session.is_closed_by_answer() {
            // If the broker answers this list, it is reachable again.
            self.put_off_resync_once(now);
        }
        self.tick_resync(now);
        self.tell_password(now);
        self.work(now);
    }

    /// The longest time until the next [`Self::tick`].
    #[must_use]
    pub const fn tick_pause() -> Duration {
        Duration::from_millis(200)
    }

    /// Ends a job whose request was not sent.
    fn refuse_job(&mut self, job: Job, rejection: &Rejection, now: Now) {
        let Job { context, kind, .. } = job;
        match kind {
            JobKind::Submit(submit) => {
                self.refuse_submit(context.as_ref(), submit.key, rejection, now);
            }
            JobKind::Change(change) => {
                self.refuse_change(context.as_ref(), &change, rejection, now)
            }
            JobKind::CancelAll { number, .. } => self.refuse_cancel_all(number, rejection, now),
            JobKind::CancelRow(row) => {
                self.refuse_cancel_row(context.as_ref(), &row, rejection, now)
            }
            JobKind::List(list) => self.refuse_list(context.as_ref(), &list, rejection, now),
            JobKind::BuyingPower(_) | JobKind::Positions(_) => {
                if let Some(context) = context {
                    self.report_error(&context, rejection.code, rejection.text.clone(), None);
                }
            }
            // The next list plans them again.
            JobKind::Details(key) => self.details_done(key),
            JobKind::Look(look) => self.look_failed(look, &rejection.text, now),
            JobKind::Login => {}
        }
    }

    fn order_key_of(&self, order: &NamedOrder) -> Option<OrderKey> {
        match order.ids() {
            (Some(client), _) => self.book.by_id(order.origin, client),
            (None, Some(venue)) => self.book.by_number_alone(venue),
            (None, None) => None,
        }
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk")
            .field("rules", &self.rules)
            .field("session", &self.session.state())
            .finish_non_exhaustive()
    }
}
