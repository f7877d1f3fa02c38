//! They start a shell.
#![cfg(unix)]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn notice(kind: NoticeKind, message: &str) -> Notice {
    Notice {
        kind,
        ts: TsNanos::from_nanos(7_000_000),
        strategy_id: Some("s-1".to_owned()),
        message: message.to_owned(),
        fill: None,
    }
}

/// A notifier that starts a shell with this script, to which `$1` is the folder.
fn shell(folder: &Path, script: &str, time: Duration) -> Notifier {
    let folder = folder.to_str().unwrap();
    let command = ["/bin/sh", "-c", script, "notify", folder].map(str::to_owned);
    Notifier::with_time(command.to_vec(), time).unwrap()
}

fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("lines")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Far longer than any test takes.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn a_notice_is_one_line_of_json() {
    let fill = NoticeFill {
        instrument: "7203.TSE".parse().unwrap(),
        side: OrderSide::Buy,
        quantity: Quantity::new(100),
        price: Price::from_units(24_005_000),
    };
    let filled = Notice { fill: Some(fill), ..notice(NoticeKind::Fill, "two\nlines") };
    let line = filled.line(3).unwrap();
    assert_eq!(line.matches('\n').count(), 1);
    let expected = json!({
        "kind": "fill",
        "ts_ms": 7,
        "strategy_id": "s-1",
        "message": "two\nlines",
        "fill": {"instrument_id": "7203.TSE", "side": "BUY", "qty": "100", "price": "2400.5"},
        "dropped": 3,
    });
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
    let kinds = [
        (NoticeKind::Fault, "fault"),
        (NoticeKind::MarketDataLost, "market_data_lost"),
        (NoticeKind::LoginNeeded, "login_needed"),
        (NoticeKind::PasswordNeeded, "password_needed"),
        (NoticeKind::RunEnd, "run_end"),
    ];
    for (kind, name) in kinds {
        assert_eq!(serde_json::to_value(kind).unwrap(), json!(name));
    }
    // The longest line fits into a pipe of 4 KiB.
    let worst = notice(NoticeKind::Fault, &"\u{1}".repeat(NOTICE_MESSAGE_BYTES_MAX * 2));
    assert!(worst.line(u64::MAX).unwrap().len() < 4_096);
    let cut = notice(NoticeKind::Fault, &"落".repeat(NOTICE_MESSAGE_BYTES_MAX));
    assert!(cut.line(0).unwrap().contains(&"落".repeat(NOTICE_MESSAGE_BYTES_MAX / 3)));
}

#[test]
fn the_program_gets_each_notice_in_order_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"cat >> "$1/lines"; env > "$1/environment""#;
    let notifier = shell(folder.path(), script, LONG);
    for number in 0..5 {
        notifier.tell(notice(NoticeKind::RunEnd, &number.to_string()));
    }
    notifier.finish(LONG);
    let told: Vec<Value> =
        lines(folder.path()).iter().map(|line| line["message"].clone()).collect();
    assert_eq!(told, ["0", "1", "2", "3", "4"]);
    assert!(std::env::vars_os().count() > ENVIRONMENT.len(), "there is something to leave out");
    let environment = fs::read_to_string(folder.path().join("environment")).unwrap();
    // A shell adds some of its own.
    let own = ["PWD", "SHLVL", "_", "OLDPWD"];
    for line in environment.lines() {
        let name = line.split('=').next().unwrap();
        assert!(ENVIRONMENT.contains(&name) || own.contains(&name), "{line}");
    }
}

#[test]
fn no_shell_reads_the_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a $HOME; b");
    let command = ["tee", odd.to_str().unwrap()].map(str::to_owned);
    let notifier = Notifier::new(command.to_vec()).unwrap();
    notifier.tell(notice(NoticeKind::Fault, "x"));
    notifier.finish(LONG);
    assert!(fs::read_to_string(odd).unwrap().contains("\"fault\""));
}

#[test]
fn a_hundred_wait_and_then_the_oldest_goes_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    // The first one waits until all are there.
    let script = r#"cat >> "$1/lines"; while [ ! -e "$1/go" ]; do sleep 0.01; done"#;
    let notifier = shell(folder.path(), script, LONG);
    notifier.tell(notice(NoticeKind::Fault, "first"));
    while lines(folder.path()).is_empty() {
        sleep(LOOK);
    }
    for number in 0..NOTICES_WAITING_MAX + 7 {
        notifier.tell(notice(NoticeKind::Fill, &number.to_string()));
    }
    fs::write(folder.path().join("go"), "").unwrap();
    notifier.finish(LONG);
    let told = lines(folder.path());
    assert_eq!(told.len(), 1 + NOTICES_WAITING_MAX);
    assert_eq!((&told[1]["message"], &told[1]["dropped"]), (&json!("7"), &json!(7)));
    assert_eq!((&told[2]["message"], &told[2]["dropped"]), (&json!("8"), &json!(0)));
    assert_eq!(PROGRAM_TIME, Duration::from_secs(10));
}

#[test]
fn a_program_that_takes_too_long_is_ended_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"cat >> "$1/lines"; if [ ! -e "$1/again" ]; then touch "$1/again"; sleep 600 & sleep 600; fi"#;
    let notifier = shell(folder.path(), script, Duration::from_millis(300));
    let watch = Stopwatch::start();
    notifier.tell(notice(NoticeKind::Fault, "hangs"));
    notifier.tell(notice(NoticeKind::Fault, "next"));
    assert!(watch.elapsed() < LONG / 2, "it waits for nobody");
    notifier.finish(LONG);
    assert_eq!(lines(folder.path()).len(), 2);
    assert!(watch.elapsed() < LONG);
}

#[test]
fn without_a_program_or_with_a_wrong_one_nothing_happens() {
    let off = Notifier::new(Vec::new()).unwrap();
    off.tell(notice(NoticeKind::Fault, "x"));
    off.finish(Duration::ZERO);
    let wrong = Notifier::new(vec!["/no/such/program".to_owned()]).unwrap();
    wrong.tell(notice(NoticeKind::Fault, "x"));
    wrong.finish(LONG);
    // One that reads nothing and fails.
    let fails = Notifier::new(vec!["/bin/false".to_owned()]).unwrap();
    fails.tell(notice(NoticeKind::Fault, "x"));
    fails.finish(LONG);
}
