//! Reads of clients: boards, balances, orders and positions.
//!
//! Specification 1, "Endpoints"; specification 4, P51, P57, P59.

use super::super::account::{AccountOrder, Amount, Unreadable};
use super::super::event::{ErrorCode, VenueEvent};
use super::super::lanes::Call;
use super::super::limits::{LIST_ROWS_SENT_MAX, SHORT_ANSWER_BYTES_MAX};
use super::super::register_set::Registration;
use super::super::request::Question;
use super::super::{account, keys};
use super::{Gateway, Job, fault_of};
use crate::{LEFT_OUT_LINES_MAX, LeftOut, Now, OrderQuery, Recipient, RequestContext};
use domain::OrderFilter;
use domain::gateway_mapping::GatewayBoard;

/// Orders that are left out are reported to all clients at once, so they are noted under a number that no
/// client has.
const ALL_CLIENTS: u64 = u64::MAX;

/// A client's read.
#[derive(Debug, Clone)]
pub(crate) enum Read {
    /// The buying power, first part: cash.
    Cash,
    /// The buying power, second part: margin; it carries the cash.
    Margin(Amount),
    /// The orders.
    Orders(OrderFilter),
    /// The positions.
    Positions,
    /// A board.
    Board(String),
}

impl Gateway {
    /// Sends the buying power: both parts, or neither (P57).
    pub fn buying_power(&mut self, context: RequestContext, now: Now) {
        self.read(context, Read::Cash, Question::Cash, now);
    }

    /// Sends the orders.
    pub fn order_list(&mut self, context: RequestContext, query: &OrderQuery, now: Now) {
        let instrument = query.instrument_id.as_deref();
        let instrument_id = match instrument.map(keys::listed_instrument).transpose() {
            Ok(instrument_id) => instrument_id,
            Err(why) => {
                let why = format!("INSTRUMENT_ID: {why}");
                return self.send_error(&context, ErrorCode::ValidationError, &why);
            }
        };
        match (OrderQuery { instrument_id, ..query.clone() }).read() {
            Ok(filter) => self.read(context, Read::Orders(filter), Question::Orders, now),
            Err(rejection) => {
                self.send_error(&context, ErrorCode::ValidationError, &rejection.text);
            }
        }
    }

    /// Sends the positions.
    pub fn positions(&mut self, context: RequestContext, now: Now) {
        self.read(context, Read::Positions, Question::Positions, now);
    }

    fn read(&mut self, context: RequestContext, read: Read, question: Question, now: Now) {
        if let Some((code, why)) = self.why_not_ready() {
            return self.send_error(&context, code, &why);
        }
        if self.has_room(&context) {
            self.enqueue(context, read, question);
            self.drive(now);
        }
    }

    /// Reads a board once. The gateway registers its symbol, so it takes a place (specification 1, "Endpoints",
    /// rule 1).
    pub fn board(&mut self, context: RequestContext, ticker: &str, now: Now) {
        let (symbol, question) = match Question::board(ticker) {
            Ok(found) => found,
            Err(why) => {
                return self.send_error(&context, ErrorCode::ValidationError, &why.to_string());
            }
        };
        if let Some((code, why)) = self.why_not_ready() {
            return self.send_error(&context, code, &why);
        }
        if !self.has_room(&context) {
            return;
        }
        match self.registrations.set.read_board(context.client, &symbol) {
            Registration::Full => {
                let why = super::symbols::full(self.registrations.foreign());
                return self.send_error(&context, ErrorCode::RegisterFull, &why);
            }
            Registration::New => self.wanted_again(&symbol),
            Registration::Known => {}
        }
        self.enqueue(context, Read::Board(symbol), question);
        self.drive(now);
    }

    /// Takes an answer of status 200 to a read; the error says why it cannot be read.
    pub(super) fn read_done(
        &mut self,
        context: RequestContext,
        read: Read,
        body: &str,
        now: Now,
    ) -> Result<(), String> {
        let request_id = || context.request_id.clone();
        match read {
            Read::Cash => {
                let cash = account::read_cash(body).map_err(|why| self.no_use(&why))?;
                let call = Call::new(Job::Read(context, Read::Margin(cash)), Question::Margin);
                self.requests.push_first(call);
            }
            Read::Margin(cash) => {
                let margin = account::read_margin(body).map_err(|why| self.no_use(&why))?;
                let event = VenueEvent::BuyingPower {
                    request_id: request_id(),
                    cash: cash.clone().unwrap_or_default(),
                    margin: margin.clone().unwrap_or_default(),
                    at: now.wall,
                };
                self.send(Recipient::Client(context.client), event);
                let odd = [cash, margin].into_iter().filter_map(Result::err);
                let odd = odd.map(|why| LeftOut { id: None, why });
                let odd = self.left_out.news(context.client, "amounts", odd);
                self.send_left_out(&context, &odd);
            }
            Read::Orders(filter) => {
                let read = account::read_orders(body).map_err(|why| self.no_use(&why))?;
                self.send_odd_orders(read.left_out, now);
                let mut rows: Vec<_> = read
                    .rows
                    .into_iter()
                    .filter(|row| filter.takes(row.status, &row.instrument_id, row.received))
                    .collect();
                rows.iter_mut().for_each(|row| self.secrets.order(row));
                self.send_orders(&context, rows);
            }
            Read::Positions => {
                let read = account::read_positions(body).map_err(|why| self.no_use(&why))?;
                let mut positions = read.rows;
                positions.iter_mut().for_each(|row| self.secrets.position(row));
                let event =
                    VenueEvent::Positions { request_id: request_id(), positions, at: now.wall };
                self.send(Recipient::Client(context.client), event);
                let odd = self.left_out.news(context.client, "positions", read.left_out);
                self.send_left_out(&context, &odd);
            }
            Read::Board(symbol) => {
                self.board_read(&context, &symbol, body, now)?;
            }
        }
        Ok(())
    }

