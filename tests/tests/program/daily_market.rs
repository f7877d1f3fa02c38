//! A vendor whose data grow by a day at a time, for tests of what readers see meanwhile.
//!
//! In the state `n` there are `n` days, and the last two have a price that tells so: the day before the
//! last is corrected in every state. So a state is one or it is a mixture.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::JstDate;
use pricestore::DataDir;
use ranking::CancelToken;
use ranking::console::{Console, ConsoleOptions};
use serde_json::{Value, json};
use tests::http::{self, Reply};

use crate::update_fixture::{Server, command, query, vendor_row};

/// Issues of every day.
pub(crate) const ISSUES: usize = 12;
/// Rows as they are compared: date, code, close.
pub(crate) type Rows = BTreeSet<(String, String, u32)>;

/// The vendor, and the state that it is in.
pub(crate) struct GrowingVendor {
    server: Server,
    state: Arc<AtomicUsize>,
}

/// The day with this number, from 0: a weekday, all of which are open here.
pub(crate) fn day(number: usize) -> JstDate {
    let first: JstDate = "2025-01-06".parse().unwrap();
    first.iter_days().nth(number / 5 * 7 + number % 5).unwrap()
}

/// The code of an issue as it is stored.
pub(crate) fn code(issue: usize) -> String {
    (1_300 + issue).to_string()
}

fn close(day: usize, issue: usize, state: usize) -> u32 {
    let stamp = state.min(day + 2);
    u32::try_from(1_000 + 100 * issue + stamp).unwrap()
}

/// What is published in a state.
pub(crate) fn rows(state: usize) -> Rows {
    let row = |number, issue| (day(number).to_string(), code(issue), close(number, issue, state));
    (0..state).flat_map(|number| (0..ISSUES).map(move |issue| row(number, issue))).collect()
}

/// The state that rows are of; none where they are of several, or of issues that are not all.
pub(crate) fn state_of(found: &Rows, issues: usize) -> Result<usize, String> {
    let state = found.iter().map(|row| &row.0).collect::<BTreeSet<_>>().len();
    let codes: BTreeSet<&String> = found.iter().map(|row| &row.1).collect();
    let mut expected = rows(state);
    expected.retain(|row| codes.contains(&row.1));
    match codes.len() == issues && *found == expected {
        true => Ok(state),
        false => Err(format!("{} rows of {state} days are no state: {found:?}", found.len())),
    }
}

impl GrowingVendor {
    pub(crate) fn start() -> Self {
        let state = Arc::new(AtomicUsize::new(0));
        let told = Arc::clone(&state);
        let server = Server::start(move |path: &str| {
            Some((200, answer(path, told.load(Ordering::Acquire)).to_string()))
        });
        Self { server, state }
    }

    pub(crate) fn set(&self, state: usize) {
        self.state.store(state, Ordering::Release);
    }

    /// `kumiki data update` over the last days, which are fetched again.
    pub(crate) fn command(&self, folder: &Path, days: usize) -> Command {
        let last = day(self.state.load(Ordering::Acquire) - 1).to_string();
        let (address, days) = (self.server.address, days.to_string());
        let (vendor, public) = (format!("http://{address}/v2"), format!("http://{address}/q/"));
        let mut arguments = vec!["data", "update", "--to", &last, "--days", &days, "--refetch"];
        arguments.extend(["--vendor-url", &vendor, "--vendor-rate", "60000"]);
        arguments.extend(["--public-url", &public, "--public-rate", "60000", "--quiet"]);
        command(folder, &arguments)
    }

    /// The same to its good end.
    pub(crate) fn update(&self, folder: &Path, days: usize) {
        let output = self.command(folder, days).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let report = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{report}{told}");
    }
}

fn answer(path: &str, state: usize) -> Value {
    let date = |name| -> Option<JstDate> {
        let text = query(path, name)?;
        format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]).parse().ok()
    };
    if path.contains("/markets/calendar") {
        let (first, last) = (date("from").unwrap(), date("to").unwrap());
        let days = first.iter_days().take_while(|day| *day <= last).map(|day| {
            let weekend = day.to_epoch_days().rem_euclid(7);
            // 1970-01-01 was a Thursday.
            let is_open = ![2, 3].contains(&weekend);
            json!({ "Date": day.to_string(), "HolDiv": if is_open { "1" } else { "0" } })
        });
        return json!({ "data": days.collect::<Vec<_>>() });
    }
    let vendor_code = |issue| format!("{}0", code(issue));
    let number = date("date").and_then(|date| (0..state).find(|number| day(*number) == date));
    if path.contains("/equities/master") {
        let date = date("date").unwrap().to_string();
        // Each day has names of its own, so that a list tells of which state it is.
        let name = number.map_or("Name".to_owned(), |number| format!("Name {:05}", number + 1));
        let issue = |issue| {
            json!({ "Date": date, "Code": vendor_code(issue), "CoName": name, "ScaleCat": "-",
                    "Mkt": "0111" })
        };
        return json!({ "data": (0..ISSUES).map(issue).collect::<Vec<_>>() });
    }
    let rows = number.into_iter().flat_map(|number| {
        let date = day(number).to_string();
        (0..ISSUES)
            .map(move |issue| vendor_row(&date, &vendor_code(issue), close(number, issue, state)))
    });
    json!({ "data": rows.collect::<Vec<_>>() })
}

