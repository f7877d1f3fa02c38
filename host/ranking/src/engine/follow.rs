//! Follows the published snapshots: polls for another one, opens and verifies it aside, then swaps it
//! in. Queries that run keep the old one alive until they end.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::threads::panic_text;
use pricestore::generation::{CurrentGeneration, GenerationReader};
use pricestore::{DataDir, DatasetStatus};

use super::listed::ListedFile;
use super::options::EngineOptions;
use super::snapshot::Snapshot;
use crate::error::RankError;
use crate::file_stamp::FileStamp;
use crate::limits::SNAPSHOT_POLL_INTERVAL_MS;
use crate::listed::ListedInfo;
use crate::text::redacted;

#[derive(Debug)]
struct Shared {
    data: DataDir,
    options: EngineOptions,
    /// None before anything was published.
    current: RwLock<Option<Arc<Snapshot>>>,
    /// What could not be used, and why.
    refused: Mutex<Option<(Published, String)>>,
    /// What ties the published files.
    generation: GenerationReader,
    /// What the update job has told.
    dataset: RwLock<Told>,
    listed: ListedFile,
}

/// What the update job has told.
#[derive(Debug, Default)]
struct Told {
    /// What could be read last.
    dataset: Option<DatasetStatus>,
    /// What it told of another snapshot before: that one is in use until the next one is taken up.
    before: Option<DatasetStatus>,
    /// Why it cannot be read any more.
    lost: Option<Lost>,
}

impl Told {
    /// What it has told last of a snapshot.
    fn of(&self, snapshot: Option<&Snapshot>) -> Option<&DatasetStatus> {
        let is_of =
            |told: &&DatasetStatus| snapshot.is_none_or(|snapshot| told.is_of(snapshot.content));
        [&self.dataset, &self.before].into_iter().flatten().find(is_of)
    }
}

/// Why the update job's status cannot be read any more.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lost {
    Gone,
    Unreadable(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("its file is gone"),
            Self::Unreadable(cause) => f.write_str(cause),
        }
    }
}

/// Which snapshot is published: its number, and the state of its file. A data folder that was made anew
/// may have other content under the same number, and a file that is put back the same content again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Published {
    /// The file that names the current snapshot cannot be read.
    Unknown,
    Snapshot {
        number: u64,
        /// None for a file that cannot be looked at, or is not there.
        file: Option<FileStamp>,
    },
}

impl Published {
    fn snapshot(data: &DataDir, number: u64) -> Self {
        Self::Snapshot { number, file: FileStamp::at(&data.rank_grid(number)).ok() }
    }

    /// Whether it is the one in use, unchanged.
    fn is_used(self, used: &Snapshot) -> bool {
        self == Self::Snapshot { number: used.info.number, file: used.stamp }
    }

    /// Whether it is the one in use, whose file was changed in its place: the memory from which queries
    /// are answered is that file.
    fn is_changed_in_place(self, used: &Snapshot) -> bool {
        let Self::Snapshot { file: Some(file), .. } = self else { return false };
        used.stamp.is_some_and(|stamp| stamp.is_same_file(&file) && stamp != file)
    }
}

/// The current snapshot and the thread that renews it.
#[derive(Debug)]
pub(super) struct SnapshotFollower {
    shared: Arc<Shared>,
    /// Ends the thread when it is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SnapshotFollower {
    /// Opens the current snapshot and starts looking for new ones.
    pub(super) fn start(data: DataDir, options: &EngineOptions) -> Result<Self, RankError> {
        let waits = options.wait_for_data && options.follow;
        let (published, opened) = open_first(&data, options);
        let (current, refused) = match opened {
            Ok(None) if !waits => return Err(no_snapshot(None, options.is_replica)),
            Ok(current) => (current.map(Arc::new), None),
            Err(error) if waits => {
                let (cause, error) = (cause(&error), error.for_operator());
                tracing::error!(cause, "the published snapshot cannot be used: {error}");
                (None, Some((published, error)))
            }
            Err(error) => return Err(error),
        };
        let shared = Arc::new(Shared {
            listed: ListedFile::new(&data),
            generation: GenerationReader::new(data.clone()),
            data,
            options: options.clone(),
            current: RwLock::new(current),
            refused: Mutex::new(refused),
            dataset: RwLock::default(),
        });
        if options.follow {
            // So that the first answer with names does not wait for them.
            let generation = shared.generation_with_its_files();
            shared.name_current(generation.as_ref());
        } else {
            shared.read_dataset();
        }
        let (stop, stopped) = mpsc::channel();
        let thread = options.follow.then(|| {
            let shared = Arc::clone(&shared);
            let builder = std::thread::Builder::new().name("rank-follow".to_owned());
            builder.spawn(move || shared.follow(&stopped))
        });
        let thread = thread
            .transpose()
            .map_err(|error| RankError::internal("starting to follow snapshots", error))?;
        Ok(Self { shared, stop: Some(stop), thread })
    }

