//! Keeps what our crates tell by events and spans, as a subscriber with every level would show it.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, subscriber};

/// Crates of ours; what libraries tell is for the one who sets up the program's subscriber.
const OURS: [&str; 4] = ["update", "http_client", "pricestore", "keys"];

#[derive(Default)]
struct Recorder(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Recorder {
    fn line(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Line<'_>)) {
        let mut text = self.0.lock().unwrap();
        write!(text, "{} {}", metadata.level(), metadata.name()).unwrap();
        record(&mut Line(&mut text));
        text.push('\n');
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        OURS.contains(&metadata.target().split("::").next().unwrap())
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.line(span.metadata(), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.line(event.metadata(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Does the work, and gives all that was told meanwhile on this thread, a line each.
pub(crate) fn told<T>(work: impl FnOnce() -> T) -> (T, String) {
    let text = Arc::new(Mutex::new(String::new()));
    let done = subscriber::with_default(Recorder(Arc::clone(&text)), work);
    let told = text.lock().unwrap().clone();
    (done, told)
}
