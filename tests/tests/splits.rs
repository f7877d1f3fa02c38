//! A split that the vendor's daily file tells reaches a run of the program, cold and cached.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::fs::File;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tests::user_folder::UserFolder;

const RUN: &str = "replay run buy-and-hold --data data --instrument 7203.TSE --quiet --format json";

fn run(user: &UserFolder) -> Value {
    let said = user.said(RUN);
    assert_eq!(said.code, 0, "{}", said.errors);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn a_split_of_the_daily_file_reaches_the_run() {
    let user = UserFolder::empty();
    user.good(
        "data sample --out data --instrument 7203.TSE --days 2 --seed 5 --trades-per-day 300",
    );
    let plain = run(&user);
    let held = plain["summary"]["position_end"].as_i64().unwrap();
    assert!(held > 0, "{}", plain["summary"]);
    let (first, second) = (&plain["manifest"]["start"], &plain["manifest"]["end"]);
    let (first, second) = (first.as_str().unwrap(), second.as_str().unwrap());
    assert_eq!(first[..7], second[..7], "one month");
    let month = first[..7].replace('-', "");
    let path = user.path(&format!("data/equities_bars_daily_{month}.csv.gz"));
    let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    write!(
        packed,
        "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n\
         {first},72030,1.0,1.0,1.0,1.0,0,0,100,100,1.0\n\
         {second},72030,1.0,1.0,1.0,1.0,0,0,100,100,0.5\n\
         {second},99840,1.0,1.0,1.0,1.0,0,0,100,100,0.1\n"
    )
    .unwrap();
    packed.finish().unwrap();
    let split = run(&user);
    assert_eq!(split["summary"]["position_end"].as_i64().unwrap(), held * 2);
    let inputs = split["manifest"]["inputs"].as_array().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(inputs.iter().any(|input| input["file"] == name), "{inputs:?}");
    let digest = |run: &Value| run["manifest"]["event_log_digest"].clone();
    assert_ne!(digest(&plain), digest(&split));
    assert_eq!(digest(&run(&user)), digest(&split), "from the cache");
}
