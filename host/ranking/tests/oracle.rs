//! The engine against an independent evaluator: plain loops over plain rows, no SQL and no code of
//! the engine, on hundreds of random formulas over data with gaps, listings and delistings. Every
//! row must be the same, sort values bit for bit.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};

use domain::Random;
use duckdb::{Connection, params};
use pricestore::{DataDir, publish};
use ranking::{CancelToken, EngineOptions, Formula, RankEngine, RankOrder, RankQuery};

const DATA_SETS: u64 = 2;
const FORMULAS_PER_DATA_SET: usize = 250;
const DAYS: usize = 140;
const CODES: usize = 50;
const NAMES: [&str; 5] = ["Open", "High", "Low", "Close", "Volume"];

fn one_in(stream: &mut Random, odds: usize) -> bool {
    stream.place(odds) == 0
}

/// Date, code and the five columns.
type Row = (String, String, [Option<f64>; 5]);

/// Rows with everything that a vendor's table can lack. Prices stand on few values, so they tie.
fn rows(stream: &mut Random) -> Vec<Row> {
    let mut rows = Vec::new();
    for code in 0..CODES {
        let name =
            if code % 7 == 3 { format!("{}A", 130 + code) } else { (1300 + code).to_string() };
        let first = if one_in(stream, 4) { stream.place(DAYS) } else { 0 };
        let last = if one_in(stream, 5) { first + stream.place(DAYS) } else { DAYS };
        let mut halted = 0_usize;
        for day in first..last.min(DAYS) {
            if one_in(stream, 40) {
                halted = stream.place(12);
            }
            halted = halted.saturating_sub(1);
            // The weekends of one month and a half are missing from everybody.
            if halted > 0 || one_in(stream, 15) || (day > 60 && day < 100 && day % 7 > 4) {
                continue;
            }
            let silent = one_in(stream, 30);
            let mut price = || match stream.place(60) {
                _ if silent => None,
                0 => None,
                1 => Some(0.0),
                other => Some(100.0 + (other / 4) as f64 * 2.5),
            };
            let prices = [price(), price(), price(), price()];
            let volume = match stream.place(12) {
                0 => None,
                1 => Some(0.0),
                lots => Some(lots as f64 * 100.0),
            };
            let date = format!("2024-{:02}-{:02}", day / 28 + 1, day % 28 + 1);
            rows.push((date, name.clone(), [prices[0], prices[1], prices[2], prices[3], volume]));
        }
    }
    rows
}

enum Tree {
    Number(String),
    Value(usize, usize),
    Negative(Box<Tree>),
    Pair(char, Box<Tree>, Box<Tree>),
}

fn tree(stream: &mut Random, depth: usize) -> Tree {
    if depth == 0 || one_in(stream, 4) {
        return match stream.place(5) {
            0 => Tree::Number(match stream.place(6) {
                0 => "0".to_owned(),
                1 => format!(".{}", stream.place(1_000)),
                2 => format!("{}.{}", stream.place(100), stream.place(100_000)),
                3 => format!("1{}", "0".repeat(stream.place(250))),
                4 => format!("0.{}1", "0".repeat(stream.place(250))),
                _ => stream.place(1_000).to_string(),
            }),
            _ => {
                let lag = match stream.place(6) {
                    0..3 => 0,
                    3 => 1 + stream.place(3),
                    4 => 1 + stream.place(30),
                    _ => 1 + stream.place(200),
                };
                Tree::Value(stream.place(5), lag)
            }
        };
    }
    match stream.place(9) {
        0 => Tree::Negative(Box::new(tree(stream, depth - 1))),
        operator => Tree::Pair(
            ['+', '-', '*', '/'][operator % 4],
            Box::new(tree(stream, depth - 1)),
            Box::new(tree(stream, depth - 1)),
        ),
    }
}

/// The formula's text, with more parentheses than needed.
fn text(tree: &Tree) -> String {
    match tree {
        Tree::Number(digits) => digits.clone(),
        Tree::Value(column, 0) => NAMES[*column].to_owned(),
        Tree::Value(column, lag) => format!("{}[-{lag}]", NAMES[*column]),
        Tree::Negative(inner) => format!("-({})", text(inner)),
        Tree::Pair(operator, left, right) => format!("({}{operator}{})", text(left), text(right)),
    }
}

struct Oracle {
    dates: Vec<String>,
    table: BTreeMap<(String, String), [Option<f64>; 5]>,
}

impl Oracle {
    fn new(rows: &[Row]) -> Self {
        let dates: BTreeSet<String> = rows.iter().map(|(date, ..)| date.clone()).collect();
        let keyed = rows.iter().map(|(date, code, row)| ((date.clone(), code.clone()), *row));
        Self { dates: dates.into_iter().collect(), table: keyed.collect() }
    }

    fn value(&self, tree: &Tree, day: usize, code: &str) -> Option<f64> {
        match tree {
            Tree::Number(digits) => Some(digits.parse().unwrap()),
            Tree::Value(column, lag) => {
                let date = &self.dates[day.checked_sub(*lag)?];
                let row = self.table.get(&(date.clone(), code.to_owned()))?;
                row[*column].filter(|value| *value != 0.0)
            }
            Tree::Negative(inner) => Some(-self.value(inner, day, code)?),
            Tree::Pair(operator, left, right) => {
                let left = self.value(left, day, code)?;
                let right = self.value(right, day, code)?;
                match operator {
                    '+' => Some(left + right),
                    '-' => Some(left - right),
                    '*' => Some(left * right),
                    _ if right == 0.0 => None,
                    _ => Some(left / right),
                }
            }
        }
    }

