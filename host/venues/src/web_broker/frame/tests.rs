//! Frames in every form, and bytes that are not frames.

use domain::order_mapping::field;
use proptest::prelude::*;

use super::*;

#[test]
fn fields_come_in_their_order_with_empty_values_and_a_separator_at_the_end() {
    let frame = b"p_no\x021\x01p_EPRC\x02\x01p_x\x02a\x03b\x01p_cmd\x02EC\x01";
    let fields = parse(frame).unwrap();
    let found: Vec<_> = fields.iter().map(|f| (f.name.as_str(), f.value.as_str())).collect();
    assert_eq!(found, [("p_no", "1"), ("p_EPRC", ""), ("p_x", "a\u{3}b"), ("p_cmd", "EC")]);
    assert_eq!(parse(b""), Ok(Vec::new()));
    assert_eq!(parse(b"\x01\n"), Ok(Vec::new()));
}

#[test]
fn japanese_is_base64_of_shift_jis_or_stays() {
    let fields = parse(b"p_IN\x02g1yVXA==\x01p_TX\x02no base64\x01p_HDL\x02gQ==").unwrap();
    assert_eq!(field(&fields, "p_IN"), Some("ソ表"));
    assert_eq!(field(&fields, "p_TX"), Some("no base64"));
    assert_eq!(field(&fields, "p_HDL"), Some("gQ=="));
    // Streams without a WebSocket send the bytes themselves.
    let fields = parse(b"p_IN\x02\x83\x5c\x95\x5c").unwrap();
    assert_eq!(field(&fields, "p_IN"), Some("ソ表"));
}

#[test]
fn what_is_no_frame_is_refused() {
    assert_eq!(parse(b"p_no"), Err(FrameError::NoKey));
    assert_eq!(parse(b"\x02value"), Err(FrameError::NoKey));
    assert_eq!(parse(b"a\x02\x81"), Err(FrameError::NotText));
    assert_eq!(parse(&vec![b'x'; FRAME_BYTES_MAX + 1]), Err(FrameError::TooLong));
    let many = b"a\x02\x01".repeat(FRAME_FIELDS_MAX + 1);
    assert_eq!(parse(&many), Err(FrameError::TooManyFields));
}

proptest! {
    #[test]
    fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn a_frame_of_texts_comes_back(
        items in prop::collection::vec(("[a-z_]{1,8}", "[ -~表ソ]{0,12}"), 0..20),
    ) {
        let item = |(name, value): &(String, String)| format!("{name}\u{2}{}", value.trim());
        let frame: Vec<String> = items.iter().map(item).collect();
        let fields = parse(frame.join("\u{1}").as_bytes()).unwrap();
        let wanted = items.iter().map(|(name, value)| Field::new(name.as_str(), value.trim()));
        prop_assert_eq!(fields, wanted.collect::<Vec<_>>());
    }
}
