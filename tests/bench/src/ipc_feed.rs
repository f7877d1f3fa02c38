//! What a subscribed client gets of a run: it counts every row and notes when it came.

use domain::clock::Stopwatch;

use crate::ipc_client::Client;

/// A message of trades: its first and last row, counted from 1, and when it came, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    first: u64,
    last: u64,
    at: f64,
}

/// What a client has got.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) arrivals: Vec<Arrival>,
    /// When the run's end came; none where the engine had ended the connection before.
    pub(crate) ended: Option<f64>,
}

/// How far the rows' times are from their schedule, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deviation {
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    /// What the rows took together above their schedule, in percent of it.
    pub(crate) drift_percent: f64,
}

impl Feed {
    /// Reads until the end of the run, or until `enough` rows.
    pub(crate) fn read(client: &mut Client, watch: Stopwatch, enough: u64) -> Self {
        let mut feed = Self::default();
        while feed.rows < enough
            && let Some(text) = client.next()
        {
            if text.starts_with("{\"event\":\"Trades\"") {
                feed.take(&text, watch.elapsed().as_secs_f64());
            } else if text.starts_with("{\"event\":\"EngineStopped\"") {
                feed.ended = Some(watch.elapsed().as_secs_f64());
                break;
            }
        }
        feed
    }

    fn take(&mut self, text: &str, at: f64) {
        const FIELD: &str = "\"sequence_id\":";
        let number = |place: Option<usize>| {
            let rest = &text[place.unwrap_or(text.len())..].trim_start_matches(FIELD);
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse::<u64>().unwrap_or_default()
        };
        let (first, last) = (number(text.find(FIELD)), number(text.rfind(FIELD)));
        let rows = text.matches(FIELD).count() as u64;
        assert_eq!(
            (first, last),
            (self.rows + 1, self.rows + rows),
            "a row is missing: {text:.300}"
        );
        self.rows = last;
        self.bytes += text.len() as u64;
        self.arrivals.push(Arrival { first, last, at });
    }

    /// Rows in a second, from the first to the last.
    pub(crate) fn rate(&self) -> f64 {
        match (self.arrivals.first(), self.arrivals.last()) {
            (Some(first), Some(last)) => self.rows as f64 / (last.at - first.at),
            _ => 0.0,
        }
    }

    /// How far the rows were from their schedule; the first counts as on time.
    pub(crate) fn deviation(&self, schedule: &[f64]) -> Deviation {
        let began = self.arrivals.first().map_or(0.0, |arrival| arrival.at);
        let mut all: Vec<f64> = Vec::with_capacity(schedule.len());
        for arrival in &self.arrivals {
            let rows = &schedule[arrival.first as usize - 1..arrival.last as usize];
            all.extend(rows.iter().map(|due| (arrival.at - began - due).abs() * 1e3));
        }
        all.sort_by(f64::total_cmp);
        let (took, due) = match self.arrivals.last() {
            Some(last) => (last.at - began, schedule[last.last as usize - 1]),
            None => (0.0, 0.0),
        };
        let at = |share| crate::serve_mixed::at(&all, share);
        let drift_percent = (took / due - 1.0) * 100.0;
        Deviation { median: at(0.5), p99: at(0.99), max: at(1.0), drift_percent }
    }
}
