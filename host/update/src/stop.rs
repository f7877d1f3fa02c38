//! The wish to end early, told by another thread.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells whether the work shall end; clones belong together.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Nobody wants the work to end yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Asks the work to end at the next place where nothing is half done. Pauses and requests that
    /// are under way end at once.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether the work shall end.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the work shall end.
    pub(crate) async fn wanted(&self) {
        // The sender lives as long as this, so that the only error cannot be.
        let _ = self.0.subscribe().wait_for(|wanted| *wanted).await;
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