    /// The snapshot for the next query, if there is one.
    pub(super) fn current(&self) -> Option<Arc<Snapshot>> {
        self.shared.current()
    }

    /// The generation that a snapshot belongs to, as it was found last; none while its publication has not
    /// ended.
    pub(super) fn generation_of(&self, snapshot: &Snapshot) -> Option<String> {
        if !self.shared.options.follow
            && let Some(current) = self.shared.generation.current()
        {
            snapshot.take_name(&current.generation);
        }
        snapshot.generation()
    }

    /// How complete the data of a snapshot is; none where that is not known.
    pub(super) fn dataset_of(&self, snapshot: Option<&Snapshot>) -> Option<DatasetStatus> {
        self.shared.told().of(snapshot).cloned()
    }

    /// Whether the update job tells how complete data are, but not those of a snapshot: it was ended in
    /// between, or another program has published since.
    pub(super) fn is_dataset_of_another(&self, snapshot: &Snapshot) -> bool {
        let told = self.shared.told();
        told.dataset.is_some() && told.lost.is_none() && told.of(Some(snapshot)).is_none()
    }

    /// Why what [`Self::dataset_of`] gives is old: the file with it is gone or cannot be read. With its file a
    /// snapshot that the job has not made has lost nothing.
    pub(super) fn lost_dataset(&self, snapshot: Option<&Snapshot>) -> Option<String> {
        let told = self.shared.told();
        let lost = told.lost.as_ref();
        let counts = |lost: &&Lost| **lost != Lost::Gone || told.of(snapshot).is_some();
        lost.filter(counts).map(ToString::to_string)
    }

    /// What is known of the issues.
    pub(super) fn listed(&self) -> Arc<ListedInfo> {
        self.shared.listed.info()
    }

    /// Why the published snapshot is not used.
    pub(super) fn refused(&self) -> Option<String> {
        let refused = self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.as_ref().map(|(_, why)| why.clone())
    }
}

impl Drop for SnapshotFollower {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn current(&self) -> Option<Arc<Snapshot>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn told(&self) -> RwLockReadGuard<'_, Told> {
        self.dataset.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls until the other end of `stopped` is dropped.
    fn follow(&self, stopped: &Receiver<()>) {
        let interval = Duration::from_millis(SNAPSHOT_POLL_INTERVAL_MS);
        while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            self.attempt(|| {
                let generation = self.generation_with_its_files();
                self.poll();
                self.name_current(generation.as_ref());
            });
        }
    }

    /// Looks once. A panic is told as the reason why what is published is not used, until a look ends well.
    fn attempt(&self, look: impl FnOnce()) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(look)) else { return };
        let why = format!(
            "the search for published data failed and is repeated: {}",
            redacted(&panic_text(&*panic))
        );
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.as_ref().is_none_or(|(_, known)| *known != why) {
            tracing::error!("{why}");
        }
        *refused = Some((Published::Unknown, why));
    }

    /// The published generation; then what is published before it is read anew, so that whoever finds the
    /// generation's name finds no older lists and no older words on how complete the data is.
    fn generation_with_its_files(&self) -> Option<CurrentGeneration> {
        let generation = self.generation.current();
        self.listed.renew(generation.as_ref().map(|current| &*current.generation));
        self.read_dataset();
        generation
    }

    fn name_current(&self, generation: Option<&CurrentGeneration>) {
        if let (Some(snapshot), Some(found)) = (self.current(), generation) {
            snapshot.take_name(&found.generation);
        }
    }

    /// Reads what the update job has told. Where that is gone or cannot be read, which is logged once, what was
    /// read last stays: with its disk a data folder loses no duty.
    fn read_dataset(&self) {
        let read = DatasetStatus::load(&self.data).map_err(|error| error.to_string());
        let mut told = self.dataset.write().unwrap_or_else(PoisonError::into_inner);
        let lost = match &read {
            Ok(Some(_)) => None,
            Ok(None) => told.dataset.as_ref().map(|_| Lost::Gone),
            Err(cause) => Some(Lost::Unreadable(cause.clone())),
        };
        if let Some(cause) = &lost
            && told.lost != lost
        {
            tracing::error!(%cause, "the update job's status cannot be read");
        }
        if let Ok(Some(dataset)) = read {
            let snapshot = dataset.snapshot.clone();
            let known = told.dataset.replace(dataset);
            if known.as_ref().is_some_and(|known| known.snapshot != snapshot) {
                told.before = known;
            }
        }
        told.lost = lost;
    }

    /// Looks which snapshot is published, and does the first that holds:
    ///
    /// | published | what is done |
    /// |---|---|
    /// | none | what is in use stays |
    /// | the one in use, its file as it was opened | nothing |
    /// | in a state that was refused already | nothing: it was told |
    /// | another, or in another file, and whole | it is taken up |
    /// | the one in use, its file changed in its place and not whole any more | told; nothing is answered any more, because the bytes in use are those |
    /// | else not whole, or missing | told; what is in use stays |
    fn poll(&self) {
        let used = self.current();
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match current_number(&self.data) {
            Ok(Some(number)) => number,
            Ok(None) => {
                *refused = None;
                return;
            }
            Err(error) => {
                let why = error.for_operator();
                if refused.as_ref().is_none_or(|(_, known)| *known != why) {
                    tracing::error!(cause = cause(&error), "{why}");
                }
                *refused = Some((Published::Unknown, why));
                return;
            }
        };
        let published = Published::snapshot(&self.data, number);
        if used.as_ref().is_some_and(|used| published.is_used(used)) {
            *refused = None;
            return;
        }
        if refused.as_ref().is_some_and(|(known, _)| *known == published) {
            return;
        }
        drop(refused);
        // Why one is refused is known before what is used changes, and forgotten before: who reads both reads
        // what is used first.
        let refuse = |refusal: Option<(Published, String)>| {
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
        };
        match Snapshot::open(&self.data, number, &self.options) {
            Ok(snapshot) => {
                if let Some(used) = &used {
                    snapshot.keep_name(used);
                }
                if let Some(found) = self.generation_with_its_files() {
                    snapshot.take_name(&found.generation);
                }
                refuse(None);
                self.put_current(Some(snapshot));
                tracing::info!(snapshot = number, "a newer snapshot is used");
            }
            Err(error) => {
                let (cause, error) = (cause(&error), error.for_operator());
                tracing::error!(
                    snapshot = number,
                    cause,
                    "the published snapshot cannot be used: {error}"
                );
                let is_changed = used.is_some_and(|used| published.is_changed_in_place(&used));
                refuse(Some((published, error)));
                if is_changed {
                    self.put_current(None);
                }
            }
        }
    }

    fn put_current(&self, snapshot: Option<Snapshot>) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = snapshot.map(Arc::new);
    }
}

