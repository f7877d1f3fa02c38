//! Replicas: copies of a server's published generation that serve whole generations only, whatever
//! becomes of the server and the network in between.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::clock::sleep;
use pricestore::DataDir;
use pricestore::generation::{Generation, modified_us};
use serde_json::Value;
use tempfile::TempDir;
use tests::http;
use tests::proxy::{Proxy, Tamper};
use tests::serving::Serving;

use crate::daily_market::{GrowingVendor, generation_of, served, state_at};
use crate::update_fixture::{command, texts};

/// Looks until something must have happened; none waits for all of them.
const LOOKS_MAX: u32 = 6_000;
const PAUSE: Duration = Duration::from_millis(10);

const MOTHER: &str = "/jp/stocks_daily/mother.db";

/// A primary whose data grow, and a proxy before it.
pub(crate) struct Primary {
    pub(crate) folder: TempDir,
    vendor: GrowingVendor,
    pub(crate) serving: Serving,
    pub(crate) proxy: Proxy,
}

impl Primary {
    pub(crate) fn start(state: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let vendor = GrowingVendor::start();
        vendor.set(state);
        vendor.update(&folder.path().join("data"), state);
        let serving = Serving::start(&folder.path().join("data"), &[]);
        let proxy = Proxy::start(serving.address);
        Self { folder, vendor, serving, proxy }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Publishes the next state, and tells its generation.
    pub(crate) fn publish(&self, state: usize) -> Generation {
        self.vendor.set(state);
        self.vendor.update(&self.data(), 2);
        Generation::load(&DataDir::new(self.data())).unwrap().unwrap()
    }

    /// A replica that asks the proxy, in a folder with this name.
    pub(crate) fn replica(&self, name: &str, more: &[&str]) -> Serving {
        follower(self.proxy.address, &self.folder.path().join(name), more)
    }

    /// Kills the service and starts another one.
    pub(crate) fn kill_and_start(&mut self) {
        self.serving.child.kill().unwrap();
        self.serving.child.wait().unwrap();
        self.serving = Serving::start(&self.data(), &[]);
        self.proxy.lead_to(self.serving.address);
    }
}

fn follower(primary: std::net::SocketAddr, data: &Path, more: &[&str]) -> Serving {
    let url = format!("http://{primary}");
    let mut arguments = vec!["--follow", &url, "--follow-interval", "20ms", "--cache-memory", "0"];
    arguments.extend(more);
    Serving::start(data, &arguments)
}

fn health(serving: &Serving) -> Value {
    let reply = http::request(serving.address, "GET /health", &[], &[]);
    serde_json::from_slice(&reply.body).unwrap()
}

/// Waits until this holds of what `/health` says.
pub(crate) fn wait_for(serving: &Serving, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..LOOKS_MAX {
        let told = health(serving);
        if holds(&told) {
            return told;
        }
        sleep(PAUSE);
    }
    panic!("{what} never came: {}", health(serving));
}

/// Waits until rankings and files are of this generation.
pub(crate) fn wait_for_generation(serving: &Serving, generation: &Generation) {
    let name = Value::from(generation.generation.as_str());
    wait_for(serving, &format!("generation {name}"), |told| {
        told["generation"] == name && told["replica"]["behind_seconds"] == 0
    });
    let found = served(serving.address).unwrap();
    assert_eq!(found, (state_at(&generation.last_date), Some(generation.generation.clone())));
    for file in &generation.files {
        let head = http::request(serving.address, &format!("HEAD /{}", file.path), &[], &[]);
        assert_eq!(
            head.header("kumiki-generation"),
            Some(&*generation.generation),
            "{}",
            file.path
        );
    }
}

pub(crate) fn wait_for_error(serving: &Serving, part: &str) -> Value {
    wait_for(serving, part, |told| {
        told["replica"]["last_error"].as_str().is_some_and(|error| error.contains(part))
    })
}

/// All files below a folder, with their sizes and times.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, (u64, u64)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.insert(entry.path(), (metadata.len(), modified_us(&metadata)));
        }
    }
    found
}

/// The answer to everything that a ranking can be asked, as the primary gives it.
fn answer(serving: &Serving) -> Value {
    serving.ask(
        "{ stockRankingRange(fromDate: \"2025-01-01\", toDate: \"2027-12-31\", sortBy: \
         \"Close / Close[-2]\", limit: 5) { date code close sortValue rank } dataset { generation \
         snapshot days codes firstDate lastDate incompleteDates missingDates sources { name rows } } }",
    )
}

