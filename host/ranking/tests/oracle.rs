//! The engine against an independent evaluator: plain loops over plain rows, no SQL and no code of
//! the engine, on hundreds of random formulas over data with gaps, listings, delistings and splits,
//! raw and adjusted. Every row must be the same, sort values bit for bit.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};

use domain::Random;
use duckdb::{Connection, params};
use pricestore::generation::publish_generation_of;
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

/// Date, code and the five columns, the factor, and the source: the vendor, which has a row for each issue
/// and day, another one with raw prices, or the public one.
type Row = (String, String, [Option<f64>; 5], Option<f64>, &'static str);

/// What the source says of a split on a day of an issue that has some: mostly that there is none; else
/// splits and reverse splits, what cannot be a factor, and now and then nothing.
fn factor(stream: &mut Random) -> Option<f64> {
    match stream.place(60) {
        0 if one_in(stream, 4) => None,
        10..12 => Some([0.5, 0.2, 0.1, 1.0 / 3.0, 0.9, 0.33333, 0.9999][stream.place(7)]),
        12 => Some([2.0, 5.0, 10.0, 1.1][stream.place(4)]),
        13 if one_in(stream, 4) => Some([1e-300, 1e300, 1e-320][stream.place(3)]),
        14 if one_in(stream, 4) => Some([0.0, -0.5, f64::NAN, f64::INFINITY][stream.place(4)]),
        _ => Some(1.0),
    }
}

/// The date of a day; months have 28.
fn date(day: usize) -> String {
    format!("2024-{:02}-{:02}", day / 28 + 1, day % 28 + 1)
}

/// Business days that a calendar has, on which nobody has a row.
fn gaps(data_set: u64) -> Vec<String> {
    if data_set % 2 == 1 { vec![date(75), date(76)] } else { Vec::new() }
}

/// Rows with everything that a vendor's table can lack. Prices stand on few values, so they tie.
fn rows(stream: &mut Random) -> Vec<Row> {
    let mut rows = Vec::new();
    for code in 0..CODES {
        let name =
            if code % 7 == 3 { format!("{}A", 130 + code) } else { (1300 + code).to_string() };
        let first = if one_in(stream, 4) { stream.place(DAYS) } else { 0 };
        let last = if one_in(stream, 5) { first + stream.place(DAYS) } else { DAYS };
        let (mut halted, mut public) = (0_usize, 0_usize);
        let splits = one_in(stream, 2);
        let (from_vendor, sometimes_public) = (one_in(stream, 2), one_in(stream, 4));
        for day in first..last.min(DAYS) {
            if one_in(stream, 40) {
                halted = stream.place(12);
            }
            halted = halted.saturating_sub(1);
            let odds = if from_vendor { 60 } else { 15 };
            // The weekends of one month and a half are missing from everybody.
            if halted > 0 || one_in(stream, odds) || (day > 60 && day < 100 && day % 7 > 4) {
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
            let date = date(day);
            let is_public = sometimes_public && one_in(stream, 30);
            public = if is_public { stream.place(9) } else { public.saturating_sub(1) };
            let source = match from_vendor ^ one_in(stream, 60) {
                _ if public > 0 => "public",
                true => ["vendor", "files"][stream.place(2)],
                false => "web_broker",
            };
            let factor = if splits { factor(stream) } else { Some(1.0) };
            let values = [prices[0], prices[1], prices[2], prices[3], volume];
            rows.push((date, name.clone(), values, factor, source));
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

/// The largest lag.
fn reach(tree: &Tree) -> usize {
    match tree {
        Tree::Number(_) => 0,
        Tree::Value(_, lag) => *lag,
        Tree::Negative(inner) => reach(inner),
        Tree::Pair(_, left, right) => reach(left).max(reach(right)),
    }
}

struct Oracle {
    dates: Vec<String>,
    table: BTreeMap<(String, String), [Option<f64>; 5]>,
    /// Of each issue, the days of splits with their new and old shares, ascending; none of what is no factor.
    splits: BTreeMap<String, Vec<(usize, Option<Shares>)>>,
    /// Of each issue, the days on which nobody knows whether it was split.
    unknown: BTreeMap<String, BTreeSet<usize>>,
}

/// New and old shares.
type Shares = (f64, f64);

/// The fraction that a factor is nearest to, by trying all.
fn shares(factor: f64) -> Option<Shares> {
    if !(0.001..=1_000.0).contains(&factor) {
        return None;
    }
    let fractions = (1..=1_000).map(|new| {
        let new = f64::from(new);
        (new, (factor * new).round().clamp(1.0, 1_000.0))
    });
    let away = |(new, old): Shares| (factor - old / new).abs();
    fractions.reduce(|best, other| if away(other) < away(best) { other } else { best })
}

/// Day, source, and whether the row tells a factor.
type Teller<'a> = (usize, &'a str, bool);

/// Whether nobody knows what took effect after a row's day, up to that of the next row.
fn is_unknown(one: Teller<'_>, next: Teller<'_>, is_empty: impl Fn(usize) -> bool) -> bool {
    let has_every_day = |source: &str| source == "vendor" || source == "files";
    let is_missing = (one.0 + 1..next.0).any(|day| !is_empty(day));
    one.1 == "public"
        || next.1 == "public"
        || !next.2
        || (is_missing && (has_every_day(one.1) || has_every_day(next.1)))
}

impl Oracle {
    fn new(rows: &[Row], gaps: &[String]) -> Self {
        let seen: BTreeSet<&String> = rows.iter().map(|(date, ..)| date).collect();
        let dates: BTreeSet<&String> = seen.iter().copied().chain(gaps).collect();
        let dates: Vec<String> = dates.into_iter().cloned().collect();
        let keyed = rows.iter().map(|(date, code, row, ..)| ((date.clone(), code.clone()), *row));
        let mut splits: BTreeMap<String, Vec<(usize, Option<Shares>)>> = BTreeMap::new();
        let mut sources: BTreeMap<String, BTreeMap<usize, (&str, bool)>> = BTreeMap::new();
        for (date, code, _, factor, source) in rows {
            let day = dates.iter().position(|one| one == date).unwrap();
            sources.entry(code.clone()).or_default().insert(day, (source, factor.is_some()));
            if let Some(factor) = factor.filter(|factor| *factor != 1.0 && *source != "public") {
                let shares = shares(factor);
                if shares.is_none_or(|(new, old)| new != old) {
                    splits.entry(code.clone()).or_default().push((day, shares));
                }
            }
        }
        splits.values_mut().for_each(|splits| splits.sort_by_key(|(day, _)| *day));
        let is_empty = |day: usize| !seen.contains(&dates[day]);
        let empty: Vec<usize> = (0..dates.len()).filter(|day| is_empty(*day)).collect();
        let unknown = sources.into_iter().map(|(code, sources)| {
            let rows: Vec<Teller<'_>> =
                sources.into_iter().map(|(day, (source, tells))| (day, source, tells)).collect();
            let mut days: BTreeSet<usize> = empty.iter().copied().collect();
            // Of the first row only its own factor could tell.
            let first = rows.first().filter(|(_, source, tells)| !tells && *source != "public");
            days.extend(first.map(|(day, ..)| *day));
            for pair in rows.windows(2).filter(|pair| is_unknown(pair[0], pair[1], is_empty)) {
                days.extend(pair[0].0 + 1..=pair[1].0);
            }
            (code, days)
        });
        Self { table: keyed.collect(), unknown: unknown.collect(), dates, splits }
    }

    /// The splits of an issue after one day and up to another.
    fn between(&self, code: &str, after: Option<usize>, to: usize) -> Vec<Option<Shares>> {
        let all = self.splits.get(code).into_iter().flatten();
        let found = all.filter(|(day, _)| after.is_none_or(|after| *day > after) && *day <= to);
        found.map(|(_, shares)| *shares).collect()
    }

    /// Whether nobody knows of one of these days whether it has a split.
    fn is_unknown(&self, code: &str, first: usize, last: usize) -> bool {
        (first..=last).any(|day| self.unknown[code].contains(&day))
    }

    /// The value of an earlier day as it compares with one of `day`.
    fn adjusted(
        &self,
        value: f64,
        column: usize,
        place: (usize, usize),
        code: &str,
    ) -> Option<f64> {
        let (row_day, day) = place;
        if self.is_unknown(code, row_day + 1, day) {
            return None;
        }
        let (mut new, mut old) = (1.0, 1.0);
        for shares in self.between(code, Some(row_day), day) {
            let (of_new, of_old) = shares?;
            (new, old) = (new * of_new, old * of_old);
        }
        if new == old {
            return Some(value);
        }
        let scaled = match NAMES[column] {
            "Volume" => (value * new / old).round(),
            _ => (value * 10_000.0).round() * old / new / 10_000.0,
        };
        Some(scaled).filter(|scaled| scaled.is_finite() && *scaled != 0.0)
    }

    fn value(&self, tree: &Tree, day: usize, code: &str, adjusts: bool) -> Option<f64> {
        match tree {
            Tree::Number(digits) => Some(digits.parse().unwrap()),
            Tree::Value(column, lag) => {
                let date = &self.dates[day.checked_sub(*lag)?];
                let row = self.table.get(&(date.clone(), code.to_owned()))?;
                let value = row[*column].filter(|value| *value != 0.0)?;
                match adjusts {
                    true => self.adjusted(value, *column, (day - lag, day), code),
                    false => Some(value),
                }
            }
            Tree::Negative(inner) => Some(-self.value(inner, day, code, adjusts)?),
            Tree::Pair(operator, left, right) => {
                let left = self.value(left, day, code, adjusts)?;
                let right = self.value(right, day, code, adjusts)?;
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

    /// Date, rank, code, bits of the value, close, volume and mark of every row of the answer.
    fn answer(
        &self,
        tree: &Tree,
        from: &str,
        to: &str,
        order: RankOrder,
        limit: usize,
        adjusts: bool,
    ) -> Vec<Line> {
        let reach = reach(tree);
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
                    let value = self.value(tree, day, code, adjusts);
                    let value = value.filter(|value| value.is_finite());
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
                let after = day.checked_sub(reach);
                let spans = match reach {
                    0 => Some(false),
                    _ if !self.between(&code, after, day).is_empty() => Some(true),
                    _ if self.is_unknown(&code, after.map_or(0, |after| after + 1), day) => None,
                    _ => Some(false),
                };
                lines.push((
                    date.clone(),
                    rank,
                    code,
                    value.map(f64::to_bits),
                    close,
                    volume,
                    spans,
                ));
            }
        }
        lines
    }
}

type Line = (String, u32, String, Option<u64>, f64, Option<f64>, Option<bool>);

fn lines(ranking: &ranking::Ranking) -> Vec<Line> {
    let line = |row: &ranking::RankRow| {
        let date = ranking.days[row.day as usize].to_string();
        let code = ranking.codes[row.code as usize].to_string();
        let value = row.sort_value.map(f64::to_bits);
        (date, row.rank, code, value, row.close, row.volume, ranking.spans_split(row))
    };
    ranking.rows.iter().map(line).collect()
}

/// Lines with another value than the other answer has for that issue and day.
fn changes(found: &[Line], other: &[Line]) -> usize {
    let key = |line: &Line| (line.0.clone(), line.2.clone(), line.3);
    let other: BTreeSet<_> = other.iter().map(key).collect();
    found.iter().filter(|line| !other.contains(&key(line))).count()
}

fn engine_over(rows: &[Row], gaps: &[String]) -> (tempfile::TempDir, RankEngine) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    std::fs::create_dir_all(data.mother().parent().unwrap()).unwrap();
    let connection = Connection::open(data.mother()).unwrap();
    let table = "CREATE TABLE daily (date DATE, code VARCHAR, open DOUBLE, high DOUBLE, low DOUBLE,
                 close DOUBLE, volume DOUBLE, adjustment_factor DOUBLE, source VARCHAR)";
    connection.execute_batch(table).unwrap();
    let mut appender = connection.appender("daily").unwrap();
    for (date, code, [open, high, low, close, volume], factor, source) in rows {
        let row = params![date, code, open, high, low, close, volume, factor, source];
        appender.append_row(row).unwrap();
    }
    drop(appender);
    for gap in gaps {
        let open = "CREATE TABLE IF NOT EXISTS calendar (date DATE, is_open BOOLEAN)";
        connection.execute_batch(open).unwrap();
        connection.execute("INSERT INTO calendar VALUES (?, true)", [gap]).unwrap();
    }
    connection.close().map_err(|(_, error)| error).unwrap();
    publish_generation_of(&data, &publish(&data).unwrap()).unwrap();
    let options = EngineOptions { threads: 2, follow: false, ..EngineOptions::default() };
    let engine = RankEngine::open(folder.path(), options).unwrap();
    (folder, engine)
}

#[test]
fn five_hundred_random_formulas_agree_bit_for_bit() {
    let (mut rows_seen, mut values_seen, mut ties_seen) = (0, 0, 0);
    let (mut spans_seen, mut changes_seen, mut scaled_seen, mut unknown_seen) = (0, 0, 0, 0);
    for seed in 0..DATA_SETS {
        let stream = &mut Random::of_seed(seed);
        let rows = rows(stream);
        let gaps = gaps(seed);
        let oracle = Oracle::new(&rows, &gaps);
        let (_folder, engine) = engine_over(&rows, &gaps);
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
            let adjusted = one_in(stream, 2);
            let query = RankQuery {
                from: from.parse().unwrap(),
                to: to.parse().unwrap(),
                sort_by: formula.into(),
                order,
                limit,
                codes: None,
                adjusted,
            };
            let about = format!(
                "data {seed}, formula {number}: {text} {order} {limit}, {from} to {to}, adjusted \
                 {adjusted}"
            );
            let answer = |adjusts| oracle.answer(&tree, from, to, order, limit as usize, adjusts);
            let expected = answer(adjusted);
            let found = lines(&engine.rank(&query, &CancelToken::new()).unwrap());
            assert_eq!(found, expected, "kernel, {about}");
            if number % 5 == 0 {
                let found = lines(&engine.rank_by_sql(&query, &CancelToken::new()).unwrap());
                assert_eq!(found, expected, "statement, {about}");
            }
            rows_seen += expected.len();
            values_seen += expected.iter().filter(|line| line.3.is_some()).count();
            let is_tie = |pair: &&[Line]| pair[0].0 == pair[1].0 && pair[0].3 == pair[1].3;
            spans_seen += expected.iter().filter(|line| line.6 == Some(true)).count();
            unknown_seen += expected.iter().filter(|line| line.6.is_none()).count();
            if adjusted {
                let changed = changes(&expected, &answer(false));
                changes_seen += changed;
                let is_scaled = |line: &&Line| line.6 == Some(true) && line.3.is_some();
                scaled_seen += expected.iter().filter(is_scaled).count().min(changed);
            }
            ties_seen += expected.windows(2).filter(is_tie).count();
        }
    }
    // The comparison means something only where there was something to compare.
    assert!(rows_seen > 100_000, "{rows_seen} rows");
    assert!(values_seen > 50_000, "{values_seen} values");
    assert!(ties_seen > 10_000, "{ties_seen} ties");
    assert!(spans_seen > 20_000, "{spans_seen} rows with a split in their lags");
    assert!(changes_seen > 5_000, "{changes_seen} rows are others where they are adjusted");
    assert!(scaled_seen > 500, "{scaled_seen} of them have a value across a split");
    assert!(unknown_seen > 20_000, "{unknown_seen} rows of which nobody knows of splits");
}

/// Days that come later change no answer, also where they bring splits.
#[test]
fn no_adjusted_answer_knows_what_comes_later() {
    let mut spans_seen = 0;
    for seed in 10..12 {
        let stream = &mut Random::of_seed(seed);
        let all = rows(stream);
        let dates = Oracle::new(&all, &[]).dates;
        let last = &dates[dates.len() / 2];
        let known: Vec<Row> = all.iter().filter(|row| row.0 <= *last).cloned().collect();
        let (later, now) = (engine_over(&all, &[]), engine_over(&known, &[]));
        for number in 0..20 {
            let tree = Tree::Pair(
                '/',
                Box::new(Tree::Value(stream.place(5), 0)),
                Box::new(Tree::Value(stream.place(5), 1 + stream.place(60))),
            );
            let query = RankQuery {
                from: dates[0].parse().unwrap(),
                to: last.parse().unwrap(),
                sort_by: Formula::parse(&text(&tree)).unwrap().into(),
                order: RankOrder::Desc,
                limit: 500,
                codes: None,
                adjusted: true,
            };
            let answer =
                |engine: &RankEngine| lines(&engine.rank(&query, &CancelToken::new()).unwrap());
            let found = answer(&later.1);
            assert_eq!(found, answer(&now.1), "data {seed}, formula {number}: {}", text(&tree));
            spans_seen += found.iter().filter(|line| line.6 == Some(true)).count();
        }
    }
    assert!(spans_seen > 5_000, "{spans_seen} rows with a split in their lags");
}
