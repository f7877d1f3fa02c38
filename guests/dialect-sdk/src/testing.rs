//! Tests of a dialect's logic without wasm: orders, answers, rows and frames in one line each, and what
//! the host holds a request against.
//!
//! ```
//! use kumiki_dialect_sdk::testing::{answer, order};
//! use kumiki_dialect_sdk::{OrderType, Side};
//!
//! let order = order(Side::Buy, OrderType::Limit, &["cash_margin=cash"]);
//! assert_eq!((order.symbol.as_str(), order.price.as_deref()), ("7203", Some("2440")));
//! assert_eq!(answer("CLMOrderList", "1", &[]).errno, "1");
//! ```

use crate::{Answer, Field, Order, OrderType, Request, Side, TimeInForce};

/// An order for 100 shares of 7203 for the day: limit 2,440 yen, trigger 2,450 yen, each where the type
/// has it.
#[must_use]
pub fn order(side: Side, order_type: OrderType, tags: &[&str]) -> Order {
    let has_price = matches!(order_type, OrderType::Limit | OrderType::StopLimit);
    let has_trigger = matches!(order_type, OrderType::StopMarket | OrderType::StopLimit);
    Order {
        symbol: "7203".to_owned(),
        side,
        order_type,
        quantity: 100,
        price: has_price.then(|| "2440".to_owned()),
        trigger_price: has_trigger.then(|| "2450".to_owned()),
        time_in_force: TimeInForce::Day,
        expire_date: None,
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
    }
}

/// Fields from names and values.
#[must_use]
pub fn fields(pairs: &[(&str, &str)]) -> Vec<Field> {
    pairs.iter().map(|(name, value)| crate::text::field(name, *value)).collect()
}

/// An answer; `errno` is empty where the session has no failure.
#[must_use]
pub fn answer(id: &str, errno: &str, pairs: &[(&str, &str)]) -> Answer {
    let (id, errno) = (id.to_owned(), errno.to_owned());
    Answer { id, errno, error_text: String::new(), fields: fields(pairs) }
}

/// The fields of a request as `name=value`, in their order, after holding them against what the host
/// holds them against.
///
/// # Panics
/// When a name stands twice, is the session's, or a text is more than one line.
#[must_use]
pub fn shown(request: &Request) -> String {
    for (index, one) in request.fields.iter().enumerate() {
        assert!(
            !["p_no", "p_sd_date", "sCLMID", "sJsonOfmt"].contains(&one.name.as_str()),
            "{one:?}"
        );
        assert!(!one.value.contains(char::is_control), "{one:?}");
        assert!(request.password_field.as_ref() != Some(&one.name), "{one:?} is the host's");
        assert!(
            request.fields[..index].iter().all(|other| other.name != one.name),
            "{one:?} twice"
        );
    }
    let shown = request.fields.iter().map(|one| format!("{}={}", one.name, one.value));
    shown.collect::<Vec<_>>().join(" ")
}