#[test]
fn replicas_answer_from_one_generation_while_the_primary_is_killed_and_publishes() {
    let mut primary = Primary::start(5);
    primary.proxy.tamper(|_| Tamper::Refuse);
    let replicas = [primary.replica("one", &[]), primary.replica("two", &["--follow-issues"])];
    let told = wait_for_error(&replicas[0], "the primary:");
    assert_eq!(told["status"], "no data");
    assert!(told["message"].as_str().unwrap().contains("copied"), "{told}");
    let refused = http::graphql(
        replicas[0].address,
        r#"{"query":"{ stockRankingRange(fromDate: \"2025-01-01\", toDate: \"2025-01-31\") { code } }"}"#,
    );
    assert_eq!(refused.status, 503);

    primary.proxy.tamper(|_| Tamper::Pass);
    let first = generation_of(primary.serving.address);
    replicas.iter().for_each(|replica| wait_for_generation(replica, &first));
    let stop = Arc::new(AtomicBool::new(false));
    let readers = replicas.each_ref().map(|replica| {
        let (stop, address) = (Arc::clone(&stop), replica.address);
        std::thread::spawn(move || -> Result<BTreeMap<String, usize>, String> {
            let mut seen = BTreeMap::new();
            while !stop.load(Ordering::Acquire) {
                let (state, name) = served(address)?;
                let name = name.ok_or("an answer without a generation")?;
                match seen.insert(name.clone(), state) {
                    Some(other) if other != state => {
                        return Err(format!("{name}: {other}, {state}"));
                    }
                    _ => {}
                }
                sleep(PAUSE);
            }
            Ok(seen)
        })
    });
    let mut published = BTreeMap::from([(first.generation, 5)]);
    for state in 6..=10 {
        // Every file comes in pieces, and wrong once.
        let mut asked: BTreeMap<String, usize> = BTreeMap::new();
        primary.proxy.tamper(move |path| {
            let times = asked.entry(path.to_owned()).or_default();
            *times += 1;
            match *times {
                _ if path.contains("generation") => Tamper::Pass,
                1 | 2 => Tamper::Cut(100_000),
                3 => Tamper::Flip(7),
                _ => Tamper::Pass,
            }
        });
        if state % 2 == 0 {
            primary.kill_and_start();
        }
        let generation = primary.publish(state);
        replicas.iter().for_each(|replica| wait_for_generation(replica, &generation));
        wait_for(&primary.serving, "the primary's own snapshot", |told| {
            told["generation"] == generation.generation.as_str()
        });
        let expected = answer(&primary.serving);
        replicas.iter().for_each(|replica| assert_eq!(answer(replica), expected));
        published.insert(generation.generation, state);
    }
    stop.store(true, Ordering::Release);
    for reader in readers {
        let seen = reader.join().unwrap().unwrap();
        assert!(seen.iter().all(|(name, state)| published.get(name) == Some(state)), "{seen:?}");
    }
    // What is away is away; what is here is served.
    primary.proxy.tamper(|_| Tamper::Refuse);
    let told = wait_for_error(&replicas[1], "the primary:");
    assert_eq!(
        (&told["status"], told["replica"]["failures"].as_u64() > Some(0)),
        (&"ok".into(), true)
    );
    assert_eq!(served(replicas[1].address).unwrap().0, 10);
    let numbers = replicas[1].metric("kumiki_ranking_replica_generations").unwrap();
    assert!(numbers.parse::<u64>().unwrap() >= 2, "{numbers}");
    holds_what_it_should(&primary, &replicas);
}

/// One replica has the databases of single issues, and both have two snapshots at most.
fn holds_what_it_should(primary: &Primary, replicas: &[Serving; 2]) {
    let status = |replica: &Serving, path: &str| {
        http::request(replica.address, &format!("HEAD {path}"), &[], &[]).status
    };
    let issue = "/jp/stocks_daily/1300.db";
    assert_eq!(replicas.each_ref().map(|replica| status(replica, issue)), [404, 200]);
    for name in ["one", "two"] {
        let folder = primary.folder.path().join(name);
        let generation = Generation::load(&DataDir::new(&folder)).unwrap().unwrap();
        generation.check_files(&DataDir::new(&folder)).unwrap();
        let files = files_below(&folder);
        let names: Vec<String> =
            files.keys().map(|path| path.file_name().unwrap().to_string_lossy().into()).collect();
        assert!(names.iter().filter(|name| name.starts_with("rank-")).count() <= 2, "{names:?}");
        assert!(!names.iter().any(|name| name.ends_with(".part")), "{names:?}");
        let issues = names.iter().filter(|name| name.starts_with("13")).count();
        assert_eq!(issues, if name == "one" { 0 } else { 12 }, "{names:?}");
    }
}

