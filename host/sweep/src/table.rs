//! The table of a sweep: one row for each run, as CSV and as Parquet, from one list of columns
//! that holds for each its name, its kind, its meaning and its cell in a row.

use std::io::Write;

use domain::csv_cell::guarded;
use domain::{JstDate, Money};
use marketdata::parquet::{Field, Kind, ParquetError, TableWriter, Values};
use serde_json::{Value, json};

use crate::finished::{Finished, Results};
use crate::grid::param_value;
use crate::luck::{self, Trials};
use crate::plan::{Phase, Plan, PlannedRun};
use crate::score::Score;
use crate::verify::Verdict;

/// Rows of one row group of the Parquet file.
const GROUP_ROWS: usize = 65_536;

/// A column of the table.
pub struct Column {
    /// Name, kind, and whether it may be empty.
    pub field: Field,
    /// What it holds, with its unit.
    pub meaning: String,
    /// Its cell in a row.
    cell: Box<dyn Fn(&Row<'_>) -> Cell>,
}

impl Column {
    /// Its name, kind and meaning, for the manifest and the schemas.
    #[must_use]
    pub fn described(&self) -> Value {
        json!({
            "name": self.field.name,
            "kind": self.field.kind.to_string(),
            "optional": self.field.optional,
            "meaning": self.meaning,
        })
    }
}

/// A finished run with what its plan says of it.
struct Row<'a> {
    plan: &'a Plan,
    planned: PlannedRun,
    /// The values of the swept parameters, in the order of the axes; none where no combination ran.
    values: Vec<&'a str>,
    run: &'a Finished,
    /// What it was chosen from.
    trials: Trials,
    verdict: Option<Verdict>,
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    None,
    Int(i64),
    Yen(Money),
    Ratio(f64),
    Text(String),
    Bool(bool),
    Date(JstDate),
}

macro_rules! cells_from {
    ($($value:ty, $cell:expr;)+) => {
        $(impl From<$value> for Cell {
            fn from(value: $value) -> Self {
                $cell(value)
            }
        })+
    };
}

cells_from! {
    u64, |count: u64| Self::Int(count.cast_signed());
    usize, |index| Self::Int(index as i64);
    Money, Self::Yen;
    f64, Self::Ratio;
    String, Self::Text;
    &str, |text: &str| Self::Text(text.to_owned());
    JstDate, Self::Date;
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl Row<'_> {
    fn day(&self, index: usize) -> Cell {
        self.plan.days().get(index).copied().into()
    }

    /// A number of the run, which a failed run does not have.
    fn number<C: Into<Cell>>(&self, of: impl Fn(&Score) -> C) -> Cell {
        self.run.score.as_ref().map(of).into()
    }

    /// Of the runs that were chosen from: a test run was not one of them.
    fn deflated_sharpe(&self) -> Option<f64> {
        let is_trial = self.planned.phase != Phase::Test;
        let is_trial = is_trial && self.verdict != Some(Verdict::SawTheFuture);
        self.run
            .score
            .as_ref()
            .filter(|_| is_trial)
            .and_then(|run| self.trials.deflated_sharpe(run))
    }
}

