//! What the other commands wrote, as views for SQL: runs with their tables and audit logs, the log of live
//! orders, sweeps, and the vendor's files.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, bail};
use domain::JstDate;
use marketdata::{FileKind, Inventory, TradeStore};
use pricestore::excerpt;
use ranking::console::{FileForm, FileView, LabelledFile, RowsView, StoredView};
use results::output::{AUDIT_FILE, Kind, MANIFEST_FILE, TABLES, read_json};
use results::summary::{DEFINITIONS, Unit};
use serde_json::Value;

use super::folders::{self, Found};
use super::left_out::LeftOut;
use super::sweeps;
use crate::args::{FolderArgs, SqlArgs};
use crate::paths;
use crate::told_once;

/// Exact yen, for the database engine.
pub(super) const YEN: &str = "DECIMAL(38,4)";
/// What stands for the name of a run beside the lines of live orders.
const LIVE: &str = "live";
/// The table of a sweep.
const SWEEP_FILE: &str = "sweep.csv";
/// The table of a run with its numbers, which is part of the view `runs`.
const SUMMARY: &str = "summary";

/// The column that says what kind of a run it is, and what it says of a replay: its manifest leaves it out.
const RUN_KIND: &str = "run_kind";
const REPLAY: &str = "replay";

/// What `runs` says of each run, from its manifest: the name there, and the name in the view.
const MANIFEST_COLUMNS: [(&str, &str); 8] = [
    ("/run_kind", RUN_KIND),
    ("/component/name", "strategy"),
    ("/component/version", "strategy_version"),
    ("/parameters_effective", "parameters"),
    ("/instrument_id", "instrument_id"),
    ("/start", "start_date"),
    ("/end", "end_date"),
    ("/granularity", "granularity"),
];

/// The views that the arguments ask for, and what of the folders is not in them.
pub(super) fn views(args: &SqlArgs, left_out: &mut LeftOut) -> Result<Vec<StoredView>> {
    let (mut views, mut audit) = (Vec::new(), Vec::new());
    if let Some(folder) = &args.runs {
        views.extend(runs(folder, &mut audit, left_out)?);
    }
    if let Some(folder) = &args.config_dir {
        audit.push(live_orders(folder)?);
    }
    views.extend(of_files("audit", FileForm::JsonLines, audit, "run", BTreeMap::new()));
    if let Some(folder) = &args.sweeps {
        views.push(swept(folder, left_out)?);
    }
    if let Some(folder) = &args.data {
        views.extend(market_data(folder, left_out)?);
    }
    Ok(views)
}

/// `runs` and a view for each of their tables; their logs of orders. A run that is not what `kumiki replay run`
/// or a live run writes is in none of them.
fn runs(
    root: &Path,
    audit: &mut Vec<LabelledFile>,
    left_out: &mut LeftOut,
) -> Result<Vec<StoredView>> {
    let (mut runs, mut rows) = (Vec::new(), Vec::new());
    for run in folders::with_file("--runs", root, MANIFEST_FILE, left_out)? {
        match overview_row(&run) {
            Ok(row) => {
                rows.push(row);
                runs.push(run);
            }
            Err(error) => left_out.add(told_once(&error), run.label),
        }
    }
    if runs.is_empty() {
        bail!(
            "--runs {}: it holds no run of `kumiki replay run`; name the folder of its --out, or one above",
            root.display()
        );
    }
    let mut views = vec![StoredView::Rows(overview(rows))];
    for table in TABLES.iter().filter(|table| table.name != SUMMARY) {
        let kind = |kind| match kind {
            Kind::Text => "VARCHAR",
            // It may be larger than 63 bits.
            Kind::Whole => "HUGEINT",
            Kind::Yen => YEN,
            Kind::Timestamp => "BIGINT",
            Kind::Date => "DATE",
        };
        let types = table.columns.iter().map(|column| (column.name.to_owned(), kind(column.kind)));
        let files = files_of(&runs, &format!("{}.csv", table.name));
        views.extend(of_files(table.name, FileForm::Csv, files, "run", types.collect()));
    }
    audit.extend(files_of(&runs, AUDIT_FILE));
    Ok(views)
}

