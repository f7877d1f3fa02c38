//! The layout of a cache file: a header of 128 bytes, then columns of little-endian 64-bit integers,
//! each padded with zeros to a multiple of 64 bytes: three for trades (timestamp, price, quantity), six
//! for bars (timestamp, open, high, low, close, volume), two for adjustment factors (timestamp, new
//! shares in the upper half and old ones in the lower).
//!
//! | bytes | header field |
//! |---|---|
//! | 0..8 | `KMKTRADE`, `KMKBARSM` (minute bars), `KMKBARSD` (daily bars) or `KMKFACTD` (factors) |
//! | 8..16 | format version |
//! | 16..32 | xxh3-128 of the source file |
//! | 32..40 | vendor code, three zeros |
//! | 40..48 | rows |
//! | 48..64 | first and last timestamp, nanoseconds since 1970 in UTC; zero without rows |
//! | 64..80 | price grid: step, bit per official tick table |
//! | 80..88 | xxh3-64 of the columns with their padding |
//! | 88..120 | zeros |
//! | 120..128 | xxh3-64 of the 120 bytes before |

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use domain::VendorCode;
use domain::market::BarGranularity;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::grid::{GridFinder, PriceGrid};

#[cfg(target_endian = "big")]
compile_error!("cache columns are mapped as little-endian integers");

/// Raised with every change of the layout or of the meaning of a field.
const VERSION: u64 = 1;
pub(super) const HEADER_BYTES: usize = 128;
const HASHED_HEADER_BYTES: usize = HEADER_BYTES - 8;
/// A cache line, and enough for every vector instruction.
const ALIGNMENT: usize = 64;

/// Bytes that are checked at a time.
const CHECKED_BYTES: usize = 256 << 10;

/// What the rows of a segment are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Trades,
    Bars(BarGranularity),
    /// The adjustment factors of a daily bar file, those that change nothing too.
    Factors,
}

impl Kind {
    const fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Trades => b"KMKTRADE",
            Self::Bars(BarGranularity::Minute) => b"KMKBARSM",
            Self::Bars(BarGranularity::Day) => b"KMKBARSD",
            Self::Factors => b"KMKFACTD",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Trades => "trades",
            Self::Bars(BarGranularity::Minute) => "minute",
            Self::Bars(BarGranularity::Day) => "daily",
            Self::Factors => "factor-days",
        }
    }

    const fn columns(self) -> usize {
        match self {
            Self::Trades => 3,
            Self::Bars(_) => 6,
            Self::Factors => 2,
        }
    }

    /// The columns that are prices.
    pub(super) const fn prices(self) -> Range<usize> {
        match self {
            Self::Trades => 1..2,
            Self::Bars(_) => 1..5,
            Self::Factors => 0..0,
        }
    }
}

/// What a segment is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) kind: Kind,
    pub(super) source: u128,
    pub(super) code: VendorCode,
}

impl Key {
    pub(super) fn file_name(&self) -> String {
        format!("{}-{:032x}-{}.columns", self.kind.name(), self.source, self.code)
    }

    /// What the file with trades of that name is made from; `None` for names of other files.
    pub(super) fn of_file_name(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("trades-")?.strip_suffix(".columns")?;
        let (source, code) = rest.split_once('-')?;
        let key = Self {
            kind: Kind::Trades,
            source: u128::from_str_radix(source, 16).ok()?,
            code: VendorCode::new(code).ok()?,
        };
        (key.file_name() == name).then_some(key)
    }
}

/// Bytes of one column with its padding, and of the whole file, for so many rows and columns.
fn sizes(rows: u64, columns: usize) -> Option<(usize, usize)> {
    let bytes = usize::try_from(rows).ok()?.checked_mul(size_of::<u64>())?;
    let padded = bytes.checked_next_multiple_of(ALIGNMENT)?;
    Some((padded, padded.checked_mul(columns)?.checked_add(HEADER_BYTES)?))
}

