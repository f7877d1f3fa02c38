//! `kumiki data info`: what a data folder holds: files of the vendor, result tables, daily prices.

use std::ops::ControlFlow;

use anyhow::Result;
use marketdata::{
    DataError, FileKind, Inventory, ReadOptions, Selection, StoredFile, TradeFile, TradeRow,
    TradeStore, read_trades,
};
use serde_json::{Value, json};

use crate::Ending;
use crate::args::{FolderArgs, Format, InfoArgs};
use crate::database::Prices;
use crate::interrupt::Interrupt;
use crate::paths;
use crate::progress::ProgressLine;
use crate::terminal::{columns, grouped};

/// Codes that one line shows at most.
const CODES_SHOWN: usize = 6;

/// What is known of a file's rows.
enum Known {
    /// Nothing.
    Nothing,
    /// The file tells its rows.
    Rows(u64),
    /// The cache holds these codes and their rows; there may be more in the file.
    Cached(Vec<(String, u64)>),
    /// The whole file was read.
    Scanned { rows: u64, codes: Vec<String> },
    /// It was read and is wrong.
    Wrong(String),
}

/// Runs the command.
pub(crate) fn run(args: &InfoArgs) -> Result<Ending> {
    let interrupt = Interrupt::listen()?;
    let inventory = Inventory::of(&args.folder)?;
    let folders = FolderArgs { cache_dir: args.cache_dir.clone(), strategies: None };
    let store = TradeStore::new(paths::cache_folder(&folders)?.join("trades"));
    let mut known = Vec::new();
    for file in &inventory.files {
        known.push(match known_of(args, &store, file, &interrupt) {
            Some(known) => known,
            None => {
                eprintln!("interrupted while reading {}", file.name);
                return Ok(Ending::Interrupted);
            }
        });
    }
    let mut problems = inventory.problems.clone();
    let Some(twice) = days_twice(&store, &inventory, &interrupt) else {
        eprintln!("interrupted while looking which file has a day");
        return Ok(Ending::Interrupted);
    };
    problems.extend(twice);
    problems.extend(known.iter().filter_map(|known| match known {
        Known::Wrong(error) => Some(error.clone()),
        _ => None,
    }));
    let prices = Prices::of(&args.folder)?;
    match args.format {
        Format::Table => {
            print(args, &inventory, &known, &problems);
            prices.print();
        }
        Format::Json => print_json(args, &inventory, &known, &problems, &prices),
    }
    Ok(if problems.is_empty() { Ending::Done } else { Ending::Problems })
}

