//! What stands at the edges of the daily data: odd folders, files that others have left, dates before there was
//! an exchange, and what people are told of it. Each with the program itself.

use std::fs::{self, File};
use std::time::{Duration, UNIX_EPOCH};

use domain::clock;
use serde_json::{Value, json};
use tests::http;

use crate::update_days::{Fixture, Market, days};
use crate::update_program::{VENDOR_KEY, command, texts};

fn two_days() -> Fixture {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 10), ("20251216", 10)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    fixture
}

#[test]
fn what_a_killed_job_left_in_the_cache_is_removed_once_it_is_old() {
    let fixture = two_days();
    // Of a server that is not the vendor's own.
    let kept = fs::read_dir(fixture.path().join("cache")).unwrap().next().unwrap().unwrap().path();
    let [old, new] = [".kumiki-old", ".kumiki-new"].map(|name| kept.join(name));
    let hours_ago =
        Duration::from_nanos(clock::wall_now().nanos()) - Duration::from_secs(2 * 3_600);
    let hours_ago = UNIX_EPOCH + hours_ago;
    File::create(&old).unwrap().set_modified(hours_ago).unwrap();
    fs::write(&new, "another job's").unwrap();
    let days_before = fs::read_dir(&kept).unwrap().count();
    assert_eq!(fixture.update("--as-of 2025-12-16").code, 0);
    assert!(!old.exists() && new.exists());
    assert_eq!(fs::read_dir(&kept).unwrap().count(), days_before - 1, "days stay");
}

#[test]
fn a_reason_is_said_once_for_all_days_that_it_is_true_of() {
    // Each day and each issue is asked for again after a second, and again after two: so there are few.
    let fixture = Fixture::new(Market {
        days: days([("20251215", 1), ("20251216", 1)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    fixture.change(|market| market.down.extend(["20251217", "20251218"]));
    let vendor = format!("http://{}/v2", fixture.server.address);
    let arguments = ["update", "--as-of", "2025-12-18", "--vendor-rate", "60000"];
    let mut update = command(fixture.path(), &arguments);
    update.args(["--vendor-url", &vendor, "--public-url", "http://127.0.0.1:9/q/"]);
    let output = update.output().unwrap();
    let (report, _) = texts(&output);
    let line = "2025-12-17, 2025-12-18  ";
    for words in ["vendor: ", "0 rows, not published: no source has given any row of it"] {
        assert_eq!(report.matches(&format!("{line}{words}")).count(), 1, "{words}: {report}");
    }
}

#[test]
fn a_folder_whose_name_the_engine_misreads_is_refused() {
    let fixture = two_days();
    let odd = fixture.path().join("what?").display().to_string();
    for arguments in [
        &["update", "--data-dir", &odd][..],
        &["rank", "--data-dir", &odd],
        &["sql", "SELECT 1", "--data-dir", &odd],
        &["data", "sample", "--daily", "--data-dir", &odd],
    ] {
        let output = command(fixture.path(), arguments).output().unwrap();
        let (_, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains("what? has a ? in its name"), "{arguments:?}: {errors}");
    }
    assert!(!fixture.path().join("what?").exists());
}

#[test]
fn days_before_the_exchange_are_asked_of_nobody() {
    let fixture = Fixture::new(Market::default());
    let arguments = ["update", "--as-of", "0001-01-04", "--days", "10400"];
    let output = command(fixture.path(), &arguments).output().unwrap();
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("before 1949-05-16, the first day of the exchange"), "{errors}");
    let run = fixture.update("--as-of 1949-05-17 --days 10400");
    assert_eq!(run.asked[..2], ["16", "17"], "{run:?}");
    assert_eq!(run.report["from"], "1949-05-16");
}

#[test]
fn a_key_in_base64_is_hidden_too() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 10)]),
        refused: ["20251215"].into(),
        ..Market::default()
    });
    // `user:` and the key, as in a header of basic authorization that a vendor repeats.
    let repeated = "dXNlcjpwcm9ncmFtLXZlbmRvci1rZXktNTcxMQ==";
    assert_eq!(VENDOR_KEY, "program-vendor-key-5711");
    fixture.change(|market| market.refusal = repeated);
    let run = fixture.update("--as-of 2025-12-15 --days 1 --codes 1300");
    let hidden = "yb2dyYW0tdmVuZG9yLWtleS01NzEx";
    for text in [run.report.to_string(), run.told] {
        assert!(
            !text.contains(repeated) && !text.contains(hidden) && !text.contains("ncmFtLXZlbm")
        );
    }
}

