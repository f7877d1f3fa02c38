//! `kumiki data update` itself, killed at seeded moments while others read over HTTP and with DuckDB: readers
//! see whole states, know which generation they have, and the next run ends as if nothing had happened.
//! KUMIKI_SOAK_KILLS kills (`cargo xtask soak`), else a few; KUMIKI_SOAK_SEED for a seed of its own.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::clock::{Stopwatch, sleep};
use pricestore::DataDir;
use pricestore::generation::Generation;
use tests::http;
use tests::serving::Serving;

use crate::daily_market::{
    GrowingVendor, ISSUES, KnownGenerations, code, generation_of, is_of, issue_beside, opened,
    served, state_at, table,
};

/// Kills in `cargo xtask test`.
const KILLS: u64 = 10;
/// Runs for each kill; some end before it.
const ATTEMPTS_MAX: u64 = 5;
/// Days before the first kill.
const DAYS_FIRST: usize = 5;
/// New days of each run that is not killed.
const UNKILLED_DAYS: usize = 40;
/// Pause between reads, so that a small machine has time for the job.
const PAUSE: Duration = Duration::from_millis(10);
/// Looks at the service until it must have taken up the last snapshot.
const LOOKS_MAX: u32 = 6_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// How long it took, from 1.
fn milliseconds(watch: &Stopwatch) -> u64 {
    u64::try_from(watch.elapsed().as_millis()).unwrap().max(1)
}

/// The exit code of a process that was killed, where it has one.
fn killed_code() -> Option<i32> {
    cfg!(windows).then_some(1)
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

type Read = Box<dyn FnMut() -> Result<usize, String> + Send>;

/// Reads in a loop until it is told to stop; states never go back.
fn reading(stop: &Arc<AtomicBool>, mut read: Read) -> JoinHandle<Result<u64, String>> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let (mut reads, mut newest) = (0, 0);
        while !stop.load(Ordering::Acquire) {
            let state = read().map_err(|error| format!("read {reads}: {error}"))?;
            if state < newest {
                return Err(format!("read {reads}: state {state} after {newest}"));
            }
            (reads, newest) = (reads + 1, state);
            sleep(PAUSE);
        }
        Ok(reads)
    })
}

/// A ranking over HTTP, and a download, each held against the generation that it names.
fn over_http(serving: &Serving, known: &Arc<Mutex<KnownGenerations>>, aside: &Path) -> Read {
    const MOTHER: &str = "jp/stocks_daily/mother.db";
    let (address, known, aside) = (serving.address, Arc::clone(known), aside.to_owned());
    Box::new(move || {
        let (state, name) = served(address)?;
        let generation = generation_of(address);
        let mut known = known.lock().unwrap();
        known.add(&generation.generation, state_at(&generation.last_date))?;
        if let Some(name) = name {
            known.add(&name, state)?;
        }
        drop(known);
        let reply = http::request(address, &format!("GET /{MOTHER}"), &[], &[]);
        is_of(&generation, MOTHER, &reply, &aside);
        Ok(state)
    })
}

/// What is on the disk while no job runs: whole files, of the last state or the one before; and what the
/// service says belongs to the generation does.
fn look(data: &DataDir, serving: &Serving, folder: &Path, last: usize) {
    let is_good = |state: usize| (last - 1..=last).contains(&state);
    let generation = Generation::load(data).unwrap().unwrap();
    assert!(is_good(state_at(&generation.last_date)), "{}", generation.last_date);
    let mother = opened(data, ISSUES).unwrap();
    assert!(is_good(mother), "the combined database: {mother} of {last}");
    let named = table(data, "SELECT max(name) FROM listed_issue").unwrap();
    let named: usize = named[0][0].trim_start_matches("Name ").parse().unwrap();
    assert!(is_good(named), "the listed issues: {named} of {last}");
    let issues = (0..ISSUES).map(|issue| {
        let state = opened(&issue_beside(data.path(), issue, folder), 1).unwrap();
        assert!(is_good(state), "{}: {state} of {last}", code(issue));
        format!("jp/stocks_daily/{}.db", code(issue))
    });
    let mut paths: Vec<String> = issues.collect();
    paths.push("jp/stocks_daily/mother.db".to_owned());
    let told = generation_of(serving.address);
    assert_eq!(told, generation);
    for path in paths {
        let reply = http::request(serving.address, &format!("GET /{path}"), &[], &[]);
        let tied = is_of(&generation, &path, &reply, &folder.join("downloaded"));
        assert_eq!(tied, reply.header("kumiki-generation").is_some(), "{path}");
    }
}

/// No run has taken what one that was killed has left for damage.
fn told_no_damage(data: &DataDir) {
    for entry in std::fs::read_dir(data.update_folder()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("damaged or changed"), "{}: {text}", path.display());
        assert!(!text.contains("was made whole"), "{}: {text}", path.display());
    }
}

