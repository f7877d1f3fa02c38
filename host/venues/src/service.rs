//! The thread of a venue: its queue of commands, its clock, its runtime and its end.
//!
//! Each venue has one thread, on which everything happens in order of arrival. [`VenueThread`] is the part that
//! all venues share.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use domain::clock::{Stopwatch, wall_now};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Now;

/// A command was not queued: too many are, or the venue has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

/// A queued input, and whether it counts as a command.
struct Queued<I> {
    input: I,
    is_command: bool,
}

/// The handle of a venue's thread. The thread ends when it is dropped.
pub struct VenueThread<I> {
    inputs: mpsc::UnboundedSender<Queued<I>>,
    /// Queued commands, and their limit.
    commands: Arc<AtomicUsize>,
    commands_max: usize,
    stop: DropGuard,
    thread: JoinHandle<()>,
}

impl<I: Send + 'static> VenueThread<I> {
    /// Starts the thread, on which `run` makes the venue and drives it until the token is cancelled.
    ///
    /// # Errors
    /// The system gives no thread or no sockets.
    pub fn start<F: Future<Output = ()>>(
        name: &str,
        commands_max: usize,
        run: impl FnOnce(Inputs<I>, CancellationToken) -> F + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (inputs, queue) = mpsc::unbounded_channel();
        let commands = Arc::new(AtomicUsize::new(0));
        let token = CancellationToken::new();
        let stop = token.clone().drop_guard();
        let inner =
            Inputs { queue, later: Later(inputs.downgrade()), commands: Arc::clone(&commands) };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || runtime.block_on(run(inner, token)))?;
        Ok(Self { inputs, commands, commands_max, stop, thread })
    }

    /// Queues a command.
    ///
    /// # Errors
    /// [`Busy`]: the queue is full.
    pub fn command(&self, input: I) -> Result<(), Busy> {
        if self.commands.fetch_add(1, Ordering::Relaxed) >= self.commands_max {
            self.commands.fetch_sub(1, Ordering::Relaxed);
            return Err(Busy);
        }
        self.inputs.send(Queued { input, is_command: true }).map_err(|_| Busy)
    }

    /// Queues an input that is not a command, behind the queued commands; each client brings one at most.
    pub fn notice(&self, input: I) {
        // A venue that has ended does not need it.
        let _ = self.inputs.send(Queued { input, is_command: false });
    }

    /// Ends the venue and waits for its end.
    ///
    /// # Errors
    /// The thread ended by a panic.
    pub fn stop(self) -> std::thread::Result<()> {
        let Self { inputs, stop, thread, .. } = self;
        drop((inputs, stop));
        thread.join()
    }
}

/// Inputs on the venue's thread, in the order in which they were queued.
pub struct Inputs<I> {
    queue: mpsc::UnboundedReceiver<Queued<I>>,
    later: Later<I>,
    commands: Arc<AtomicUsize>,
}

impl<I> Inputs<I> {
    /// The next input; `None` when the handle is gone.
    pub async fn next(&mut self) -> Option<I> {
        let queued = self.queue.recv().await;
        self.taken(queued)
    }

    /// The next input, if one is queued.
    pub fn try_next(&mut self) -> Option<I> {
        let queued = self.queue.try_recv().ok();
        self.taken(queued)
    }

    /// A sender for other threads, as long as the handle lives.
    #[must_use]
    pub fn later(&self) -> Later<I> {
        self.later.clone()
    }

    fn taken(&self, queued: Option<Queued<I>>) -> Option<I> {
        let Queued { input, is_command } = queued?;
        if is_command {
            self.commands.fetch_sub(1, Ordering::Relaxed);
        }
        Some(input)
    }
}

/// Queues an input later; see [`Inputs::later`].
pub struct Later<I>(mpsc::WeakUnboundedSender<Queued<I>>);

impl<I> Later<I> {
    /// Queues it; a venue that has ended does not need it.
    pub fn send(&self, input: I) {
        if let Some(inputs) = self.0.upgrade() {
            let _ = inputs.send(Queued { input, is_command: false });
        }
    }
}

impl<I> Clone for Later<I> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The clock of a venue's thread.
#[derive(Debug, Clone, Copy)]
pub struct VenueClock(Stopwatch);

impl VenueClock {
    /// Starts it.
    #[must_use]
    pub fn start() -> Self {
        Self(Stopwatch::start())
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Now {
        Now { mono: self.elapsed(), wall: wall_now() }
    }

    /// The time since its start alone.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn commands_have_a_limit_and_notices_none_and_all_come_in_order() {
        let (gate, opened) = tokio::sync::oneshot::channel::<()>();
        let (sender, seen) = channel();
        let thread = VenueThread::start("test", 2, |mut inputs: Inputs<u32>, stop| async move {
            opened.await.unwrap();
            while let Some(input) = inputs.try_next() {
                sender.send(input).unwrap();
            }
            let later = inputs.later();
            later.send(9);
            sender.send(inputs.next().await.unwrap()).unwrap();
            stop.cancelled().await;
        });
        let thread = thread.unwrap();
        assert_eq!(
            (thread.command(1), thread.command(2), thread.command(3)),
            (Ok(()), Ok(()), Err(Busy))
        );
        thread.notice(4);
        gate.send(()).unwrap();
        let all: Vec<u32> = (0..4).map(|_| seen.recv().unwrap()).collect();
        assert_eq!(all, [1, 2, 4, 9]);
        assert_eq!(thread.command(5), Ok(()), "there is room again");
        thread.stop().unwrap();
        assert!(seen.recv().is_err());
    }

    #[test]
    fn a_panic_is_seen_by_whoever_ends_the_venue() {
        let thread = VenueThread::start("test", 1, |_: Inputs<()>, _| async { panic!("test") });
        assert!(thread.unwrap().stop().is_err());
    }
}
