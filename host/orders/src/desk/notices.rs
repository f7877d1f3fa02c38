//! Notices of the broker: fills, ends, refusals (specification 2, "Execution notices").
//!
//! Specification 4, P25 to P28. Notices may be late, duplicate, before the answer to their request, in any
//! order, and about orders placed elsewhere.

use std::time::Duration;

use domain::order::OrderTrigger;
use domain::order_mapping::{BrokerFill, BrokerFrame, BrokerNotice, Field, NoticeKind, VenuePhase};
use domain::{Discrepancy, Money, OrderStatus, Price, Quantity, ReasonCode, Rejection, TsNanos};
use venues::web_broker::frame;

use super::reports::ReportedFill;
use super::submit::fault_of;
use super::{Desk, Now};
use crate::audit::{self, FillSource};
use crate::book::{OrderKey, Seen, detail_id, fill_id};
use crate::limits::{FILL_VALUE_MAX, FILLS_PER_ORDER_MAX, NOTICES_HELD_MAX, ORDER_ANSWER_TIME};
use crate::seen_notices::Arrival;

/// Whether a fill can have so many shares at this price.
pub(super) fn can_be(quantity: Quantity, price: Price) -> bool {
    let value = Money::checked_notional(price, quantity);
    !quantity.is_zero()
        && price > Price::default()
        && value.is_some_and(|value| value <= FILL_VALUE_MAX)
}

impl Desk {
    /// Takes a frame of the stream of events. Its phase of the venue counts in every phase of delivery, its
    /// notices only where notices are taken.
    pub fn frame(&mut self, fields: &[Field], now: Now) {
        let read = self.mapping.read_frame(fields);
        let is_of_venue = matches!(read, Ok(Ok(BrokerFrame::Venue(_))));
        if !is_of_venue && !self.rules.phase.takes_notices() {
            return;
        }
        match read {
            Ok(Ok(BrokerFrame::Order(notice))) => self.notice_came(notice, fields, now),
            Ok(Ok(BrokerFrame::Venue(phase))) => self.venue_phase(phase),
            // The broker ends a connection; that alone says nothing of the session (P8).
            Ok(Ok(BrokerFrame::Ended(number))) => {
                tracing::info!(number, "the broker ends the stream of events");
            }
            Ok(Ok(BrokerFrame::KeepAlive | BrokerFrame::Other)) => {}
            Ok(Err(why)) => self.unreadable_notice(why, now),
            // An unreadable frame is logged as an error, at a limited rate, too.
            Err(fault) if self.report_rate.has_room(now) => {
                self.unreadable_notice(fault_of(&fault).text, now);
            }
            Err(fault) => self.unreadable_notice(fault.kind.to_string(), now),
        }
        self.work(now);
    }

    /// Handles a frame of the stream of events that cannot be read: a list shows what it may have reported.
    pub fn unreadable_frame(&mut self, why: String, now: Now) {
        if !self.rules.phase.takes_notices() {
            return;
        }
        self.unreadable_notice(why, now);
        self.work(now);
    }

    fn unreadable_notice(&mut self, why: String, now: Now) {
        self.report_discrepancy(None, None, Discrepancy::Unreadable, why, now);
        self.request_list_soon(now);
    }

    fn venue_phase(&mut self, phase: VenuePhase) {
        self.session.set_phase(phase);
        if phase == VenuePhase::NightClosing && self.password.forget() {
            tracing::info!(
                "the engine has forgotten the second password: the broker closes for the night"
            );
        }
    }

    /// Takes a notice and drops duplicates. Fills pass each time, because their orders know them by their
    /// numbers.
    fn notice_came(&mut self, mut notice: BrokerNotice, fields: &[Field], now: Now) {
        if notice.kind != NoticeKind::Filled {
            match self.reconciliation.seen.take(&notice, fields, now.wall.jst_date()) {
                Arrival::First => {}
                Arrival::Again => return,
                Arrival::Unknown => return self.request_list_soon(now),
            }
            if self.may_be_old(&notice, frame::is_resent(fields), now) {
                notice.kind = NoticeKind::Changed;
            }
        }
        self.notice(notice, now);
    }

