//! Remembers which days a month's file has, so that it is read once to find out. 32 bytes of little-endian numbers:
//! the month, counted from the year 0, a bit for each of its days, and a checksum; they belong to the file's content.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFile;
use chrono::Datelike;
use domain::JstDate;
use xxhash_rust::xxh3::xxh3_64;

use crate::catalog::Period;

const MAGIC: &[u8; 8] = b"KMKDAYS1";
const BYTES: usize = 32;
const HASHED_BYTES: usize = BYTES - 8;

fn path(folder: &Path, source: u128) -> PathBuf {
    folder.join(format!("days-{source:032x}.memo"))
}

fn month(date: JstDate) -> u64 {
    u64::from(date.year().unsigned_abs()) * 12 + u64::from(date.month0())
}

/// The days of a file of a month with this content, where they are known.
pub(super) fn known(folder: &Path, source: u128, period: Period) -> Option<BTreeSet<JstDate>> {
    decode(&std::fs::read(path(folder, source)).ok()?, period)
}

/// Keeps them.
pub(super) fn keep(
    folder: &Path,
    source: u128,
    period: Period,
    days: &BTreeSet<JstDate>,
) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = AtomicFile::create_in(folder)?;
    file.write_all(&encode(period, days))?;
    // It carries a checksum, and without it the file is read again.
    file.commit_unsynced(&path(folder, source))
}

fn encode(period: Period, days: &BTreeSet<JstDate>) -> [u8; BYTES] {
    let bits = days.iter().fold(0_u64, |bits, day| bits | 1 << day.day0());
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&month(period.first()).to_le_bytes());
    bytes[16..24].copy_from_slice(&bits.to_le_bytes());
    let check = xxh3_64(&bytes[..HASHED_BYTES]);
    bytes[HASHED_BYTES..].copy_from_slice(&check.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8], period: Period) -> Option<BTreeSet<JstDate>> {
    let bytes = <&[u8; BYTES]>::try_from(bytes).ok()?;
    let number = |at: usize| bytes[at..].first_chunk().map(|field| u64::from_le_bytes(*field));
    let is_sound = &bytes[..8] == MAGIC && number(HASHED_BYTES)? == xxh3_64(&bytes[..HASHED_BYTES]);
    // The same bytes may have another name, and then they have no row of its month.
    if !is_sound || number(8)? != month(period.first()) {
        return None;
    }
    let bits = number(16)?;
    let days = period.first().iter_days().take_while(|day| *day <= period.last());
    Some(days.filter(|day| bits >> day.day0() & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_kept_for_their_month_and_damage_is_noticed() {
        let period = Period::parse("202502").unwrap();
        let days: BTreeSet<JstDate> =
            ["2025-02-03", "2025-02-28"].map(|day| day.parse().unwrap()).into();
        let bytes = encode(period, &days);
        assert_eq!(decode(&bytes, period), Some(days.clone()));
        assert_eq!(decode(&bytes, Period::parse("202402").unwrap()), None);
        for position in 0..BYTES {
            let mut damaged = bytes;
            damaged[position] ^= 1;
            assert_eq!(decode(&damaged, period), None, "byte {position}");
        }
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        assert_eq!(known(&cache, 7, period), None);
        keep(&cache, 7, period, &days).unwrap();
        assert_eq!((known(&cache, 7, period), known(&cache, 8, period)), (Some(days), None));
    }
}