/// What a ranking over all days says, and the generation that it was made from.
pub(crate) fn served(address: SocketAddr) -> Result<(usize, Option<String>), String> {
    let query = format!(
        "{{ stockRankingRange(fromDate: \"2025-01-01\", toDate: \"2027-12-31\", sortBy: \"Close\", \
         limit: {ISSUES}) {{ date code close }} dataset {{ generation }} }}"
    );
    let reply = http::graphql(address, &json!({ "query": query }).to_string());
    let answer: Value = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
    let found = answer["data"]["stockRankingRange"].as_array();
    let found = found.ok_or_else(|| format!("{} {answer}", reply.status))?.iter().map(|row| {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        (text("date"), text("code"), row["close"].as_f64().unwrap_or(0.0) as u32)
    });
    let generation = reply.header("kumiki-generation").map(str::to_owned);
    if answer["data"]["dataset"]["generation"].as_str() != generation.as_deref() {
        return Err(format!("the header says {generation:?}: {answer}"));
    }
    Ok((state_of(&found.collect(), ISSUES)?, generation))
}

/// What a published database says, opened anew as any program does; of one issue or of all.
pub(crate) fn opened(data: &DataDir, issues: usize) -> Result<usize, String> {
    let found = table(data, "SELECT date::VARCHAR, code, close::INTEGER FROM daily")?;
    let rows = found.into_iter().map(|row| {
        let [date, code, close] = row.try_into().map_err(|row| format!("{row:?}"))?;
        Ok((date, code, close.parse().unwrap_or(0)))
    });
    state_of(&rows.collect::<Result<Rows, String>>()?, issues)
}

/// The rows of a statement over the combined database.
pub(crate) fn table(data: &DataDir, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let console = Console::open(data, &ConsoleOptions::default());
    let console = console.map_err(|error| error.to_string())?;
    let table = console.query(sql, &CancelToken::new()).map_err(|error| error.to_string())?;
    let row = |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default).collect();
    Ok(table.rows.into_iter().map(row).collect())
}

/// A copy of an issue's database in a data directory of its own.
pub(crate) fn issue_beside(data: &Path, issue: usize, folder: &Path) -> DataDir {
    let beside = DataDir::new(folder.join(code(issue)));
    fs::create_dir_all(beside.mother().parent().unwrap()).unwrap();
    let source = data.join("jp").join("stocks_daily").join(format!("{}.db", code(issue)));
    fs::copy(source, beside.mother()).unwrap();
    beside
}

/// The generation that a service hands out.
pub(crate) fn generation_of(address: SocketAddr) -> pricestore::generation::Generation {
    let reply = http::request(address, "GET /jp/generation.json", &[], &[]);
    assert_eq!(reply.status, 200, "{}", reply.text());
    pricestore::generation::Generation::from_bytes(&reply.body).unwrap()
}

/// The state that a generation has.
pub(crate) fn state_at(last_date: &str) -> usize {
    (0..1_000).find(|number| day(*number).to_string() == last_date).unwrap() + 1
}

/// Holds a downloaded file against the generation that its header names: whether it names this one.
pub(crate) fn is_of(
    generation: &pricestore::generation::Generation,
    path: &str,
    reply: &Reply,
    aside: &Path,
) -> bool {
    if reply.header("kumiki-generation") != Some(&generation.generation) {
        return false;
    }
    fs::write(aside, &reply.body).unwrap();
    let found = pricestore::generation::digest_of(aside).unwrap();
    let file = generation.file(path).unwrap();
    assert_eq!(found, (file.bytes, file.xxh128.clone()), "{path} of {}", generation.generation);
    true
}

/// Generations by name, and the state of each; one name has one state.
#[derive(Debug, Default)]
pub(crate) struct KnownGenerations(BTreeMap<String, usize>);

impl KnownGenerations {
    pub(crate) fn add(&mut self, name: &str, state: usize) -> Result<(), String> {
        match self.0.insert(name.to_owned(), state) {
            Some(other) if other != state => Err(format!("{name} was {other} and is {state}")),
            _ => Ok(()),
        }
    }
}
