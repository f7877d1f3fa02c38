//! What guests report of their parameters, within the limits and against them, on both call paths.

use domain::GuestLimit;
use domain::fault::FaultKind;
use domain::strategy::StrategyRuntime;
use sandbox::{Artefact, CallPath, Limits, Sandbox, SandboxConfig};
use tests::{built, wat};
use wit_component::StringEncoding;

use crate::common::instrument;

/// A guest that reports one parameter so often in `init` and in `start`.
fn guest(name: &str, value: &str, times: (usize, usize)) -> Vec<u8> {
    let calls = |times| "call $tell ".repeat(times);
    let text = wat::whole("reports")
        .replace("N_BYTES", &name.len().to_string())
        .replace("V_BYTES", &value.len().to_string())
        .replace("NAME", &name.replace('\u{1}', "\\01"))
        .replace("VALUE", &value.replace('"', "\\22"))
        .replace("INIT", &calls(times.0))
        .replace("START", &calls(times.1));
    wat::component(&text, StringEncoding::UTF8)
}

/// What a guest has reported when it has started, or its fault; the same on both paths.
#[track_caller]
fn reported(bytes: &[u8], limits: Limits) -> Result<Vec<(String, String)>, (String, FaultKind)> {
    let outcome = |path| {
        let config = SandboxConfig { call_path: Some(path), ..SandboxConfig::default() };
        let artefact = Artefact::from_bytes("guest", bytes.to_vec()).unwrap();
        let module = Sandbox::new(config).unwrap().prepare(artefact).unwrap();
        assert_eq!(module.call_path(), path);
        let mut instance = module.instantiate(limits).unwrap();
        let init = instance.init("{}", &[instrument()]);
        let parameters = instance.take_parameters();
        assert!(instance.take_parameters().is_empty(), "they are given once");
        init.and_then(|()| instance.start(domain::TsNanos::from_nanos(1)))
            .map(|_| parameters.into_iter().collect())
            .map_err(|fault| (fault.export.to_owned(), fault.kind))
    };
    let direct = outcome(CallPath::Direct);
    assert_eq!(direct, outcome(CallPath::General));
    direct
}

fn broken(export: &str, text: &str) -> Result<Vec<(String, String)>, (String, FaultKind)> {
    Err((export.to_owned(), FaultKind::Protocol(text.to_owned())))
}

#[test]
fn what_is_reported_in_init_is_kept() {
    for value in ["1", "\"1674.1\"", "null", " [1, 2] "] {
        let told = reported(&guest("fast", value, (1, 0)), Limits::default());
        assert_eq!(told, Ok(vec![("fast".to_owned(), value.to_owned())]));
    }
    assert_eq!(reported(&guest("fast", "1", (0, 0)), Limits::default()), Ok(vec![]));
}

#[test]
fn the_rules_of_a_report_hold() {
    let of = |name, value, times| reported(&guest(name, value, times), Limits::default());
    let outside = "it reported a parameter outside of its init";
    assert_eq!(of("fast", "1", (0, 1)), broken("start", outside));
    let twice = "it reported the parameter \"fast\" twice";
    assert_eq!(of("fast", "1", (2, 0)), broken("init", twice));
    assert_eq!(of("", "1", (1, 0)), broken("init", "it reported a parameter without a name"));
    let (export, kind) = of("fast", "{1", (1, 0)).unwrap_err();
    let text = kind.to_string();
    assert_eq!(export, "init");
    assert!(text.contains("the value of the parameter \"fast\" is no JSON: "), "{text}");
}

#[test]
fn the_limits_of_a_report_hold() {
    let small = Limits::default();
    let bytes = guest("fast", "123", (1, 0));
    let budget =
        |limit, used, allowed| Err(("init".to_owned(), FaultKind::Budget { limit, used, allowed }));
    let none = Limits { parameters: 0, ..small };
    assert_eq!(reported(&bytes, none), budget(GuestLimit::Parameters, 1, 0));
    let short = Limits { parameter_bytes: 6, ..small };
    assert_eq!(reported(&bytes, short), budget(GuestLimit::Parameter, 7, 6));
    assert!(reported(&bytes, Limits { parameters: 1, parameter_bytes: 7, ..small }).is_ok());
    // Name and value lie in a page of 65,536 bytes.
    let long = "9".repeat(5_000);
    let default = GuestLimit::Parameter.default_value();
    let told = reported(&guest("fast", &long, (1, 0)), small);
    assert_eq!(told, budget(GuestLimit::Parameter, 5_004, default));
    // The manifest has six bytes for each control character.
    let spelled = Limits { parameter_bytes: 1_500, ..small };
    let told = reported(&guest(&"\u{1}".repeat(250), "1", (1, 0)), spelled);
    assert_eq!(told, budget(GuestLimit::Parameter, 1_501, 1_500));
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_anything_is_read() {
    let text = wat::whole("reports")
        .replace("N_BYTES", "1")
        .replace("V_BYTES", "-1")
        .replace("INIT", "call $tell")
        .replace("START", "");
    let bytes = wat::component(&text, StringEncoding::UTF8);
    let artefact = Artefact::from_bytes("guest", bytes).unwrap();
    let module = Sandbox::new(SandboxConfig::default()).unwrap().prepare(artefact).unwrap();
    let fault =
        module.instantiate(Limits::default()).unwrap().init("{}", &[instrument()]).unwrap_err();
    let (limit, allowed) = (GuestLimit::Parameter, GuestLimit::Parameter.default_value());
    let used = u64::from(u32::MAX) + 1;
    assert_eq!(fault.kind, FaultKind::Budget { limit, used, allowed });
}

#[test]
fn the_sdk_reports_what_it_reads() {
    let bytes = std::fs::read(built::strategy("sma-cross")).unwrap();
    let told = reported(&bytes, Limits::default()).unwrap();
    let told: Vec<String> = told.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(told, ["fast=20", "quantity=100", "slow=100"]);
}
