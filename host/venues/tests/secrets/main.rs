//! No output holds a secret: passwords, addresses of a session, request numbers.
//!
//! The log of every crate is collected, by `tracing` and by `log`, down to the finest level.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at the first surprise")]

mod local_broker;

use std::io::Write;
use std::sync::{Mutex, Once};
use std::time::Duration;

use domain::JstDate;
use domain::order_mapping::BrokerRequest;
use tokio_util::sync::CancellationToken;
use venues::web_broker::{FollowTimes, StreamEvent, account, follow_with};

#[path = "../web_broker/server.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod server;

use server::{Act, Server, login_ack, password, secret, sjis};

static OUTPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Collector;

impl Write for Collector {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        OUTPUT.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl log::Log for Collector {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let _ = writeln!(Collector, "log: {} {}", record.target(), record.args());
    }

    fn flush(&self) {}
}

/// Collects all log lines from now on.
fn collect_logs() {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing::level_filters::LevelFilter::TRACE)
            .with_writer(|| Collector)
            .init();
        log::set_logger(&Collector).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
}

fn log_so_far() -> String {
    String::from_utf8(OUTPUT.lock().unwrap().clone()).unwrap()
}

const PASSWORD: &str = "canary-word";
const SECOND: &str = "canary-second";

#[tokio::test]
async fn no_log_line_or_output_holds_a_secret() {
    collect_logs();
    let acts = [
        format!(
            r#"{{"p_errno":"-1","p_err":"{SECOND} virtual-secret-1","sResultText":"{PASSWORD}"}}"#
        ),
        "garbage virtual-secret-1".to_owned(),
        "hang up".to_owned(),
        "redirect".to_owned(),
        "late".to_owned(),
    ];
    let mut reported = String::new();
    for act in acts {
        let server = Server::start(move |asked, port| match act.as_str() {
            _ if asked.contains("/auth/?") => Act::Body(login_ack(port)),
            _ if asked.contains("/event_ws/") => Act::HangUp,
            "hang up" => Act::HangUp,
            "late" if asked.contains("CLMZan") => Act::HangUp,
            "late" if asked.contains("CLMMfds") => Act::HangUp,
            "late" => Act::Wait(Duration::from_secs(2)),
            "redirect" => {
                let to =
                    "Location: http://127.0.0.1:1/virtual-secret-1\r\nContent-Length: 0\r\n\r\n";
                Act::Raw(format!("HTTP/1.1 302 Found\r\n{to}").into_bytes())
            }
            // A broker that repeats its request.
            body if asked.contains(SECOND) => Act::Body(sjis(body)),
            body => Act::Body(sjis(&body.replace(SECOND, ""))),
        });
        let folder = tempfile::tempdir().unwrap();
        let mut transport = server.transport(folder.path(), true);
        let login = transport.login(&password("canary-user", PASSWORD)).await;
        reported += &format!("{login:?} {transport:?}");
        let request = BrokerRequest {
            id: "CLMKabuCancelOrderAll".to_owned(),
            password_field: Some("sSecondPassword".to_owned()),
            ..Default::default()
        };
        let called = transport.call(&request, Some(&secret(SECOND))).await;
        reported += &format!("{:?}", called.result);
        if let Err(failure) = called.result {
            reported += &failure.to_string();
        }
        reported += &format!("{:?}", transport.call(&account::cash_request(), None).await.result);
        let masters = transport.masters(JstDate::MIN).await;
        reported += &format!("{masters:?}");
        let address = transport.event_address().unwrap();
        reported += &format!("{address:?}");
        let (sender, mut receiver) = tokio::sync::mpsc::channel(4);
        let cancel = CancellationToken::new();
        tokio::spawn(follow_with(address, sender, cancel.clone(), FollowTimes::default()));
        let event = receiver.recv().await.unwrap();
        assert!(matches!(event, StreamEvent::Down(_)), "{event:?}");
        reported += &format!("{event:?}");
        cancel.cancel();
        reported += &format!("{:?}", transport.logout().await);
        assert!(
            server.requests().iter().any(|asked| asked.contains(SECOND)),
            "the test asks nothing"
        );
        let written = std::fs::read(folder.path().join("state/web_broker_p_no")).unwrap();
        let written = String::from_utf8(written).unwrap();
        let numbers: Vec<&str> = written.lines().map(|line| &line[5..15]).collect();
        let log = log_so_far();
        assert!(log.contains("log: ") && log.contains("CLMKabuCancelOrderAll"), "{log}");
        for text in [&reported, &log] {
            for canary in ["canary", "virtual-secret", "p_sd_date", numbers[0], numbers[1]] {
                let at = text.find(canary);
                let around = at.map(|at| text.get(at.saturating_sub(200)..at + 40));
                assert_eq!(around, None, "{canary}");
            }
        }
    }
}
