//! The points of a sweep: sets of parameters that somebody has chosen, one run for each row of a file.
//!
//! A file that begins with `{` holds JSON lines, an object for each point; every other one is CSV with
//! the names of the parameters in its first line. Both forms of the same points are the same sweep.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use domain::limits::{SWEEP_AXES_MAX, SWEEP_POINTS_BYTES_MAX, SWEEP_RUNS_MAX};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3Default;

use crate::grid::{Axis, param_value};

/// Why a file of points cannot be used.
#[derive(Debug, Error)]
pub enum PointsError {
    /// The disk says no.
    #[error("cannot read {path}: {source}; give a file of points, one on each line")]
    Read {
        /// The file.
        path: PathBuf,
        /// The failure of the disk.
        source: io::Error,
    },
    /// More than may be.
    #[error("{path} has more than {SWEEP_POINTS_BYTES_MAX} bytes; divide it into several sweeps")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Something in it makes no sense.
    #[error("{path}, line {line}: {problem}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Nothing in it.
    #[error(
        "{path} has no points; write CSV with the parameters' names in the first line, or JSON \
         lines like {{\"fast\": 5, \"slow\": 50}}"
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Points, each with a value for every parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Points {
    axes: Vec<Axis>,
    /// For each point, and for each parameter in it, the index of its value.
    places: Vec<u32>,
    digest: String,
}

impl Points {
    /// Reads a file.
    ///
    /// # Errors
    /// [`PointsError`], with the line where there is one.
    pub fn read(path: &Path) -> Result<Self, PointsError> {
        let failed = |source| PointsError::Read { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(SWEEP_POINTS_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > SWEEP_POINTS_BYTES_MAX {
            return Err(PointsError::TooLarge { path: path.to_owned() });
        }
        Self::parse(&bytes).map_err(|problem| match problem {
            Some((line, problem)) => PointsError::Line { path: path.to_owned(), line, problem },
            None => PointsError::Empty { path: path.to_owned() },
        })
    }

    /// The points of a text; else the line and what is wrong with it, or nothing where it is empty.
    fn parse(bytes: &[u8]) -> Result<Self, Option<Wrong>> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut table = Table::default();
        match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => return Err(None),
            Some(b'{') => json_lines(bytes, &mut table)?,
            Some(_) => csv_lines(bytes, &mut table)?,
        }
        if table.lines.is_empty() { Err(None) } else { Ok(table.points()) }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        // A limit keeps it far below.
        (self.places.len() / self.axes.len().max(1)) as u64
    }

    /// The parameters and the values that they take.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// xxh3-128 of names and values in their order, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The indexes of a point's values, from 0.
    pub(crate) fn indexes(&self, point: u64) -> Vec<usize> {
        let width = self.axes.len();
        // A point that there is has an index in memory.
        let start = point as usize * width;
        self.places[start..start + width].iter().map(|place| *place as usize).collect()
    }
}

/// A line and what is wrong with it.
type Wrong = (u64, String);

/// What was read so far.
#[derive(Default)]
struct Table {
    names: Vec<String>,
    /// Of each parameter, its values and where they were first seen.
    values: Vec<(Vec<String>, BTreeMap<String, u32>)>,
    places: Vec<u32>,
    /// The line of each point.
    lines: Vec<u64>,
    seen: BTreeMap<Vec<u32>, u64>,
}

impl Table {
    fn name(&mut self, line: u64, names: Vec<String>) -> Result<(), Wrong> {
        if names.len() > SWEEP_AXES_MAX {
            let problem =
                format!("{} parameters, the limit is {SWEEP_AXES_MAX}; give fewer", names.len());
            return Err((line, problem));
        }
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err((line, format!("column {} has no name", index + 1)));
            }
            if names[..index].contains(name) {
                return Err((line, format!("the parameter `{name}` is there twice")));
            }
        }
        self.values = names.iter().map(|_| Default::default()).collect();
        self.names = names;
        Ok(())
    }

    fn add(&mut self, line: u64, values: Vec<String>) -> Result<(), Wrong> {
        if self.lines.len() as u64 == SWEEP_RUNS_MAX {
            return Err((line, format!("more than {SWEEP_RUNS_MAX} points; take fewer")));
        }
        let mut places = Vec::with_capacity(values.len());
        for (value, (all, known)) in values.into_iter().zip(&mut self.values) {
            // Not more values than points, whose number fits.
            let next = all.len() as u32;
            places.push(*known.entry(value).or_insert_with_key(|value| {
                all.push(value.clone());
                next
            }));
        }
        if let Some(first) = self.seen.insert(places.clone(), line) {
            return Err((
                line,
                format!("the same point as in line {first}; leave one of them out"),
            ));
        }
        self.places.extend(places);
        self.lines.push(line);
        Ok(())
    }

    /// Numbers in rising order, other values in that of the file; so the maps of the page are.
    fn points(mut self) -> Points {
        let mut hash = Xxh3Default::new();
        let width = self.names.len();
        let mut told = |texts: &[&str]| {
            hash.update(serde_json::json!(texts).to_string().as_bytes());
            hash.update(b"\n");
        };
        told(&self.names.iter().map(String::as_str).collect::<Vec<_>>());
        for point in self.places.chunks_exact(width) {
            let texts = point.iter().zip(&self.values);
            told(&texts.map(|(place, (all, _))| all[*place as usize].as_str()).collect::<Vec<_>>());
        }
        let digest = format!("{:032x}", hash.digest128());
        let mut axes = Vec::with_capacity(width);
        for (column, (name, (all, _))) in self.names.into_iter().zip(self.values).enumerate() {
            let numbers: Option<Vec<f64>> =
                all.iter().map(|value| param_value(value).as_f64()).collect();
            let mut order: Vec<usize> = (0..all.len()).collect();
            if let Some(numbers) = numbers {
                order.sort_by(|left, right| numbers[*left].total_cmp(&numbers[*right]));
            }
            let mut now = vec![0; all.len()];
            for (new, old) in order.iter().enumerate() {
                now[*old] = new as u32;
            }
            for place in self.places.iter_mut().skip(column).step_by(width) {
                *place = now[*place as usize];
            }
            axes.push(Axis { name, values: order.iter().map(|old| all[*old].clone()).collect() });
        }
        Points { axes, places: self.places, digest }
    }
}

