//! One order: what the desk knows of it, and whether a row or a notice describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::order::OrderTrigger;
use domain::order_mapping::{BrokerNotice, BrokerOrder, BrokerRow, ListedFill};
use domain::{
    Discrepancy, InstrumentIx, JstDate, OrderOrigin, OrderRequest, OrderSide, OrderStatus,
    OrderType, Origin, Price, Quantity, ShortText, TimeInForce, TriggerType, TsNanos,
};

use crate::audit::FillSource;
use crate::audit::restore::{RestoredFill, RestoredOrder};
use crate::desk::Now;
use crate::limits::{CLAIM_LATEST_MS, FILLS_PER_ORDER_MAX, REASONS_PER_ORDER_MAX};

/// The kind of tag by which an order settles a margin position with shares or cash.
const CLOSE_ACTION: &str = "close_action=";

/// The tag of an order whose limit holds until the close, where it is filled at any price.
const FUNARI: &str = "close_strategy=funari";

/// A change or a cancel that was sent to the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingOperation {
    /// The command's id.
    pub(crate) request_id: Option<String>,
    /// The order as the change wants it; none for a cancel.
    pub(crate) wanted: Option<BrokerOrder>,
    /// When it was sent.
    pub(crate) sent: Now,
    /// When the answer came, or was no longer awaited; none while it is awaited.
    pub(crate) ended: Option<Duration>,
}

/// An order as it stands in the broker's newest list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) status: OrderStatus,
    pub(crate) filled: Quantity,
    /// When the first list with this status and these fills was requested.
    pub(crate) since: Duration,
}

/// Transitions that were tried and are not in the state table. Duplicate and late messages are filtered before,
/// so each of these is a bug of the desk.
#[derive(Debug, Default)]
pub(crate) struct Illegal(u64);

impl Illegal {
    pub(crate) const fn count(&self) -> u64 {
        self.0
    }
}

/// One order.
#[derive(Debug, Clone)]
pub(crate) struct DeskOrder {
    /// The caller's id; none for an order placed elsewhere.
    pub(crate) client_order_id: Option<ShortText>,
    /// Who sent it; none for an order placed elsewhere.
    pub(crate) origin: Option<OrderOrigin>,
    pub(crate) request_key: u64,
    /// The command that sent it.
    pub(crate) request_id: Option<String>,
    /// Whether it is a strategy's order on margin: its shares are apart from what the strategy holds.
    pub(crate) is_margin: bool,
    /// `7203.TSE`.
    pub(crate) instrument_id: ShortText,
    /// Its place in the desk's table.
    pub(crate) instrument: InstrumentIx,
    /// Its present terms, prices as the broker has them. The time in force of a restored order is unknown if
    /// its log line does not name it.
    pub(crate) order: BrokerOrder,
    /// The most shares that it was ever asked to have: the answer of a change may have been lost.
    pub(crate) most_asked: u64,
    /// Whether its times and prices are known.
    pub(crate) is_whole: bool,
    pub(crate) expire_time: Option<TsNanos>,
    pub(crate) venue_order_id: Option<ShortText>,
    pub(crate) business_day: Option<ShortText>,
    pub(crate) status: OrderStatus,
    /// Fills by their number.
    pub(crate) fills: BTreeMap<ShortText, (Quantity, Price)>,
    /// Fills of them that only the broker's details reported. Their numbers are the desk's own.
    pub(crate) detailed: Vec<ShortText>,
    /// How many the details have reported.
    pub(crate) details_reported: u64,
    /// Failed requests for its details.
    pub(crate) details_tried: u32,
    /// Shares of [`Self::detailed`] that notices have absorbed. These notices report the same fills in other
    /// parts or at another price, or fills of others.
    absorbed: u64,
    /// These notices by their number.
    absorbed_notices: BTreeMap<ShortText, (Quantity, Price)>,
    /// Those of them that no later details have matched.
    unmatched: Vec<(Quantity, Price)>,
    /// The worst limit price of its earlier terms.
    past_limit: Option<Price>,
    pub(crate) cumulative: u64,
    /// Time of the submit, or of the broker's order, in milliseconds UTC.
    pub(crate) ts_ms: u64,
    /// Number of the request that sent it.
    pub(crate) p_no: Option<u64>,
    /// When its request left, if no clear answer came.
    pub(crate) unknown_since: Option<Duration>,
    pub(crate) pending: Option<PendingOperation>,
    pub(crate) listed: Option<Listed>,
    /// The newest list has rows that may be this order; its number stays unknown (P19).
    pub(crate) is_ambiguous: bool,
    /// It is REJECTED because a change was refused, and no list has confirmed that yet (P26).
    pub(crate) awaits_list: bool,
    /// When it was changed elsewhere, if no list requested since has shown how.
    pub(crate) changed_elsewhere: Option<Duration>,
    /// The broker will not change it any more.
    pub(crate) is_over: bool,
    /// When its state or its fills changed last. A list that was requested before knows less.
    pub(crate) changed_at: Duration,
    /// The last date in Japan on which a row or a notice reported it.
    pub(crate) seen_on: Option<JstDate>,
    /// A list of a later day does not have it.
    pub(crate) is_gone: bool,
    /// It is a strategy's, a list of a later day does not have it, and nobody has told how it ended: its details
    /// tell what it was filled.
    pub(crate) end_unseen: bool,
    /// Discrepancies that were reported of it.
    pub(crate) reported: BTreeSet<Discrepancy>,
    /// Why its row was left out of lists; each was reported.
    unreadable: BTreeSet<String>,
}

