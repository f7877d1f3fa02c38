//! Looks for another generation of the primary, copies it, and waits.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::threads::panic_text;
use http_client::{
    CancellationToken, HeaderMap, HeaderName, HttpClient, HttpError, HttpStream, Network,
    RequestPolicy, secret_header,
};
use pricestore::generation::{Generation, GenerationReader, PublishedFile};
use pricestore::limits::GENERATION_BYTES_MAX;
use secrecy::{ExposeSecret, SecretString};

use super::fetch::{Fetch, value};
use super::folder::ReplicaFolder;
use super::status::ReplicaStatus;
use super::trial::{Fault, Trial};
use super::{
    BACK_OFF_MAX, REFUSED_INTERVAL, REREAD_INTERVAL, ReplicaError, ReplicaOptions, SERVERS_HEADER,
    checked_servers,
};
use crate::text::redacted;

/// Requests a minute; the pauses between looks are what spares a primary.
const RATE: u32 = 60_000;
/// Where the generation is.
const GENERATION_PATH: &str = "jp/generation.json";
const AUTHORIZATION: HeaderName = HeaderName::from_static("authorization");
const IF_NONE_MATCH: HeaderName = HeaderName::from_static("if-none-match");

/// Copies one primary.
pub(super) struct Follower {
    options: ReplicaOptions,
    folder: ReplicaFolder,
    status: ReplicaStatus,
    network: Network,
    client: HttpClient,
    headers: HeaderMap,
    /// Tag of the generation that is in place.
    tag: Option<String>,
    /// The generation that is in place.
    own: GenerationReader,
    /// Since when every byte of the files in place was read last; none before the first time.
    reread: Option<Stopwatch>,
    /// Files in place that were gone or others when they were looked at last.
    damaged: BTreeSet<String>,
    /// The generation that was asked for last, and how many of its missing files are here whole.
    reached: (String, usize),
    /// The generation that was thrown away last.
    refused: Option<Refused>,
}

/// A generation that was tried and cannot be used.
struct Refused {
    /// Its name.
    generation: String,
    /// The file that is no use, and what is wrong with it.
    path: String,
    what: String,
    since: Stopwatch,
}

impl Follower {
    pub(super) fn new(
        mut options: ReplicaOptions,
        folder: ReplicaFolder,
        status: ReplicaStatus,
        cancel: CancellationToken,
    ) -> Result<Self, ReplicaError> {
        // Paths are joined to a folder.
        if !options.primary.path().ends_with('/') {
            let path = format!("{}/", options.primary.path());
            options.primary.set_path(&path);
        }
        let unusable = |what: String| ReplicaError::Io(std::io::Error::other(what));
        let network = Network::new(cancel)?;
        let client = HttpClient::new(&options.primary, RequestPolicy::default(), RATE);
        let mut client = client.map_err(unusable)?;
        let mut headers = HeaderMap::new();
        if let Some(token) = &options.token {
            client.hide(token);
            let sent = SecretString::from(format!("Bearer {}", token.expose_secret()));
            headers.insert(AUTHORIZATION, secret_header(&sent).map_err(unusable)?);
        }
        let own = GenerationReader::new(folder.data.clone());
        Ok(Self {
            options,
            folder,
            status,
            network,
            client,
            headers,
            tag: None,
            own,
            reread: None,
            damaged: BTreeSet::new(),
            reached: Default::default(),
            refused: None,
        })
    }

    /// Copies until it is cancelled.
    pub(super) fn run(mut self) {
        let (mut fruitless, mut best) = (0_u32, self.reached.clone());
        loop {
            let pause = match attempt(|| self.round()) {
                Ok(()) => {
                    self.status.good();
                    fruitless = 0;
                    self.options.interval
                }
                Err(ReplicaError::Http(HttpError::Stopped)) => return,
                Err(error) => {
                    let refused = match error {
                        ReplicaError::Unusable { .. } => self.refused.as_ref(),
                        _ => None,
                    };
                    let refused = refused.map(|one| one.generation.as_str());
                    let (failures, is_new) = self.status.failed(&error, refused);
                    if is_new {
                        tracing::warn!(failures, "nothing was copied: {error}");
                    }
                    // Who gives one file more each time is not asked less often.
                    let is_fruitless = self.reached.0 == best.0 && self.reached.1 <= best.1;
                    fruitless = if is_fruitless { fruitless.saturating_add(1) } else { 1 };
                    best = self.reached.clone();
                    back_off(self.options.interval, fruitless)
                }
            };
            if self.network.pause(pause).is_err() {
                return;
            }
        }
    }