    /// Whether a notice on a change may be older than the pending operation or than this process. Then it
    /// decides nothing, and a list resolves the order. The notice's time decides, if it has one. Without a time
    /// it is new if the stream was up before the request, and the broker does not mark it as resent. For an
    /// order of an earlier process the stream must also have been up for a while, so that the day's notices
    /// have arrived.
    fn may_be_old(&self, notice: &BrokerNotice, is_resent: bool, now: Now) -> bool {
        use NoticeKind as Kind;
        if !matches!(notice.kind, Kind::Updated | Kind::UpdateRefused | Kind::CancelRefused) {
            return false;
        }
        let seen = Seen::notice(notice, now.wall.jst_date());
        let key = self.book.by_number(&notice.venue_order_id, seen);
        let Some(order) = key.and_then(|key| self.book.get(key)) else { return false };
        let is_placed_here = order.client_order_id.is_some() && order.request_id.is_some();
        let Some(pending) = &order.pending else { return is_resent && !is_placed_here };
        if let Some(time) = notice.time {
            // The broker's times have no fractions of seconds.
            return time.millis() / 1_000 < pending.sent.wall.millis() / 1_000;
        }
        let settle = if is_placed_here { Duration::ZERO } else { self.rules.unknown_settle };
        let up = self.reconciliation.lists.stream_up;
        is_resent || up.is_none_or(|up| pending.sent.mono <= up + settle)
    }

    /// A notice about an order.
    fn notice(&mut self, notice: BrokerNotice, now: Now) {
        let number = &notice.venue_order_id;
        match self.book.by_number(number, Seen::notice(&notice, now.wall.jst_date())) {
            Some(key) if self.must_wait(key, &notice, now.mono, now) => self.hold(notice, now),
            Some(key) => {
                self.apply_notice(key, &notice, now);
                // The pending operation may have ended.
                if notice.kind != NoticeKind::Filled {
                    self.release_held(now);
                }
            }
            None => self.hold(notice, now),
        }
    }

    /// Whether a fill must wait until the order's shares at the broker are known. Else an order that works on
    /// would end here. An order of the log waits for the first list, because the log has no changes. One that
    /// was changed elsewhere waits for a list. One with a pending change to more shares waits for its answer
    /// (P27) or a list. The longest wait is that for an answer: a late fill is better than a lost one.
    fn must_wait(&self, key: OrderKey, notice: &BrokerNotice, came: Duration, now: Now) -> bool {
        let (Some(fill), Some(order)) = (&notice.fill, self.book.get(key)) else { return false };
        if now.mono.saturating_sub(came) >= ORDER_ANSWER_TIME {
            return false;
        }
        if order.is_restored() && self.reconciliation.lists.listed_at.is_none() {
            return true;
        }
        self.may_end_early(key, fill.quantity)
    }

    /// Whether a fill of so many shares would end an order whose number of shares is uncertain.
    pub(super) fn may_end_early(&self, key: OrderKey, shares: Quantity) -> bool {
        let Some(order) = self.book.get(key) else { return false };
        let ordered = order.order.quantity.shares();
        let ends = order.cumulative.saturating_add(shares.shares()) >= ordered;
        let wanted = order.pending.as_ref().and_then(|pending| pending.wanted.as_ref());
        let gets_more = wanted.is_some_and(|wanted| wanted.quantity.shares() > ordered);
        ends && (gets_more || order.changed_elsewhere.is_some())
    }

    /// Holds a notice of an order that is not known: its answer is under way (P27), or a list will have it.
    fn hold(&mut self, notice: BrokerNotice, now: Now) {
        if let Some(notice) = self.reconciliation.held.hold(now.mono, notice) {
            let text = format!("more than {NOTICES_HELD_MAX} notices name orders that no list has");
            let number = Some(&*notice.venue_order_id);
            let kind = Discrepancy::NoticeWithoutOrder;
            return self.report_discrepancy(None, number, kind, text, now);
        }
        if !self.queue.is_submitting() {
            self.request_list_soon(now);
        }
    }

