//! The runtime behind requests of code that waits for its answers.

use std::sync::Arc;

use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::client::HttpClient;
use crate::error::HttpError;
use crate::response::HttpResponse;

/// What all clients of a program that waits for its answers share: the runtime behind their
/// requests and the wish to end.
#[derive(Debug, Clone)]
pub struct Network {
    runtime: Arc<Runtime>,
    cancel: CancellationToken,
}

impl Network {
    /// Prepares for requests that end when `cancel` is cancelled.
    ///
    /// # Errors
    /// What the system says when it cannot give what sockets need.
    pub fn new(cancel: CancellationToken) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime: Arc::new(runtime), cancel })
    }

    /// As [`HttpClient::get`], and waits for the answer.
    ///
    /// # Errors
    /// What `prepare` says, or why there is no answer: [`HttpError::Stopped`] where the user wants
    /// the work to end, at once and also in the middle of a pause.
    pub fn get<E: From<HttpError>>(
        &self,
        client: &mut HttpClient,
        headers: &HeaderMap,
        prepare: impl FnMut() -> Result<Url, E>,
    ) -> Result<HttpResponse, E> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(HttpError::Stopped.into()),
                found = client.get(headers, prepare) => found,
            }
        })
    }
}
