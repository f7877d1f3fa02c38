//! The web broker's daily history: one encoded JSON object as the query, texts everywhere, numbers
//! for failures.

use serde_json::{Value, json};
use update::SourceKind;
use update::source::{Answer, DailySource, Reach, SourceError, WebBrokerSource};
use wiremock::matchers::any;
use wiremock::{Mock, Request, ResponseTemplate};

use crate::servers::{FAST, Server, code, date, network, policy};

/// The secret part of the virtual address.
const PATH: &str = "/e_api_v4r8/price/SECRETSECRETSECRET/";

fn source(server: &Server) -> WebBrokerSource {
    let address = format!("{}{PATH}", server.address());
    WebBrokerSource::new(&network(), address.into(), FAST, policy()).unwrap()
}

fn row(date: &str, close: &str) -> Value {
    json!({
        "sDate": date, "pDOP": "2300.0000", "pDHP": "2400.5000", "pDLP": "2200", "pDPP": close,
        "pDV": "12300", "pDOPxK": "1150.0000", "pDHPxK": "", "pDLPxK": "", "pDPPxK": "",
        "pDVxK": "24600", "pSPUO": "", "pSPUC": "", "pSPUK": "",
    })
}

fn history(rows: &[Value]) -> Value {
    json!({
        "p_no": "1", "p_sd_date": "2026.01.09-17:00:00.000", "p_errno": "0", "p_err": "",
        "sCLMID": "CLMMfdsGetMarketPriceHistory", "sIssueCode": "130A", "sSizyouC": "00",
        "aCLMMfdsMarketPriceHistory": rows,
    })
}

fn server(body: &Value) -> Server {
    let answer = ResponseTemplate::new(200).set_body_string(body.to_string());
    Server::start(vec![Mock::given(any()).respond_with(answer)])
}

fn ask(server: &Server) -> Result<Answer, SourceError> {
    let found = source(server).issue(code("130A"), date("2026-01-05"), date("2026-01-06"));
    if let Err(error) = &found {
        let text = format!("{error} {error:?}");
        assert!(!text.contains("SECRET") && !text.contains("127.0.0.1"), "{text}");
    }
    found
}

/// The JSON object of a request's query.
fn object(request: &Request) -> Value {
    let query = request.url.query().unwrap();
    let mut bytes = Vec::new();
    let mut rest = query.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let hex = str::from_utf8(&tail[..2]).unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn the_history_is_cut_to_what_was_asked_for() {
    let mut quiet = row("20260106", "");
    for name in ["pDOP", "pDHP", "pDLP", "pDV"] {
        quiet[name] = json!("*");
    }
    let rows =
        [quiet, row("20260105", "2345.6000"), row("20051201", "2300"), row("20260107", "2300")];
    let server = server(&history(&rows));
    let answer = ask(&server).unwrap();
    assert_eq!(answer.rows.len(), 2);
    let (first, second) = (answer.rows[0], answer.rows[1]);
    assert_eq!(
        (first.date, first.code, first.source),
        (date("2026-01-05"), code("130A"), SourceKind::WebBroker)
    );
    let prices =
        [first.open, first.high, first.low, first.close].map(|price| price.unwrap().to_string());
    assert_eq!(prices, ["2300", "2400.5", "2200", "2345.6"]);
    // The columns of splits are there and not set.
    let expected = (Some(12_300), None, Some(1.0));
    assert_eq!((first.volume, first.turnover, first.adjustment_factor), expected);
    assert_eq!((second.date, second.close, second.volume), (date("2026-01-06"), None, None));
}

#[test]
fn requests_are_numbered_upwards_and_ask_for_the_issue() {
    let server = server(&history(&[]));
    let mut source = source(&server);
    for _ in 0..3 {
        source.issue(code("25935"), date("2026-01-05"), date("2026-01-06")).unwrap_err();
    }
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.url.path() == PATH));
    let objects: Vec<Value> = requests.iter().map(object).collect();
    let number = |object: &Value| object["p_no"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(number(&objects[0]) > 1_600_000_000, "{objects:?}");
    assert!(objects.windows(2).all(|pair| number(&pair[0]) < number(&pair[1])), "{objects:?}");
    let first = &objects[0];
    let asked = ["sCLMID", "sIssueCode", "sSizyouC", "sJsonOfmt"].map(|name| first[name].as_str());
    let expected = ["CLMMfdsGetMarketPriceHistory", "25935", "00", "5"].map(Some);
    assert_eq!(asked, expected);
    assert_eq!(first["p_sd_date"].as_str().unwrap().len(), "2026.01.05-00:00:00.000".len());
}

#[test]
fn empty_lists_have_two_spellings() {
    let mut text = history(&[]);
    text["aCLMMfdsMarketPriceHistory"] = json!("");
    let mut by_manual = history(&[]);
    let list = by_manual.as_object_mut().unwrap().remove("aCLMMfdsMarketPriceHistory").unwrap();
    by_manual["aCLMMfdsGetMarketPriceHistory"] = list;
    for body in [history(&[]), text, by_manual, json!({ "p_errno": "1", "p_err": "no data" })] {
        assert_eq!(ask(&server(&body)).unwrap().rows, []);
    }
}

