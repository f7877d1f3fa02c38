//! A run's folder in a hostile place: disks that are full, folders that cannot be written, links, runs
//! that are killed, and folders that are only half there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tests::user_folder::{UserFolder, files_in};

const RUN: &str = "replay run sma-cross --data data --instrument 7203.TSE --quiet";
const SMALL: &str = "--param fast=5 --param slow=20";
/// What reads a run's folder.
const READERS: [&str; 4] =
    ["replay verify X --quiet", "replay narrative X", "replay compare X X", "replay report X"];

/// The folders aside.
fn aside(user: &UserFolder) -> Vec<PathBuf> {
    let entries = fs::read_dir(user.folder()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    entries.filter(|path| name(path).starts_with(".kumiki-")).collect()
}

/// Every reader tells that something is wrong, in words.
fn no_reader_takes(user: &UserFolder, folder: &Path, readers: &[&str]) {
    for reader in readers {
        let arguments = reader.replace('X', &folder.display().to_string());
        let (code, errors) = user.bad(&arguments);
        assert!(code == 1 || code == 4, "{arguments}: {code}: {errors}");
        assert!(!errors.contains("panicked"), "{arguments}: {errors}");
    }
}

/// Files may have 2,000 blocks only, as on a disk that is full: the run ends, what was there stays, and
/// nothing is left beside it.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_earlier_run() {
    let user = UserFolder::with_sample(1, 20_000);
    user.good(&format!("{RUN} {SMALL} --out run"));
    let before = files_in(&user.path("run"));
    let busy = "--param fast=2 --param slow=3 --same-day-round-trips allow";
    let run = user.command(&format!("{RUN} {busy} --out run"));
    // Without the trap the signal of the limit would end the program at once.
    let script = "trap '' XFSZ; ulimit -f 2000; exec \"$0\" \"$@\"";
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", script]).arg(run.get_program()).args(run.get_args());
    limited.current_dir(user.folder()).env("KUMIKI_CACHE", user.path("cache"));
    let output = limited.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("cannot write the results"), "{errors}");
    assert!(files_in(&user.path("run")) == before);
    assert!(aside(&user).is_empty());
    assert_eq!(user.said("replay verify run --quiet").code, 0);
}

/// Of the kernel's own folders nobody can make another, whoever asks.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_told_before_anything_runs() {
    let user = UserFolder::with_sample(1, 200);
    for out in ["/proc/kumiki/run", "/proc/run"] {
        let (code, errors) = user.bad(&format!("{RUN} --out {out}"));
        assert!(code == 1 && errors.contains(&format!("cannot write {out}")), "{errors}");
    }
}

#[cfg(unix)]
#[test]
fn links_stay_links_and_what_they_name_is_judged() {
    use std::os::unix::fs::symlink;

    let user = UserFolder::with_sample(1, 500);
    user.good(&format!("{RUN} --out first"));
    symlink("first", user.path("last")).unwrap();
    user.good(&format!("{RUN} {SMALL} --out last"));
    assert!(user.path("last").is_symlink());
    let manifest = fs::read_to_string(user.path("first/manifest.json")).unwrap();
    assert!(manifest.contains("\"fast\": 5"), "the new run is where the link points to");

    fs::create_dir(user.path("mine")).unwrap();
    fs::write(user.path("mine/thesis.txt"), "years of work").unwrap();
    fs::write(user.path("file"), "mine").unwrap();
    for (target, told) in [("mine", "holds no earlier run"), ("file", "is no folder")] {
        let link = format!("to-{target}");
        symlink(target, user.path(&link)).unwrap();
        let (code, errors) = user.bad(&format!("{RUN} --out {link}"));
        assert!(code == 1 && errors.contains(told), "{errors}");
        assert!(user.path(&link).is_symlink());
    }
    assert_eq!(fs::read(user.path("mine/thesis.txt")).unwrap(), b"years of work");
    assert_eq!(fs::read(user.path("file")).unwrap(), b"mine");
    // A link inside an earlier run is nothing that a run has made.
    fs::remove_file(user.path("first/log.csv")).unwrap();
    symlink(user.path("file"), user.path("first/log.csv")).unwrap();
    let (code, errors) = user.bad(&format!("{RUN} --out first"));
    assert!(code == 1 && errors.contains("holds `log.csv`"), "{errors}");
    assert_eq!(fs::read(user.path("file")).unwrap(), b"mine");
}

