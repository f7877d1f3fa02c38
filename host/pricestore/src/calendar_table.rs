//! The exchange's calendar in a combined database: a table `calendar` beside the prices.

use duckdb::Connection;

/// What its columns must be; others may stand beside them.
const COLUMNS: [(&str, &str); 2] = [("date", "DATE"), ("is_open", "BOOLEAN")];

/// Whether an attached database has a calendar; of one in another form, what is wrong, in words.
///
/// # Errors
/// When the database cannot be read.
pub fn has_calendar(
    connection: &Connection,
    catalog: &str,
) -> duckdb::Result<Result<bool, String>> {
    let columns = "SELECT lower(column_name), data_type FROM duckdb_columns()
        WHERE database_name = ? AND schema_name = 'main' AND lower(table_name) = 'calendar'
        ORDER BY column_index";
    let mut columns = connection.prepare(columns)?;
    let columns = columns.query_map([catalog], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let columns = columns.collect::<duckdb::Result<Vec<(String, String)>>>()?;
    let has =
        |(name, kind): &(&str, &str)| columns.iter().any(|(found, of)| found == name && of == kind);
    Ok(if columns.is_empty() || COLUMNS.iter().all(has) {
        Ok(!columns.is_empty())
    } else {
        let found = columns.iter().map(|(name, kind)| format!("{name} {kind}"));
        let found = found.collect::<Vec<_>>().join(", ");
        Err(format!(
            "its table calendar must have the columns date DATE and is_open BOOLEAN; it has {found}"
        ))
    })
}
