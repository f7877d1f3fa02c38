//! Formula modules on the command line.

use std::process::{Command, Output};

use serde_json::Value;
use tests::{built, wat};
use wit_component::StringEncoding;

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
        command.arg("rank").args(arguments).env("DATA_DIR", &*DATA);
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

/// What fails while it is made fails by name, before it is listed and after.
#[test]
fn a_module_that_cannot_be_made_is_told_by_name() {
    let program = Program::new();
    let folder = program.formulas.path();
    let list = folder.join("formulas.toml");
    let made = folder.join("elsewhere");
    std::fs::create_dir(&made).unwrap();
    for (name, export, what, advice) in [
        (
            "start-loops",
            "instantiation",
            "used up its fuel of 100000000 units",
            "lifecycle-fuel=200000000",
        ),
        ("start-traps", "instantiation", "trapped: ", ""),
        (
            "initialize-loops",
            "_initialize",
            "used up its fuel of 100000000 units",
            "lifecycle-fuel=200000000",
        ),
        (
            "many-memories",
            "instantiation",
            "bytes of memory; 67108864 are allowed",
            "memory=128MiB",
        ),
        ("large-table", "instantiation", "produced 20001 table entries", "table=40000"),
    ] {
        let bytes = wat::formula(&wat::hostile_formula(name), StringEncoding::UTF8);
        let sha256 = sandbox::sha256(&bytes);
        let file = made.join(format!("{name}.wasm"));
        std::fs::write(&file, &bytes).unwrap();
        let flag = format!("`--guest-limit {advice}` allows more");
        let is_told = |(code, errors): (i32, String)| {
            assert_eq!(code, 1, "{name}: {errors}");
            let begin = format!("formula `{name}` ({}), in `{export}`, ", &sha256[..12]);
            assert!(errors.contains(&begin) && errors.contains(what), "{begin}{what}: {errors}");
            assert!(advice.is_empty() || errors.contains(&flag), "{name}, {flag}: {errors}");
            assert!(!errors.contains("the WebAssembly engine"), "{name}: {errors}");
        };
        is_told(program.bad(&["formulas", "--add", &file.display().to_string()]));
        assert!(!list.exists(), "what cannot be made is not listed");
        std::fs::write(folder.join("hostile.wasm"), &bytes).unwrap();
        let listed = format!(
            "[[formula]]\nname = \"{name}\"\nfile = \"hostile.wasm\"\nsha256 = \"{sha256}\"\n"
        );
        std::fs::write(&list, listed).unwrap();
        is_told(program.bad(&["--formula", name]));
        std::fs::remove_file(&list).unwrap();
    }
}

/// A function that is too much for a compiler, and one that takes too long.
#[test]
fn a_module_that_is_too_much_to_compile_is_told_by_name() {
    let program = Program::new();
    let file = file("formula-mirror").display().to_string();
    let add = ["formulas", "--add", &file];
    let (code, errors) = program.bad(&[&add[..], &["--guest-limit", "function=9"]].concat());
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("formula `formula-mirror` ("), "{errors}");
    assert!(
        errors.contains("units to compile; 9 are allowed; `--guest-limit function=18`"),
        "{errors}"
    );
    let (code, errors) = program.bad(&[&add[..], &["--guest-limit", "compile=1"]].concat());
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains(", in `compile`, was not compiled within 1 ms; "), "{errors}");
    program.good(&add);
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
    let (code, errors) = program.bad(&["--formula", "traps", "--param", "clos=1"]);
    assert!(code == 2 && errors.contains("has no parameter `clos`; it has: close"), "{errors}");
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
    assert!(String::from_utf8_lossy(&output.stdout).contains("does not match formulas.toml"));
}