    /// Looks at the held notices again when a fill among them has waited too long.
    pub(crate) fn tick_held(&mut self, now: Now) {
        let is_late = |came: Duration| now.mono.saturating_sub(came) >= ORDER_ANSWER_TIME;
        if self.reconciliation.held.has_fill(is_late) {
            self.release_held(now);
        }
    }

    /// Applies held notices whose orders are known by now. A notice whose order a later list does not have
    /// either is reported and dropped.
    pub(crate) fn release_held(&mut self, now: Now) {
        if self.reconciliation.held.is_empty() {
            return;
        }
        let is_submitting = self.queue.is_submitting();
        let settle = self.rules.unknown_settle;
        // A list with a row left out may have the order in that row (P129).
        let listed_at = self.reconciliation.lists.full_at;
        let today = now.wall.jst_date();
        let has_unknown = self.book.iter().any(|(_, order)| order.is_findable(today));
        for (came, notice) in self.reconciliation.held.take() {
            let number = &notice.venue_order_id;
            match self.book.by_number(number, Seen::notice(&notice, today)) {
                Some(key) if self.must_wait(key, &notice, came, now) => {
                    self.reconciliation.held.put_back(came, notice);
                    continue;
                }
                Some(key) => {
                    self.apply_notice(key, &notice, now);
                    continue;
                }
                None => {}
            }
            let is_unlisted = listed_at.is_some_and(|listed| listed >= came + settle);
            // It may be about an order whose number is unknown. It holds up the judgement of that order for a
            // limited time.
            let may_be_unknown = has_unknown && now.mono.saturating_sub(came) < ORDER_ANSWER_TIME;
            if is_unlisted && !is_submitting && !may_be_unknown {
                let text = format!("a notice ({:?}) names an order that no list has", notice.kind);
                let kind = Discrepancy::NoticeWithoutOrder;
                self.report_discrepancy(None, Some(number), kind, text, now);
                continue;
            }
            self.reconciliation.held.put_back(came, notice);
        }
        if !self.reconciliation.held.is_empty()
            && !is_submitting
            && self.reconciliation.lists.listed_at.is_none()
        {
            self.request_list_soon(now);
        }
    }

    fn apply_notice(&mut self, key: OrderKey, notice: &BrokerNotice, now: Now) {
        if let Some(order) = self.book.get_mut(key) {
            order.seen_on = Some(now.wall.jst_date());
        }
        let ts = notice.time.unwrap_or(now.wall);
        let reason = |words: &str| notice.reason.clone().unwrap_or_else(|| words.to_owned());
        match notice.kind {
            NoticeKind::Accepted | NoticeKind::UpdateAccepted | NoticeKind::CancelAccepted => {}
            NoticeKind::Rejected => {
                let text = reason("NOTICE: the broker refuses the order");
                let rejection = Rejection::new(ReasonCode::VenueRejected, text);
                self.reject(key, None, &rejection, now);
            }
            NoticeKind::UpdateRefused | NoticeKind::CancelRefused => {
                self.request_refused(key, notice, now);
            }
            NoticeKind::Updated => self.updated_by_notice(key, now),
            NoticeKind::Canceled => self.canceled(key, ts, now),
            NoticeKind::Expired => self.expired(key, ts, now),
            NoticeKind::Filled => self.filled(key, notice, ts, now),
            NoticeKind::FillCanceled => {
                let text = "the broker took a fill back; look at its own records".to_owned();
                self.report_discrepancy(Some(key), None, Discrepancy::FillCanceled, text, now);
                self.request_list_soon(now);
            }
            NoticeKind::Changed => self.changed_elsewhere(key, now),
        }
    }

