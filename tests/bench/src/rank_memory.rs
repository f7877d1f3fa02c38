//! Peak memory of ten-year queries above that of the idle engine, where the system tells it.

use ranking::{CancelToken, RankEngine, RankQuery};
use serde_json::json;

use crate::measure::figure;

/// Queries at the same time in the second figure.
const CONCURRENT: usize = 8;

/// Prints the peak of one query, and of several at once.
pub(crate) fn report(engine: &RankEngine, query: &RankQuery) {
    for (name, queries, goal) in
        [("rank.memory.one", 1, 250), ("rank.memory.eight", CONCURRENT, 1_000)]
    {
        let Some(above) = above_idle(|| run(engine, query, queries)) else {
            eprintln!("{name}: this system does not tell a process its peak memory");
            return;
        };
        figure(name, "MB", above, above, &json!({ "goal_max": goal }));
    }
}

fn run(engine: &RankEngine, query: &RankQuery, queries: usize) {
    std::thread::scope(|scope| {
        for _ in 0..queries {
            scope.spawn(|| {
                let ranking = engine.rank(query, &CancelToken::new());
                std::hint::black_box(ranking.unwrap_or_else(|error| panic!("{error}")));
            });
        }
    });
}

fn above_idle(work: impl FnOnce()) -> Option<f64> {
    // Sets the peak back to the present size.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    let idle = status("VmRSS:")?;
    work();
    Some((status("VmHWM:")? - idle).max(0.0) / 1e3)
}

/// A size of this process in kilobytes.
fn status(name: &str) -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
