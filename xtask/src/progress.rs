//! How far a first build is: a line now and then while it goes on, with an estimate of what is to come.

use std::collections::BTreeSet;
use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::heavy::{self, DATABASE_PACKAGE, Measure, Part};
use crate::process;
use crate::project::Project;
use crate::steps::{Stopwatch, shown};

/// How often one looks.
const LOOK: Duration = Duration::from_secs(5);
/// Pause between two lines on a terminal.
const ON_A_TERMINAL: Duration = Duration::from_secs(60);
/// Longest pause between two lines elsewhere; there is one for each tenth of the way besides.
const ELSEWHERE: Duration = Duration::from_secs(300);

/// Tells how far a build is until it is dropped.
pub(crate) struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Says what is compiled for the first time, and starts to look. `tree` asks cargo for the crates.
    pub(crate) fn start(project: &Project, parts: Vec<Part>, tree: &[&str]) -> Self {
        if parts.is_empty() {
            return Self(None);
        }
        for part in &parts {
            eprintln!("first build: compiles {}, {}; once", part.what, part.duration());
        }
        let mut command = project.cargo();
        command.args(["tree", "--prefix", "none", "--format", "{lib}"]).args(tree);
        let look = Look { release: project.release(), parts, crates: BTreeSet::new() };
        let (stop, stopped) = channel();
        Self(Some((stop, std::thread::spawn(move || watch(look, &mut command, &stopped)))))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // A panic of the thread was printed when it happened; the build needs it for nothing.
            let _ = thread.join();
        }
    }
}

fn watch(mut look: Look, tree: &mut Command, stopped: &Receiver<()>) {
    let began = Stopwatch::start();
    let mut pace = Pace { is_terminal: stderr().is_terminal(), last: Duration::ZERO, tenth: 0 };
    // Cargo may have to fetch its index first; the build waits for that as well.
    look.crates = crates(&process::ask(tree).out);
    while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let seen = look.look();
        let elapsed = began.elapsed();
        if seen.is_done {
            tell(pace.is_terminal, &format!("first build: compiled after {}", shown(elapsed)));
            return;
        }
        if pace.is_due(seen.share, elapsed) {
            tell(pace.is_terminal, &seen.line(elapsed));
        }
    }
}

/// On a terminal cargo's own line is written over; it comes again with its next change.
fn tell(is_terminal: bool, line: &str) {
    let over = if is_terminal { "\r\x1b[K" } else { "" };
    eprintln!("{over}{line}");
}

/// The names of libraries that `cargo tree` gives.
fn crates(told: &str) -> BTreeSet<String> {
    let names = told.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| !name.starts_with('(')).map(str::to_owned).collect()
}

/// Where to look.
struct Look {
    release: PathBuf,
    parts: Vec<Part>,
    crates: BTreeSet<String>,
}

/// How far a build is.
#[derive(Debug, PartialEq)]
struct Seen {
    /// From 0 to 1, by the minutes of the parts.
    share: f64,
    /// Minutes of all parts on two cores.
    planned: u32,
    /// In words.
    parts: Vec<String>,
    is_done: bool,
}

impl Look {
    fn look(&self) -> Seen {
        let (mut minutes, mut planned, mut words, mut is_done) = (0.0, 0, Vec::new(), true);
        let deps = self.release.join("deps");
        for part in &self.parts {
            let (done, of, what) = match part.measure {
                Measure::Crates => (compiled(&deps, &self.crates), self.crates.len(), "crates"),
                Measure::Objects(of) => (objects(&self.release), of, "files of DuckDB"),
            };
            let is_compiled = heavy::is_compiled(part, &deps);
            is_done &= is_compiled;
            // What is counted is an estimate; only the whole part is the end.
            let share = match part.measure {
                Measure::Objects(_) if is_compiled => 1.0,
                _ => (done as f64 / of.max(1) as f64).min(0.99),
            };
            minutes += f64::from(part.minutes) * share;
            planned += part.minutes;
            words.push(format!("{done} of {} {what}", of.max(done)));
        }
        Seen { share: minutes / f64::from(planned.max(1)), planned, parts: words, is_done }
    }
}

impl Seen {
    fn line(&self, elapsed: Duration) -> String {
        let planned = Duration::from_secs(u64::from(self.planned) * 60);
        format!(
            "first build: {:.0} % after {} ({}); about {} to go",
            self.share * 100.0,
            shown(elapsed),
            self.parts.join(", "),
            to_go(self.share, elapsed, planned)
        )
    }
}

/// What is to come: at first what was planned counts, later what was seen.
fn to_go(share: f64, elapsed: Duration, planned: Duration) -> String {
    let left = 1.0 - share.clamp(0.0, 1.0);
    let seconds = left * (left * planned.as_secs_f64() + elapsed.as_secs_f64());
    match (seconds / 60.0).round() as u64 {
        0 | 1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}

/// How many of these libraries are there.
fn compiled(deps: &Path, crates: &BTreeSet<String>) -> usize {
    let entries = deps.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| library(&entry.file_name().to_string_lossy()));
    names.filter(|name| crates.contains(name)).collect::<BTreeSet<_>>().len()
}