    /// A change of the desk is confirmed by its answer, a change from elsewhere by the next list.
    fn updated_by_notice(&mut self, key: OrderKey, now: Now) {
        let order = self.book.get(key);
        let pending = order.and_then(|order| order.pending.as_ref());
        match pending {
            // The answer was lost, and this notice confirms the change.
            Some(pending) if pending.wanted.is_some() && pending.ended.is_some() => {
                self.updated(key, now);
            }
            Some(_) => {}
            None => self.changed_elsewhere(key, now),
        }
    }

    /// Marks an order as changed elsewhere; the next list has its present terms.
    fn changed_elsewhere(&mut self, key: OrderKey, now: Now) {
        let order = self.book.get_mut(key);
        if let Some(order) = order.filter(|order| !order.status.is_final()) {
            order.changed_elsewhere = Some(now.mono);
        }
        self.request_list_soon(now);
    }

    /// The exchange refuses a change or a cancel that the broker had accepted.
    fn request_refused(&mut self, key: OrderKey, notice: &BrokerNotice, now: Now) {
        let text = notice.reason.clone();
        let text =
            text.unwrap_or_else(|| "NOTICE: the broker refuses the change or the cancel".into());
        let rejection = Rejection::new(ReasonCode::VenueRejected, text);
        let Some(order) = self.book.get(key) else { return };
        let pending = order.pending.as_ref();
        let is_update = notice.kind == NoticeKind::UpdateRefused;
        let fits = pending.is_some_and(|pending| {
            pending.wanted.is_some() == is_update && pending.ended.is_some()
        });
        if fits {
            let request_id = pending.and_then(|pending| pending.request_id.clone());
            return self.work_on(key, request_id, &rejection, true, now);
        }
        if pending.is_none() {
            // The change counted as done; the list has the real terms.
            self.report_rejected(key, None, &rejection, now);
            self.request_list_soon(now);
        }
    }

    /// Ends an order as cancelled, once, by the earlier of notice and list (P27).
    pub(crate) fn canceled(&mut self, key: OrderKey, ts: TsNanos, now: Now) {
        self.end(key, OrderTrigger::CancelDone, now, |desk| desk.report_canceled(key, ts));
    }

    /// Ends an order whose time ran out, once.
    pub(crate) fn expired(&mut self, key: OrderKey, ts: TsNanos, now: Now) {
        self.end(key, OrderTrigger::Expire, now, |desk| desk.report_expired(key, ts));
    }

    fn end(
        &mut self,
        key: OrderKey,
        trigger: OrderTrigger,
        now: Now,
        report: impl FnOnce(&mut Self),
    ) {
        let Some(order) = self.book.get_mut(key) else { return };
        // A refused change had set the order to REJECTED, but it was working.
        if order.awaits_list && order.found_working(now.mono, &mut self.illegal) {
            self.report_accepted(key, now);
        }
        let Some(order) = self.book.get_mut(key) else { return };
        // Notice and list both report it, and notices are sent again.
        if !order.status.is_final() && order.take(trigger, now.mono, &mut self.illegal) {
            order.is_over = true;
            if let Some(order) = self.book.get(key) {
                audit::ended(&mut *self.log, order, now.wall);
            }
            report(self);
            if let Some(order) = self.book.get_mut(key) {
                order.pending = None;
            }
        }
    }

    /// Takes a notice of a fill. It may be a duplicate, or the order's details may have reported the fill.
    fn filled(&mut self, key: OrderKey, notice: &BrokerNotice, ts: TsNanos, now: Now) {
        let (Some(fill), Some(order)) = (&notice.fill, self.book.get_mut(key)) else { return };
        if !can_be(fill.quantity, fill.price) {
            let text = format!(
                "a notice tells a fill of {} shares at {}, which cannot be",
                fill.quantity, fill.price
            );
            return self.unreadable_notice(text, now);
        }
        let id = fill_id(notice.business_day.as_deref(), &fill.trade_id);
        let reported = (fill.quantity, fill.price);
        if let Some(known) = order.known_fill(&id) {
            if known != reported {
                let text =
                    format!("fill {} came again with other shares or another price", fill.trade_id);
                self.report_discrepancy(Some(key), None, Discrepancy::FillConflict, text, now);
            }
            return;
        }
        if order.is_detailed(&id, reported) {
            return;
        }
        if order.absorbs(&id, reported, now.mono) {
            return self.request_list_soon(now);
        }
        let from = FillSource::Notice(notice.business_day.as_deref());
        self.take_fill(key, from, fill, ts, now);
    }

