//! The web broker as its vendor documents it, version 4 release 10: see
//! [`kumiki_dialect_sdk::web_broker::vendor`].

use kumiki_dialect_sdk::register_dialect;
use kumiki_dialect_sdk::web_broker::vendor::{Release, Vendor};

#[cfg(test)]
mod tests;

/// The release.
#[derive(Debug)]
pub struct V4r10;

impl Release for V4r10 {
    const NAME: &'static str = "web-broker-v4r10";
    const SUMMARY: &'static str = "The web broker's own interface, version 4 release 10";
}

/// The dialect.
pub type WebBrokerV4r10 = Vendor<V4r10>;

register_dialect!(WebBrokerV4r10);
