//! How a replica stands to its primary, for `/health` and `/metrics`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::TsNanos;
use domain::clock::{Stopwatch, wall_now};
use pricestore::generation::Generation;
use serde_json::{Value, json};

use super::{BACK_OFF_MAX, DAMAGED_SHOWN_MAX, QUIET_MAX, ReplicaError, ReplicaOptions};

/// How a replica stands to its primary; shared by who copies and who tells.
#[derive(Debug, Clone)]
pub struct ReplicaStatus(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    generation: Option<String>,
    /// The last business day of that generation.
    last_date: Option<String>,
    /// A later last day that a generation here had before.
    went_back_from: Option<String>,
    primary: Option<(String, String)>,
    /// Since when the primary has another generation.
    behind: Option<Stopwatch>,
    contact: Option<Stopwatch>,
    /// When an attempt was heard of last: it ended, or something came from the primary.
    heard: Option<(Stopwatch, TsNanos)>,
    /// For how long that may be before the copy is stale, whatever the attempt is about.
    quiet_max: Duration,
    error: Option<String>,
    /// Since when every attempt has failed.
    failing: Option<(Stopwatch, TsNanos)>,
    /// For how long that may be before the copy is stale.
    stale_after: Duration,
    /// The files in place that are gone or damaged.
    damaged: BTreeSet<String>,
    /// The generation of the primary that was thrown away, and why.
    refused: Option<(String, String)>,
    /// Whether the databases of single issues are copied too.
    copies_issues: bool,
    /// The servers behind the generation that we have.
    servers: String,
    numbers: ReplicaNumbers,
    /// Bytes of the copy that is made now: there already, and in all.
    copying: Option<(u64, u64)>,
}

impl State {
    fn hear(&mut self) {
        self.heard = Some((Stopwatch::start(), wall_now()));
    }

    /// The first files that are gone or damaged.
    fn shown_damage(&self) -> Vec<&str> {
        self.damaged.iter().take(DAMAGED_SHOWN_MAX).map(String::as_str).collect()
    }
}

/// Numbers of a replica.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplicaNumbers {
    /// For how long a newer generation of the primary is known, in seconds from 1; 0 where none is.
    pub behind_seconds: u64,
    /// Attempts that failed, in a row.
    pub failures: u32,
    /// Generations that were taken over since the start.
    pub generations: u64,
    /// Bytes that were copied since the start.
    pub copied_bytes: u64,
    /// For how long every attempt has failed, in seconds from 1; 0 after one that went well.
    pub failing_seconds: u64,
    /// Files of the copy that are gone or damaged.
    pub damaged_files: u64,
}

/// What is wrong with a copy that is served all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// The status of `/health`.
    pub(crate) status: &'static str,
    /// Since when, what and why, for people.
    pub(crate) message: String,
}

impl ReplicaStatus {
    /// Of a folder that may hold a copy already.
    pub(super) fn new(options: &ReplicaOptions) -> Self {
        let found = Generation::load(&options.data).ok().flatten();
        let (generation, last_date) =
            found.map(|found| (found.generation, found.last_date)).unzip();
        let (stale_after, copies_issues) = (options.stale_after, options.issues);
        let pause = options.interval.max(BACK_OFF_MAX);
        let quiet_max = stale_after.saturating_add(QUIET_MAX).saturating_add(pause);
        let known = State { generation, last_date, ..State::default() };
        let mut state = State { stale_after, quiet_max, copies_issues, ..known };
        state.hear();
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The primary has answered.
    pub(super) fn answered(&self) {
        let mut state = self.state();
        state.contact = Some(Stopwatch::start());
        state.hear();
    }

    /// The primary has this generation, of which so many bytes are missing here.
    pub(super) fn wants(&self, primary: &Generation, bytes: u64) {
        let mut state = self.state();
        if state.generation.as_ref() != Some(&primary.generation) && state.behind.is_none() {
            state.behind = Some(Stopwatch::start());
        }
        state.primary = Some((primary.generation.clone(), primary.last_date.clone()));
        state.copying = (bytes > 0).then_some((0, bytes));
    }

    /// So many more bytes are here.
    pub(super) fn copied(&self, bytes: u64) {
        let mut state = self.state();
        state.numbers.copied_bytes += bytes;
        state.hear();
        if let Some((done, _)) = &mut state.copying {
            *done += bytes;
        }
    }

    /// A generation is in place, which ends on a day; gives the later day on which one before it has ended.
    pub(super) fn took(
        &self,
        (generation, last_date): (&str, &str),
        servers: String,
    ) -> Option<String> {
        let mut state = self.state();
        let latest = state.went_back_from.take().max(state.last_date.take());
        state.went_back_from = latest.filter(|latest| latest.as_str() > last_date);
        state.last_date = Some(last_date.to_owned());
        if state.generation.as_deref() != Some(generation) {
            state.numbers.generations += 1;
        }
        state.generation = Some(generation.to_owned());
        (state.servers, state.behind, state.copying) = (servers, None, None);
        (state.numbers.damaged_files, state.damaged) = (0, BTreeSet::new());
        state.went_back_from.clone()
    }

    /// No generation of the primary is refused any more.
    pub(super) fn forget_refused(&self) {
        self.state().refused = None;
    }

    /// These files in place are gone or damaged.
    pub(super) fn damaged(&self, files: &BTreeSet<String>) {
        let mut state = self.state();
        state.numbers.damaged_files = files.len() as u64;
        state.damaged.clone_from(files);
    }

    /// Whether a file in place is known to be another one than its generation says, by its path below the
    /// data directory.
    pub(crate) fn is_damaged(&self, path: &str) -> bool {
        self.state().damaged.contains(path)
    }

    /// Whether the databases of single issues are copied too.
    pub(crate) fn copies_issues(&self) -> bool {
        self.state().copies_issues
    }

    /// An attempt ended well.
    pub(super) fn good(&self) {
        let mut state = self.state();
        (state.error, state.numbers.failures, state.failing) = (None, 0, None);
        state.hear();
    }

    /// An attempt failed, with the generation of the primary that is refused by this failure; tells how many
    /// failures there were in a row, and whether this is another one than the one before. Who asks sees a
    /// refusal together with its reason.
    pub(super) fn failed(&self, error: &ReplicaError, refused: Option<&str>) -> (u32, bool) {
        let mut state = self.state();
        state.numbers.failures = state.numbers.failures.saturating_add(1);
        let text = error.to_string();
        let is_new = state.error.as_ref() != Some(&text);
        if let Some(generation) = refused {
            state.copying = None;
            state.refused = Some((generation.to_owned(), text.clone()));
        }
        state.error = Some(text);
        state.failing.get_or_insert_with(|| (Stopwatch::start(), wall_now()));
        state.hear();
        (state.numbers.failures, is_new)
    }

    /// The servers behind the generation that is here.
    pub(crate) fn servers(&self) -> String {
        self.state().servers.clone()
    }

    /// The numbers now.
    #[must_use]
    pub fn numbers(&self) -> ReplicaNumbers {
        self.state().numbers()
    }

    /// For `/health`: what is wrong with the copy, the worst first, and all of it, of one moment.
    pub(crate) fn health(&self) -> (Option<Trouble>, Value) {
        let state = self.state();
        (state.trouble(), state.told())
    }
}

impl State {
    fn numbers(&self) -> ReplicaNumbers {
        let seconds = |since: &Stopwatch| since.elapsed().as_secs().max(1);
        ReplicaNumbers {
            behind_seconds: self.behind.as_ref().map_or(0, seconds),
            failing_seconds: self.failing.as_ref().map_or(0, |(since, _)| seconds(since)),
            ..self.numbers
        }
    }