/// Writes a cache file: columns in their order, each part by part, and the header at last.
pub(super) struct Writer<W> {
    out: W,
    key: Key,
    hash: Xxh3,
    grid: GridFinder,
    column: usize,
    /// Bytes of the present column.
    bytes: usize,
    rows: u64,
    first: u64,
    last: u64,
}

impl<W: Write + Seek> Writer<W> {
    /// Leaves room for the header.
    pub(super) fn new(mut out: W, key: Key) -> io::Result<Self> {
        out.write_all(&[0; HEADER_BYTES])?;
        Ok(Self {
            out,
            key,
            hash: Xxh3::new(),
            grid: GridFinder::default(),
            column: 0,
            bytes: 0,
            rows: 0,
            first: 0,
            last: 0,
        })
    }

    /// Adds rows to the present column.
    pub(super) fn append(&mut self, part: &[u64]) -> io::Result<()> {
        if self.column == 0 {
            if self.rows == 0 {
                self.first = part.first().copied().unwrap_or(0);
            }
            self.last = part.last().copied().unwrap_or(self.last);
            self.rows += part.len() as u64;
        }
        if self.key.kind.prices().contains(&self.column) {
            self.grid.take(bytemuck::cast_slice(part));
        }
        let bytes: &[u8] = bytemuck::cast_slice(part);
        self.bytes += bytes.len();
        self.put(bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }

    /// Ends the present column.
    pub(super) fn end_column(&mut self) -> io::Result<()> {
        let padding = self.bytes.next_multiple_of(ALIGNMENT) - self.bytes;
        self.column += 1;
        self.bytes = 0;
        self.put(&[0; ALIGNMENT][..padding])
    }

    /// Writes the header; all columns have ended.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let header = self.header();
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn header(&self) -> [u8; HEADER_BYTES] {
        let (step, tables) = self.grid.grid().to_parts();
        let mut header = [0; HEADER_BYTES];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, self.key.kind.magic());
        put(8, &VERSION.to_le_bytes());
        put(16, &self.key.source.to_le_bytes());
        put(32, self.key.code.as_bytes());
        put(40, &self.rows.to_le_bytes());
        put(48, &self.first.to_le_bytes());
        put(56, &self.last.to_le_bytes());
        put(64, &step.to_le_bytes());
        put(72, &tables.to_le_bytes());
        put(80, &self.hash.digest().to_le_bytes());
        let hash = xxh3_64(&header[..HASHED_HEADER_BYTES]);
        header[HASHED_HEADER_BYTES..].copy_from_slice(&hash.to_le_bytes());
        header
    }
}

/// The rows that the header of a cache file tells; `None` where the header is damaged. The columns
/// are not looked at.
pub(super) fn rows_in_header(path: &Path, key: &Key) -> Option<u64> {
    let mut header = [0; HEADER_BYTES];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    let number = |at: usize| header[at..].first_chunk().map(|field| u64::from_le_bytes(*field));
    let sound = &header[..8] == key.kind.magic()
        && number(HASHED_HEADER_BYTES)? == xxh3_64(&header[..HASHED_HEADER_BYTES])
        && number(8)? == VERSION
        && header[16..32] == key.source.to_le_bytes();
    sound.then_some(number(40)?)
}

/// What an intact cache file holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contents {
    pub(super) rows: usize,
    pub(super) grid: PriceGrid,
    /// Bytes from the start of one column to the start of the next.
    pub(super) stride: usize,
}

/// Checks every byte of a cache file of so many bytes. It is read and not mapped, because mapped
/// pages would count as memory of this process from then on.
pub(super) fn verify(mut source: impl Read, length: u64, key: &Key) -> Result<Contents, String> {
    let mut header = [0; HEADER_BYTES];
    if length < HEADER_BYTES as u64 {
        return Err(format!("it has only {length} bytes"));
    }
    source.read_exact(&mut header).map_err(|error| error.to_string())?;
    let contents = check_header(&header, length, key)?;
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; CHECKED_BYTES];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hash.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    if hash.digest() != number(&header, 80) {
        return Err("its columns are damaged".to_owned());
    }
    Ok(contents)
}

