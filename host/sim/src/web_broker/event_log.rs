//! The events of a business day, and their frames.

use super::config::Form;
use super::limits::EVENTS_KEPT_MAX;

/// What a frame is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// An order.
    Ec,
    /// The system.
    Ss,
    /// The phase of a market.
    Us,
}

impl EventKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ec => "EC",
            Self::Ss => "SS",
            Self::Us => "US",
        }
    }
}

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) kind: EventKind,
    /// Whether some connection has had it.
    pub(crate) was_sent: bool,
    /// Its own items, in order.
    pub(crate) items: Vec<(&'static str, String)>,
}

/// The events so far. Those from `visible` on wait for the answer that they belong to.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventLog {
    pub(crate) events: Vec<Event>,
    pub(crate) visible: usize,
    /// The first one of the present business day: what connections are told again.
    pub(crate) day_start: usize,
    last_number: u64,
}

impl EventLog {
    /// Puts down an event. Numbers rise with gaps, as the broker's.
    pub(crate) fn push(&mut self, kind: EventKind, items: Vec<(&'static str, String)>) {
        if self.events.len() >= EVENTS_KEPT_MAX {
            tracing::warn!("EVENTS_KEPT_MAX events: the next ones are in lists only");
            return;
        }
        self.last_number += 1 + self.events.len() as u64 % 3;
        self.events.push(Event { number: self.last_number, kind, was_sent: false, items });
    }

    /// A new business day begins. What was not sent yet still goes to the connection that there is.
    pub(crate) fn begin_day(&mut self) {
        self.day_start = self.events.len();
    }
}

/// The text of a frame: `count` on its connection, at `date`.
pub(crate) fn frame(
    form: Form,
    count: u64,
    date: &str,
    command: &str,
    items: &[(&str, String)],
) -> String {
    let key = if form == Form::Spec { "p_evt_cmd" } else { "p_cmd" };
    let mut text = format!("p_no\u{2}{count}\u{1}p_date\u{2}{date}");
    // The vendor's own frames have the command last where the connection ends.
    let head = format!("\u{1}{key}\u{2}{command}");
    text.push_str(&head);
    for (name, value) in items {
        text.push('\u{1}');
        text.push_str(name);
        text.push('\u{2}');
        text.push_str(value);
    }
    text
}

/// The text of an event's frame.
pub(crate) fn event_frame(form: Form, count: u64, date: &str, event: &Event) -> String {
    let resent = if event.was_sent { "0" } else { "1" };
    let mut items = vec![
        ("p_PV", "MSGSV".to_owned()),
        ("p_ENO", event.number.to_string()),
        ("p_ALT", resent.to_owned()),
    ];
    items.extend(event.items.iter().map(|(name, value)| (*name, value.clone())));
    frame(form, count, date, event.kind.name(), &items)
}
