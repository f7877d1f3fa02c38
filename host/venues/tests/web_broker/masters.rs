//! Masters: the stream, single requests, the cache.

use std::path::PathBuf;

use domain::{Price, TickTable};
use venues::web_broker::{Masters, MastersError, Ticks};

use crate::samples::day;
use crate::server::{Act, Server, http, logged_in, sjis};

fn days_record() -> String {
    let next: String =
        (1..=10).map(|n| format!(r#","sYokuEigyouDay_{n}":"202605{:02}""#, 11 + n)).collect();
    format!(r#"{{"sCLMID":"CLMDateZyouhou","sDayKey":"001","sTheDay":"20260511"{next}}}"#)
}

fn ticks_record(number: u32, since: &str, bands: &[(i64, &str)]) -> String {
    let mut text =
        format!(r#"{{"sCLMID":"CLMYobine","sYobineTaniNumber":"{number}","sTekiyouDay":"{since}""#);
    for band in 1..=20 {
        let (up_to, step) = bands.get(band - 1).unwrap_or(&(0, "0"));
        text +=
            &format!(r#","sKizunPrice_{band}":"{up_to}.000000","sYobineTanka_{band}":"{step}""#);
    }
    text + "}"
}

const NAME: &str =
    r#"{"sCLMID":"CLMIssueMstKabu","sIssueCode":"7203","sIssueName":"表}ソ{","sBaibaiTani":"100"}"#;
const MARKET: &str = r#"{"sCLMID":"CLMIssueSizyouMstKabu","sIssueCode":"7203","sZyouzyouSizyou":"00",
    "sNehabaMin":"2350.0000","sNehabaMax":"3350.0000","sYobineTaniNumber":"103"}"#;
const COMPLETE: &str = r#"{"sCLMID":"CLMEventDownloadComplete"}"#;

fn whole() -> String {
    let old = ticks_record(103, "20140101", &[(1_000, "0.1"), (999_999_999, "9")]);
    let new = ticks_record(103, "20200101", &[(1_000, "0.1"), (3_000, "0.5"), (999_999_999, "1")]);
    let later = ticks_record(103, "20990101", &[(999_999_999, "7")]);
    let other = MARKET.replace("\"00\"", "\"02\"").replace("3350", "1");
    let status = r#"{"sCLMID":"CLMSystemStatus","sSystemStatus":"1"}"#;
    let unknown = r#"{"sCLMID":"CLMIssueMstOp","sIssueCode":"x"}"#;
    let days = days_record();
    [&days, NAME, unknown, MARKET, &other, &new, &old, &later, status, COMPLETE].join("\n")
}

/// An answer in pieces that split characters and records, and without an end.
fn chunked(text: &str) -> Vec<u8> {
    let mut sent = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in sjis(text).chunks(7) {
        sent.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        sent.extend_from_slice(piece);
        sent.extend_from_slice(b"\r\n");
    }
    sent
}

fn check(masters: &Masters) {
    let issue = masters.issue("7203").unwrap();
    assert_eq!((issue.name.as_str(), issue.lot.shares()), ("表}ソ{", 100));
    assert_eq!(issue.upper_limit, Some(Price::from_yen(3_350)));
    assert_eq!(issue.lower_limit, Some(Price::from_yen(2_350)));
    let days = masters.days.as_ref().unwrap();
    assert_eq!((days.today, days.next.len()), (day("2026-05-11"), 10));
    assert_eq!(days.next[9], day("2026-05-21"));
    assert!(masters.issue("9999").is_none());
}

#[tokio::test]
async fn p4_the_stream_is_read_until_it_is_complete_and_stored_for_the_day() {
    let server = Server::start(logged_in(|_, _| Act::Raw(chunked(&whole()))));
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.session(folder.path()).await;
    let today = day("2026-05-11");
    let masters = transport.masters(today).await.unwrap();
    check(&masters);
    assert_eq!(masters.system_is_open(), Some(true));
    let ticks = masters.ticks(masters.issue("7203").unwrap()).unwrap();
    let price = |text: &str| text.parse::<Price>().unwrap();
    assert_eq!(ticks.tick_at(price("2000")), price("0.5"));
    assert_eq!(server.requests().len(), 2);
    assert!(server.requests()[1].contains("\"CLMEventDownload\""));
    // On the rest of the day they come from the disk.
    let again = transport.masters(today).await.unwrap();
    check(&again);
    assert_eq!((server.requests().len(), again.system_is_open()), (2, None));
    assert_eq!(again.ticks(again.issue("7203").unwrap()), Some(ticks));
    // Not on another day, and not when it is damaged.
    transport.masters(day("2026-05-12")).await.unwrap();
    assert_eq!(server.requests().len(), 3);
    let files = std::fs::read_dir(folder.path().join("cache")).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let mut bytes = std::fs::read(file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(file, &bytes).unwrap();
    transport.masters(day("2026-05-12")).await.unwrap();
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn p4_if_the_stream_fails_the_masters_are_requested_one_by_one() {
    let cut = whole().replace(COMPLETE, "");
    let broken = whole().replace("\"sCLMID\":\"CLMYobine\"", "\"x\":\"y\"");
    let refused = r#"{"p_errno":"-12","p_err":"x"}"#.to_owned();
    for stream in [cut, broken, refused, "no records".to_owned(), COMPLETE.to_owned()] {
        let server = Server::start(logged_in(move |asked, _| {
            let row = if asked.contains("CLMEventDownload") {
                return Act::Body(sjis(&stream));
            } else if asked.contains("\"CLMDateZyouhou\"") {
                days_record()
            } else if asked.contains("\"CLMIssueMstKabu\"") {
                NAME.to_owned()
            } else {
                MARKET.to_owned()
            };
            let kind = row.split('"').nth(3).unwrap().to_owned();
            Act::Body(sjis(&format!(r#"{{"p_errno":"0","{kind}":[{row}]}}"#)))
        }));
        let folder = tempfile::tempdir().unwrap();
        let mut transport = server.session(folder.path()).await;
        let masters = transport.masters(day("2026-05-11")).await.unwrap();
        check(&masters);
        assert!(masters.ticks(masters.issue("7203").unwrap()).is_none());
        assert_eq!(server.requests().len(), 5);
        // Incomplete masters are not stored.
        transport.masters(day("2026-05-11")).await.unwrap();
        assert_eq!(server.requests().len(), 9);
    }
}

#[tokio::test]
async fn p4_without_the_date_master_there_are_masters_and_without_issues_none() {
    for (missing, is_needed) in [("CLMDateZyouhou", false), ("CLMIssueMstKabu", true)] {
        let server = Server::start(logged_in(move |asked, _| {
            if asked.contains("CLMEventDownload") || asked.contains(&format!("\"{missing}\"")) {
                return Act::HangUp;
            }
            let row = if asked.contains("\"CLMIssueMstKabu\"") { NAME } else { MARKET };
            let kind = row.split('"').nth(3).unwrap().to_owned();
            Act::Raw(http(&sjis(&format!(r#"{{"p_errno":"0","{kind}":[{row}]}}"#)), ""))
        }));
        let folder = tempfile::tempdir().unwrap();
        let mut transport = server.session(folder.path()).await;
        match transport.masters(day("2026-05-11")).await {
            Ok(masters) => assert!(!is_needed && masters.days.is_none() && masters.has_issues()),
            Err(MastersError::Unavailable { .. }) => assert!(is_needed),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn p35_steps_are_those_of_the_exchanges_tables() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../../shared/assets/tse/tick_tables.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: 2 tables of price steps are not at {}", path.display());
        return;
    };
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut tables = 0;
    for (name, ours) in
        [("normal_10000_clm101", TickTable::Normal), ("topix500_10003_clm103", TickTable::Topix500)]
    {
        let bands = json[name].as_array().unwrap().iter().map(|band| {
            let up_to = band["max_price_inclusive"].as_i64().unwrap_or(999_999_999);
            let step = band["tick"].as_str().unwrap().parse::<Price>().unwrap();
            (Price::from_yen(up_to), step)
        });
        let ticks = Ticks::new(bands.collect()).unwrap();
        for units in (1..60_000_000_i64).step_by(6_173).chain((1..4_000).map(|n| n * 10_000_000)) {
            let price = Price::from_units(units);
            assert_eq!(ticks.tick_at(price), ours.tick_at(price), "{name} {price}");
            assert_eq!(ticks.floor(price), ours.floor(price), "{name} {price}");
            assert_eq!(ticks.ceil(price), ours.ceil(price), "{name} {price}");
        }
        tables += 1;
    }
    println!("{tables} tables checked");
}

/// From release v4r10 on each master has a request of its own, with rising numbers. The list of days has either
/// of two names, and lots are wrong.
#[tokio::test]
async fn without_the_stream_each_master_is_a_question() {
    for (days_list, named) in
        [("aCLMStkDateZyouhou", "CLMStkGetDateZyouhou"), ("aCLMDateZyouhou", "CLMDateZyouhou")]
    {
        let key = rsa::PrivateKey::new(&mut getrandom::SysRng, 2_048).unwrap();
        let public = key.to_public_key();
        let server = Server::start(move |asked, port| {
            if asked.contains("/auth/?") {
                return Act::Body(sjis(&crate::logins::encrypted_ack(&public, port)));
            }
            let list = |name: &str, id: &str, row: &str| {
                Act::Body(sjis(&format!(r#"{{"p_errno":"0","sCLMID":"{id}","{name}":[{row}]}}"#)))
            };
            let gone = r#"{"sIssueCode":"9999","sIssueName":"x","sYusenSizyou":"9"}"#;
            let ticks = ticks_record(103, "20200101", &[(999_999_999, "1")]);
            match asked.split("\"sCLMID\":\"").nth(1).and_then(|rest| rest.split('"').next()) {
                Some("CLMStkGetDateZyouhou") => list(days_list, named, &days_record()),
                Some(id @ "CLMStkGetIssueMstKabu") => {
                    let rows = format!("{},{gone}", NAME.replace("\"100\"", "\"0\""));
                    list("aCLMStkIssueMstKabu", id, &rows)
                }
                Some(id @ "CLMStkGetIssueSizyouMstKabu") => {
                    let other = MARKET.replace("7203", "9999");
                    list("aCLMStkIssueSizyouMstKabu", id, &format!("{MARKET},{other}"))
                }
                Some(id @ "CLMStkGetYobine") => list("aCLMStkYobine", id, &ticks),
                other => panic!("{other:?}"),
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let mut transport = crate::logins::key_transport(&server, folder.path());
        transport.login(&crate::logins::key_credentials(&key)).await.unwrap();
        let masters = transport.masters(day("2026-05-11")).await.unwrap();
        let issue = masters.issue("7203").unwrap();
        assert_eq!((issue.lot.shares(), issue.upper_limit), (1, Some(Price::from_yen(3_350))));
        assert!(masters.ticks(issue).is_some() && masters.issue("9999").is_none());
        assert_eq!(masters.days.as_ref().unwrap().today, day("2026-05-11"));
        assert_eq!(masters.system_is_open(), None, "the stream of events tells that");
        let asked = server.requests();
        assert_eq!(asked.len(), 5, "{asked:?}");
        let number = |asked: &String| asked.split('"').nth(3).unwrap().parse::<u64>().unwrap();
        assert!(asked.is_sorted_by(|one, next| number(one) < number(next)), "{asked:?}");
        assert!(asked[1..].iter().all(|asked| asked.starts_with("/master/ND=virtual-secret-2/?")));
    }
}
