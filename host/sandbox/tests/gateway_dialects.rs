//! Dialects of local gateways in the sandbox: some that misbehave in every way, and both that come with Kumiki
//! against the vendor's samples.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(
    clippy::print_stdout,
    reason = "a skipped test says so, and a measurement tells what it found"
)]

#[path = "gateway_dialects/boards.rs"]
mod boards;

use std::path::PathBuf;

use domain::fault::FaultKind;
use domain::gateway_mapping::{
    BOARD_LEVELS_MAX, GatewayBoard, GatewayErrorKind as Kind, GatewayMapping,
};
use domain::limits::{
    GATEWAY_CALLS_PER_INSTANCE, GATEWAY_FUEL_PER_CALL, GATEWAY_MEMORY_BYTES,
    GATEWAY_MESSAGE_BYTES_MAX, GATEWAY_RESULT_BYTES, GATEWAY_TEXT_BYTES_MAX,
};
use domain::market_update::Level;
use sandbox::{GatewayDialectInstance, Sandbox, SandboxConfig, SandboxError};

const BOTH: [&str; 2] = ["local-broker-spec", "local-broker-kabusapi"];

/// A component that xtask has built.
fn file(folder: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().find(|path| path.ends_with("release") || path.ends_with("debug"));
    let path = target.unwrap().parent().unwrap().join("release").join(folder);
    let path = path.join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing; run `cargo xtask guests`", path.display());
    path
}

fn load(folder: &str, name: &str) -> GatewayDialectInstance {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    sandbox.load_gateway_dialect(&file(folder, name)).unwrap().instantiate().unwrap()
}

fn turns() -> GatewayDialectInstance {
    load("test-guests", "gateway-turns")
}

fn is_well(dialect: &mut GatewayDialectInstance) -> GatewayBoard {
    let board = dialect.read_board("").unwrap().unwrap();
    assert_eq!((board.symbol.as_str(), board.volume), ("7203", Some(0)));
    board
}

#[test]
fn each_misbehaviour_is_a_fault_and_the_next_call_works() {
    let mut dialect = turns();
    let mut fault = |turn: &str| {
        let fault = dialect.read_board(turn).unwrap_err();
        assert_eq!((fault.component.as_str(), fault.sha256.len()), ("gateway-turns", 64));
        let shown = fault.to_string();
        assert!(
            !shown.contains(char::is_control) && shown.contains("in `read-board`"),
            "{shown:?}"
        );
        is_well(&mut dialect);
        fault.kind
    };
    assert!(matches!(fault("traps"), FaultKind::Panic(_) | FaultKind::Trap(_)));
    let looped = fault("loops");
    assert!(matches!(looped, FaultKind::Fuel { budget: GATEWAY_FUEL_PER_CALL, .. }), "{looped}");
    assert!(
        matches!(fault("grows"), FaultKind::Memory { allowed, .. } if allowed == GATEWAY_MEMORY_BYTES)
    );
    let limit = |kind: FaultKind| match kind {
        FaultKind::Limit { allowed, .. } => usize::try_from(allowed).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(fault("many-levels")), BOARD_LEVELS_MAX);
    assert_eq!(limit(fault("long-name")), GATEWAY_TEXT_BYTES_MAX);
    assert_eq!(limit(fault("says-much")), GATEWAY_TEXT_BYTES_MAX);
    for turn in ["huge-levels", "huge-name"] {
        let much = fault(turn).to_string();
        assert!(much.contains(&GATEWAY_RESULT_BYTES.to_string()), "{turn}: {much}");
    }
    for (turn, words) in [
        ("two-lines", "the name has control characters"),
        ("says-why", "the reason has control characters"),
        ("no-symbol", "the issue `` is not 1 to 16"),
        ("long-symbol", "is not 1 to 16 digits and capitals"),
        ("small-symbol", "the issue `130a` is not"),
        ("negative-volume", "the volume is -1; 0 to"),
        ("huge-volume", "the volume is 10000000000000001; 0 to 10000000000000000"),
        ("negative-price", "the last price is -1; 1 to"),
        ("no-price", "a level's price is 0; 1 to"),
        ("negative-qty", "a level's quantity is -1; 0 to"),
        ("late", "its time is after the year 2554"),
        ("other-ask", "the best ask 24080000 is not the price of the first level"),
        ("other-bid", "the best bid 1 is not the price of the first level"),
    ] {
        let kind = fault(turn);
        assert!(
            matches!(&kind, FaultKind::Protocol(text) if text.contains(words)),
            "{turn}: {kind}"
        );
    }
}

