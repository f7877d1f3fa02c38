//! The table of a sweep: one row for each run, as CSV and as Parquet, from one list of columns.

use std::io::Write;

use domain::{JstDate, Money};
use marketdata::parquet::{Field, Kind, ParquetError, TableWriter, Values};
use serde_json::Value;

use crate::execute::Results;
use crate::grid::param_value;
use crate::journal::Finished;
use crate::plan::Plan;
use crate::score::Score;

/// Rows of one row group of the Parquet file.
const GROUP_ROWS: usize = 65_536;

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name, kind, and whether it may be empty.
    pub field: Field,
    /// What it holds, with its unit.
    pub meaning: String,
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

const NUMBERS: [(&str, Kind, &str); 14] = [
    ("trades_seen", Kind::Int, "trades that the strategy has seen"),
    ("orders", Kind::Int, "orders sent"),
    ("orders_rejected", Kind::Int, "orders refused"),
    ("fills", Kind::Int, "fills"),
    ("round_trips", Kind::Int, "times the position went from held to flat"),
    ("win_rate", Kind::Double, "round trips with a profit, per round trip"),
    ("equity_end", Kind::Yen, "money and value of shares at the end, yen"),
    ("return", Kind::Double, "profit per cash at the start"),
    ("max_drawdown_yen", Kind::Yen, "largest fall of the equity, at the end of minutes, yen"),
    ("max_drawdown", Kind::Double, "the same, per highest point so far"),
    ("sharpe", Kind::Double, "mean per deviation of the daily returns, times the root of 252"),
    ("turnover", Kind::Yen, "value of everything bought and sold, yen"),
    ("commission", Kind::Yen, "fees, yen"),
    ("digest", Kind::Text, "xxh3-128 of the event log"),
];

fn numbers(score: &Score) -> [Cell; 14] {
    let count = |count: u64| Cell::Int(count.cast_signed());
    let ratio = |ratio: Option<f64>| ratio.map_or(Cell::None, Cell::Ratio);
    [
        count(score.trades_seen),
        count(score.orders),
        count(score.orders_rejected),
        count(score.fills),
        count(score.round_trips),
        ratio(score.win_rate),
        Cell::Yen(score.equity_end),
        ratio(score.return_ratio),
        Cell::Yen(score.max_drawdown),
        ratio(score.max_drawdown_ratio),
        ratio(score.sharpe),
        Cell::Yen(score.turnover),
        Cell::Yen(score.commission),
        Cell::Text(score.digest.clone()),
    ]
}

/// The columns before the parameters.
#[must_use]
pub fn head_columns() -> Vec<Column> {
    let column = |field: Field, meaning: &str| Column { field, meaning: meaning.to_owned() };
    vec![
        column(Field::required("run", Kind::Int), "number of the run, from 0, in grid order"),
        column(
            Field::required("phase", Kind::Text),
            "whole; with walk-forward train, or test for out of sample",
        ),
        column(Field::optional("fold", Kind::Int), "number of the walk-forward fold, from 0"),
        column(Field::required("start", Kind::Date), "first trading day of the run, JST"),
        column(Field::required("end", Kind::Date), "last trading day of the run, JST"),
    ]
}

/// The columns after the parameters.
#[must_use]
pub fn tail_columns() -> Vec<Column> {
    let column = |field: Field, meaning: &str| Column { field, meaning: meaning.to_owned() };
    let mut all = vec![
        column(Field::required("status", Kind::Text), "completed or failed"),
        column(Field::optional("error", Kind::Text), "why the run failed"),
    ];
    for (name, kind, meaning) in NUMBERS {
        all.push(column(Field::optional(name, kind), meaning));
    }
    all
}

/// The columns of a plan's table.
#[must_use]
pub fn columns(plan: &Plan) -> Vec<Column> {
    let mut all = head_columns();
    for axis in plan.grid().axes() {
        let kind = kind_of(axis.values.iter().map(|value| param_value(value)));
        let field = Field::optional(format!("param_{}", axis.name), kind);
        let meaning = format!("the parameter `{}`, swept", axis.name);
        all.push(Column { field, meaning });
    }
    for (name, value) in plan.grid().fixed() {
        let kind = kind_of(std::iter::once(value.clone()));
        let field = Field::optional(format!("param_{name}"), kind);
        let meaning = format!("the parameter `{name}`, the same in every run");
        all.push(Column { field, meaning });
    }
    all.extend(tail_columns());
    all
}

