//! The vendor's own samples and event frames, if they are at hand; the tests print what they skip.

use std::path::PathBuf;

use domain::order_mapping::field;
use domain::{JstDate, Money, OrderSide, Price};
use venues::web_broker::{account, frame, read_answer};

use crate::server::{Act, Server, password, sjis};

fn asset(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/assets").join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("skipped: 1 sample is not at {}", path.display());
    }
    text
}

#[tokio::test]
async fn the_official_login_begins_a_session() {
    let Some(ack) = asset("tachibana/samples/login_ack.official_sample.json") else { return };
    let server = Server::start(move |_, port| {
        let local =
            ack.replace("https://demo-kabuka.e-shiten.jp", &format!("http://127.0.0.1:{port}"));
        let local =
            local.replace("wss://demo-kabuka.e-shiten.jp", &format!("ws://127.0.0.1:{port}"));
        // The sample answers a request with a number of its own.
        let local = local.replace("\"p_no\":\"1\",", "");
        Act::Body(sjis(&local))
    });
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.transport(folder.path(), false);
    let login = transport.login(&password("user", "word")).await.unwrap();
    assert!(login.has_margin);
    assert_eq!((login.account.as_str(), login.last_login.as_str()), ("1", "20250725141124"));
    assert!(transport.event_address().is_some());
}

#[test]
fn every_sample_is_read() {
    let Some(text) = asset("tachibana/samples/request_responses.own_values.json") else { return };
    let samples: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let read = |name: &str| {
        let text = samples[name].to_string();
        [true, false].map(|decodes| read_answer("x", &sjis(&text), decodes).unwrap())
    };
    for name in samples.keys() {
        let [one, other] = read(name);
        assert_eq!(one, other, "{name}");
        assert!(one.answer.fields.iter().all(|field| !field.name.starts_with("p_")), "{name}");
    }
    let [order, _] = read("new_order_bad_second_password");
    let words = "第二暗証番号が誤っています";
    assert_eq!(field(&order.answer.fields, "sResultText"), Some(words));
    assert_eq!(read("session_inactive")[0].answer.errno, "2");
    assert!(read("order_list_empty")[0].lists["aOrderList"].is_empty());
    let [list, _] = read("order_list");
    assert_eq!(list.lists["aOrderList"].len(), 4);
    assert_eq!(field(&list.lists["aOrderList"][0], "sOrderStatus"), Some("一部約定"));
    assert_eq!(
        account::read_cash(&read("cash_buying_power")[0]),
        Ok(Ok(Money::from_yen(1_000_000)))
    );
    assert_eq!(account::read_shortage(&read("cash_buying_power")[0]), Some(false));
    assert_eq!(
        account::read_margin(&read("margin_capacity")[0]),
        Ok(Ok(Money::from_yen(3_000_000)))
    );
    let sellable = account::read_sellable(&read("sellable_quantity")[0]).unwrap();
    assert_eq!((sellable.specific.shares(), sellable.general.shares()), (300, 0));
    assert!(account::read_cash(&order).unwrap_err().starts_with("11304: "));
    println!("{} samples read", samples.len());
}

#[test]
fn every_event_frame_is_read() {
    let Some(text) = asset("tachibana/event_frames.txt") else { return };
    let mut count = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (kind, frame) = line.split_once('\t').unwrap();
        let fields = frame::parse(frame.as_bytes()).unwrap();
        assert_eq!(field(&fields, "p_cmd"), kind.split(' ').next(), "{kind}");
        assert!(fields.iter().all(|field| field.name.starts_with("p_")), "{kind}");
        if kind.starts_with("EC") {
            assert_eq!(field(&fields, "p_IN"), Some("トヨタクタ"), "{kind}");
            assert!(field(&fields, "p_EPRC").is_some(), "{kind}");
        }
        count += 1;
    }
    assert!(count >= 10, "{count}");
    println!("{count} frames read");
}

