//! Replicas whose own files are lost, whose primary is away for long, or sends very slowly: rules R10 to
//! R12 of `ranking::replica`.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use domain::clock::sleep;
use pricestore::DataDir;
use pricestore::generation::{Generation, digest_of};
use serde_json::Value;
use tests::http;
use tests::proxy::Tamper;
use tests::serving::Serving;

use crate::daily_market::{generation_of, served};
use crate::replicas::{Primary, wait_for, wait_for_error, wait_for_generation};

/// A file of a copy, and how it is lost.
type Loss<'a> = (&'a str, &'a dyn Fn(&Path));

/// The primary gives no answer any more.
fn cut_off(primary: &Primary) {
    primary.proxy.tamper(|_| Tamper::Refuse);
}

fn let_through(primary: &Primary) {
    primary.proxy.tamper(|_| Tamper::Pass);
}

/// Waits until nothing is wrong with a copy, and holds all of it against its digests.
fn wait_for_health(replica: &Serving, copy: &Path, generation: &Generation) {
    wait_for(replica, "health", |told| {
        let lost = &told["replica"]["damaged_files"];
        (&told["status"], lost, &told["refused"]) == (&"ok".into(), &0.into(), &Value::Null)
    });
    wait_for_generation(replica, generation);
    let data = DataDir::new(copy);
    let own = Generation::load(&data).unwrap().unwrap();
    assert_eq!(own.generation, generation.generation);
    own.check_files(&data).unwrap();
    assert_eq!(data.current().unwrap(), Some(generation.snapshot));
}

/// Puts another file in the place of one.
fn put(path: &Path, text: &str) {
    let aside = path.with_extension("aside");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, path).unwrap();
}

/// Changes the last byte of a file, which keeps its size and time.
fn lose_a_byte(path: &Path) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let bytes = fs::read(path).unwrap();
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::End(-1)).unwrap();
    file.write_all(&[!bytes.last().unwrap()]).unwrap();
    file.set_modified(modified).unwrap();
}

#[test]
fn files_of_a_copy_that_are_lost_are_told_and_copied_again() {
    const MOTHER: &str = "jp/stocks_daily/mother.db";
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    let replica = primary.replica("one", &[]);
    wait_for_generation(&replica, &first);
    let copy = primary.folder.path().join("one");
    let gone = |path: &Path| fs::remove_file(path).unwrap();
    let cut = |path: &Path| put(path, "cut");
    let other = |path: &Path| put(path, "7\n");
    let folder = |path: &Path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    };
    let rows: [Loss<'_>; 9] = [
        (MOTHER, &gone),
        (MOTHER, &cut),
        ("rank/rank-1.grid", &cut),
        ("rank/rank-1.grid", &gone),
        ("jp/generation.json", &gone),
        ("jp/generation.json", &cut),
        ("rank/CURRENT", &gone),
        ("rank/CURRENT", &other),
        ("update/dataset.json", &gone),
    ];
    for (name, lose) in rows {
        cut_off(&primary);
        lose(&copy.join(name));
        let told = wait_for(&replica, name, |told| {
            told["replica"]["damaged"].as_array().is_some_and(|all| all.contains(&name.into()))
        });
        assert_eq!(told["replica"]["damaged_files"], 1, "{told}");
        assert!(["damaged", "refused"].contains(&told["status"].as_str().unwrap()), "{told}");
        if told["status"] == "damaged" {
            assert!(told["message"].as_str().unwrap().contains(name), "{told}");
        }
        let lost = replica.metric("kumiki_ranking_replica_damaged_files");
        assert_eq!(lost.as_deref(), Some("1"), "{name}");
        // What it serves is in its memory, and of the generation that it had.
        assert_eq!(served(replica.address), Ok((5, Some(first.generation.clone()))), "{name}");
        let_through(&primary);
        wait_for_health(&replica, &copy, &first);
    }
    // What cannot be replaced is told as long as it is so.
    folder(&copy.join(MOTHER));
    wait_for_error(&replica, "the copy cannot be written");
    fs::remove_dir(copy.join(MOTHER)).unwrap();
    wait_for_health(&replica, &copy, &first);
}