impl DeskOrder {
    /// An order that was made and not sent.
    pub(crate) fn new(
        client_order_id: ShortText,
        request_key: u64,
        (instrument, instrument_id): (InstrumentIx, ShortText),
        order: BrokerOrder,
        ts_ms: u64,
    ) -> Self {
        Self {
            client_order_id: Some(client_order_id),
            origin: Some(OrderOrigin::Person),
            request_key,
            request_id: None,
            is_margin: false,
            instrument_id,
            instrument,
            most_asked: order.quantity.shares(),
            order,
            is_whole: true,
            expire_time: None,
            venue_order_id: None,
            business_day: None,
            status: OrderStatus::Initialized,
            fills: BTreeMap::new(),
            detailed: Vec::new(),
            details_reported: 0,
            details_tried: 0,
            absorbed: 0,
            absorbed_notices: BTreeMap::new(),
            unmatched: Vec::new(),
            past_limit: None,
            cumulative: 0,
            ts_ms,
            p_no: None,
            unknown_since: None,
            pending: None,
            listed: None,
            is_ambiguous: false,
            awaits_list: false,
            changed_elsewhere: None,
            is_over: false,
            changed_at: Duration::ZERO,
            seen_on: None,
            is_gone: false,
            end_unseen: false,
            reported: BTreeSet::new(),
            unreadable: BTreeSet::new(),
        }
    }

    /// An order of the log. `started` is the start of the desk: its request was sent at the latest then.
    pub(crate) fn restored(
        from: RestoredOrder,
        instrument: InstrumentIx,
        started: Duration,
    ) -> Self {
        let symbol = from.instrument_id.split('.').next().unwrap_or_default();
        let order = BrokerOrder {
            symbol: symbol.into(),
            side: from.side,
            order_type: from.order_type,
            quantity: from.quantity,
            price: from.price,
            trigger_price: from.trigger_price,
            time_in_force: from.time_in_force.unwrap_or(TimeInForce::Day),
            expire_date: from.expire_time.map(TsNanos::jst_date),
            tags: Vec::new(),
        };
        let mut made = Self::new(
            from.client_order_id,
            from.request_key,
            (instrument, from.instrument_id),
            order,
            from.ts_ms,
        );
        made.origin = Some(from.origin);
        made.is_whole = from.time_in_force.is_some();
        made.expire_time = from.expire_time;
        let is_known = from.venue_order_id.is_some();
        made.status = if is_known { OrderStatus::Accepted } else { OrderStatus::Submitted };
        made.venue_order_id = from.venue_order_id;
        made.business_day = from.business_day;
        made.unknown_since = (!is_known).then_some(started);
        made.is_margin = from.is_margin;
        if let Some(ended) = from.ended.filter(|ended| is_known && ended.is_final()) {
            (made.status, made.is_over) = (ended, true);
        }
        made
    }

