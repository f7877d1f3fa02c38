//! The key of an order request's shape (specification 2, "request_key rules"). Two requests with the
//! same key ask for the same thing; the id of the caller, the id of the command and the venue are no
//! part of it. Live trading recognises a repeated order by it, and the audit log keeps it.

use xxhash_rust::xxh3::Xxh3;

use crate::order::OrderRequest;

/// The fixed salt: first bytes of everything that is hashed. Another version gets another salt, which
/// puts old keys in a namespace of their own.
pub const REQUEST_KEY_SALT: &[u8] = b"order_request_key_v1";

/// The fields of a request that make its key. Numbers are the text in which they were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestShape<'a> {
    /// `<symbol>.<venue suffix>`, like `7203.TSE`.
    pub instrument_id: &'a str,
    /// `BUY` or `SELL`.
    pub order_side: &'a str,
    /// `MARKET`, `LIMIT`, ...
    pub order_type: &'a str,
    /// Shares, as text.
    pub quantity: &'a str,
    /// Limit price in yen, as text.
    pub price: Option<&'a str>,
    /// Trigger price in yen, as text.
    pub trigger_price: Option<&'a str>,
    /// `LAST`.
    pub trigger_type: Option<&'a str>,
    /// `DAY`, `GTD`, ...
    pub time_in_force: &'a str,
    /// End of life in nanoseconds UTC, as text.
    pub expire_time_ns: Option<&'a str>,
    /// Refuse instead of taking liquidity.
    pub post_only: bool,
    /// Refuse instead of opening a position.
    pub reduce_only: bool,
    /// `key=value` texts, in any order.
    pub tags: Vec<&'a str>,
}

impl RequestShape<'_> {
    /// The key: xxh3-64 of the salt and of the fields in the order of this struct.
    ///
    /// A text is written as its length in bytes (u32, little-endian) and its bytes; a field that may
    /// be missing has one byte in front, 0 (and nothing else) or 1, so that a missing field and an
    /// empty text differ; a truth value is one byte. Tags are sorted, each counts once, and their
    /// number (u32) comes first.
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut writer = KeyWriter(Xxh3::new());
        writer.0.update(REQUEST_KEY_SALT);
        writer.text(self.instrument_id);
        writer.text(self.order_side);
        writer.text(self.order_type);
        writer.text(self.quantity);
        writer.optional(self.price);
        writer.optional(self.trigger_price);
        writer.optional(self.trigger_type);
        writer.text(self.time_in_force);
        writer.optional(self.expire_time_ns);
        writer.0.update(&[u8::from(self.post_only), u8::from(self.reduce_only)]);
        let mut tags = self.tags.clone();
        tags.sort_unstable();
        tags.dedup();
        writer.length(tags.len());
        tags.iter().for_each(|tag| writer.text(tag));
        writer.0.digest()
    }
}

/// The key of a request whose numbers are exact values: they count in their shortest decimal text.
#[must_use]
pub fn request_key(request: &OrderRequest, instrument_id: &str) -> u64 {
    let quantity = request.quantity.shares().to_string();
    let price = request.price.map(|price| price.to_string());
    let trigger_price = request.trigger_price.map(|price| price.to_string());
    let expire_time = request.expire_time.map(|moment| moment.nanos().to_string());
    RequestShape {
        instrument_id,
        order_side: request.side.as_str(),
        order_type: request.order_type.as_str(),
        quantity: &quantity,
        price: price.as_deref(),
        trigger_price: trigger_price.as_deref(),
        trigger_type: request.trigger_type.map(|kind| kind.as_str()),
        time_in_force: request.time_in_force.as_str(),
        expire_time_ns: expire_time.as_deref(),
        post_only: request.post_only,
        reduce_only: request.reduce_only,
        tags: request.tags.iter().map(String::as_str).collect(),
    }
    .key()
}

struct KeyWriter(Xxh3);

