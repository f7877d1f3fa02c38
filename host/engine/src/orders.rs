//! Orders of clients in a replay: what is checked before the run gets them (specification 4, P10,
//! P11, P30 to P32, P71, P72).

use std::borrow::Cow;

use domain::order_rules::{check_stock, check_texts, cut};
use domain::tags::OrderTags;
use domain::{
    InstrumentIx, OrderCommand, OrderFilter, OrderSide, Origin, Quantity, ReasonCode, Rejection,
    ShortText,
};
use exchange::check_order;
use ipc::{
    Command, Error, Event, OrderContext, OrderListFilter, OrderNames, SubmitOrder,
    SubmitOrderResult, SubmitOutcome, Text, error_code,
};
use replay::RunCommand;

use crate::VENUE;
use crate::ledger::{ListFilter, RequestContext};
use crate::limits::{COMMANDS_WAITING_MAX, ID_CHARS_SHOWN, TAGS_MAX};
use crate::present::orders::rejected;
use crate::run::{OrderAsk, Run, WaitingCommand};
use crate::session::{Core, Refusing};

fn invalid(text: String) -> Rejection {
    Rejection::new(ReasonCode::ValidationError, text)
}

impl OrderNames for Run {
    fn instrument(&self, instrument_id: &str) -> Option<InstrumentIx> {
        let index = self.setup.instruments.iter().position(|known| known == instrument_id)?;
        // A run has at most 4 instruments.
        Some(InstrumentIx(index as u16))
    }

    fn client_order_id(&self, venue_order_id: &str) -> Result<ShortText, Rejection> {
        match self.orders.by_number(venue_order_id) {
            Some(record) if record.origin == Origin::Client => {
                Ok(record.request.client_order_id.clone())
            }
            Some(_) => {
                let text = format!(
                    "VENUE_ORDER_ID: `{venue_order_id}` is an order of the strategy; name an order \
                     of your own"
                );
                Err(invalid(text))
            }
            None => {
                let text = format!(
                    "VENUE_ORDER_ID: this run has no order `{venue_order_id}`; read the order list"
                );
                Err(Rejection::new(ReasonCode::OrderStatusUnknown, text))
            }
        }
    }
}

/// What of an order can be judged by its texts alone.
fn check(SubmitOrder { order, .. }: &SubmitOrder) -> Result<(), Rejection> {
    check_texts(&order.client_order_id, order.tags.as_deref().unwrap_or_default(), TAGS_MAX)?;
    no_stock(&order.instrument_id).map_or(Ok(()), Err)
}

/// The rejection of a future or an option; none for every other instrument.
pub(crate) fn no_stock(instrument_id: &str) -> Option<Rejection> {
    check_stock(instrument_id, cut(instrument_id, ID_CHARS_SHOWN).escape_debug()).err()
}

/// What a new order is about.
#[derive(Debug)]
pub(crate) struct Wanted {
    instrument_id: String,
    side: OrderSide,
}

