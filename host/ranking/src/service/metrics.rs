//! Numbers for operators, in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::SnapshotInfo;

/// Upper ends of the buckets of request times, in seconds.
const BUCKETS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// Requests by `extensions.code`; `OK` for those without an error. The codes are a closed list.
    outcomes: Mutex<BTreeMap<String, u64>>,
    buckets: [AtomicU64; BUCKETS.len()],
    requests: AtomicU64,
    request_nanos: AtomicU64,
    /// Rankings that are worked on.
    pub(super) active: AtomicI64,
    /// Requests that wait for their turn.
    pub(super) waiting: AtomicI64,
    /// Open connections.
    pub(super) connections: AtomicI64,
    /// Clients that went away before their answer was there.
    pub(super) gone: AtomicU64,
    /// Clients that were dropped because they took nothing, or a file for too long.
    pub(super) slow: AtomicU64,
    /// Requests for stored files by HTTP status. The statuses are a closed list.
    files: Mutex<BTreeMap<u16, u64>>,
    /// Stored files that are being sent.
    pub(super) downloads: AtomicI64,
    /// Bytes of stored files, as sent.
    pub(super) file_bytes: AtomicU64,
    /// Rows of all answers.
    pub(super) rows: AtomicU64,
    /// Bytes of all answers, packed.
    pub(super) bytes: AtomicU64,
}

/// Counts something up for as long as it lives.
pub(super) struct Up<'a>(&'a AtomicI64);

impl<'a> Up<'a> {
    pub(super) fn new(gauge: &'a AtomicI64) -> Self {
        gauge.fetch_add(1, Ordering::Relaxed);
        Self(gauge)
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Counts a request that was answered.
    pub(super) fn answered(&self, outcome: &str, time: Duration) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        *outcomes.entry(outcome.to_owned()).or_default() += 1;
        drop(outcomes);
        self.requests.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.request_nanos.fetch_add(nanos, Ordering::Relaxed);
        for (end, bucket) in BUCKETS.iter().zip(&self.buckets) {
            if time.as_secs_f64() <= *end {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Counts a request for a stored file.
    pub(super) fn file_answered(&self, status: u16) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        *files.entry(status).or_default() += 1;
    }

    /// All numbers as text.
    pub(super) fn text(&self, snapshot: &SnapshotInfo) -> String {
        let mut out = String::new();
        self.requests_text(&mut out);
        let number = |value: &AtomicU64| value.load(Ordering::Relaxed).to_string();
        let gauge = |value: &AtomicI64| value.load(Ordering::Relaxed).to_string();
        for (name, kind, help, value) in [
            ("rows_total", "counter", "Rows of all answers.", number(&self.rows)),
            ("response_bytes_total", "counter", "Bytes of all answers.", number(&self.bytes)),
            ("clients_gone_total", "counter", "Clients that went away early.", number(&self.gone)),
            ("clients_slow_total", "counter", "Clients dropped as too slow.", number(&self.slow)),
            ("file_bytes_total", "counter", "Bytes of stored files.", number(&self.file_bytes)),
            ("downloads", "gauge", "Files being sent.", gauge(&self.downloads)),
            ("rankings_active", "gauge", "Rankings being worked on.", gauge(&self.active)),
            ("requests_waiting", "gauge", "Requests that wait.", gauge(&self.waiting)),
            ("connections", "gauge", "Open connections.", gauge(&self.connections)),
            ("snapshot_number", "gauge", "The present snapshot.", snapshot.number.to_string()),
            ("snapshot_days", "gauge", "Business days in it.", snapshot.days.to_string()),
            ("snapshot_codes", "gauge", "Issue codes in it.", snapshot.codes.to_string()),
            (
                "snapshot_refused",
                "gauge",
                "1 while a newer snapshot cannot be used.",
                u8::from(snapshot.refused.is_some()).to_string(),
            ),
        ] {
            let name = format!("kumiki_ranking_{name}");
            out += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        out
    }

    // Writing to a string cannot fail.
    fn requests_text(&self, out: &mut String) {
        let name = "kumiki_ranking_requests_total";
        let _ = writeln!(out, "# HELP {name} GraphQL requests by outcome.\n# TYPE {name} counter");
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        for (outcome, count) in outcomes.iter() {
            let _ = writeln!(out, "{name}{{code=\"{outcome}\"}} {count}");
        }
        let name = "kumiki_ranking_file_requests_total";
        let _ = writeln!(out, "# HELP {name} Requests for files by status.\n# TYPE {name} counter");
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for (status, count) in files.iter() {
            let _ = writeln!(out, "{name}{{status=\"{status}\"}} {count}");
        }
        let name = "kumiki_ranking_request_seconds";
        let _ = writeln!(out, "# HELP {name} Time to the answer.\n# TYPE {name} histogram");
        for (end, bucket) in BUCKETS.iter().zip(&self.buckets) {
            let count = bucket.load(Ordering::Relaxed);
            let _ = writeln!(out, "{name}_bucket{{le=\"{end}\"}} {count}");
        }
        let requests = self.requests.load(Ordering::Relaxed);
        let seconds =
            Duration::from_nanos(self.request_nanos.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {requests}");
        let _ = writeln!(out, "{name}_sum {seconds}\n{name}_count {requests}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let metrics = Metrics::default();
        metrics.answered("OK", Duration::from_millis(3));
        metrics.answered("BUSY", Duration::from_secs(60));
        metrics.file_answered(206);
        let up = Up::new(&metrics.active);
        let day = domain::JstDate::default();
        let refused = Some("damaged".to_owned());
        let snapshot =
            SnapshotInfo { number: 7, days: 1, codes: 2, first: day, last: day, refused };
        let text = metrics.text(&snapshot);
        for line in [
            "kumiki_ranking_requests_total{code=\"BUSY\"} 1",
            "kumiki_ranking_requests_total{code=\"OK\"} 1",
            "kumiki_ranking_request_seconds_bucket{le=\"0.002\"} 0",
            "kumiki_ranking_request_seconds_bucket{le=\"0.005\"} 1",
            "kumiki_ranking_request_seconds_bucket{le=\"30\"} 1",
            "kumiki_ranking_request_seconds_bucket{le=\"+Inf\"} 2",
            "kumiki_ranking_request_seconds_sum 60.003",
            "kumiki_ranking_request_seconds_count 2",
            "kumiki_ranking_file_requests_total{status=\"206\"} 1",
            "kumiki_ranking_file_bytes_total 0",
            "kumiki_ranking_rankings_active 1",
            "kumiki_ranking_snapshot_number 7",
            "kumiki_ranking_snapshot_refused 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
        drop(up);
        assert!(metrics.text(&snapshot).contains("rankings_active 0"));
    }
}
