//! The one place that turns what the host knows in its own words into messages of the wire.

use ipc::Text;

pub(crate) mod local_broker;
pub(crate) mod market;
pub(crate) mod orders;
pub(crate) mod session;
mod strategies;

fn text(text: &str) -> Text<'_> {
    Text::Borrowed(text)
}

fn optional<T: AsRef<str>>(of: &Option<T>) -> Option<Text<'_>> {
    of.as_ref().map(|of| Text::Borrowed(of.as_ref()))
}
