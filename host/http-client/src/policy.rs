//! How long a server is waited for and how often it is asked again.

use std::time::Duration;

use crate::limits::{BACK_OFF, BACK_OFF_TOO_MANY, BODY_BYTES_MAX, REQUEST_TIME, RETRY_AFTER_MAX};

/// How long a server is waited for and how often it is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestPolicy {
    /// Time for one answer, from the connection to the last byte.
    pub request_time: Duration,
    /// The first pause before a request is sent again; each further one is twice as long.
    pub back_off: Duration,
    /// The same after too many requests, where the server does not say how long.
    pub back_off_too_many: Duration,
    /// The longest pause that a server may ask for.
    pub retry_after_max: Duration,
    /// Bytes of one answer, after unpacking.
    pub body_bytes_max: usize,
}

impl Default for RequestPolicy {
    fn default() -> Self {
        Self {
            request_time: REQUEST_TIME,
            back_off: BACK_OFF,
            back_off_too_many: BACK_OFF_TOO_MANY,
            retry_after_max: RETRY_AFTER_MAX,
            body_bytes_max: BODY_BYTES_MAX,
        }
    }
}