    /// Looks once, and copies what is new or was lost.
    fn round(&mut self) -> Result<(), ReplicaError> {
        self.look_at_own()?;
        let Some((primary, tag, servers)) = self.generation()? else {
            self.forget_refused();
            return Ok(());
        };
        let mut wanted = primary.clone();
        if !self.options.issues {
            wanted.issues.files = None;
        } else if wanted.issues.files.is_none() {
            return Err(ReplicaError::NoIssues);
        }
        self.was_not_refused(&primary.generation)?;
        let missing = self.missing(&wanted)?;
        let bytes: u64 = missing.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
        self.status.wants(&primary, bytes);
        let (there, limit) = (self.folder.bytes(), self.options.disk_bytes);
        if bytes.saturating_add(there) > limit {
            return Err(ReplicaError::TooLarge { wanted: bytes.saturating_add(there), limit });
        }
        self.folder.forget_parts(&missing)?;
        let mut fetch = Fetch {
            network: &self.network,
            client: &mut self.client,
            folder: &self.folder,
            status: &self.status,
            headers: &self.headers,
            primary: &self.options.primary,
            rate: self.options.rate(),
            generation: &primary.generation,
        };
        self.reached = (primary.generation.clone(), 0);
        for file in &missing {
            fetch.file(file)?;
            self.reached.1 += 1;
        }
        let generation = primary.generation.clone();
        self.tried(&wanted, &missing)?;
        let last_date = primary.last_date.clone();
        self.folder.switch(wanted, &missing)?;
        let files = missing.len();
        tracing::info!(generation, files, bytes, "the primary's generation is in place");
        if let Some(before) = self.status.took((&generation, &last_date), servers) {
            tracing::warn!(
                "the primary's data end on {last_date}; those of the copy went until {before}"
            );
        }
        self.tag = tag;
        self.damaged.clear();
        Ok(())
    }

    /// Refuses a generation that was thrown away not long ago.
    fn was_not_refused(&mut self, generation: &str) -> Result<(), ReplicaError> {
        match &self.refused {
            Some(refused)
                if refused.generation == generation
                    && refused.since.elapsed() < REFUSED_INTERVAL =>
            {
                let (path, what) = (refused.path.clone(), refused.what.clone());
                Err(ReplicaError::Unusable { path, what })
            }
            _ => {
                self.forget_refused();
                Ok(())
            }
        }
    }

    fn forget_refused(&mut self) {
        self.refused = None;
        self.status.forget_refused();
    }

    /// Tries a generation of which all files are here, and throws away what is no use (rule R13).
    fn tried(&mut self, wanted: &Generation, came: &[PublishedFile]) -> Result<(), ReplicaError> {
        let paths = came.iter().map(|file| file.path.as_str()).collect();
        let trial = Trial { folder: &self.folder, generation: wanted, came: paths };
        match trial.run() {
            Ok(()) => Ok(()),
            Err(Fault::Untried(error)) => Err(error),
            Err(Fault::Differs(file)) => {
                if came.iter().any(|one| one.path == file.path) {
                    self.folder.discard(&file)?;
                } else {
                    // Read again, and fetched, by the next round.
                    self.damaged.insert(file.path.clone());
                    self.status.damaged(&self.damaged);
                }
                let what = "its digest differs".to_owned();
                Err(ReplicaError::Differs { path: file.path, what })
            }
            Err(Fault::Unusable(error)) => {
                self.folder.forget_parts(&[])?;
                if let ReplicaError::Unusable { path, what } = &error {
                    let (path, what) = (path.clone(), what.clone());
                    let (generation, since) = (wanted.generation.clone(), Stopwatch::start());
                    self.refused = Some(Refused { generation, path, what, since });
                }
                Err(error)
            }
        }
    }

