//! The bytes of an opened file on their way, read chunk by chunk when the client can take more, never earlier.
//! Memory does not grow with the file.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use domain::clock::Stopwatch;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::open::Opened;
use crate::file_stamp::FileStamp;
use crate::service::context::{QueryContext, spawn_blocking};
use crate::service::metrics::GaugeGuard;

/// Bytes that are read at once.
const CHUNK_BYTES: u64 = 256 * 1024;

/// A download that goes on; ends with its body.
pub(super) struct Download {
    pub(super) opened: Opened,
    /// Bytes that are not read yet.
    pub(super) part: Range<u64>,
    /// A permit for each thread that reads.
    pub(super) readers: Arc<Semaphore>,
    pub(super) context: Arc<QueryContext>,
    pub(super) watch: Stopwatch,
    pub(super) _running: GaugeGuard,
    pub(super) _permit: OwnedSemaphorePermit,
}

impl Download {
    pub(super) fn body(self) -> Body {
        Body::from_stream(stream::try_unfold(self, Self::next))
    }

    async fn next(self) -> io::Result<Option<(Bytes, Self)>> {
        if self.part.is_empty() {
            return Ok(None);
        }
        let permit = Arc::clone(&self.readers).acquire_owned().await.map_err(io::Error::other)?;
        let work = move || {
            // Held by the work itself: it goes on when its client goes away.
            let _permit = permit;
            self.chunk()
        };
        let read = spawn_blocking(work).await.map_err(io::Error::other).flatten();
        if let Err(error) = &read {
            tracing::warn!(cause = %error, "a file was not sent to its end");
        }
        read.map(Some)
    }

    /// The next bytes. Files are replaced as a whole, so one that was changed in place is somebody's mistake,
    /// and the client must not get a mixture.
    fn chunk(mut self) -> io::Result<(Bytes, Self)> {
        let limit = self.context.limits.download_timeout;
        if self.watch.elapsed() > limit {
            let seconds = limit.as_secs_f64();
            let late = format!("the client did not take it within {seconds} seconds");
            return Err(io::Error::new(io::ErrorKind::TimedOut, late));
        }
        let wanted = (self.part.end - self.part.start).min(CHUNK_BYTES);
        let mut chunk = vec![0; wanted as usize];
        self.opened.file.seek(SeekFrom::Start(self.part.start))?;
        self.opened.file.read_exact(&mut chunk)?;
        if FileStamp::of(&self.opened.file.metadata()?)? != self.opened.stamp {
            return Err(io::Error::other("the file was changed while it was sent"));
        }
        self.part.start += wanted;
        self.context.metrics.file_bytes.inc_by(wanted);
        Ok((chunk.into(), self))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::super::allow::StoredFile;
    use super::super::open::open;
    use super::*;

    fn download(content: &[u8], part: Range<u64>) -> (tempfile::TempDir, Download) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("listed_info.db"), content).unwrap();
        let opened = open(folder.path(), &StoredFile::Listed).unwrap().unwrap();
        let context = Arc::new(QueryContext::without_data());
        let _running = GaugeGuard::new(&context.metrics.downloads);
        let readers = Arc::new(Semaphore::new(1));
        let _permit = Arc::clone(&readers).try_acquire_owned().unwrap();
        let watch = Stopwatch::start();
        (folder, Download { opened, part, readers, context, watch, _running, _permit })
    }

    /// Its chunks until the end or the first error, with something done after the first one.
    fn chunks(mut download: Download, meanwhile: impl Fn()) -> io::Result<Vec<Bytes>> {
        let mut chunks = Vec::new();
        while !download.part.is_empty() {
            let (chunk, next) = download.chunk()?;
            chunks.push(chunk);
            download = next;
            meanwhile();
        }
        Ok(chunks)
    }

    fn content() -> Vec<u8> {
        (0..2 * CHUNK_BYTES as u32 + 77).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect()
    }

    #[test]
    fn all_bytes_come_in_small_pieces() {
        let content = content();
        let (chunk, all) = (CHUNK_BYTES as usize, content.len());
        for range in [0..all, 5..6, 7..all, 100..chunk + 100, 9..9] {
            let part = range.start as u64..range.end as u64;
            let (_folder, download) = download(&content, part);
            let chunks = chunks(download, || ()).unwrap();
            assert!(chunks.concat() == content[range.clone()], "{range:?}");
            assert!(chunks.iter().all(|one| one.len() <= chunk), "{range:?}");
        }
    }

    #[test]
    fn a_file_that_changes_in_place_is_not_mixed() {
        let content = content();
        let whole = 0..content.len() as u64;
        let (folder, sent) = download(&content, whole.clone());
        let path = folder.path().join("listed_info.db");
        let changed = chunks(sent, || {
            let mut other = fs::File::options().append(true).open(&path).unwrap();
            other.write_all(b"more").unwrap();
            other.set_modified(std::time::UNIX_EPOCH).unwrap();
        });
        assert!(changed.unwrap_err().to_string().contains("changed while"));
        // Cut short, it ends early.
        let (folder, sent) = download(&content, whole);
        let path = folder.path().join("listed_info.db");
        let cut = chunks(sent, || {
            fs::File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        });
        assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