#[test]
fn bytes_that_a_disk_lost_are_found_at_a_start_and_another_time_is_no_loss() {
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    let mut replica = primary.replica("one", &[]);
    wait_for_generation(&replica, &first);
    let copy = primary.folder.path().join("one");
    let mother = copy.join("jp/stocks_daily/mother.db");
    let whole = digest_of(&mother).unwrap();
    // Only touched: noted anew, and not fetched.
    drop(primary.proxy.take_seen());
    let file = File::options().write(true).open(&mother).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    drop(file);
    let named = || {
        let head = "HEAD /jp/stocks_daily/mother.db";
        let reply = http::request(replica.address, head, &[], &[]);
        reply.header("kumiki-generation").map(str::to_owned)
    };
    for _ in 0..6_000 {
        let known = Generation::load(&DataDir::new(&copy)).unwrap().unwrap();
        let known = known.file("jp/stocks_daily/mother.db").unwrap().modified_us;
        if known == 1_000_000_000_000_000 && named().is_some() {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    assert_eq!(named(), Some(first.generation.clone()));
    let seen = primary.proxy.take_seen();
    assert!(seen.iter().all(|one| one.path == "/jp/generation.json"), "{seen:?}");

    cut_off(&primary);
    for name in ["jp/stocks_daily/mother.db", "rank/rank-1.grid"] {
        replica.child.kill().unwrap();
        replica.child.wait().unwrap();
        lose_a_byte(&copy.join(name));
        cut_off(&primary);
        replica = primary.replica("one", &[]);
        let told = wait_for(&replica, name, |told| told["replica"]["damaged_files"] == 1);
        assert_eq!(told["replica"]["damaged"][0], name, "{told}");
        // A snapshot that is not whole is not answered from.
        let status = if name.ends_with(".grid") { "refused" } else { "damaged" };
        assert_eq!(told["status"], status, "{told}");
        // Nobody takes it for what the generation names.
        let head = http::request(replica.address, &format!("HEAD /{name}"), &[], &[]);
        let named = first.file(name).map(|file| format!("\"{}\"", file.xxh128));
        assert_ne!(head.header("etag").map(str::to_owned), named);
        assert_eq!(head.header("kumiki-generation"), None);
        // Still so when it is looked at again, by size and time.
        wait_for(&replica, "another look", |told| told["replica"]["failures"].as_u64() > Some(3));
        assert_eq!(replica.metric("kumiki_ranking_replica_damaged_files").as_deref(), Some("1"));
        let_through(&primary);
        wait_for_health(&replica, &copy, &first);
    }
    assert_eq!(digest_of(&mother).unwrap(), whole);
}

#[test]
fn a_copy_that_cannot_be_renewed_for_long_is_stale_and_served() {
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    let replica = primary.replica("one", &["--follow-stale", "100ms"]);
    let patient = primary.replica("two", &[]);
    for one in [&replica, &patient] {
        wait_for_generation(one, &first);
    }
    let told = wait_for(&replica, "a good look", |told| told["status"] == "ok");
    assert_eq!(told["replica"]["failing_since"], Value::Null, "{told}");
    cut_off(&primary);
    let told = wait_for(&replica, "stale", |told| told["status"] == "stale");
    let since = told["replica"]["failing_since"].as_str().unwrap();
    let why = told["replica"]["last_error"].as_str().unwrap();
    assert!(since.ends_with(" JST") && why.starts_with("the primary: "), "{told}");
    assert_eq!(told["message"], format!("nothing was copied since {since}: {why}"));
    let seconds = replica.metric("kumiki_ranking_replica_failing_seconds").unwrap();
    assert!(seconds.parse::<u64>().unwrap() > 0, "{seconds}");
    assert_eq!(served(replica.address), Ok((5, Some(first.generation.clone()))));
    // Ten minutes are not over.
    let told = wait_for_error(&patient, "the primary: ");
    assert_eq!(
        (&told["status"], told["replica"]["failing_since"].is_string()),
        (&"ok".into(), true)
    );
    let_through(&primary);
    wait_for(&replica, "ok", |told| told["status"] == "ok");
    let told = wait_for(&replica, "a good look", |told| told["replica"]["failures"] == 0);
    assert_eq!(told["replica"]["failing_since"], Value::Null, "{told}");
    let seconds = replica.metric("kumiki_ranking_replica_failing_seconds");
    assert_eq!(seconds.as_deref(), Some("0"));
}

#[test]
fn a_primary_that_sends_very_slowly_is_given_up_and_gone_on_with() {
    const SLOW: &str = "fewer than 1048576 bytes came within 2 s";
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    // A byte now and then, which would take hours.
    primary.proxy.tamper(|path| match path {
        path if path.ends_with(".grid") => Tamper::Slow(1),
        _ => Tamper::Pass,
    });
    let replica = primary.replica("one", &["--follow-patience", "2s"]);
    let told = wait_for_error(&replica, SLOW);
    assert_eq!(told["status"], "no data", "{told}");
    let grid = first.file("rank/rank-1.grid").unwrap();
    let part = primary.folder.path().join("one/replica").join(format!("{}.part", grid.xxh128));
    let came = fs::metadata(&part).unwrap().len();
    assert!(came > 0 && came < grid.bytes, "{came} of {}", grid.bytes);
    drop(primary.proxy.take_seen());
    let_through(&primary);
    wait_for_generation(&replica, &first);
    let seen = primary.proxy.take_seen();
    let mut resumed = seen.iter().filter(|one| one.path.ends_with(".grid") && one.status == 206);
    assert!(resumed.any(|one| one.range.as_deref() != Some("bytes=0-")), "{seen:#?}");
    // The same of the generation itself; what is here is served.
    cut_off(&primary);
    let next = primary.publish(6);
    primary.proxy.tamper(|_| Tamper::Slow(1));
    wait_for_error(&replica, SLOW);
    assert_eq!(served(replica.address), Ok((5, Some(first.generation))));
    let_through(&primary);
    wait_for_generation(&replica, &next);
}
