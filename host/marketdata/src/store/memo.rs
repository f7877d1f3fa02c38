//! Remembers the content hash of a source file, so that a large file is not hashed on each run.
//!
//! A memo is trusted while the file's length and time of change are as noted, and only when that
//! time lies clearly before the moment the memo was taken: a file changed twice within the clock's
//! resolution would otherwise keep the memo of its first content.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use atomic_file::AtomicFile;
use domain::clock;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

const MAGIC: &[u8; 8] = b"KMKMEMO1";
const MEMO_BYTES: usize = 64;
const HASHED_BYTES: usize = MEMO_BYTES - 8;
/// The coarsest time of change among usual file systems (FAT) is two seconds.
const SETTLED_NANOS: u64 = 2_000_000_000;
const READ_BYTES: usize = 1 << 20;

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    length: u64,
    changed: u64,
}

impl State {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        let changed = metadata.modified()?.duration_since(UNIX_EPOCH);
        let changed = changed.unwrap_or_default().as_nanos();
        Ok(Self { length: metadata.len(), changed: u64::try_from(changed).unwrap_or(u64::MAX) })
    }
}

/// The name of the memo of the file at `source`; relative and linked paths share one.
fn memo_name(source: &Path) -> io::Result<String> {
    let full = source.canonicalize()?;
    let key = xxh3_128(full.as_os_str().as_encoded_bytes());
    Ok(format!("source-{key:032x}.memo"))
}

/// xxh3-128 of the file at `source`, from the memo in `folder` or by reading the file.
pub(super) fn content_hash(folder: &Path, source: &Path) -> io::Result<u128> {
    let memo = folder.join(memo_name(source)?);
    let state = State::of(source)?;
    if let Some(hash) = std::fs::read(&memo).ok().and_then(|bytes| trusted(&bytes, state)) {
        return Ok(hash);
    }
    let taken = clock::wall_now().nanos();
    let hash = hash_file(source)?;
    if State::of(source)? == state {
        // Without a memo the next run only takes longer.
        if let Err(error) = save(folder, &memo, &encode(state, taken, hash)) {
            tracing::debug!("{} is hashed again next time: {error}", source.display());
        }
    }
    Ok(hash)
}

/// The hash of the file at `source` where a memo that can be trusted holds it.
pub(super) fn known_hash(folder: &Path, source: &Path) -> Option<u128> {
    let memo = folder.join(memo_name(source).ok()?);
    trusted(&std::fs::read(memo).ok()?, State::of(source).ok()?)
}

/// Drops the memo of a file that turned out to be wrong.
pub(super) fn forget(folder: &Path, source: &Path) {
    if let Ok(name) = memo_name(source) {
        // A memo that stays is found wrong again, which costs time but no correctness.
        let _ = std::fs::remove_file(folder.join(name));
    }
}

fn hash_file(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hash = Box::new(Xxh3::new());
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.digest128()),
            Ok(length) => hash.update(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn encode(state: State, taken: u64, hash: u128) -> [u8; MEMO_BYTES] {
    let mut bytes = [0; MEMO_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&state.length.to_le_bytes());
    bytes[16..24].copy_from_slice(&state.changed.to_le_bytes());
    bytes[24..32].copy_from_slice(&taken.to_le_bytes());
    bytes[32..48].copy_from_slice(&hash.to_le_bytes());
    let check = xxh3_64(&bytes[..HASHED_BYTES]);
    bytes[HASHED_BYTES..].copy_from_slice(&check.to_le_bytes());
    bytes
}

fn trusted(bytes: &[u8], state: State) -> Option<u128> {
    let bytes = <&[u8; MEMO_BYTES]>::try_from(bytes).ok()?;
    let number = |at: usize| bytes[at..].first_chunk().map(|field| u64::from_le_bytes(*field));
    if &bytes[..8] != MAGIC || number(HASHED_BYTES)? != xxh3_64(&bytes[..HASHED_BYTES]) {
        return None;
    }
    let noted = State { length: number(8)?, changed: number(16)? };
    let settled = noted.changed.saturating_add(SETTLED_NANOS) <= number(24)?;
    let hash = u128::from_le_bytes(*bytes[32..].first_chunk()?);
    (noted == state && settled).then_some(hash)
}

fn save(folder: &Path, memo: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = AtomicFile::create_in(folder)?;
    file.write_all(bytes)?;
    // It carries a digest, and without it the file is hashed again.
    file.commit_unsynced(memo)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: State = State { length: 5, changed: 10_000_000_000 };

    #[test]
    fn memos_are_trusted_only_when_the_file_had_settled() {
        let taken_after = |nanos| encode(STATE, STATE.changed + nanos, 42);
        assert_eq!(trusted(&taken_after(SETTLED_NANOS), STATE), Some(42));
        assert_eq!(trusted(&taken_after(SETTLED_NANOS - 1), STATE), None);
        assert_eq!(trusted(&encode(STATE, 0, 42), STATE), None);
    }

    #[test]
    fn memos_of_other_states_and_damaged_memos_are_ignored() {
        let memo = encode(STATE, u64::MAX, 42);
        assert_eq!(trusted(&memo, State { length: 6, ..STATE }), None);
        assert_eq!(trusted(&memo, State { changed: 9, ..STATE }), None);
        assert_eq!(trusted(&memo[1..], STATE), None);
        for position in 0..MEMO_BYTES {
            let mut damaged = memo;
            damaged[position] ^= 1;
            assert_eq!(trusted(&damaged, STATE), None, "byte {position}");
        }
    }
}
