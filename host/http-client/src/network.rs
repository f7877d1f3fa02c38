//! The runtime behind requests of code that waits for its answers.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::client::HttpClient;
use crate::error::HttpError;
use crate::response::HttpResponse;
use crate::stream::HttpStream;

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

    /// As [`HttpClient::open`], and waits for the head of the answer.
    ///
    /// # Errors
    /// Why there is no answer, as [`Self::get`].
    pub fn open(
        &self,
        client: &mut HttpClient,
        headers: &HeaderMap,
        address: Url,
        body_bytes_max: u64,
    ) -> Result<HttpStream, HttpError> {
        self.wait(client.open(headers, address, body_bytes_max))
    }

    /// As [`HttpStream::chunk`], and waits for the bytes.
    ///
    /// # Errors
    /// Why there are no more, as [`Self::get`].
    pub fn chunk(&self, stream: &mut HttpStream) -> Result<Option<Vec<u8>>, HttpError> {
        self.wait(stream.chunk())
    }

    /// Waits so long, or until the user wants the work to end.
    ///
    /// # Errors
    /// [`HttpError::Stopped`] where that came first.
    pub fn pause(&self, time: Duration) -> Result<(), HttpError> {
        self.wait(async {
            tokio::time::sleep(time).await;
            Ok(())
        })
    }

    /// Waits for work of any kind, or until the user wants it to end.
    ///
    /// # Errors
    /// [`HttpError::Stopped`] where that came first; the work was dropped then.
    pub fn complete<T>(&self, work: impl Future<Output = T>) -> Result<T, HttpError> {
        self.wait(async { Ok(work.await) })
    }

    /// Waits for what ends other work, like a logout, whatever the user wants, but only so long; `None`
    /// when the time is over.
    pub fn complete_within<T>(&self, time: Duration, work: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async { tokio::time::timeout(time, work).await.ok() })
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, HttpError>>) -> Result<T, HttpError> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(HttpError::Stopped),
                done = work => done,
            }
        })
    }
}
