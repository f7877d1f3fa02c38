//! Bytes of an answer in blocks, each with memory of its own: what a client has taken is free again
//! while the rest still waits, and an answer can be given up although its socket holds a block.

use std::collections::VecDeque;
use std::io::{self, Write};

use axum::body::Bytes;

/// Bytes of a block. Large enough that a socket is busy with it, small enough that what lies with
/// the sockets of all connections counts for little.
pub(crate) const BLOCK_BYTES: usize = 64 * 1024;
/// Room at the end of a block that is not worth filling.
const REST_BYTES: usize = 256;

/// Blocks that are being written.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    full: VecDeque<Bytes>,
    open: Vec<u8>,
    /// Memory of the full ones.
    held: usize,
}

impl Blocks {
    /// Writes a piece that is not torn apart; it may make its block larger.
    pub(crate) fn piece(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.open.capacity() == 0 {
            self.open.reserve_exact(BLOCK_BYTES);
        }
        write(&mut self.open);
        if self.open.capacity() - self.open.len() < REST_BYTES {
            self.close();
        }
    }

    /// Puts other blocks behind, without copying them.
    pub(crate) fn append(&mut self, mut other: Self) {
        other.close_short();
        self.close_short();
        self.held += other.held;
        self.full.append(&mut other.full);
    }

    /// The blocks, ready to be sent.
    pub(crate) fn finish(mut self) -> VecDeque<Bytes> {
        self.close_short();
        self.full
    }

    /// Bytes that were written.
    pub(crate) fn len(&self) -> usize {
        self.full.iter().map(Bytes::len).sum::<usize>() + self.open.len()
    }

    /// Bytes of memory that are taken.
    pub(crate) fn held(&self) -> usize {
        self.held + self.open.capacity()
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.held += self.open.capacity();
            self.full.push_back(std::mem::take(&mut self.open).into());
        }
    }

    /// Closes a block that may be far from full, and gives back what it does not need.
    pub(crate) fn close_short(&mut self) {
        self.open.shrink_to_fit();
        self.close();
    }
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.open.capacity() == 0 {
            self.open.reserve_exact(BLOCK_BYTES);
        }
        let room = self.open.capacity() - self.open.len();
        let taken = bytes.len().min(room);
        self.open.extend_from_slice(&bytes[..taken]);
        if taken == room {
            self.close();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<Vec<u8>> for Blocks {
    fn from(bytes: Vec<u8>) -> Self {
        Self { open: bytes, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(blocks: Blocks) -> Vec<u8> {
        blocks.finish().iter().flat_map(|block| block.to_vec()).collect()
    }

    #[test]
    fn what_is_written_comes_out_in_blocks() {
        let mut blocks = Blocks::default();
        let mut expected = Vec::new();
        for number in 0..50_000_u32 {
            let piece = format!("{number},");
            expected.extend_from_slice(piece.as_bytes());
            if number % 2 == 0 {
                blocks.piece(|out| out.extend_from_slice(piece.as_bytes()));
            } else {
                blocks.write_all(piece.as_bytes()).unwrap();
            }
        }
        assert_eq!(blocks.len(), expected.len());
        let mut small = Blocks::default();
        small.write_all(b"{}").unwrap();
        small.close_short();
        assert_eq!(small.held(), 2, "a small answer holds what it has");
        assert!(blocks.held() < expected.len() + 2 * BLOCK_BYTES, "{} bytes", blocks.held());
        let mut first = Blocks::from(b"[".to_vec());
        first.append(blocks);
        first.write_all(b"]").unwrap();
        let held = first.held();
        let all = first.finish();
        assert!(all.len() > 3 && all.iter().all(|block| block.len() <= BLOCK_BYTES));
        assert!(held >= expected.len() + 2);
        let joined: Vec<u8> = all.iter().flat_map(|block| block.to_vec()).collect();
        assert_eq!(joined, [b"[", &expected[..], b"]"].concat());
    }

    #[test]
    fn a_long_piece_stays_whole() {
        let mut blocks = Blocks::default();
        blocks.piece(|out| out.resize(3 * BLOCK_BYTES, b'x'));
        blocks.piece(|out| out.push(b'y'));
        assert!(blocks.held() >= 3 * BLOCK_BYTES);
        let written = text(blocks);
        assert_eq!((written.len(), written.last()), (3 * BLOCK_BYTES + 1, Some(&b'y')));
        assert!(text(Blocks::default()).is_empty());
    }
}