    /// An order of the broker's list that was placed elsewhere.
    pub(crate) fn foreign(row: &BrokerRow, instrument: (InstrumentIx, ShortText)) -> Self {
        let order = BrokerOrder {
            symbol: row.symbol.clone(),
            side: row.side,
            order_type: row.order_type,
            quantity: row.quantity,
            price: row.price,
            trigger_price: row.trigger_price,
            time_in_force: row.time_in_force,
            expire_date: row.expire_date,
            tags: Vec::new(),
        };
        let mut made = Self::new("".into(), 0, instrument, order, row.time.millis());
        (made.client_order_id, made.origin) = (None, None);
        made.expire_time = row.expire_date.and_then(last_moment);
        made.venue_order_id = Some(row.venue_order_id.clone());
        made.business_day.clone_from(&row.business_day);
        made.status = OrderStatus::Accepted;
        made
    }

    /// The kind of its sender and the sender's id, by which it is found; none for an order placed elsewhere.
    pub(crate) fn name(&self) -> Option<(Origin, ShortText)> {
        let origin = self.origin.as_ref().map(OrderOrigin::kind)?;
        Some((origin, self.client_order_id.clone()?))
    }

    /// The strategy that sent it.
    pub(crate) fn strategy_id(&self) -> Option<&str> {
        self.origin.as_ref().and_then(OrderOrigin::strategy_id)
    }

    /// Whether it sells shares that its strategy bought with cash.
    pub(crate) fn sells_own_shares(&self) -> bool {
        self.strategy_id().is_some() && self.order.side == OrderSide::Sell && !self.is_margin
    }

    /// Whether it may still trade on a date: it has not ended, and the broker has it. An order of an earlier day
    /// without a date of its own ended with that day.
    pub(crate) fn is_working(&self, today: JstDate) -> bool {
        let is_of_today = self.day() >= today || self.last_day() >= today || self.lives_on(today);
        !self.status.is_final() && !self.is_over && (self.is_unknown() || is_of_today)
    }

    /// Whether a fill of an earlier process belongs to it. Numbers begin again on another day, so the times
    /// must be near each other.
    pub(crate) fn has_reported(&self, fill: &RestoredFill) -> bool {
        self.venue_order_id.as_deref() == Some(&*fill.venue_order_id)
            && self.instrument_id == fill.instrument_id
            && self.ts_ms.abs_diff(fill.order_ts_ms) <= CLAIM_LATEST_MS
    }

    /// Takes up a fill that an earlier process reported: it counts, and no event is broadcast. Whether the
    /// order is filled by it, a list decides, because the log has no changes.
    pub(crate) fn take_reported(&mut self, fill: &RestoredFill) {
        let id = match fill.from_details {
            true => detail_id(&fill.trade_id),
            false => fill_id(fill.business_day.as_deref(), &fill.trade_id),
        };
        if fill.from_details && !self.detailed.contains(&id) {
            self.detailed.push(id.clone());
            // The desk's own numbers continue from it.
            let number = fill.trade_id.rsplit('D').next().and_then(|number| number.parse().ok());
            self.details_reported = self.details_reported.max(number.unwrap_or(0));
        }
        if self.fills.insert(id, (fill.quantity, fill.price)).is_none() {
            self.cumulative = self.cumulative.saturating_add(fill.counted.shares());
            let is_final = self.status.is_final();
            let next = self.status.transition(OrderTrigger::Fill { done: false });
            if let Some((next, _)) = next.ok().filter(|_| !is_final) {
                self.status = next;
            }
        }
    }

