//! Publishing while others read, and jobs that are killed: readers never fail and never see
//! anything but complete states, each one at least as new as the one before. KUMIKI_SOAK_KILLS jobs are
//! killed (`cargo xtask soak`), else a few.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::clock::sleep;
use pricestore::DataDir;
use ranking::CancelToken;
use ranking::console::{Console, ConsoleOptions};
use serde_json::{Value, json};
use tests::market::{CODES, code, state_of};
use tests::{built, http};

/// Jobs that are killed in `cargo xtask test`.
const KILLS: u64 = 6;
/// Publications in all for each two of these, at least.
const PUBLICATIONS_OF_TWO: u64 = 5;
/// A job lives at most so long before it is killed: several rounds of it, on a machine that has
/// nothing else to do.
const LIFE_MS_MAX: u64 = 900;
/// Pause after a read, so that the readers leave a small machine time for the job.
const PAUSE: Duration = Duration::from_millis(10);
/// Looks at the service until it must have taken up the last snapshot.
const LOOKS_MAX: u32 = 600;

/// A running job, and how often it has published.
struct Job {
    child: Child,
    output: JoinHandle<u64>,
}

impl Job {
    fn start(data: &Path, rounds: u64) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_update_job"));
        command.arg(data).arg(rounds.to_string()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let output = std::thread::spawn(move || {
            let lines = lines.map_while(Result::ok);
            lines.filter(|line| line.starts_with("published")).count() as u64
        });
        Self { child, output }
    }

    /// Waits for its end; it must end well.
    fn end(mut self) -> u64 {
        assert!(self.child.wait().unwrap().success());
        self.output.join().unwrap()
    }

    /// Kills it (SIGKILL), whatever it does.
    fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert!(!status.success() && status.code().is_none(), "it ended before: {status}");
        self.output.join().unwrap()
    }
}

/// `kumiki rank serve`; ends with the test.
struct Serving {
    child: Child,
    address: SocketAddr,
}

impl Serving {
    fn start(data: &Path) -> Self {
        let mut command = Command::new(built::kumiki());
        command.args(["rank", "serve", "--listen", "127.0.0.1:0", "--cache-memory", "0"]);
        command.env("DATA_DIR", data).env_remove("KUMIKI_RANK_TOKEN").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap().parse();
        let address = address.unwrap_or_else(|error| panic!("{error}: {line}"));
        Self { child, address }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The state that the service shows.
fn served(address: SocketAddr) -> Result<u64, String> {
    let query = format!(
        "{{ stockRankingRange(fromDate: \"2025-01-01\", toDate: \"2030-12-31\", \
         sortBy: \"Close\", limit: {CODES}) {{ date volume }} }}"
    );
    let reply = http::graphql(address, &json!({ "query": query }).to_string());
    let answer: Value = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
    let rows = answer["data"]["stockRankingRange"].as_array();
    let rows = rows.ok_or_else(|| format!("{} {answer}", reply.status))?.iter().map(|row| {
        let volume = row["volume"].as_f64().unwrap_or(-1.0);
        (row["date"].as_str().unwrap_or_default().to_owned(), volume as u64)
    });
    state_of(rows, CODES)
}

/// The state that is in a published database, opened anew as any program does.
fn opened(folder: &Path, codes: u64) -> Result<u64, String> {
    let data = DataDir::new(folder);
    let console = Console::open(&data, &ConsoleOptions::default());
    let console = console.map_err(|error| error.to_string())?;
    let sql = "SELECT date, volume::BIGINT FROM daily";
    let table = console.query(sql, &CancelToken::new()).map_err(|error| error.to_string())?;
    let rows = table.rows.into_iter().map(|row| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let date = cells.next().unwrap_or_default();
        (date, cells.next().and_then(|volume| volume.parse().ok()).unwrap_or(u64::MAX))
    });
    state_of(rows, codes)
}

/// A data directory whose combined database is in truth the one of an issue.
fn beside(folder: &Path, data: &Path, issue: u64) -> PathBuf {
    let name = code(issue);
    let beside = folder.join(&name);
    let daily = Path::new("jp").join("stocks_daily");
    fs::create_dir_all(beside.join(&daily)).unwrap();
    let target = data.join(&daily).join(format!("{name}.db"));
    std::os::unix::fs::symlink(target, beside.join(&daily).join("mother.db")).unwrap();
    beside
}

/// Reads one thing and tells its state.
type Source = Box<dyn FnMut() -> Result<u64, String> + Send>;

/// Reads in a loop until it is told to stop; gives the number of reads, or what was wrong.
fn reading(stop: &Arc<AtomicBool>, mut sources: Vec<Source>) -> JoinHandle<Result<u64, String>> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut reads = 0;
        let mut newest = vec![0; sources.len()];
        while !stop.load(Ordering::Acquire) {
            for (place, source) in sources.iter_mut().enumerate() {
                let state = source().map_err(|error| format!("read {reads}: {error}"))?;
                let before = std::mem::replace(&mut newest[place], state);
                if state < before {
                    return Err(format!("read {reads}: state {state} after {before}"));
                }
                reads += 1;
                sleep(PAUSE);
            }
        }
        Ok(reads)
    })
}

/// Numbers from a seed.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    *seed >> 33
}

#[test]
fn readers_only_see_complete_days() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut published = Job::start(&data, 1).end();
    let serving = Serving::start(&data);
    let address = serving.address;
    let stop = Arc::new(AtomicBool::new(false));
    let mother = data.clone();
    let issues = (0..CODES).map(|issue| {
        let beside = beside(folder.path(), &data, issue);
        Box::new(move || opened(&beside, 1)) as Source
    });
    let readers = [
        ("GraphQL", reading(&stop, vec![Box::new(move || served(address))])),
        ("combined", reading(&stop, vec![Box::new(move || opened(&mother, CODES))])),
        ("per issue", reading(&stop, issues.collect())),
    ];
    let kills = std::env::var("KUMIKI_SOAK_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let publications = kills * PUBLICATIONS_OF_TWO / 2;
    let mut seed = 7;
    for _ in 0..kills {
        let job = Job::start(&data, u64::MAX);
        sleep(Duration::from_millis(random(&mut seed) % LIFE_MS_MAX));
        published += job.kill();
    }
    let rest = publications.saturating_sub(published).max(5);
    published += Job::start(&data, rest).end();
    assert!(published >= publications, "{published} publications");

    let last = opened(&data, CODES).unwrap();
    // The service looks four times a second; the wait is long for a machine that is busy.
    let look = || {
        sleep(Duration::from_millis(100));
        served(address).unwrap() == last
    };
    assert!((0..LOOKS_MAX).any(|_| look()), "the service does not take up the last snapshot");
    for issue in 0..CODES {
        assert_eq!(opened(&folder.path().join(code(issue)), 1), Ok(last), "{}", code(issue));
    }
    stop.store(true, Ordering::Release);
    for (name, reader) in readers {
        let reads = reader.join().unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(reads > 2 * CODES, "{name}: only {reads} reads");
    }
    let left =
        ["work", "jp/stocks_daily", "rank"].map(|name| fs::read_dir(data.join(name)).unwrap());
    for entry in left.into_iter().flatten() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let is_left = name.ends_with("-new") || name.starts_with(".kumiki-");
        assert!(!is_left && !name.starts_with(".tmp"), "{name} is left");
    }
}