#[test]
fn numbers_of_failures_have_a_reach() {
    for (number, reach, tries) in [
        ("2", Reach::Source, 1),
        ("9", Reach::Source, 1),
        ("-12", Reach::Source, 1),
        ("-62", Reach::Source, 1),
        ("6", Reach::Request, 1),
        ("8", Reach::Request, 1),
        ("-1", Reach::Request, 1),
        ("-2", Reach::Request, 3),
        ("-3", Reach::Request, 3),
    ] {
        // The service speaks Shift-JIS.
        let words = "セッションが切断しました。";
        let body = json!({ "p_errno": number, "p_err": words }).to_string();
        let (bytes, ..) = encoding_rs::SHIFT_JIS.encode(&body);
        let answer = ResponseTemplate::new(200).set_body_bytes(bytes.into_owned());
        let server = Server::start(vec![Mock::given(any()).respond_with(answer)]);
        let error = ask(&server).unwrap_err();
        let expected = format!("p_errno {number}: {words}");
        assert!(error.to_string().contains(&expected), "{error}");
        assert_eq!((error.reach(), server.asked().len()), (reach, tries), "{number}");
    }
    let body = json!({ "p_errno": "0", "sResultCode": "991002", "sResultText": "受付不可" });
    let body = body.to_string();
    let (bytes, ..) = encoding_rs::SHIFT_JIS.encode(&body);
    let answer = ResponseTemplate::new(200).set_body_bytes(bytes.into_owned());
    let server = Server::start(vec![Mock::given(any()).respond_with(answer)]);
    assert!(ask(&server).unwrap_err().to_string().contains("sResultCode 991002: 受付不可"));
}

#[test]
fn wrong_answers_are_refused() {
    let changed = |name: &str, value: Value| {
        let mut wrong = row("20260105", "2300");
        wrong[name] = value;
        history(&[row("20260104", "2300"), wrong])
    };
    let mut without = row("20260105", "2300");
    without.as_object_mut().unwrap().remove("pDPP");
    let mut of_other = history(&[]);
    of_other["sIssueCode"] = json!("7203");
    for (body, part) in [
        (changed("pDPP", json!(2300)), "row 2: pDPP is no text"),
        (changed("pDPP", json!("2300.00001")), "pDPP: `2300.00001` has more than 4 digits"),
        (changed("pDPP", json!("2500")), "not all inside low to high"),
        (changed("pDPP", json!("")), "some of the four prices are missing"),
        (changed("pDV", json!("-1")), "pDV: `-1` is no whole number"),
        (changed("sDate", json!("2026-01-05")), "`2026-01-05` is no date"),
        (changed("sDate", json!("20260104")), "two rows of 130A on 2026-01-04"),
        (history(&[without]), "row 1: pDPP is missing"),
        (of_other, "asked for 130A, found 7203"),
        (json!({ "p_errno": "0" }), "no list aCLMMfdsMarketPriceHistory"),
        (json!([]), "no JSON object"),
    ] {
        let error = ask(&server(&body)).unwrap_err();
        assert!(matches!(error, SourceError::Malformed(_)), "{body}: {error}");
        assert!(error.to_string().contains(part), "{body}: {error}");
    }
    let bytes = ResponseTemplate::new(200).set_body_bytes(b"{\"p_err\":\"\x82\"}".to_vec());
    let server = Server::start(vec![Mock::given(any()).respond_with(bytes)]);
    assert!(ask(&server).unwrap_err().to_string().contains("not Shift-JIS"));
}

#[test]
fn an_address_that_is_none_is_not_shown() {
    for wrong in ["http://kabuka.example.com/SECRET/", "SECRET", "https://x.example.com/SECRET?a=b"]
    {
        let made = WebBrokerSource::new(&network(), wrong.to_owned().into(), FAST, policy());
        let message = made.err().unwrap();
        assert!(!message.contains("SECRET"), "{message}");
    }
}

#[test]
fn the_columns_of_splits_are_read() {
    let split = |changes: &[(&str, &str)]| {
        let mut wanted = row("20260106", "2300");
        changes.iter().for_each(|(name, value)| wanted[*name] = json!(value));
        ask(&server(&history(&[row("20260105", "2300"), wanted])))
    };
    for (changes, factor) in [
        (&[][..], Some(1.0)),
        (&[("pSPUK", "0.5"), ("pSPUO", "1"), ("pSPUC", "2")], Some(0.5)),
        (&[("pSPUK", "0.3333"), ("pSPUO", "1"), ("pSPUC", "3")], Some(1.0 / 3.0)),
        (&[("pSPUK", "10"), ("pSPUO", "10"), ("pSPUC", "1")], Some(10.0)),
        (&[("pSPUO", "1"), ("pSPUC", "2")], Some(0.5)),
        (&[("pSPUK", "0.25")], Some(0.25)),
        (&[("pSPUK", "0.33"), ("pSPUO", "1.0000"), ("pSPUC", "3.0000")], Some(1.0 / 3.0)),
        (&[("pSPUK", "0.0000"), ("pSPUO", "*"), ("pSPUC", " 0 ")], Some(1.0)),
    ] {
        let rows = split(changes).unwrap().rows;
        assert_eq!((rows[0].adjustment_factor, rows[1].adjustment_factor), (Some(1.0), factor));
    }
    // A row without the columns does not tell.
    let mut silent = row("20260105", "2300");
    ["pSPUO", "pSPUC", "pSPUK"]
        .iter()
        .for_each(|name| _ = silent.as_object_mut().unwrap().remove(*name));
    assert_eq!(ask(&server(&history(&[silent]))).unwrap().rows[0].adjustment_factor, None);
    for (changes, part) in [
        (&[("pSPUK", "0.5"), ("pSPUO", "1"), ("pSPUC", "3")][..], "pSPUK is 0.5, but pSPUO by"),
        (&[("pSPUO", "1")], "only one of pSPUO and pSPUC"),
        (&[("pSPUK", "-1")], "pSPUK is no number above 0"),
        (&[("pSPUK", "x")], "pSPUK is no number above 0"),
    ] {
        let error = split(changes).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
