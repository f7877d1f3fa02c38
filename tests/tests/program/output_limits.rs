//! Guests that make the host keep too much, through the real program: each ends with a fault that
//! names its limit and the flag that raises it, in little memory, with a small folder.

#![allow(clippy::print_stderr, reason = "figures of an attack, and what is skipped")]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use domain::GuestLimit;
use serde_json::Value;
use tests::user_folder::UserFolder;
use tests::{built, wat};

/// Most memory that a run under attack may have at any time.
const MEMORY_BYTES_MAX: u64 = 160_000_000;
/// Most bytes that its folder may have.
const FOLDER_BYTES_MAX: u64 = 20_000_000;
/// The strategy failed.
const STRATEGY_FAILED: i32 = 3;

/// How a run under attack ended.
struct Ended {
    code: i32,
    errors: String,
    /// Most memory at any time; none where the system does not tell.
    peak_bytes: Option<u64>,
    folder_bytes: u64,
    manifest: Value,
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| entry.metadata().unwrap().len()).sum()
}

/// The highest memory that a process had so far, while it still runs.
fn peak_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn command_of(parameters: &str) -> String {
    command_for(&built::test_guest("floods-output"), parameters)
}

fn command_for(guest: &Path, parameters: &str) -> String {
    let parameters: String =
        parameters.split_whitespace().map(|one| format!("--param {one} ")).collect();
    format!(
        "replay run {} {parameters} --data data --instrument 7203.TSE --out run --quiet",
        guest.display()
    )
}

/// A guest as it is built, which the host calls directly, and the same with one program more, for which the
/// general path is taken.
fn on_both_paths(user: &UserFolder, guest: &str) -> [PathBuf; 2] {
    let direct = built::test_guest(guest);
    let general = user.path(&format!("{guest}-general.wasm"));
    std::fs::write(&general, wat::with_another_program(&std::fs::read(&direct).unwrap())).unwrap();
    for (guest, path) in [(&direct, "direct"), (&general, "general")] {
        let checked = user.good(&format!("strategy check {} --format json", guest.display()));
        let checked: Value = serde_json::from_str(&checked).unwrap();
        assert_eq!(checked["call_path"], path);
    }
    [direct, general]
}

/// Runs an attack to its end.
fn attack(user: &UserFolder, parameters: &str, more: &str) -> Ended {
    ended(user, &format!("{} {more}", command_of(parameters)))
}

/// Runs a command to its end: its exit code, its standard error, and the most memory that it had at any
/// time, where the system tells.
pub(crate) fn watched(user: &UserFolder, command: &str) -> (i32, String, Option<u64>) {
    let mut command = user.command(command);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The highest value stands until the process ends, so that only its last moment may be missed.
    let mut peak_bytes = None;
    let status = loop {
        peak_bytes = peak_of(child.id()).or(peak_bytes);
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    };
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
    (status.code().unwrap_or(-1), errors, peak_bytes)
}

fn ended(user: &UserFolder, command: &str) -> Ended {
    let (code, errors, peak_bytes) = watched(user, command);
    let run = user.path("run");
    let manifest = std::fs::read_to_string(run.join("manifest.json"));
    let manifest = manifest.unwrap_or_else(|error| panic!("{error}: {errors}"));
    Ended {
        code,
        errors,
        peak_bytes,
        folder_bytes: bytes_in(&run),
        manifest: serde_json::from_str(&manifest).unwrap(),
    }
}

/// Checks that an attack ends at a limit, and that it cost the host little.
fn ends_at(user: &UserFolder, guest: &Path, parameters: &str, limit: GuestLimit) {
    let ended = ended(user, &command_for(guest, parameters));
    held(parameters, &ended);
    assert_eq!(ended.code, STRATEGY_FAILED, "{parameters}: {}", ended.errors);
    let fault = ended.manifest["fault"].as_str().unwrap();
    let advice = limit.advice(limit.default_value());
    for expected in [limit.what(), advice.as_str()] {
        assert!(fault.contains(expected), "{parameters}: {fault}");
        assert!(ended.errors.contains(expected), "{parameters}: {}", ended.errors);
    }
}