impl KeyWriter {
    fn length(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.0.update(&length.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.0.update(text.as_bytes());
    }

    fn optional(&mut self, text: Option<&str>) {
        self.0.update(&[u8::from(text.is_some())]);
        if let Some(text) = text {
            self.text(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::InstrumentIx;
    use crate::order::{OrderSide, OrderType, TimeInForce};
    use crate::price::{Price, Quantity};

    fn shape() -> RequestShape<'static> {
        RequestShape {
            instrument_id: "7203.TSE",
            order_side: "BUY",
            order_type: "LIMIT",
            quantity: "100",
            price: Some("2650"),
            time_in_force: "DAY",
            tags: vec!["cash_margin=cash", "account_type=specific"],
            ..RequestShape::default()
        }
    }

    #[test]
    fn the_key_is_pinned() {
        // Old audit logs are read with it, so it may only change together with the salt.
        assert_eq!(format!("{:016x}", shape().key()), PINNED);
    }

    const PINNED: &str = "fc0d6e3e7815cdda";

    #[test]
    fn the_salt_is_the_specifications() {
        assert_eq!(REQUEST_KEY_SALT, b"order_request_key_v1");
        let mut unsalted = Xxh3::new();
        unsalted.update(b"");
        assert_ne!(RequestShape::default().key(), unsalted.digest());
    }

    #[test]
    fn every_field_counts() {
        type Change = fn(&mut RequestShape<'static>);
        let changes: [Change; 12] = [
            |shape| shape.instrument_id = "6758.TSE",
            |shape| shape.order_side = "SELL",
            |shape| shape.order_type = "STOP_LIMIT",
            |shape| shape.quantity = "200",
            |shape| shape.price = Some("2651"),
            |shape| shape.trigger_price = Some("2650"),
            |shape| shape.trigger_type = Some("LAST"),
            |shape| shape.time_in_force = "GTD",
            |shape| shape.expire_time_ns = Some("1"),
            |shape| shape.post_only = true,
            |shape| shape.reduce_only = true,
            |shape| shape.tags.push("close_strategy=funari"),
        ];
        let mut keys = vec![shape().key()];
        for change in changes {
            let mut changed = shape();
            change(&mut changed);
            keys.push(changed.key());
        }
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn tags_count_once_and_in_any_order() {
        let with = |tags: &[&'static str]| RequestShape { tags: tags.to_vec(), ..shape() }.key();
        assert_eq!(with(&["a=1", "b=2"]), with(&["b=2", "a=1", "b=2"]));
        assert_ne!(with(&["a=1"]), with(&["a=1", "b=2"]));
        // Lengths stand in front, so texts cannot flow into each other.
        assert_ne!(with(&["a=1", "b=2"]), with(&["a=1b=2"]));
    }

    #[test]
    fn nothing_is_not_an_empty_text() {
        let none = RequestShape { price: None, ..shape() };
        let empty = RequestShape { price: Some(""), ..shape() };
        assert_ne!(none.key(), empty.key());
    }

    #[test]
    fn numbers_are_their_text() {
        let long = RequestShape { price: Some("2650.0"), ..shape() };
        assert_ne!(long.key(), shape().key());
    }

    #[test]
    fn ids_are_no_part_of_it() {
        let mut request = OrderRequest {
            client_order_id: "O-1".into(),
            instrument: InstrumentIx(0),
            side: OrderSide::Buy,
            order_type: OrderType::Limit,
            quantity: Quantity::new(100),
            price: Some(Price::from_yen(2_650)),
            trigger_price: None,
            trigger_type: None,
            time_in_force: TimeInForce::Day,
            expire_time: None,
            post_only: false,
            reduce_only: false,
            tags: vec!["account_type=specific".to_owned(), "cash_margin=cash".to_owned()],
        };
        let key = request_key(&request, "7203.TSE");
        assert_eq!(key, shape().key());
        request.client_order_id = "O-2".into();
        assert_eq!(key, request_key(&request, "7203.TSE"));
        assert_ne!(key, request_key(&request, "6758.TSE"));
    }
}
