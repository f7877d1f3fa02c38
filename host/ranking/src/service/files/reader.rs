//! Reads an opened file chunk by chunk, compressed or as it is. Memory does not grow with the file.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use axum::body::Bytes;

use super::open::Opened;
use crate::file_stamp::FileStamp;
use crate::service::compress::{Encoding, StreamEncoder};

/// Bytes that are read at once.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks that are compressed in one read, where they become so small that nothing can be sent yet.
const CHUNKS_PER_READ: usize = 16;

/// A file on its way.
pub(super) struct Reader {
    opened: Opened,
    remaining: u64,
    encoder: StreamEncoder,
    ended: bool,
}

impl Reader {
    /// A reader of some bytes of a file.
    ///
    /// # Errors
    /// When the file cannot be read from there.
    pub(super) fn new(
        mut opened: Opened,
        range: Range<u64>,
        encoding: Encoding,
    ) -> io::Result<Self> {
        opened.file.seek(SeekFrom::Start(range.start))?;
        let remaining = range.end.saturating_sub(range.start);
        Ok(Self { opened, remaining, encoder: encoding.encoder()?, ended: false })
    }

    /// The next bytes to send; none after the last.
    ///
    /// # Errors
    /// When the file cannot be read, or was changed in place since it was opened. Files are
    /// replaced as a whole, so that is somebody's mistake, and the client must not get a mixture.
    pub(super) fn next(&mut self) -> io::Result<Option<Bytes>> {
        for _ in 0..CHUNKS_PER_READ {
            if self.ended {
                return Ok(None);
            }
            let chunk = self.read()?;
            if chunk.is_empty() {
                self.ended = true;
                self.encoder.finish()?;
            } else {
                self.encoder.put(chunk)?;
            }
            let bytes = self.encoder.take();
            if !bytes.is_empty() {
                return Ok(Some(bytes.into()));
            }
        }
        // What packs this well is sent early, so that the client sees that something comes.
        self.encoder.flush()?;
        Ok(Some(self.encoder.take().into()))
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let wanted = usize::try_from(self.remaining).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        let mut chunk = vec![0; wanted];
        self.opened.file.read_exact(&mut chunk)?;
        let now = FileStamp::of(&self.opened.file.metadata()?)?;
        if now != self.opened.stamp {
            return Err(io::Error::other("the file was changed while it was sent"));
        }
        self.remaining -= wanted as u64;
        Ok(chunk)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::super::allow::StoredFile;
    use super::super::open::open;
    use super::*;

    fn opened(content: &[u8]) -> (tempfile::TempDir, Opened) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("listed_info.db"), content).unwrap();
        let opened = open(folder.path(), &StoredFile::Listed).unwrap().unwrap();
        (folder, opened)
    }

    fn all(reader: &mut Reader) -> io::Result<(Vec<u8>, usize)> {
        let (mut bytes, mut largest) = (Vec::new(), 0);
        while let Some(chunk) = reader.next()? {
            largest = largest.max(chunk.len());
            bytes.extend_from_slice(&chunk);
        }
        Ok((bytes, largest))
    }

    fn content() -> Vec<u8> {
        (0..2 * CHUNK_BYTES as u32 + 77).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect()
    }

    #[test]
    fn all_bytes_come_in_small_pieces() {
        let content = content();
        for range in [0..content.len(), 5..6, 7..content.len(), 100..CHUNK_BYTES + 100, 9..9] {
            let (_folder, opened) = opened(&content);
            let asked = range.start as u64..range.end as u64;
            let mut reader = Reader::new(opened, asked, Encoding::Identity).unwrap();
            let (bytes, largest) = all(&mut reader).unwrap();
            assert!(bytes == content[range.clone()] && largest <= CHUNK_BYTES, "{range:?}");
            assert!(reader.next().unwrap().is_none());
        }
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let content = content();
        for encoding in Encoding::FILES {
            let (_folder, opened) = opened(&content);
            let whole = 0..content.len() as u64;
            let (bytes, largest) = all(&mut Reader::new(opened, whole, encoding).unwrap()).unwrap();
            assert!(bytes.len() < content.len() && largest < 2 * CHUNK_BYTES);
            let mut out = Vec::new();
            match encoding {
                Encoding::Zstd => out = zstd::decode_all(&bytes[..]).unwrap(),
                _ => drop(flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut out).unwrap()),
            }
            assert!(out == content, "{encoding:?}");
        }
    }

    #[test]
    fn long_stretches_of_nothing_are_sent_in_turns() {
        let (folder, _) = opened(b"");
        let length = (4 * CHUNKS_PER_READ * CHUNK_BYTES) as u64;
        let path = folder.path().join("listed_info.db");
        fs::File::options().write(true).open(path).unwrap().set_len(length).unwrap();
        let opened = open(folder.path(), &StoredFile::Listed).unwrap().unwrap();
        let mut reader = Reader::new(opened, 0..length, Encoding::Zstd).unwrap();
        let mut turns = 0;
        let mut packed = Vec::new();
        while let Some(bytes) = reader.next().unwrap() {
            turns += 1;
            packed.extend_from_slice(&bytes);
        }
        assert!(turns >= 4, "{turns} turns");
        assert_eq!(zstd::decode_all(&packed[..]).unwrap().len() as u64, length);
    }

    #[test]
    fn a_file_that_changes_in_place_is_not_mixed() {
        let content = content();
        let (folder, opened) = opened(&content);
        let whole = 0..content.len() as u64;
        let mut reader = Reader::new(opened, whole, Encoding::Identity).unwrap();
        assert!(reader.next().unwrap().is_some());
        let path = folder.path().join("listed_info.db");
        let mut other = fs::File::options().append(true).open(path).unwrap();
        other.write_all(b"more").unwrap();
        other.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(all(&mut reader).unwrap_err().to_string().contains("changed while"));
        // Cut short, it ends early.
        let (folder, opened) = self::opened(&content);
        let whole = 0..content.len() as u64;
        let mut reader = Reader::new(opened, whole, Encoding::Zstd).unwrap();
        let path = folder.path().join("listed_info.db");
        fs::File::options().write(true).open(path).unwrap().set_len(10).unwrap();
        assert_eq!(all(&mut reader).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_file_that_is_replaced_is_read_to_its_old_end() {
        let content = content();
        let (folder, opened) = opened(&content);
        let whole = 0..content.len() as u64;
        let mut reader = Reader::new(opened, whole, Encoding::Identity).unwrap();
        let path = folder.path().join("listed_info.db");
        fs::write(path.with_extension("new"), "other").unwrap();
        fs::rename(path.with_extension("new"), path).unwrap();
        assert!(all(&mut reader).unwrap().0 == content);
    }
}