    fn trouble(&self) -> Option<Trouble> {
        let why = self.error.as_deref().unwrap_or("in progress");
        if !self.damaged.is_empty() {
            let more = self.damaged.len().saturating_sub(DAMAGED_SHOWN_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let message = format!(
                "files of the copy are gone or damaged: {}{more}; the replica copies them again ({why})",
                self.shown_damage().join(", ")
            );
            return Some(Trouble { status: "damaged", message });
        }
        if let Some((generation, why)) = &self.refused {
            let message = format!("the primary's generation {generation} is not used: {why}");
            return Some(Trouble { status: "refused", message });
        }
        let is_over = |since: &Option<(Stopwatch, TsNanos)>, most: Duration| {
            since.as_ref().filter(|(since, _)| since.elapsed() >= most).map(|(_, when)| *when)
        };
        let stale = |message| Trouble { status: "stale", message };
        if let Some(when) = is_over(&self.failing, self.stale_after) {
            return Some(stale(format!("nothing was copied since {when}: {why}")));
        }
        let when = is_over(&self.heard, self.quiet_max)?;
        Some(stale(format!(
            "the copying thread gave its last sign of life at {when}; start the service again"
        )))
    }

    fn told(&self) -> Value {
        let numbers = self.numbers();
        let (generation, last_date) = self.primary.clone().unzip();
        let contact = self.contact.as_ref().map(|since| since.elapsed().as_secs());
        json!({
            "generation": self.generation,
            "primary_generation": generation,
            "primary_last_date": last_date,
            "went_back_from": self.went_back_from,
            "refused_generation": self.refused.as_ref().map(|(generation, _)| generation),
            "behind_seconds": numbers.behind_seconds,
            "last_contact_seconds": contact,
            "failures": numbers.failures,
            "failing_since": self.failing.as_ref().map(|(_, when)| when.to_string()),
            "failing_seconds": numbers.failing_seconds,
            "last_error": self.error,
            "damaged_files": numbers.damaged_files,
            "damaged": self.shown_damage(),
            "copying_bytes": self.copying.map(|(_, all)| all),
            "copied_bytes": self.copying.map(|(done, _)| done),
        })
    }
}

#[cfg(test)]
mod tests {
    use pricestore::DataDir;

    use super::*;

    #[test]
    fn a_copy_is_stale_after_failures_and_after_silence() {
        let folder = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3_600);
        let options = ReplicaOptions {
            data: DataDir::new(folder.path()),
            primary: http_client::Url::parse("http://127.0.0.1:8080").unwrap(),
            token: None,
            interval: hour,
            disk_bytes: 1,
            issues: false,
            stale_after: hour,
            patience: hour,
        };
        let status = ReplicaStatus::new(&options);
        assert_eq!(status.state().quiet_max, 2 * hour + QUIET_MAX);
        let told = || status.health().0.map(|trouble| (trouble.status, trouble.message));
        status.answered();
        assert_eq!(told(), None);
        // Nobody has to say that an attempt has failed.
        status.state().quiet_max = Duration::ZERO;
        let (word, message) = told().unwrap();
        assert_eq!(word, "stale");
        assert!(
            message.starts_with("the copying thread gave its last sign of life at "),
            "{message}"
        );
        status.state().quiet_max = hour;
        status.failed(&ReplicaError::BrokenDown("no thread".to_owned()), None);
        assert_eq!(told(), None);
        status.state().stale_after = Duration::ZERO;
        let (word, message) = told().unwrap();
        assert!(word == "stale" && message.ends_with("repeated: no thread"), "{message}");
        status.good();
        assert_eq!(told(), None);
    }
}
