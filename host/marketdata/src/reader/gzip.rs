//! Inflates a gzip file in fixed memory, checks every checksum, and stops at suspicious growth.
//!
//! The frame around the deflate data is read here by hand, because a decoder that hides it cannot
//! tell a cut file from bytes that follow the last member.

use std::io::{ErrorKind, Read};
use std::path::Path;

use flate2::{Decompress, FlushDecompress, Status};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{DataError, GzipProblem, shown};
use crate::limits::{
    INPUT_BYTES, SHOWN_VALUE_CHARS, TEXT_PER_COMPRESSED_BYTE_MAX, TEXT_RATIO_FREE_BYTES,
};

const MAGIC: [u8; 2] = [0x1f, 0x8b];
const METHOD_DEFLATE: u8 = 8;
const FLAG_HEADER_CHECKSUM: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;
const FLAGS_RESERVED: u8 = 0xe0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first member, or between two.
    Between,
    Body,
    Done,
}

/// The text of a gzip file with any number of members.
pub(super) struct GzipText<'a, R> {
    path: &'a Path,
    source: R,
    input: Box<[u8]>,
    start: usize,
    end: usize,
    inflate: Decompress,
    checksum: crc32fast::Hasher,
    member_text: u64,
    members: u64,
    state: State,
    compressed_read: u64,
    text: u64,
    text_max: u64,
    content: Box<Xxh3>,
}

impl<'a, R: Read> GzipText<'a, R> {
    /// The text of `source`; `path` is for messages, `text_max` limits all text together.
    pub(super) fn new(path: &'a Path, source: R, text_max: u64) -> Self {
        Self {
            path,
            source,
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            inflate: Decompress::new(false),
            checksum: crc32fast::Hasher::new(),
            member_text: 0,
            members: 0,
            state: State::Between,
            compressed_read: 0,
            text: 0,
            text_max,
            content: Box::new(Xxh3::new()),
        }
    }

    /// Compressed bytes used so far.
    pub(super) fn compressed_bytes(&self) -> u64 {
        self.compressed_read - (self.end - self.start) as u64
    }

    /// Bytes of text so far.
    pub(super) fn text_bytes(&self) -> u64 {
        self.text
    }

    /// Hash of the compressed bytes; of the whole file once the text has ended.
    pub(super) fn content_hash(&self) -> u128 {
        self.content.digest128()
    }

    /// Writes the next text to the front of `out`, which is not empty; 0 at the end.
    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<usize, DataError> {
        loop {
            match self.state {
                State::Done => return Ok(0),
                State::Between => self.member_header()?,
                State::Body => {
                    let produced = self.inflate_some(out)?;
                    if produced > 0 {
                        return Ok(produced);
                    }
                }
            }
        }
    }

    fn inflate_some(&mut self, out: &mut [u8]) -> Result<usize, DataError> {
        if self.start == self.end && !self.refill()? {
            return Err(self.fault(GzipProblem::Truncated));
        }
        let (consumed_before, produced_before) =
            (self.inflate.total_in(), self.inflate.total_out());
        let input = &self.input[self.start..self.end];
        let status = self
            .inflate
            .decompress(input, out, FlushDecompress::None)
            .map_err(|_| self.fault(GzipProblem::Corrupt("its codes make no sense")))?;
        let consumed = usize::try_from(self.inflate.total_in() - consumed_before);
        let produced = usize::try_from(self.inflate.total_out() - produced_before);
        let (consumed, produced) = (consumed.unwrap_or(0), produced.unwrap_or(0));
        self.start += consumed;
        if let Some(text) = out.get(..produced) {
            self.checksum.update(text);
        }
        self.member_text += produced as u64;
        self.text += produced as u64;
        self.check_growth()?;
        if status == Status::StreamEnd {
            self.member_trailer()?;
        } else if consumed == 0 && produced == 0 {
            return Err(self.fault(GzipProblem::Corrupt("it does not go on")));
        }
        Ok(produced)
    }

    fn check_growth(&self) -> Result<(), DataError> {
        if self.text > self.text_max {
            return Err(DataError::TooMuchText {
                path: self.path.to_path_buf(),
                limit: self.text_max,
            });
        }
        let compressed = self.compressed_bytes();
        let allowed = compressed.saturating_mul(TEXT_PER_COMPRESSED_BYTE_MAX);
        if self.text > allowed.saturating_add(TEXT_RATIO_FREE_BYTES) {
            return Err(DataError::Bomb {
                path: self.path.to_path_buf(),
                compressed,
                text: self.text,
            });
        }
        Ok(())
    }

    fn member_header(&mut self) -> Result<(), DataError> {
        if self.start == self.end && !self.refill()? {
            if self.members == 0 {
                return Err(self.fault(GzipProblem::Empty));
            }
            self.state = State::Done;
            return Ok(());
        }
        self.check_magic()?;
        let [method, flags] = self.take()?;
        if method != METHOD_DEFLATE {
            return Err(self.fault(GzipProblem::Corrupt("its method is unknown")));
        }
        if flags & FLAGS_RESERVED != 0 {
            return Err(self.fault(GzipProblem::Corrupt("its flags are unknown")));
        }
        // Time, level and system of the compressor tell nothing about the text.
        let _: [u8; 6] = self.take()?;
        if flags & FLAG_EXTRA != 0 {
            for _ in 0..u16::from_le_bytes(self.take()?) {
                let [_] = self.take()?;
            }
        }
        for flag in [FLAG_NAME, FLAG_COMMENT] {
            if flags & flag != 0 {
                while self.take()? != [0] {}
            }
        }
        if flags & FLAG_HEADER_CHECKSUM != 0 {
            let _: [u8; 2] = self.take()?;
        }
        self.inflate.reset(false);
        self.checksum.reset();
        self.member_text = 0;
        self.state = State::Body;
        Ok(())
    }

