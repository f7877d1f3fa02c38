//! One file of a generation: fetched aside, gone on with where it was cut, and held against its digest.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use http_client::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, HttpError, HttpStream, MinimumRate, Network,
    Url,
};
use pricestore::generation::{PublishedFile, digest_of};

use super::folder::ReplicaFolder;
use super::status::ReplicaStatus;
use super::{RESUMES_MAX, ReplicaError};

/// Header with the generation that a file belongs to.
const GENERATION: &str = "kumiki-generation";
const RANGE: HeaderName = HeaderName::from_static("range");
const IF_RANGE: HeaderName = HeaderName::from_static("if-range");

/// What fetching needs.
pub(super) struct Fetch<'a> {
    pub(super) network: &'a Network,
    pub(super) client: &'a mut HttpClient,
    pub(super) folder: &'a ReplicaFolder,
    pub(super) status: &'a ReplicaStatus,
    /// What every request has.
    pub(super) headers: &'a HeaderMap,
    pub(super) primary: &'a Url,
    /// How slowly a file may come.
    pub(super) rate: MinimumRate,
    /// The generation that files have to be of.
    pub(super) generation: &'a str,
}

impl Fetch<'_> {
    /// Fetches a file until all of it is there and right.
    pub(super) fn file(&mut self, file: &PublishedFile) -> Result<(), ReplicaError> {
        let part = self.folder.part(file);
        for _ in 0..RESUMES_MAX {
            let have = length(&part);
            if have == file.bytes {
                return self.verified(file, &part);
            }
            let tag = self.folder.tag(file);
            // What cannot be gone on with begins anew.
            let tag = match tag {
                Some(tag) if (1..file.bytes).contains(&have) => Some(tag),
                _ => {
                    self.folder.discard(file)?;
                    None
                }
            };
            let have = length(&part);
            let trouble = self.more(file, have, tag.as_deref())?;
            // Without a byte more there is no use in going on at once.
            if length(&part) <= have {
                return Err(trouble.map_or_else(
                    || differs(file, "the primary sends less of it".to_owned()),
                    ReplicaError::from,
                ));
            }
        }
        Err(ReplicaError::Cut { path: file.path.clone() })
    }

    /// Asks once for what is missing, and appends what comes. Tells why it did not come to the end.
    fn more(
        &mut self,
        file: &PublishedFile,
        have: u64,
        tag: Option<&str>,
    ) -> Result<Option<HttpError>, ReplicaError> {
        let mut headers = self.headers.clone();
        headers.insert(RANGE, value(&format!("bytes={have}-"))?);
        if let Some(tag) = tag {
            headers.insert(IF_RANGE, value(tag)?);
        }
        let url = self.primary.join(&file.path);
        let url = url.map_err(|_| differs(file, "it has no address".to_owned()))?;
        let opened = self.network.open(self.client, &headers, url, file.bytes);
        let mut stream = match opened {
            Err(HttpError::Refused { status: 404, .. }) => {
                return Err(ReplicaError::Moved(file.path.clone()));
            }
            opened => opened?,
        };
        stream.demand(self.rate);
        if stream.header(GENERATION) != self.generation {
            return Err(ReplicaError::Moved(file.path.clone()));
        }
        let start = match stream.status() {
            206 if is_rest(stream.header("content-range"), have, file.bytes) => have,
            200 => 0,
            206 => return Err(differs(file, "the primary sends another size".to_owned())),
            _ => return Err(ReplicaError::Moved(file.path.clone())),
        };
        let part = self.folder.part(file);
        if start == 0 {
            self.folder.discard(file)?;
            self.folder.note_tag(file, stream.header("etag"))?;
        }
        let mut out = File::options().create(true).append(true).open(&part)?;
        self.receive(file, &mut stream, start, &mut out)
    }

    fn receive(
        &self,
        file: &PublishedFile,
        stream: &mut HttpStream,
        start: u64,
        out: &mut File,
    ) -> Result<Option<HttpError>, ReplicaError> {
        let mut here = start;
        loop {
            match self.network.chunk(stream) {
                Ok(Some(bytes)) => {
                    here += bytes.len() as u64;
                    if here > file.bytes {
                        break;
                    }
                    out.write_all(&bytes)?;
                    self.status.copied(bytes.len() as u64);
                }
                Ok(None) => return Ok(None),
                // Who sends too slowly is not asked for the rest at once.
                Err(error @ (HttpError::Stopped | HttpError::TooSlow(_))) => {
                    return Err(error.into());
                }
                Err(HttpError::TooLarge { .. }) => break,
                Err(error) => return Ok(Some(error)),
            }
        }
        self.folder.discard(file)?;
        Err(differs(file, "the primary sends more of it".to_owned()))
    }

    /// A file that came whole; one that is another is not kept.
    fn verified(&self, file: &PublishedFile, part: &Path) -> Result<(), ReplicaError> {
        if digest_of(part)? == (file.bytes, file.xxh128.clone()) {
            return Ok(());
        }
        self.folder.discard(file)?;
        Err(differs(file, "its digest differs".to_owned()))
    }
}

fn differs(file: &PublishedFile, what: String) -> ReplicaError {
    ReplicaError::Differs { path: file.path.clone(), what }
}

/// Size of a file; 0 where there is none.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// A text of ours or of the primary as a header.
pub(super) fn value(text: &str) -> Result<HeaderValue, ReplicaError> {
    let wrong = |_| ReplicaError::Generation("a tag of it is no header".to_owned());
    HeaderValue::from_str(text).map_err(wrong)
}

/// Whether a part goes from a byte to the end of a file of this size.
pub(super) fn is_rest(content_range: &str, from: u64, bytes: u64) -> bool {
    content_range == format!("bytes {from}-{}/{bytes}", bytes.saturating_sub(1))
}
