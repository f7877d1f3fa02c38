//! A file as the body of an answer: read when the client can take more, never earlier.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use domain::clock::Stopwatch;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::reader::Reader;
use crate::service::context::{QueryContext, spawn_blocking};
use crate::service::metrics::GaugeGuard;

/// One read: the reader comes back with what it read.
type ReadFuture = Pin<Box<dyn Future<Output = io::Result<(Reader, Option<Bytes>)>> + Send>>;

/// The bytes of a file, or of a part of it.
pub(super) struct FileBody {
    read: Option<ReadFuture>,
    readers: Arc<Semaphore>,
    /// Bytes to come, where that is known.
    remaining: Option<u64>,
    watch: Stopwatch,
    limit: Duration,
    download: Download,
}

/// A download that goes on; ends with its body.
pub(super) struct Download {
    context: Arc<QueryContext>,
    _running: GaugeGuard,
    _permit: OwnedSemaphorePermit,
}

impl Download {
    pub(super) fn new(context: Arc<QueryContext>, permit: OwnedSemaphorePermit) -> Self {
        Self { _running: GaugeGuard::new(&context.metrics.downloads), context, _permit: permit }
    }
}

impl FileBody {
    /// A body that reads while it holds one of `readers`' permits. `length` is none where
    /// compression changes it.
    pub(super) fn new(
        reader: Reader,
        length: Option<u64>,
        readers: Arc<Semaphore>,
        download: Download,
    ) -> Self {
        let limit = download.context.limits.download_timeout;
        let read = Some(read(reader, Arc::clone(&readers)));
        Self { read, readers, remaining: length, watch: Stopwatch::start(), limit, download }
    }

    fn ended(&mut self, error: io::Error) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.read = None;
        tracing::warn!(cause = %error, "a file was not sent to its end");
        Poll::Ready(Some(Err(error)))
    }
}

fn read(mut reader: Reader, readers: Arc<Semaphore>) -> ReadFuture {
    Box::pin(async move {
        let permit = readers.acquire_owned().await.map_err(io::Error::other)?;
        let work = move || {
            // Held by the work itself: it goes on when its client goes away.
            let _permit = permit;
            let bytes = reader.next()?;
            Ok((reader, bytes))
        };
        spawn_blocking(work).await.map_err(io::Error::other)?
    })
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(read) = self.read.as_mut() else {
            return Poll::Ready(None);
        };
        let read = ready!(read.as_mut().poll(cx));
        self.read = None;
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
        self.remaining =
            self.remaining.map(|remaining| remaining.saturating_sub(bytes.len() as u64));
        self.download.context.metrics.file_bytes.inc_by(bytes.len() as u64);
        if self.remaining != Some(0) {
            self.read = Some(self::read(reader, Arc::clone(&self.readers)));
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.remaining.map_or_else(SizeHint::default, SizeHint::with_exact)
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
