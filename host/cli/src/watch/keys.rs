//! The keys that are pressed, read on a thread of their own: of a terminal that went away, crossterm reads for ever,
//! and what waits for it there would never end.

use std::io::{self, IsTerminal, stdin};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

use anyhow::{Context, Result};
use ratatui::crossterm::event::{self, Event};

/// Events of the terminal that wait to be looked at; what reads them waits while there is no room.
const KEYS_WAITING_MAX: usize = 64;

/// What was pressed and not looked at yet.
#[derive(Debug)]
pub(super) struct Keys(Receiver<io::Result<Event>>);

impl Keys {
    /// Reads from the terminal until the program ends.
    pub(super) fn of_terminal() -> Result<Self> {
        Self::read_with(event::read)
    }

    fn read_with(mut read: impl FnMut() -> io::Result<Event> + Send + 'static) -> Result<Self> {
        let (sender, keys) = sync_channel(KEYS_WAITING_MAX);
        let reads = move || {
            loop {
                let event = read();
                let is_over = event.is_err();
                if sender.send(event).is_err() || is_over {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("keys".to_owned()).spawn(reads);
        thread.context("the system gives no thread that reads keys")?;
        Ok(Self(keys))
    }

    /// The next one, where there is one now.
    ///
    /// # Errors
    /// They cannot be read any more.
    pub(super) fn next(&self) -> Result<Option<Event>> {
        let failed = "the terminal gives no keys any more; give --format json without a terminal";
        match self.0.try_recv() {
            Ok(event) => event.map(Some).context(failed),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => anyhow::bail!(failed),
        }
    }
}

/// Whether the terminal that standard input was is still there: its window may be closed, or its line lost.
pub(super) fn has_terminal() -> bool {
    stdin().is_terminal()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use domain::clock;

    use super::*;

    /// The next one, or why there is none, when it comes.
    fn wait(keys: &Keys) -> Result<Event> {
        loop {
            match keys.next() {
                Ok(None) => clock::sleep(Duration::from_millis(1)),
                Ok(Some(event)) => return Ok(event),
                Err(error) => return Err(error),
            }
        }
    }

    #[test]
    fn keys_that_cannot_be_read_are_told_for_ever() {
        let mut events =
            [Ok(Event::FocusGained), Err(io::ErrorKind::UnexpectedEof.into())].into_iter();
        let keys = Keys::read_with(move || events.next().unwrap()).unwrap();
        assert_eq!(wait(&keys).unwrap(), Event::FocusGained);
        for _ in 0..3 {
            let told = format!("{:#}", wait(&keys).unwrap_err());
            assert!(told.starts_with("the terminal gives no keys any more"), "{told}");
        }
    }

    #[test]
    fn so_many_keys_wait_only() {
        let read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&read);
        let keys = Keys::read_with(move || {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(Event::FocusGained)
        })
        .unwrap();
        while read.load(Ordering::SeqCst) <= KEYS_WAITING_MAX {
            clock::sleep(Duration::from_millis(1));
        }
        clock::sleep(Duration::from_millis(20));
        // Those that wait, and the one for which there is no room.
        assert_eq!(read.load(Ordering::SeqCst), KEYS_WAITING_MAX + 1);
        assert!(keys.next().unwrap().is_some());
    }
}