#[test]
fn a_copy_goes_on_where_it_was_cut_or_killed() {
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    // The snapshot never ends.
    primary.proxy.tamper(|path| match path {
        path if path.contains("rank-") => Tamper::Slow(64),
        _ => Tamper::Pass,
    });
    let mut replica = primary.replica("one", &[]);
    let grid = first.file("rank/rank-1.grid").unwrap();
    let part = primary.folder.path().join("one").join("replica").join(&grid.xxh128);
    wait_for(&replica, "a part of the snapshot", |_| {
        let came = fs::metadata(part.with_extension("part")).map_or(0, |part| part.len());
        came > 0 && came < grid.bytes && part.with_extension("tag").is_file()
    });
    assert_eq!(health(&replica)["status"], "no data");
    replica.child.kill().unwrap();
    replica.child.wait().unwrap();
    drop(primary.proxy.take_seen());
    primary.proxy.tamper(|path| match path {
        path if path.ends_with(".grid") => Tamper::Cut(1_000),
        _ => Tamper::Pass,
    });
    let replica = primary.replica("one", &[]);
    wait_for_generation(&replica, &first);
    let seen = primary.proxy.take_seen();
    let resumed = seen.iter().filter(|one| one.path.ends_with(".grid") && one.status == 206);
    let mut resumed = resumed.filter(|one| one.if_range.is_some());
    assert!(resumed.any(|one| one.range.as_deref() != Some("bytes=0-")), "{seen:#?}");
    assert!(!seen.iter().any(|one| one.path == MOTHER), "it was there: {seen:#?}");
    // Nothing new costs one small question.
    drop(primary.proxy.take_seen());
    let asked = || primary.proxy.take_seen();
    let mut all = asked();
    while all.len() < 3 {
        sleep(PAUSE);
        all.extend(asked());
    }
    let expected = ("/jp/generation.json".to_owned(), 304);
    assert!(all.iter().all(|one| (one.path.clone(), one.status) == expected), "{all:?}");
}

/// Lets a replica find the generation that it has, so that it is not waiting when it is fed the next.
fn recover(primary: &Primary, replica: &Serving, generation: &[u8]) {
    let generation = generation.to_vec();
    primary.proxy.tamper(move |_| Tamper::Instead(200, generation.clone()));
    wait_for(replica, "no failure", |told| told["replica"]["failures"] == 0);
}

#[test]
fn what_a_primary_gets_wrong_is_not_taken() {
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    let replica = primary.replica("one", &[]);
    wait_for_generation(&replica, &first);
    let folder = primary.folder.path();
    primary.proxy.tamper(|_| Tamper::Refuse);
    let next = primary.publish(6);
    let text = |generation: &Generation| serde_json::to_string(generation).unwrap().into_bytes();
    let named = |path: &str| {
        let mut changed = next.clone();
        changed.files[0].path = path.to_owned();
        changed.files.sort_by(|one, other| one.path.cmp(&other.path));
        text(&changed)
    };
    let mut smaller = next.clone();
    smaller.files[1].bytes -= 1;
    // While the next one is not to be had, the first is served.
    let manifests = [
        (Tamper::Instead(200, named("../outside.db")), "no file of a generation"),
        (Tamper::Instead(200, named("/tmp/outside.db")), "no file of a generation"),
        (Tamper::Instead(200, named("work/mother.db")), "no file of a generation"),
        (Tamper::Instead(200, named("jp/stocks_daily/..\\x.db")), "no file of a generation"),
        (Tamper::Instead(200, text(&smaller)), "not that of its content"),
        (Tamper::Instead(200, b"{\"version\":1}".to_vec()), "cannot be used"),
        (Tamper::Instead(302, Vec::new()), "another address"),
        (Tamper::Instead(500, b"oh".to_vec()), "the server failed"),
        (Tamper::Cut(10), "body"),
        (Tamper::Endless, "more than"),
    ];
    let usual = text(&first);
    for (tamper, error) in manifests {
        let shown = format!("{tamper:?}");
        recover(&primary, &replica, &usual);
        primary.proxy.tamper(move |_| tamper.clone());
        let told = wait_for_error(&replica, error);
        assert_eq!(told["generation"], first.generation.as_str(), "{shown}");
    }
    let bodies = [
        (Tamper::Flip(1_000), "its digest differs"),
        (Tamper::Endless, "sends more of it"),
        (Tamper::Instead(200, b"short".to_vec()), "broke 64 times"),
        (Tamper::Instead(404, Vec::new()), "the copy starts again"),
    ];
    for (tamper, error) in bodies {
        recover(&primary, &replica, &usual);
        primary.proxy.tamper(move |path| match path {
            "/jp/generation.json" => Tamper::Pass,
            _ => tamper.clone(),
        });
        let told = wait_for_error(&replica, error);
        assert_eq!(told["generation"], first.generation.as_str());
        assert!(told["replica"]["behind_seconds"].as_u64() > Some(0), "{told}");
    }
    assert_eq!(served(replica.address), Ok((5, Some(first.generation.clone()))));
    let outside: Vec<_> =
        fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(outside.len(), 2, "{outside:?}");
    primary.proxy.tamper(|_| Tamper::Pass);
    wait_for_generation(&replica, &next);
}

