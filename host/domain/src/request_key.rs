//! The key of an order request's shape (specification 2, "request_key rules"). Two requests with the
//! same key ask for the same thing; the id of the caller, the id of the command and the venue are no
//! part of it. Live trading recognises a repeated order by it, and the audit log keeps it.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::order::OrderRequest;

/// The fixed salt, whose xxh3-64 is the seed of every key. Another version gets another salt, which
/// puts old keys in a namespace of their own.
pub const REQUEST_KEY_SALT: &[u8] = b"order_request_key_v1";

/// xxh3-64 of [`REQUEST_KEY_SALT`], which a test holds.
const SEED: u64 = 0x8c6b_a260_83c5_0c46;

/// Stands in front of the bytes of a text.
const TEXT_BEGIN: u8 = 0x01;
/// Stands after the bytes of a text, and alone for a missing value.
const TEXT_END: u8 = 0x00;
/// Stands between two tags.
const TAG_SEPARATOR: u8 = 0x1f;

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
    /// Reject it instead of taking liquidity.
    pub post_only: bool,
    /// Reject it instead of opening a position.
    pub reduce_only: bool,
    /// `key=value` texts, in any order.
    pub tags: Vec<&'a str>,
}

impl RequestShape<'_> {
    /// The key: xxh3-64, with the salt's seed, of the fields in the order of this struct.
    ///
    /// A text is the byte 1, its bytes in UTF-8 and the byte 0; a number is its decimal text; what is
    /// missing is the byte 0 alone, so that it differs from an empty text; a truth value is one byte.
    /// Tags are sorted, each counts once, and all of them together are one text with the byte 0x1F
    /// between two, so no tags are an empty text.
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut bytes = Vec::with_capacity(192);
        write_text(&mut bytes, self.instrument_id);
        write_text(&mut bytes, self.order_side);
        write_text(&mut bytes, self.order_type);
        write_text(&mut bytes, self.quantity);
        write_optional(&mut bytes, self.price);
        write_optional(&mut bytes, self.trigger_price);
        write_optional(&mut bytes, self.trigger_type);
        write_text(&mut bytes, self.time_in_force);
        write_optional(&mut bytes, self.expire_time_ns);
        bytes.extend([u8::from(self.post_only), u8::from(self.reduce_only)]);
        let mut tags = self.tags.clone();
        tags.sort_unstable();
        tags.dedup();
        bytes.push(TEXT_BEGIN);
        for (index, tag) in tags.iter().enumerate() {
            if index > 0 {
                bytes.push(TAG_SEPARATOR);
            }
            bytes.extend_from_slice(tag.as_bytes());
        }
        bytes.push(TEXT_END);
        xxh3_64_with_seed(&bytes, SEED)
    }
}

/// The key of a request whose numbers are exact values: they count in their shortest decimal text.
#[must_use]
pub fn request_key(request: &OrderRequest, instrument_id: &str) -> u64 {
    let quantity = request.quantity.shares().to_string();
    let price = request.price.map(|price| price.to_string());
    let trigger_price = request.trigger_price.map(|price| price.to_string());
    let expire_time = request.expire_time.map(|timestamp| timestamp.nanos().to_string());
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

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(TEXT_BEGIN);
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(TEXT_END);
}

fn write_optional(bytes: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => write_text(bytes, text),
        None => bytes.push(TEXT_END),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use xxhash_rust::xxh3::xxh3_64;

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

    /// Keys that another implementation of xxh3 computed, see `clients/python/request_keys.py`.
    const GOLDEN: &str = include_str!("../../../tests/golden/request_keys.json");

    #[derive(Deserialize)]
    struct Golden {
        seed: String,
        vectors: Vec<GoldenVector>,
    }

    #[derive(Deserialize)]
    struct GoldenVector {
        name: String,
        order: GoldenOrder,
        key: String,
    }

    /// An order as a client sends it. What a vector leaves out counts as null.
    #[derive(Deserialize)]
    struct GoldenOrder {
        instrument_id: String,
        order_side: String,
        order_type: String,
        quantity: String,
        price: Option<String>,
        trigger_price: Option<String>,
        trigger_type: Option<String>,
        time_in_force: String,
        expire_time_ns: Option<u64>,
        post_only: bool,
        reduce_only: bool,
        tags: Option<Vec<String>>,
    }

    impl GoldenOrder {
        fn key(&self) -> u64 {
            let expire_time_ns = self.expire_time_ns.map(|nanos| nanos.to_string());
            RequestShape {
                instrument_id: &self.instrument_id,
                order_side: &self.order_side,
                order_type: &self.order_type,
                quantity: &self.quantity,
                price: self.price.as_deref(),
                trigger_price: self.trigger_price.as_deref(),
                trigger_type: self.trigger_type.as_deref(),
                time_in_force: &self.time_in_force,
                expire_time_ns: expire_time_ns.as_deref(),
                post_only: self.post_only,
                reduce_only: self.reduce_only,
                tags: self.tags.iter().flatten().map(String::as_str).collect(),
            }
            .key()
        }
    }

    #[test]
    fn keys_are_those_of_another_implementation() {
        let golden: Golden = serde_json::from_str(GOLDEN).unwrap();
        assert_eq!(golden.seed, format!("{SEED:016x}"));
        assert!(golden.vectors.len() >= 12);
        for vector in &golden.vectors {
            assert_eq!(format!("{:016x}", vector.order.key()), vector.key, "{}", vector.name);
        }
    }

    #[test]
    fn the_key_is_pinned() {
        // Old audit logs are read with it, so it may only change together with the salt.
        assert_eq!(format!("{:016x}", shape().key()), PINNED);
    }

    const PINNED: &str = "3f7d2364281edbde";

    #[test]
    fn the_seed_is_made_of_the_specifications_salt() {
        assert_eq!(REQUEST_KEY_SALT, b"order_request_key_v1");
        assert_eq!(SEED, xxh3_64(REQUEST_KEY_SALT));
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
        // A byte stands between them, so texts cannot flow into each other.
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
