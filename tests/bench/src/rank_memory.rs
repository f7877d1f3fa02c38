//! Peak memory of ten-year queries above that of the idle engine, each in a process of its own,
//! where the system tells it. The mapped snapshot counts as idle: it was read when it was opened,
//! and the system may take its pages back at any time.

use std::path::Path;
use std::process::Command;

use ranking::{CancelToken, RankEngine, RankQuery};
use serde_json::json;

use crate::data::path_argument;
use crate::measure::figure;
use crate::rank_bench::{options, or_stop, query};
use crate::rank_kernel::CASES;

/// Name of the child's task.
pub(crate) const TASK: &str = "rank-memory-of";

/// Prints the peak of one query, and of eight at once.
pub(crate) fn report(folder: &Path) {
    for (name, queries, goal) in [("rank.memory.one", 1, 250), ("rank.memory.eight", 8, 1_000)] {
        match in_child(folder, queries) {
            Some(above) => figure(name, "MB", above, above, &json!({ "goal_max": goal })),
            None => eprintln!("{name}: this system does not tell a process its peak memory"),
        }
    }
}

fn in_child(folder: &Path, queries: usize) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new(program);
    let output = command.arg(TASK).arg(folder).arg(queries.to_string()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Runs the queries of the arguments on a fresh engine and prints the megabytes above idle.
pub(crate) fn child() {
    let queries = path_argument(3).to_string_lossy().parse().unwrap_or(1);
    let engine = or_stop(RankEngine::open(&path_argument(2), options()));
    let info = engine.snapshot();
    let query = query(CASES[1].formula, (info.first, info.last), 20);
    if let Some(above) = above_idle(|| run(&engine, &query, queries)) {
        println!("{above}");
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