    /// Its present terms, as senders of orders write them.
    pub(crate) fn request(&self) -> OrderRequest {
        let order = &self.order;
        OrderRequest {
            client_order_id: self.client_order_id.clone().unwrap_or_default(),
            instrument: self.instrument,
            side: order.side,
            order_type: order.order_type,
            quantity: order.quantity,
            price: order.price,
            trigger_price: order.trigger_price,
            trigger_type: order.trigger_price.map(|_| TriggerType::Last),
            time_in_force: order.time_in_force,
            expire_time: self.expire_time,
            post_only: false,
            reduce_only: false,
            tags: order.tags.clone(),
        }
    }

    /// Shares that it may still trade: of its present terms, or of a change that is under way to more.
    pub(crate) fn most_leaves(&self) -> u64 {
        self.most_shares().saturating_sub(self.cumulative)
    }

    /// Its shares, or those of a change that is under way to more.
    pub(crate) fn most_shares(&self) -> u64 {
        let wanted = self.pending.as_ref().and_then(|pending| pending.wanted.as_ref());
        let wanted = wanted.map_or(0, |wanted| wanted.quantity.shares());
        self.order.quantity.shares().max(wanted)
    }

    /// The order in words for a person: number, side and shares.
    pub(crate) fn named_with_number(&self) -> String {
        format!(
            "{} ({} {} {}, {} filled)",
            self.venue_order_id.as_deref().unwrap_or("without a number"),
            self.order.side,
            self.order.quantity,
            self.instrument_id,
            self.cumulative
        )
    }

    /// Shares still open.
    pub(crate) fn leaves(&self) -> u64 {
        self.order.quantity.shares().saturating_sub(self.cumulative)
    }

    pub(crate) const fn is_partly_filled(&self) -> bool {
        self.cumulative > 0
    }

    /// Whether its request has left and its number is unknown.
    pub(crate) fn is_unknown(&self) -> bool {
        self.status == OrderStatus::Submitted && self.venue_order_id.is_none()
    }

    /// Whether a list can still resolve it. Lists no longer have orders of an earlier day, and the newest list
    /// may leave it ambiguous.
    pub(crate) fn is_findable(&self, today: JstDate) -> bool {
        self.is_unknown() && !self.is_ambiguous && self.day() == today
    }

    /// The date in Japan on which it was placed.
    pub(crate) fn day(&self) -> JstDate {
        day_of(self.ts_ms)
    }

    /// Whether nothing more is expected of it: it may be forgotten when its last day is over (P23).
    pub(crate) fn is_settled(&self) -> bool {
        !self.awaits_list && !self.end_unseen && (self.status.is_final() || self.is_over)
    }

    /// Whether the broker still has it after the day on which it was placed: it has a date of its own, or
    /// was placed in the evening for a business day that is not over.
    pub(crate) fn lives_on(&self, today: JstDate) -> bool {
        let plain = |date: JstDate| date.to_string().replace('-', "");
        let is_for_later = self.business_day.as_deref().is_some_and(|day| *day >= *plain(today));
        is_for_later || self.order.expire_date.is_some_and(|last| last >= today)
    }

