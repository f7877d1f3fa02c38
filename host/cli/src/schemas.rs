//! The schemas of what kumiki writes and of the ranking service, generated from the code.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use ipc::schema;
use ranking::export;
use results::Summary;
use results::output::{
    AUDIT_FILE, COMMANDS_FILE, Column, EVENTS_FILE, MANIFEST_VERSION, Manifest, TABLES,
};
use results::summary::definitions_markdown;
use serde_json::{Map, Value, json};
use sweep::SweepManifest;
use sweep::journal::JournalLine;
use sweep::manifest::SWEEP_VERSION;
use sweep::table::{Column as SweepColumn, head_columns, tail_columns};

use crate::args::SchemasArgs;
use crate::{Ending, pages};

/// The schema of a line of `events.jsonl`.
const RUN_EVENTS: &str = "run-events.schema.json";
/// The schema of a line of an audit log.
const RUN_AUDIT: &str = "audit-log.schema.json";

/// The schema of a line of `commands.jsonl`.
const RUN_COMMANDS: &str = "run-commands.schema.json";

/// Tables whose JSON form is a type, from which its schema is made.
const IS_A_TYPE: [&str; 2] = ["summary", "narrative"];

/// Writes the schemas or the pages that are generated, or compares them with what is there.
pub(crate) fn run(args: &SchemasArgs) -> Result<Ending> {
    if let Some(folder) = &args.write {
        write(folder, &schemas())?;
    }
    if let Some(folder) = &args.write_pages {
        write(folder, &pages::all())?;
    }
    let (folder, wanted) = match (&args.check, &args.check_pages) {
        (Some(folder), _) => (folder, schemas()),
        (None, Some(folder)) => (folder, pages::all()),
        (None, None) => return Ok(Ending::Done),
    };
    let stale: Vec<_> =
        wanted.iter().filter(|(name, text)| !is_fresh(&folder.join(name), text)).collect();
    for (name, _) in &stale {
        eprintln!("{} is not what the code writes; run `cargo xtask schemas`", name);
    }
    Ok(if stale.is_empty() { Ending::Done } else { Ending::Problems })
}

fn write(folder: &Path, files: &[(String, String)]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in files {
        let path = folder.join(name);
        atomic_file::write(&path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Every schema: the name of its file and its text.
fn schemas() -> Vec<(String, String)> {
    let mut schemas: Vec<(String, String)> = [
        ("replay-run.json", format!("{:#}\n", replay_run_schema())),
        ("replay-sweep.json", format!("{:#}\n", replay_sweep_schema())),
        ("statistics.md", definitions_markdown() + &sweep::luck::definitions_markdown()),
        ("configuration.md", crate::configuration::markdown()),
        ("ranking.graphql", crate::rank::service_sdl()),
        ("update-report.json", format!("{:#}\n", update::report_schema())),
        ("update-board.json", format!("{:#}\n", update::store::board_report_schema())),
        ("listed-info.json", format!("{:#}\n", pricestore::listed::schema())),
        (RUN_EVENTS, format!("{:#}\n", schema::event_line())),
        (RUN_AUDIT, format!("{:#}\n", schema::audit_line())),
        (RUN_COMMANDS, format!("{:#}\n", schema::command_line())),
        ("run-manifest.schema.json", format!("{:#}\n", schema::written::<Manifest>())),
        ("run-summary.schema.json", format!("{:#}\n", schema::written::<Summary>())),
        ("sweep-manifest.schema.json", format!("{:#}\n", schema::written::<SweepManifest>())),
        ("sweep-journal.schema.json", format!("{:#}\n", schema::written::<JournalLine>())),
        ("run-narrative.schema.json", format!("{:#}\n", schema::narrative())),
        ("ipc.schema.json", format!("{:#}\n", schema::messages())),
        ("ranking-row.schema.json", format!("{:#}\n", export::row_schema())),
        ("ranking-rows.schema.json", format!("{:#}\n", export::rows_schema())),
    ]
    .map(|(name, schema)| (name.to_owned(), schema))
    .into();
    schemas.extend(TABLES.iter().filter(|table| !IS_A_TYPE.contains(&table.name)).map(|table| {
        let name = format!("run-{}.schema.json", table.name);
        (name, format!("{:#}\n", table.json_schema()))
    }));
    schemas
}

fn is_fresh(path: &Path, schema: &str) -> bool {
    // Git may have turned the line ends on Windows.
    fs::read_to_string(path).is_ok_and(|found| found.replace("\r\n", "\n") == schema)
}

/// The files of a run's folder. Numbers of the summary are a table too.
fn replay_run_schema() -> Value {
    let tables: Map<String, Value> = TABLES
        .iter()
        .map(|table| {
            let columns: Vec<Value> = table.columns.iter().map(column).collect();
            (table.name.to_owned(), json!({ "row": table.row, "columns": columns }))
        })
        .collect();
    json!({
        "title": "Files of a replay's folder",
        "version": MANIFEST_VERSION,
        "kinds": {
            "string": "text; in CSV with ' in front where a spreadsheet could take it for a formula: where it \
                       begins with =, +, - or @ and is no number",
            "integer": "whole number; in Parquet 64 bits, null where it does not fit",
            "decimal": "exact decimal number of yen; text in JSON, decimal(18, 4) in Parquet",
            "timestamp": "nanoseconds since 1970 in UTC; whole number in CSV and JSON",
            "date": "YYYY-MM-DD in Japan",
            "?": "may be empty (CSV) or null (JSON, Parquet)"
        },
        "files": "<table>.csv with a header line, <table>.json and <table>.parquet with the same \
                  columns; the summary has no Parquet form, and its JSON is one object",
        "tables": tables,
        "lines": {
            EVENTS_FILE: RUN_EVENTS,
            AUDIT_FILE: RUN_AUDIT,
            COMMANDS_FILE: RUN_COMMANDS,
        },
    })
}

fn column(column: &Column) -> Value {
    let optional = if column.optional { "?" } else { "" };
    let kind = format!("{}{optional}", column.kind.as_str());
    json!({ "name": column.name, "kind": kind, "meaning": column.meaning })
}

/// The table of a sweep.
fn replay_sweep_schema() -> Value {
    let mut columns: Vec<Value> = head_columns().iter().map(SweepColumn::described).collect();
    columns.push(json!({
        "name": "param_<name>",
        "kind": "integer, double, bool or text, as its values are",
        "optional": true,
        "meaning": "one column for each parameter: first those swept, then the others",
    }));
    columns.extend(tail_columns().iter().map(SweepColumn::described));
    json!({
        "title": "Files of a sweep's folder",
        "version": SWEEP_VERSION,
        "files": "sweep.csv and sweep.parquet with a row for each run, sweep.json (manifest), \
                  sweep.html, journal.jsonl; sweep.partial.* while runs are missing. A text of the \
                  CSV file has ' in front where a spreadsheet could take it for a formula",
        "columns": columns,
    })
}
