//! The event log's digest: one number that two runs share exactly when every event of orders, and
//! every signal and narrative, was the same and came in the same order. Lines of the log are not in it.
//!
//! Encoding, all integers little-endian: a record is its tag (one byte), its time (u64), then its
//! fields. A text is its length in bytes (u32) and its UTF-8 bytes; an optional field is one byte 0,
//! or one byte 1 and the field. Enumerations are written by their name on the wire.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::adjustment::ExRights;
use crate::event::{Fill, OrderEvent, OrderEventKind};
use crate::money::Money;
use crate::order::{OrderRequest, Origin};
use crate::strategy::{NarrativeRecord, Signal};
use crate::time::TsNanos;

/// Bytes of records that are hashed together: the hash is over all of them, wherever it is cut.
const HASHED_TOGETHER: usize = 4_096;

/// Version of the encoding; part of the digest.
const ENCODING_VERSION: u32 = 1;

/// First byte of each kind of record.
mod tag {
    pub(super) const SUBMITTED: u8 = 1;
    pub(super) const ACCEPTED: u8 = 2;
    pub(super) const REJECTED: u8 = 3;
    pub(super) const PENDING_UPDATE: u8 = 4;
    pub(super) const UPDATED: u8 = 5;
    pub(super) const PENDING_CANCEL: u8 = 6;
    pub(super) const CANCELED: u8 = 7;
    pub(super) const EXPIRED: u8 = 8;
    pub(super) const FILLED: u8 = 9;
    pub(super) const SIGNAL: u8 = 20;
    pub(super) const NARRATIVE: u8 = 21;
    pub(super) const ADJUSTMENT: u8 = 22;
    pub(super) const END: u8 = 30;
    /// Added to the tag of an order's event where the order is a client's, not the strategy's.
    pub(super) const OF_CLIENT: u8 = 100;
}

/// A digest: 128 bits of xxh3, printed as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub u128);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Takes in records one after the other.
#[derive(Clone)]
pub struct EventLogDigest {
    hasher: Xxh3,
    /// Records that are not hashed yet.
    waiting: Vec<u8>,
    records: u64,
}

impl Default for EventLogDigest {
    fn default() -> Self {
        let mut hasher = Xxh3::new();
        hasher.update(&ENCODING_VERSION.to_le_bytes());
        Self { hasher, waiting: Vec::with_capacity(HASHED_TOGETHER + 256), records: 0 }
    }
}

impl EventLogDigest {
    /// Takes in an event of an order.
    pub fn order_event(&mut self, event: &OrderEvent) {
        let tag = match &event.kind {
            OrderEventKind::Submitted(_) => tag::SUBMITTED,
            OrderEventKind::Accepted => tag::ACCEPTED,
            OrderEventKind::Rejected(_) => tag::REJECTED,
            OrderEventKind::PendingUpdate(_) => tag::PENDING_UPDATE,
            OrderEventKind::Updated(_) => tag::UPDATED,
            OrderEventKind::PendingCancel => tag::PENDING_CANCEL,
            OrderEventKind::Canceled => tag::CANCELED,
            OrderEventKind::Expired(_) => tag::EXPIRED,
            OrderEventKind::Filled(_) => tag::FILLED,
        };
        let tag = if event.origin == Origin::Client { tag + tag::OF_CLIENT } else { tag };
        self.begin(tag, event.ts_event);
        self.text(&event.client_order_id);
        self.optional_text(event.venue_order_id.as_deref());
        self.u16(event.instrument.0);
        self.text(event.status.as_str());
        match &event.kind {
            OrderEventKind::Submitted(request) => self.request(request),
            OrderEventKind::Rejected(rejection) => {
                self.text(rejection.code.as_str());
                self.text(&rejection.text);
            }
            OrderEventKind::PendingUpdate(change) => {
                self.optional_u64(change.quantity.map(|quantity| quantity.shares()));
                self.optional_i64(change.price.map(|price| price.units()));
                self.optional_i64(change.trigger_price.map(|price| price.units()));
                self.optional_u64(change.expire_time.map(|timestamp| timestamp.nanos()));
            }
            OrderEventKind::Expired(reason) => self.text(reason),
            OrderEventKind::Filled(fill) => self.fill(fill),
            OrderEventKind::Accepted
            | OrderEventKind::Updated(_)
            | OrderEventKind::PendingCancel
            | OrderEventKind::Canceled => {}
        }
        self.end();
    }

    /// Takes in a signal of the strategy.
    pub fn signal(&mut self, timestamp: TsNanos, signal: &Signal) {
        self.begin(tag::SIGNAL, timestamp);
        self.u16(signal.instrument.0);
        self.text(signal.kind.as_str());
        self.optional_text(signal.side.map(|side| side.as_str()));
        self.optional_i64(signal.price.map(|price| price.units()));
        self.optional_text(signal.tag.as_deref());
        self.optional_text(signal.note.as_deref());
        self.end();
    }

    /// Takes in a reasoned decision of the strategy.
    pub fn narrative(&mut self, timestamp: TsNanos, record: &NarrativeRecord) {
        self.begin(tag::NARRATIVE, timestamp);
        self.optional_text(record.client_order_id.as_deref());
        self.text(&record.title);
        self.text(&record.body);
        self.end();
    }

    /// Takes in an adjustment of a position, with the money paid for the rest of a share.
    pub fn adjustment(&mut self, timestamp: TsNanos, ex_rights: &ExRights, paid: Money) {
        self.begin(tag::ADJUSTMENT, timestamp);
        self.u16(ex_rights.instrument.0);
        let (new, old) = ex_rights.adjustment.terms();
        self.optional_u64(Some(u64::from(new)));
        self.optional_u64(Some(u64::from(old)));
        self.i64(paid.units());
        self.end();
    }

