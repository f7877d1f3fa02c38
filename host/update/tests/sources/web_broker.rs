//! The web broker's daily history: a login, one encoded JSON object as the query, texts everywhere,
//! numbers for failures.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use update::SourceKind;
use update::source::{Answer, DailySource, Reach, SourceError, WebBrokerAccess, WebBrokerSource};
use venues::web_broker::{Credentials, Environment, NUMBERS_FILE, RequestNumbers, WebBrokerConfig};
use wiremock::matchers::path;
use wiremock::{Mock, Request, ResponseTemplate};

use crate::servers::{FAST, Server, code, date, network, policy};

/// The path of the virtual price address, with its secret part.
const PATH: &str = "/e_api_v4r8/price/SECRETSECRETSECRET/";
const LOGIN: &str = "/e_api_v4r8/auth/";
const PASSWORD: &str = "SECRET-password";

/// A broker of which everything but the answers to questions for history is as it should be.
struct World {
    server: Server,
    folder: TempDir,
}

impl World {
    fn new(history: ResponseTemplate) -> Self {
        let server = Server::start(vec![Mock::given(path(PATH)).respond_with(history)]);
        let world = Self { server, folder: TempDir::new().unwrap() };
        world.answers_login(&world.login());
        world
    }

    fn answering(body: &Value) -> Self {
        Self::new(shift_jis(body))
    }

    fn login(&self) -> Value {
        let address = self.server.address();
        let socket = address.replace("http://", "ws://");
        json!({
            "p_errno": "0", "sCLMID": "CLMAuthLoginRequest", "sResultCode": "0",
            "sZyoutoekiKazeiC": "1", "sKinsyouhouMidokuFlg": "0",
            "sUrlRequest": format!("{address}/e_api_v4r8/request/SECRETSECRETSECRET/"),
            "sUrlMaster": format!("{address}/e_api_v4r8/master/SECRETSECRETSECRET/"),
            "sUrlPrice": format!("{address}{PATH}"),
            "sUrlEvent": format!("{address}/e_api_v4r8/event/SECRETSECRETSECRET/"),
            "sUrlEventWebSocket": format!("{socket}/e_api_v4r8/event_ws/SECRETSECRETSECRET/"),
        })
    }

    fn answers_login(&self, body: &Value) {
        self.server.add(Mock::given(path(LOGIN)).respond_with(shift_jis(body)).with_priority(1));
    }

    fn source(&self) -> WebBrokerSource {
        let config = WebBrokerConfig {
            environment: Environment::Demo,
            base_url: Some(format!("{}/e_api_v4r8/", self.server.address())),
            dialect: "web-broker-spec".to_owned(),
            production_allowed: false,
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(5),
            state_dir: self.folder.path().to_owned(),
            cache_dir: self.folder.path().to_owned(),
        };
        let secret = |text: &str| text.to_owned().into();
        let (user, password) = (secret("demo"), secret(PASSWORD));
        let credentials = Credentials::Password { user, password };
        let access = WebBrokerAccess { config, credentials };
        WebBrokerSource::new(&network(), access, FAST, policy())
    }

    fn ask(&self) -> Result<Answer, SourceError> {
        let found = self.source().issue(code("130A"), date("2026-01-05"), date("2026-01-06"));
        if let Err(error) = &found {
            let text = format!("{error} {error:?}");
            assert!(!text.contains("SECRET") && !text.contains("127.0.0.1"), "{text}");
        }
        found
    }

    /// What was asked, by `sCLMID`.
    fn asked(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.iter().map(|request| object(request)["sCLMID"].as_str().unwrap().into()).collect()
    }
}

fn shift_jis(body: &Value) -> ResponseTemplate {
    let body = body.to_string();
    let (bytes, ..) = encoding_rs::SHIFT_JIS.encode(&body);
    ResponseTemplate::new(200).set_body_bytes(bytes.into_owned())
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
        "p_sd_date": "2026.01.09-17:00:00.000", "p_errno": "0", "p_err": "",
        "sCLMID": "CLMMfdsGetMarketPriceHistory", "sIssueCode": "130A", "sSizyouC": "00",
        "aCLMMfdsMarketPriceHistory": rows,
    })
}