fn held(parameters: &str, ended: &Ended) {
    let bytes = ended.folder_bytes;
    assert!(bytes <= FOLDER_BYTES_MAX, "{parameters}: the folder has {bytes} bytes");
    match ended.peak_bytes {
        Some(peak) => assert!(peak < MEMORY_BYTES_MAX, "{parameters}: {peak} bytes of memory"),
        None => eprintln!("skipped: this system does not tell the memory of a process"),
    }
    eprintln!("{parameters}: {:?} bytes of memory, {bytes} in the folder", ended.peak_bytes);
}

#[test]
fn a_flood_within_one_event_ends_at_its_limit() {
    let user = UserFolder::with_sample(1, 200);
    let guests = on_both_paths(&user, "floods-output");
    for (parameters, limit) in [
        ("flood=lines count=5000", GuestLimit::Records),
        ("flood=lines bytes=16385", GuestLimit::LogLine),
        ("flood=lines bytes=16384 count=64", GuestLimit::EventOutput),
        ("flood=order-id bytes=4194304", GuestLimit::OrderId),
        ("flood=tags count=33", GuestLimit::Tags),
        ("flood=tags bytes=4194304", GuestLimit::Tag),
        ("flood=signal-tag bytes=257", GuestLimit::Tag),
        ("flood=note bytes=4194304", GuestLimit::Note),
        ("flood=title bytes=1025", GuestLimit::Title),
        ("flood=body bytes=4194304", GuestLimit::Body),
        ("flood=unknown-cancels count=257", GuestLimit::Actions),
        ("flood=rejected-orders count=200 answers=true", GuestLimit::Records),
    ] {
        for guest in &guests {
            ends_at(&user, guest, parameters, limit);
        }
    }
}

#[test]
fn a_flood_over_a_run_ends_at_its_limit() {
    let user = UserFolder::with_sample(4, 5_000);
    let guests = on_both_paths(&user, "floods-output");
    for (parameters, limit) in [
        ("flood=lines count=1000", GuestLimit::Log),
        ("flood=lines count=20 bytes=16000", GuestLimit::Log),
        ("flood=note count=200", GuestLimit::Output),
        ("flood=note count=200 bytes=4096", GuestLimit::Output),
        ("flood=body count=10 bytes=65536", GuestLimit::Output),
        ("flood=body count=256", GuestLimit::Output),
        ("flood=rejected-orders count=60 bytes=36", GuestLimit::Rejected),
        ("flood=rejected-orders count=200 bytes=256", GuestLimit::Rejected),
    ] {
        for guest in &guests {
            ends_at(&user, guest, parameters, limit);
        }
    }
}

/// Orders that are accepted, with the longest ids and tags, and storms of changes and cancels.
#[test]
fn floods_of_accepted_orders_end_at_the_budget_of_the_folder() {
    let user = UserFolder::with_sample(1, 20_000);
    let guests = on_both_paths(&user, "floods-orders");
    let attacks = [
        "flood=orders count=60",
        "flood=orders count=60 tags=32",
        "flood=changes count=250",
        "flood=cancel-replace count=128",
        "flood=cancel-replace count=128 tags=32",
        "flood=fills count=1000000",
    ];
    for (guest, parameters) in
        guests.iter().flat_map(|guest| attacks.iter().map(move |attack| (guest, *attack)))
    {
        let command = command_for(guest, parameters);
        let ended = ended(&user, &format!("{command} --cash 1000000000000"));
        held(parameters, &ended);
        assert_eq!(ended.code, STRATEGY_FAILED, "{parameters}: {}", ended.errors);
        for expected in [GuestLimit::Folder.what(), "`--guest-limit folder=32MiB` allows more"] {
            assert!(ended.errors.contains(expected), "{parameters}: {}", ended.errors);
        }
    }
    let guest = command_for(&guests[0], "flood=cancel-replace");
    user.good(&format!("{guest} --cash 1000000000000 --guest-limit folder=64MiB"));
}