/// What is behind an error, for the operator; empty where its text says all.
fn cause(error: &RankError) -> String {
    error.source().map(|cause| redacted(&cause.to_string())).unwrap_or_default()
}

/// The error where there is no snapshot to ask: nothing was published yet, or what was published is
/// refused, and why.
pub(crate) fn no_snapshot(refused: Option<&str>, is_replica: bool) -> RankError {
    RankError::NoData(match (refused, is_replica) {
        (None, true) => {
            "no daily prices were copied yet from the server of --follow; /health shows how far the copy is"
                .to_owned()
        }
        (None, false) => {
            "no daily prices were published yet; load them with `kumiki data update` or try \
                          `kumiki data sample --daily`"
                .to_owned()
        }
        (Some(why), true) => format!(
            "the daily prices that were copied cannot be used: {why}; the service uses the next copy as soon \
             as it is complete"
        ),
        (Some(why), false) => format!(
            "the published daily prices cannot be used: {why}; run `kumiki rank publish`, and the service uses \
             the new snapshot by itself"
        ),
    })
}

fn current_number(data: &DataDir) -> Result<Option<u64>, RankError> {
    data.current().map_err(|error| RankError::internal("looking for the current snapshot", error))
}

/// Which snapshot is published, and that snapshot; none where there is none yet.
fn open_first(
    data: &DataDir,
    options: &EngineOptions,
) -> (Published, Result<Option<Snapshot>, RankError>) {
    match current_number(data) {
        Ok(None) => (Published::Unknown, Ok(None)),
        Err(error) => (Published::Unknown, Err(error)),
        Ok(Some(number)) => {
            let published = Published::snapshot(data, number);
            (published, open_current(data, number, options).map(Some))
        }
    }
}

/// Opens the snapshot `number`, which was current just before, or the one that has replaced it.
fn open_current(
    data: &DataDir,
    number: u64,
    options: &EngineOptions,
) -> Result<Snapshot, RankError> {
    match Snapshot::open(data, number, options) {
        Err(error) => match current_number(data)? {
            Some(newer) if newer != number => Snapshot::open(data, newer, options),
            _ => Err(error),
        },
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_breaks_down_is_told_and_not_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        let shared = &Shared {
            data: data.clone(),
            options: EngineOptions::default(),
            current: RwLock::default(),
            refused: Mutex::default(),
            listed: ListedFile::new(&data),
            generation: GenerationReader::new(data),
            dataset: RwLock::default(),
        };
        let refused = || shared.refused.lock().unwrap().as_ref().map(|(_, why)| why.clone());
        shared.attempt(|| panic!("no room for a thread at /data/rank"));
        let why = refused().unwrap();
        assert!(why.ends_with("is repeated: no room for a thread at <path>"), "{why}");
        shared.attempt(|| shared.poll());
        assert_eq!(refused(), None);
    }
}
