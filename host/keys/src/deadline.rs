//! Work that ends in time or is given up: a locked store waits for somebody to type its password, and
//! nobody may be there.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Does the work on a thread of its own; `None` when it takes longer. The thread is left behind then,
/// and ends with the program.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, receive) = mpsc::channel();
    // Whoever asked may have gone.
    let spawned = thread::Builder::new().name("key-store".to_owned()).spawn(move || {
        let _ = send.send(work());
    });
    spawned.ok()?;
    receive.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_given_up() {
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        let (_hold, never) = mpsc::channel::<()>();
        assert_eq!(within(Duration::from_millis(10), move || never.recv().is_ok()), None);
    }
}