/// The kind of column that holds all of these parameters' values exactly.
fn kind_of(values: impl Iterator<Item = Value>) -> Kind {
    let all = |values: &[Value], test: fn(&Value) -> bool| values.iter().all(test);
    let values: Vec<Value> = values.collect();
    if all(&values, Value::is_i64) {
        Kind::Int
    } else if all(&values, Value::is_number) {
        Kind::Double
    } else if all(&values, Value::is_boolean) {
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

/// The cells of a finished run, in the order of [`columns`].
fn cells(plan: &Plan, columns: &[Column], run: &Finished) -> Vec<Cell> {
    let planned = plan.run(run.row);
    let date = |place: usize| plan.days().get(place).map_or(Cell::None, |day| Cell::Date(*day));
    let mut row = vec![
        Cell::Int(run.row as i64),
        Cell::Text(planned.phase.as_str().to_owned()),
        planned.fold.map_or(Cell::None, |fold| Cell::Int(fold as i64)),
        date(planned.days.start),
        date(planned.days.end.saturating_sub(1)),
    ];
    match run.combination {
        Some(combination) => {
            for value in plan.grid().values(combination) {
                let kind = columns[row.len()].field.kind;
                // A text that looks like a number stays as it was written in a column of texts.
                row.push(match kind {
                    Kind::Text => Cell::Text(value.to_owned()),
                    kind => parameter(&param_value(value), kind),
                });
            }
        }
        None => row.extend(plan.grid().axes().iter().map(|_| Cell::None)),
    }
    for value in plan.grid().fixed().values() {
        row.push(parameter(value, columns[row.len()].field.kind));
    }
    let status = if run.score.is_some() { "completed" } else { "failed" };
    row.push(Cell::Text(status.to_owned()));
    row.push(run.error.clone().map_or(Cell::None, Cell::Text));
    match &run.score {
        Some(score) => row.extend(numbers(score)),
        None => row.extend(NUMBERS.map(|_| Cell::None)),
    }
    row
}

/// Writes the runs that are done as CSV: a header line, one line for each run, empty for no value.
///
/// # Errors
/// When the sink fails.
pub fn write_csv(plan: &Plan, results: &Results, sink: impl Write) -> std::io::Result<()> {
    let columns = columns(plan);
    let mut writer = csv::WriterBuilder::new().from_writer(sink);
    writer.write_record(columns.iter().map(|column| &column.field.name))?;
    for run in results.rows.iter().flatten() {
        writer.write_record(cells(plan, &columns, run).iter().map(text))?;
    }
    writer.flush()
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::None => String::new(),
        Cell::Int(number) => number.to_string(),
        Cell::Yen(money) => money.to_string(),
        Cell::Ratio(ratio) => ratio.to_string(),
        Cell::Text(text) => text.clone(),
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
    let columns = columns(plan);
    let fields: Vec<Field> = columns.iter().map(|column| column.field.clone()).collect();
    let mut writer = TableWriter::new(sink, &fields)?;
    let runs: Vec<&Finished> = results.rows.iter().flatten().collect();
    for group in runs.chunks(GROUP_ROWS) {
        let mut values: Vec<Values> =
            fields.iter().map(|field| Values::empty(field.kind)).collect();
        for run in group {
            for (values, cell) in values.iter_mut().zip(cells(plan, &columns, run)) {
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
            Cell::Text(text) => Some(text),
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
        rows[0] = Some(Finished { row: 0, combination: Some(0), score, error: None });
        let error = Some("line 1\nline 2".to_owned());
        rows[15] = Some(Finished { row: 15, combination: Some(15), score: None, error });
        Results { rows, kept: 0 }
    }

    #[test]
    fn csv_has_every_parameter_and_number() {
        let mut out = Vec::new();
        write_csv(&plan(), &results(), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "run,phase,fold,start,end,param_fast,param_at,param_mode,param_on,param_name,status,\
             error,trades_seen,orders,orders_rejected,fills,round_trips,win_rate,equity_end,return,\
             max_drawdown_yen,max_drawdown,sharpe,turnover,commission,digest\n\
             0,whole,,2025-01-06,2025-01-08,5,0.5,1,true,\"a,\"\"b\"\"\",completed,,10,4,1,3,1,1,\
             10100000,0.01,1.2345,0.25,1.5,1000000,0,0123\n\
             15,whole,,2025-01-06,2025-01-08,10,1,b,false,\"a,\"\"b\"\"\",failed,\
             \"line 1\nline 2\",,,,,,,,,,,,,,\n"
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