fn number(header: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let field = header[at..].first_chunk().copied().unwrap_or_default();
    u64::from_le_bytes(field)
}

/// Checks the header of a cache file of so many bytes, and nothing else.
pub(super) fn check_header(
    header: &[u8; HEADER_BYTES],
    length: u64,
    key: &Key,
) -> Result<Contents, String> {
    let number = |at| number(header, at);
    if &header[..8] != key.kind.magic() {
        return Err("it is no cache file".to_owned());
    }
    if xxh3_64(&header[..HASHED_HEADER_BYTES]) != number(HASHED_HEADER_BYTES) {
        return Err("its header is damaged".to_owned());
    }
    if number(8) != VERSION {
        return Err(format!("it has format {}, not {VERSION}", number(8)));
    }
    if header[16..32] != key.source.to_le_bytes() || &header[32..37] != key.code.as_bytes() {
        return Err("it was made from other data".to_owned());
    }
    let (stride, expected) = sizes(number(40), key.kind.columns()).unwrap_or((0, 0));
    if length != expected as u64 {
        return Err(format!("it has {length} bytes instead of {expected}"));
    }
    Ok(Contents {
        rows: usize::try_from(number(40)).unwrap_or(0),
        grid: PriceGrid::from_parts(number(64).cast_signed(), number(72)),
        stride,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn key() -> Key {
        Key { kind: Kind::Trades, source: 7, code: VendorCode::new("13010").unwrap() }
    }

    fn check(bytes: &[u8], key: &Key) -> Result<Contents, String> {
        verify(bytes, bytes.len() as u64, key)
    }

    fn file(rows: u64) -> Vec<u8> {
        let values: Vec<u64> = (1..=rows).map(|row| row * 10_000).collect();
        let mut out = Writer::new(Cursor::new(Vec::new()), key()).unwrap();
        for _ in 0..3 {
            let (head, tail) = values.split_at(values.len() / 2);
            out.append(head).unwrap();
            out.append(tail).unwrap();
            out.end_column().unwrap();
        }
        out.finish().unwrap().into_inner()
    }

    #[test]
    fn sizes_follow_the_rows() {
        for (rows, length) in [(0, 128), (1, 320), (8, 320), (9, 512)] {
            let bytes = file(rows);
            assert_eq!(bytes.len(), length, "{rows}");
            let contents = check(&bytes, &key()).unwrap();
            assert_eq!(contents.rows as u64, rows);
            let prices: Vec<i64> = (1..=rows.cast_signed()).map(|row| row * 10_000).collect();
            assert_eq!(contents.grid, PriceGrid::of(&prices));
        }
        assert_eq!(sizes(u64::MAX, 3), None);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let whole = file(9);
        for position in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[position] ^= 1 << (position % 8);
            assert!(check(&damaged, &key()).is_err(), "byte {position}");
            assert!(check(&whole[..position], &key()).is_err(), "cut {position}");
        }
        let longer = [whole.as_slice(), b"x"].concat();
        assert_eq!(check(&longer, &key()).unwrap_err(), "it has 513 bytes instead of 512");
    }

    #[test]
    fn other_versions_and_sources_are_told_apart() {
        let mut newer = file(1);
        newer[8] = 2;
        let hash = xxh3_64(&newer[..HASHED_HEADER_BYTES]).to_le_bytes();
        newer[HASHED_HEADER_BYTES..HEADER_BYTES].copy_from_slice(&hash);
        assert_eq!(check(&newer, &key()).unwrap_err(), "it has format 2, not 1");
        let other = Key { source: 8, ..key() };
        assert_eq!(check(&file(1), &other).unwrap_err(), "it was made from other data");
        let minute = Kind::Bars(BarGranularity::Minute);
        assert_eq!(
            check(&file(1), &Key { kind: minute, ..key() }).unwrap_err(),
            "it is no cache file"
        );
        let code = VendorCode::new("13020").unwrap();
        assert!(check(&file(1), &Key { code, ..key() }).is_err());
    }
}
