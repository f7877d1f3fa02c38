//! Bytes of a grid's file:
//!
//! | part | content |
//! |---|---|
//! | header | 4,096 bytes: magic, version, snapshot, days, codes, digest of the tail, digest of itself |
//! | body | for each day, for each column, one stripe: the codes' doubles, filled up to 64 bytes |
//! | tail | dates (days since 0001-01-01, i32), codes (16 bytes each), one xxh3 for each stripe |
//! | splits | in version 3 the tail ends with them; a file of version 1 knows none, and what one of version 2 knows is not used: it does not tell where a split may be missing |
//!
//! Numbers are in the machine's order; the magic number does not fit on another machine.

use chrono::{Datelike, NaiveDate};
use domain::JstDate;
use xxhash_rust::xxh3::xxh3_64;

use super::{COLUMNS, Splits};
use crate::limits::{CODE_BYTES_MAX, SNAPSHOT_CELLS_MAX, SNAPSHOT_CODES_MAX, SNAPSHOT_DAYS_MAX};

/// Bytes before the body: one page, so that stripes are aligned.
pub(super) const HEADER_BYTES: usize = 4_096;
/// "KUMIKIRG" as a number.
const MAGIC: u64 = 0x4b55_4d49_4b49_5247;
/// Version of this layout where splits are not known.
const VERSION_WITHOUT_SPLITS: u64 = 1;
/// Version of this layout with splits alone, which are passed over.
const VERSION_WITH_SOME_SPLITS: u64 = 2;
/// Version of this layout with splits, and with the days of which nothing is known.
const VERSION_WITH_SPLITS: u64 = 3;
/// Doubles of a cache line; stripes start at a multiple of them.
const LANE: usize = 8;
/// Numbers in the header; the last one is the digest of those before it.
const FIELDS: usize = 7;

/// Where everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) number: u64,
    pub(super) days: usize,
    pub(super) codes: usize,
    /// Whether the tail ends with splits.
    pub(super) has_splits: bool,
    pub(super) tail_digest: u64,
}

impl Layout {
    /// Doubles from one stripe to the next.
    pub(super) fn stride(&self) -> usize {
        self.codes.next_multiple_of(LANE)
    }

    pub(super) fn stripe_start(&self, day: usize, column: usize) -> usize {
        HEADER_BYTES + (day * COLUMNS + column) * self.stride() * size_of::<f64>()
    }

    fn tail_start(&self) -> usize {
        self.stripe_start(self.days, 0)
    }

    /// Bytes of the tail up to the splits.
    fn tail_bytes(&self) -> usize {
        self.days * (size_of::<i32>() + COLUMNS * size_of::<u64>()) + self.codes * CODE_BYTES_MAX
    }

    /// The header's bytes.
    pub(super) fn header(&self) -> [u8; HEADER_BYTES] {
        let version = if self.has_splits { VERSION_WITH_SPLITS } else { VERSION_WITHOUT_SPLITS };
        let mut fields =
            [MAGIC, version, self.number, self.days as u64, self.codes as u64, self.tail_digest, 0];
        fields[FIELDS - 1] = xxh3_64(bytemuck::cast_slice(&fields[..FIELDS - 1]));
        let mut bytes = [0; HEADER_BYTES];
        bytes[..size_of_val(&fields)].copy_from_slice(bytemuck::cast_slice(&fields));
        bytes
    }

    /// Reads and checks the header of snapshot `number`.
    pub(super) fn read(file: &[u8], number: u64) -> Result<Self, String> {
        let mut fields = [0_u64; FIELDS];
        let wanted = size_of_val(&fields);
        let bytes =
            file.get(..wanted).ok_or_else(|| format!("it has only {} bytes", file.len()))?;
        bytemuck::cast_slice_mut(&mut fields).copy_from_slice(bytes);
        let [magic, version, found, days, codes, tail_digest, digest] = fields;
        let has_splits = version == VERSION_WITH_SPLITS;
        if magic != MAGIC || !(VERSION_WITHOUT_SPLITS..=VERSION_WITH_SPLITS).contains(&version) {
            return Err("another version or another kind of machine wrote it".to_owned());
        }
        if xxh3_64(bytemuck::cast_slice(&fields[..FIELDS - 1])) != digest {
            return Err("its header was changed after it was written".to_owned());
        }
        if found != number {
            return Err(format!("it is snapshot {found}"));
        }
        let days = usize::try_from(days).unwrap_or(usize::MAX);
        let codes = usize::try_from(codes).unwrap_or(usize::MAX);
        within_limits(days, codes)?;
        let layout = Self { number, days, codes, has_splits, tail_digest };
        let wanted = layout.tail_start() + layout.tail_bytes();
        // How many splits follow is known when the tail was held against its digest.
        let has_more = has_splits || version == VERSION_WITH_SOME_SPLITS;
        if file.len() < wanted || (file.len() > wanted && !has_more) {
            return Err(format!("it has {} bytes instead of {wanted}", file.len()));
        }
        Ok(layout)
    }
}