impl Core {
    /// A rejection that answers a command, with the time of the session. `wanted` is the order that a
    /// client wants to place; another one is told from its id.
    pub(crate) fn order_rejected<'a>(
        &'a self,
        to: &Refusing<'a>,
        client_order_id: Option<&'a str>,
        rejection: &'a Rejection,
        wanted: Option<&Wanted>,
    ) -> Event<'a> {
        let run = self.run.as_ref();
        let mut context = OrderContext {
            venue: Some(VENUE.into()),
            origin: Some(Origin::Client),
            ..OrderContext::default()
        };
        match (run, wanted) {
            (Some(run), Some(Wanted { instrument_id, side })) => {
                // A name that the run does not have may be as long as a message.
                let known = OrderNames::instrument(run, instrument_id);
                let known = known.map(|instrument| run.instrument(instrument));
                context.instrument_id = known.map(Text::Borrowed);
                context.order_side = Some(*side);
            }
            (Some(run), None) => {
                let order = client_order_id.and_then(|id| run.orders.get(Origin::Client, id));
                context = run.context(order.map(|order| &order.record));
            }
            (None, _) => {}
        }
        let context = OrderContext { request_id: to.request_id.map(Text::Borrowed), ..context };
        rejected(client_order_id, Cow::Borrowed(rejection), self.now(), context)
    }

    fn reject(
        &mut self,
        to: &Refusing<'_>,
        id: Option<&str>,
        rejection: &Rejection,
        wanted: Option<&Wanted>,
    ) {
        // What becomes of orders is told to all (P61).
        let text = crate::hub::text(&self.order_rejected(to, id, rejection, wanted));
        self.hub.tell_all_text(&text);
    }

    /// The run, if it takes orders; refuses the command else.
    fn run_for_orders(&mut self, to: &Refusing<'_>) -> Option<&mut Run> {
        if self.state() != ipc::SessionState::Running {
            self.not_running(to);
            return None;
        }
        if self.run.as_ref().is_some_and(|run| run.waiting.len() >= COMMANDS_WAITING_MAX) {
            self.busy(to, "too many commands wait for the run; wait for their answers");
            return None;
        }
        self.run.as_mut()
    }

    /// A new order.
    pub(crate) fn submit(&mut self, to: &Refusing<'_>, asked: RequestContext, submit: SubmitOrder) {
        let Some(run) = self.run_for_orders(to) else { return };
        let id = submit.order.client_order_id.clone();
        let instrument_id = submit.order.instrument_id.clone();
        let wanted = Wanted { instrument_id, side: submit.order.order_side };
        let request_key = submit.order.request_key();
        let checked = check(&submit).and_then(|()| {
            let command = Command::SubmitOrder(submit);
            command
                .order_command(run)
                .unwrap_or_else(|| Err(invalid("ORDER: the command has no order".into())))
        });
        let checked = checked.and_then(|command| match &command {
            OrderCommand::Submit(request) => request.validate_shape().map(|()| command),
            _ => Ok(command),
        });
        let command = match checked {
            Ok(command) => command,
            Err(rejection) => return self.reject(to, Some(&id), &rejection, Some(&wanted)),
        };
        match run.request_keys.get(&id) {
            None => {
                run.request_keys.insert(id, request_key);
                run.hand_over(asked, OrderAsk::Submit, command);
            }
            Some(known) => {
                let is_same = *known == request_key;
                // What cannot be is told before it is told from the order that has the id (P11).
                let checked = match &command {
                    OrderCommand::Submit(request) if !is_same => {
                        let lot = run.setup.lots.get(usize::from(request.instrument.0));
                        check_order(request, lot.copied().unwrap_or(Quantity::new(1)))
                    }
                    _ => Ok(()),
                };
                match checked {
                    Ok(()) => self.known_id(to, &id, is_same),
                    Err(rejection) => self.reject(to, Some(&id), &rejection, Some(&wanted)),
                }
            }
        }
    }

    /// An id that an order has already.
    fn known_id(&mut self, to: &Refusing<'_>, id: &str, is_same: bool) {
        let order = self.run.as_ref().and_then(|run| run.orders.get(Origin::Client, id));
        let record = order.map(|order| &order.record);
        let number = record.and_then(|record| record.venue_order_id.clone());
        let venue_order_id = number.as_deref().map(|number| Text::Owned(number.to_owned()));
        let request_id = to.request_id.unwrap_or_default();
        if is_same {
            let is_unknown = number.is_none();
            let text = "the order was sent before, and the venue has not answered; read the order \
                        list";
            let result = SubmitOrderResult {
                request_id: request_id.into(),
                client_order_id: id.into(),
                outcome: SubmitOutcome::IdempotentReplay,
                status: record.map_or(domain::OrderStatus::Submitted, |record| record.status),
                venue_order_id,
                warning_code: is_unknown.then(|| "order_status_unknown".into()),
                warning_text: is_unknown.then(|| text.into()),
            };
            return self.hub.tell(to.client, &Event::SubmitOrderResult(result));
        }
        let message = format!(
            "CLIENT_ORDER_ID: another order has `{id}` already; give a new order a new id, or send the \
             first order again as it was to see what became of it"
        );
        let event = Event::Error(Error {
            request_id: Some(request_id.into()),
            code: error_code::CONFLICT.into(),
            message: message.into(),
            venue_order_id,
        });
        self.hub.refuse(to.client, &event, to.now);
    }

    /// A change, a cancel, or a cancel of many.
    pub(crate) fn change(&mut self, to: &Refusing<'_>, asked: RequestContext, command: &Command) {
        let Some(run) = self.run_for_orders(to) else { return };
        let (ask, id) = match command {
            Command::ModifyOrder(modify) => (OrderAsk::Modify, modify.client_order_id.clone()),
            Command::CancelOrder(cancel) => (OrderAsk::Cancel, cancel.client_order_id.clone()),
            _ => (OrderAsk::CancelAll, None),
        };
        let mapped = command
            .order_command(run)
            .unwrap_or_else(|| Err(invalid("ORDER: the command has no order".into())));
        let known = mapped.and_then(|command| match command_id(&command) {
            Some(id) if !run.request_keys.contains_key(id) => {
                let text = format!(
                    "CLIENT_ORDER_ID: you have no order `{id}` in this run; read the order list"
                );
                Err(Rejection::new(ReasonCode::OrderStatusUnknown, text))
            }
            _ => Ok(command),
        });
        match known {
            Ok(command) => run.hand_over(asked, ask, command),
            Err(rejection) => self.reject(to, id.as_deref(), &rejection, None),
        }
    }
}

/// The order that a command is about.
fn command_id(command: &OrderCommand) -> Option<&str> {
    match command {
        OrderCommand::Modify { client_order_id, .. } | OrderCommand::Cancel { client_order_id } => {
            Some(client_order_id)
        }
        OrderCommand::Submit(_) | OrderCommand::CancelAll { .. } => None,
    }
}

impl Run {
    /// Gives a command to the run, which takes commands in the order in which they came.
    fn hand_over(&mut self, asked: RequestContext, ask: OrderAsk, command: OrderCommand) {
        let mut warning = None;
        if let OrderCommand::Submit(request) = &command {
            // Tags that conflict are refused by the exchange.
            let tags = OrderTags::parse(&request.tags, request.time_in_force).ok();
            warning = tags.and_then(|tags| tags.unknown_text(&request.client_order_id));
        }
        // A run that is over takes no more; what it has not taken is answered at its end.
        let _ = self.setup.commands.send(RunCommand::Order(command));
        self.waiting.push_back(WaitingCommand { asked, ask, warning });
    }
}

impl ListFilter {
    /// What a client asks for.
    pub(crate) fn read(filter: &OrderListFilter) -> Result<Self, Rejection> {
        let OrderListFilter { status, instrument_id, date } = filter;
        let (status, date) = (status.as_deref(), date.as_deref());
        OrderFilter::read(status, instrument_id.clone(), date, usize::MAX).map(Self)
    }
}