/// After a run that ended: all of it is of this state and of one generation.
fn finished(data: &DataDir, serving: &Serving, state: usize) {
    told_no_damage(data);
    let generation = Generation::load(data).unwrap().unwrap();
    generation.check_files(data).unwrap();
    assert_eq!(state_at(&generation.last_date), state);
    assert_eq!(generation.issues.count, ISSUES as u64);
    assert_eq!(opened(data, ISSUES), Ok(state));
    let expected = (state, Some(generation.generation.clone()));
    let mut found = served(serving.address).unwrap();
    for _ in 0..LOOKS_MAX {
        if found == expected {
            break;
        }
        sleep(PAUSE);
        found = served(serving.address).unwrap();
    }
    assert_eq!(found, expected, "the service does not take up what was published");
    for path in generation.all_files().map(|file| file.path.clone()) {
        let head = http::request(serving.address, &format!("HEAD /{path}"), &[], &[]);
        assert_eq!(head.header("kumiki-generation"), Some(&*generation.generation), "{path}");
    }
    let health = http::request(serving.address, "GET /health", &[], &[]);
    assert_eq!(health.header("kumiki-generation"), Some(&*generation.generation));
    assert!(health.text().contains(&generation.generation), "{}", health.text());
}

/// All rows of all databases, and the calendar.
fn everything(data: &DataDir, folder: &Path) -> Vec<Vec<Vec<String>>> {
    let rows = |data: &DataDir| table(data, "SELECT * FROM daily ORDER BY code, date").unwrap();
    let calendar =
        "SELECT * FROM calendar WHERE date <= (SELECT max(date) FROM daily) ORDER BY date";
    let listed = "SELECT * FROM listed_issue ORDER BY ALL";
    let mut all = vec![rows(data), table(data, calendar).unwrap(), table(data, listed).unwrap()];
    all.extend((0..ISSUES).map(|issue| rows(&issue_beside(data.path(), issue, folder))));
    all
}

#[test]
fn a_killed_update_leaves_whole_states_and_the_next_one_ends_it() {
    let seed = variable("KUMIKI_SOAK_SEED").unwrap_or(5_711);
    let kills = variable("KUMIKI_SOAK_KILLS").unwrap_or(KILLS);
    let folder = tempfile::tempdir().unwrap();
    let aside = folder.path().join("aside");
    std::fs::create_dir(&aside).unwrap();
    let data = DataDir::new(folder.path().join("data"));
    let vendor = GrowingVendor::start();
    let (mut random, mut state) = (Random(seed), DAYS_FIRST);
    vendor.set(state);
    vendor.update(data.path(), DAYS_FIRST);
    // How long a run takes that has a new day.
    state += 1;
    vendor.set(state);
    let watch = Stopwatch::start();
    vendor.update(data.path(), 2);
    let mut life = milliseconds(&watch);
    let serving = Serving::start(data.path(), &["--cache-memory", "0"]);
    finished(&data, &serving, state);

    let (stop, known) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let on_disk = data.clone();
    let readers = [
        reading(&stop, over_http(&serving, &known, &folder.path().join("body"))),
        reading(&stop, Box::new(move || opened(&on_disk, ISSUES))),
    ];
    let (mut is_finished, mut killed) = (true, 0);
    for attempt in 0..kills * ATTEMPTS_MAX {
        if is_finished {
            state += 1;
            vendor.set(state);
        }
        let mut command = vendor.command(data.path(), 2);
        let mut job = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let after = random.below(life) + 1;
        println!("seed {seed}: attempt {attempt} after {after} of {life} ms, state {state}");
        sleep(Duration::from_millis(after));
        job.kill().unwrap();
        let status = job.wait().unwrap();
        is_finished = status.success();
        look(&data, &serving, &aside, state);
        if is_finished {
            // It was faster than the ones before.
            life = (after * 3 / 4).max(1);
        } else {
            assert_eq!(status.code(), killed_code(), "it ended by itself: {status}");
            killed += 1;
            // A run that goes on from a kill is killed too.
            is_finished = random.below(2) == 0 || killed == kills;
            if is_finished {
                let watch = Stopwatch::start();
                vendor.update(data.path(), 2);
                life = milliseconds(&watch);
            }
        }
        if is_finished {
            finished(&data, &serving, state);
        }
        if killed == kills {
            break;
        }
    }
    assert_eq!(killed, kills, "seed {seed}: too few runs were at work");
    stop.store(true, Ordering::Release);
    for reader in readers {
        let reads = reader.join().unwrap().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(reads > 2, "seed {seed}: only {reads} reads");
    }
    // Runs that nobody killed leave the same. Each looks back over the day that was corrected last; one of over 60
    // days would ask for a list of issues a week, and the others have asked for each day's.
    let unkilled = DataDir::new(folder.path().join("unkilled"));
    for days in (0..state).step_by(UNKILLED_DAYS) {
        let until = state.min(days + UNKILLED_DAYS);
        vendor.set(until);
        vendor.update(unkilled.path(), until.min(UNKILLED_DAYS + 2));
    }
    assert_eq!(everything(&data, &aside), everything(&unkilled, &aside), "seed {seed}");
    println!("{kills} runs were killed at work, {state} states, seed {seed}");
}
