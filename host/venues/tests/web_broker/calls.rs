//! Requests leave once, and their outcomes are distinguished (specification 4, P7 and P18).

use std::io::Write as _;
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::order_mapping::{BrokerRequest, Field, FieldList, field};
use venues::web_broker::encoding::percent_encode;
use venues::web_broker::{CallFailure, account};

use crate::server::{Act, Server, http, logged_in, password, secret, sjis};

const LIST: &str = r#"{"p_sd_date":"x","p_rv_date":"y","p_errno":"0","p_err":"",
    "sResultCode":"0","sResultText":"表示ソート 100%","nNumber":12.50,
    "aOrderList":[{"sOrderStatus":"一部約定"}],"aEmpty":""}"#;

/// Sends one request, and returns the failure and the number of requests that arrived.
async fn failure(act: impl Fn() -> Act + Send + Sync + 'static) -> (CallFailure, usize) {
    let server = Server::start(logged_in(move |_, _| act()));
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.session(folder.path()).await;
    let called = transport.call(&account::cash_request(), None).await;
    assert!(called.p_no.is_some());
    // A second request would be sent at once.
    tokio::time::sleep(Duration::from_millis(150)).await;
    (called.result.unwrap_err(), server.requests().len() - 1)
}

#[tokio::test]
async fn p7_p18_a_request_that_left_is_never_sent_again() {
    let whole = |status: &str| {
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nLocation: /other\r\n\r\n{{}}");
        head.into_bytes()
    };
    type Acts = Box<dyn Fn() -> Act + Send + Sync>;
    let acts: Vec<(&str, Acts)> = vec![
        ("hangs up after reading", Box::new(|| Act::HangUp)),
        ("is too slow", Box::new(|| Act::Wait(Duration::from_secs(3)))),
        ("redirects", Box::new(move || Act::Raw(whole("302 Found")))),
        ("fails", Box::new(move || Act::Raw(whole("503 Busy")))),
        ("refuses", Box::new(move || Act::Raw(whole("403 No")))),
        ("is no HTTP", Box::new(|| Act::Raw(b"garbage\r\n\r\n".to_vec()))),
        (
            "ends early",
            Box::new(|| Act::Raw(b"HTTP/1.1 200 OK \r\nContent-Length: 99\r\n\r\n{\"p_e".to_vec())),
        ),
        ("is half an answer", Box::new(|| Act::Body(b"{\"p_errno\":\"0\",\"a".to_vec()))),
        ("is no Shift-JIS", Box::new(|| Act::Body(b"{\"a\":\"\x81\x01\"}".to_vec()))),
        ("is no JSON", Box::new(|| Act::Body(b"<html>".to_vec()))),
        ("is a list", Box::new(|| Act::Body(b"[]".to_vec()))),
        ("says a name twice", Box::new(|| Act::Body(br#"{"a":"1","a":"2"}"#.to_vec()))),
        ("is too deep", Box::new(|| Act::Body(b"{\"a\":[[[[[[[[[[[[1]]]]]]]]]]]]}".to_vec()))),
        (
            "answers another number",
            Box::new(|| Act::Body(br#"{"p_no":"7","p_errno":"0"}"#.to_vec())),
        ),
        (
            "answers another request",
            Box::new(|| Act::Body(br#"{"p_errno":"0","sCLMID":"CLMOrderList"}"#.to_vec())),
        ),
        ("is empty", Box::new(|| Act::Body(Vec::new()))),
        ("is too large", Box::new(|| Act::Body(vec![b' '; (16 << 20) + 1]))),
        ("is no gzip", Box::new(|| Act::Raw(http(b"plain", "Content-Encoding: gzip\r\n")))),
    ];
    for (what, act) in acts {
        let (failure, requests) = failure(act).await;
        let CallFailure::Unknown(text) = &failure else { panic!("{what}: {failure}") };
        assert_eq!(requests, 1, "{what}");
        assert!(!text.contains("virtual-secret") && !text.contains("p_no"), "{text}");
        assert!(!text.contains("127.0.0.1") && !text.contains('\n'), "{text}");
    }
}

#[tokio::test]
async fn an_answer_may_be_waited_for_a_shorter_time() {
    let server = Server::start(logged_in(|asked, _| match asked.contains("Slow") {
        true => Act::Wait(Duration::from_secs(2)),
        false => Act::Body(br#"{"p_errno":"0"}"#.to_vec()),
    }));
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.session(folder.path()).await;
    let slow = BrokerRequest { id: "CLMSlow".to_owned(), ..Default::default() };
    let watch = Stopwatch::start();
    let called = transport.call_within(&slow, Duration::from_millis(200)).await;
    let text = called.result.unwrap_err().to_string();
    assert!(text.contains("within 0.2 s"), "{text}");
    assert!(watch.elapsed() < Duration::from_secs(1));
    // The next request is sent at once, with a higher number.
    transport.call_within(&account::cash_request(), Duration::from_secs(1)).await.result.unwrap();
}

#[tokio::test]
async fn p7_a_connection_is_not_used_again() {
    // The server leaves the connection open after the login's answer and would take the next request on it.
    let server = Server::start(logged_in(|_, _| Act::HangUp));
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.session(folder.path()).await;
    for asked in 1..=3 {
        let called = transport.call(&account::cash_request(), None).await;
        assert!(matches!(called.result, Err(CallFailure::Unknown(_))), "{called:?}");
        assert_eq!(server.requests().len(), 1 + asked);
    }
}

#[tokio::test]
async fn answers_come_in_every_spelling() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&sjis(LIST)).unwrap();
    let packed = http(&packed.finish().unwrap(), "Content-Encoding: gzip\r\n");
    let spelled_value = LIST.replace("表示ソート", "%95%5C%8e%a6%83%5C%81%5B%83g");
    let answers = [
        http(&sjis(LIST), ""),
        packed,
        http(percent_encode(&sjis(LIST)).as_bytes(), ""),
        http(&sjis(&spelled_value), ""),
    ];
    for answer in answers {
        let server = Server::start(logged_in(move |_, _| Act::Raw(answer.clone())));
        let folder = tempfile::tempdir().unwrap();
        let mut transport = server.session(folder.path()).await;
        let called = transport.call_price(&account::cash_request()).await;
        let answered = called.result.unwrap();
        assert_eq!((answered.answer.errno.as_str(), answered.answer.fields.len()), ("", 3));
        assert_eq!(answered.answer.id, "CLMZanKaiKanougaku");
        assert_eq!(field(&answered.answer.fields, "sResultText"), Some("表示ソート 100%"));
        assert_eq!(field(&answered.answer.fields, "nNumber"), Some("12.50"));
        assert_eq!(answered.lists["aEmpty"], Vec::<Vec<Field>>::new());
        assert_eq!(answered.lists["aOrderList"], [[Field::new("sOrderStatus", "一部約定")]]);
    }
}

#[tokio::test]
async fn p5_an_answer_that_is_not_spelled_stays_as_it_is() {
    let answer = r#"{"p_errno":"0","sText":"%41 100%"}"#;
    for (decodes, text) in [(true, "A 100%"), (false, "%41 100%")] {
        let server = Server::start(logged_in(move |_, _| Act::Body(sjis(answer))));
        let folder = tempfile::tempdir().unwrap();
        let mut transport = server.transport(folder.path(), decodes);
        transport.login(&password("user", "word")).await.unwrap();
        let called = transport.call(&account::cash_request(), None).await;
        assert_eq!(field(&called.result.unwrap().answer.fields, "sText"), Some(text));
    }
}

#[tokio::test]
async fn an_order_is_written_in_the_brokers_order() {
    let server = Server::start(logged_in(|_, _| Act::Body(sjis(r#"{"p_errno":"2","p_err":"x"}"#))));
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.session(folder.path()).await;
    let row = vec![Field::new("sTategyokuNumber", "1"), Field::new("sOrderSuryou", "100")];
    let mut request = BrokerRequest {
        id: "CLMKabuNewOrder".to_owned(),
        fields: vec![Field::new("sIssueCode", "7203"), Field::new("sMemo", "表\"ソ&=#+")],
        lists: vec![FieldList { name: "aCLMKabuHensaiData".to_owned(), rows: vec![row] }],
        password_field: Some("sSecondPassword".to_owned()),
    };
    let called = transport.call(&request, None).await;
    assert!(matches!(called.result, Err(CallFailure::NotSent(_))), "{called:?}");
    assert_eq!(called.p_no, None);
    let called = transport.call(&request, Some(&secret("pass word"))).await;
    assert_eq!(called.result.unwrap().answer.errno, "2");
    let asked = &server.requests()[1];
    let json: serde_json::Value = serde_json::from_str(asked.split_once('?').unwrap().1).unwrap();
    let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
    let wanted = [
        "p_no",
        "p_sd_date",
        "sCLMID",
        "sIssueCode",
        "sMemo",
        "sSecondPassword",
        "aCLMKabuHensaiData",
        "sJsonOfmt",
    ];
    assert_eq!(fields, wanted);
    assert_eq!(
        (&json["sMemo"], &json["sSecondPassword"]),
        (&"表\"ソ&=#+".into(), &"pass word".into())
    );
    assert_eq!(json["aCLMKabuHensaiData"][0]["sOrderSuryou"], "100");
    assert_eq!(json["p_no"], called.p_no.unwrap().to_string());
    request.fields[1] = Field::new("sMemo", "a\u{1f600}");
    let called = transport.call(&request, Some(&secret("pass word"))).await;
    let text = called.result.unwrap_err().to_string();
    assert!(text.contains("sMemo") && text.contains("CP932"), "{text}");
    assert_eq!(server.requests().len(), 2);
}

/// The second password is redacted in every answer while it is held, also in those to requests without it.
#[tokio::test]
async fn what_the_caller_hides_no_answer_shows() {
    let said = r#"{"p_errno":"0","sResultCode":"11","sResultText":"you wrote Canary Second"}"#;
    let server = Server::start(logged_in(move |_, _| Act::Body(sjis(said))));
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.session(folder.path()).await;
    for hides in [true, false] {
        transport.also_hide(hides.then(|| secret("canary second")));
        let answered = transport.call(&account::cash_request(), None).await.result.unwrap();
        let text = field(&answered.answer.fields, "sResultText").unwrap();
        assert_eq!(text, if hides { "you wrote ***" } else { "you wrote Canary Second" });
    }
    assert!(!server.requests().iter().any(|asked| asked.contains("canary")), "it is not sent");
}
