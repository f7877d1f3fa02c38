//! The table of a per-issue database, and `daily` as a view of it.
//!
//! In blocks of 16 KB the engine leaves a `DATE` unpacked, 4 bytes a row and a tenth of the file, but
//! packs a number of 16 bits to next to nothing. So days are stored as such numbers, and sources, of
//! which there are few, as the words of an enumeration; readers see the columns of the combined
//! database in their order and with their types.

use pricestore::sql::quoted;

use super::schema::{ADJUSTED_MARK, COLUMNS};

/// The table below the view `daily`.
pub(super) const TABLE: &str = "packed_daily";

/// The day with number 0; a number of 16 bits reaches from 1910-04-15 to 2089-09-17, and what lies
/// beyond is refused by the engine.
const DAY_0: &str = "DATE '2000-01-01'";

/// The table's column in the place of `date`.
const DAY: (&str, &str) = ("day", "SMALLINT");

/// The column that only the view `adjusted` reads: whether what compares with the later rows is known,
/// as far as no row was lost and no day is missing in between (rule A5).
pub(super) const COMPARABLE: &str = "comparable";

/// More sources than this in one database are stored as they are: an enumeration is in every file.
const SOURCES_MAX: usize = 64;

/// Name and type of a column in the table.
fn packed(column: (&'static str, &'static str), sources: &str) -> (&'static str, String) {
    match column.0 {
        "date" => (DAY.0, DAY.1.to_owned()),
        "source" => ("source", sources.to_owned()),
        name => (name, column.1.to_owned()),
    }
}

/// The definitions of the table's columns, for these sources.
pub(super) fn definitions(sources: &[String]) -> String {
    let words: Vec<String> = sources.iter().map(|source| quoted(source)).collect();
    let sources = match sources.len() {
        1..=SOURCES_MAX => format!("ENUM({})", words.join(", ")),
        _ => "VARCHAR".to_owned(),
    };
    let columns = COLUMNS.map(|column| packed(column, &sources));
    let columns = columns.map(|(name, kind)| format!("{name} {kind}")).join(", ");
    format!("{columns}, {ADJUSTED_MARK} BOOLEAN, {COMPARABLE} BOOLEAN")
}

/// The names of the table's columns.
pub(super) fn names() -> Vec<&'static str> {
    let own = [ADJUSTED_MARK, COMPARABLE];
    COLUMNS.into_iter().map(|column| packed(column, "").0).chain(own).collect()
}

/// What fills the table's columns from those of a published database; `comparable` is SQL.
pub(super) fn values(comparable: &str) -> String {
    let value = |(name, _)| match name {
        "date" => format!("(date - {DAY_0})::{} AS {}", DAY.1, DAY.0),
        name => name.to_owned(),
    };
    let values = COLUMNS.map(value).join(", ");
    format!("{values}, {ADJUSTED_MARK}, {comparable} AS {COMPARABLE}")
}

/// The view `daily`, with the names and types that a published database has.
pub(super) fn view() -> String {
    let value = |(name, kind)| match name {
        "date" => format!("{DAY_0} + {}::INTEGER AS date", DAY.0),
        "source" => format!("source::{kind} AS source"),
        name => name.to_owned(),
    };
    let values = COLUMNS.map(value).join(", ");
    format!("CREATE VIEW daily AS SELECT {values}, {ADJUSTED_MARK} FROM {TABLE}")
}

#[cfg(test)]
mod tests {
    use duckdb::Connection;

    use super::*;

    /// The columns of a relation with their types, and its rows, as text.
    fn shown(connection: &Connection, relation: &str) -> Vec<String> {
        let mut shown = Vec::new();
        for sql in [
            format!("SELECT column_name || ' ' || column_type FROM (DESCRIBE {relation})"),
            format!("SELECT concat_ws('|', *COLUMNS(*)) FROM {relation}"),
        ] {
            shown.extend(pricestore::sql::column::<String>(connection, &sql).unwrap());
        }
        shown
    }

    #[test]
    fn the_view_gives_what_was_packed() {
        let many: Vec<String> = (0..=SOURCES_MAX).map(|number| format!("it's {number}")).collect();
        for (sources, kind) in
            [(&many[..SOURCES_MAX], "ENUM"), (&many, "VARCHAR"), (&[], "VARCHAR")]
        {
            let connection = Connection::open_in_memory().unwrap();
            let create = format!(
                "CREATE TABLE {TABLE} ({}); {}; CREATE TABLE rows ({})",
                definitions(sources),
                view(),
                crate::store::schema::published_definitions()
            );
            connection.execute_batch(&create).unwrap();
            let type_of = format!(
                "SELECT data_type FROM duckdb_columns() WHERE table_name = '{TABLE}'
                   AND column_name = 'source'"
            );
            let found: String = connection.query_row(&type_of, [], |row| row.get(0)).unwrap();
            assert!(found.starts_with(kind), "{found}");
            let source = sources.first().map_or("NULL".to_owned(), |source| quoted(source));
            let fill = format!(
                "INSERT INTO rows VALUES
                   ('1910-04-15', '1301', 1, 2.5, NULL, 3, 0, 1e12, 0.5, {source}, true),
                   ('2089-09-17', '130A', 1, 2.5, 1, 3, 7, NULL, 1, NULL, false);
                 INSERT INTO {TABLE} SELECT {} FROM rows",
                values("true")
            );
            connection.execute_batch(&fill).unwrap();
            assert_eq!(shown(&connection, "daily"), shown(&connection, "rows"));
        }
    }

    #[test]
    fn a_day_that_has_no_number_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        for day in ["1910-04-14", "2089-09-18"] {
            let sql = values("true");
            let (day_value, _) = sql.split_once(" AS ").unwrap();
            let select = format!("SELECT {day_value} FROM (SELECT DATE '{day}' AS date)");
            let error = connection.query_row(&select, [], |row| row.get::<_, i16>(0)).unwrap_err();
            assert!(error.to_string().contains("out of range"), "{error}");
        }
    }
}
