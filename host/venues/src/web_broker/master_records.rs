//! Cuts the stream of masters into records.
//!
//! Only its closing `}` ends a record: commas, brackets and blanks between records may be there or not.

use crate::web_broker::encoding::leads;
use crate::web_broker::limits::MASTER_RECORD_BYTES_MAX;

/// Cuts a stream that comes in pieces of any size into records.
#[derive(Debug, Default)]
pub struct Records {
    /// The bytes of a record that is not complete.
    begun: Vec<u8>,
    depth: usize,
    is_text: bool,
    /// The next byte is the second of a character, or escaped.
    is_skipped: bool,
}

/// Why a stream does not consist of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A record without end.
    #[error("a record of the masters has more than {MASTER_RECORD_BYTES_MAX} bytes")]
    TooLong,
    /// Other bytes are between records.
    #[error("the masters are not records")]
    NoRecord,
}

impl Records {
    /// Takes the next bytes, and calls `found` for every record that they complete, until it returns false.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn take(
        &mut self,
        bytes: &[u8],
        mut found: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, RecordError> {
        for &byte in bytes {
            if self.depth == 0 {
                match byte {
                    b'{' => {}
                    b' ' | b'\t' | b'\r' | b'\n' | b',' | b'[' | b']' => continue,
                    _ => return Err(RecordError::NoRecord),
                }
            }
            self.begun.push(byte);
            if self.begun.len() > MASTER_RECORD_BYTES_MAX {
                return Err(RecordError::TooLong);
            }
            if std::mem::take(&mut self.is_skipped) {
                continue;
            }
            match byte {
                // The second byte of a character may equal a brace or a backslash.
                _ if leads(byte) => self.is_skipped = true,
                b'\\' if self.is_text => self.is_skipped = true,
                b'"' => self.is_text = !self.is_text,
                b'{' if !self.is_text => self.depth += 1,
                b'}' if !self.is_text => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        let goes_on = found(&self.begun);
                        self.begun.clear();
                        if !goes_on {
                            return Ok(false);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