#[test]
fn positions_are_read_from_the_fields_of_the_vendors_samples() {
    let answer = r#"{"p_errno":"0","sResultCode":"0","aGenbutuKabuList":[{"sUriOrderIssueCode":"130A",
        "sUriOrderZyoutoekiKazeiC":"1","sUriOrderZanKabuSuryou":"300",
        "sUriOrderUritukeKanouSuryou":"200","sUriOrderGaisanBokaTanka":"1234.5000",
        "sUriOrderGaisanHyoukagaku":"400000","sUriOrderGaisanHyoukaSoneki":"-29650"}],
        "aShinyouTategyokuList":[{"sOrderTategyokuNumber":"202611200000402","sOrderIssueCode":"7203",
        "sOrderBaibaiKubun":"3","sOrderBensaiKubun":"36","sOrderZyoutoekiKazeiC":"1",
        "sOrderTategyokuSuryou":"200","sOrderTategyokuTanka":"2850.0000",
        "sOrderHyoukaTanka":"2900.0000","sOrderGaisanHyoukaSoneki":"10000",
        "sOrderHensaiKanouSuryou":"100"}]}"#;
    let mut answered = read_answer("x", answer.as_bytes(), false).unwrap();
    let held = account::read_holdings(&answered).unwrap().whole().unwrap();
    assert_eq!((held[0].symbol.as_str(), held[0].sellable.shares()), ("130A", 200));
    assert_eq!(held[0].profit, Some(Money::from_yen(-29_650)));
    let margin = account::read_margin_positions(&answered).unwrap().whole().unwrap();
    assert_eq!((margin[0].id.as_str(), margin[0].side), ("202611200000402", OrderSide::Buy));
    assert_eq!((margin[0].is_general, margin[0].open_quantity.shares()), (true, 100));
    assert_eq!(margin[0].price, Price::from_yen(2_850));
    assert_eq!(margin[0].market_value, Some(Money::from_yen(580_000)));
    for request in [account::holdings_request(), account::margin_positions_request()] {
        assert_eq!(request.fields.len(), 1);
    }
    answered.lists.get_mut("aShinyouTategyokuList").unwrap()[0][2].value = "5".to_owned();
    // One odd row does not hide the others.
    let other = answered.lists["aShinyouTategyokuList"][0].clone();
    let rows = answered.lists.get_mut("aShinyouTategyokuList").unwrap();
    rows.push(other);
    rows[1][2].value = "1".to_owned();
    let read = account::read_margin_positions(&answered).unwrap();
    assert_eq!((read.rows.len(), read.rows[0].side), (1, OrderSide::Sell));
    let expected = "202611200000402: sOrderBaibaiKubun is neither 1 nor 3";
    assert_eq!((read.left_out.len(), read.left_out[0].why.as_str()), (1, expected));
    answered.lists.clear();
    assert!(account::read_holdings(&answered).unwrap_err().contains("aGenbutuKabuList"));
}

/// Specification 4, P129: data come from rows only; a list is a list or `""`.
#[test]
fn only_a_list_or_an_empty_text_is_a_list() {
    let read = |list: &str| {
        let list = list.replace("LIST", "aOrderList");
        let answer = format!(r#"{{"p_errno":"0","sResultCode":"0"{list}}}"#);
        read_answer("x", answer.as_bytes(), false)
    };
    for empty in [r#","LIST":"""#, r#","LIST":[]"#] {
        assert!(read(empty).unwrap().lists["aOrderList"].is_empty(), "{empty}");
    }
    for damaged in [
        "",
        r#","LIST":null"#,
        r#","LIST":"*""#,
        r#","LIST":" ""#,
        r#","LIST":0"#,
        r#","LIST":false"#,
    ] {
        let answered = read(damaged).unwrap();
        assert!(!answered.lists.contains_key("aOrderList"), "{damaged}");
    }
    assert!(read(r#","LIST":{}"#).is_err());
    for name in ["aGenbutuKabuList", "aShinyouTategyokuList"] {
        for damaged in ["null", r#""*""#, "0"] {
            let answer = format!(r#"{{"p_errno":"0","sResultCode":"0","{name}":{damaged}}}"#);
            let answered = read_answer("x", answer.as_bytes(), false).unwrap();
            let why = match name {
                "aGenbutuKabuList" => account::read_holdings(&answered).map(drop),
                _ => account::read_margin_positions(&answered).map(drop),
            };
            assert_eq!(why, Err(format!("the answer has no {name}")), "{damaged}");
        }
    }
}

#[test]
fn a_row_that_is_no_record_is_left_out_and_the_others_stay() {
    let whole = r#"{"sUriOrderIssueCode":"7203","sUriOrderZanKabuSuryou":"300",
        "sUriOrderUritukeKanouSuryou":200,"sUriOrderGaisanBokaTanka":null}"#;
    for odd in ["null", r#""x""#, "7", "[]", "{}"] {
        let answer =
            format!(r#"{{"p_errno":"0","sResultCode":"0","aGenbutuKabuList":[{whole},{odd}]}}"#);
        let answered = read_answer("x", answer.as_bytes(), false).unwrap();
        let read = account::read_holdings(&answered).unwrap();
        assert_eq!((read.rows.len(), read.left_out.len()), (1, 1), "{odd}");
        assert_eq!(read.rows[0].average_price, None, "null is believed within a row");
        assert!(read.left_out[0].why.starts_with("row 2 of 2: "), "{:?}", read.left_out);
    }
}

/// The masters' tests use it, too.
pub(crate) fn day(text: &str) -> JstDate {
    text.parse().unwrap()
}