/// The days that two files have, in words; `None` when the user stopped it. A day that only its own file has is as it
/// should be, so the file of its month is read where nothing is known of it.
fn days_twice(
    store: &TradeStore,
    inventory: &Inventory,
    interrupt: &Interrupt,
) -> Option<Vec<String>> {
    let mut told = Vec::new();
    for (day, month) in inventory.days_beside_months() {
        let Some(period) = day.period else { continue };
        let text = format!("reading {}", month.name);
        let mut line = ProgressLine::start(&text, month.bytes, true);
        let found = store.is_in_month_file(&day.path, period, &mut |progress| {
            line.update(progress.compressed_bytes, || format!("{} rows", progress.rows_scanned));
            if interrupt.is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        line.finish();
        let (day, month) = (&day.name, &month.name);
        let what = match found {
            Ok(false) => continue,
            Ok(true) => format!(
                "{day} and {month} overlap; a day that both have counts once, as the monthly file has it"
            ),
            Err(DataError::Cancelled { .. }) => return None,
            Err(error) => format!("whether {month} has the day of {day} is not known: {error}"),
        };
        told.push(what);
    }
    Some(told)
}

/// What is known of a file; `None` when the user stopped it.
fn known_of(
    args: &InfoArgs,
    store: &TradeStore,
    file: &StoredFile,
    interrupt: &Interrupt,
) -> Option<Known> {
    if let Some(rows) = file.rows {
        return Some(Known::Rows(rows));
    }
    let trades = (file.kind == FileKind::Trades).then(|| TradeFile::from_path(&file.path));
    let Some(Ok(trades)) = trades else { return Some(Known::Nothing) };
    if args.scan {
        return scanned(&trades, file, interrupt);
    }
    let cached = store.cached_codes(&trades);
    // The cache also knows codes that the file does not have.
    let cached = cached.into_iter().filter(|(_, rows)| *rows > 0);
    let cached: Vec<_> = cached.map(|(code, rows)| (code.to_string(), rows)).collect();
    Some(if cached.is_empty() { Known::Nothing } else { Known::Cached(cached) })
}

fn scanned(trades: &TradeFile, file: &StoredFile, interrupt: &Interrupt) -> Option<Known> {
    let mut line = ProgressLine::start(&format!("reading {}", file.name), file.bytes, true);
    let mut codes: Vec<String> = Vec::new();
    let read = read_trades(
        trades,
        &Selection::All,
        &ReadOptions::default(),
        &mut |progress| {
            line.update(progress.compressed_bytes, || format!("{} rows", progress.rows_scanned));
            if interrupt.is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
        &mut |row: &TradeRow| {
            // Places are given in the order of first appearance.
            if row.code_index == codes.len() {
                codes.push(row.code.to_string());
            }
        },
    );
    line.finish();
    match read {
        Ok(summary) => {
            codes.sort();
            Some(Known::Scanned { rows: summary.rows_scanned, codes })
        }
        Err(DataError::Cancelled { .. }) => None,
        Err(error) => Some(Known::Wrong(error.to_string())),
    }
}

fn print(args: &InfoArgs, inventory: &Inventory, known: &[Known], problems: &[String]) {
    let head = ["kind", "period", "bytes", "rows", "codes", "file"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    for (file, known) in inventory.files.iter().zip(known) {
        let (rows, codes) = words(known);
        table.push(vec![
            file.kind.to_string(),
            file.period.map_or("-".to_owned(), |period| period.to_string()),
            grouped(&file.bytes.to_string()),
            rows,
            codes,
            file.name.clone(),
        ]);
    }
    let bytes: u64 = inventory.files.iter().map(|file| file.bytes).sum();
    println!(
        "{}: {} files, {} bytes",
        args.folder.display(),
        grouped(&inventory.files.len().to_string()),
        grouped(&bytes.to_string())
    );
    if !inventory.files.is_empty() {
        print!("\n{}", columns(&table));
    }
    let unread = known.iter().zip(&inventory.files).any(|(known, file)| {
        file.kind == FileKind::Trades && matches!(known, Known::Nothing | Known::Cached(_))
    });
    if unread {
        println!("\n--scan reads the trades files and counts rows and codes.");
    }
    for problem in problems {
        println!("\nproblem: {problem}");
    }
}

/// Rows and codes of a file in words.
fn words(known: &Known) -> (String, String) {
    let count = |number: u64| grouped(&number.to_string());
    let listed = |codes: Vec<&str>| match codes.len() {
        0..=CODES_SHOWN => codes.join(" "),
        all => format!("{all}: {} ...", codes[..CODES_SHOWN].join(" ")),
    };
    match known {
        Known::Nothing => ("-".to_owned(), "-".to_owned()),
        Known::Wrong(_) => ("wrong".to_owned(), "-".to_owned()),
        Known::Rows(rows) => (count(*rows), "-".to_owned()),
        Known::Cached(codes) => {
            // Of the file's other codes nothing is known.
            let of_each =
                |(code, rows): &(String, u64)| format!("{code}: {} (cached)", count(*rows));
            let codes: Vec<String> = codes.iter().map(of_each).collect();
            ("-".to_owned(), listed(codes.iter().map(String::as_str).collect()))
        }
        Known::Scanned { rows, codes } => {
            (count(*rows), listed(codes.iter().map(String::as_str).collect()))
        }
    }
}

fn print_json(
    args: &InfoArgs,
    inventory: &Inventory,
    known: &[Known],
    problems: &[String],
    prices: &Prices,
) {
    let files: Vec<Value> = inventory
        .files
        .iter()
        .zip(known)
        .map(|(file, known)| {
            let (rows, codes, source) = match known {
                Known::Nothing | Known::Wrong(_) => (None, None, None),
                Known::Rows(rows) => (Some(*rows), None, Some("file")),
                Known::Cached(codes) => {
                    let names: Vec<&String> = codes.iter().map(|(code, _)| code).collect();
                    let rows = codes.iter().map(|(_, rows)| rows).sum();
                    (Some(rows), Some(json!(names)), Some("cache"))
                }
                Known::Scanned { rows, codes } => (Some(*rows), Some(json!(codes)), Some("scan")),
            };
            json!({
                "file": file.name,
                "kind": file.kind.to_string(),
                "period": file.period.map(|period| period.to_string()),
                "first_day": file.period.map(|period| period.first().to_string()),
                "last_day": file.period.map(|period| period.last().to_string()),
                "bytes": file.bytes,
                "rows": rows,
                "codes": codes,
                "known_from": source,
            })
        })
        .collect();
    let whole = json!({
        "folder": args.folder.display().to_string(),
        "files": files,
        "problems": problems,
        "snapshot": prices.snapshot_json(),
        "views": prices.views_json(),
    });
    println!("{whole:#}");
}