    fn no_use(&self, why: &Unreadable) -> String {
        self.secrets.words(&why.to_string())
    }

    /// Reports to the client what its answer lacks, after the answer.
    fn send_left_out(&mut self, context: &RequestContext, left_out: &[LeftOut]) {
        for why in crate::left_out_lines(left_out) {
            let why = self.secrets.words(&why);
            self.send_error(context, ErrorCode::GatewayError, &why);
        }
    }

    /// Reports the orders that are left out of a list: the first ones, and a count of the rest. Orders that the
    /// list before lacked, too, are not repeated.
    fn send_odd_orders(&mut self, left_out: Vec<LeftOut>, now: Now) {
        let new = self.left_out.news(ALL_CLIENTS, "orders", left_out);
        for (place, why) in crate::left_out_lines(&new).enumerate() {
            let odd = new.get(place).filter(|_| place < LEFT_OUT_LINES_MAX);
            let id = odd.and_then(|odd| odd.id.as_deref()).map(|id| self.secrets.words(id));
            let message = self.secrets.words(&why);
            let event = VenueEvent::UnreadableOrder { venue_order_id: id, message, at: now.wall };
            self.send(Recipient::All, event);
        }
    }

    fn send_orders(&mut self, context: &RequestContext, mut rows: Vec<AccountOrder>) {
        let (all, mut sent) = (rows.len(), 0);
        loop {
            let rest = rows.split_off(rows.len().min(LIST_ROWS_SENT_MAX));
            sent += rows.len();
            let more = !rest.is_empty();
            let event = VenueEvent::Orders {
                request_id: context.request_id.clone(),
                orders: std::mem::replace(&mut rows, rest),
                more: (all > LIST_ROWS_SENT_MAX).then_some(more),
                next: more.then_some(sent as u64),
            };
            self.send(Recipient::Client(context.client), event);
            if !more {
                return;
            }
        }
    }

    /// The board of a symbol in the gateway's answer.
    pub(super) fn read_answer(&mut self, symbol: &str, body: &str) -> Result<GatewayBoard, String> {
        if body.len() > SHORT_ANSWER_BYTES_MAX {
            return Err(format!("the board has more than {SHORT_ANSWER_BYTES_MAX} bytes"));
        }
        let read = self.mapping.read_board(body).unwrap_or_else(|fault| {
            fault_of(&fault, body, &self.secrets);
            Err("the dialect failed on the board".to_owned())
        });
        let board = read.map_err(|why| self.secrets.words_about(body, &why))?;
        if board.symbol != symbol || board.exchange.is_some_and(|found| found != keys::TOKYO) {
            return Err(format!("the answer is not the board of {symbol}"));
        }
        Ok(board)
    }

    fn board_read(
        &mut self,
        context: &RequestContext,
        symbol: &str,
        body: &str,
        now: Now,
    ) -> Result<(), String> {
        let mut board = self.read_answer(symbol, body)?;
        self.registrations.set.board_was_read(context.client, symbol);
        let name = board.name.take();
        let board = self.feed.board(board, now.wall).ok_or("the answer has no symbol")?;
        let event = VenueEvent::Board { request_id: context.request_id.clone(), board };
        self.send(Recipient::Client(context.client), event);
        if let Some(name) = name {
            self.learn_name(body.as_bytes(), symbol, &name);
        }
        if self.registrations.set.contains(symbol)
            && !self.mapping.description().board_read_registers
        {
            self.registrations.register_also(symbol, now.mono);
        }
        Ok(())
    }

    /// Frees the place of a read that failed, if nothing else holds it. Of several reads of one client the last
    /// one does it.
    pub(super) fn read_failed(&mut self, client: u64, read: &Read) {
        if let Read::Board(symbol) = read {
            self.give_back(client, symbol);
        }
    }

    /// Frees a client's place, if nothing holds it.
    pub(super) fn give_back(&mut self, client: u64, symbol: &str) {
        if !self.registrations.set.holds(client, symbol)
            && !self.requests.reads_board(client, symbol)
            && self.registrations.set.release(client, symbol)
        {
            self.no_longer_wanted(symbol);
        }
    }
}
