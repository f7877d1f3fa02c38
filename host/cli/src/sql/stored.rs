//! What the other commands wrote, as views for SQL: runs with their tables and audit logs, sweeps, and
//! the vendor's files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use marketdata::{FileKind, Inventory};
use ranking::console::{FILES_MAX, FileForm, FileView, LabelledFile, RowsView, StoredView};
use results::output::{AUDIT_FILE, Kind, MANIFEST_FILE, TABLES};
use results::summary::{DEFINITIONS, Unit};
use serde_json::Value;

use crate::args::SqlArgs;

/// Exact yen, for the database engine.
const YEN: &str = "DECIMAL(38,4)";
/// Folders inside folders that are looked through for runs and sweeps.
const DEPTH: usize = 3;
/// The table of a sweep.
const SWEEP_FILE: &str = "sweep.csv";
/// The table of a run with its numbers, which is part of the view `runs`.
const SUMMARY: &str = "summary";

/// What `runs` says of each run, from its manifest: the name there, and the name in the view.
const MANIFEST_COLUMNS: [(&str, &str); 7] = [
    ("/component/name", "strategy"),
    ("/component/version", "strategy_version"),
    ("/parameters_effective", "parameters"),
    ("/instrument_id", "instrument_id"),
    ("/start", "start_date"),
    ("/end", "end_date"),
    ("/granularity", "granularity"),
];

/// The views that the arguments ask for.
pub(super) fn views(args: &SqlArgs) -> Result<Vec<StoredView>> {
    let mut views = Vec::new();
    if let Some(folder) = &args.runs {
        views.extend(runs(folder)?);
    }
    if let Some(folder) = &args.sweeps {
        views.push(sweeps(folder)?);
    }
    if let Some(folder) = &args.market_data {
        views.extend(market_data(folder)?);
    }
    Ok(views)
}

/// A folder that was found, and its name for people: its way from the folder that was given.
struct Found {
    path: PathBuf,
    label: String,
}

/// The folders in `root` that hold a file, `root` itself among them.
fn folders_with(root: &Path, file: &str) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    collect(root, file, DEPTH, &mut found)?;
    found.sort();
    let label = |path: &PathBuf| {
        let way = path.strip_prefix(root).ok().filter(|way| !way.as_os_str().is_empty());
        let name = way.or_else(|| path.file_name().map(Path::new)).unwrap_or(path);
        name.to_string_lossy().replace('\\', "/")
    };
    Ok(found.into_iter().map(|path| Found { label: label(&path), path }).collect())
}

fn collect(folder: &Path, file: &str, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    if folder.join(file).is_file() {
        if found.len() == FILES_MAX {
            bail!("{} holds more than {FILES_MAX} folders with {file}", folder.display());
        }
        found.push(folder.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let unlistable = || format!("cannot list {}", folder.display());
    for entry in fs::read_dir(folder).with_context(unlistable)? {
        let path = entry.with_context(unlistable)?.path();
        // What a run is still writing begins with a dot.
        let is_hidden =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !is_hidden {
            collect(&path, file, depth - 1, found)?;
        }
    }
    Ok(())
}

/// `runs`, a view for each of their tables, and `audit`.
fn runs(root: &Path) -> Result<Vec<StoredView>> {
    let runs = folders_with(root, MANIFEST_FILE)?;
    let runs: Vec<Found> =
        runs.into_iter().filter(|run| run.path.join(format!("{SUMMARY}.csv")).is_file()).collect();
    if runs.is_empty() {
        bail!("--runs {}: it holds no run of `kumiki replay run`", root.display());
    }
    let mut views = vec![StoredView::Rows(overview(&runs)?)];
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
    let audit = files_of(&runs, AUDIT_FILE);
    views.extend(of_files("audit", FileForm::JsonLines, audit, "run", BTreeMap::new()));
    Ok(views)
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
fn overview(runs: &[Found]) -> Result<RowsView> {
    let number = |unit| match unit {
        Unit::Text | Unit::Timestamp => "VARCHAR",
        Unit::Count | Unit::Shares => "HUGEINT",
        Unit::Yen => YEN,
        Unit::Ratio | Unit::Number => "DOUBLE",
    };
    let mut columns = vec![("run".to_owned(), "VARCHAR")];
    columns.extend(MANIFEST_COLUMNS.map(|(_, name)| {
        (
            name.to_owned(),
            if matches!(name, "start_date" | "end_date") { "DATE" } else { "VARCHAR" },
        )
    }));
    columns.extend(DEFINITIONS.iter().map(|one| (one.name.to_owned(), number(one.unit))));
    let rows = runs.iter().map(overview_row).collect::<Result<Vec<_>>>()?;
    Ok(RowsView { name: "runs".to_owned(), columns, rows })
}

fn overview_row(run: &Found) -> Result<Vec<Option<String>>> {
    let path = run.path.join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let manifest: Value =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let said = |place: &str| match manifest.pointer(place) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
        Some(other) => Some(other.to_string()),
    };
    let path = run.path.join(format!("{SUMMARY}.csv"));
    let unreadable = || path.display().to_string();
    let mut reader = csv::Reader::from_path(&path).with_context(unreadable)?;
    let mut numbers: BTreeMap<String, String> = BTreeMap::new();
    for row in reader.deserialize::<(String, Option<String>)>() {
        let (name, value) = row.with_context(unreadable)?;
        numbers.extend(value.map(|value| (name, value)));
    }
    let mut cells = vec![Some(run.label.clone())];
    cells.extend(MANIFEST_COLUMNS.map(|(place, _)| said(place)));
    cells.extend(DEFINITIONS.iter().map(|one| numbers.remove(one.name)));
    Ok(cells)
}

/// `sweeps`: the runs of all complete sweeps.
fn sweeps(root: &Path) -> Result<StoredView> {
    let found = folders_with(root, SWEEP_FILE)?;
    let files = files_of(&found, SWEEP_FILE);
    let view = of_files("sweeps", FileForm::CsvOfAnyType, files, "sweep", BTreeMap::new());
    view.with_context(|| {
        format!("--sweeps {}: it holds no complete sweep of `kumiki replay sweep`", root.display())
    })
}

/// `trades`, `minute_bars` and `daily_bars`: the vendor's files.
fn market_data(folder: &Path) -> Result<Vec<StoredView>> {
    let inventory = Inventory::of(folder)?;
    let kinds = [
        ("trades", FileKind::Trades),
        ("minute_bars", FileKind::MinuteBars),
        ("daily_bars", FileKind::DailyBars),
    ];
    let view = |(name, kind): (&str, FileKind)| {
        let file = |path: &PathBuf| LabelledFile { path: path.clone(), label: String::new() };
        let files: Vec<LabelledFile> =
            inventory.of_kind(kind).map(|stored| file(&stored.path)).collect();
        let types = vendor_types(kind);
        let view =
            FileView { name: name.to_owned(), form: FileForm::Csv, files, label: None, types };
        (!view.files.is_empty()).then_some(StoredView::Files(view))
    };
    let views: Vec<StoredView> = kinds.into_iter().filter_map(view).collect();
    if views.is_empty() {
        bail!(
            "--market-data {}: it holds none of the vendor's files equities_trades_*.csv.gz, \
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