/// Columns, each with its name, kind, meaning and cell in a row.
macro_rules! columns {
    (|$row:ident| $($need:ident $name:literal: $kind:ident, $meaning:literal, $cell:expr;)+) => {
        vec![$(Column {
            field: Field::$need($name, Kind::$kind),
            meaning: $meaning.to_owned(),
            cell: Box::new(|$row: &Row<'_>| $cell.into()),
        }),+]
    };
}

/// The columns before the parameters.
#[must_use]
pub fn head_columns() -> Vec<Column> {
    columns! { |row|
        required "run": Int, "number of the run, from 0, in grid order", row.run.row;
        required "phase": Text, "whole; with walk-forward train, or test for out of sample",
            row.planned.phase.as_str();
        optional "fold": Int, "number of the walk-forward fold, from 0", row.planned.fold;
        required "start": Date, "first trading day of the run, JST",
            row.day(row.planned.days.start);
        required "end": Date, "last trading day of the run, JST",
            row.day(row.planned.days.end.saturating_sub(1));
    }
}

/// The columns after the parameters.
#[must_use]
pub fn tail_columns() -> Vec<Column> {
    columns! { |row|
        required "status": Text, "completed or failed",
            if row.run.score.is_some() { "completed" } else { "failed" };
        optional "error": Text, "why the run failed", row.run.error.clone();
        optional "trades_seen": Int, "trades that the strategy has seen",
            row.number(|score| score.trades_seen);
        optional "orders": Int, "orders sent", row.number(|score| score.orders);
        optional "orders_rejected": Int, "orders rejected",
            row.number(|score| score.orders_rejected);
        optional "fills": Int, "fills", row.number(|score| score.fills);
        optional "round_trips": Int, "times the position went from held to flat",
            row.number(|score| score.round_trips);
        optional "win_rate": Double, "round trips with a profit, per round trip",
            row.number(|score| score.win_rate);
        optional "equity_end": Yen, "money and value of shares at the end, yen",
            row.number(|score| score.equity_end);
        optional "return": Double, "profit per cash at the start",
            row.number(|score| score.return_ratio);
        optional "max_drawdown_yen": Yen, "largest drop of the equity, at the end of minutes, yen",
            row.number(|score| score.max_drawdown);
        optional "max_drawdown": Double, "the same, per highest point so far",
            row.number(|score| score.max_drawdown_ratio);
        optional "sharpe": Double, "mean per deviation of the daily returns, times the root of 252",
            row.number(|score| score.sharpe);
        optional "skewness": Double, "skewness of the daily returns",
            row.number(|score| score.skewness);
        optional "kurtosis": Double, "kurtosis of the daily returns, 3 for a normal distribution",
            row.number(|score| score.kurtosis);
        optional "deflated_sharpe": Double, "probability that the Sharpe ratio is above that of luck",
            row.deflated_sharpe();
        optional "turnover": Yen, "value of everything bought and sold, yen",
            row.number(|score| score.turnover);
        optional "commission": Yen, "fees, yen", row.number(|score| score.commission);
        optional "digest": Text, "xxh3-128 of the event log",
            row.number(|score| score.digest.clone());
        optional "verified": Text,
            "yes: with window 1 the same happened; saw the future: it did not; empty: not checked",
            row.verdict.map(Verdict::as_str);
        optional "warnings": Int, "number of warnings of the run",
            row.number(|score| score.warnings);
        optional "warning": Text, "the first of them",
            row.run.score.as_ref().and_then(|score| score.warning.clone());
    }
}

/// The columns of a plan's table.
#[must_use]
pub fn columns(plan: &Plan) -> Vec<Column> {
    let swept = plan.grid().axes().iter().enumerate().map(|(index, axis)| {
        let kind = kind_of(axis.values.iter().map(|value| param_value(value)));
        Column {
            field: Field::optional(format!("param_{}", axis.name), kind),
            meaning: format!("the parameter `{}`, swept", axis.name),
            cell: Box::new(move |row| match (row.values.get(index), kind) {
                // A text that looks like a number stays as it was written in a column of texts.
                (Some(value), Kind::Text) => Cell::from(*value),
                (value, kind) => value.map(|value| parameter(&param_value(value), kind)).into(),
            }),
        }
    });
    let fixed = plan.grid().fixed().iter().map(|(name, value)| {
        let kind = kind_of(std::iter::once(value.clone()));
        let cell = parameter(value, kind);
        Column {
            field: Field::optional(format!("param_{name}"), kind),
            meaning: format!("the parameter `{name}`, the same in every run"),
            cell: Box::new(move |_| cell.clone()),
        }
    });
    head_columns().into_iter().chain(swept).chain(fixed).chain(tail_columns()).collect()
}

/// The kind of column that holds all of these parameters' values exactly.
fn kind_of(values: impl Iterator<Item = Value>) -> Kind {
    let values: Vec<Value> = values.collect();
    let all = |test: fn(&Value) -> bool| values.iter().all(test);
    if all(Value::is_i64) {
        Kind::Int
    } else if all(Value::is_number) {
        Kind::Double
    } else if all(Value::is_boolean) {
        Kind::Bool
    } else {
        Kind::Text
    }
}

fn parameter(value: &Value, kind: Kind) -> Cell {
    let known = match kind {
        Kind::Int => value.as_i64().map(Cell::Int),
        Kind::Double => value.as_f64().map(Cell::Ratio),
        Kind::Bool => value.as_bool().map(Cell::Bool),
        _ => None,
    };
    known.unwrap_or_else(|| match value {
        Value::String(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    })
}

/// What the rows of a table share.
struct Sheet<'a> {
    plan: &'a Plan,
    results: &'a Results,
    columns: Vec<Column>,
    trials: Trials,
}

impl<'a> Sheet<'a> {
    fn new(plan: &'a Plan, results: &'a Results) -> Self {
        Self { plan, results, columns: columns(plan), trials: luck::trials(plan, results) }
    }

    /// The cells of a finished run, in the order of the columns.
    fn cells(&self, run: &Finished) -> Vec<Cell> {
        let values = run.combination.map(|combination| self.plan.grid().values(combination));
        let row = Row {
            plan: self.plan,
            planned: self.plan.run(run.row),
            values: values.unwrap_or_default(),
            run,
            trials: self.trials,
            verdict: self.results.verdict(run.row),
        };
        self.columns.iter().map(|column| (column.cell)(&row)).collect()
    }
}

/// Writes the runs that are done as CSV: a header line, one line for each run, empty for no value.
///
/// # Errors
/// When the sink fails.
pub fn write_csv(plan: &Plan, results: &Results, sink: impl Write) -> std::io::Result<()> {
    let sheet = Sheet::new(plan, results);
    let mut writer = csv::WriterBuilder::new().from_writer(sink);
    writer.write_record(sheet.columns.iter().map(|column| &column.field.name))?;
    for run in results.rows.iter().flatten() {
        writer.write_record(sheet.cells(run).into_iter().map(text))?;
    }
    writer.flush()
}

fn text(cell: Cell) -> String {
    match cell {
        Cell::None => String::new(),
        Cell::Int(number) => number.to_string(),
        Cell::Yen(money) => money.to_string(),
        Cell::Ratio(ratio) => ratio.to_string(),
        Cell::Text(text) => guarded(&text).into_owned(),
        Cell::Bool(truth) => truth.to_string(),
        Cell::Date(date) => date.to_string(),
    }
}

/// Writes the runs that are done as Parquet.
///
/// # Errors
/// When the sink fails.
pub fn write_parquet<W: Write + Send>(
    plan: &Plan,
    results: &Results,
    sink: W,
) -> Result<W, ParquetError> {
    let sheet = Sheet::new(plan, results);
    let fields: Vec<Field> = sheet.columns.iter().map(|column| column.field.clone()).collect();
    let mut writer = TableWriter::new(sink, &fields)?;
    let runs: Vec<&Finished> = results.rows.iter().flatten().map(Box::as_ref).collect();
    for group in runs.chunks(GROUP_ROWS) {
        let mut values: Vec<Values> =
            fields.iter().map(|field| Values::empty(field.kind)).collect();
        for run in group {
            for (values, cell) in values.iter_mut().zip(sheet.cells(run)) {
                push(values, cell);
            }
        }
        writer.write(&values)?;
    }
    writer.finish()
}

fn push(values: &mut Values, cell: Cell) {
    match values {
        Values::Int(values) => values.push(match cell {
            Cell::Int(number) => Some(number),
            Cell::Yen(money) => Some(money.units()),
            Cell::Date(date) => Some(i64::from(date.to_epoch_days())),
            _ => None,
        }),
        Values::Double(values) => values.push(match cell {
            Cell::Ratio(ratio) => Some(ratio),
            _ => None,
        }),
        Values::Text(values) => values.push(match cell {
            Cell::Text(text) => Some(text.into()),
            _ => None,
        }),
        Values::Bool(values) => values.push(match cell {
            Cell::Bool(truth) => Some(truth),
            _ => None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::plan::Choice;
    use crate::score::scored;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn plan() -> Plan {
        let axes = ["fast=5,10", "at=0.5,1", "mode=1,b", "on=true,false"];
        let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
        let fixed = BTreeMap::from([("name".to_owned(), json!("a,\"b\""))]);
        let days = JstDate::from_ymd_opt(2025, 1, 6).unwrap().iter_days().take(3).collect();
        Plan::new(Grid::new(axes, fixed).unwrap(), Choice::All, None, days).unwrap()
    }

    fn results() -> Results {
        let mut rows = vec![None; 16];
        let score = Some(scored(Some(1.5), 0.25));
        rows[0] = Some(Box::new(Finished { row: 0, combination: Some(0), score, error: None }));
        let error = Some("line 1\nline 2".to_owned());
        rows[15] = Some(Box::new(Finished { row: 15, combination: Some(15), score: None, error }));
        Results { rows, ..Results::default() }
    }

    #[test]
    fn csv_has_every_parameter_and_number() {
        let mut out = Vec::new();
        write_csv(&plan(), &results(), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "run,phase,fold,start,end,param_fast,param_at,param_mode,param_on,param_name,status,\
             error,trades_seen,orders,orders_rejected,fills,round_trips,win_rate,equity_end,return,\
             max_drawdown_yen,max_drawdown,sharpe,skewness,kurtosis,deflated_sharpe,turnover,\
             commission,digest,verified,warnings,warning\n\
             0,whole,,2025-01-06,2025-01-08,5,0.5,1,true,\"a,\"\"b\"\"\",completed,,10,4,1,3,1,1,\
             10100000,0.01,1.2345,0.25,1.5,0.5,3,0.554320258295,1000000,0,0123,,0,\n\
             15,whole,,2025-01-06,2025-01-08,10,1,b,false,\"a,\"\"b\"\"\",failed,\
             \"line 1\nline 2\",,,,,,,,,,,,,,,,,,,,\n"
        );
    }

    #[test]
    fn parquet_has_the_same_with_kinds() {
        let bytes = write_parquet(&plan(), &results(), Vec::new()).unwrap();
        assert_eq!(bytes, write_parquet(&plan(), &results(), Vec::new()).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep.parquet");
        std::fs::write(&path, bytes).unwrap();
        let table = marketdata::parquet::read_table(path).unwrap();
        let fields: Vec<Field> = columns(&plan()).into_iter().map(|column| column.field).collect();
        assert_eq!(table.fields, fields);
        let column = |name: &str| table.column(name).unwrap().clone();
        assert_eq!(column("run"), Values::Int(vec![Some(0), Some(15)]));
        assert_eq!(column("param_fast"), Values::Int(vec![Some(5), Some(10)]));
        assert_eq!(column("param_at"), Values::Double(vec![Some(0.5), Some(1.0)]));
        assert_eq!(column("param_mode"), Values::Text(vec![Some("1".into()), Some("b".into())]));
        assert_eq!(column("param_on"), Values::Bool(vec![Some(true), Some(false)]));
        assert_eq!(column("max_drawdown_yen"), Values::Int(vec![Some(12_345), None]));
        assert_eq!(column("start"), Values::Int(vec![Some(20_094), Some(20_094)]));
    }
}
