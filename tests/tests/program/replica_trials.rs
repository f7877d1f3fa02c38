//! A replica tries a generation before it puts it in place (rule R13 of `ranking::replica`): one whose digests
//! are right and whose files are no use, and one with a wrong digest, is never seen and thrown away.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pricestore::DataDir;
use pricestore::generation::{Generation, Issues, publish_generation};
use serde_json::Value;
use tests::http;
use tests::proxy::Tamper;
use tests::serving::Serving;

use crate::daily_market::{generation_of, served};
use crate::replicas::{Primary, wait_for, wait_for_error, wait_for_generation};

/// All files of a copy that readers see, with their bytes.
fn placed(copy: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in ["jp", "jp/stocks_daily", "rank"] {
        for entry in fs::read_dir(copy.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    found
}

/// What of files on their way is there.
fn parts(copy: &Path) -> Vec<String> {
    let names = fs::read_dir(copy.join("replica")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".part") || name.ends_with(".tag")).collect()
}

/// A folder with the primary's files of which one is another, tied as if it had been written so.
fn worse(primary: &Path, folder: &Path, path: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let own = Generation::load(&DataDir::new(primary)).unwrap().unwrap();
    let data = DataDir::new(folder);
    for file in own.all_files() {
        let to = folder.join(&file.path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(primary.join(&file.path), to).unwrap();
    }
    fs::copy(DataDir::new(primary).current_file(), data.current_file()).unwrap();
    let on_disk = folder.join(path);
    let bytes = fs::read(&on_disk).unwrap();
    fs::write(&on_disk, change(bytes)).unwrap();
    let issues = own.issues.files.iter().flatten();
    let codes = issues.map(|file| Path::new(&file.path).file_stem().unwrap().to_string_lossy());
    let codes: Vec<String> = codes.map(String::from).collect();
    publish_generation(&data, Issues::Of(&codes), &[]).unwrap();
}

#[test]
fn a_generation_whose_files_are_no_use_is_never_in_place() {
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    let replica = primary.replica("one", &["--follow-issues"]);
    wait_for_generation(&replica, &first);
    primary.proxy.tamper(|_| Tamper::Refuse);
    let next = primary.publish(6);
    let (folder, data) = (primary.folder.path(), primary.folder.path().join("data"));
    let copy = folder.join("one");
    let before = placed(&copy);
    let garbage = |bytes: Vec<u8>| vec![b'x'; bytes.len()];
    let flipped = |mut bytes: Vec<u8>| {
        bytes[4_096 + 8] ^= 1;
        bytes
    };
    let grid = format!("rank/rank-{}.grid", next.snapshot);
    type Change<'a> = &'a dyn Fn(Vec<u8>) -> Vec<u8>;
    let rows: [(&str, Change<'_>, &str); 4] = [
        ("jp/stocks_daily/mother.db", &garbage, "it does not open as a database"),
        ("jp/stocks_daily/1305.db", &garbage, "it does not open as a database"),
        ("jp/listed_info.db", &garbage, "it does not open as a database"),
        (&grid, &flipped, "was changed after it was written"),
    ];
    for (place, (path, change, why)) in rows.into_iter().enumerate() {
        let served_folder = folder.join(format!("worse-{place}"));
        worse(&data, &served_folder, path, change);
        let bad = Serving::start(&served_folder, &[]);
        let refused = generation_of(bad.address).generation;
        primary.proxy.lead_to(bad.address);
        primary.proxy.tamper(|_| Tamper::Pass);
        let told = wait_for(&replica, path, |told| {
            told["replica"]["refused_generation"] == refused.as_str()
                && told["replica"]["failures"].as_u64() > Some(1)
        });
        let error = told["replica"]["last_error"].as_str().unwrap();
        let words = format!("{path} of the primary's generation cannot be used: ");
        assert!(error.starts_with(&words) && error.contains(why), "{path}: {told}");
        assert_eq!(told["status"], "refused", "{path}: {told}");
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(&refused) && message.contains(error), "{path}: {told}");
        assert!(!told.to_string().contains(folder.to_str().unwrap()), "{path}: {told}");
        // What it served it serves, and nothing of the other is left.
        assert_eq!(served(replica.address), Ok((5, Some(first.generation.clone()))), "{path}");
        assert_eq!(told["generation"], first.generation.as_str());
        assert!(placed(&copy) == before, "{path}: a file was put in place");
        assert_eq!(parts(&copy), [""; 0], "{path}");
        // It is asked about, and not fetched again.
        drop(primary.proxy.take_seen());
        let failures = told["replica"]["failures"].as_u64();
        wait_for(&replica, "another look", |told| told["replica"]["failures"].as_u64() > failures);
        let seen = primary.proxy.take_seen();
        assert!(seen.iter().all(|one| one.path == "/jp/generation.json"), "{path}: {seen:?}");
        primary.proxy.tamper(|_| Tamper::Refuse);
    }
    // After a restart it has what it had; then the primary has one that is good.
    drop(replica);
    let replica = primary.replica("one", &["--follow-issues"]);
    wait_for_error(&replica, "the primary:");
    assert_eq!(served(replica.address), Ok((5, Some(first.generation.clone()))));
    primary.proxy.lead_to(primary.serving.address);
    primary.proxy.tamper(|_| Tamper::Pass);
    wait_for_generation(&replica, &next);
    let told = wait_for(&replica, "health", |told| told["status"] == "ok");
    assert!(told["replica"]["refused_generation"].is_null(), "{told}");
}

#[test]
fn a_file_with_another_digest_is_never_in_place() {
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    let replica = primary.replica("one", &[]);
    wait_for_generation(&replica, &first);
    let copy = primary.folder.path().join("one");
    let before = placed(&copy);
    primary.proxy.tamper(|path| match path {
        path if path.ends_with(".grid") => Tamper::Flip(5_000),
        _ => Tamper::Pass,
    });
    let next = primary.publish(6);
    let told = wait_for_error(&replica, "its digest differs");
    assert_eq!(told["generation"], first.generation.as_str(), "{told}");
    assert!(placed(&copy) == before);
    assert_eq!(served(replica.address), Ok((5, Some(first.generation.clone()))));
    let grid = next.files.iter().find(|file| file.path.ends_with(".grid")).unwrap();
    let kept = parts(&copy);
    assert!(!kept.iter().any(|name| name.starts_with(&grid.xxh128)), "{kept:?}");
    primary.proxy.tamper(|_| Tamper::Pass);
    wait_for_generation(&replica, &next);
    assert_eq!(parts(&copy), [""; 0]);
}

/// What the next generation has in common with the one before is read again before it belongs to it.
#[test]
fn a_file_in_place_that_was_lost_is_fetched_before_the_next_generation_has_it() {
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    let replica = primary.replica("one", &[]);
    wait_for_generation(&replica, &first);
    let next = primary.publish(6);
    wait_for_generation(&replica, &next);
    let (data, copy) = (primary.folder.path().join("data"), primary.folder.path().join("one"));
    // The same prices with the lists of another day before: only one file is another.
    primary.proxy.tamper(|_| Tamper::Refuse);
    wait_for_error(&replica, "the primary:");
    let mother = copy.join("jp/stocks_daily/mother.db");
    let modified = fs::metadata(&mother).unwrap().modified().unwrap();
    let mut bytes = fs::read(&mother).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&mother, bytes).unwrap();
    fs::File::options().write(true).open(&mother).unwrap().set_modified(modified).unwrap();
    let served_folder = primary.folder.path().join("without");
    worse(&data, &served_folder, "jp/stocks_daily/1305.db", |bytes| bytes);
    fs::remove_file(DataDir::new(&served_folder).listed_info()).unwrap();
    fs::remove_file(DataDir::new(&served_folder).generation_file()).unwrap();
    let without = publish_generation(&DataDir::new(&served_folder), Issues::Of(&[]), &[]).unwrap();
    let other = Serving::start(&served_folder, &[]);
    primary.proxy.lead_to(other.address);
    drop(primary.proxy.take_seen());
    primary.proxy.tamper(|_| Tamper::Pass);
    wait_for(&replica, "the generation", |told| {
        told["generation"] == without.generation.as_str()
            && told["replica"]["damaged_files"] == 0
            && told["replica"]["failures"] == 0
    });
    let own = Generation::load(&DataDir::new(&copy)).unwrap().unwrap();
    assert_eq!(own.generation, without.generation);
    own.check_files(&DataDir::new(&copy)).unwrap();
    let fetched: Vec<String> = primary.proxy.take_seen().into_iter().map(|one| one.path).collect();
    assert!(fetched.iter().any(|path| path == "/jp/stocks_daily/mother.db"), "{fetched:?}");
    let head = http::request(replica.address, "HEAD /jp/stocks_daily/mother.db", &[], &[]);
    assert_eq!(head.header("kumiki-generation"), Some(&*without.generation));
}

/// A primary may be made again from an older folder: its data are taken, and that they end earlier is told.
#[test]
fn a_primary_whose_data_end_earlier_is_followed_and_told() {
    let primary = Primary::start(5);
    let older = primary.folder.path().join("older");
    let data = DataDir::new(primary.folder.path().join("data"));
    let first = Generation::load(&data).unwrap().unwrap();
    worse(data.path(), &older, "jp/stocks_daily/1305.db", |bytes| bytes);
    let replica = primary.replica("one", &[]);
    wait_for_generation(&replica, &first);
    let next = primary.publish(6);
    wait_for_generation(&replica, &next);
    let back = |generation: &Generation, expected: Value| {
        wait_for(&replica, "the generation", |told| {
            told["generation"] == generation.generation.as_str()
                && told["replica"]["went_back_from"] == expected
        });
    };
    back(&next, Value::Null);
    let other = Serving::start(&older, &[]);
    primary.proxy.lead_to(other.address);
    back(&generation_of(other.address), next.last_date.as_str().into());
    primary.proxy.lead_to(primary.serving.address);
    back(&next, Value::Null);
}