/// The digest at the end of a header's numbers.
pub(super) fn digest_of(file: &[u8]) -> Option<u64> {
    let at = (FIELDS - 1) * size_of::<u64>();
    let bytes = file.get(at..at + size_of::<u64>())?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Holds the size of a snapshot against the limits.
pub(super) fn within_limits(days: usize, codes: usize) -> Result<(), String> {
    let cells = days.saturating_mul(codes);
    if days > SNAPSHOT_DAYS_MAX || codes > SNAPSHOT_CODES_MAX || cells > SNAPSHOT_CELLS_MAX {
        return Err(format!(
            "{days} days of {codes} codes are too many; at most {SNAPSHOT_DAYS_MAX} days, \
             {SNAPSHOT_CODES_MAX} codes and {SNAPSHOT_CELLS_MAX} of both multiplied are allowed"
        ));
    }
    Ok(())
}

/// What follows the body.
#[derive(Debug, PartialEq)]
pub(super) struct Tail {
    pub(super) days: Vec<JstDate>,
    pub(super) codes: Vec<Box<str>>,
    pub(super) digests: Vec<u64>,
    pub(super) splits: Option<Splits>,
}

impl Tail {
    /// The tail's bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let dates: Vec<i32> = self.days.iter().map(Datelike::num_days_from_ce).collect();
        let mut bytes: Vec<u8> = bytemuck::cast_slice(&dates).to_vec();
        for code in &self.codes {
            let mut cell = [0; CODE_BYTES_MAX];
            let length = code.len().min(CODE_BYTES_MAX);
            cell[..length].copy_from_slice(&code.as_bytes()[..length]);
            bytes.extend(cell);
        }
        bytes.extend_from_slice(bytemuck::cast_slice(&self.digests));
        bytes.extend(self.splits.iter().flat_map(Splits::bytes));
        bytes
    }

    /// Reads and checks the tail.
    pub(super) fn read(file: &[u8], layout: &Layout) -> Result<Self, String> {
        let bytes = file.get(layout.tail_start()..).unwrap_or_default();
        if xxh3_64(bytes) != layout.tail_digest {
            return Err("its calendar was changed after it was written".to_owned());
        }
        let (dates, bytes) = bytes.split_at(layout.days * size_of::<i32>());
        let (codes, bytes) = bytes.split_at(layout.codes * CODE_BYTES_MAX);
        let (digests, splits) = bytes.split_at(layout.days * COLUMNS * size_of::<u64>());
        let days = numbers(dates, i32::from_ne_bytes)
            .map(NaiveDate::from_num_days_from_ce_opt)
            .collect::<Option<Vec<_>>>();
        let codes = codes.chunks_exact(CODE_BYTES_MAX).map(code).collect::<Option<Vec<_>>>();
        let (Some(days), Some(codes)) = (days, codes) else {
            return Err("its calendar or codes cannot be read".to_owned());
        };
        if !days.is_sorted_by(|a, b| a < b) || !codes.is_sorted_by(|a, b| a < b) {
            return Err("its calendar or codes are not in order".to_owned());
        }
        let digests = numbers(digests, u64::from_ne_bytes).collect();
        let splits = layout
            .has_splits
            .then(|| Splits::read(splits, layout.days, layout.codes))
            .transpose()?;
        Ok(Self { days, codes, digests, splits })
    }
}

fn numbers<T, const N: usize>(bytes: &[u8], read: fn([u8; N]) -> T) -> impl Iterator<Item = T> {
    bytes.as_chunks::<N>().0.iter().map(move |chunk| read(*chunk))
}

fn code(cell: &[u8]) -> Option<Box<str>> {
    let length = cell.iter().position(|byte| *byte == 0).unwrap_or(cell.len());
    std::str::from_utf8(cell.get(..length)?).ok().map(Box::from)
}
