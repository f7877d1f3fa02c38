//! Reads the text frames of a WebSocket as frames of bytes.
//!
//! The broker's texts may be Shift-JIS, which a WebSocket's text frames do not allow. A library ends the
//! connection at such a frame. The broker would send the same frame again on the next connection, without end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const OPCODE: u8 = 0x0f;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const IS_MASKED: u8 = 0x80;
/// Bytes of the longest head of a frame: two, a length of eight, a mask of four.
const HEAD_BYTES_MAX: usize = 14;

/// A socket whose text frames are read as frames of bytes.
pub(crate) struct AsBytes<S> {
    socket: S,
    heads: Heads,
}

/// Position of the next frame in the bytes that were read.
#[derive(Default)]
struct Heads {
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    payload_left: u64,
}

impl<S> AsBytes<S> {
    /// Reads after the first bytes of the stream, which are changed, too.
    pub(crate) fn new(socket: S, first: &mut [u8]) -> Self {
        let mut heads = Heads::default();
        heads.change(first);
        Self { socket, heads }
    }
}

impl Heads {
    /// Changes the kind of every text frame in the next bytes of the stream.
    fn change(&mut self, mut bytes: &mut [u8]) {
        while let Some(first) = bytes.first_mut() {
            if self.payload_left > 0 {
                let left = usize::try_from(self.payload_left).unwrap_or(usize::MAX);
                let passed = left.min(bytes.len());
                self.payload_left -= passed as u64;
                bytes = &mut bytes[passed..];
                continue;
            }
            if self.head_bytes == 0 && *first & OPCODE == TEXT {
                *first = *first & !OPCODE | BINARY;
            }
            self.head[self.head_bytes] = *first;
            self.head_bytes += 1;
            bytes = &mut bytes[1..];
            if let Some(length) = self.length() {
                (self.head_bytes, self.payload_left) = (0, length);
            }
        }
    }

    /// The payload length, once the head is complete.
    fn length(&self) -> Option<u64> {
        let head = &self.head[..self.head_bytes];
        let second = *head.get(1)?;
        let of_length: usize = match second & !IS_MASKED {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let of_mask = if second & IS_MASKED == 0 { 0 } else { 4 };
        if head.len() < 2 + of_length + of_mask {
            return None;
        }
        if of_length == 0 {
            return Some(u64::from(second & !IS_MASKED));
        }
        let digits = head[2..2 + of_length].iter();
        Some(digits.fold(0, |length, digit| length << 8 | u64::from(*digit)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AsBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        self.heads.change(&mut buffer.filled_mut()[before..]);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AsBytes<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, length: usize, is_masked: bool) -> Vec<u8> {
        let mask = if is_masked { IS_MASKED } else { 0 };
        let mut bytes = vec![first];
        match length {
            0..126 => bytes.push(mask | length as u8),
            126..65_536 => {
                bytes.push(mask | 126);
                bytes.extend((length as u16).to_be_bytes());
            }
            _ => {
                bytes.push(mask | 127);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        bytes.extend(vec![0x81; length + if is_masked { 4 } else { 0 }]);
        bytes
    }

    #[test]
    fn only_the_kind_of_text_frames_changes_however_the_bytes_are_cut() {
        for is_masked in [false, true] {
            let (mut bytes, mut wanted) = (Vec::new(), Vec::new());
            for length in [0, 1, 125, 126, 127, 65_535, 65_536, 70_000] {
                for (from, to) in [(0x81, 0x82), (0x01, 0x02), (0x80, 0x80), (0x89, 0x89)] {
                    bytes.extend(frame(from, length, is_masked));
                    wanted.extend(frame(to, length, is_masked));
                }
            }
            for cut in [1, 2, 3, 7, 1_000, usize::MAX] {
                let (mut heads, mut changed) = (Heads::default(), bytes.clone());
                changed.chunks_mut(cut).for_each(|part| heads.change(part));
                assert!(changed == wanted, "cut {cut}, masked {is_masked}");
            }
        }
    }
}
