//! A query as one SQL statement over the grid table `g`: dense and ordered by day and code, so a
//! lag is a fixed distance between rows and a POSITIONAL JOIN lines the days up. Everything in the
//! text is an integer or a fixed word of ours; the formula comes from [`crate::formula::value_sql`].

use std::fmt::Write as _;

use super::adjust;
use crate::formula::{Column, Node, column_alias, value_sql};
use crate::query::RankOrder;

/// What the statement asks for, in days and codes of the grid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement<'a> {
    /// The formula.
    pub(crate) root: &'a Node,
    /// First day.
    pub(crate) first_day: usize,
    /// Last day, included.
    pub(crate) last_day: usize,
    /// Which end comes first.
    pub(crate) order: RankOrder,
    /// Rows of each day.
    pub(crate) limit: u32,
    /// Places of the codes that take part; all when `None`.
    pub(crate) codes: Option<&'a [u32]>,
    /// Whether values of earlier days are adjusted for splits; their tables are there then.
    pub(crate) adjusted: bool,
    /// Parts that may run at the same time.
    pub(crate) parts: usize,
}

impl Statement<'_> {
    /// First and last day that it reads.
    pub(crate) fn days_read(&self) -> (usize, usize) {
        (self.first_day.saturating_sub(self.reach()), self.last_day)
    }

    /// The largest lag.
    fn reach(&self) -> usize {
        self.root.lags().last().map_or(0, |lag| *lag as usize)
    }

    /// The statement: columns day, rank, code, value, close and volume, by day and rank.
    pub(crate) fn sql(&self) -> String {
        let limit = self.limit;
        let (key, value) = match self.order {
            RankOrder::Desc => ("v", "r.v"),
            RankOrder::Asc => ("-v", "-r.v"),
        };
        let parts = self.parts_sql().join("\n    UNION ALL\n");
        let factors = self.factors_sql();
        // The largest N of a struct of value and negative code: exact about ties, and no sort.
        format!(
            "WITH {factors}r AS (SELECT d, unnest(generate_series(1, len(t))) rk, \
             unnest(t, recursive := true) FROM (\n  SELECT d, max({{v: coalesce({key}, \
             '-inf'::DOUBLE), c: -ci}}, {limit}) t FROM (\n{parts}\n  ) GROUP BY d))\n\
             SELECT r.d, r.rk, -r.c ci, CASE WHEN r.v = '-inf'::DOUBLE THEN NULL ELSE {value} END v, \
             t.c AS close, t.volume\n\
             FROM r JOIN g t ON t.day_no = r.d AND t.code_id = -r.c ORDER BY 1, 2"
        )
    }

    fn parts_sql(&self) -> Vec<String> {
        let reach = self.reach();
        let mut parts = Vec::new();
        // Null is contagious, so days that the largest lag reaches beyond have no values at all.
        let early_end = self.last_day.min(reach.saturating_sub(1));
        if reach > 0 && self.first_day <= early_end {
            parts.push(format!(
                "    SELECT day_no d, code_id ci, NULL::DOUBLE v FROM g \
                 WHERE day_no BETWEEN {} AND {early_end} AND present{}",
                self.first_day,
                self.codes_sql()
            ));
        }
        let start = self.first_day.max(reach);
        if start > self.last_day {
            return parts;
        }
        let length = (self.last_day - start + 1).div_ceil(self.parts.max(1));
        for first in (start..=self.last_day).step_by(length) {
            parts.push(self.part_sql(first, (first + length - 1).min(self.last_day)));
        }
        parts
    }

    fn part_sql(&self, first: usize, last: usize) -> String {
        let values = self.root.values();
        let columns = |wanted: u32| -> Vec<Column> {
            let of_lag = values.iter().filter(|(_, lag)| *lag == wanted);
            of_lag.map(|(column, _)| *column).collect()
        };
        let mut names = vec!["day_no".to_owned(), "code_id".to_owned(), "present".to_owned()];
        names.extend(columns(0).into_iter().map(|column| named(column, 0)));
        let value = value_sql(self.root);
        let mut sql =
            format!("(SELECT {} FROM g WHERE day_no BETWEEN {first} AND {last})", names.join(", "));
        for lag in self.root.lags() {
            let names: Vec<String> =
                columns(lag).into_iter().map(|column| named(column, lag)).collect();
            let (first, last) = (first - lag as usize, last - lag as usize);
            // Writing to a string cannot fail.
            let _ = write!(
                sql,
                "\n      POSITIONAL JOIN (SELECT {} FROM g WHERE day_no BETWEEN {first} AND {last})",
                names.join(", ")
            );
        }
        if self.adjusted {
            sql = adjust::adjusted(&sql, &values);
        }
        format!(
            "    SELECT day_no d, code_id ci, CASE WHEN isfinite({value}) THEN {value} END v\n      \
             FROM {sql} WHERE present{}",
            self.codes_sql()
        )
    }

    /// The tables of factors, one for each lag; nothing where nothing is adjusted.
    fn factors_sql(&self) -> String {
        let lags = if self.adjusted { self.root.lags() } else { Vec::new() };
        let days = (self.first_day, self.last_day);
        lags.into_iter().map(|lag| adjust::factors(lag, days)).collect()
    }

    fn codes_sql(&self) -> String {
        let Some(codes) = self.codes else { return String::new() };
        if codes.is_empty() {
            return " AND false".to_owned();
        }
        let codes: Vec<String> = codes.iter().map(u32::to_string).collect();
        format!(" AND code_id IN ({})", codes.join(", "))
    }
}

/// A column of the table under the name that formulas use for its value so many days earlier.
fn named(column: Column, lag: u32) -> String {
    let alias = column_alias(column, lag);
    match column {
        // In formulas 0 is null; the table keeps it, because an answer shows it.
        Column::Volume => format!("nullif(volume, 0) {alias}"),
        _ => format!("{} {alias}", column_alias(column, 0)),
    }
}
