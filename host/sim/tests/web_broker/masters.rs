//! Masters, and the layout of answers against the samples of the vendor.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use encoding_rs::SHIFT_JIS;
use serde_json::{Deserializer, Value, json};
use sim::web_broker::{Form, Server};

use crate::client::{Client, start};

/// The stream's records, up to the last one; and whether it was cut off.
fn download(client: &mut Client, until: Option<&str>) -> (Vec<u8>, bool) {
    let path = client.target("sUrlMaster");
    let target = client.request(&path, "CLMEventDownload", &json!({ "sTargetCLMID": "" }));
    let mut stream = TcpStream::connect(client.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&all);
        if until.is_some_and(|until| text.contains(until)) {
            return (unchunked(&all), false);
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return (unchunked(&all), true),
            Ok(count) => all.extend_from_slice(&piece[..count]),
        }
    }
}

fn unchunked(all: &[u8]) -> Vec<u8> {
    let end = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let (mut rest, mut body) = (&all[end + 4..], Vec::new());
    while let Some(end) = rest.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        let data = &rest[end + 2..];
        let size = size.min(data.len());
        body.extend_from_slice(&data[..size]);
        rest = data.get(size + 2..).unwrap_or_default();
    }
    body
}

fn records(bytes: &[u8]) -> Vec<Value> {
    let (text, _, _) = SHIFT_JIS.decode(bytes);
    let values = Deserializer::from_str(&text).into_iter::<Value>();
    values.map_while(Result::ok).collect()
}

fn started() -> (Server, Client) {
    let server = start(Form::V4r8);
    let client = Client::logged_in(&server, Form::V4r8);
    (server, client)
}

#[test]
fn the_master_is_a_stream_of_records() {
    let (_server, mut client) = started();
    let (bytes, is_cut) = download(&mut client, Some("CLMEventDownloadComplete\"}"));
    assert!(!is_cut, "the connection stays open");
    let records = records(&bytes);
    let of = |id: &str| records.iter().filter(|record| record["sCLMID"] == id).collect::<Vec<_>>();
    assert_eq!(of("CLMDateZyouhou").len(), 2);
    assert_eq!(of("CLMDateZyouhou")[0].as_object().unwrap().len(), 19);
    assert_eq!(of("CLMYobine").len(), 3);
    assert_eq!(of("CLMYobine")[0].as_object().unwrap().len(), 65);
    let names: Vec<&Value> =
        of("CLMIssueMstKabu").iter().map(|record| &record["sIssueName"]).collect();
    assert_eq!(names, ["トヨタ自動車", "ソ表ニックス", "マツダ"]);
    let market = of("CLMIssueSizyouMstKabu")[0].clone();
    assert_eq!(
        (&market["sNehabaMin"], &market["sNehabaMax"]),
        (&json!("2350.0000"), &json!("3350.0000"))
    );
    assert_eq!(market["sYobineTaniNumber"], "103");
    assert_eq!(records.last().unwrap()["sCLMID"], "CLMEventDownloadComplete");
}