fn csv_lines(bytes: &[u8], table: &mut Table) -> Result<(), Wrong> {
    let line_of = |position: Option<&csv::Position>| position.map_or(1, csv::Position::line);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(bytes);
    for record in reader.records() {
        let record = record.map_err(|error| match error.kind() {
            csv::ErrorKind::Utf8 { pos, .. } => {
                (line_of(pos.as_ref()), "it is not UTF-8 text".to_owned())
            }
            _ => (line_of(error.position()), error.to_string()),
        })?;
        let line = line_of(record.position());
        if table.names.is_empty() {
            table.name(line, record.iter().map(str::to_owned).collect())?;
            continue;
        }
        let (wanted, found) = (table.names.len(), record.len());
        if found != wanted {
            return Err((
                line,
                format!("{found} values, the first line names {wanted} parameters"),
            ));
        }
        let values = record.iter().zip(&table.names).map(|(text, name)| match text {
            "" => Err((
                line,
                format!("`{name}` is empty; each point needs a value for each parameter"),
            )),
            text => Ok(canonical(text)),
        });
        let values = values.collect::<Result<_, _>>()?;
        table.add(line, values)?;
    }
    Ok(())
}

/// A line: the values by their names, and a name that comes twice.
#[derive(Debug, Default)]
struct Point {
    values: Map<String, Value>,
    twice: Option<String>,
}

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PointVisitor)
    }
}

struct PointVisitor;

impl<'de> Visitor<'de> for PointVisitor {
    type Value = Point;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object of parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Point, A::Error> {
        let mut point = Point::default();
        while let Some((name, value)) = from.next_entry::<String, Value>()? {
            if point.values.insert(name.clone(), value).is_some() {
                point.twice = Some(name);
            }
        }
        Ok(point)
    }
}

fn json_lines(bytes: &[u8], table: &mut Table) -> Result<(), Wrong> {
    for (index, text) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = index as u64 + 1;
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let point: Point = serde_json::from_slice(text)
            .map_err(|error| (line, format!("it is no JSON object in one line: {error}")))?;
        if let Some(name) = point.twice {
            return Err((line, format!("the parameter `{name}` is there twice")));
        }
        let point = point.values;
        if table.names.is_empty() {
            if point.is_empty() {
                return Err((line, "it has no parameters".to_owned()));
            }
            table.name(line, point.keys().cloned().collect())?;
        }
        if let Some(name) = point.keys().find(|name| !table.names.contains(*name)) {
            return Err((
                line,
                format!("`{name}` is not in the first point; all points have the same parameters"),
            ));
        }
        let values = table.names.iter().map(|name| {
            let value = point.get(name).ok_or_else(|| {
                (
                    line,
                    format!("`{name}` is missing; all points have the parameters of the first one"),
                )
            })?;
            json_text(value).map_err(|problem| (line, format!("`{name}` {problem}")))
        });
        let values = values.collect::<Result<_, _>>()?;
        table.add(line, values)?;
    }
    Ok(())
}

/// The text that means this value, or why there is none.
fn json_text(value: &Value) -> Result<String, String> {
    match value {
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::String(text) if text.is_empty() => Err("is empty".to_owned()),
        Value::String(text) => match param_value(text) {
            Value::String(text) => Ok(text),
            _ => Err(format!(
                "is the text {value}, which reads as a number or a truth value; write it without quotes"
            )),
        },
        _ => Err("is no number, truth value or text".to_owned()),
    }
}

