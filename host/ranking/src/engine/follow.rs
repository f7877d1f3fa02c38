//! Keeps the current snapshot: looks for a new one, opens and checks it aside, then swaps. Queries
//! that run keep the old one alive until they end.

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use pricestore::DataDir;

use super::options::EngineOptions;
use super::snapshot::Snapshot;
use crate::error::RankError;
use crate::limits::FOLLOW_INTERVAL_MS;

#[derive(Debug)]
struct Shared {
    data: DataDir,
    options: EngineOptions,
    current: RwLock<Arc<Snapshot>>,
    /// The snapshot that could not be used, and why.
    refused: Mutex<Option<(u64, String)>>,
    stopping: Mutex<bool>,
    stopped: Condvar,
}

/// The current snapshot and the thread that renews it.
#[derive(Debug)]
pub(super) struct Follower {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Opens the current snapshot and starts looking for new ones.
    pub(super) fn start(data: DataDir, options: &EngineOptions) -> Result<Self, RankError> {
        let number = current_number(&data)?.ok_or_else(|| {
            RankError::NoData(
                "no daily prices were published yet; load them with `kumiki update` or try \
                 `kumiki data sample --daily`"
                    .to_owned(),
            )
        })?;
        let snapshot = open_current(&data, number, options)?;
        let shared = Arc::new(Shared {
            data,
            options: options.clone(),
            current: RwLock::new(Arc::new(snapshot)),
            refused: Mutex::new(None),
            stopping: Mutex::new(false),
            stopped: Condvar::new(),
        });
        let thread = options.follow.then(|| {
            let shared = Arc::clone(&shared);
            let builder = std::thread::Builder::new().name("rank-follow".to_owned());
            builder.spawn(move || shared.follow())
        });
        let thread = thread
            .transpose()
            .map_err(|error| RankError::internal("starting to follow snapshots", error))?;
        Ok(Self { shared, thread })
    }

    /// The snapshot for the next query.
    pub(super) fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.shared.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Why a newer snapshot is not used.
    pub(super) fn refused(&self) -> Option<String> {
        let refused = self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.as_ref().map(|(_, why)| why.clone())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        *self.shared.stopping.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn follow(&self) {
        let interval = Duration::from_millis(FOLLOW_INTERVAL_MS);
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopping {
            let waited = self.stopped.wait_timeout(stopping, interval);
            stopping = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *stopping {
                return;
            }
            drop(stopping);
            self.look();
            stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes up a new snapshot where there is one. One that cannot be used is remembered, so that
    /// it is tried once and not again every time.
    fn look(&self) {
        let used = self.current.read().unwrap_or_else(PoisonError::into_inner).info.number;
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match current_number(&self.data) {
            Ok(Some(number)) => number,
            Ok(None) => return,
            Err(error) => {
                *refused = Some((0, error.to_string()));
                return;
            }
        };
        if number == used {
            *refused = None;
            return;
        }
        if refused.as_ref().is_some_and(|(known, _)| *known == number) {
            return;
        }
        drop(refused);
        let outcome = Snapshot::open(&self.data, number, &self.options);
        let refusal = match outcome {
            Ok(snapshot) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
                None
            }
            Err(error) => Some((number, error.to_string())),
        };
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }
}

fn current_number(data: &DataDir) -> Result<Option<u64>, RankError> {
    data.current().map_err(|error| RankError::internal("looking for the current snapshot", error))
}

/// Opens the snapshot that was current a moment ago, or the one that has followed it since.
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
