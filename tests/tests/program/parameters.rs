//! The parameters that a run was made with, defaults included: in its manifest, on its page, in
//! `strategy check`, and compared by `replay verify`.

use std::fs;

use domain::GuestLimit;
use serde_json::{Value, json};
use tests::user_folder::UserFolder;
use tests::wat;
use wit_component::StringEncoding;

const RUN: &str = "replay run sma-cross --data data --instrument 7203.TSE --quiet";

fn manifest_of(user: &UserFolder, folder: &str) -> Value {
    serde_json::from_slice(&fs::read(user.path(folder).join("manifest.json")).unwrap()).unwrap()
}

#[test]
fn the_manifest_has_given_and_default_ones() {
    let user = UserFolder::with_sample(1, 500);
    user.good(&format!("{RUN} --param slow=30 --out run"));
    let manifest = manifest_of(&user, "run");
    assert_eq!(manifest["parameters"], json!({ "slow": 30 }));
    let effective = &manifest["parameters_effective"];
    assert_eq!(effective.to_string(), r#"{"fast":20,"quantity":100,"slow":30}"#, "sorted");
    let page = fs::read_to_string(user.path("run/report.html")).unwrap();
    assert!(page.contains(r#""parameters_effective":{"fast":20,"quantity":100,"slow":30}"#));

    let same = user.said("replay verify run --quiet");
    assert_eq!(same.code, 0, "{same:?}");
    let changed = fs::read_to_string(user.path("run/manifest.json")).unwrap();
    let changed = changed.replace("\"fast\": 20", "\"fast\": 21");
    fs::write(user.path("run/manifest.json"), changed).unwrap();
    let said = user.said("replay verify run --quiet");
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("parameters_effective"), "{said:?}");
}

#[test]
fn a_default_that_is_given_is_no_difference() {
    let user = UserFolder::with_sample(1, 500);
    user.good(&format!("{RUN} --out default"));
    user.good(&format!("{RUN} --param fast=20 --out given"));
    user.good(&format!("{RUN} --param slow=50 --out other"));
    let compared = |folders: &str| -> Vec<String> {
        let text = user.good(&format!("replay compare {folders} --format json"));
        let whole: Value = serde_json::from_str(&text).unwrap();
        let lines = whole["differences"].as_array().unwrap();
        lines.iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(compared("default given"), [""; 0]);
    assert_eq!(compared("default other"), ["parameters.slow"]);
}

#[test]
fn a_check_lists_them_with_their_defaults() {
    let user = UserFolder::empty();
    let plain = user.good("strategy check sma-cross");
    assert!(plain.contains("fast=20, quantity=100, slow=100"), "{plain}");
    let changed = user.good("strategy check sma-cross --param fast=5");
    assert!(changed.contains("fast=5 (default 20), quantity=100, slow=100"), "{changed}");
    let json = |arguments: &str| -> Value {
        serde_json::from_str(&user.said(&format!("{arguments} --format json")).out).unwrap()
    };
    let defaults = json!({ "fast": 20, "quantity": 100, "slow": 100 });
    let checked = json("strategy check sma-cross --param fast=5");
    assert_eq!(checked["parameter_defaults"], defaults);
    assert_eq!(checked["parameters_effective"]["fast"], 5);
    // It refuses these, and still tells what there is.
    let refused = json("strategy check sma-cross --param fats=5");
    assert!(refused["init_error"].as_str().unwrap().contains("unknown parameter `fats`"));
    assert_eq!(refused["parameters_effective"], json!({}));
    assert_eq!(refused["parameter_defaults"], defaults);
    let none = user.good("strategy check buy-and-hold --guest-limit parameters=1");
    assert!(none.contains("quantity=100"), "{none}");
}

/// Fractions whose last digit a reader that is nearly right gets wrong, as given and as a strategy reports them: a
/// manifest that were read as other numbers than it says would be another one.
#[test]
fn fractions_are_read_back_as_they_were_written() {
    let user = UserFolder::with_sample(1, 200);
    let fractions = [
        "51.248178375505404",
        "-93.31137037688033",
        "-36.573994842753436",
        "52.314008204106244",
        "97.45365320034685",
        "31.245270191439438",
        "0.30000000000000004",
    ];
    let reported = format!("[{}]", fractions.join(", "));
    let module = wat::whole("reports")
        .replace("N_BYTES", "3")
        .replace("V_BYTES", &reported.len().to_string())
        .replace("NAME", "own")
        .replace("VALUE", &reported)
        .replace("INIT", "call $tell")
        .replace("START", "");
    let strategy = user.path("reports.wasm");
    fs::write(&strategy, wat::component(&module, StringEncoding::UTF8)).unwrap();
    let given: Vec<String> =
        fractions.iter().enumerate().map(|(at, text)| format!("--param x{at}={text}")).collect();
    let run = RUN.replace("sma-cross", &strategy.display().to_string());
    user.good(&format!("{run} {} --out run", given.join(" ")));
    let manifest = fs::read_to_string(user.path("run/manifest.json")).unwrap();
    for (at, text) in fractions.iter().enumerate() {
        assert!(manifest.contains(&format!("\n    \"x{at}\": {text}")), "{text}: {manifest}");
    }
    assert!(manifest.contains(&format!("\n    \"own\": {reported}\n")), "{manifest}");
    let verify = format!("replay verify run --quiet --strategy {}", strategy.display());
    let same = user.said(&verify);
    assert_eq!(same.code, 0, "{same:?}");
    // The next number is another one.
    let changed = manifest.replace("[51.248178375505404,", "[51.24817837550541,");
    assert_ne!(changed, manifest);
    fs::write(user.path("run/manifest.json"), changed).unwrap();
    assert_eq!(user.said(&verify).code, 4);
}

/// What no number of 64 bits is must not become another number in silence.
#[test]
fn numbers_out_of_reach_are_errors() {
    let user = UserFolder::with_sample(1, 200);
    for (text, expected) in [
        (
            "123456789012345678901",
            "is an integer beyond 64 bits; write one from -9223372036854775808",
        ),
        ("-9223372036854775809", "is an integer beyond 64 bits"),
        ("1e-400", "is nearer to 0 than any fraction of 64 bits; write 0, or"),
        ("-1e400", "is beyond the largest fraction of 64 bits, about 1.8e308; write a smaller"),
    ] {
        for command in [RUN, "strategy check sma-cross"] {
            let (code, errors) = user.bad(&format!("{command} --param fast={text}"));
            assert_eq!(code, 2, "{errors}");
            assert!(errors.contains(&format!("`{text}` {expected}")), "{errors}");
        }
    }
    let strategy = user.path("reports.wasm");
    let module = wat::whole("reports")
        .replace("N_BYTES", "3")
        .replace("V_BYTES", "1")
        .replace("NAME", "own")
        .replace("VALUE", "1")
        .replace("INIT", "")
        .replace("START", "");
    fs::write(&strategy, wat::component(&module, StringEncoding::UTF8)).unwrap();
    let run = RUN.replace("sma-cross", &strategy.display().to_string());
    user.good(&format!("{run} --param x=18446744073709551615 --param y=0e-400 --out run"));
    assert_eq!(manifest_of(&user, "run")["parameters"]["x"], u64::MAX);
}

#[test]
fn their_limits_are_the_users() {
    let user = UserFolder::with_sample(1, 200);
    for (limit, more) in
        [("parameters=2", GuestLimit::Parameters), ("parameter=6", GuestLimit::Parameter)]
    {
        let (code, errors) = user.bad(&format!("{RUN} --guest-limit {limit}"));
        assert_eq!(code, 3, "{errors}");
        assert!(errors.contains(more.what()), "{errors}");
        assert!(errors.contains(&format!("`--guest-limit {}=", more.name())), "{errors}");
    }
}
