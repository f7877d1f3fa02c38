//! Writes a grid's file, day by day.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use atomic_file::AtomicFile;
use domain::JstDate;
use xxhash_rust::xxh3::xxh3_64;

use super::format::{HEADER_BYTES, Layout, Tail, within_limits};
use super::{COLUMNS, Splits, cell};
use crate::limits::CODE_BYTES_MAX;

/// Writes a grid beside its name; only [`GridWriter::finish`] puts it there.
pub struct GridWriter {
    out: BufWriter<AtomicFile>,
    layout: Layout,
    tail: Tail,
    /// What follows the cells of a stripe.
    filling: Vec<f64>,
}

impl GridWriter {
    /// Starts snapshot `number` in `folder`. `days` and `codes` are ascending.
    pub fn new(
        folder: &Path,
        number: u64,
        days: Vec<JstDate>,
        codes: Vec<Box<str>>,
    ) -> io::Result<Self> {
        let refuse = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if let Err(text) = within_limits(days.len(), codes.len()) {
            return refuse(text);
        }
        if let Some(code) = codes.iter().find(|code| !is_code(code)) {
            return refuse(format!(
                "code `{}` must have 1 to {CODE_BYTES_MAX} printable ASCII characters",
                crate::excerpt(code)
            ));
        }
        let (count, has_splits) = (days.len(), false);
        let layout = Layout { number, days: count, codes: codes.len(), has_splits, tail_digest: 0 };
        let mut out = BufWriter::with_capacity(1 << 20, AtomicFile::create_in(folder)?);
        out.write_all(&[0; HEADER_BYTES])?;
        let filling = vec![cell(None); layout.stride() - layout.codes];
        let tail = Tail { days, codes, digests: Vec::new(), splits: None };
        Ok(Self { out, layout, tail, filling })
    }

    /// The same with splits; without them the grid does not know of any.
    #[must_use]
    pub fn with_splits(mut self, splits: Option<Splits>) -> Self {
        self.layout.has_splits = splits.is_some();
        self.tail.splits = splits;
        self
    }

    /// Appends the next day: for each column, the cells of all codes; see [`super::cell`].
    pub fn day(&mut self, columns: [&[f64]; COLUMNS]) -> io::Result<()> {
        for cells in columns {
            if cells.len() != self.layout.codes {
                let text = format!("{} values for {} codes", cells.len(), self.layout.codes);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            let bytes: &[u8] = bytemuck::cast_slice(cells);
            self.tail.digests.push(xxh3_64(bytes));
            self.out.write_all(bytes)?;
            self.out.write_all(bytemuck::cast_slice(&self.filling))?;
        }
        Ok(())
    }

    /// Ends the file, brings it to the disk and renames it to `path`.
    pub fn finish(mut self, path: &Path) -> io::Result<()> {
        if self.tail.digests.len() != self.layout.days * COLUMNS {
            let found = self.tail.digests.len() / COLUMNS;
            let text = format!("{found} days were written instead of {}", self.layout.days);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let tail = self.tail.bytes();
        self.out.write_all(&tail)?;
        self.layout.tail_digest = xxh3_64(&tail);
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&self.layout.header())?;
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.commit(path)
    }
}

fn is_code(code: &str) -> bool {
    (1..=CODE_BYTES_MAX).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_graphic())
}