fn ask(body: &Value) -> Result<Answer, SourceError> {
    World::answering(body).ask()
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
    let answer = ask(&history(&rows)).unwrap();
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
fn a_run_logs_in_once_and_out_and_numbers_rise() {
    let world = World::answering(&history(&[]));
    for _ in 0..2 {
        let mut source = world.source();
        for _ in 0..2 {
            source.issue(code("25935"), date("2026-01-05"), date("2026-01-06")).unwrap();
        }
        assert!(source.take_notes()[0].contains("a login ends every other session"));
        assert_eq!(source.take_notes(), Vec::<String>::new());
    }
    let history = "CLMMfdsGetMarketPriceHistory";
    let run = ["CLMAuthLoginRequest", history, history, "CLMAuthLogoutRequest"];
    assert_eq!(world.asked(), [run, run].concat());
    let requests = world.server.requests();
    let objects: Vec<Value> = requests.iter().map(object).collect();
    let number = |object: &Value| object["p_no"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(number(&objects[0]) > 1_600_000_000, "{objects:?}");
    assert!(objects.windows(2).all(|pair| number(&pair[0]) < number(&pair[1])), "{objects:?}");
    assert_eq!(requests[1].url.path(), PATH);
    let asked = ["sIssueCode", "sSizyouC", "sJsonOfmt"].map(|name| objects[1][name].as_str());
    assert_eq!(asked, ["25935", "00", "5"].map(Some));
}

#[test]
fn while_an_engine_holds_the_account_nothing_is_sent() {
    let world = World::answering(&history(&[row("20260105", "2300")]));
    let engine = RequestNumbers::open(&world.folder.path().join(NUMBERS_FILE)).unwrap();
    let mut source = world.source();
    let mut ask = || source.issue(code("130A"), date("2026-01-05"), date("2026-01-06"));
    let error = ask().unwrap_err();
    assert!(error.to_string().starts_with("skipped, an engine or another run holds"), "{error}");
    assert_eq!((error.reach(), world.asked()), (Reach::Source, Vec::new()));
    drop(engine);
    assert_eq!(ask().unwrap().rows.len(), 1);
    // And the other way round: while the run has its session, no engine starts.
    assert!(RequestNumbers::open(&world.folder.path().join(NUMBERS_FILE)).is_err());
    drop(source);
    RequestNumbers::open(&world.folder.path().join(NUMBERS_FILE)).unwrap();
}

#[test]
fn a_login_that_fails_ends_the_source() {
    for (name, value, part) in [
        ("sResultCode", "10031", "the broker refuses the login (10031: "),
        ("sResultCode", "10089", "the broker refuses the login (10089: "),
        ("p_errno", "9", "takes no login now (p_errno 9: "),
        ("sKinsyouhouMidokuFlg", "1", "documents wait to be read"),
        ("sUrlPrice", "http://elsewhere.example.com/SECRET/", "sUrlPrice: "),
    ] {
        let server = Server::start(Vec::new());
        let world = World { server, folder: TempDir::new().unwrap() };
        let mut login = world.login();
        login[name] = json!(value);
        login["sResultText"] = json!(format!("user demo, {PASSWORD}"));
        world.answers_login(&login);
        let error = world.ask().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!((error.reach(), world.asked().len()), (Reach::Source, 1), "{error}");
    }
}

/// What has no clear answer is not asked again, and no answer to another question is taken for it.
#[test]
fn a_question_is_sent_once() {
    let world = World::answering(&history(&[row("20260105", "2300")]));
    let wrong = ResponseTemplate::new(502);
    let of_other = shift_jis(&json!({ "p_no": "1", "p_errno": "0" }));
    let first = Mock::given(path(PATH)).respond_with(wrong).up_to_n_times(1).with_priority(1);
    let second = Mock::given(path(PATH)).respond_with(of_other).up_to_n_times(1).with_priority(2);
    world.server.add(first);
    world.server.add(second);
    let mut source = world.source();
    let mut ask = || source.issue(code("130A"), date("2026-01-05"), date("2026-01-06"));
    for part in ["HTTP status 502", "the number of another request"] {
        let error = ask().unwrap_err();
        assert_eq!(error.reach(), Reach::Request);
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(ask().unwrap().rows.len(), 1);
    assert_eq!(world.asked().len(), 1 + 3);
}

#[test]
fn empty_lists_have_two_spellings() {
    let mut text = history(&[]);
    text["aCLMMfdsMarketPriceHistory"] = json!("");
    let mut by_manual = history(&[]);
    let list = by_manual.as_object_mut().unwrap().remove("aCLMMfdsMarketPriceHistory").unwrap();
    by_manual["aCLMMfdsGetMarketPriceHistory"] = list;
    for body in [history(&[]), text, by_manual, json!({ "p_errno": "1", "p_err": "no data" })] {
        assert_eq!(ask(&body).unwrap().rows, []);
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
        let words = "セッションが切断しました。";
        let world = World::answering(&json!({ "p_errno": number, "p_err": words }));
        let error = world.ask().unwrap_err();
        let expected = format!("p_errno {number}: {words}");
        assert!(error.to_string().contains(&expected), "{error}");
        let asked = world.asked().iter().filter(|asked| asked.starts_with("CLMMfds")).count();
        assert_eq!((error.reach(), asked), (reach, tries), "{number}");
    }
    let body = json!({ "p_errno": "0", "sResultCode": "991002", "sResultText": "受付不可" });
    assert!(ask(&body).unwrap_err().to_string().contains("sResultCode 991002: 受付不可"));
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
    let mut of_other = history(&[row("20260105", "2300")]);
    let mut of_none = of_other.clone();
    of_none.as_object_mut().unwrap().remove("sIssueCode");
    of_other["sIssueCode"] = json!("7203");
    for (body, part) in [
        (changed("pDPP", json!({})), "row 2: pDPP: `{}` is not a decimal number"),
        (changed("pDPP", json!("2300.00001")), "pDPP: `2300.00001` has more than 4 digits"),
        (changed("pDPP", json!("2500")), "not all inside low to high"),
        (changed("pDPP", json!("")), "some of the four prices are missing"),
        (changed("pDV", json!("-1")), "pDV: `-1` is no whole number"),
        (changed("sDate", json!("2026-01-05")), "`2026-01-05` is no date"),
        (changed("sDate", json!("20260104")), "two rows of 130A on 2026-01-04"),
        (history(&[without]), "row 1: pDPP is missing"),
        (of_other, "asked for 130A, found 7203"),
        (of_none, "asked for 130A, found "),
        (json!({ "p_errno": "0" }), "no list aCLMMfdsMarketPriceHistory"),
        (json!([]), "not a JSON record"),
    ] {
        let error = ask(&body).unwrap_err();
        assert!(matches!(error, SourceError::Malformed(_)), "{body}: {error}");
        assert!(error.to_string().contains(part), "{body}: {error}");
    }
    let world = World::new(ResponseTemplate::new(200).set_body_bytes(b"{\"p_err\":\"\x82\"}"));
    assert!(world.ask().unwrap_err().to_string().contains("not Shift-JIS"));
}

#[test]
fn the_columns_of_splits_are_read() {
    let split = |changes: &[(&str, &str)]| {
        let mut wanted = row("20260106", "2300");
        changes.iter().for_each(|(name, value)| wanted[*name] = json!(value));
        ask(&history(&[row("20260105", "2300"), wanted]))
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
    assert_eq!(ask(&history(&[silent])).unwrap().rows[0].adjustment_factor, None);
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
