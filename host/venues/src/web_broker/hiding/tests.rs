//! Redaction of the broker's texts.

use domain::order_mapping::BrokerAnswer;

use super::*;

fn hidden() -> Hidden {
    let mut hidden = Hidden::password("Canary-2");
    hidden.hide(&SecretString::from("http://127.0.0.1/virtual-secret-1/".to_owned()));
    hidden
}

#[test]
fn a_code_is_short_and_no_secret_or_is_not_shown() {
    for code in ["", "0", "2", "-62", "11304", "990001", "W-12"] {
        let mut shown = code.to_owned();
        hidden().code(&mut shown);
        assert_eq!(shown, code);
    }
    for code in [
        "Canary-2",
        "CANARY-2",
        "xCanary-2",
        "1234567890123",
        "1 2",
        "a_b",
        "1\n",
        "http://x",
        "誤",
    ] {
        let mut shown = code.to_owned();
        hidden().code(&mut shown);
        assert_eq!(shown, UNREADABLE_CODE, "{code}");
    }
    let mut shown = "0".to_owned();
    Hidden::password("0").code(&mut shown);
    assert_eq!(shown, "0", "that all went well is no secret");
    // The outcome of a request is read from a code, even if a password equals it.
    for code in ["2", "-62", "11701"] {
        let mut shown = code.to_owned();
        Hidden::password(code).code(&mut shown);
        assert_eq!(shown, code);
    }
}

#[test]
fn answers_and_frames_show_no_secret_in_words_and_codes_and_data_stays() {
    let fields = vec![
        Field::new("sResultCode", "canary-2"),
        Field::new("sResultText", "the word CANARY -2 of http://127.0.0.1/VIRTUAL-secret-1/"),
        Field::new("sWarningCode", "http://127.0.0.1/virtual-secret-1/"),
        Field::new("sOrderNumber", "20000001"),
    ];
    let answer = BrokerAnswer {
        fields,
        errno: "Canary-2".to_owned(),
        error_text: "Canary\u{0}-2".to_owned(),
        ..Default::default()
    };
    let mut answered = Answered { answer, ..Answered::default() };
    hidden().answer(&mut answered);
    let shown: Vec<&str> =
        answered.answer.fields.iter().map(|field| field.value.as_str()).collect();
    assert_eq!(shown, [UNREADABLE_CODE, "the word *** of ***", UNREADABLE_CODE, "20000001"]);
    assert_eq!(
        (answered.answer.errno.as_str(), answered.answer.error_text.as_str()),
        (UNREADABLE_CODE, "***")
    );
    let mut fields = [
        Field::new("p_errno", "http://127.0.0.1/virtual-secret-1/"),
        Field::new("p_err", "session http://127.0.0.1/virtual-secret-1/ inactive."),
        Field::new("p_EXRC", "CANARY-2"),
        Field::new("p_EPRC", "0001"),
        Field::new("p_ON", "20000001"),
    ];
    hidden().frame(&mut fields);
    let shown: Vec<&str> = fields.iter().map(|field| field.value.as_str()).collect();
    assert_eq!(
        shown,
        [UNREADABLE_CODE, "session *** inactive.", UNREADABLE_CODE, "0001", "20000001"]
    );
}