    /// Records a new fill: written to the log, counted and reported once, whatever the order's state is.
    pub(super) fn take_fill(
        &mut self,
        key: OrderKey,
        from: FillSource<'_>,
        fill: &BrokerFill,
        ts: TsNanos,
        now: Now,
    ) {
        let Some(order) = self.book.get_mut(key) else { return };
        if order.fills.len() >= FILLS_PER_ORDER_MAX {
            let text = format!("the order has more than {FILLS_PER_ORDER_MAX} fills");
            return self.report_discrepancy(Some(key), None, Discrepancy::Overfilled, text, now);
        }
        let id = match from {
            FillSource::Notice(day) => fill_id(day, &fill.trade_id),
            FillSource::Details => detail_id(&fill.trade_id),
        };
        order.fills.insert(id, (fill.quantity, fill.price));
        let is_of_strategy = order.strategy_id().is_some();
        let ordered = order.order.quantity.shares();
        // A strategy never has more of an order than it asked for, whatever the broker reports.
        let most = order.most_asked.max(ordered).saturating_sub(order.cumulative);
        let counted = match is_of_strategy {
            true => fill.quantity.shares().min(most),
            false => fill.quantity.shares(),
        };
        order.cumulative = order.cumulative.saturating_add(counted);
        let is_over = order.cumulative > ordered || counted < fill.quantity.shares();
        let counted = Quantity::new(counted);
        let done = order.cumulative >= ordered;
        let before = order.status;
        // A filled order stays filled.
        if before != OrderStatus::Filled {
            let _ = order.take(OrderTrigger::Fill { done }, now.mono, &mut self.illegal);
        }
        order.changed_at = now.mono;
        if done && order.status == OrderStatus::Filled {
            order.is_over = true;
            order.pending = None;
        }
        // Written before it is reported, so that no later process reports it as new (P130). If the write fails
        // it is reported all the same; see `write_fill` for strategies.
        let order = self.book.get(key);
        let line = order.and_then(|order| audit::filled(order, from, fill, counted, ts));
        let is_written = match (line, is_of_strategy) {
            (Some(line), true) => self.write_fill(line, now),
            (Some(line), false) => {
                audit::note_filled(&mut *self.log, line);
                true
            }
            (None, _) => true,
        };
        if !counted.is_zero() {
            let trade_id = &fill.trade_id;
            let reported =
                ReportedFill { trade_id, quantity: counted, price: fill.price, ts, is_written };
            self.report_filled(key, reported);
        }
        if let Some(order) = self.book.get(key)
            && order.status == OrderStatus::Filled
            && before != OrderStatus::Filled
        {
            audit::ended(&mut *self.log, order, now.wall);
        }
        self.after_fill_for_run(key, now);
        self.after_fill(key, now);
        if is_over {
            let text =
                format!("the broker reports more filled shares than the {ordered} of the order");
            self.report_discrepancy(Some(key), None, Discrepancy::Overfilled, text, now);
        }
        if before == OrderStatus::Canceled || before == OrderStatus::Expired {
            self.request_list_soon(now);
        }
    }

    /// The stream of notices is up: missed notices are sent again, and a list shows the state of orders.
    pub fn stream_up(&mut self, now: Now) {
        self.set_stream(Some(now.mono));
        self.request_list_soon(now);
        self.check_ready(now);
        self.tick_resync(now);
    }

    /// The stream of notices is down.
    pub fn stream_down(&mut self) {
        self.set_stream(None);
    }
}
