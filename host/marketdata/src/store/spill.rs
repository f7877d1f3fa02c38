//! Columns of several codes on their way into the cache, in fixed memory.
//!
//! At most [`SPILL_ROWS`] rows of all codes together are in memory. Then they go, as one part for each
//! code, to a temporary file in the cache folder that has no name and so disappears with the process,
//! however that ends. When the source is read, each cache file is put together from the parts of its
//! code. Where the temporary file cannot be written, rows stay in memory.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFile;

use crate::limits::SPILL_ROWS;
use crate::reader::{BarRow, BarSink, FactorRow, TradeRow, TradeSink};

use super::format::{Key, Writer};

/// Columns in memory: the timestamps first, then as the kind of the rows has them.
#[derive(Debug)]
pub(super) struct OwnedColumns<const N: usize>(pub(super) [Vec<u64>; N]);

impl<const N: usize> Default for OwnedColumns<N> {
    fn default() -> Self {
        Self([const { Vec::new() }; N])
    }
}

/// The rows of one code so far.
struct Parts<const N: usize> {
    /// Where parts start in the temporary file, and their rows.
    written: Vec<(u64, usize)>,
    /// The rows after those.
    rest: OwnedColumns<N>,
}

/// Rows of several codes, filled by one pass over a file.
pub(super) struct Spill<const N: usize> {
    folder: PathBuf,
    codes: Vec<Parts<N>>,
    /// Rows in memory, of all codes.
    held: usize,
    held_max: usize,
    file: Option<File>,
    /// Bytes in the file.
    length: u64,
}

impl TradeSink for Spill<3> {
    #[inline(always)]
    fn trade(&mut self, row: &TradeRow) {
        self.push(row.code_index, [row.ts_event, row.price.cast_unsigned(), row.quantity]);
    }
}

impl BarSink for Spill<6> {
    fn bar(&mut self, row: &BarRow) {
        let prices = [row.open, row.high, row.low, row.close].map(i64::cast_unsigned);
        let [open, high, low, close] = prices;
        self.push(row.code_index, [row.ts_event, open, high, low, close, row.volume]);
    }
}

impl Spill<2> {
    /// Takes a day's factor.
    pub(super) fn factor(&mut self, row: &FactorRow) {
        let (new, old) = row.adjustment.terms();
        self.push(row.code_index, [row.ts_event, u64::from(new) << 32 | u64::from(old)]);
    }
}

impl<const N: usize> Spill<N> {
    /// No rows yet of so many codes; the temporary file comes into `folder`.
    pub(super) fn new(folder: &Path, codes: usize) -> Self {
        Self::with_memory(folder, codes, SPILL_ROWS)
    }

