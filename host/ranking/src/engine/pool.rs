//! The workers and their fair queue. Running queries stand in a ring: a worker takes the first one,
//! ranks one slice of it and puts it last, so a short query never waits for a long one to end.
//! Queries above the number that may run wait in order of arrival.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::job::Job;
use super::options::EngineOptions;
use crate::error::RankError;
use crate::kernel::DayRanker;
use crate::query::Ranking;

/// A query that runs.
#[derive(Debug)]
struct Turn {
    job: Arc<Job>,
    next: usize,
    /// Slices that workers hold or that are still to be taken.
    left: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    ring: VecDeque<Turn>,
    waiting: VecDeque<Arc<Job>>,
    /// Queries whose memory is taken: in the ring, or with a last slice at a worker.
    running: usize,
    bytes: u64,
    stopping: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    concurrent_queries: usize,
    queue: usize,
    memory_bytes: u64,
}

/// Workers for all queries of an engine.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts the workers.
    pub(super) fn start(options: &EngineOptions) -> Result<Self, RankError> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            concurrent_queries: options.concurrent_queries,
            queue: options.queue,
            memory_bytes: options.memory_bytes,
        });
        let mut pool = Self { shared, workers: Vec::new() };
        for number in 0..options.threads {
            let shared = Arc::clone(&pool.shared);
            let worker = std::thread::Builder::new().name(format!("rank-{number}"));
            let worker = worker.spawn(move || shared.work());
            let worker = worker.map_err(|error| RankError::internal("starting workers", error))?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Runs a job and waits for its end.
    pub(super) fn run(&self, job: Arc<Job>) -> Result<Ranking, RankError> {
        if job.slices() == 0 {
            job.complete();
            return job.wait();
        }
        self.shared.enter(&job)?;
        let outcome = job.wait();
        if outcome.is_err() {
            self.shared.leave(&job);
        }
        outcome
    }

    /// Queries that run and that wait.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.running, state.waiting.len())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.work.notify_all();
        for worker in self.workers.drain(..) {
            // A panic of a worker was printed when it happened.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a job in, to run or to wait.
    fn enter(&self, job: &Arc<Job>) -> Result<(), RankError> {
        let mut state = self.lock();
        if state.waiting.len() >= self.queue && !self.has_room(&state, job) {
            return Err(RankError::Busy { waiting: state.waiting.len() });
        }
        state.waiting.push_back(Arc::clone(job));
        self.admit(&mut state);
        Ok(())
    }

    /// Takes out a job that ended before it ran.
    fn leave(&self, job: &Arc<Job>) {
        let mut state = self.lock();
        state.waiting.retain(|waiting| !Arc::ptr_eq(waiting, job));
        self.admit(&mut state);
    }

    fn has_room(&self, state: &State, job: &Job) -> bool {
        state.waiting.is_empty()
            && state.running < self.concurrent_queries
            && state.bytes + job.bytes <= self.memory_bytes
    }

    /// Moves waiting jobs into the ring, in order, while there is room.
    fn admit(&self, state: &mut State) {
        while state.running < self.concurrent_queries
            && let Some(job) = state.waiting.front()
            && state.bytes + job.bytes <= self.memory_bytes
            && let Some(job) = state.waiting.pop_front()
        {
            state.running += 1;
            state.bytes += job.bytes;
            let left = Arc::new(AtomicUsize::new(job.slices()));
            state.ring.push_back(Turn { job, next: 0, left });
            self.work.notify_all();
        }
    }

    /// A worker's life.
    fn work(&self) {
        let mut ranker = DayRanker::default();
        let mut state = self.lock();
        loop {
            if state.stopping {
                return;
            }
            let Some(mut turn) = state.ring.pop_front() else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (job, left, slice) = (Arc::clone(&turn.job), Arc::clone(&turn.left), turn.next);
            // What is left of a job that has ended is not walked through.
            let taken = if job.has_ended() { job.slices() - slice } else { 1 };
            turn.next += taken;
            if turn.next < job.slices() {
                state.ring.push_back(turn);
            }
            drop(state);
            self.slice(&job, slice, &mut ranker);
            let is_last = left.fetch_sub(taken, Ordering::AcqRel) == taken;
            if is_last {
                job.complete();
            }
            state = self.lock();
            if is_last {
                state.running -= 1;
                state.bytes -= job.bytes;
                self.admit(&mut state);
            }
        }
    }

    /// Ranks a slice. A panic ends its query, not the worker.
    fn slice(&self, job: &Job, slice: usize, ranker: &mut DayRanker) {
        let work = std::panic::AssertUnwindSafe(|| job.work(slice, ranker));
        if std::panic::catch_unwind(work).is_err() {
            *ranker = DayRanker::default();
            job.end(Err(RankError::internal("ranking a day", "a worker panicked")));
        }
    }
}
