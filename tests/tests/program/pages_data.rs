//! The blocks of the pages that need the vendor's key, word for word, with a vendor of this machine. All other blocks
//! run in `docs_blocks`.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use domain::{JstDate, clock, holidays};
use pricestore::DataDir;
use serde_json::json;

use crate::docs_blocks::commands_that_need;
use crate::update_fixture::{Server, VENDOR_KEY, daily_files, query, texts, vendor_row};

/// What these blocks have, each once: an update that takes the days of a first run comes first.
const COMMANDS: [&str; 7] = [
    "export KUMIKI_JQUANTS_API_KEY=...",
    "kumiki data update --prices prices --days 1000",
    "kumiki data update --prices prices",
    "kumiki data update --prices prices --accept 2026-01-05",
    "kumiki data calendar vendor",
    "kumiki data instruments vendor",
    "kumiki data update --prices prices --from-files jquants",
];
/// Issues that the vendor has.
const CODES: [&str; 3] = ["130A0", "13010", "72030"];

fn close(date: JstDate) -> u32 {
    u32::try_from(1_000 + date.to_epoch_days().rem_euclid(97)).unwrap()
}

/// A vendor that has three issues on every business day.
fn vendor() -> Server {
    Server::start(|path: &str| {
        let date = |name| -> Option<JstDate> {
            let text = query(path, name)?;
            format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]).parse().ok()
        };
        if path.contains("/markets/calendar") {
            let (first, last) = (date("from").unwrap(), date("to").unwrap());
            let days = first.iter_days().take_while(|day| *day <= last).map(|day| {
                let division = if holidays::is_closed(day) { "0" } else { "1" };
                json!({ "Date": day.to_string(), "HolDiv": division })
            });
            return Some((200, json!({ "data": days.collect::<Vec<_>>() }).to_string()));
        }
        let Some(date) = date("date") else {
            return Some((200, json!({ "data": [] }).to_string()));
        };
        let rows = CODES.map(|code| match path.contains("/equities/master") {
            true => {
                json!({ "Date": date.to_string(), "Code": code, "CoName": "Name", "ScaleCat": "-",
                            "Mkt": "0111" })
            }
            false => vendor_row(&date.to_string(), code, close(date)),
        });
        let rows = if holidays::is_closed(date) { Vec::new() } else { rows.to_vec() };
        Some((200, json!({ "data": rows }).to_string()))
    })
}

#[test]
fn the_commands_that_need_a_vendor_do_what_they_say() {
    assert_eq!(commands_that_need("needs-vendor"), COMMANDS);
    let (folder, vendor) = (tempfile::tempdir().unwrap(), vendor());
    let bin = folder.path().join("bin");
    for name in [&bin, &folder.path().join("jquants")] {
        fs::create_dir(name).unwrap();
    }
    symlink(tests::built::kumiki(), bin.join("kumiki")).unwrap();
    // What the vendor's files have is what it answers.
    let today = clock::wall_now().jst_date();
    let before = std::iter::successors(today.pred_opt(), JstDate::pred_opt);
    let date = before.skip(30).find(|date| !holidays::is_closed(*date)).unwrap();
    let rows = CODES.map(|code| {
        let c = close(date);
        format!("{date},{code},{c},{},{},{c},0,0,{},1000.5,1.0\n", c + 2, c - 1, 100 * c)
    });
    let name = format!("equities_bars_daily_{}.csv.gz", date.to_string().replace('-', ""));
    daily_files(&folder.path().join("jquants"), &[(&name, &rows.concat())]);

    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let address = vendor.address;
    for text in COMMANDS.into_iter().filter(|text| !text.starts_with("export ")) {
        // Only the addresses are other ones.
        let mut text = format!("{text} --vendor-url http://{address}/v2 --vendor-rate 60000");
        if text.starts_with("kumiki data update ") {
            text += &format!(" --public-url http://{address}/q/");
        }
        let mut command = Command::new("sh");
        command.args(["-c", &text]).current_dir(folder.path()).stdin(Stdio::null());
        for name in ["DATA_DIR", "STOCKDATA_CACHE_DIR", "CREDENTIALS_DIRECTORY"] {
            command.env_remove(name);
        }
        command.env("PATH", &path).env("KUMIKI_KEY_STORE", "off");
        let output = command.env("KUMIKI_JQUANTS_API_KEY", VENDOR_KEY).output().unwrap();
        let (out, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(0), "{text}\n{out}\n{errors}");
    }

    let data = DataDir::new(folder.path().join("prices"));
    for name in ["mother.db", "7203.db"] {
        assert!(data.mother().with_file_name(name).is_file(), "{name}");
    }
    // The first run had all days, and later ones asked for the last ones again.
    let days = vendor.take_asked().iter().filter(|path| path.contains("bars/daily")).count();
    assert!((900..1_010).contains(&days), "{days}");
    for (file, rows) in [("markets_calendar.csv", 365), ("instruments.csv", CODES.len())] {
        let text = fs::read_to_string(folder.path().join("vendor").join(file)).unwrap();
        assert!(text.lines().count() > rows, "{file}: {text}");
    }
}

