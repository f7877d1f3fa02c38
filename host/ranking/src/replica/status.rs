//! How a replica stands to its primary, for `/health` and `/metrics`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::clock::Stopwatch;
use pricestore::DataDir;
use pricestore::generation::Generation;
use serde_json::{Value, json};

use super::ReplicaError;

/// How a replica stands to its primary; shared by who copies and who tells.
#[derive(Debug, Clone)]
pub struct ReplicaStatus(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    generation: Option<String>,
    primary: Option<(String, String)>,
    /// Since when the primary has another generation.
    behind: Option<Stopwatch>,
    contact: Option<Stopwatch>,
    error: Option<String>,
    /// The servers behind the generation that we have.
    servers: String,
    numbers: ReplicaNumbers,
    /// Bytes of the copy that is made now: there already, and in all.
    copying: Option<(u64, u64)>,
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
}

impl ReplicaStatus {
    /// Of a folder that may hold a copy already.
    pub(super) fn new(data: &DataDir) -> Self {
        let generation = Generation::load(data).ok().flatten().map(|found| found.generation);
        Self(Arc::new(Mutex::new(State { generation, ..State::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The primary has answered.
    pub(super) fn answered(&self) {
        self.state().contact = Some(Stopwatch::start());
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
        if let Some((done, _)) = &mut state.copying {
            *done += bytes;
        }
    }

    /// A generation is in place.
    pub(super) fn took(&self, generation: &str, servers: String) {
        let mut state = self.state();
        if state.generation.as_deref() != Some(generation) {
            state.numbers.generations += 1;
        }
        state.generation = Some(generation.to_owned());
        (state.servers, state.behind, state.copying) = (servers, None, None);
    }

    /// An attempt ended well.
    pub(super) fn good(&self) {
        let mut state = self.state();
        (state.error, state.numbers.failures) = (None, 0);
    }

    /// An attempt failed; tells how many there were in a row, and whether this is another failure than
    /// the one before.
    pub(super) fn failed(&self, error: &ReplicaError) -> (u32, bool) {
        let mut state = self.state();
        state.numbers.failures = state.numbers.failures.saturating_add(1);
        let text = error.to_string();
        let is_new = state.error.as_ref() != Some(&text);
        state.error = Some(text);
        (state.numbers.failures, is_new)
    }

    /// The servers behind the generation that is here.
    pub(crate) fn servers(&self) -> String {
        self.state().servers.clone()
    }

    /// The numbers now.
    #[must_use]
    pub fn numbers(&self) -> ReplicaNumbers {
        let state = self.state();
        let behind = state.behind.as_ref().map(|since| since.elapsed().as_secs().max(1));
        ReplicaNumbers { behind_seconds: behind.unwrap_or(0), ..state.numbers }
    }

    /// All of it for `/health`.
    pub(crate) fn told(&self) -> Value {
        let numbers = self.numbers();
        let state = self.state();
        let (generation, last_date) = state.primary.clone().unzip();
        let contact = state.contact.as_ref().map(|since| since.elapsed().as_secs());
        json!({
            "generation": state.generation,
            "primary_generation": generation,
            "primary_last_date": last_date,
            "behind_seconds": numbers.behind_seconds,
            "last_contact_seconds": contact,
            "failures": numbers.failures,
            "last_error": state.error,
            "copying_bytes": state.copying.map(|(_, all)| all),
            "copied_bytes": state.copying.map(|(done, _)| done),
        })
    }
}