/// The log of live orders that an engine keeps with its configuration.
fn live_orders(folder: &Path) -> Result<LabelledFile> {
    let path = folder.join(engine::AUDIT_FILE);
    let bytes = path.metadata().map(|found| found.len()).unwrap_or_default();
    if bytes == 0 {
        bail!(
            "--config-dir {}: it holds no {} with a line; an engine writes it with its first live order",
            folder.display(),
            engine::AUDIT_FILE
        );
    }
    Ok(LabelledFile { path, label: LIVE.to_owned() })
}

/// The files of this name that hold something.
fn files_of(folders: &[Found], name: &str) -> Vec<LabelledFile> {
    let file =
        |folder: &Found| LabelledFile { path: folder.path.join(name), label: folder.label.clone() };
    let holds = |file: &LabelledFile| file.path.metadata().is_ok_and(|found| found.len() > 0);
    folders.iter().map(file).filter(holds).collect()
}

/// A view, where there are files for it.
fn of_files(
    name: &str,
    form: FileForm,
    files: Vec<LabelledFile>,
    label: &'static str,
    types: BTreeMap<String, &'static str>,
) -> Option<StoredView> {
    let view = FileView { name: name.to_owned(), form, files, label: Some(label), types };
    (!view.files.is_empty()).then_some(StoredView::Files(view))
}

/// A row for each run: what it was made from, and its numbers.
fn overview(rows: Vec<Vec<Option<String>>>) -> RowsView {
    let mut columns = vec![("run".to_owned(), "VARCHAR")];
    columns.extend(MANIFEST_COLUMNS.map(|(_, name)| (name.to_owned(), manifest_type(name))));
    columns.extend(DEFINITIONS.iter().map(|one| (one.name.to_owned(), number_type(one.unit))));
    RowsView { name: "runs".to_owned(), columns, rows }
}

fn manifest_type(name: &str) -> &'static str {
    if matches!(name, "start_date" | "end_date") { "DATE" } else { "VARCHAR" }
}

const fn number_type(unit: Unit) -> &'static str {
    match unit {
        Unit::Text | Unit::Timestamp => "VARCHAR",
        Unit::Count | Unit::Shares => "HUGEINT",
        Unit::Yen => YEN,
        Unit::Ratio | Unit::Number => "DOUBLE",
    }
}

/// A run's row, each value of which is of its column's type.
fn overview_row(run: &Found) -> Result<Vec<Option<String>>> {
    let manifest = read_json(&run.path, MANIFEST_FILE)?;
    let said = |place: &str| match manifest.pointer(place) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
        Some(other) => Some(other.to_string()),
    };
    // A replay's folder is there at its end only, and is partial where it was stopped.
    if said("/run_kind").is_some() && manifest["partial"] == true {
        bail!("it is running, or was killed before its end; its journal has what it did");
    }
    let name = format!("{SUMMARY}.csv");
    let path = run.path.join(&name);
    if !path.is_file() {
        bail!("it has no {name}");
    }
    let mut reader = csv::Reader::from_path(&path).with_context(|| name.clone())?;
    let mut numbers: BTreeMap<String, String> = BTreeMap::new();
    for row in reader.deserialize::<(String, Option<String>)>() {
        let (number, value) = row.with_context(|| name.clone())?;
        numbers.extend(value.map(|value| (number, value)));
    }
    let mut cells = vec![Some(run.label.clone())];
    for (place, column) in MANIFEST_COLUMNS {
        let cell = said(place).or_else(|| (column == RUN_KIND).then(|| REPLAY.to_owned()));
        check(MANIFEST_FILE, column, manifest_type(column), cell.as_deref())?;
        cells.push(cell);
    }
    for one in DEFINITIONS {
        let cell = numbers.remove(one.name);
        check(&name, one.name, number_type(one.unit), cell.as_deref())?;
        cells.push(cell);
    }
    Ok(cells)
}

