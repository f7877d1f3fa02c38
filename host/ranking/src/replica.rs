//! A copy of another server's published generation, kept up with it, so that reads scale out behind
//! any load balancer: `kumiki rank serve --follow URL`.

mod fetch;
mod folder;
mod follow;
mod status;
#[cfg(test)]
mod tests;
mod trial;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;

use domain::clock::wall_now;
use http_client::{CancellationToken, HttpError, MinimumRate, Url};
use pricestore::DataDir;
use secrecy::SecretString;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use folder::ReplicaFolder;
use follow::Follower;

pub use status::{ReplicaNumbers, ReplicaStatus};

/// Header of a generation with the servers that have handed it on, the last one first.
pub(crate) const SERVERS_HEADER: &str = "kumiki-servers";
/// Servers between the one that makes the data and a replica; more of them are a circle or a mistake.
pub const SERVERS_MAX: usize = 8;
/// Longest pause after attempts that failed; each is twice the one before.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// How often a cut download of a file is gone on with before there is a pause.
pub const RESUMES_MAX: u32 = 64;

/// Bytes that a download has to bring within [`ReplicaOptions::patience`], if it does not end before.
pub const PATIENCE_BYTES_MIN: u64 = 1 << 20;
/// Pause between two readings of all files of a copy: what a disk loses by itself changes neither a
/// file's size nor its time.
pub const REREAD_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// Pause before a generation that was refused is fetched again, while the primary has no other: what it needs to
/// be opened may have been missing here.
pub const REFUSED_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long an attempt may be busy with files of the copy, all of which it may have to read, without a word.
pub const QUIET_MAX: Duration = Duration::from_secs(30 * 60);
/// Files of a damaged copy that `/health` names; more are counted.
pub const DAMAGED_SHOWN_MAX: usize = 10;

/// What is followed, and what may be used for it.
///
/// | Rule | A replica |
/// |---|---|
/// | R1 | asks for `jp/generation.json` every `interval`, and copies what it names: combined database, snapshot, listed issues, and with `issues` the databases of single issues |
/// | R2 | fetches only files that it does not have, aside, goes on where one was cut (`Range` with `If-Range`), and takes none whose size or digest is another one |
/// | R3 | puts files in their places once it has all of them and has tried them (R13), then the generation, then the name of the snapshot; before that it serves the generation that it has |
/// | R4 | keeps the snapshot before for queries that still run, and removes only what its notes say that it wrote |
/// | R5 | takes no name of a file from a text: a generation with any other name than those of the data layout is refused as a whole |
/// | R6 | serves what it has while the primary is away, asks again after 1, 2, 4 ... intervals up to a minute, from 1 again where an attempt brought a file more, and says so in `/health` and `/metrics` |
/// | R7 | does not begin in the folder of an update job, or in one with data of others; two do not share one |
/// | R8 | copies nothing from itself, directly or through others that follow it |
/// | R9 | copies nothing that would take more of the disk than `disk_bytes`, what it has included |
/// | R10 | looks every `interval` whether its files are there with the size and time that it noted, and reads all of them when it starts and every [`REREAD_INTERVAL`]; what is gone or another is named in `/health` (status `damaged`) and copied again; a file that only has another time is noted anew |
/// | R11 | says in `/health` (status `stale`) and `/metrics` since when and why nothing could be copied, once every attempt has failed for `stale_after`, or nothing at all was heard of an attempt for that time, [`QUIET_MAX`] and a pause; it serves what it has |
/// | R12 | gives up a download that brings fewer than [`PATIENCE_BYTES_MIN`] within `patience` before its end, keeps what came, and asks again as R6 says |
/// | R13 | tries a generation before any file of it gets its place: every byte of every file by its digest, those that are in place already too, and that each opens as what it is; one that fails is thrown away and told in `/health` (status `refused`), the one before is served, and it is not fetched again before the primary has another one or [`REFUSED_INTERVAL`] is over |
/// | R14 | takes a generation whose data end earlier than those it had, as where the primary was made anew from an older folder, and says so: `went_back_from` in `/health`, until the data reach as far again |
#[derive(Debug)]
pub struct ReplicaOptions {
    /// The folder of the copy.
    pub data: DataDir,
    /// The address under which the primary has `/jp/`; see `http_client::checked_address`.
    pub primary: Url,
    /// What the primary wants to be shown.
    pub token: Option<SecretString>,
    /// Pause between two looks.
    pub interval: Duration,
    /// Bytes that the copy may take on disk, with the next one while it is fetched.
    pub disk_bytes: u64,
    /// Whether the databases of single issues are copied too.
    pub issues: bool,
    /// After so long without an attempt that went well the copy counts as stale.
    pub stale_after: Duration,
    /// Time within which a download brings [`PATIENCE_BYTES_MIN`], or is given up.
    pub patience: Duration,
}

impl ReplicaOptions {
    /// How slowly the primary may send.
    fn rate(&self) -> MinimumRate {
        MinimumRate { bytes: PATIENCE_BYTES_MIN, time: self.patience }
    }
}