#[test]
fn the_vendors_records_of_price_steps_are_ours() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/assets/tachibana");
    let folder = std::env::var("KUMIKI_VENDOR_SAMPLES").unwrap_or_else(|_| beside.to_owned());
    let file = Path::new(&folder).join("samples/request_responses.own_values.json");
    let Ok(text) = std::fs::read_to_string(file) else {
        eprintln!("skipped: the samples are not there");
        return;
    };
    let samples: Value = serde_json::from_str(&text).unwrap();
    let (_server, mut client) = started();
    let records = records(&download(&mut client, Some("CLMEventDownloadComplete\"}")).0);
    for number in ["101", "103"] {
        let ours = records.iter().find(|record| record["sYobineTaniNumber"] == number).unwrap();
        assert_eq!(*ours, samples[format!("tick_record_{number}")]);
    }
    let date = records.iter().find(|record| record["sDayKey"] == "001").unwrap();
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(date), names(&samples["date_master_record"]));
    let answers = [
        ("cash_buying_power", "CLMZanKaiKanougaku", json!({})),
        ("margin_capacity", "CLMZanShinkiKanoIjiritu", json!({})),
        ("sellable_quantity", "CLMZanUriKanousuu", json!({ "sIssueCode": "7203" })),
        ("order_list_empty", "CLMOrderList", json!({})),
    ];
    for (sample, id, fields) in answers {
        let mut expected = names(&samples[sample]);
        let mut ours = names(&client.ask(id, &fields));
        expected.sort();
        ours.sort();
        assert_eq!(ours, expected, "{id}");
    }
    let order = client.placed(&json!({}));
    assert_eq!(names(&client.list()[0]), names(&samples["order_list"]["aOrderList"][0]));
    let fields = client.new_order_fields(&json!({}));
    let placed = client.ask("CLMKabuNewOrder", &fields);
    assert_eq!(names(&placed), names(&samples["new_order_ok"]));
    assert_eq!(names(&client.correct(&order, &json!({}))), names(&samples["correct_order_ok"]));
    assert_eq!(names(&client.cancel(&order)), names(&samples["cancel_order_ok"]));
}

#[test]
fn masters_end_early_or_lack_dates() {
    let (server, mut client) = started();
    server.control(&json!({ "do": "fault", "name": "truncated-master" })).unwrap();
    let (bytes, is_cut) = download(&mut client, None);
    assert!(is_cut);
    assert!(records(&bytes).iter().all(|record| record["sCLMID"] != "CLMEventDownloadComplete"));
    server.control(&json!({ "do": "clear-faults" })).unwrap();
    server.control(&json!({ "do": "fault", "name": "no-date-master" })).unwrap();
    let (bytes, _) = download(&mut client, Some("CLMEventDownloadComplete\"}"));
    assert!(records(&bytes).iter().all(|record| record["sCLMID"] != "CLMDateZyouhou"));
    let path = client.target("sUrlMaster");
    let fields = json!({
        "sTargetCLMID": "CLMIssueMstKabu,CLMDateZyouhou", "sTargetColumn": "sIssueCode,sBaibaiTani",
    });
    let answer = client.ask_at(&path, "CLMMfdsGetMasterData", &fields);
    assert_eq!(answer["CLMIssueMstKabu"][2], json!({ "sIssueCode": "7261", "sBaibaiTani": "100" }));
    assert_eq!(answer["CLMDateZyouhou"], "");
    let wrong = json!({ "sTargetCLMID": "CLMYobine", "sTargetColumn": "" });
    assert_eq!(client.ask_at(&path, "CLMMfdsGetMasterData", &wrong)["p_errno"], "-1");
    // Its number need not rise: the download is no question among the others.
    client.p_no -= 10;
    let (bytes, _) = download(&mut client, Some("CLMEventDownloadComplete\"}"));
    assert!(!records(&bytes).is_empty());
}

/// Release v4r10 has neither the stream nor the masters by columns, but a question for each.
#[test]
fn with_keys_each_master_is_a_question() {
    let server = start(Form::V4r10);
    let mut client = Client::logged_in(&server, Form::V4r10);
    let path = client.target("sUrlMaster");
    for (name, field) in [
        ("DateZyouhou", "sTheDay"),
        ("IssueMstKabu", "sIssueCode"),
        ("IssueSizyouMstKabu", "sNehabaMax"),
        ("Yobine", "sKizunPrice_1"),
    ] {
        let answer = client.ask_at(&path, &format!("CLMStkGet{name}"), &json!({}));
        let rows = answer[format!("aCLMStk{name}")].as_array().unwrap();
        assert!(!rows.is_empty() && rows[0].get(field).is_some(), "{name}: {answer}");
    }
    for gone in ["CLMEventDownload", "CLMMfdsGetMasterData"] {
        assert_eq!(client.ask_at(&path, gone, &json!({}))["p_errno"], "-1", "{gone}");
    }
}
