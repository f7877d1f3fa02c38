//! Numbers for operators, in Prometheus' text format.

use std::time::Duration;

use domain::TsNanos;
use pricestore::DatasetStatus;
use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

use crate::SnapshotInfo;
use crate::replica::ReplicaStatus;

/// What every name begins with.
const NAMESPACE: &str = "kumiki_ranking";
/// Upper ends of the buckets of request times, in seconds.
const BUCKETS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Counters since the start, and gauges.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    /// Requests by `extensions.code`; `OK` for those without an error. The codes are a closed list.
    outcomes: IntCounterVec,
    request_seconds: Histogram,
    /// Rankings that are worked on.
    pub(super) active: IntGauge,
    /// Requests that wait for their permits.
    pub(super) waiting: IntGauge,
    /// Connections that are open.
    pub(super) connections: IntGauge,
    /// Clients that went away before their answer was there.
    pub(super) gone: IntCounter,
    /// Clients that were dropped because they took nothing, or an answer or a file for too long.
    pub(super) slow: IntCounter,
    /// Memory of all answers in flight.
    pub(super) answer_bytes: IntGauge,
    /// Answers of which their clients took nothing while others waited for memory.
    pub(super) given_up: IntCounter,
    /// Requests for stored files by HTTP status. The statuses are a closed list.
    files: IntCounterVec,
    /// Stored files that are being sent.
    pub(super) downloads: IntGauge,
    /// Bytes of stored files, as sent.
    pub(super) file_bytes: IntCounter,
    /// Rows of all answers.
    pub(super) rows: IntCounter,
    /// Bytes of all answers, as sent.
    pub(super) bytes: IntCounter,
    snapshot_number: IntGauge,
    snapshot_days: IntGauge,
    snapshot_codes: IntGauge,
    snapshot_last_date: IntGauge,
    snapshot_refused: IntGauge,
    incomplete_days: IntGauge,
    missing_days: IntGauge,
    doubts: IntGauge,
    replica_behind: IntGauge,
    replica_failures: IntGauge,
    replica_generations: IntGauge,
    replica_bytes: IntGauge,
    replica_failing: IntGauge,
    replica_damaged: IntGauge,
}

/// Counts something up for as long as it lives.
pub(super) struct GaugeGuard(IntGauge);

impl GaugeGuard {
    pub(super) fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Makes metrics of one registry. The library refuses names that Prometheus could not read or that
/// are given twice; all names are constants here, and a test makes every metric.
#[derive(Default)]
struct Maker(Registry);

#[expect(clippy::expect_used, reason = "names are constants, and a test makes every metric")]
impl Maker {
    fn register<C: Collector + Clone + 'static>(&self, made: prometheus::Result<C>) -> C {
        let collector = made.expect("the name is one");
        self.0.register(Box::new(collector.clone())).expect("the name is given once");
        collector
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.register(IntCounter::with_opts(Opts::new(name, help).namespace(NAMESPACE)))
    }

    fn counters(&self, name: &str, help: &str, label: &str) -> IntCounterVec {
        self.register(IntCounterVec::new(Opts::new(name, help).namespace(NAMESPACE), &[label]))
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.register(IntGauge::with_opts(Opts::new(name, help).namespace(NAMESPACE)))
    }

