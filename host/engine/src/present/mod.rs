//! The one place that turns what the host knows in its own words into messages of the wire.

use ::orders::DeskEvent;
use ipc::{Event, Text};

pub(crate) mod local_broker;
pub(crate) mod market;
pub(crate) mod orders;
pub(crate) mod session;
mod strategies;

/// What the order desk says, as clients know it; none for what only the run of a strategy is told.
pub(crate) fn desk_event(event: &DeskEvent) -> Option<Event<'_>> {
    match event {
        DeskEvent::Strategy(event) => strategies::strategy_event(event),
        other => orders::desk_event(other),
    }
}

fn text(text: &str) -> Text<'_> {
    Text::Borrowed(text)
}

fn optional<T: AsRef<str>>(of: &Option<T>) -> Option<Text<'_>> {
    of.as_ref().map(|of| Text::Borrowed(of.as_ref()))
}