/// Refuses a value that the database engine could not make a `kind` of: it would refuse all rows, and not
/// say whose it is.
fn check(file: &str, column: &str, kind: &str, value: Option<&str>) -> Result<()> {
    let Some(value) = value else { return Ok(()) };
    let is_number = value.parse::<f64>().is_ok();
    let is_good = match kind {
        "DATE" => value.parse::<JstDate>().is_ok(),
        "HUGEINT" => value.parse::<i128>().is_ok(),
        YEN => is_number && value.len() < 34 && !value.contains(char::is_alphabetic),
        "DOUBLE" => is_number,
        _ => true,
    };
    if !is_good {
        let what = if kind == "DATE" { "date" } else { "number" };
        bail!("its {column} in {file} is no {what}: `{}`", excerpt(value));
    }
    Ok(())
}

/// `sweeps`: the runs of all complete sweeps.
fn swept(root: &Path, left_out: &mut LeftOut) -> Result<StoredView> {
    let found = folders::with_file("--sweeps", root, SWEEP_FILE, left_out)?;
    let (files, types) = sweeps::typed(files_of(&found, SWEEP_FILE), left_out);
    let view = of_files("sweeps", FileForm::Csv, files, "sweep", types);
    view.with_context(|| {
        format!("--sweeps {}: it holds no complete sweep of `kumiki replay sweep`", root.display())
    })
}

/// `trades`, `minute_bars` and `daily_bars`: the vendor's files that a replay would read.
fn market_data(folder: &Path, left_out: &mut LeftOut) -> Result<Vec<StoredView>> {
    let inventory = Inventory::of(folder)?;
    let folders = FolderArgs { cache_dir: None, strategies: None };
    let store = TradeStore::new(paths::cache_folder(&folders)?.join("trades"));
    let kinds = [
        ("trades", FileKind::Trades),
        ("minute_bars", FileKind::MinuteBars),
        ("daily_bars", FileKind::DailyBars),
    ];
    let view = |(name, kind): (&str, FileKind)| {
        let mut files = Vec::new();
        for file in inventory.of_kind(kind) {
            let is_twice = file.period.map_or(Ok(false), |period| {
                store.is_in_month_file(&file.path, period, &mut |_| ControlFlow::Continue(()))
            });
            match is_twice {
                Ok(false) => {
                    files.push(LabelledFile { path: file.path.clone(), label: String::new() })
                }
                Ok(true) => left_out.add("the file of its month has the day", file.name.as_str()),
                Err(error) => left_out.add(told_once(&error.into()), file.name.as_str()),
            }
        }
        let types = vendor_types(kind);
        let view =
            FileView { name: name.to_owned(), form: FileForm::Csv, files, label: None, types };
        (!view.files.is_empty()).then_some(StoredView::Files(view))
    };
    let views: Vec<StoredView> = kinds.into_iter().filter_map(view).collect();
    if views.is_empty() {
        bail!(
            "--data {}: it holds none of the vendor's files equities_trades_*.csv.gz, \
             equities_bars_minute_*.csv.gz and equities_bars_daily_*.csv.gz",
            folder.display()
        );
    }
    Ok(views)
}

/// Types of the vendor's columns; codes and numbers of transactions are text.
fn vendor_types(kind: FileKind) -> BTreeMap<String, &'static str> {
    let prices: &[&str] = match kind {
        FileKind::Trades => &["Price"],
        _ => &["O", "H", "L", "C", "Va", "AdjFactor"],
    };
    let mut types: BTreeMap<String, &'static str> =
        prices.iter().map(|name| ((*name).to_owned(), "DOUBLE")).collect();
    types.insert("Date".to_owned(), "DATE");
    types.insert("TradingVolume".to_owned(), "BIGINT");
    // Volumes of bars may be written with a fraction of zero.
    types.insert("Vo".to_owned(), "DOUBLE");
    types
}