/// The library that a file is of: `lib<name>-<hash>.rlib`, or a plugin of the compiler.
fn library(file: &str) -> Option<String> {
    let (stem, ending) = file.rsplit_once('.')?;
    let (name, _) = stem.rsplit_once('-')?;
    let name = if ending == "dll" { name } else { name.strip_prefix("lib")? };
    ["rlib", "so", "dylib", "dll"].contains(&ending).then(|| name.to_owned())
}

/// How many object files of DuckDB there are, in the folder that has most of them.
fn objects(release: &Path) -> usize {
    let folders = fs::read_dir(release.join("build")).into_iter().flatten().flatten();
    let ours = |name: &str| name.starts_with(DATABASE_PACKAGE);
    let folders = folders.filter(|entry| ours(&entry.file_name().to_string_lossy()));
    let count = |folder: PathBuf| {
        let files = fs::read_dir(folder.join("out")).into_iter().flatten().flatten();
        let is_object =
            |path: &Path| path.extension().is_some_and(|end| end == "o" || end == "obj");
        files.filter(|file| is_object(&file.path())).count()
    };
    folders.map(|entry| count(entry.path())).max().unwrap_or(0)
}

/// When there is a line.
struct Pace {
    is_terminal: bool,
    last: Duration,
    tenth: u32,
}

impl Pace {
    fn is_due(&mut self, share: f64, elapsed: Duration) -> bool {
        let tenth = (share * 10.0) as u32;
        let since = elapsed.saturating_sub(self.last);
        let is_due = match self.is_terminal {
            true => since >= ON_A_TERMINAL,
            false => tenth > self.tenth || since >= ELSEWHERE,
        };
        if is_due {
            (self.last, self.tenth) = (elapsed, tenth);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(count * 60)
    }

    #[test]
    fn the_estimate_goes_from_what_is_planned_to_what_was_seen() {
        assert_eq!(to_go(0.0, minutes(0), minutes(40)), "40 minutes");
        // On the plan it is what is left of it.
        assert_eq!(to_go(0.5, minutes(20), minutes(40)), "20 minutes");
        // A machine that takes twice as long is believed more and more.
        assert_eq!(to_go(0.25, minutes(20), minutes(40)), "38 minutes");
        assert_eq!(to_go(0.75, minutes(60), minutes(40)), "18 minutes");
        assert_eq!(to_go(0.99, minutes(40), minutes(40)), "a minute");
        assert_eq!(to_go(1.0, minutes(40), minutes(40)), "a minute");
    }

    #[test]
    fn lines_come_several_times_and_not_all_the_time() {
        let count = |is_terminal: bool| {
            let mut pace = Pace { is_terminal, last: Duration::ZERO, tenth: 0 };
            let looks = (1..=480_u64).map(|look| LOOK * u32::try_from(look).unwrap_or(0));
            let share = |elapsed: Duration| elapsed.as_secs_f64() / minutes(40).as_secs_f64();
            looks.filter(|elapsed| pace.is_due(share(*elapsed) * 0.999, *elapsed)).count()
        };
        assert_eq!((count(true), count(false)), (40, 9));
        let mut stuck = Pace { is_terminal: false, last: Duration::ZERO, tenth: 0 };
        assert!(!stuck.is_due(0.05, minutes(4)));
        assert!(stuck.is_due(0.05, minutes(5)), "a log that stands still says so");
    }

    #[test]
    fn crates_and_files_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let (deps, out) =
            (folder.path().join("deps"), folder.path().join("build/libduckdb-sys-1/out"));
        for folder in [&deps, &out, &folder.path().join("build/other-1/out")] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let mut part = heavy::DATABASE;
        part.measure = Measure::Objects(4);
        let crates = crates("serde features\nwasmtime\n\nserde (*)\ncli\n(*)\n");
        assert_eq!(crates.len(), 3);
        let look = Look { release: folder.path().to_path_buf(), parts: vec![part], crates };
        assert_eq!((look.look().share, look.look().is_done), (0.0, false));
        for name in ["a.o", "b.o", "libx.a"] {
            fs::write(out.join(name), "").expect("a file");
        }
        fs::write(folder.path().join("build/other-1/out/c.o"), "").expect("a file");
        let seen = look.look();
        assert_eq!((seen.share, seen.parts), (0.5, vec!["2 of 4 files of DuckDB".to_owned()]));
        for name in ["libserde-0a.rlib", "libserde-0b.rlib", "libserde-0a.rmeta", "libother-1.rlib"]
        {
            fs::write(deps.join(name), "").expect("a file");
        }
        assert_eq!(compiled(&deps, &look.crates), 1);
        fs::write(deps.join("liblibduckdb_sys-1.rlib"), "").expect("a file");
        assert_eq!((look.look().share, look.look().is_done), (1.0, true));
        let line = Seen { share: 0.5, planned: 40, parts: vec!["x".to_owned()], is_done: false };
        let line = line.line(minutes(20));
        assert_eq!(line, "first build: 50 % after 20 min 00 s (x); about 20 minutes to go");
    }
}