/// A strategy that needs less than a day's budget on its first days has the rest later.
#[test]
fn later_days_have_room_of_their_own() {
    let user = UserFolder::with_sample(3, 1_000);
    let guest = command_for(&built::test_guest("floods-orders"), "flood=cancel-replace");
    let with =
        |limits: &str| ended(&user, &format!("{guest} --cash 1000000000 --guest-limit {limits}"));
    assert_eq!(with("folder=3MiB,folder-day=2MiB").code, 0);
    let ended = with("folder=3MiB,folder-day=1500KiB");
    assert_eq!(ended.code, STRATEGY_FAILED, "{}", ended.errors);
    let summary = std::fs::read_to_string(user.path("run/days.csv")).unwrap();
    assert_eq!(summary.lines().count(), 4, "it ends on the third day: {summary}");
}

#[test]
fn every_limit_has_a_highest_value() {
    let user = UserFolder::with_sample(1, 200);
    for limit in GuestLimit::ALL {
        let most = limit.most();
        let arguments = format!("{} --guest-limit {limit}={}", command_of("flood=lines"), most + 1);
        let (code, errors) = user.bad(&arguments);
        let expected =
            format!("is too much for the limit {limit}; give at most {}", limit.show(most));
        assert!(code == 2 && errors.contains(&expected), "{errors}");
    }
    let (_, errors) =
        user.bad(&format!("{} --guest-limit memory=999GiB", command_of("flood=lines")));
    assert!(
        errors.contains("999GiB is too much for the limit memory; give at most 1GiB"),
        "{errors}"
    );
}

#[test]
fn rejected_orders_leave_memory_within_the_day() {
    let user = UserFolder::with_sample(1, 5_000);
    let more = "--guest-limit orders=60000,rejected=1GiB,folder=1GiB";
    let ended = attack(&user, "flood=rejected-orders count=60 bytes=36", more);
    assert_eq!(ended.code, STRATEGY_FAILED, "{}", ended.errors);
    assert!(ended.errors.contains("`--guest-limit orders=120000` allows more"), "{}", ended.errors);
    if let Some(peak) = ended.peak_bytes {
        assert!(peak < MEMORY_BYTES_MAX, "{peak} bytes of memory");
    }
}

#[test]
fn commands_of_a_run_have_a_limit() {
    let user = UserFolder::with_sample(1, 5_000);
    let parameters = "flood=unknown-cancels count=256 bytes=256";
    let ended = attack(&user, parameters, "--guest-limit commands=200000");
    held(parameters, &ended);
    assert_eq!(ended.code, STRATEGY_FAILED, "{}", ended.errors);
    assert!(
        ended.errors.contains("`--guest-limit commands=400000` allows more"),
        "{}",
        ended.errors
    );
}

#[test]
fn warnings_are_kept_up_to_their_limit_and_counted_beyond() {
    let user = UserFolder::with_sample(1, 200);
    let ended = attack(&user, "flood=unknown-cancels count=9 bytes=5", "--guest-limit warnings=40");
    assert_eq!(ended.code, 0, "{}", ended.errors);
    let log = std::fs::read_to_string(user.path("run/log.csv")).unwrap();
    let lines: Vec<&str> = log.lines().skip(1).collect();
    assert_eq!(lines.len(), 41, "40 and what became of the others");
    let last = lines[40];
    assert!(last.contains("more commands had no effect"), "{last}");
    assert!(last.contains("`--guest-limit warnings=80` allows more"), "{last}");
}

