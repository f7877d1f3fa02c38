//! The schemas of what kumiki writes and of the ranking service, generated from the code.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use replay::output::{
    AUDIT_FILE, AUDIT_LINES, Column, EVENT_LINES, EVENTS_FILE, LineKind, MANIFEST_VERSION, TABLES,
};
use replay::statistics::definitions_markdown;
use replay::sweep::folder::SWEEP_VERSION;
use replay::sweep::table::{self, head_columns, tail_columns};
use serde_json::{Map, Value, json};

use crate::Ending;
use crate::args::SchemasArgs;

/// Writes the schemas, or compares them with what is there.
pub(crate) fn run(args: &SchemasArgs) -> Result<Ending> {
    let schemas = [
        ("replay-run.json", format!("{:#}\n", replay_run_schema())),
        ("replay-sweep.json", format!("{:#}\n", replay_sweep_schema())),
        ("statistics.md", definitions_markdown()),
        ("ranking.graphql", crate::rank::service_sdl()),
        ("update-report.json", format!("{:#}\n", update::report_schema())),
    ];
    if let Some(folder) = &args.write {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (name, schema) in &schemas {
            let path = folder.join(name);
            atomic_file::write(&path, schema.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    let Some(folder) = &args.check else { return Ok(Ending::Done) };
    let stale: Vec<_> =
        schemas.iter().filter(|(name, schema)| !is_fresh(&folder.join(name), schema)).collect();
    for (name, _) in &stale {
        eprintln!("{} is not what the code writes; run `cargo xtask schemas`", name);
    }
    Ok(if stale.is_empty() { Ending::Done } else { Ending::Problems })
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
            "string": "text",
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
            EVENTS_FILE: lines("event", &EVENT_LINES),
            AUDIT_FILE: lines("phase", &AUDIT_LINES),
        },
    })
}

fn column(column: &Column) -> Value {
    let optional = if column.optional { "?" } else { "" };
    let kind = format!("{}{optional}", column.kind.as_str());
    json!({ "name": column.name, "kind": kind, "meaning": column.meaning })
}

/// The fields of each kind of line, the one that tells the kind first.
fn lines(tag: &str, kinds: &[LineKind]) -> Map<String, Value> {
    let fields = |kind: &LineKind| {
        let all: Vec<&str> = std::iter::once(tag).chain(kind.fields.iter().copied()).collect();
        (kind.name.to_owned(), json!(all))
    };
    kinds.iter().map(fields).collect()
}

/// The table of a sweep.
fn replay_sweep_schema() -> Value {
    let list = |columns: Vec<table::Column>| -> Vec<Value> {
        let one = |column: table::Column| {
            json!({
                "name": column.field.name,
                "kind": column.field.kind.to_string(),
                "optional": column.field.optional,
                "meaning": column.meaning,
            })
        };
        columns.into_iter().map(one).collect()
    };
    let mut columns = list(head_columns());
    columns.push(json!({
        "name": "param_<name>",
        "kind": "integer, double, bool or text, as its values are",
        "optional": true,
        "meaning": "one column for each parameter: first those swept, then the others",
    }));
    columns.extend(list(tail_columns()));
    json!({
        "title": "Files of a sweep's folder",
        "version": SWEEP_VERSION,
        "files": "sweep.csv and sweep.parquet with a row for each run, sweep.json (manifest), \
                  sweep.html, journal.jsonl; sweep.partial.* while runs are missing",
        "columns": columns,
    })
}