    fn check_magic(&mut self) -> Result<(), DataError> {
        let offset = self.compressed_bytes();
        let found = shown(&self.input[self.start..self.end], SHOWN_VALUE_CHARS);
        for expected in MAGIC {
            let more = self.start < self.end || self.refill()?;
            if !more || self.take()? != [expected] {
                let problem = match self.members {
                    0 => GzipProblem::NotGzip(found),
                    _ => GzipProblem::Trailing(found),
                };
                return Err(DataError::Gzip { path: self.path.to_path_buf(), offset, problem });
            }
        }
        Ok(())
    }

    fn member_trailer(&mut self) -> Result<(), DataError> {
        let checksum = u32::from_le_bytes(self.take()?);
        let length = u32::from_le_bytes(self.take()?);
        // The trailer holds the length modulo 2^32.
        let same_length = u64::from(length) == self.member_text & u64::from(u32::MAX);
        if checksum != self.checksum.clone().finalize() || !same_length {
            return Err(self.fault(GzipProblem::Checksum));
        }
        self.members += 1;
        self.state = State::Between;
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], DataError> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            if self.start == self.end && !self.refill()? {
                return Err(self.fault(GzipProblem::Truncated));
            }
            *byte = self.input[self.start];
            self.start += 1;
        }
        Ok(bytes)
    }

    /// Reads more of the file; `false` at its end. Only called when the input is used up.
    fn refill(&mut self) -> Result<bool, DataError> {
        loop {
            match self.source.read(&mut self.input) {
                Ok(length) => {
                    (self.start, self.end) = (0, length);
                    self.compressed_read += length as u64;
                    self.content.update(&self.input[..length]);
                    return Ok(length > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(DataError::Unreadable { path: self.path.to_path_buf(), source });
                }
            }
        }
    }

    fn fault(&self, problem: GzipProblem) -> DataError {
        DataError::Gzip { path: self.path.to_path_buf(), offset: self.compressed_bytes(), problem }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, GzBuilder, write::GzEncoder};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn inflate(bytes: &[u8], chunk: usize) -> Result<Vec<u8>, String> {
        let mut reader = GzipText::new(Path::new("f"), bytes, 1 << 20);
        let (mut text, mut out) = (Vec::new(), vec![0; chunk]);
        loop {
            match reader.read(&mut out).map_err(|error| error.to_string())? {
                0 => break,
                length => text.extend_from_slice(&out[..length]),
            }
        }
        assert_eq!(reader.text_bytes(), text.len() as u64);
        assert_eq!(reader.compressed_bytes(), bytes.len() as u64);
        assert_eq!(reader.content_hash(), xxhash_rust::xxh3::xxh3_128(bytes));
        Ok(text)
    }

    #[test]
    fn members_and_header_fields_are_read() {
        let mut decorated = GzBuilder::new()
            .filename("name")
            .comment("comment")
            .extra(vec![1, 2, 3])
            .write(Vec::new(), Compression::best());
        decorated.write_all(b"first ").unwrap();
        let mut bytes = decorated.finish().unwrap();
        bytes.extend(gzip(b""));
        bytes.extend(gzip(b"second"));
        for chunk in [1, 2, 5, 100] {
            assert_eq!(inflate(&bytes, chunk).unwrap(), b"first second");
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let whole = gzip(b"Date,Code,Time,Date,Code,Time,Date,Code,Time");
        for length in 2..whole.len() {
            let message = inflate(&whole[..length], 7).unwrap_err();
            assert!(message.contains("ends too early"), "{length}: {message}");
        }
    }

    #[test]
    fn no_flipped_bit_after_the_header_changes_the_text() {
        let text = b"2025-01-06,13010,2025-01-06,13010";
        let whole = gzip(text);
        for position in 10..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[position] ^= 1 << bit;
                // The last byte of the deflate data may have bits that mean nothing.
                let read = inflate(&damaged, 7);
                assert!(read.is_err() || read.as_deref() == Ok(text), "byte {position} bit {bit}");
            }
        }
    }

    #[test]
    fn the_text_limit_is_hit() {
        let message = inflate(&gzip(&vec![b'a'; (1 << 20) + 1]), 4_096).unwrap_err();
        assert_eq!(
            message,
            "f: more than 1048576 bytes of text, which no file of the vendor has; download the file again"
        );
        assert!(inflate(&gzip(&vec![b'a'; 1 << 20]), 4_096).is_ok());
    }

    #[test]
    fn unknown_headers_are_refused() {
        let mut bytes = gzip(b"text");
        bytes[3] = 0x80;
        assert!(inflate(&bytes, 7).unwrap_err().contains("flags"));
        bytes[2] = 7;
        assert!(inflate(&bytes, 7).unwrap_err().contains("method"));
        assert!(inflate(b"\x1f", 7).unwrap_err().contains("expected gzip data"));
    }
}
