//! The web broker as its vendor documents it, version 4 release 8: see
//! [`kumiki_dialect_sdk::web_broker::vendor`].

use kumiki_dialect_sdk::register_dialect;
use kumiki_dialect_sdk::web_broker::vendor::{Release, Vendor};

#[cfg(test)]
mod tests;

/// The release.
#[derive(Debug)]
pub struct V4r8;

impl Release for V4r8 {
    const NAME: &'static str = "web-broker-v4r8";
    const SUMMARY: &'static str = "The web broker's own interface, version 4 release 8";
}

/// The dialect.
pub type WebBrokerV4r8 = Vendor<V4r8>;

register_dialect!(WebBrokerV4r8);