    /// Whether it is from the log and the broker has not reported it since.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.is_restored()
            && self.venue_order_id.is_some()
            && self.seen_on.is_none()
            && !self.is_settled()
    }

    /// The last date on which it was placed or reported: an order that lives on is of that day, too.
    pub(crate) fn last_day(&self) -> JstDate {
        self.seen_on.map_or(self.day(), |reported| reported.max(self.day()))
    }

    /// Whether a row or a notice with its number is about it. If both business days are known they decide. Else
    /// a row must have the date of the placement. A notice has no date: the order must have been placed or
    /// reported today. Only an order with an expiry date lives on to other business days, up to that date.
    pub(crate) fn is_seen_as(&self, seen: Seen<'_>) -> bool {
        let is_seen_today = self.seen_on == Some(seen.today);
        let is_same_day = match (self.business_day.as_deref(), seen.day, seen.placed) {
            (Some(known), Some(day), _) => known == day,
            (_, _, Some(placed)) => self.day() == placed,
            (_, _, None) => self.day() == seen.today || is_seen_today,
        };
        let last = self.order.expire_date.filter(|_| is_seen_today || !self.status.is_final());
        // A row names the date of the order's placement. An order that was accepted just now was placed now.
        let may_live_on = !seen.is_new && seen.placed.is_none_or(|placed| placed == self.day());
        let lives_on = may_live_on && last.is_some_and(|last| last >= seen.today);
        self.has_looks_of(seen) && (is_same_day || lives_on)
    }

    /// Whether it is from the log: placed by this desk, in a process before.
    pub(crate) fn is_restored(&self) -> bool {
        self.client_order_id.is_some() && self.request_id.is_none()
    }

    /// Whether symbol and side are those of the order; another symbol or side is another order.
    pub(super) fn has_looks_of(&self, seen: Seen<'_>) -> bool {
        let settles = close_action(&self.order.tags).is_some();
        // The log does not record the tags of an order.
        let is_restored = self.is_restored();
        let has_side = seen.side.is_none_or(|side| side == self.order.side);
        (seen.symbol.is_empty() || *self.order.symbol == *seen.symbol)
            && (has_side || settles || is_restored)
    }

    /// Moves it to its next state. Returns whether the state table has the transition.
    #[must_use]
    pub(crate) fn take(
        &mut self,
        trigger: OrderTrigger,
        now: Duration,
        illegal: &mut Illegal,
    ) -> bool {
        match self.status.transition(trigger) {
            Ok((next, _)) => {
                self.status = next;
                self.changed_at = now;
                true
            }
            Err(error) => {
                illegal.0 += 1;
                let id = self.client_order_id.as_deref();
                tracing::error!(%error, id, "the order keeps its state");
                false
            }
        }
    }

    /// It works or is filled, and was REJECTED because a change of it was refused.
    pub(crate) fn found_working(&mut self, now: Duration, illegal: &mut Illegal) -> bool {
        self.awaits_list = false;
        let partly_filled = self.is_partly_filled();
        if !self.take(OrderTrigger::FoundWorking { partly_filled }, now, illegal) {
            return false;
        }
        // Its fills were reported while it was REJECTED.
        self.end_if_filled(now, illegal);
        true
    }

    /// Ends an order whose changed quantity is filled already.
    pub(crate) fn end_if_filled(&mut self, now: Duration, illegal: &mut Illegal) {
        let is_filled = self.cumulative >= self.order.quantity.shares();
        if is_filled && self.take(OrderTrigger::Fill { done: true }, now, illegal) {
            self.is_over = true;
        }
    }

    /// Whether a notice reports a fill that the details reported before; the fill gets the notice's number.
    /// Details have no fill numbers: equal shares at an equal price count as one fill. If the notice is another
    /// fill, the list has more shares, and the next details show it.
    pub(crate) fn is_detailed(&mut self, id: &ShortText, reported: (Quantity, Price)) -> bool {
        let place = self.detailed.iter().position(|own| self.fills.get(own) == Some(&reported));
        let Some(place) = place else { return false };
        let own = self.detailed.remove(place);
        self.fills.remove(&own);
        self.fills.insert(id.clone(), reported);
        self.absorbed = self.absorbed.min(self.detailed_shares());
        true
    }

    /// Shares that the details reported and that no notice reported alike.
    fn detailed_shares(&self) -> u64 {
        let fills = self.detailed.iter().filter_map(|own| self.fills.get(own));
        fills.fold(0, |sum, (quantity, _)| sum.saturating_add(quantity.shares()))
    }

    /// Whether the shares of a notice may be those of the details, at another price or in other parts. No share
    /// counts twice. If the notice is another fill, the list has more shares, and the next details show it.
    pub(crate) fn absorbs(
        &mut self,
        id: &ShortText,
        reported: (Quantity, Price),
        now: Duration,
    ) -> bool {
        let room = self.detailed_shares().saturating_sub(self.absorbed);
        let taken = reported.0.shares().min(room);
        if taken == 0 {
            return false;
        }
        self.absorbed += taken;
        if self.absorbed_notices.len() < FILLS_PER_ORDER_MAX {
            self.absorbed_notices.insert(id.clone(), reported);
            self.unmatched.push(reported);
        }
        // Only a list that is requested later says whose shares they are.
        self.changed_at = now;
        true
    }

    /// A fill that a notice reported, by its number.
    pub(crate) fn known_fill(&self, id: &ShortText) -> Option<(Quantity, Price)> {
        self.fills.get(id).or_else(|| self.absorbed_notices.get(id)).copied()
    }

    /// A fill from the details. Later notices may report it, unless an earlier notice did.
    pub(crate) fn note_detailed(&mut self, id: ShortText, reported: (Quantity, Price)) {
        match self.unmatched.iter().position(|one| *one == reported) {
            Some(place) => drop(self.unmatched.swap_remove(place)),
            None => self.detailed.push(id),
        }
    }

    /// A notice's fill whose price no other fill has and no later details confirm. If the list's shares are all
    /// reported, the details reported this fill otherwise. It is reported once.
    pub(crate) fn conflicting_notice(&self) -> Option<(Quantity, Price)> {
        let filled = self.listed.map(|listed| listed.filled.shares());
        let is_open =
            filled == Some(self.cumulative) && !self.reported.contains(&Discrepancy::FillConflict);
        let is_reported =
            |price: Price| self.fills.values().any(|(_, reported)| *reported == price);
        self.unmatched.iter().find(|(_, price)| is_open && !is_reported(*price)).copied()
    }

    /// Remembers its limit price before a change: fills from before may be reported later.
    pub(crate) fn note_past_limit(&mut self) {
        self.past_limit = self.worse_limit(self.past_limit, self.order.price);
    }

    fn worse_limit(&self, one: Option<Price>, other: Option<Price>) -> Option<Price> {
        let (Some(first), Some(second)) = (one, other) else { return one.or(other) };
        Some(match self.order.side {
            OrderSide::Buy => first.max(second),
            OrderSide::Sell => first.min(second),
        })
    }

    /// The worst price at which it may have been filled: of its present limit, its earlier limits and a pending
    /// change. `None` if any price is possible.
    pub(crate) fn worst_price(&self) -> Option<Price> {
        let made = &self.order;
        let has_limit = matches!(made.order_type, OrderType::Limit | OrderType::StopLimit);
        // The limit may hold until the close only. Tags are known only for orders that this process has sent.
        let may_lose_it = made.time_in_force == TimeInForce::AtTheClose
            && (self.request_id.is_none() || made.tags.iter().any(|tag| tag == FUNARI));
        let wanted = self.pending.as_ref().and_then(|pending| pending.wanted.as_ref());
        let limit = made.price.filter(|_| has_limit && !may_lose_it)?;
        let past = self.worse_limit(Some(limit), self.past_limit);
        self.worse_limit(past, wanted.and_then(|wanted| wanted.price))
    }

    /// Whether a price is worse than [`Self::worst_price`].
    pub(crate) fn is_too_bad(&self, price: Price) -> bool {
        self.worst_price().is_some_and(|worst| match self.order.side {
            OrderSide::Buy => price > worst,
            OrderSide::Sell => price < worst,
        })
    }

    /// The fills of the details that were not reported yet; `None` if the details lack a reported one.
    pub(crate) fn unreported_of(&self, details: &[ListedFill]) -> Option<Vec<ListedFill>> {
        let mut reported: BTreeMap<(Quantity, Price), u64> = BTreeMap::new();
        for fill in self.fills.values() {
            *reported.entry(*fill).or_default() += 1;
        }
        let mut unreported = Vec::new();
        for fill in details {
            match reported.get_mut(&(fill.quantity, fill.price)).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => unreported.push(*fill),
            }
        }
        reported.values().all(|count| *count == 0).then_some(unreported)
    }

    /// Whether its row is left out of a list for this reason for the first time; notes the reason.
    pub(crate) fn is_unreadable_anew(&mut self, why: &str) -> bool {
        self.unreadable.len() < REASONS_PER_ORDER_MAX && self.unreadable.insert(why.to_owned())
    }

    /// Notes its row of a list, with the time of the request for that list.
    pub(crate) fn set_listed(&mut self, row: &BrokerRow, requested_at: Duration) {
        let (status, filled) = (row.status, row.filled);
        let same = self.listed.filter(|one| one.status == status && one.filled == filled);
        let since = same.map_or(requested_at, |one| one.since);
        self.listed = Some(Listed { status, filled, since });
    }

    /// Whether the broker's newest list has it as filled, while the desk has it as working.
    pub(crate) fn is_listed_as_filled(&self) -> bool {
        let is_filled = self.listed.is_some_and(|row| row.status == OrderStatus::Filled);
        is_filled && self.is_over && !self.status.is_final() && self.pending.is_none()
    }

    /// Ends an order that the list has as filled and whose notices are incomplete. The broker's status counts,
    /// and no fill is made up.
    pub(crate) fn end_as_listed(&mut self, now: Duration, illegal: &mut Illegal) {
        if self.is_listed_as_filled() {
            let _ = self.take(OrderTrigger::Fill { done: true }, now, illegal);
        }
    }
}

