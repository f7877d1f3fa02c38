//! Formula modules on the command line.

use std::process::{Command, Output};

use serde_json::Value;
use tests::built;

use crate::common::{DATA, file};

struct Program {
    formulas: tempfile::TempDir,
}

impl Program {
    fn new() -> Self {
        Self { formulas: tempfile::tempdir().unwrap() }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(built::kumiki());
        command.arg("rank").args(arguments).env("DATA_DIR", DATA.path());
        command.env("KUMIKI_FORMULAS", self.formulas.path());
        command.env("KUMIKI_CACHE", self.formulas.path().join("cache"));
        command.output().unwrap()
    }

    fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn bad(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn add(&self, package: &str) -> String {
        self.good(&["formulas", "--add", &file(package).display().to_string()])
    }
}

#[test]
fn a_module_is_added_listed_and_ranked_by() {
    let program = Program::new();
    assert!(program.add("formula-mirror").contains("lag=5 (1 to 2600): business days before"));
    program.add("risk-adjusted-momentum");
    let table = program.good(&["formulas"]);
    for words in ["mirror", "risk-adjusted-momentum", "Close, Close[-5]", "Close[0..-60]"] {
        assert!(table.contains(words), "{words} is missing in\n{table}");
    }
    let listed: Value =
        serde_json::from_str(&program.good(&["formulas", "--format", "json"])).unwrap();
    assert_eq!(listed[0]["name"], "mirror");
    assert_eq!(listed[1]["parameters"][0]["default"], 60.0);

    let range = ["--from", "2016-02-01", "--format", "jsonl"];
    let by_module =
        program.good(&[&["--formula", "mirror", "--param", "lag=2"], &range[..]].concat());
    let formula = "(Close - Close[-2]) / Close[-2] * 100";
    assert_eq!(by_module, program.good(&[&["--sort-by", formula], &range[..]].concat()));
    assert!(by_module.lines().count() > 500);
    let table = program.good(&["--formula", "risk-adjusted-momentum", "--param", "lookback=20"]);
    assert!(table.starts_with("by risk-adjusted-momentum(lookback=20) (desc)\n"), "{table}");
    let explained = program.good(&["--formula", "mirror", "--explain"]);
    for words in ["sha256", "lag=5", "Close, Close[-5]", "ms"] {
        assert!(explained.contains(words), "{words} is missing in\n{explained}");
    }
    assert!(!explained.contains("SELECT"), "{explained}");
}

#[test]
fn wrong_arguments_and_faults_are_explained() {
    let program = Program::new();
    let (code, errors) = program.bad(&["--formula", "mirror"]);
    assert!(code == 1 && errors.contains("formulas.toml lists none"), "{errors}");
    program.add("formula-traps");
    let (code, errors) = program.bad(&["--formula", "traps", "--sort-by", "Close"]);
    assert!(code == 2 && errors.contains("cannot be used with"), "{errors}");
    assert_eq!(program.bad(&["--param", "close=1"]).0, 2);
    assert_eq!(program.bad(&["--formula", "traps", "--param", "close=x"]).0, 2);
    let (_, errors) = program.bad(&["--formula", "traps", "--param", "clos=1"]);
    assert!(errors.contains("has no parameter `clos`; it has: close"), "{errors}");
    let close = crate::common::first_issue(&crate::common::engine(1))[30];
    let given = format!("close={}", close.1);
    let (code, errors) =
        program.bad(&["--formula", "traps", "--param", &given, "--from", "2016-01-01"]);
    assert!(code == 1 && errors.contains("formula `traps` failed on "), "{errors}");
    let (code, errors) = program.bad(&["formulas", "--add", "none.wasm"]);
    assert!(code == 1 && errors.contains("none.wasm"), "{errors}");
    std::fs::write(program.formulas.path().join("traps.wasm"), b"changed").unwrap();
    let output = program.run(&["formulas"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("is not what formulas.toml names"));
}
