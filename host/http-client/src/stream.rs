//! An answer whose body comes piece by piece, for what does not fit into memory.

use std::fmt;

use reqwest::Response;

use crate::client::told;
use crate::error::{HttpError, one_line};
use crate::limits::SHOWN_CHARS;
use crate::response::header_text;

/// The head of an answer, and the rest of its body.
pub struct HttpStream {
    response: Response,
    limit: u64,
    received: u64,
}

impl HttpStream {
    pub(crate) fn new(response: Response, limit: u64) -> Self {
        Self { response, limit, received: 0 }
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// A header; empty where there is none that is text.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        header_text(&self.response, name)
    }

    /// The next bytes of the body; none after the last.
    ///
    /// # Errors
    /// When the connection was cut, the time for the answer is over, or there are more bytes than
    /// allowed.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        let piece = match self.response.chunk().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return Ok(None),
            Err(error) => {
                let what = one_line(&told(error), SHOWN_CHARS);
                return Err(HttpError::Unavailable { what, tries: 1 });
            }
        };
        self.received += piece.len() as u64;
        if self.received > self.limit {
            let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
            return Err(HttpError::TooLarge { limit });
        }
        Ok(Some(piece.to_vec()))
    }
}

impl fmt::Debug for HttpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpStream").field("status", &self.status()).finish_non_exhaustive()
    }
}