/// The key of a fill: the broker's numbers may begin again on another business day.
pub(crate) fn fill_id(business_day: Option<&str>, trade_id: &str) -> ShortText {
    match business_day {
        Some(day) => format!("{day} {trade_id}").into(),
        None => trade_id.into(),
    }
}

/// The key of a fill that the broker's details reported, whose number is the desk's own.
pub(crate) fn detail_id(trade_id: &str) -> ShortText {
    format!("details {trade_id}").into()
}

/// What reported a fill, and its number at the broker, from its key.
pub(crate) fn split_fill_id(id: &str) -> (FillSource<'_>, &str) {
    match id.split_once(' ') {
        Some(("details", trade_id)) => (FillSource::Details, trade_id),
        Some((day, trade_id)) => (FillSource::Notice(Some(day)), trade_id),
        None => (FillSource::Notice(None), id),
    }
}

/// The tag by which an order settles a margin position.
pub(crate) fn close_action(tags: &[String]) -> Option<&str> {
    tags.iter().map(String::as_str).find(|tag| tag.starts_with(CLOSE_ACTION))
}

/// The date in Japan of a time in milliseconds UTC.
fn day_of(ts_ms: u64) -> JstDate {
    TsNanos::from_nanos(ts_ms.saturating_mul(1_000_000)).jst_date()
}

