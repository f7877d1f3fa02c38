//! The journal: rows in blocks with a checksum, each brought to the disk as a whole.
//!
//! ```text
//! "KUMIKI BOARD 1\n"                        16 bytes with a zero
//! then blocks: mark, bytes, checksum         4 bytes each, little-endian; CRC-32 of the rows
//!              rows                          as many bytes
//! ```
//!
//! A crash cuts the last block short at most: such a block is torn, as is a tail of zeros, which a power cut
//! may leave. Other bytes that are no whole block are damaged, also at the end; they are left out, and reading
//! goes on at the next whole block. Both are told.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::limits::{JOURNAL_BLOCK_BYTES_MAX, SYNC_ROWS};

use super::encode::{Rows, push_row};
use super::row::BoardRow;
use super::same_file::stands_at;

const MAGIC: &[u8; 16] = b"KUMIKI BOARD 1\n\0";
const MARK: [u8; 4] = *b"\xb0\xa2dB";
/// Bytes before the rows of a block.
const BLOCK_HEAD: usize = 12;
/// Bytes that are searched for the next block at a time.
const SEARCH_BYTES: usize = 64 << 10;

/// Why a journal cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The system refuses.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system does not let it be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is none, or of another version of this program.
    #[error(
        "{} is not a journal of this version: {problem}; finish it with the version that wrote it, \
         or move it away",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
}

/// A journal that is written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Bytes of whole blocks, all on the disk.
    length: u64,
    /// The block that comes next, its head in front.
    block: Vec<u8>,
    /// Rows in it.
    waiting: usize,
    /// Rows on the disk.
    rows: u64,
}

impl Journal {
    /// Makes a journal; there must be no file of this name.
    ///
    /// # Errors
    /// [`JournalError`]; no file is left then.
    pub fn create(path: PathBuf) -> Result<Self, JournalError> {
        let made = File::create_new(&path).and_then(|mut file| {
            let begun = file
                .write_all(MAGIC)
                .and_then(|()| file.sync_all())
                .and_then(|()| atomic_file::sync_folder(atomic_file::folder_of(&path)));
            // A file without its first bytes would be taken for a foreign one.
            begun.inspect_err(|_| drop(std::fs::remove_file(&path))).map(|()| file)
        });
        let file = made.map_err(failed("make", &path))?;
        let mut journal =
            Self { file, path, length: MAGIC.len() as u64, block: Vec::new(), waiting: 0, rows: 0 };
        journal.empty_block();
        Ok(journal)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is where it was made, and not another one or none.
    pub(super) fn is_at_its_place(&self) -> io::Result<bool> {
        stands_at(&self.file, &self.path)
    }

    /// Rows on the disk.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows that are not on the disk yet.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes a sound row into the block that comes next; `true` once the block is full and has to be
    /// brought to the disk.
    pub fn push(&mut self, row: &BoardRow) -> bool {
        push_row(&mut self.block, row);
        self.waiting += 1;
        self.waiting >= SYNC_ROWS
    }

    /// Brings all rows to the disk. After an error none of those that waited are there, and the journal
    /// ends with its last whole block, as far as the system lets it be cut back; otherwise a reader does.
    ///
    /// # Errors
    /// [`JournalError`]
    pub fn sync(&mut self) -> Result<(), JournalError> {
        if self.waiting == 0 {
            return Ok(());
        }
        let rows = &self.block[BLOCK_HEAD..];
        // `SYNC_ROWS` rows are shorter than `JOURNAL_BLOCK_BYTES_MAX`.
        let (bytes, checksum) = (rows.len() as u32, crc32fast::hash(rows));
        self.block[..4].copy_from_slice(&MARK);
        self.block[4..8].copy_from_slice(&bytes.to_le_bytes());
        self.block[8..BLOCK_HEAD].copy_from_slice(&checksum.to_le_bytes());
        let written = self.file.write_all(&self.block).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            let cut = self.file.set_len(self.length);
            let _ = cut.and_then(|()| self.file.seek(SeekFrom::Start(self.length)));
            return Err(failed("write", &self.path)(source));
        }
        self.length += self.block.len() as u64;
        self.rows += self.waiting as u64;
        self.empty_block();
        Ok(())
    }

    fn empty_block(&mut self) {
        self.block.clear();
        self.block.resize(BLOCK_HEAD, 0);
        self.waiting = 0;
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::Io { what, path, source }
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::Unreadable { path, source }
}

/// What a journal held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JournalSummary {
    /// Rows of whole blocks.
    pub rows: u64,
    /// Bytes at its end that are a block cut short: a crash tore them.
    pub torn_bytes: u64,
    /// Bytes that are no whole block and were not torn: the disk damaged them.
    pub damaged_bytes: u64,
}

