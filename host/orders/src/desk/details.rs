//! Details of orders (`CLMOrderListDetail`): asked for where a list has shares filled that no notice told,
//! because the stream has lost the notice or was not there. They have each fill with its price and its time,
//! but no number; so a fill that notices and details tell is known again by its shares and its price.
//!
//! Only what the details do not have either is told as missing.

use domain::order_mapping::{BrokerFill, ListedFill};
use domain::{Quantity, ShortText};
use ipc::Discrepancy;
use venues::web_broker::{Answered, Called};

use super::answers::Ended;
use super::notices::FillSource;
use super::submit::fault_of;
use super::{Desk, Job, JobKind, Now};
use crate::book::{OrderKey, detail_id};
use crate::limits::{DETAILS_TRIES_MAX, DETAILS_WAITING_MAX, FILLS_PER_ORDER_MAX};

impl Desk {
    /// Asks for the details of an order with shares filled that no notice told. False where nothing comes of
    /// that: the dialect has no such request, or it was asked for in vain.
    pub(crate) fn ask_details(&mut self, key: OrderKey, now: Now) -> bool {
        let tried = self.book.get(key).map_or(DETAILS_TRIES_MAX, |order| order.details_tried);
        if self.mapping.description().fill_rows.is_none() || tried >= DETAILS_TRIES_MAX {
            return false;
        }
        let has_room = self.resync.details.len() < DETAILS_WAITING_MAX;
        if has_room && self.resync.details.insert(key) {
            // A list has just been answered; what waits goes on when that is taken up.
            let kind = JobKind::Details(key);
            self.put_in_queue(Job { asked: None, received: now.mono, kind, is_given_up: false });
        }
        true
    }

    /// The details of an order are no longer waited for.
    pub(super) fn details_done(&mut self, key: OrderKey) {
        self.resync.details.remove(&key);
    }

    pub(super) fn begin_details(&mut self, job: Job, key: OrderKey, now: Now) {
        let order = self.book.get(key);
        let Some(number) = order.and_then(|order| order.venue_order_id.clone()) else {
            return self.details_done(key);
        };
        let day = order.and_then(|order| order.business_day.clone());
        let why = match self.mapping.list_fills(&number, day.as_deref()) {
            Ok(Ok(request)) => return self.send(job, request, None),
            Ok(Err(rejection)) => rejection.text,
            Err(fault) => fault_of(&fault).text,
        };
        self.details_done(key);
        self.details_failed(key, &why, now);
    }

    pub(super) fn details_answered(&mut self, key: OrderKey, called: Called, now: Now) {
        self.details_done(key);
        let why = match self.end_of(called) {
            Ended::Done(accepted, answered) => {
                let number = self.book.get(key).and_then(|order| order.venue_order_id.clone());
                match accepted.venue_order_id {
                    told if told.is_some() && told != number => {
                        Err("the answer is of another order".to_owned())
                    }
                    _ => self.take_details(key, &answered, now),
                }
            }
            Ended::Nothing(_) => Err("the broker has no details of it".to_owned()),
            Ended::Refused(rejection) => Err(rejection.text),
            Ended::WrongPassword(_, text) => Err(text),
            Ended::Expired => return self.freeze(now),
            Ended::Unknown(why) => Err(why),
        };
        if let Err(why) = why {
            self.details_failed(key, &why, now);
        }
    }

    /// Takes details up; the error says why the fills that are missing are not all in them.
    fn take_details(&mut self, key: OrderKey, answered: &Answered, now: Now) -> Result<(), String> {
        let fills = self.read_fills(answered)?;
        let Some(order) = self.book.get(key) else { return Ok(()) };
        let untold = order.untold_of(&fills).ok_or("its details lack a fill that a notice told")?;
        let shares =
            untold.iter().fold(0_u64, |sum, fill| sum.saturating_add(fill.quantity.shares()));
        // A list tells first how many shares it has.
        if self.may_end_early(key, Quantity::new(shares)) {
            return Ok(());
        }
        for fill in &untold {
            self.tell_detailed(key, fill, now);
        }
        let Some(order) = self.book.get_mut(key) else { return Ok(()) };
        let listed = order.listed.map_or(0, |listed| listed.filled.shares());
        if order.cumulative < listed {
            return Err(format!("its details have {} in all", order.cumulative));
        }
        order.details_tried = 0;
        Ok(())
    }

    /// Tells a fill that only the details have, with a number of the desk's own.
    fn tell_detailed(&mut self, key: OrderKey, fill: &ListedFill, now: Now) {
        let Some(order) = self.book.get_mut(key) else { return };
        order.details_told += 1;
        let number = match &order.business_day {
            Some(day) => format!("{day}-D{}", order.details_told),
            None => format!("D{}", order.details_told),
        };
        let trade_id = ShortText::from(number.as_str());
        order.detailed.push(detail_id(&trade_id));
        let told = BrokerFill { trade_id, quantity: fill.quantity, price: fill.price };
        let ts_ms = fill.time.unwrap_or(now.wall).millis();
        self.take_fill(key, FillSource::Details, &told, ts_ms, now);
    }

    fn read_fills(&mut self, answered: &Answered) -> Result<Vec<ListedFill>, String> {
        let name = self.mapping.description().fill_rows.clone().unwrap_or_default();
        let rows =
            answered.lists.get(&name).ok_or_else(|| format!("the answer has no `{name}`"))?;
        if rows.len() > FILLS_PER_ORDER_MAX {
            let count = rows.len();
            return Err(format!("{count} rows; {FILLS_PER_ORDER_MAX} are read at most"));
        }
        let read = self.mapping.read_fills(rows).map_err(|fault| fault_of(&fault).text)?;
        read.into_iter().collect()
    }

    /// Details could not be had, or have not all: after some times the fills are told as missing.
    fn details_failed(&mut self, key: OrderKey, why: &str, now: Now) {
        tracing::warn!(why, "the details of an order do not tell the fills that its list has");
        let Some(order) = self.book.get_mut(key) else { return };
        order.details_tried += 1;
        let listed = order.listed.map_or(0, |listed| listed.filled.shares());
        let told = order.cumulative;
        if order.details_tried >= DETAILS_TRIES_MAX && told < listed {
            let text =
                format!("the list has {listed} shares filled, {told} were told; details: {why}");
            self.tell_discrepancy(Some(key), None, Discrepancy::FillsMissing, text, now);
        }
    }
}
