//! The stored files over HTTP: `GET /jp/<path>` (specification 3, "Endpoints").
//!
//! - `allow`: which files may be asked for.
//! - `open`: opens one of them, and nothing behind a link.
//! - `conditional`: whether the client wants it, and which part.
//! - `download`: its bytes, chunk by chunk.

mod allow;
mod conditional;
mod download;
mod open;

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::http::header::{ETAG, IF_NONE_MATCH, RETRY_AFTER, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use domain::clock::{self, Stopwatch};
use futures_util::stream;
use headers::{
    AcceptRanges, CacheControl, ContentLength, ContentRange, ContentType, HeaderMapExt,
    LastModified,
};
use pricestore::DataDir;
use pricestore::generation::GenerationReader;
use tokio::sync::Semaphore;

use self::allow::StoredFile;
use self::conditional::{Evaluation, Validators, evaluate};
use self::download::Download;
use self::open::{OpenError, Opened};
use super::context::{QueryContext, spawn_blocking};
use super::metrics::GaugeGuard;
use super::response::plain;
use crate::file_stamp::FileStamp;
use crate::replica::{ReplicaStatus, SERVERS_HEADER, servers};
use crate::text::redacted;

/// Threads that read files. Answers have their own, so neither waits for the other.
pub(super) const READING_THREADS: usize = 2;
/// Where files are asked for.
pub(super) const PREFIX: &str = "/jp/";
/// Where replicas ask for the files of a snapshot.
const RANK_PREFIX: &str = "/rank/";
/// Tells which generation an answer was made from, or a file belongs to.
pub(super) const GENERATION: HeaderName = HeaderName::from_static("kumiki-generation");
/// Tells who has handed on a generation, so that no server follows itself.
const SERVERS: HeaderName = HeaderName::from_static(SERVERS_HEADER);
/// Seconds after which a client may ask again that came too early, or when too many downloads ran.
pub(super) const AGAIN_SECONDS: &str = "10";
/// Why a replica has no database of any single issue.
const NO_ISSUES: &str = "this server is a replica that copies no databases of single issues: it runs \
                         without --follow-issues; ask the server that it follows";
/// Why a replica has no board data.
const NO_BOARDS: &str = "this server is a replica, and replicas copy no board data; ask the server that \
                         it follows";
/// Bytes of a small file, or part of one, which waits for no large one: the database of an issue has a tenth.
const SMALL_BYTES_MAX: u64 = 2 << 20;
/// A second of the clock.
const SECOND_NS: u64 = 1_000_000_000;

/// Hands out the files of a data directory.
pub(super) struct Files {
    folder: PathBuf,
    rank_folder: PathBuf,
    generation: GenerationReader,
    replica: Option<ReplicaStatus>,
    context: Arc<QueryContext>,
    /// A permit for each thread that reads.
    readers: Arc<Semaphore>,
    /// A permit for each download that may run.
    download_permits: Arc<Semaphore>,
    /// As many for small ones alone, so that large ones that nobody takes are not in their way.
    small_permits: Arc<Semaphore>,
}

/// What ties an opened file to the published generation.
///
/// | A file | has the entity tag |
/// |---|---|
/// | of the published generation | made of its digest: the same on the server that made it, on every replica, and after a restart |
/// | of none: a publication has not ended, another program wrote it, it is board data or `generation.json` | made of size, time and identity on this disk |
/// | of a replica that knows it to be damaged | as one of none, so that nobody takes it for the true one |
/// | packed | the same as a weak one |
struct Tie {
    /// The name of the generation.
    generation: String,
    /// The digest of the file's bytes, which is the same wherever the generation is served; none for the
    /// file that names the others, whose times differ from server to server.
    digest: Option<String>,
}

impl Files {
    pub(super) fn new(
        data: &DataDir,
        context: Arc<QueryContext>,
        replica: Option<ReplicaStatus>,
    ) -> Self {
        let download_permits = context.limits.downloads.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            folder: data.jp_folder(),
            rank_folder: data.rank_folder(),
            generation: GenerationReader::new(data.clone()),
            replica,
            readers: Arc::new(Semaphore::new(READING_THREADS)),
            download_permits: Arc::new(Semaphore::new(download_permits)),
            small_permits: Arc::new(Semaphore::new(download_permits)),
            context,
        }
    }

    /// Answers GET and HEAD. `path` is the whole path as it was sent.
    pub(super) async fn respond(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Response<Body> {
        let file = match path.strip_prefix(RANK_PREFIX) {
            Some(path) => StoredFile::of_snapshot(path),
            None => path.strip_prefix(PREFIX).and_then(StoredFile::named),
        };
        let response = match file {
            Some(file) => self.opened(method, file, headers).await,
            None => missing(),
        };
        self.context.metrics.file_answered(response.status().as_u16());
        response
    }

    async fn opened(
        &self,
        method: &Method,
        file: StoredFile,
        headers: &HeaderMap,
    ) -> Response<Body> {
        let is_snapshot = matches!(file, StoredFile::Snapshot(_));
        let folder = if is_snapshot { &self.rank_folder } else { &self.folder }.clone();
        let (shown, wanted) = (format!("{file:?}"), file.clone());
        let found = self.blocking(move || open::open(&folder, &file)).await;
        match found {
            Some(Ok(Some(opened))) => {
                let tie = self.tie_of(&wanted, &opened.stamp);
                // Only what is tied is handed out of the folder of the ranking.
                if is_snapshot && tie.is_none() {
                    return missing();
                }
                let (generation, digest) = tie.map(|tie| (tie.generation, tie.digest)).unzip();
                let tag = digest.flatten().unwrap_or_else(|| opened.stamp.tag());
                let mut response = self.conditional(method, opened, &tag, headers);
                if let Some(name) = generation {
                    set(&mut response, GENERATION, &name);
                }
                if wanted == StoredFile::Generation {
                    let before = self.replica.as_ref().map(ReplicaStatus::servers);
                    set(&mut response, SERVERS, &servers(before.as_deref()));
                }
                response
            }
            Some(Ok(None)) => self.not_there(&wanted),
            Some(Err(error)) => {
                tracing::warn!(file = %shown, cause = %error, "a requested file was not sent");
                match error {
                    OpenError::NotPlain => missing(),
                    OpenError::System(_) => failed(),
                }
            }
            None => failed(),
        }
    }

    /// The generation that an opened file belongs to; none where it is of a publication that has not
    /// ended, of none at all, or known to be damaged.
    fn tie_of(&self, file: &StoredFile, stamp: &FileStamp) -> Option<Tie> {
        let current = self.generation.current()?;
        let (bytes, modified_us) = (stamp.length, stamp.modified_us()?);
        let (is_same, digest) = match file.published_path() {
            Some(path) => {
                let published = current.generation.file(&path)?;
                let is_damaged =
                    self.replica.as_ref().is_some_and(|replica| replica.is_damaged(&path));
                let is_same = published.is(bytes, modified_us) && !is_damaged;
                (is_same, Some(published.xxh128.clone()))
            }
            None => {
                let is_own = *file == StoredFile::Generation;
                (is_own && (current.bytes, current.modified_us) == (bytes, modified_us), None)
            }
        };
        is_same.then(|| Tie { generation: current.generation.generation.clone(), digest })
    }

    /// The answer for a file of the layout that is not here, and why where that has a reason.
    fn not_there(&self, file: &StoredFile) -> Response<Body> {
        match (&self.replica, file) {
            (Some(replica), StoredFile::Daily(_)) if !replica.copies_issues() => {
                plain(StatusCode::NOT_FOUND, NO_ISSUES)
            }
            (Some(_), StoredFile::Board(_)) => plain(StatusCode::NOT_FOUND, NO_BOARDS),
            _ => missing(),
        }
    }

    /// Answers about an opened file with this entity tag.
    fn conditional(
        &self,
        method: &Method,
        opened: Opened,
        tag: &str,
        headers: &HeaderMap,
    ) -> Response<Body> {
        let now = clock::wall_now().nanos() / SECOND_NS;
        let seconds = opened.stamp.modified_seconds().filter(|modified| *modified <= now);
        let modified = seconds.and_then(|since| UNIX_EPOCH.checked_add(Duration::from_secs(since)));
        let strong = format!("\"{tag}\"");
        let Ok(tag) = strong.parse() else { return failed() };
        let (validators, length) = (Validators { tag, modified }, opened.stamp.length);
        let is_get = *method == Method::GET;
        let mut shown = strong;
        let mut response = match evaluate(headers, &validators, length, is_get) {
            Evaluation::Whole if is_get => match self.send(opened, 0..length) {
                Some(response) => response,
                None => return busy(),
            },
            Evaluation::Whole => file(without_bytes(), length),
            Evaluation::Part(part) => {
                let Ok(place) = ContentRange::bytes(part.clone(), length) else { return failed() };
                let Some(mut response) = self.send(opened, part) else { return busy() };
                response.headers_mut().typed_insert(place);
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                response
            }
            Evaluation::NotModified => {
                // A client that has it packed knows it by its weak tag.
                let known = headers.get(IF_NONE_MATCH).map(HeaderValue::to_str);
                if known.is_some_and(|known| known.is_ok_and(|tags| tags.contains("W/"))) {
                    shown.insert_str(0, "W/");
                }
                let mut response = Response::new(without_bytes());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response
            }
            Evaluation::PreconditionFailed => {
                plain(StatusCode::PRECONDITION_FAILED, "Precondition Failed")
            }
            Evaluation::RangeNotSatisfiable => {
                let text = "Range Not Satisfiable";
                let mut response = plain(StatusCode::RANGE_NOT_SATISFIABLE, text);
                response.headers_mut().typed_insert(ContentRange::unsatisfied_bytes(length));
                response
            }
        };
        set(&mut response, ETAG, &shown);
        let told = response.headers_mut();
        // To be kept, and asked about before each use: the update job replaces files.
        told.typed_insert(CacheControl::new().with_no_cache());
        told.typed_insert(AcceptRanges::bytes());
        told.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if let Some(modified) = modified {
            told.typed_insert(LastModified::from(modified));
        }
        response
    }

    /// Sends so much of a file; none where no more downloads may run.
    fn send(&self, opened: Opened, part: Range<u64>) -> Option<Response<Body>> {
        let length = part.end - part.start;
        let permits = match length {
            0..=SMALL_BYTES_MAX => &self.small_permits,
            _ => &self.download_permits,
        };
        let permit = Arc::clone(permits).try_acquire_owned().ok()?;
        let context = Arc::clone(&self.context);
        let download = Download {
            opened,
            part,
            readers: Arc::clone(&self.readers),
            watch: Stopwatch::start(),
            _running: GaugeGuard::new(&context.metrics.downloads),
            context,
            _permit: permit,
        };
        Some(file(download.body(), length))
    }

    /// Runs work that waits for a disk; none when it broke off.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.readers).acquire_owned().await.ok()?;
        let work = move || {
            let _permit = permit;
            work()
        };
        match spawn_blocking(work).await {
            Ok(done) => Some(done),
            Err(error) => {
                let cause = redacted(&error.to_string());
                tracing::error!(cause, "opening a file failed");
                None
            }
        }
    }
}

/// So many bytes of a file.
fn file(body: Body, length: u64) -> Response<Body> {
    let mut response = Response::new(body);
    let told = response.headers_mut();
    told.typed_insert(ContentType::octet_stream());
    told.typed_insert(ContentLength(length));
    response
}

/// A body that is not sent, of a length that is not told: an empty one would be told to have no bytes.
fn without_bytes() -> Body {
    Body::from_stream(stream::empty::<io::Result<Bytes>>())
}

/// The one answer for whatever is not handed out, there or not, and for what is not there.
fn missing() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "Not Found")
}

fn failed() -> Response<Body> {
    plain(StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be read; the service's log says why")
}

fn busy() -> Response<Body> {
    let mut response =
        plain(StatusCode::SERVICE_UNAVAILABLE, "too many downloads run; try again later");
    set(&mut response, RETRY_AFTER, AGAIN_SECONDS);
    response
}

/// Sets a header to a text of ours, which is always fit for one.
fn set(response: &mut Response<Body>, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        response.headers_mut().insert(name, value);
    }
}