/// Reads the rows of a journal in the order in which they were written, block by block. An error of
/// `take` ends it.
///
/// # Errors
/// [`JournalError`], or that of `take`.
pub fn read_journal<E: From<JournalError>>(
    path: &Path,
    mut take: impl FnMut(BoardRow) -> Result<(), E>,
) -> Result<JournalSummary, E> {
    let mut summary = JournalSummary::default();
    // A pipe of this name would be waited for.
    if !std::fs::metadata(path).map_err(unreadable(path))?.is_file() {
        let problem = "it is no file";
        return Err(JournalError::Foreign { path: path.into(), problem }.into());
    }
    let mut file = File::open(path).map_err(unreadable(path))?;
    let mut magic = Vec::new();
    let read = (&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic);
    read.map_err(unreadable(path))?;
    if magic != MAGIC {
        if MAGIC.starts_with(&magic) {
            // Torn before its first row.
            summary.torn_bytes = magic.len() as u64;
            return Ok(summary);
        }
        let problem = "it does not begin like a journal";
        return Err(JournalError::Foreign { path: path.into(), problem }.into());
    }
    let mut blocks = Blocks { file, at: MAGIC.len() as u64, block: Vec::new() };
    loop {
        let next = blocks.next().map_err(unreadable(path))?;
        match next {
            Next::Block => {
                for row in Rows::new(&blocks.block) {
                    let problem = "a whole block has bytes that are no row";
                    let row =
                        row.map_err(|_| JournalError::Foreign { path: path.into(), problem })?;
                    take(row)?;
                    summary.rows += 1;
                }
            }
            Next::Damaged(bytes) => summary.damaged_bytes += bytes,
            Next::Torn(bytes) => {
                summary.torn_bytes = bytes;
                return Ok(summary);
            }
        }
    }
}

/// What comes next in a journal.
enum Next {
    /// A whole block, in [`Blocks::block`].
    Block,
    /// So many bytes that are no block, and were not torn.
    Damaged(u64),
    /// So many bytes of a block that was cut short, and the end; 0 where nothing is there.
    Torn(u64),
}

struct Blocks {
    file: File,
    /// Where the next block begins.
    at: u64,
    block: Vec<u8>,
}

impl Blocks {
    fn next(&mut self) -> io::Result<Next> {
        if self.read_block(self.at)? {
            self.at += (BLOCK_HEAD + self.block.len()) as u64;
            return Ok(Next::Block);
        }
        let from = self.at;
        let mut searched = from + 1;
        while let Some(found) = self.find_mark(searched)? {
            if self.read_block(found)? {
                self.at = found;
                return Ok(Next::Damaged(found - from));
            }
            searched = found + 1;
        }
        let left = self.file.metadata()?.len().saturating_sub(from);
        self.at = from + left;
        Ok(if self.is_torn(from, left)? { Next::Torn(left) } else { Next::Damaged(left) })
    }

    /// Whether the last bytes, among which no whole block is, are what a crash leaves of one.
    fn is_torn(&mut self, from: u64, left: u64) -> io::Result<bool> {
        self.file.seek(SeekFrom::Start(from))?;
        let mut head = Vec::with_capacity(BLOCK_HEAD);
        (&mut self.file).take(BLOCK_HEAD as u64).read_to_end(&mut head)?;
        if head.iter().all(|byte| *byte == 0) {
            return self.is_zero(from);
        }
        let mark = &head[..head.len().min(MARK.len())];
        let bytes = head.get(4..8).and_then(|bytes| bytes.first_chunk());
        let is_cut = bytes.is_none_or(|bytes| {
            let bytes = u32::from_le_bytes(*bytes);
            bytes as usize <= JOURNAL_BLOCK_BYTES_MAX && left < BLOCK_HEAD as u64 + u64::from(bytes)
        });
        Ok(MARK.starts_with(mark) && is_cut)
    }

    /// Whether nothing but zeros follows.
    fn is_zero(&mut self, from: u64) -> io::Result<bool> {
        self.file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::with_capacity(SEARCH_BYTES);
        loop {
            bytes.clear();
            (&mut self.file).take(SEARCH_BYTES as u64).read_to_end(&mut bytes)?;
            if bytes.is_empty() || bytes.iter().any(|byte| *byte != 0) {
                return Ok(bytes.is_empty());
            }
        }
    }

    /// Reads the block at a place; `false` where there is no whole one.
    fn read_block(&mut self, at: u64) -> io::Result<bool> {
        self.block.clear();
        self.file.seek(SeekFrom::Start(at))?;
        let mut head = Vec::with_capacity(BLOCK_HEAD);
        (&mut self.file).take(BLOCK_HEAD as u64).read_to_end(&mut head)?;
        let Some((mark, rest)) = head.split_first_chunk::<4>() else { return Ok(false) };
        let Some((bytes, rest)) = rest.split_first_chunk::<4>() else { return Ok(false) };
        let Ok(checksum) = rest.try_into() else { return Ok(false) };
        let bytes = u32::from_le_bytes(*bytes);
        if *mark != MARK || bytes == 0 || bytes as usize > JOURNAL_BLOCK_BYTES_MAX {
            return Ok(false);
        }
        (&mut self.file).take(u64::from(bytes)).read_to_end(&mut self.block)?;
        let is_whole = self.block.len() == bytes as usize;
        Ok(is_whole && crc32fast::hash(&self.block) == u32::from_le_bytes(checksum))
    }

    /// The place of the next mark from here on.
    fn find_mark(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        loop {
            let mut bytes = Vec::with_capacity(SEARCH_BYTES);
            self.file.seek(SeekFrom::Start(at))?;
            (&mut self.file).take(SEARCH_BYTES as u64).read_to_end(&mut bytes)?;
            if let Some(found) = memchr::memmem::find(&bytes, &MARK) {
                return Ok(Some(at + found as u64));
            }
            if bytes.len() < SEARCH_BYTES {
                return Ok(None);
            }
            // A mark may lie across the end of what was read.
            at += (SEARCH_BYTES - MARK.len() + 1) as u64;
        }
    }
}
