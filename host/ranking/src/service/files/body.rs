//! A file as the body of an answer: read when the client can take more, never earlier.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use domain::clock::Stopwatch;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::reader::Reader;
use crate::service::resolve::Desk;

/// One turn of reading: the reader comes back with what it read.
type Turn = Pin<Box<dyn Future<Output = io::Result<(Reader, Option<Bytes>)>> + Send>>;

/// The bytes of a file, or of a part of it.
pub(super) struct FileBody {
    turn: Option<Turn>,
    readers: Arc<Semaphore>,
    /// Bytes to come, where that is known.
    left: Option<u64>,
    watch: Stopwatch,
    limit: Duration,
    download: Download,
}

/// A download that goes on; ends with its body.
pub(super) struct Download {
    desk: Arc<Desk>,
    _place: OwnedSemaphorePermit,
}

impl Download {
    pub(super) fn new(desk: Arc<Desk>, place: OwnedSemaphorePermit) -> Self {
        desk.metrics.downloads.fetch_add(1, Ordering::Relaxed);
        Self { desk, _place: place }
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.desk.metrics.downloads.fetch_sub(1, Ordering::Relaxed);
    }
}

impl FileBody {
    /// A body that reads with `readers`' leave. `length` is none where packing changes it.
    pub(super) fn new(
        reader: Reader,
        length: Option<u64>,
        readers: Arc<Semaphore>,
        download: Download,
    ) -> Self {
        let limit = download.desk.limits.download_time;
        let turn = Some(turn(reader, Arc::clone(&readers)));
        Self { turn, readers, left: length, watch: Stopwatch::start(), limit, download }
    }

    fn ended(&mut self, error: io::Error) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.turn = None;
        (self.download.desk.log)(&format!("a file was not sent to its end: {error}"));
        Poll::Ready(Some(Err(error)))
    }
}

fn turn(mut reader: Reader, readers: Arc<Semaphore>) -> Turn {
    Box::pin(async move {
        let leave = readers.acquire_owned().await.map_err(io::Error::other)?;
        let work = move || {
            // Held by the work itself: it goes on when its client goes away.
            let _leave = leave;
            let bytes = reader.next()?;
            Ok((reader, bytes))
        };
        tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
    })
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(turn) = self.turn.as_mut() else {
            return Poll::Ready(None);
        };
        let read = ready!(turn.as_mut().poll(cx));
        self.turn = None;
        let (reader, bytes) = match read {
            Ok(read) => read,
            Err(error) => return self.ended(error),
        };
        let Some(bytes) = bytes else {
            return Poll::Ready(None);
        };
        if self.watch.elapsed() > self.limit {
            let seconds = self.limit.as_secs_f64();
            let late = format!("the client did not take it within {seconds} seconds");
            return self.ended(io::Error::new(io::ErrorKind::TimedOut, late));
        }
        self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
        self.download.desk.metrics.file_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if self.left != Some(0) {
            self.turn = Some(self::turn(reader, Arc::clone(&self.readers)));
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.turn.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A body that is not sent, of a length that is not told: for HEAD and for answers without a body.
/// An empty one would be told to have no bytes.
pub(super) struct Unsized;

impl HttpBody for Unsized {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}
