//! The schemas of the files that kumiki writes and of the ranking service, generated from the code.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use replay::output::{MANIFEST_VERSION, TABLES};
use serde_json::{Map, Value, json};

use crate::Ending;
use crate::args::SchemasArgs;

/// Writes the schemas, or compares them with what is there.
pub(crate) fn run(args: &SchemasArgs) -> Result<Ending> {
    let schemas = [
        ("replay-run.json", text(&replay_run_schema())),
        ("ranking.graphql", crate::rank::service_sdl()),
    ];
    if let Some(folder) = &args.write {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (name, schema) in &schemas {
            let path = folder.join(name);
            fs::write(&path, schema).with_context(|| format!("cannot write {}", path.display()))?;
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

fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}

/// The tables of a run's folder. Numbers of the summary are a table too.
fn replay_run_schema() -> Value {
    let tables: Map<String, Value> = TABLES
        .iter()
        .map(|table| {
            let columns: Vec<Value> = table
                .columns
                .iter()
                .map(|column| {
                    json!({ "name": column.name, "kind": column.kind, "meaning": column.meaning })
                })
                .collect();
            (table.name.to_owned(), json!({ "row": table.row, "columns": columns }))
        })
        .collect();
    json!({
        "title": "Files of a replay's folder",
        "version": MANIFEST_VERSION,
        "kinds": {
            "string": "text",
            "integer": "whole number",
            "decimal": "exact decimal number; text in JSON",
            "?": "may be empty (CSV) or null (JSON)"
        },
        "files": "<table>.csv with a header line, and <table>.json with the same columns",
        "tables": tables,
    })
}