const OWN_DATA: &str = include_str!("../../../docs/howto/own-data.md");
const SCHEDULE: &str = include_str!("../../../docs/howto/schedule.md");
/// What these pages promise, by its first words, and the tests that hold it.
const PROMISES: [(&str, &str, &[&str]); 16] = [
    (OWN_DATA, "It counts what is wrong or odd", &["a_check_counts_and_goes_on"]),
    (
        OWN_DATA,
        "Without further files a run uses lots of 100 shares",
        &["the_user_goes_before_the_table_and_the_table_before_prices"],
    ),
    (
        OWN_DATA,
        "Both make the folder where there is none",
        &["the_commands_that_need_a_vendor_do_what_they_say"],
    ),
    (
        OWN_DATA,
        "If two lists differ, more lists are fetched",
        &[
            "lists_are_asked_for_around_each_day_of_change",
            "lists_of_issues_say_lots_and_price_steps_to_runs",
        ],
    ),
    (
        OWN_DATA,
        "No list tells the lots of ETFs",
        &["every_choice_that_an_error_names_is_a_pair_of_the_exchange_and_is_taken"],
    ),
    (OWN_DATA, "The text is then the same", &["a_conversion_comes_back_byte_for_byte"]),
    (OWN_DATA, "`kumiki data info data` shows", &["a_folder_is_described"]),
    (
        SCHEDULE,
        "The first run loads four years",
        &["the_commands_that_need_a_vendor_do_what_they_say"],
    ),
    (
        SCHEDULE,
        "Without network, history comes",
        &["files", "history_comes_from_files_without_network"],
    ),
    (SCHEDULE, "A day is due from 16:30 in Japan", &["due"]),
    (SCHEDULE, "On a holiday there is nothing to fetch", &["business_day"]),
    (SCHEDULE, "A run that was missed needs no care", &["asked"]),
    (
        SCHEDULE,
        "A second job in the same folder is refused",
        &["one_job_runs_at_a_time_and_ctrl_c_ends_it_cleanly"],
    ),
    (
        SCHEDULE,
        "Readers see the old state or the new one",
        &["a_killed_update_leaves_whole_states_and_the_next_one_ends_it"],
    ),
    (
        SCHEDULE,
        "A day that looks strange waits for you",
        &["accept", "a_strange_day_waits_for_a_person"],
    ),
    (SCHEDULE, "`--accept` works with `--from-files` too", &["files_are_accepted_as_answers_are"]),
];
/// Where these tests are.
const SOURCES: [&str; 8] = [
    include_str!("pages_data.rs"),
    include_str!("data_tools.rs"),
    include_str!("instrument_table.rs"),
    include_str!("update_kills.rs"),
    include_str!("update_program.rs"),
    include_str!("../update_rules.rs"),
    include_str!("../../../host/marketdata/src/master.rs"),
    include_str!("../../../host/replay/src/instruments.rs"),
];

#[test]
fn promises_of_the_pages_on_data_have_tests() {
    for (page, begin, tests) in PROMISES {
        let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(begin), "{begin:?} is on the page no more");
        for test in tests {
            let name = format!("fn {test}()");
            assert!(SOURCES.iter().any(|source| source.contains(&name)), "{test}");
        }
    }
}