    fn with_memory(folder: &Path, codes: usize, held_max: usize) -> Self {
        let mut parts = Vec::new();
        parts.resize_with(codes, || Parts { written: Vec::new(), rest: OwnedColumns::default() });
        Self {
            folder: folder.to_path_buf(),
            codes: parts,
            held: 0,
            held_max,
            file: None,
            length: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, index: usize, values: [u64; N]) {
        if let Some(parts) = self.codes.get_mut(index) {
            for (column, value) in parts.rest.0.iter_mut().zip(values) {
                column.push(value);
            }
            self.held += 1;
            if self.held >= self.held_max {
                self.spill();
            }
        }
    }

    #[cold]
    fn spill(&mut self) {
        self.held = 0;
        if self.write_parts().is_err() {
            // What is in the file stays readable, what is not stays in memory. Whoever cannot write
            // here cannot write the cache file either, and is told why.
            self.held_max = usize::MAX;
        }
    }

    fn write_parts(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            std::fs::create_dir_all(&self.folder)?;
            self.file = Some(tempfile::tempfile_in(&self.folder)?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        for parts in &mut self.codes {
            let rows = parts.rest.0[0].len();
            if rows == 0 {
                continue;
            }
            file.seek(SeekFrom::Start(self.length))?;
            for column in &parts.rest.0 {
                file.write_all(bytemuck::cast_slice(column))?;
            }
            parts.written.push((self.length, rows));
            self.length += (N * rows * size_of::<u64>()) as u64;
            // The memory goes too: a code whose rows are all read needs none any more.
            parts.rest = OwnedColumns::default();
        }
        Ok(())
    }

    /// Hands on one column of a code, part by part.
    fn each_part(
        &mut self,
        index: usize,
        column: usize,
        take: &mut dyn FnMut(&[u64]) -> io::Result<()>,
    ) -> io::Result<()> {
        let parts = &self.codes[index];
        let mut part = Vec::new();
        for &(start, rows) in &parts.written {
            let Some(file) = &mut self.file else { break };
            part.resize(rows, 0);
            let before = (column * rows * size_of::<u64>()) as u64;
            file.seek(SeekFrom::Start(start + before))?;
            file.read_exact(bytemuck::cast_slice_mut(&mut part))?;
            take(&part)?;
        }
        take(&parts.rest.0[column])
    }

    /// Writes the cache file of a code beside its name and renames it, so that readers see all or
    /// nothing.
    pub(super) fn save(&mut self, index: usize, key: &Key) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let mut out = Writer::new(BufWriter::new(AtomicFile::create_in(&self.folder)?), *key)?;
        for column in 0..N {
            self.each_part(index, column, &mut |part| out.append(part))?;
            out.end_column()?;
        }
        let file = out.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        // It carries its digest, and without it the source is read again.
        file.commit_unsynced(&self.folder.join(key.file_name()))
    }

    /// All rows of a code in memory, for when there can be no cache file.
    pub(super) fn columns(&mut self, index: usize) -> io::Result<OwnedColumns<N>> {
        let mut columns = OwnedColumns::default();
        for (column, whole) in columns.0.iter_mut().enumerate() {
            self.each_part(index, column, &mut |part| {
                whole.extend_from_slice(part);
                Ok(())
            })?;
        }
        Ok(columns)
    }
}

#[cfg(test)]
mod tests {
    use domain::VendorCode;

    use super::super::format::Kind;
    use super::*;

    fn key(code: &str) -> Key {
        Key { kind: Kind::Trades, source: 7, code: VendorCode::new(code).unwrap() }
    }

    /// Rows of two codes, taken in turns of three and one.
    fn filled(folder: &Path, held_max: usize, rows: u64) -> Spill<3> {
        let mut spill = Spill::with_memory(folder, 2, held_max);
        for row in 0..rows {
            spill.push(usize::from(row % 4 == 3), [row + 1, (row + 1) * 10_000, row % 7 + 1]);
        }
        spill
    }

    fn files(spill: &mut Spill<3>) -> [Vec<u8>; 2] {
        let keys = [key("13010"), key("130A0")];
        [0, 1].map(|index| {
            spill.save(index, &keys[index]).unwrap();
            std::fs::read(spill.folder.join(keys[index].file_name())).unwrap()
        })
    }

    #[test]
    fn cache_files_do_not_depend_on_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        for rows in [0, 1, 7, 8, 9, 1_000] {
            let mut whole = filled(folder.path(), usize::MAX, rows);
            assert!(whole.file.is_none());
            let expected = files(&mut whole);
            for held_max in [1, 8, 999] {
                let mut spill = filled(folder.path(), held_max, rows);
                assert_eq!(spill.length, rows / held_max as u64 * held_max as u64 * 24);
                assert_eq!(files(&mut spill), expected, "{rows} rows, {held_max} in memory");
                for index in [0, 1] {
                    let columns = spill.columns(index).unwrap();
                    assert_eq!(columns.0, whole.columns(index).unwrap().0);
                }
            }
        }
    }

    #[test]
    fn rows_in_memory_never_exceed_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let mut spill = Spill::<3>::new(folder.path(), 2);
        for row in 0..2 * SPILL_ROWS as u64 + 1 {
            spill.push(0, [row, row, row]);
            let held: usize = spill.codes.iter().map(|parts| parts.rest.0[0].len()).sum();
            assert!(held < SPILL_ROWS, "{held} rows in memory");
        }
        assert_eq!(spill.codes[0].written.len(), 2);
        assert_eq!(spill.held_max, SPILL_ROWS);
        // The temporary file has no name, so nothing is left behind.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_a_temporary_file_rows_stay_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "no folder").unwrap();
        let mut spill = filled(&file, 8, 100);
        assert_eq!(spill.held_max, usize::MAX);
        assert!(spill.save(0, &key("13010")).is_err());
        let rows = [0, 1].map(|index| spill.columns(index).unwrap().0[0].len());
        assert_eq!(rows, [75, 25]);
    }
}