/// The last nanosecond of a date in Japan.
pub(crate) fn last_moment(date: JstDate) -> Option<TsNanos> {
    TsNanos::from_jst(date, domain::time::NANOS_PER_DAY - 1)
}

/// What a row or a notice says about the date and the identity of its order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    /// Its business day.
    pub(crate) day: Option<&'a str>,
    /// When it was placed.
    pub(crate) placed: Option<JstDate>,
    /// The date on which it is seen.
    pub(crate) today: JstDate,
    /// It is the answer to a new order, which the broker did not have before.
    pub(crate) is_new: bool,
    /// `7203`; empty if unknown.
    pub(crate) symbol: &'a str,
    /// Its side, if it identifies the order. An order that settles a margin position has a side of its own.
    pub(crate) side: Option<OrderSide>,
}

impl<'a> Seen<'a> {
    /// In a list that was read on a date.
    pub(crate) fn row(row: &'a BrokerRow, today: JstDate) -> Self {
        let placed = Some(row.time.jst_date());
        let settles = close_action(&row.tags).is_some();
        let side = (!settles).then_some(row.side);
        let (day, is_new) = (row.business_day.as_deref(), false);
        Self { day, placed, today, is_new, symbol: &row.symbol, side }
    }

    /// By its number alone, on a date.
    pub(crate) const fn number_alone(today: JstDate) -> Self {
        Self { day: None, placed: None, today, is_new: false, symbol: "", side: None }
    }

    /// In a notice that came on a date.
    pub(crate) fn notice(notice: &'a BrokerNotice, today: JstDate) -> Self {
        let day = notice.business_day.as_deref();
        Self { day, placed: None, today, is_new: false, symbol: &notice.symbol, side: None }
    }
}