    fn histogram(&self, name: &str, help: &str) -> Histogram {
        let options = HistogramOpts::new(name, help).namespace(NAMESPACE).buckets(BUCKETS.to_vec());
        self.register(Histogram::with_opts(options))
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let make = Maker::default();
        Self {
            outcomes: make.counters("requests_total", "GraphQL requests by outcome.", "code"),
            files: make.counters("file_requests_total", "Requests for files by status.", "status"),
            request_seconds: make.histogram("request_seconds", "Time to the answer."),
            rows: make.counter("rows_total", "Rows of all answers."),
            bytes: make.counter("response_bytes_total", "Bytes of all answers."),
            gone: make.counter("clients_gone_total", "Clients that went away early."),
            slow: make.counter("clients_slow_total", "Clients dropped as too slow."),
            answer_bytes: make.gauge("answer_memory_bytes", "Memory of answers in flight."),
            given_up: make.counter("answers_given_up_total", "Answers that clients did not read."),
            file_bytes: make.counter("file_bytes_total", "Bytes of stored files."),
            downloads: make.gauge("downloads", "Files being sent."),
            active: make.gauge("rankings_active", "Rankings in progress."),
            waiting: make.gauge("requests_waiting", "Requests that wait."),
            connections: make.gauge("connections", "Open connections."),
            snapshot_number: make.gauge("snapshot_number", "The present snapshot."),
            snapshot_days: make.gauge("snapshot_days", "Business days in it."),
            snapshot_codes: make.gauge("snapshot_codes", "Issue codes in it."),
            snapshot_last_date: make
                .gauge("snapshot_last_date", "Its last day, as seconds since 1970; 0 for none."),
            snapshot_refused: make
                .gauge("snapshot_refused", "1 while the published snapshot cannot be used."),
            incomplete_days: make
                .gauge("incomplete_days", "Days that were due and are not complete."),
            missing_days: make.gauge("missing_days", "Business days that are not in the data."),
            doubts: make.gauge("doubts", "Doubts about the data, to be checked."),
            replica_behind: make.gauge(
                "replica_behind_seconds",
                "Since when a newer generation of the primary is known; 0 for none.",
            ),
            replica_failures: make
                .gauge("replica_failures", "Attempts to follow the primary that failed in a row."),
            replica_generations: make
                .gauge("replica_generations", "Generations taken over since the start."),
            replica_bytes: make.gauge("replica_bytes", "Bytes copied since the start."),
            replica_failing: make.gauge(
                "replica_failing_seconds",
                "Seconds since every attempt to follow has failed; 0 after a success.",
            ),
            replica_damaged: make
                .gauge("replica_damaged_files", "Files of the copy that are gone or damaged."),
            registry: make.0,
        }
    }
}

impl Metrics {
    /// Counts a request that was answered.
    pub(super) fn answered(&self, outcome: &str, time: Duration) {
        self.outcomes.with_label_values(&[outcome]).inc();
        self.request_seconds.observe(time.as_secs_f64());
    }

    /// Counts a request for a stored file.
    pub(super) fn file_answered(&self, status: u16) {
        self.files.with_label_values(&[status.to_string()]).inc();
    }

    /// All numbers as text.
    ///
    /// # Errors
    /// What the library says of a metric that has no text.
    pub(super) fn text(
        &self,
        snapshot: &SnapshotInfo,
        dataset: Option<&DatasetStatus>,
        replica: Option<&ReplicaStatus>,
    ) -> prometheus::Result<String> {
        if let Some(replica) = replica {
            let numbers = replica.numbers();
            self.replica_behind.set(numbers.behind_seconds.cast_signed());
            self.replica_failures.set(numbers.failures.into());
            self.replica_generations.set(numbers.generations.cast_signed());
            self.replica_bytes.set(numbers.copied_bytes.cast_signed());
            self.replica_failing.set(numbers.failing_seconds.cast_signed());
            self.replica_damaged.set(numbers.damaged_files.cast_signed());
        }
        self.snapshot_number.set(snapshot.number.cast_signed());
        self.snapshot_days.set(snapshot.days as i64);
        self.snapshot_codes.set(snapshot.codes as i64);
        let last = TsNanos::from_jst(snapshot.last, 0).filter(|_| snapshot.days > 0);
        let seconds = last.map_or(0, |last| last.nanos() / 1_000_000_000);
        self.snapshot_last_date.set(seconds.cast_signed());
        self.snapshot_refused.set(snapshot.refused.is_some().into());
        let count = |of: fn(&DatasetStatus) -> usize| dataset.map_or(0, of) as i64;
        self.incomplete_days.set(count(|dataset| dataset.incomplete.len()));
        self.missing_days.set(count(|dataset| dataset.gaps.len()));
        self.doubts.set(count(|dataset| dataset.doubts.len()));
        TextEncoder::new().encode_to_string(&self.registry.gather())
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
        let active = GaugeGuard::new(&metrics.active);
        let day: domain::JstDate = "2024-01-04".parse().unwrap();
        let refused = Some("damaged".to_owned());
        let snapshot =
            SnapshotInfo { number: 7, days: 1, codes: 2, first: day, last: day, refused };
        let dataset =
            DatasetStatus { gaps: vec!["2024-01-05".to_owned()], ..DatasetStatus::default() };
        let text = metrics.text(&snapshot, Some(&dataset), None).unwrap();
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
            // The midnight in Japan with which the day begins.
            "kumiki_ranking_snapshot_last_date 1704294000",
            "kumiki_ranking_snapshot_refused 1",
            "kumiki_ranking_missing_days 1",
            "kumiki_ranking_doubts 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
        drop(active);
        assert!(
            metrics.text(&snapshot, Some(&dataset), None).unwrap().contains("rankings_active 0")
        );
    }
}
