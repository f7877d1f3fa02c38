//! One more day, as `kumiki data update` does it: the whole job with a source in memory, so that everything
//! but the network counts. The list of issues, the rows, what readers are told, the combined database, the
//! snapshot, the per-issue databases, the generation that ties them, the report.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::clock::{Stopwatch, sleep};
use domain::{JstDate, TsNanos};
use http_client::CancellationToken;
use pricestore::DataDir;
use pricestore::listed::{IssueField, IssueInfo};
use ranking::RankEngine;
use serde_json::json;
use update::limits::RECHECK_DAYS_DEFAULT;
use update::source::{Answer, DailySource, IssueList, SourceError};
use update::store::WorkDatabase;
use update::{
    DailyRow, Ending, IssueCode, JobOptions, JobWatch, Phase, SourceKind, SourceSlot,
    update_from_sources,
};

use crate::measure::figure;
use crate::rank_bench::or_stop;

/// Seconds that one more day may take.
const GOAL_DAY_S: f64 = 12.0;
/// Milliseconds after which the service must use a new snapshot.
const GOAL_TAKE_UP_MS: f64 = 1_000.0;
/// When the job runs, in nanoseconds after midnight in Japan: 18:00.
const EVENING_NS: u64 = 18 * 3_600 * 1_000_000_000;

/// A vendor that has the last days.
struct LastDays {
    days: Vec<Vec<DailyRow>>,
}

impl LastDays {
    fn rows(&self, date: JstDate) -> &[DailyRow] {
        let is_it = |rows: &&Vec<DailyRow>| rows.first().is_some_and(|row| row.date == date);
        self.days.iter().find(is_it).map_or(&[], Vec::as_slice)
    }
}

impl DailySource for LastDays {
    fn kind(&self) -> SourceKind {
        SourceKind::Vendor
    }

    fn has_days(&self) -> bool {
        true
    }

    fn day(&mut self, date: JstDate) -> Result<Answer, SourceError> {
        Ok(Answer { rows: self.rows(date).to_vec(), ..Answer::default() })
    }

    fn issue(&mut self, _: IssueCode, _: JstDate, _: JstDate) -> Result<Answer, SourceError> {
        Ok(Answer::default())
    }

    fn issue_list(&mut self, on: JstDate) -> Result<Option<IssueList>, SourceError> {
        let info = |row: &DailyRow| {
            let name = format!("issue {}", row.code.as_str());
            (row.code, IssueInfo::default().with(IssueField::Name, &name))
        };
        let rows = self.rows(on);
        Ok((!rows.is_empty()).then(|| rows.iter().map(info).collect::<BTreeMap<_, _>>()))
    }
}

/// When each part of the job began and ended, in seconds.
struct Parts<'a> {
    watch: Stopwatch,
    engine: &'a RankEngine,
    snapshot: u64,
    publish: Option<f64>,
    /// The second step of the publication.
    rank: Option<f64>,
    split: Option<f64>,
    last: f64,
    /// Seconds in which the service took up the new snapshot, while the job was held.
    take_up: f64,
}

impl Parts<'_> {
    /// Seconds of the job alone.
    fn now(&self) -> f64 {
        self.watch.elapsed().as_secs_f64() - self.take_up
    }
}

impl JobWatch for Parts<'_> {
    fn progress(&mut self, phase: Phase, done: u64, of: u64, _: &str) {
        let now = self.now();
        match phase {
            Phase::Publish if (done, of) == (1, 2) => _ = self.rank.get_or_insert(now),
            Phase::Publish => _ = self.publish.get_or_insert(now),
            Phase::Split if self.split.is_none() => {
                self.split = Some(now);
                let held = Stopwatch::start();
                while self.engine.snapshot().number == self.snapshot {
                    sleep(Duration::from_millis(1));
                }
                self.take_up = held.elapsed().as_secs_f64();
            }
            Phase::Split => self.last = now,
            _ => {}
        }
    }
}

/// Runs the job for the last one of these days, which is not stored yet, beside a service. Those before it are asked
/// for again, as the program does it.
pub(crate) fn run(
    name: &str,
    store: &mut WorkDatabase,
    data: &DataDir,
    engine: &RankEngine,
    days: &[Vec<DailyRow>],
) {
    let date = days.iter().flatten().map(|row| row.date).max().unwrap_or_default();
    let options = JobOptions {
        data: data.clone(),
        now: TsNanos::from_jst(date, EVENING_NS).unwrap_or_default(),
        from: None,
        to: date,
        codes: Vec::new(),
        refetch: false,
        recheck: RECHECK_DAYS_DEFAULT as usize,
        accept: Vec::new(),
    };
    let source = SourceSlot::Ready(Box::new(LastDays { days: days.to_vec() }));
    let mut parts = Parts {
        watch: Stopwatch::start(),
        engine,
        snapshot: engine.snapshot().number,
        publish: None,
        rank: None,
        split: None,
        last: 0.0,
        take_up: 0.0,
    };
    let cancel = CancellationToken::new();
    let report = or_stop(update_from_sources(store, vec![source], &options, &cancel, &mut parts));
    let seconds = parts.now();
    assert_eq!(report.ending, Ending::Done, "{report:?}");
    let (publish, split) = (parts.publish.unwrap_or(seconds), parts.split.unwrap_or(seconds));
    let rank = parts.rank.unwrap_or(split);
    let more = json!({
        "rows": report.rows_fetched(), "store_s": publish, "combined_s": rank - publish,
        "snapshot_s": split - rank,
        "split_s": parts.last - split, "generation_and_report_s": seconds - parts.last,
        "files": report.split.map_or(0, |split| split.written), "goal_max": GOAL_DAY_S,
    });
    figure(&format!("{name}.one_more_day"), "s", seconds, seconds, &more);
    let take_up = parts.take_up * 1e3;
    let more = json!({ "goal_max": GOAL_TAKE_UP_MS });
    figure(&format!("{name}.take_up"), "ms", take_up, take_up, &more);
}
