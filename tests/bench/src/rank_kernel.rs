//! K: the ranking without any engine, written by hand for each formula over matrices in memory.
//! It bounds what is possible on the machine; the engine's answers are compared with it too.

use std::ops::Range;

use crate::baselines::Matrices;

/// Code and value of each ranked row, by day and rank.
pub(crate) type Rows = Vec<(u32, f64)>;
/// Ranks days with so many rows each.
type Kernel = fn(&Matrices, Range<usize>, usize) -> Rows;

/// One formula of the bench, in both forms.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) formula: &'static str,
    /// Whether it has a lag; the goals differ.
    pub(crate) lagged: bool,
    /// Ranks the days `first..end` with so many rows each.
    pub(crate) kernel: Kernel,
}

/// The five formulas.
pub(crate) const CASES: [Case; 5] = [
    Case {
        name: "1lag",
        formula: "(Close - Close[-5]) / Close[-5] * 100",
        lagged: true,
        kernel: |m, days, limit| {
            let [_, _, _, c, _] = &m.columns;
            rank(m, days, limit, 5, |at, lag| {
                let before = c[at - lag.cells(5)];
                (c[at] - before) / before * 100.0
            })
        },
    },
    Case {
        name: "3lags",
        formula: "Close / Close[-1] * 0.5 + Close / Close[-5] * 0.3 + Close / Close[-20] * 0.2",
        lagged: true,
        kernel: |m, days, limit| {
            let [_, _, _, c, _] = &m.columns;
            rank(m, days, limit, 20, |at, lag| {
                c[at] / c[at - lag.cells(1)] * 0.5
                    + c[at] / c[at - lag.cells(5)] * 0.3
                    + c[at] / c[at - lag.cells(20)] * 0.2
            })
        },
    },
    Case {
        name: "lag250",
        formula: "Close / Close[-250] * 100",
        lagged: true,
        kernel: |m, days, limit| {
            let [_, _, _, c, _] = &m.columns;
            rank(m, days, limit, 250, |at, lag| c[at] / c[at - lag.cells(250)] * 100.0)
        },
    },
    Case {
        name: "nolag",
        formula: "(High - Low) / Close * 100",
        lagged: false,
        kernel: |m, days, limit| {
            let [_, h, l, c, _] = &m.columns;
            rank(m, days, limit, 0, |at, _| (h[at] - l[at]) / c[at] * 100.0)
        },
    },
    Case {
        name: "cxv",
        formula: "Close * Volume",
        lagged: false,
        kernel: |m, days, limit| {
            let [_, _, _, c, v] = &m.columns;
            rank(m, days, limit, 0, |at, _| c[at] * v[at])
        },
    },
];

/// Turns business days into cells.
#[derive(Clone, Copy)]
struct Lag {
    codes: usize,
}

impl Lag {
    #[inline(always)]
    fn cells(self, days: usize) -> usize {
        days * self.codes
    }
}

/// Ranks with a running border: a value enters the list where it is above the last one. Days that
/// the largest lag reaches beyond have no values; only days from `reach` on are ranked.
#[inline(always)]
fn rank(
    m: &Matrices,
    days: Range<usize>,
    limit: usize,
    reach: usize,
    value: impl Fn(usize, Lag) -> f64,
) -> Rows {
    let codes = m.codes;
    let lag = Lag { codes };
    let mut rows = Vec::with_capacity(days.len() * limit);
    let mut best: Vec<(u32, f64)> = Vec::with_capacity(limit + 1);
    for day in days.start.max(reach)..days.end {
        best.clear();
        let mut border = f64::NEG_INFINITY;
        for code in 0..codes {
            let v = value(day * codes + code, lag);
            if v > border && v < f64::INFINITY {
                let place = best.partition_point(|(_, other)| *other >= v);
                best.insert(place, (code as u32, v));
                best.truncate(limit);
                if best.len() == limit {
                    border = best[limit - 1].1;
                }
            }
        }
        rows.extend_from_slice(&best);
    }
    rows
}

/// Runs a case with so many threads, days in equal parts.
pub(crate) fn run(
    case: &Case,
    m: &Matrices,
    days: Range<usize>,
    limit: usize,
    threads: usize,
) -> Rows {
    let part = days.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|number| {
                let first = days.start + number * part;
                let end = (first + part).min(days.end);
                scope.spawn(move || (case.kernel)(m, first..end, limit))
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}
