//! Orders of clients in a replay: what is checked before the run gets them (specification 4, P10,
//! P11, P30 to P32, P71, P72).

use std::borrow::Cow;

use domain::order_rules::{check_stock, check_texts, cut};
use domain::tags::OrderTags;
use domain::{
    InstrumentIx, OrderCommand, OrderSide, Origin, Quantity, ReasonCode, Rejection, ShortText,
};
use exchange::check_order;
use ipc::{Event, OrderNames, SubmitOrder, error_code};
use replay::RunCommand;

use crate::command::OrderInstruction;
use crate::ledger::RequestContext;
use crate::limits::{COMMANDS_WAITING_MAX, ID_CHARS_SHOWN, TAGS_MAX};
use crate::present::orders::rejected;
use crate::present::session as present;
use crate::run::{OrderAction, Run, WaitingCommand};
use crate::session::{CommandContext, Core};

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
    /// A rejection that answers a command, with the time of the session. `wanted` is the order that a client wants
    /// to place; another one is found by its id.
    pub(crate) fn order_rejected<'a>(
        &'a self,
        to: &CommandContext<'a>,
        client_order_id: Option<&'a str>,
        rejection: &'a Rejection,
        wanted: Option<&Wanted>,
    ) -> Event<'a> {
        let place = match (&self.run, wanted) {
            (Some(run), Some(Wanted { instrument_id, side })) => {
                // A name that the run does not have may be as long as a message.
                let known = OrderNames::instrument(run, instrument_id);
                (known.map(|instrument| run.instrument(instrument)), Some(*side))
            }
            (Some(run), None) => {
                let order = client_order_id.and_then(|id| run.orders.get(Origin::Client, id));
                run.order_place(order.map(|order| &order.record))
            }
            (None, _) => (None, None),
        };
        let context = present::of_client_order(to.request_id, place);
        rejected(client_order_id, Cow::Borrowed(rejection), self.now(), context)
    }

    fn reject(
        &mut self,
        to: &CommandContext<'_>,
        id: Option<&str>,
        rejection: &Rejection,
        wanted: Option<&Wanted>,
    ) {
        // All clients get what happens to orders (P61).
        let text = crate::hub::text(&self.order_rejected(to, id, rejection, wanted));
        self.hub.broadcast_text(&text);
    }

    /// The run, if it takes orders; refuses the command else.
    fn run_for_orders(&mut self, to: &CommandContext<'_>) -> Option<&mut Run> {
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

    /// A client wants something done with its orders.
    pub(crate) fn order_instruction(&mut self, to: &CommandContext<'_>, order: &OrderInstruction) {
        match order {
            OrderInstruction::Submit(submit) => self.submit(to, submit),
            OrderInstruction::Modify(modify) => {
                let id = order.client_order_id();
                self.change(to, OrderAction::Modify, id, |run| modify.order_command(run));
            }
            OrderInstruction::Cancel(cancel) => {
                let id = order.client_order_id();
                self.change(to, OrderAction::Cancel, id, |run| cancel.order_command(run));
            }
            OrderInstruction::CancelAll(all) => {
                self.change(to, OrderAction::CancelAll, None, |run| all.order_command(run));
            }
        }
    }

    /// A new order.
    fn submit(&mut self, to: &CommandContext<'_>, submit: &SubmitOrder) {
        let Some(run) = self.run_for_orders(to) else { return };
        let id = submit.order.client_order_id.clone();
        let instrument_id = submit.order.instrument_id.clone();
        let wanted = Wanted { instrument_id, side: submit.order.order_side };
        let request_key = submit.order.request_key();
        let checked = check(submit).and_then(|()| submit.order_request(run));
        let checked = checked.and_then(|order| order.validate_shape().map(|()| order));
        let order = match checked {
            Ok(order) => order,
            Err(rejection) => return self.reject(to, Some(&id), &rejection, Some(&wanted)),
        };
        match run.request_keys.get(&id) {
            None => {
                run.request_keys.insert(id, request_key);
                run.hand_over(to.request(), OrderAction::Submit, OrderCommand::Submit(order));
            }
            Some(known) => {
                let is_same = *known == request_key;
                // An impossible order is rejected before it is compared with the order that has the id (P11).
                let lot = run.setup.lots.get(usize::from(order.instrument.0)).copied();
                let lot = lot.unwrap_or(Quantity::new(1));
                let checked = if is_same { Ok(()) } else { check_order(&order, lot) };
                match checked {
                    Ok(()) => self.known_id(to, &id, is_same),
                    Err(rejection) => self.reject(to, Some(&id), &rejection, Some(&wanted)),
                }
            }
        }
    }

    /// An id that an order has already.
    fn known_id(&mut self, to: &CommandContext<'_>, id: &str, is_same: bool) {
        let Self { run, hub, .. } = self;
        let order = run.as_ref().and_then(|run| run.orders.get(Origin::Client, id));
        let record = order.map(|order| &order.record);
        let request_id = to.request_id.unwrap_or_default();
        if is_same {
            return hub.send(to.client, &present::order_repeated(request_id, id, record));
        }
        let message = format!(
            "CLIENT_ORDER_ID: another order has `{id}` already; give a new order a new id, or send the \
             first order again as it was to see what became of it"
        );
        let number = record.and_then(|record| record.venue_order_id.as_deref());
        let event = present::error(Some(request_id), error_code::CONFLICT, message, number);
        hub.refuse(to.client, &event, to.now);
    }

    /// A change, a cancel, or a cancel of many.
    fn change(
        &mut self,
        to: &CommandContext<'_>,
        action: OrderAction,
        id: Option<&str>,
        command: impl FnOnce(&Run) -> Result<OrderCommand, Rejection>,
    ) {
        let Some(run) = self.run_for_orders(to) else { return };
        let known = command(run).and_then(|command| match command_id(&command) {
            Some(id) if !run.request_keys.contains_key(id) => {
                let text = format!(
                    "CLIENT_ORDER_ID: you have no order `{id}` in this run; read the order list"
                );
                Err(Rejection::new(ReasonCode::OrderStatusUnknown, text))
            }
            _ => Ok(command),
        });
        match known {
            Ok(command) => run.hand_over(to.request(), action, command),
            Err(rejection) => self.reject(to, id, &rejection, None),
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
    fn hand_over(&mut self, request: RequestContext, action: OrderAction, command: OrderCommand) {
        let mut warning = None;
        if let OrderCommand::Submit(order) = &command {
            // Tags that conflict are refused by the exchange.
            let tags = OrderTags::parse(&order.tags, order.time_in_force).ok();
            warning = tags.and_then(|tags| tags.unknown_text(&order.client_order_id));
        }
        // What a run has not taken is answered at its end.
        self.setup.control.send(RunCommand::Order(command));
        self.waiting.push_back(WaitingCommand { request, action, warning });
    }
}
