//! An answer whose body comes piece by piece, for what does not fit into memory.

use std::fmt;
use std::time::Duration;

use domain::clock::Stopwatch;
use reqwest::Response;

use crate::client::told;
use crate::error::{HttpError, one_line};
use crate::limits::SHOWN_CHARS;
use crate::response::header_text;

/// How slowly a body may come: so many bytes in each stretch of time, or the end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinimumRate {
    /// Bytes.
    pub bytes: u64,
    /// The time in which they have to come; each begins where the one before ended.
    pub time: Duration,
}

/// The head of an answer, and the rest of its body.
pub struct HttpStream {
    response: Response,
    limit: u64,
    received: u64,
    rate: Option<MinimumRate>,
    /// Since when bytes are counted against the rate, and how many there were before.
    counted: (Stopwatch, u64),
}

impl HttpStream {
    pub(crate) fn new(response: Response, limit: u64) -> Self {
        Self { response, limit, received: 0, rate: None, counted: (Stopwatch::start(), 0) }
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

    /// Wants the body to come at least so fast from now on. Without it a server that sends a byte now and
    /// then holds who asks for as long as an answer may take.
    pub fn demand(&mut self, rate: MinimumRate) {
        self.rate = Some(rate);
        self.counted = (Stopwatch::start(), self.received);
    }

    /// The next bytes of the body; none after the last.
    ///
    /// # Errors
    /// When the connection was cut, the time for the answer is over, it comes too slowly, or there are
    /// more bytes than allowed.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        let (mut piece, mut late) = (None, false);
        while piece.is_none() {
            let Some(rate) = self.rate else {
                piece = Some(self.response.chunk().await);
                break;
            };
            let left = rate.time.saturating_sub(self.counted.0.elapsed());
            // A piece that is there already comes also where no time is left.
            match tokio::time::timeout(left, self.response.chunk()).await {
                Ok(came) => (piece, late) = (Some(came), left.is_zero()),
                Err(_) => self.next_stretch()?,
            }
        }
        let piece = match piece.unwrap_or(Ok(None)) {
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
        if late {
            self.next_stretch()?;
        }
        Ok(Some(piece.to_vec()))
    }

    /// Ends a stretch of time, in which enough must have come.
    fn next_stretch(&mut self) -> Result<(), HttpError> {
        let came = self.received - self.counted.1;
        match self.rate {
            Some(rate) if came < rate.bytes => Err(HttpError::TooSlow(rate)),
            _ => {
                self.counted = (Stopwatch::start(), self.received);
                Ok(())
            }
        }
    }
}

impl fmt::Debug for HttpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpStream").field("status", &self.status()).finish_non_exhaustive()
    }
}
