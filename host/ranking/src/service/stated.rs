//! The limits that texts of the schema state: each text has names in braces, and a service tells its
//! own numbers.

use async_graphql::Value;

use super::limits::ServiceLimits;
use super::memory::request_bytes_max;
use crate::limits::PRICE_DAYS_MAX;

/// What stands in texts for each limit, and its number.
fn numbers(limits: &ServiceLimits) -> [(&'static str, String); 12] {
    let number = |number: usize| grouped(number as u64);
    [
        ("{max-limit}", grouped(limits.rank_limit.into())),
        ("{max-years}", grouped(limits.range_years.into())),
        ("{max-lag}", grouped(limits.lag.into())),
        ("{max-formula}", number(limits.formula_characters)),
        ("{max-aliases}", number(limits.aliases)),
        ("{max-depth}", number(limits.depth)),
        ("{max-fields}", number(limits.fields)),
        ("{max-body}", number(limits.body_bytes)),
        ("{max-rows}", number(limits.answer_rows)),
        ("{max-memory}", grouped(request_bytes_max(limits) >> 20)),
        ("{max-price-days}", number(PRICE_DAYS_MAX)),
        ("{timeout}", limits.request_timeout.as_secs_f64().to_string()),
    ]
}

/// A text with the numbers of a service.
pub(super) fn stated(text: &str, limits: &ServiceLimits) -> String {
    let numbers = numbers(limits);
    numbers.iter().fold(text.to_owned(), |text, (name, number)| text.replace(name, number))
}

/// The same for all texts inside a value of the introspection.
pub(super) fn state(value: &mut Value, limits: &ServiceLimits) {
    match value {
        Value::String(text) if text.contains('{') => *text = stated(text, limits),
        Value::List(values) => values.iter_mut().for_each(|value| state(value, limits)),
        Value::Object(values) => values.values_mut().for_each(|value| state(value, limits)),
        _ => {}
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_gets_its_numbers() {
        let limits = ServiceLimits { rank_limit: 7, answer_rows: 1_234_567, ..Default::default() };
        assert_eq!(stated("1 to {max-limit}, {max-rows}", &limits), "1 to 7, 1,234,567");
        let mut value = Value::from_json(serde_json::json!({ "a": [{ "b": "{max-limit}" }, 5] }));
        let value = value.as_mut().unwrap();
        state(value, &limits);
        assert_eq!(value.to_string(), r#"{a: [{b: "7"}, 5]}"#);
        assert_eq!([0, 999, 1_000, 65_536].map(grouped), ["0", "999", "1,000", "65,536"]);
    }
}
