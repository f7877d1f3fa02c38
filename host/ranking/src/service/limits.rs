//! What a request may hold and cost. Every number has its reason; the SDL states those that a
//! client can meet.

use std::time::Duration;

use crate::limits;

/// Limits of the service. [`ServiceLimits::default`] holds the stated ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Highest `limit` (rows for each day), at most [`limits::LIMIT_MAX`].
    pub rank_limit: u32,
    /// Longest range from fromDate to toDate, at most [`limits::RANGE_YEARS_MAX`].
    pub range_years: u32,
    /// Most characters of a formula; at most [`limits::FORMULA_CHARS_MAX`].
    pub formula_characters: usize,
    /// Highest lag of a formula, in business days; at most [`limits::LAG_MAX`].
    pub lag: u32,
    /// Most uses of stockRankingRange in one request.
    pub aliases: usize,
    /// Deepest nesting of fields. The usual introspection query needs 13.
    pub depth: usize,
    /// Most fields and uses of fragments of a request after its fragments are put in.
    pub fields: usize,
    /// Largest body of a request, in bytes. The longest formula is 1,000 characters.
    pub body_bytes: usize,
    /// Most rows of one ranking: ten years of the highest limit and a little more.
    pub answer_rows: usize,
    /// Large answers that are worked on at the same time; the rest wait in a fair queue. An answer that takes
    /// at most a 64th of `answer_memory` is small, and waits for no large one.
    pub concurrent_answers: usize,
    /// Requests that may wait for their turn beside so many that are worked on. One more is told BUSY.
    pub queue: usize,
    /// Open connections. One more waits to be accepted.
    pub connections: usize,
    /// Time for a request from its first byte to its answer, waiting included.
    pub request_timeout: Duration,
    /// Time for a client to send its headers, and again for its body.
    pub receive_timeout: Duration,
    /// Time in which a client must take something of its answer. One that takes nothing is dropped.
    pub write_timeout: Duration,
    /// Time for a client to take a whole answer of GraphQL.
    pub answer_timeout: Duration,
    /// Bytes for all answers of GraphQL together, from before one is made until its client has it.
    /// Large answers leave a quarter to small ones, so the rankings of one request may take the rest.
    pub answer_memory: u64,
    /// Time that a request may wait for memory before it is told BUSY.
    pub memory_wait: Duration,
    /// Time after which an answer of which its client takes nothing, or less than 32 KiB a second, is given
    /// up, when another one waits for memory.
    pub stalled_after: Duration,
    /// Stored files that are sent at the same time; one more is told to come again. Files of at most two
    /// megabytes have as many places of their own. Each holds about two megabytes, whatever its size.
    pub downloads: usize,
    /// Time for a client to take a whole file. It may go on with a Range request.
    pub download_timeout: Duration,
    /// Time for running requests to end after the service is told to stop.
    pub shutdown_timeout: Duration,
}

impl ServiceLimits {
    /// Files that the service may have open: one for each connection and each download, which has a connection
    /// too, and [`FILES_RESERVED`].
    #[must_use]
    pub fn open_files(&self) -> u64 {
        let connections = self.connections as u64;
        connections
            .saturating_add(connections.min(self.download_places()))
            .saturating_add(FILES_RESERVED)
    }

    /// The most connections, up to [`Self::connections`] and at least one, that leave the service its own files
    /// where it may have so many open.
    #[must_use]
    pub fn connections_within(&self, files: u64) -> usize {
        let left = files.saturating_sub(FILES_RESERVED);
        // While there are places for downloads, each connection may be one.
        let most = left.saturating_sub(self.download_places()).max(left / 2);
        usize::try_from(most).unwrap_or(usize::MAX).min(self.connections).max(1)
    }

    /// Downloads of large files and of small ones.
    const fn download_places(&self) -> u64 {
        (self.downloads as u64).saturating_mul(2)
    }
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self {
            rank_limit: limits::LIMIT_MAX,
            range_years: limits::RANGE_YEARS_MAX,
            formula_characters: limits::FORMULA_CHARS_MAX,
            lag: limits::LAG_MAX,
            aliases: 4,
            depth: 20,
            fields: 1_000,
            body_bytes: 64 * 1024,
            answer_rows: 1_500_000,
            concurrent_answers: 4,
            queue: 512,
            connections: 1_024,
            request_timeout: Duration::from_secs(30),
            receive_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(600),
            answer_memory: 512 << 20,
            memory_wait: Duration::from_secs(15),
            stalled_after: Duration::from_secs(5),
            downloads: 64,
            download_timeout: Duration::from_secs(3_600),
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

/// Open files that the service keeps for itself, beside those of connections and downloads: what it listens with
/// and writes to, the snapshots that queries use, what is opened while a publication is taken up, and a
/// replica's connections and parts. A service has a dozen open while nothing happens; the database engine ends
/// the process where it can open no more.
pub const FILES_RESERVED: u64 = 48;
/// Opening brackets of a request's text. The parser calls itself for brackets inside brackets, so this
/// bounds its stack.
pub(super) const BRACKETS: usize = 1_000;
/// Stack of a thread of the service: 16 KiB for each bracket. What is not used takes no memory.
pub(super) const STACK_BYTES: usize = 16 << 20;
/// Fragments of a request. The library compares each with each.
pub(super) const FRAGMENTS: usize = 100;
/// Lists inside lists of an introspection query. Types hold fields that hold types again, so
/// every further level multiplies the answer.
pub(super) const INTROSPECTION_LISTS: usize = 4;
/// Bytes of one day's prices of an issue, which the library resolves field by field.
pub(super) const PRICE_DAY_BYTES: u64 = 1_500;
/// Characters of one error message. The library's own messages repeat what the client sent.
pub(super) const MESSAGE_CHARACTERS: usize = 400;
/// Errors of one answer.
pub(super) const ERRORS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_the_service_its_own_files() {
        let limits = ServiceLimits::default();
        assert_eq!(limits.open_files(), 1_024 + 128 + FILES_RESERVED);
        let connections = |files| limits.connections_within(files);
        assert_eq!([0, 48, 50, 64].map(connections), [1, 1, 1, 8]);
        assert_eq!([256, 1_024, 1_199].map(connections), [104, 848, 1_023]);
        assert_eq!([1_200, 524_288, u64::MAX].map(connections), [1_024; 3]);
        for files in 50..1_300 {
            let fitting = ServiceLimits { connections: connections(files), ..limits.clone() };
            assert!(fitting.open_files() <= files, "{files}: {fitting:?}");
        }
    }
}
