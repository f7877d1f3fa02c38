//! The worker threads and their job queue, scheduled round-robin: a worker takes the first running
//! job, executes one slice of it and puts it last, so a short query never waits for a long one to
//! end. Jobs above the number that may run wait in order of arrival.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::job::Job;
use super::options::EngineOptions;
use crate::error::RankError;
use crate::kernel::DayRanker;
use crate::query::Ranking;

/// A job that runs.
#[derive(Debug)]
struct RunningJob {
    job: Arc<Job>,
    next_slice: usize,
    /// Slices that workers execute or that are still to be taken.
    slices_left: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    /// Running jobs with slices left; the first is executed next.
    run_queue: VecDeque<RunningJob>,
    /// Jobs that wait until they may run, in order of arrival.
    waiting: VecDeque<Arc<Job>>,
    /// Jobs whose memory is reserved: in the run queue, or with a last slice at a worker.
    running: usize,
    bytes: u64,
    stopping: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work_available: Condvar,
    concurrent_queries: usize,
    queue: usize,
    memory_bytes: u64,
}

/// Workers for all queries of an engine.
#[derive(Debug)]
pub(super) struct WorkerPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl WorkerPool {
    /// Starts the workers.
    pub(super) fn start(options: &EngineOptions) -> Result<Self, RankError> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work_available: Condvar::new(),
            concurrent_queries: options.concurrent_queries,
            queue: options.queue,
            memory_bytes: options.memory_bytes,
        });
        let mut pool = Self { shared, workers: Vec::new() };
        for number in 0..options.threads {
            let shared = Arc::clone(&pool.shared);
            let worker = std::thread::Builder::new().name(format!("rank-{number}"));
            let worker = worker.spawn(move || shared.work_loop());
            let worker = worker.map_err(|error| RankError::internal("starting workers", error))?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Submits a job and waits for its end.
    pub(super) fn run(&self, job: Arc<Job>) -> Result<Ranking, RankError> {
        if job.slices() == 0 {
            job.complete();
            return job.wait();
        }
        self.shared.submit(&job)?;
        let outcome = job.wait();
        if outcome.is_err() {
            self.shared.withdraw(&job);
        }
        outcome
    }

    /// Queries that run and that wait.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.running, state.waiting.len())
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.work_available.notify_all();
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

    /// Accepts a job, to run or to wait.
    fn submit(&self, job: &Arc<Job>) -> Result<(), RankError> {
        let mut state = self.lock();
        if state.waiting.len() >= self.queue && !self.has_room(&state, job) {
            return Err(RankError::Busy { waiting: state.waiting.len() });
        }
        state.waiting.push_back(Arc::clone(job));
        self.schedule(&mut state);
        Ok(())
    }

    /// Takes out a job that ended before it ran.
    fn withdraw(&self, job: &Arc<Job>) {
        let mut state = self.lock();
        state.waiting.retain(|waiting| !Arc::ptr_eq(waiting, job));
        self.schedule(&mut state);
    }

    fn has_room(&self, state: &State, job: &Job) -> bool {
        state.waiting.is_empty()
            && state.running < self.concurrent_queries
            && state.bytes + job.bytes <= self.memory_bytes
    }

    /// Moves waiting jobs into the run queue, in order, while there is room.
    fn schedule(&self, state: &mut State) {
        while state.running < self.concurrent_queries
            && let Some(job) = state.waiting.front()
            && state.bytes + job.bytes <= self.memory_bytes
            && let Some(job) = state.waiting.pop_front()
        {
            state.running += 1;
            state.bytes += job.bytes;
            let left = Arc::new(AtomicUsize::new(job.slices()));
            state.run_queue.push_back(RunningJob { job, next_slice: 0, slices_left: left });
            self.work_available.notify_all();
        }
    }

    /// What a worker thread does until the pool ends.
    fn work_loop(&self) {
        let mut ranker = DayRanker::default();
        let mut state = self.lock();
        loop {
            if state.stopping {
                return;
            }
            let Some(mut running) = state.run_queue.pop_front() else {
                state = self.work_available.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (job, left, slice) =
                (Arc::clone(&running.job), Arc::clone(&running.slices_left), running.next_slice);
            // What is left of a job that has ended is not walked through.
            let taken = if job.has_ended() { job.slices() - slice } else { 1 };
            running.next_slice += taken;
            if running.next_slice < job.slices() {
                state.run_queue.push_back(running);
            }
            drop(state);
            self.execute_slice(&job, slice, &mut ranker);
            let is_last = left.fetch_sub(taken, Ordering::AcqRel) == taken;
            if is_last {
                job.complete();
            }
            state = self.lock();
            if is_last {
                state.running -= 1;
                state.bytes -= job.bytes;
                self.schedule(&mut state);
            }
        }
    }

    /// Executes a slice. A panic ends its job, not the worker.
    fn execute_slice(&self, job: &Job, slice: usize, ranker: &mut DayRanker) {
        let work = std::panic::AssertUnwindSafe(|| job.execute_slice(slice, ranker));
        if std::panic::catch_unwind(work).is_err() {
            *ranker = DayRanker::default();
            job.end(Err(RankError::internal("ranking a day", "a worker panicked")));
        }
    }
}