/// A value as it is written in both forms.
fn canonical(text: &str) -> String {
    match param_value(text) {
        Value::String(text) => text,
        value => value.to_string(),
    }
}

/// For messages and the page: the points of a plan, without their values.
pub(crate) fn described(points: &Points) -> Value {
    let all = BTreeMap::from([
        ("points", Value::from(points.count())),
        ("xxh3_128", Value::from(points.digest.clone())),
    ]);
    serde_json::json!(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Points {
        Points::parse(text.as_bytes()).unwrap()
    }

    fn wrong(text: &str) -> String {
        match Points::parse(text.as_bytes()).unwrap_err() {
            Some((line, problem)) => format!("line {line}: {problem}"),
            None => "empty".to_owned(),
        }
    }

    fn values(points: &Points, point: u64) -> Vec<&str> {
        let axes = points.axes().iter().zip(points.indexes(point));
        axes.map(|(axis, index)| axis.values[index].as_str()).collect()
    }

    #[test]
    fn both_forms_are_the_same_points() {
        let csv = points("\u{feff}fast, slow,mode\n10,50,a\n5,1.50,\"b,c\"\r\n\n9,50,a\n");
        let json = points(
            "{\"fast\":10,\"slow\":50,\"mode\":\"a\"}\n\n  {\"mode\":\"b,c\",\"fast\":5,\"slow\":1.5}\n\
             {\"fast\":9,\"slow\":50,\"mode\":\"a\"}",
        );
        assert_eq!(csv, json);
        assert_eq!(csv.count(), 3);
        assert_eq!(csv.axes()[0].values, ["5", "9", "10"], "numbers rise");
        assert_eq!(csv.axes()[2].values, ["a", "b,c"], "texts stay in order");
        assert_eq!(values(&csv, 0), ["10", "50", "a"]);
        assert_eq!(values(&csv, 1), ["5", "1.5", "b,c"]);
        assert_eq!(values(&csv, 2), ["9", "50", "a"]);
        let other = points("fast,slow,mode\n5,1.5,\"b,c\"\n10,50,a\n9,50,a\n");
        assert_ne!(csv.digest(), other.digest(), "their order counts");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, wanted) in [
            ("", "empty"),
            ("fast,slow\n", "empty"),
            ("fast,,slow\n1,2,3", "line 1: column 2 has no name"),
            ("fast,fast\n1,2", "line 1: the parameter `fast` is there twice"),
            ("fast,slow\n1,2\n1", "line 3: 1 values, the first line names 2 parameters"),
            ("fast,slow\n1,\n", "line 2: `slow` is empty"),
            ("fast\n1\n2\n1.0\n1", "line 5: the same point as in line 2"),
            ("{\"a\":1}\n{\"a\":1}", "line 2: the same point as in line 1"),
            ("{}", "line 1: it has no parameters"),
            ("{\"a\":1,\"a\":2}", "line 1: the parameter `a` is there twice"),
            ("{\"a\":1}\n{\"b\":1}", "line 2: `b` is not in the first point"),
            ("{\"a\":1,\"b\":2}\n{\"a\":1}", "line 2: `b` is missing"),
            ("{\"a\":[1]}", "line 1: `a` is no number, truth value or text"),
            ("{\"a\":\"5\"}", "line 1: `a` is the text \"5\", which reads as a number"),
            ("{\"a\":1}\n[1]", "line 2: it is no JSON object in one line"),
        ] {
            let found = wrong(text);
            assert!(found.starts_with(wanted), "{text}: {found}");
        }
        let many: Vec<String> = (0..=SWEEP_AXES_MAX).map(|name| format!("p{name}")).collect();
        assert_eq!(wrong(&many.join(",")), "line 1: 17 parameters, the limit is 16; give fewer");
        let bytes = Points::parse(b"a\n1\n\xff\n").unwrap_err().unwrap();
        assert_eq!(bytes, (3, "it is not UTF-8 text".to_owned()));
    }

    #[test]
    fn there_is_a_limit_of_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(SWEEP_POINTS_BYTES_MAX + 1).unwrap();
        let error = Points::read(file.path()).unwrap_err().to_string();
        assert!(error.contains("has more than 268435456 bytes; divide it"), "{error}");
    }

    #[test]
    fn there_is_a_limit_of_points() {
        let rows = 0..=SWEEP_RUNS_MAX;
        let text: String =
            std::iter::once("a\n".to_owned()).chain(rows.map(|row| format!("{row}\n"))).collect();
        let found = wrong(&text);
        assert_eq!(found, "line 1000002: more than 1000000 points; take fewer");
    }
}
