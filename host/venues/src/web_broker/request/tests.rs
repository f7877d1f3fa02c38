//! Requests as bytes.

use super::*;

#[test]
fn times_are_japanese_to_the_millisecond() {
    let of_day = (9 * 3_600 + 14 * 60 + 2) * NANOS_PER_SECOND + 517_999_999;
    let time = TsNanos::from_jst("2026-11-20".parse().unwrap(), of_day).unwrap();
    assert_eq!(sent_at(time), "2026.11.20-09:14:02.517");
}

#[test]
fn dates_are_eight_digits() {
    assert_eq!(date("20260511"), Some("2026-05-11".parse().unwrap()));
    for wrong in ["", "00000000", "20260230", "2026-05-11", "202605111", "+2026051"] {
        assert_eq!(date(wrong), None, "{wrong}");
    }
}

#[test]
fn limits_and_errors_name_the_field_and_no_value() {
    let failed = |value: &str| {
        let fields = vec![Field::new("sMemo", value)];
        let request = BrokerRequest { id: "CLMx".to_owned(), fields, ..Default::default() };
        Prepared::new(&request, None).map(drop).unwrap_err()
    };
    let text = failed("value-é").to_string();
    assert!(text.contains("sMemo") && !text.contains("value"), "{text}");
    let long = failed(&"x".repeat(REQUEST_BYTES_MAX));
    assert_eq!(long, RequestError::TooLong { id: "CLMx".to_owned() });
}