    /// Takes in the state at the end of the run.
    pub fn end_of_run(&mut self, timestamp: TsNanos, cash: Money, equity: Money) {
        self.begin(tag::END, timestamp);
        self.i64(cash.units());
        self.i64(equity.units());
        self.end();
    }

    /// Records taken in so far.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// The digest of the records taken in so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = self.hasher.clone();
        hasher.update(&self.waiting);
        Digest(hasher.digest128())
    }

    fn request(&mut self, request: &OrderRequest) {
        self.text(request.side.as_str());
        self.text(request.order_type.as_str());
        self.u64(request.quantity.shares());
        self.optional_i64(request.price.map(|price| price.units()));
        self.optional_i64(request.trigger_price.map(|price| price.units()));
        self.optional_text(request.trigger_type.map(|kind| kind.as_str()));
        self.text(request.time_in_force.as_str());
        self.optional_u64(request.expire_time.map(|timestamp| timestamp.nanos()));
        self.waiting.push(u8::from(request.post_only));
        self.waiting.push(u8::from(request.reduce_only));
        self.u64(request.tags.len() as u64);
        for tag in &request.tags {
            self.text(tag);
        }
    }

    fn fill(&mut self, fill: &Fill) {
        self.text(&fill.trade_id);
        let numbers = [
            fill.last_quantity.shares(),
            fill.last_price.units().cast_unsigned(),
            fill.cumulative_quantity.shares(),
            fill.leaves_quantity.shares(),
            fill.known_commission().units().cast_unsigned(),
        ];
        self.waiting.extend_from_slice(numbers.map(u64::to_le_bytes).as_flattened());
    }

    #[inline]
    fn begin(&mut self, tag: u8, timestamp: TsNanos) {
        let mut start = [tag; 1 + size_of::<u64>()];
        start[1..].copy_from_slice(&timestamp.nanos().to_le_bytes());
        self.waiting.extend_from_slice(&start);
    }

    fn end(&mut self) {
        if self.waiting.len() >= HASHED_TOGETHER {
            self.hasher.update(&self.waiting);
            self.waiting.clear();
        }
        self.records += 1;
    }

    fn u16(&mut self, value: u16) {
        self.waiting.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.waiting.extend_from_slice(&value.to_le_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.waiting.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.waiting.extend_from_slice(&length.to_le_bytes());
        self.waiting.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn optional_text(&mut self, text: Option<&str>) {
        self.waiting.push(u8::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    fn optional_u64(&mut self, value: Option<u64>) {
        self.waiting.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.u64(value);
        }
    }

    fn optional_i64(&mut self, value: Option<i64>) {
        self.waiting.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.i64(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::InstrumentIx;
    use crate::order::{OrderSide, OrderStatus};
    use crate::price::{Price, Quantity};

    fn filled(price: i64) -> OrderEvent {
        OrderEvent {
            ts_event: TsNanos::from_nanos(5),
            origin: Origin::Strategy,
            client_order_id: "O-1".into(),
            venue_order_id: Some("V-1".into()),
            instrument: InstrumentIx(0),
            side: OrderSide::Buy,
            status: OrderStatus::Filled,
            kind: OrderEventKind::Filled(Fill {
                side: OrderSide::Buy,
                trade_id: "T-1".into(),
                last_quantity: Quantity::new(100),
                last_price: Price::from_units(price),
                market_price: Price::from_units(price),
                cumulative_quantity: Quantity::new(100),
                leaves_quantity: Quantity::ZERO,
                commission: Some(Money::ZERO),
            }),
        }
    }

    fn digest_of(events: &[OrderEvent]) -> Digest {
        let mut log = EventLogDigest::default();
        events.iter().for_each(|event| log.order_event(event));
        log.digest()
    }

    #[test]
    fn the_encoding_is_pinned() {
        assert_eq!(digest_of(&[]).to_string().len(), 32);
        assert_eq!(digest_of(&[filled(7)]).to_string(), PINNED);
    }

    const PINNED: &str = "6d348743427437998b22cb877f530cfe";

    #[test]
    fn the_owner_of_an_order_counts() {
        let of_client = OrderEvent { origin: Origin::Client, ..filled(7) };
        assert_ne!(digest_of(&[of_client]).to_string(), PINNED);
    }

    #[test]
    fn it_does_not_matter_where_the_hash_is_cut() {
        let events: Vec<_> = (0..500).map(filled).collect();
        let mut log = EventLogDigest::default();
        let mut whole = EVENTS_BEGIN.to_vec();
        for event in &events {
            let mut one = EventLogDigest::default();
            one.order_event(event);
            whole.extend_from_slice(&one.waiting);
            log.order_event(event);
            // Asking changes nothing.
            assert_eq!(log.digest().0, xxhash_rust::xxh3::xxh3_128(&whole));
        }
        assert!(whole.len() > 5 * HASHED_TOGETHER);
    }

    const EVENTS_BEGIN: [u8; 4] = ENCODING_VERSION.to_le_bytes();

    #[test]
    fn content_and_order_both_count() {
        let (one, two) = (filled(1), filled(2));
        assert_ne!(digest_of(std::slice::from_ref(&one)), digest_of(std::slice::from_ref(&two)));
        assert_ne!(digest_of(&[one.clone(), two.clone()]), digest_of(&[two, one]));
    }
}