#[test]
fn limits_are_the_users_and_the_manifest_has_them() {
    let user = UserFolder::with_sample(1, 200);
    let more = "--guest-limit note=4KiB,output=1GiB,folder=1GiB --guest-limit body=128KiB";
    let ended = attack(&user, "flood=body bytes=131072", more);
    assert_eq!(ended.code, 0, "{}", ended.errors);
    let limits = &ended.manifest["limits"];
    assert_eq!(limits["body"], 131_072);
    assert_eq!(limits["output"], 1 << 30);
    assert_eq!(limits["fuel"], GuestLimit::Fuel.default_value());
    assert_eq!(limits.as_object().unwrap().len(), GuestLimit::ALL.len());
    assert_eq!(ended.manifest["engine"], sandbox::ENGINE);

    for (limit, expected) in [
        ("ram=1", "there is no limit `ram`; there are: fuel, lifecycle-fuel, memory, "),
        ("note=1KiB,note=2KiB", "the limit note is given twice; give it once"),
        ("memory=64MB", "`64MB` is no value for the limit memory; write a whole number from 1"),
    ] {
        let (code, errors) =
            user.bad(&format!("{} --guest-limit {limit}", command_of("flood=lines")));
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
    let most = format!("{} --guest-limit orders=4000001", command_of("flood=lines"));
    let (code, errors) = user.bad(&most);
    assert!(code == 2 && errors.contains("4000001 is too much for the limit orders"), "{errors}");

    let listed = user.good("strategy limits --format json");
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let table = user.good("strategy limits");
    for (limit, listed) in GuestLimit::ALL.iter().zip(&listed) {
        assert_eq!(listed["name"], limit.name());
        assert_eq!(listed["default"], limit.default_value());
        assert_eq!(listed["most"], limit.most());
        assert_eq!(listed["unit"], limit.unit().as_str());
        assert_eq!(listed["reason"], limit.reason());
        assert!(table.contains(limit.name()), "{table}");
    }
    let fuel = domain::limits::FORMULA_FUEL_PER_DAY;
    assert!(table.contains(&format!("A formula module has {fuel}")), "{table}");
    // What dialects may use is listed too: it is what the sandbox gives them.
    let own = |column: &str, limit: GuestLimit| {
        let index = GuestLimit::ALL.iter().position(|one| *one == limit).unwrap();
        listed[index][column].as_u64().unwrap()
    };
    for (column, limits) in [
        ("default_of_formula", sandbox::Limits::formula()),
        ("of_broker_dialect", sandbox::Limits::dialect()),
        ("of_gateway_dialect", sandbox::Limits::gateway()),
    ] {
        assert!(GuestLimit::ALL.iter().all(|limit| own(column, *limit) == limits.get(*limit)));
    }
    for line in [
        "a formula module: lifecycle-fuel 100000000\n",
        "a broker's dialect (fixed): lifecycle-fuel 100000000, memory 16MiB, result 1MiB\n",
        "a local gateway's dialect (fixed): fuel 50000000, lifecycle-fuel 50000000, memory 4MiB,",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
}

#[test]
fn a_bad_run_of_a_sweep_harms_no_other() {
    let user = UserFolder::with_sample(1, 200);
    let guest = built::test_guest("floods-output");
    let sweep = user.good(&format!(
        "replay sweep {} --param flood=lines --grid count=1,5000,2 --data data --instrument \
         7203.TSE --out sweep --format json --jobs 1 --quiet --window 1 --guest-limit records=100",
        guest.display()
    ));
    let sweep: Value = serde_json::from_str(&sweep).unwrap();
    assert_eq!(sweep["sweep"]["runs_done"], 3, "{sweep:#}");
    assert_eq!(sweep["sweep"]["runs_failed"], 1, "{sweep:#}");
    let table = std::fs::read_to_string(user.path("sweep/sweep.csv")).unwrap();
    let bad: Vec<&str> =
        table.lines().filter(|line| line.contains("--guest-limit records=")).collect();
    assert_eq!(bad.len(), 1, "{table}");
}
