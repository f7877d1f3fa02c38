//! Round trips of texts and bytes, and what is refused.

use proptest::prelude::*;

use super::*;

#[test]
fn second_bytes_that_look_like_a_backslash_are_spelled() {
    let spelled = |text: &str| percent_encode(&to_cp932(text).unwrap());
    assert_eq!(spelled("表ソ"), "%95%5C%83%5C");
    assert_eq!(spelled("ア\\ｱ~"), "%83%41\\%B1%7E");
    let plain = "AZaz09-._\\";
    assert_eq!(spelled(plain), plain);
    let symbols = " !\"#$%&'()*+,/:;<=>?@[]^`{|}~";
    let all: String = symbols.bytes().map(|byte| format!("%{byte:02X}")).collect();
    assert_eq!(spelled(symbols), all);
}

#[test]
fn what_cp932_does_not_have_is_refused_and_never_replaced() {
    for wrong in ['\u{1f600}', '¥', '‾', '−', '한', '\u{e000}', 'é'] {
        assert_eq!(to_cp932(&format!("a{wrong}b")), Err(wrong));
    }
    for good in ["①Ⅲ㈱髙﨑", "～－∥￢", "ﾊﾝｶｸ", "\t\n"] {
        let bytes = to_cp932(good).unwrap();
        assert_eq!(from_cp932(&bytes).as_deref(), Some(good));
    }
    assert_eq!(from_cp932(b"\x81"), None);
    assert_eq!(from_cp932(b"\x81\x01"), None);
}

#[test]
fn p5_only_two_digits_are_a_byte() {
    assert_eq!(percent_decode(b"%41%4a%4A100%%4%zz%4"), b"AJJ100%%4%zz%4");
    assert_eq!(percent_decoded_text("%95\\ 100%"), "表 100%");
    // Bytes that are not CP932 stay encoded.
    assert_eq!(percent_decoded_text("%81"), "%81");
}

proptest! {
    #[test]
    fn every_text_of_cp932_goes_there_and_back(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let text = from_cp932(&bytes).unwrap_or_default();
        if let Ok(encoded) = to_cp932(&text) {
            let spelled = percent_encode(&encoded);
            let symbols = ['"', '{', '&', '#', ' ', '+'];
            prop_assert!(!spelled.contains(symbols), "{}", spelled);
            prop_assert_eq!(&percent_decode(spelled.as_bytes()), &encoded);
            prop_assert_eq!(from_cp932(&encoded).unwrap(), text);
        }
    }

    #[test]
    fn a_text_is_encoded_whole_or_refused(text in "[ -~ァ-ヶ一-龠ぁ-ん！-｝]{0,30}|\\PC{0,9}") {
        match to_cp932(&text) {
            Ok(bytes) => prop_assert_eq!(from_cp932(&bytes).unwrap(), text),
            Err(letter) => prop_assert!(text.contains(letter) && !letter.is_ascii()),
        }
    }
}
