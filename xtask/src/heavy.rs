//! What a first build compiles, and what that takes in minutes, memory and disk. This is the one place for
//! these figures: README, the doctor and what is printed meanwhile say them, and a test holds them to it.

use std::fs;
use std::path::Path;

use crate::progress::Progress;
use crate::project::Project;

/// A part of a first build that takes minutes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// What it is, for people.
    pub(crate) what: &'static str,
    /// The package that is heaviest, as Cargo.lock names it.
    package: &'static str,
    /// The start of the file that is there once that was compiled.
    artefact: &'static str,
    /// What it takes on two cores that do nothing else.
    pub(crate) minutes: u32,
    /// What it leaves on the disk, in GB.
    disk_gb: u64,
    /// How far it is.
    pub(crate) measure: Measure,
}

/// How one sees how far a part is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Measure {
    /// By the crates that are compiled, of those that cargo names.
    Crates,
    /// By the object files that are there, of so many. Another version may have some more or fewer.
    Objects(usize),
}

/// What replays are made of.
const REPLAY: Part = Part {
    what: "wasmtime with its compiler and what else a replay needs",
    package: "wasmtime",
    artefact: "libwasmtime-",
    minutes: 10,
    disk_gb: 3,
    measure: Measure::Crates,
};

/// What daily prices, rankings and SQL are made with.
pub(crate) const DATABASE: Part = Part {
    what: "DuckDB's C++ code",
    package: DATABASE_PACKAGE,
    artefact: "liblibduckdb_sys-",
    minutes: 60,
    disk_gb: 7,
    measure: Measure::Objects(379),
};

/// The package that compiles the C++ code.
pub(crate) const DATABASE_PACKAGE: &str = "libduckdb-sys";

/// GB of the disk that a build takes which compiles none of the heavy parts.
const DISK_GB: u64 = 1;
/// GB of memory that a build of the Rust parts wants for each of cargo's jobs.
const RUST_GB_A_JOB: u64 = 1;
/// The same while DuckDB is compiled.
const DATABASE_GB_A_JOB: u64 = 2;

impl Part {
    /// How long it takes, for people.
    pub(crate) fn duration(&self) -> String {
        match self.minutes {
            60 => "about an hour on two cores".to_owned(),
            minutes => format!("about {minutes} minutes on two cores"),
        }
    }
}

/// What a machine has to have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// GB of the disk with the target folder.
    pub(crate) disk_gb: u64,
    /// GB of memory.
    pub(crate) memory_gb: u64,
}

/// What the coming build needs that compiles these parts for the first time.
pub(crate) fn need(parts: &[Part], jobs: usize) -> Need {
    let disk_gb = DISK_GB + parts.iter().map(|part| part.disk_gb).sum::<u64>();
    let is_database = parts.iter().any(|part| part.package == DATABASE_PACKAGE);
    let each = if is_database { DATABASE_GB_A_JOB } else { RUST_GB_A_JOB };
    Need { disk_gb, memory_gb: each * jobs as u64 }
}

/// The parts that the coming build of everything compiles for the first time.
pub(crate) fn parts(project: &Project) -> Vec<Part> {
    missing(&[REPLAY, DATABASE], &lock(project), &project.release().join("deps"))
}

/// The same of what replays need.
pub(crate) fn parts_for_replay(project: &Project) -> Vec<Part> {
    missing(&[REPLAY], &lock(project), &project.release().join("deps"))
}

/// Says what the coming build of everything compiles for the first time, and then how far it is, until
/// what is given back is dropped.
pub(crate) fn announce(project: &Project) -> Progress {
    Progress::start(project, parts(project), &["--workspace", "--edges", "normal,build,dev"])
}

/// The same of what replays need.
pub(crate) fn announce_for_replay(project: &Project) -> Progress {
    let arguments = ["--package", "cli", "--no-default-features", "--edges", "normal,build"];
    Progress::start(project, parts_for_replay(project), &arguments)
}

/// Whether DuckDB was compiled before.
pub(crate) fn is_database_compiled(project: &Project) -> bool {
    is_compiled(&DATABASE, &project.release().join("deps"))
}

/// Whether the heaviest of a part was compiled before.
pub(crate) fn is_compiled(part: &Part, compiled: &Path) -> bool {
    let entries = compiled.read_dir().into_iter().flatten().flatten();
    let mut names = entries.map(|file| file.file_name().to_string_lossy().into_owned());
    names.any(|name| name.starts_with(part.artefact) && name.ends_with(".rlib"))
}

fn lock(project: &Project) -> String {
    fs::read_to_string(project.root.join("Cargo.lock")).unwrap_or_default()
}

fn missing(parts: &[Part], lock: &str, compiled: &Path) -> Vec<Part> {
    let locked = |package: &str| {
        let line = format!("name = \"{package}\"");
        lock.lines().any(|one| one == line)
    };
    let is_missing = |part: &&Part| locked(part.package) && !is_compiled(part, compiled);
    parts.iter().filter(is_missing).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_locked_and_not_compiled_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = "[[package]]\nname = \"wasmtime\"\nversion = \"48.0.8\"\n";
        let found = missing(&[REPLAY, DATABASE], lock, folder.path());
        assert_eq!(found.len(), 1);
        assert!(found[0].what.starts_with("wasmtime"));
        assert!(missing(&[REPLAY], "name = \"wasmtime-environ\"", folder.path()).is_empty());
        fs::write(folder.path().join("libwasmtime-1f.rmeta"), "").expect("a file");
        let found = missing(&[REPLAY, DATABASE], lock, folder.path());
        assert_eq!(found.len(), 1, "a check is not a build");
        fs::write(folder.path().join("libwasmtime-1f.rlib"), "").expect("a file");
        assert!(missing(&[REPLAY, DATABASE], lock, folder.path()).is_empty());
    }

    #[test]
    fn what_is_needed_is_that_of_the_missing_parts() {
        assert_eq!(need(&[], 4), Need { disk_gb: 1, memory_gb: 4 });
        assert_eq!(need(&[REPLAY], 2), Need { disk_gb: 4, memory_gb: 2 });
        assert_eq!(need(&[REPLAY, DATABASE], 2), Need { disk_gb: 11, memory_gb: 4 });
        assert_eq!(need(&[DATABASE], 8), Need { disk_gb: 8, memory_gb: 16 });
    }

    #[test]
    fn the_texts_for_people_say_the_same_minutes() {
        let project = Project::find(None).expect("the tests run inside the project");
        let text = |path: &str| {
            let text = fs::read_to_string(project.root.join(path)).expect(path);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let (replay, database) = (REPLAY.duration(), DATABASE.duration());
        for path in ["README.md", "examples/container/README.md"] {
            let text = text(path);
            let hour = database.trim_start_matches("about ");
            assert!(text.contains(hour), "{path} does not say {hour}");
            for (at, _) in text.match_indices("minutes on two cores") {
                assert!(text[..at + 20].ends_with(&replay), "{path} does not say {replay}");
            }
        }
        let japanese = text("README.ja.md");
        for part in [REPLAY, DATABASE] {
            let wanted = format!("2 コアで約 {} 分", part.minutes);
            assert!(japanese.contains(&wanted), "README.ja.md does not say {wanted}");
        }
    }
}