#[test]
fn an_error_is_held_against_the_contract_too() {
    let mut dialect = turns();
    for (turn, words) in [
        ("traps", "an error was too much for me"),
        ("long", "512 are allowed"),
        ("two-lines", "the message has control characters"),
    ] {
        let fault = dialect.classify(400, turn).unwrap_err();
        assert!(fault.to_string().contains("in `classify`"), "{fault}");
        let is_trap = matches!(fault.kind, FaultKind::Panic(_) | FaultKind::Trap(_));
        assert!(
            fault.to_string().contains(words) || (turn == "traps" && is_trap),
            "{turn}: {fault}"
        );
        let refusal = dialect.classify(418, "well").unwrap();
        assert_eq!((refusal.kind, refusal.code), (Kind::Other, Some(418)));
    }
}

#[test]
fn what_goes_in_has_a_limit() {
    let mut dialect = turns();
    let (fits, more) =
        (" ".repeat(GATEWAY_MESSAGE_BYTES_MAX), " ".repeat(GATEWAY_MESSAGE_BYTES_MAX + 1));
    assert!(dialect.read_board(&fits).unwrap().is_ok());
    let why = dialect.read_board(&more).unwrap().unwrap_err();
    assert_eq!(why, "it has 65537 bytes; 65536 are allowed");
    assert_eq!(dialect.classify(500, &fits).unwrap().message, fits.len().to_string());
    assert_eq!(dialect.classify(500, &more).unwrap().message, "0", "it is handed over empty");
    // The largest message of the worst kind stays within the fuel.
    for name in BOTH {
        let mut dialect = load("dialects", name);
        for begin in ["{\"Symbol\":\"7203\",\"a\":[", "{\"Symbol\":\"", "{\"SymbolName\":\"\\u0041"]
        {
            for unit in [
                "0,",
                "\\u0041",
                "[",
                "\u{202e}",
                "{\"\":[],",
                "1e1,",
                "{\"a\":1},",
                "\"\\ud83d\\ude00\",",
            ] {
                let length = GATEWAY_MESSAGE_BYTES_MAX.saturating_sub(begin.len()) / unit.len();
                let message = format!("{begin}{}", unit.repeat(length));
                let before = dialect.fuel_used();
                dialect.read_board(&message).unwrap().unwrap_err();
                let read = dialect.fuel_used();
                dialect.classify(400, &message).unwrap();
                let (read, judged) = (read - before, dialect.fuel_used() - read);
                assert!(
                    read.max(judged) < GATEWAY_FUEL_PER_CALL / 2,
                    "{begin}{unit}: {read} {judged}"
                );
            }
        }
    }
}

#[test]
fn nothing_is_kept_for_ever() {
    let mut dialect = turns();
    let mut asked = || dialect.read_board("counts").unwrap().unwrap().volume.unwrap();
    for call in 0..GATEWAY_CALLS_PER_INSTANCE {
        assert_eq!(asked(), i64::from(call));
    }
    assert_eq!(asked(), 0, "it was made anew");
}

#[test]
fn a_dialect_that_leads_elsewhere_is_not_loaded() {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let strays = file("test-guests", "gateway-strays");
    let error = sandbox.load_gateway_dialect(&strays).unwrap_err().to_string();
    assert!(error.contains("the prefix `@elsewhere.example` is no path"), "{error}");
    assert!(error.contains("in `describe`"), "{error}");
}

#[test]
fn a_dialect_imports_nothing_and_is_of_its_contract() {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let wants = r#"(component (import "wasi:clocks/wall-clock@0.2.0" (instance)))"#;
    let wants = wat::parse_str(wants).unwrap();
    let error = sandbox.gateway_dialect_from_bytes("wants", wants).unwrap_err();
    assert!(matches!(error, SandboxError::ForeignImport { .. }), "{error}");
    let empty = wat::parse_str("(component)").unwrap();
    let error = sandbox.gateway_dialect_from_bytes("empty", empty).unwrap_err().to_string();
    assert!(error.contains("it is no Kumiki gateway dialect of version 1"), "{error}");
    assert!(sandbox.load_dialect(&file("dialects", BOTH[0])).is_err());
    assert!(sandbox.load_gateway_dialect(&file("dialects", "web-broker-spec")).is_err());
}

#[test]
fn what_is_compiled_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache_folder = Some(folder.path().to_owned());
    let sandbox = Sandbox::new(SandboxConfig { cache_folder, ..SandboxConfig::default() }).unwrap();
    for _ in 0..2 {
        let module = sandbox.load_gateway_dialect(&file("dialects", BOTH[0])).unwrap();
        assert_eq!(module.description().name, BOTH[0]);
        assert_eq!(module.artefact().sha256().len(), 64);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}