/// Why nothing could be copied. The copy that is there stays as it is. No text holds a key, an address
/// or a path outside of the data layout.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplicaError {
    /// The primary gave no answer.
    #[error("the primary: {0}")]
    Http(#[from] HttpError),
    /// The primary's generation cannot be used.
    #[error("the primary's generation cannot be used: {0}")]
    Generation(String),
    /// The address leads back here.
    #[error("--follow leads back to this server; give the address of another server")]
    Itself,
    /// The primary is a copy without the databases of single issues.
    #[error("the primary serves no databases of single issues; leave out --follow-issues")]
    NoIssues,
    /// The primary published anew in between.
    #[error("the primary has published a new {0}; the copy starts again")]
    Moved(String),
    /// A file is not what the generation says.
    #[error("{path} differs from the primary's generation: {what}")]
    Differs {
        /// Its path below the data directory.
        path: String,
        /// In what.
        what: String,
    },
    /// A file is what the generation says, and no use.
    #[error(
        "{path} of the primary's generation cannot be used: {what}; the replica drops this generation and \
         serves the previous one"
    )]
    Unusable {
        /// Its path below the data directory.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// A file came in too many pieces.
    #[error("{path}: the connection broke {RESUMES_MAX} times; the copied part is kept")]
    Cut {
        /// Its path below the data directory.
        path: String,
    },
    /// The copy would be too large.
    #[error("the copy would take {wanted} bytes of the disk; --follow-disk allows {limit}")]
    TooLarge {
        /// What it would take, with what is there.
        wanted: u64,
        /// What it may.
        limit: u64,
    },
    /// A file of somebody else stands in the way.
    #[error("{0} was not written by this replica; move it away")]
    Foreign(String),
    /// The folder is no replica's.
    #[error("{0}")]
    Folder(&'static str),
    /// An attempt broke down.
    #[error("an attempt failed and is repeated: {0}")]
    BrokenDown(String),
    /// A file of the copy cannot be read or written.
    #[error("the copy cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// A replica whose folder is its own already; it copies once it was started.
#[derive(Debug)]
pub struct PreparedReplica {
    options: ReplicaOptions,
    folder: ReplicaFolder,
    status: ReplicaStatus,
}

impl PreparedReplica {
    /// Takes the folder.
    ///
    /// # Errors
    /// When it is not a replica's, another one has it, or it cannot be used.
    pub fn take(options: ReplicaOptions) -> Result<Self, ReplicaError> {
        let folder = ReplicaFolder::take(&options.data)?;
        let status = ReplicaStatus::new(&options);
        Ok(Self { options, folder, status })
    }

    /// What is known of the primary, now and later.
    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        self.status.clone()
    }

    /// Starts to copy, for a service at this address.
    ///
    /// # Errors
    /// When the primary is this service, or the system has no threads or sockets left.
    pub fn start(self, address: SocketAddr) -> Result<Replica, ReplicaError> {
        if leads_to(&self.options.primary, address) {
            return Err(ReplicaError::Itself);
        }
        let cancel = CancellationToken::new();
        let follower = Follower::new(self.options, self.folder, self.status, cancel.clone())?;
        let builder = std::thread::Builder::new().name("rank-replica".to_owned());
        let thread = builder.spawn(move || follower.run())?;
        Ok(Replica { cancel, thread: Some(thread) })
    }
}

/// A replica that copies until it is dropped.
#[derive(Debug)]
pub struct Replica {
    cancel: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// Whether an address is the one at which we listen. What leads here by a name or through others is
/// found by the servers that a generation names.
fn leads_to(primary: &Url, listening: SocketAddr) -> bool {
    let host = primary.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let any = listening.ip().is_unspecified();
    let is_host = match host.parse::<IpAddr>() {
        Ok(ip) => ip == listening.ip() || (any && ip.is_loopback()),
        Err(_) => host == "localhost" && (any || listening.ip().is_loopback()),
    };
    is_host && primary.port_or_known_default() == Some(listening.port())
}

/// The name of this process among servers: another one for each start.
fn instance() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let start = format!("{} {}", std::process::id(), wall_now().nanos());
        format!("{:016x}", xxh3_64(start.as_bytes()))
    })
}

/// The servers that hand on a generation: this one, and those before it.
pub(crate) fn servers(before: Option<&str>) -> String {
    match before.unwrap_or_default() {
        "" => instance().to_owned(),
        before => format!("{}, {before}", instance()),
    }
}

/// The servers of a header, where this one is none of them.
fn checked_servers(header: &str) -> Result<String, ReplicaError> {
    let wrong = |what: &str| ReplicaError::Generation(what.to_owned());
    let names = header.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<&str> = names.take(SERVERS_MAX + 1).collect();
    if names.contains(&instance()) {
        return Err(ReplicaError::Itself);
    }
    if names.len() > SERVERS_MAX {
        return Err(wrong("too many servers copy it from each other in a row"));
    }
    let is_name = |name: &&str| name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit());
    if !names.iter().all(is_name) {
        return Err(wrong("its header does not name the servers that copied it"));
    }
    Ok(names.join(", "))
}