#[test]
fn an_answer_whose_fields_are_all_left_out_has_no_fields() {
    let fixture = two_days();
    let serving = fixture.serve();
    for query in
        ["{ dataset @skip(if: true) { days } }", "{ dataset @include(if: false) { days } }"]
    {
        let reply = http::graphql(serving.address, &json!({ "query": query }).to_string());
        assert_eq!((reply.status, reply.text().as_str()), (200, "{\"data\":{}}"), "{query}");
    }
}

#[test]
fn a_view_whose_files_are_missing_says_which() {
    let fixture = two_days();
    let errors = |sql: &str| {
        let output = command(fixture.path(), &["sql", sql]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{:?}", texts(&output));
        texts(&output).1
    };
    fs::remove_file(fixture.path().join("jp").join("listed_info.db")).ok();
    for (name, words) in [
        ("listed_issue", "listed_info.db is not there; load daily prices with `kumiki update`"),
        ("minute", "minute is not there; put files there, as Parquet, CSV or JSON lines"),
        ("audit", "Parquet, CSV or JSON lines, or name a folder with --runs or --config-dir"),
        ("runs", "what it shows is not there; name its folder with --runs"),
    ] {
        let told = errors(&format!("SELECT * FROM {name}"));
        assert!(
            told.contains(&format!("there is no view {name}: ")) && told.contains(words),
            "{told}"
        );
    }
    assert!(errors("SELECT * FROM nothing").contains("nothing does not exist"));
}

/// A view of somebody else's in the place of `daily` may wait for ever: it is not looked at.
#[cfg(unix)]
#[test]
fn a_view_over_a_pipe_holds_no_statement_up() {
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    let (data, pipe) = (pricestore::DataDir::new(folder.path()), folder.path().join("pipe.csv"));
    fs::create_dir_all(data.mother().parent().unwrap()).unwrap();
    fs::write(&pipe, "date,code\n2025-12-15,1301\n").unwrap();
    let view = format!(
        "CREATE VIEW daily AS SELECT * FROM read_csv('{}'); CREATE TABLE other AS SELECT 7 AS n",
        pipe.display()
    );
    duckdb::Connection::open(data.mother()).unwrap().execute_batch(&view).unwrap();
    fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let answer = |sql: &str| {
        let mut sql = command(folder.path(), &["sql", sql, "--format", "csv"]);
        let mut child = sql.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Who waits for the pipe is let go by its other end.
        let ended = (0..600).any(|_| {
            clock::sleep(Duration::from_millis(100));
            child.try_wait().unwrap().is_some()
        });
        if !ended {
            child.kill().unwrap();
        }
        assert!(ended, "it waits for the pipe");
        texts(&child.wait_with_output().unwrap())
    };
    let (rows, errors) = answer("SELECT n FROM other");
    assert_eq!(rows, "n\n7\n", "{errors}");
    assert!(errors.contains("there is no view daily: daily cannot be read"), "{errors}");
    assert!(answer("SELECT * FROM daily").1.contains("daily cannot be read"));
}

/// A disk that goes away takes no warning with it: what the job has told last stands, and that it is gone.
#[test]
fn health_does_not_forget_what_is_wrong_when_the_folder_goes() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 50)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2 --publish-incomplete").code, 3);
    let serving = fixture.serve();
    let health = || -> Value {
        let reply = http::request(serving.address, "GET /health", &[], &[]);
        serde_json::from_slice(&reply.body).unwrap()
    };
    let wait_for = |status: &str| {
        for _ in 0..3_000 {
            let told = health();
            if told["status"] == status {
                return told;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{status} never came: {}", health());
    };
    let before = wait_for("incomplete");
    let (there, away) = (fixture.path().join("update"), fixture.path().join("away"));
    fs::rename(&there, &away).unwrap();
    let lost = wait_for("lost");
    assert_eq!(lost["incomplete"], before["incomplete"]);
    let message = lost["message"].as_str().unwrap();
    assert!(message.contains("its file is gone; what was read last is shown"), "{message}");
    let metrics = http::request(serving.address, "GET /metrics", &[], &[]).text();
    assert!(metrics.contains("kumiki_ranking_incomplete_days 1"), "{metrics}");
    fs::rename(&away, &there).unwrap();
    let again = wait_for("incomplete");
    assert_eq!(again.get("message"), None);
    // The file is there and is none that a job wrote.
    let dataset = there.join("dataset.json");
    let written = fs::read(&dataset).unwrap();
    fs::write(&dataset, &written[..written.len() / 2]).unwrap();
    let lost = wait_for("lost");
    assert_eq!(lost["incomplete"], before["incomplete"]);
    let message = lost["message"].as_str().unwrap();
    assert!(message.contains("dataset.json"), "{message}");
    fs::write(&dataset, written).unwrap();
    assert_eq!(wait_for("incomplete").get("message"), None);
}