#[test]
fn a_killed_run_leaves_the_earlier_one_and_nothing_that_looks_like_one() {
    let user = UserFolder::with_sample(2, 2_000);
    user.good(&format!("{RUN} {SMALL} --out run"));
    let before = files_in(&user.path("run"));
    let slow = format!("{RUN} --speed 1 --out run");
    let mut child = user.command(&slow).stdout(Stdio::null()).spawn().unwrap();
    while aside(&user).is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // On Unix this is SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(files_in(&user.path("run")) == before);
    assert_eq!(user.said("replay verify run --quiet").code, 0);
    let left = aside(&user);
    no_reader_takes(&user, &left[0].join("new"), &READERS);
    no_reader_takes(&user, &left[0], &READERS);
}

/// A run that was killed before it could write whose folder aside is leaves that empty, which tells nothing.
#[cfg(unix)]
#[test]
fn the_next_run_removes_what_is_empty_and_old() {
    use std::time::Duration;

    let user = UserFolder::with_sample(1, 200);
    let now = user.folder().metadata().unwrap().modified().unwrap();
    let make = |name: &str, inside: &[&str], minutes: u64| {
        let path = user.path(name);
        fs::create_dir(&path).unwrap();
        for file in inside {
            fs::write(path.join(file), "years of work").unwrap();
        }
        let then = now - Duration::from_secs(minutes * 60);
        fs::File::open(path).unwrap().set_modified(then).unwrap();
    };
    make(".kumiki-aB3dE5", &[], 61);
    make(".kumiki-young1", &[], 55);
    make(".kumiki-filled", &["thesis.txt"], 61);
    make(".kumiki-notes-of-mine", &[], 61);
    make("empty", &[], 61);
    user.good(&format!("{RUN} {SMALL} --out run"));
    let mut left: Vec<_> =
        aside(&user).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    left.sort();
    assert_eq!(left, [".kumiki-filled", ".kumiki-notes-of-mine", ".kumiki-young1"]);
    assert!(user.path("empty").is_dir() && user.path("run/manifest.json").is_file());
    assert_eq!(fs::read(user.path(".kumiki-filled/thesis.txt")).unwrap(), b"years of work");
}

/// A copy that stopped half way: whatever is missing or cut off is told, and nothing is made up.
#[test]
fn a_folder_that_is_half_there_is_no_run() {
    // A strategy that is compiled in no time: each look at a run compiles it anew.
    let user = UserFolder::with_sample(1, 500).with_quiet_strategy();
    user.good("replay run quiet --data data --instrument 7203.TSE --quiet --out run");
    let whole = files_in(&user.path("run"));
    let restore = || {
        for (name, bytes) in &whole {
            fs::write(user.path("run").join(name), bytes).unwrap();
        }
    };
    let run = user.path("run");
    let is_page = |name: &str| name == "report.html";
    for name in whole.keys().filter(|name| !is_page(name)) {
        fs::remove_file(run.join(name)).unwrap();
        no_reader_takes(&user, &run, &READERS[..1]);
        restore();
    }
    for (name, readers) in [
        ("manifest.json", &READERS[..]),
        ("summary.json", &READERS[2..]),
        ("equity.csv", &READERS[3..]),
    ] {
        let bytes = &whole[name];
        for half in [&bytes[..bytes.len() / 2], b""] {
            fs::write(run.join(name), half).unwrap();
            no_reader_takes(&user, &run, readers);
        }
        fs::remove_file(run.join(name)).unwrap();
        no_reader_takes(&user, &run, readers);
        restore();
    }
    assert_eq!(user.said("replay verify run --quiet").code, 0, "whole again");
    // The narrative of a strategy that tells something.
    let user = UserFolder::with_sample(1, 500);
    user.good(&format!("{RUN} {SMALL} --out told"));
    let told = user.path("told");
    let narrative = fs::read(told.join("narrative.csv")).unwrap();
    for half in [&narrative[..narrative.len() / 2], b""] {
        fs::write(told.join("narrative.csv"), half).unwrap();
        no_reader_takes(&user, &told, &READERS[1..2]);
    }
    fs::remove_file(told.join("narrative.csv")).unwrap();
    no_reader_takes(&user, &told, &READERS[1..2]);
}