    /// Looks at the files in place. Where something is wrong with them, the primary is asked for its
    /// generation as if there were none.
    fn look_at_own(&mut self) -> Result<(), ReplicaError> {
        let is_due = self.reread.as_ref().is_none_or(|since| since.elapsed() >= REREAD_INTERVAL);
        let own = self.own.current();
        let own = own.as_ref().map(|own| own.generation.as_ref());
        // What was wrong is right only where its bytes are.
        let reads = |path: &str| is_due || self.damaged.contains(path);
        let damaged = self.folder.damaged(own, &reads)?;
        if is_due {
            self.reread = Some(Stopwatch::start());
        }
        if !damaged.is_empty() {
            self.tag = None;
        }
        if !damaged.is_subset(&self.damaged) {
            let files = damaged.iter().cloned().collect::<Vec<_>>().join(", ");
            tracing::warn!(files, "files of the copy are gone or damaged, and copied again");
        }
        self.status.damaged(&damaged);
        self.damaged = damaged;
        Ok(())
    }

    /// The files of a generation that have to be fetched.
    fn missing(&self, wanted: &Generation) -> Result<Vec<PublishedFile>, ReplicaError> {
        let own = self.own.current();
        let own = own.as_ref().map(|own| own.generation.as_ref());
        let mut missing = Vec::new();
        for file in wanted.all_files() {
            if self.damaged.contains(&file.path) || !self.folder.has(file, own)? {
                missing.push(file.clone());
            }
        }
        Ok(missing)
    }

    /// The primary's generation, its tag and the servers behind it; none where it is the one in place.
    fn generation(&mut self) -> Result<Option<(Generation, Option<String>, String)>, ReplicaError> {
        let mut headers = self.headers.clone();
        if let Some(tag) = &self.tag {
            headers.insert(IF_NONE_MATCH, value(tag)?);
        }
        let wrong = |what: &str| ReplicaError::Generation(what.to_owned());
        let url = self.options.primary.join(GENERATION_PATH);
        let url = url.map_err(|_| wrong("it has no address"))?;
        let opened = self.network.open(&mut self.client, &headers, url, GENERATION_BYTES_MAX);
        let mut stream = match opened {
            Err(HttpError::Refused { status: 404, .. }) => {
                return Err(wrong(
                    "the primary has published none, or is not a `kumiki rank serve`",
                ));
            }
            opened => opened?,
        };
        stream.demand(self.options.rate());
        self.status.answered();
        match stream.status() {
            304 if self.tag.is_some() => return Ok(None),
            200 => {}
            _ => return Err(wrong("the primary does not send it")),
        }
        let servers = checked_servers(stream.header(SERVERS_HEADER))?;
        let tag = Some(stream.header("etag").to_owned()).filter(|tag| !tag.is_empty());
        let bytes = self.body(&mut stream)?;
        let generation = Generation::from_bytes(&bytes).map_err(ReplicaError::Generation)?;
        Ok(Some((generation, tag, servers)))
    }

    fn body(&self, stream: &mut HttpStream) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.network.chunk(stream)? {
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }
}

/// Makes an attempt. One that panics has failed, and is not the last.
fn attempt(round: impl FnOnce() -> Result<(), ReplicaError>) -> Result<(), ReplicaError> {
    let broken_down =
        |panic: Box<dyn Any + Send>| Err(ReplicaError::BrokenDown(redacted(&panic_text(&*panic))));
    catch_unwind(AssertUnwindSafe(round)).unwrap_or_else(broken_down)
}

/// The pause after so many failures in a row that brought nothing.
fn back_off(interval: Duration, failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    interval.saturating_mul(doubled).min(BACK_OFF_MAX.max(interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_breaks_down_has_failed() {
        let error = attempt(|| panic!("no room for a thread at /data/rank")).unwrap_err();
        let text = "an attempt failed and is repeated: no room for a thread at <path>";
        assert_eq!(error.to_string(), text);
        attempt(|| Ok(())).unwrap();
    }

    #[test]
    fn pauses_grow_to_a_minute() {
        let pauses =
            |interval| [1, 2, 3, 30].map(|failures| back_off(interval, failures).as_secs());
        assert_eq!(pauses(Duration::from_secs(5)), [5, 10, 20, 60]);
        assert_eq!(pauses(Duration::from_secs(300)), [300; 4]);
    }
}
