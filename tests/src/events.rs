//! Events of services under test. One subscriber collects them for the whole process; a service's
//! own ones are told apart by the address in its span.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, Once, PoisonError};

use tracing_subscriber::filter::LevelFilter;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Collector;

impl io::Write for Collector {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Collects the events of this process from now on, from the level INFO up.
pub fn collect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::INFO)
            .with_ansi(false)
            .without_time()
            .with_writer(|| Collector)
            .init();
    });
}

/// The events so far of the service that listens on an address, one line each.
pub fn of(address: SocketAddr) -> Vec<String> {
    let span = format!("address={address}}}");
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().filter(|line| line.contains(&span)).cloned().collect()
}