    /// Date, rank, code, bits of the value, close and volume of every row of the answer.
    fn answer(
        &self,
        tree: &Tree,
        from: &str,
        to: &str,
        order: RankOrder,
        limit: usize,
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        for (day, date) in self.dates.iter().enumerate() {
            if date.as_str() < from || date.as_str() > to {
                continue;
            }
            let mut ranked = Vec::new();
            for ((row_date, code), row) in &self.table {
                let close = row[3].filter(|close| *close != 0.0);
                if row_date == date
                    && let Some(close) = close
                {
                    let value = self.value(tree, day, code).filter(|value| value.is_finite());
                    // A negative zero is written as a plain one.
                    let value = value.map(|value| if value == 0.0 { 0.0 } else { value });
                    ranked.push((value, code.clone(), close, row[4]));
                }
            }
            ranked.sort_by(|a, b| {
                let by_value = match (a.0, b.0) {
                    (Some(a), Some(b)) if order == RankOrder::Desc => b.partial_cmp(&a).unwrap(),
                    (Some(a), Some(b)) => a.partial_cmp(&b).unwrap(),
                    (a, b) => b.is_some().cmp(&a.is_some()),
                };
                by_value.then(a.1.cmp(&b.1))
            });
            for (place, (value, code, close, volume)) in ranked.into_iter().take(limit).enumerate()
            {
                let rank = u32::try_from(place + 1).unwrap();
                lines.push((date.clone(), rank, code, value.map(f64::to_bits), close, volume));
            }
        }
        lines
    }
}

type Line = (String, u32, String, Option<u64>, f64, Option<f64>);

fn lines(ranking: &ranking::Ranking) -> Vec<Line> {
    let line = |row: &ranking::RankRow| {
        let date = ranking.days[row.day as usize].to_string();
        let code = ranking.codes[row.code as usize].to_string();
        let value = row.sort_value.map(f64::to_bits);
        (date, row.rank, code, value, row.close, row.volume)
    };
    ranking.rows.iter().map(line).collect()
}

fn engine_over(rows: &[Row]) -> (tempfile::TempDir, RankEngine) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    std::fs::create_dir_all(data.mother().parent().unwrap()).unwrap();
    let connection = Connection::open(data.mother()).unwrap();
    let table = "CREATE TABLE daily (date DATE, code VARCHAR, open DOUBLE, high DOUBLE, low DOUBLE,
                 close DOUBLE, volume DOUBLE)";
    connection.execute_batch(table).unwrap();
    let mut appender = connection.appender("daily").unwrap();
    for (date, code, [open, high, low, close, volume]) in rows {
        appender.append_row(params![date, code, open, high, low, close, volume]).unwrap();
    }
    drop(appender);
    connection.close().map_err(|(_, error)| error).unwrap();
    publish(&data).unwrap();
    let options = EngineOptions { threads: 2, follow: false, ..EngineOptions::default() };
    let engine = RankEngine::open(folder.path(), options).unwrap();
    (folder, engine)
}

#[test]
fn five_hundred_random_formulas_agree_bit_for_bit() {
    let (mut rows_seen, mut values_seen, mut ties_seen) = (0, 0, 0);
    for seed in 0..DATA_SETS {
        let stream = &mut Random::of_seed(seed);
        let rows = rows(stream);
        let oracle = Oracle::new(&rows);
        let (_folder, engine) = engine_over(&rows);
        for number in 0..FORMULAS_PER_DATA_SET {
            let depth = 1 + stream.place(5);
            let tree = tree(stream, depth);
            let text = text(&tree);
            let Ok(formula) = Formula::parse(&text) else {
                // Longer than a formula may be.
                assert!(
                    text.len() > 1_000 || text.matches(['(', '+', '-', '*', '/']).count() > 60,
                    "{text}"
                );
                continue;
            };
            let days = [stream.place(oracle.dates.len()), stream.place(oracle.dates.len())];
            let (from, to) =
                (&oracle.dates[days[0].min(days[1])], &oracle.dates[days[0].max(days[1])]);
            let order = if one_in(stream, 2) { RankOrder::Asc } else { RankOrder::Desc };
            let limit = [1, 3, 20, 500][stream.place(4)];
            let query = RankQuery {
                from: from.parse().unwrap(),
                to: to.parse().unwrap(),
                sort_by: formula.into(),
                order,
                limit,
                codes: None,
            };
            let about =
                format!("data {seed}, formula {number}: {text} {order} {limit}, {from} to {to}");
            let expected = oracle.answer(&tree, from, to, order, limit as usize);
            let found = lines(&engine.rank(&query, &CancelToken::new()).unwrap());
            assert_eq!(found, expected, "kernel, {about}");
            if number % 5 == 0 {
                let found = lines(&engine.rank_by_sql(&query, &CancelToken::new()).unwrap());
                assert_eq!(found, expected, "statement, {about}");
            }
            rows_seen += expected.len();
            values_seen += expected.iter().filter(|line| line.3.is_some()).count();
            let is_tie = |pair: &&[Line]| pair[0].0 == pair[1].0 && pair[0].3 == pair[1].3;
            ties_seen += expected.windows(2).filter(is_tie).count();
        }
    }
    // The comparison means something only where there was something to compare.
    assert!(rows_seen > 100_000, "{rows_seen} rows");
    assert!(values_seen > 50_000, "{values_seen} values");
    assert!(ties_seen > 10_000, "{ties_seen} ties");
}