/// P43 and P59.
#[test]
fn both_dialects_say_where_the_gateway_is() {
    for (name, prefix, path, registers) in [
        (BOTH[0], "", "/brokerapi/websocket", true),
        (BOTH[1], "/kabusapi", "/kabusapi/websocket", false),
    ] {
        let dialect = load("dialects", name);
        let about = dialect.description();
        assert_eq!(about.name, name);
        assert_eq!((about.rest_prefix.as_str(), about.push_path.as_str()), (prefix, path));
        assert_eq!(about.board_read_registers, registers, "{name}");
        assert_eq!(dialect.identity().component, name);
    }
}

fn body(code: i64) -> String {
    format!(r#"{{"Code":{code},"Message":"words"}}"#)
}

/// P59: what the two tables disagree about.
#[test]
fn p59_each_dialect_has_its_own_table_of_errors() {
    let (mut spec, mut vendors) = (load("dialects", BOTH[0]), load("dialects", BOTH[1]));
    for (status, code, in_spec, in_vendors) in [
        (401, 4_001_001, Kind::TokenExpired, Kind::Other),
        (401, 4_001_005, Kind::TokenExpired, Kind::Other),
        (401, 4_001_003, Kind::Other, Kind::Other),
        (401, 4_001_009, Kind::Other, Kind::TokenExpired),
        (401, 4_001_007, Kind::Other, Kind::TokenExpired),
        (401, 4_001_017, Kind::Other, Kind::TokenExpired),
        (401, 4_001_013, Kind::Other, Kind::Other),
        (400, 4_002_001, Kind::RegisterFull, Kind::Other),
        (429, 4_002_001, Kind::RegisterFull, Kind::RateLimited),
        (400, 4_002_006, Kind::RateLimited, Kind::RegisterFull),
        (429, 4_002_006, Kind::RateLimited, Kind::RateLimited),
        (429, 4_001_006, Kind::RateLimited, Kind::RateLimited),
        (400, 4_001_018, Kind::Other, Kind::Other),
        (500, 4_001_001, Kind::Other, Kind::Other),
    ] {
        let found = [&mut spec, &mut vendors].map(|dialect| {
            let refusal = dialect.classify(status, &body(code)).unwrap();
            assert_eq!((refusal.code, refusal.message.as_str()), (Some(code), "words"));
            refusal.kind
        });
        assert_eq!(found, [in_spec, in_vendors], "{status} {code}");
    }
    for dialect in [&mut spec, &mut vendors] {
        for body in ["", "<html>Unauthorized</html>", "{}", "[4001005]"] {
            assert_eq!(dialect.classify(401, body).unwrap().kind, Kind::Other, "{body}");
            assert_eq!(dialect.classify(429, body).unwrap().kind, Kind::RateLimited, "{body}");
        }
    }
}

/// The vendor's samples, where they are.
fn samples(name: &str) -> Option<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("KUMIKI_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| root.join("../shared"));
    let text = std::fs::read_to_string(shared.join("assets/kabu").join(name)).ok();
    if text.is_none() {
        println!("skipped: the samples of the local gateway are not here");
    }
    text
}

#[test]
fn every_case_of_the_vendors_errors_means_what_is_said_of_it() {
    let Some(text) = samples("error_cases.tsv") else { return };
    let mut dialect = load("dialects", BOTH[1]);
    let mut cases = 0;
    for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
        let cells: Vec<_> = line.split('\t').collect();
        let (status, code): (u16, i64) = (cells[0].parse().unwrap(), cells[1].parse().unwrap());
        let expected = match cells[2] {
            text if text.contains("register count over") => Kind::RegisterFull,
            text if text.contains("not logged in") || text.contains("token") => Kind::TokenExpired,
            text if text.contains("count exceeded") => Kind::RateLimited,
            _ => Kind::Other,
        };
        // A wrong password is asked for the token, but says nothing of it.
        let expected = if code == 4_001_013 { Kind::Other } else { expected };
        assert_eq!(dialect.classify(status, &body(code)).unwrap().kind, expected, "{line}");
        cases += 1;
    }
    assert!(cases >= 8, "{cases}");
}

#[test]
fn the_sample_of_an_error_is_read() {
    let Some(text) = samples("samples/error_response.json") else { return };
    for name in BOTH {
        let refusal = load("dialects", name).classify(500, &text).unwrap();
        assert_eq!((refusal.code, refusal.message.as_str()), (Some(4_001_001), "内部エラー"));
        assert_eq!(refusal.kind, Kind::Other);
    }
}
