//! The rules by which Kumiki asks servers: one question after the other, at most so many a minute
//! and fewer after too many, with limits on size and time, and another try where that can help.
//!
//! Secrets are [`secrecy::SecretString`]s: they go into a header by [`secret_header`], and what
//! [`HttpClient::hide`] was told stands in no error and no event, even where a server repeats it.
//! Where a request must never be sent twice, [`OneAttempt`] asks instead. Addresses are https, or http to this machine ([`checked_address`]); no redirect is followed, so
//! a key never goes to another server.

mod address;
mod client;
mod error;
pub mod limits;
mod network;
mod one_attempt;
mod pace;
mod policy;
mod response;
mod secrets;
mod socket;
mod stream;

pub use address::{checked_address, is_loopback};
pub use client::{HttpClient, secret_header};
pub use error::{HttpError, one_line};
pub use network::Network;
pub use one_attempt::{AttemptError, AttemptStream, OneAttempt};
pub use pace::Slowed;
pub use policy::RequestPolicy;
pub use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, Url};
pub use response::HttpResponse;
pub use secrets::Secrets;
pub use socket::{Socket, connect_socket};
pub use stream::{HttpStream, MinimumRate};
pub use tokio_util::sync::CancellationToken;
