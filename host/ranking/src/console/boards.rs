//! The published boards of issues (`jp/stocks_board/<code>.db`) as two views over all of them:
//! `board_depth`, the order books, and `board_trades`, the trades.

use std::fs;
use std::io;
use std::path::PathBuf;

use duckdb::Connection;
use pricestore::DataDir;
use pricestore::generation::GenerationFileName;

use super::{ConsoleError, attach, first_lines, no_view};
use crate::text::redacted;

/// Most boards of a data directory; a gateway pushes 50 at once.
pub const BOARDS_MAX: usize = 500;
/// The views, and the tables that they show of each file.
pub(super) const VIEWS: [(&str, &str); 2] = [("board_depth", "depth"), ("board_trades", "trades")];

/// The files by code, ascending.
///
/// # Errors
/// When the folder cannot be listed or has too many.
pub(super) fn find(data: &DataDir) -> Result<Vec<(String, PathBuf)>, String> {
    let folder = data.jp_folder().join("stocks_board");
    let unreadable = |error: io::Error| format!("{} cannot be listed: {error}", folder.display());
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(unreadable)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let code = name.as_deref().and_then(|name| name.strip_suffix(".db"));
        // Only digits and capital letters, so a code can stand in a name of the engine.
        let Some(code) = code.filter(|code| GenerationFileName::issue(code).is_some()) else {
            continue;
        };
        if !path.is_file() {
            continue;
        }
        if found.len() == BOARDS_MAX {
            return Err(format!("{} holds more than {BOARDS_MAX} boards", folder.display()));
        }
        found.push((code.to_owned(), path));
    }
    found.sort();
    Ok(found)
}

fn catalog(code: &str) -> String {
    format!("board_{code}")
}

/// Opens them; gives the codes of those that can be opened. One that others have put there must not take
/// the others away.
pub(super) fn attach_all(connection: &Connection, found: &[(String, PathBuf)]) -> Vec<String> {
    let mut attached = Vec::with_capacity(found.len());
    for (code, path) in found {
        match attach(connection, &catalog(code), path) {
            Ok(()) => attached.push(code.clone()),
            Err(error) => {
                let cause = redacted(&error.to_string());
                tracing::warn!(code = %code, cause, "the board of an issue cannot be used");
            }
        }
    }
    attached
}

/// Makes the views. Only tables are shown: a view in such a file may be somebody else's and read anything.
pub(super) fn make_views(
    connection: &Connection,
    codes: &[String],
    unreadable: &mut Vec<(String, String)>,
) -> Result<(), ConsoleError> {
    for (view, table) in VIEWS {
        let has = "SELECT count(*) FROM duckdb_tables() WHERE database_name = ? AND table_name = ?
            AND schema_name = 'main'";
        let mut parts = Vec::with_capacity(codes.len());
        for code in codes {
            let catalog = catalog(code);
            let count: i64 =
                connection.query_row(has, [catalog.as_str(), table], |row| row.get(0))?;
            if count == 1 {
                parts.push(format!("SELECT * FROM \"{catalog}\".main.{table}"));
            } else {
                tracing::warn!(code = %code, table, "the board of an issue has no such table");
            }
        }
        if parts.is_empty() {
            continue;
        }
        let create = format!("CREATE VIEW {view} AS {}", parts.join(" UNION ALL "));
        if let Err(error) = connection.execute_batch(&create) {
            let why = first_lines(&error.to_string());
            no_view(unreadable, view, format!("the boards of issues cannot be read: {why}"));
        }
    }
    Ok(())
}