#[test]
fn a_replica_needs_a_folder_of_its_own_a_server_of_others_and_room() {
    let primary = Primary::start(5);
    let folder = primary.folder.path();
    let url = format!("http://{}", primary.proxy.address);
    let refused = |data: &Path, arguments: &[&str]| {
        let mut all = vec!["rank", "serve", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let output = command(data, &all).output().unwrap();
        assert_ne!(output.status.code(), Some(0));
        texts(&output).1
    };
    let before = files_below(&primary.data());
    let errors = refused(&primary.data(), &["--follow", &url]);
    assert!(errors.contains("that of an update job"), "{errors}");
    assert_eq!(files_below(&primary.data()), before);
    let others = folder.join("others");
    fs::create_dir_all(others.join("jp")).unwrap();
    let errors = refused(&others, &["--follow", &url]);
    assert!(errors.contains("no replica has copied"), "{errors}");
    let errors = refused(&folder.join("new"), &["--follow", "http://192.0.2.1:80"]);
    assert!(errors.contains("https://"), "{errors}");

    // What would be too much is not begun.
    let small = primary.replica("small", &["--follow-disk", "1"]);
    wait_for_error(&small, "--follow-disk allows 1048576");
    assert!(!folder.join("small").join("rank").join("CURRENT").exists());

    // An update in a copy, and another replica in it.
    let one = primary.replica("one", &[]);
    let first = generation_of(primary.serving.address);
    wait_for_generation(&one, &first);
    let output = primary.vendor.command(&folder.join("one"), 2).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = texts(&output).1;
    assert!(errors.contains("is a copy that `kumiki rank serve --follow` keeps"), "{errors}");
    let errors = refused(&folder.join("one"), &["--follow", &url]);
    assert!(errors.contains("another replica keeps its copy"), "{errors}");
    // Nothing is made or published in a copy either, not even in one that is still empty.
    for (copy, arguments) in
        [("one", &["rank", "publish"][..]), ("small", &["data", "sample", "--daily"])]
    {
        let before = files_below(&folder.join(copy).join("replica"));
        let output = command(&folder.join(copy), arguments).output().unwrap();
        let errors = texts(&output).1;
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("is a copy that `kumiki rank serve --follow` keeps"), "{errors}");
        assert_eq!(files_below(&folder.join(copy).join("replica")), before);
        assert!(!folder.join("small").join("jp").exists());
    }

    // A replica of a replica; then the first of them follows the second, by another name.
    let two = follower(one.address, &folder.join("two"), &[]);
    wait_for_generation(&two, &first);
    primary.proxy.lead_to(two.address);
    wait_for_error(&one, "leads back to this server");
    assert_eq!(served(one.address).unwrap().0, 5);

    // Files of somebody else stay as they are.
    let mine = folder.join("two").join("jp").join("stocks_daily").join("1300.db");
    fs::write(&mine, "mine").unwrap();
    primary.proxy.lead_to(primary.serving.address);
    let next = primary.publish(6);
    wait_for_generation(&one, &next);
    wait_for_generation(&two, &next);
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
}

#[test]
fn the_token_of_the_server_that_is_followed_is_shown_to_it_and_to_nobody_else() {
    const TOKEN: &str = "follow-token-8844-abcdef";
    let primary = Primary::start(5);
    let token = primary.folder.path().join("token");
    fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let token = token.to_str().unwrap();
    let guarded = Serving::start(&primary.data(), &["--token-file", token]);
    primary.proxy.lead_to(guarded.address);
    let stranger = primary.replica("stranger", &[]);
    wait_for_error(&stranger, "HTTP 401");
    let friend = primary.replica("friend", &["--follow-token-file", token]);
    wait_for_generation(&friend, &generation_of(primary.serving.address));
    primary.proxy.tamper(|_| Tamper::Instead(500, format!("not {TOKEN}").into_bytes()));
    let told = wait_for_error(&friend, "not ***");
    assert!(!told.to_string().contains(TOKEN), "{told}");
}
