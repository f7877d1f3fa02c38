//! The table of a per-issue database, and `daily` as a view of it.
//!
//! In blocks of 16 KB the engine leaves a `DATE` unpacked, 4 bytes a row and a tenth of the file, but
//! packs a number of 16 bits to next to nothing. And a text that all rows share costs a quarter of the
//! time of writing the file, a number that they share nothing. So days, the code and sources, of which there
//! are few, are stored as numbers; readers see the columns of the combined database in their order and with
//! their types.

use pricestore::sql::quoted;

use super::schema::{ADJUSTED_MARK, COLUMNS};

/// The table below the view `daily`.
pub(super) const TABLE: &str = "packed_daily";

/// The day with number 0; a number of 16 bits reaches from 1910-04-15 to 2089-09-17, and what lies
/// beyond is refused by the engine.
const DAY_0: &str = "DATE '2000-01-01'";

/// What stands for a day in the table.
const DAY: &str = "SMALLINT";

/// What stands for a code in the table; see [`code_number`].
const CODE: &str = "BIGINT";

/// What stands for a source in the table: its place among the sources, from 1.
const SOURCE: &str = "UTINYINT";

/// What divides the names of the sources in the view.
const DIVIDER: &str = ";";

/// The column that only the view `adjusted` reads: whether what compares with the later rows is known,
/// as far as no row was lost and no day is missing in between (rule `adjusted`).
pub(super) const COMPARABLE: &str = "comparable";

/// More sources than this in one database are stored as they are: the view names them in every file.
const SOURCES_MAX: usize = 64;
/// So are sources whose names have more bytes together.
const SOURCES_BYTES_MAX: usize = 1_024;

/// The place of the code among the table's columns.
pub(super) const CODE_PLACE: usize = 1;

/// A code as a number: its letters as the bytes of it, the first one the highest.
pub(super) fn code_number(code: &str) -> i64 {
    code.bytes().fold(0, |number, byte| number << 8 | i64::from(byte))
}

/// The sources of a database, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Sources(Vec<String>);

impl Sources {
    /// All sources of the rows, each once.
    pub(super) const fn new(sources: Vec<String>) -> Self {
        Self(sources)
    }

    fn are_numbers(&self) -> bool {
        let is_plain = |source: &String| !source.contains(DIVIDER);
        (1..=SOURCES_MAX).contains(&self.0.len())
            && self.0.iter().map(String::len).sum::<usize>() <= SOURCES_BYTES_MAX
            && self.0.iter().all(is_plain)
    }

    /// The definitions of the table's columns.
    pub(super) fn definitions(&self) -> String {
        let columns = COLUMNS.map(|(name, kind)| match name {
            "date" => (name, DAY),
            "code" => (name, CODE),
            "source" if self.are_numbers() => (name, SOURCE),
            _ => (name, kind),
        });
        let columns = columns.map(|(name, kind)| format!("{name} {kind}")).join(", ");
        format!("{columns}, {ADJUSTED_MARK} BOOLEAN, {COMPARABLE} BOOLEAN")
    }

    /// What fills the table's columns but the one at [`CODE_PLACE`] from those of a published database;
    /// `comparable` is SQL.
    pub(super) fn values(&self, comparable: &str) -> String {
        let value = |name| match name {
            "date" => format!("(date - {DAY_0})::{DAY} AS date"),
            "source" if self.are_numbers() => {
                let numbers = self.0.iter().zip(1..);
                let cases =
                    numbers.map(|(text, number)| format!(" WHEN {} THEN {number}", quoted(text)));
                format!("(CASE source{} END)::{SOURCE} AS source", cases.collect::<String>())
            }
            name => String::from(name),
        };
        let names = COLUMNS.into_iter().map(|(name, _)| name).filter(|name| *name != "code");
        let values: Vec<String> = names.map(value).collect();
        format!("{}, {ADJUSTED_MARK}, {comparable} AS {COMPARABLE}", values.join(", "))
    }

    /// The view `daily`, with the names and types that a published database has. What is said of a database
    /// takes a block of its own in each file where it is some words longer than this.
    pub(super) fn view(&self) -> String {
        let source = match self.are_numbers() {
            true => {
                let texts = quoted(&self.0.join(DIVIDER));
                format!(", split_part({texts}, '{DIVIDER}', source) AS source")
            }
            false => String::new(),
        };
        format!(
            "CREATE VIEW daily AS SELECT * EXCLUDE {COMPARABLE} REPLACE ({DAY_0} + date::INTEGER AS date,
               decode(unhex(hex(code))) AS code{source}) FROM {TABLE}"
        )
    }
}

/// The names of the table's columns, in this form and in those before.
pub(super) fn names() -> Vec<&'static str> {
    let own = ["day", ADJUSTED_MARK, COMPARABLE];
    COLUMNS.into_iter().map(|(name, _)| name).chain(own).collect()
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
        let divided = ["one;two".to_owned(), "three".to_owned()];
        let long = ["x".repeat(SOURCES_BYTES_MAX), "y".to_owned()];
        for (sources, kind) in [
            (&many[..SOURCES_MAX], "UTINYINT"),
            (&many, "VARCHAR"),
            (&divided, "VARCHAR"),
            (&long, "VARCHAR"),
            (&[], "VARCHAR"),
        ] {
            let connection = Connection::open_in_memory().unwrap();
            let source = sources.last().map_or("NULL".to_owned(), |source| quoted(source));
            let sources = Sources::new(sources.to_vec());
            let create = format!(
                "CREATE TABLE {TABLE} ({}); {}; CREATE TABLE rows ({})",
                sources.definitions(),
                sources.view(),
                crate::store::schema::published_definitions()
            );
            connection.execute_batch(&create).unwrap();
            let type_of = format!(
                "SELECT data_type FROM duckdb_columns() WHERE table_name = '{TABLE}'
                   AND column_name = 'source'"
            );
            let found: String = connection.query_row(&type_of, [], |row| row.get(0)).unwrap();
            assert_eq!(found, kind);
            let fill = format!(
                "INSERT INTO rows VALUES
                   ('1910-04-15', '1301', 1, 2.5, NULL, 3, 0, 1e12, 0.5, {source}, true),
                   ('2089-09-17', '25935', 1, 2.5, 1, 3, 7, NULL, 1, NULL, false);
                 INSERT INTO {TABLE} BY NAME SELECT {}, CASE code WHEN '1301' THEN {} ELSE {} END AS code FROM rows",
                sources.values("true"),
                code_number("1301"),
                code_number("25935")
            );
            connection.execute_batch(&fill).unwrap();
            let place = sources.definitions().split(", ").position(|one| one.starts_with("code "));
            assert_eq!(place, Some(CODE_PLACE));
            assert_eq!(shown(&connection, "daily"), shown(&connection, "rows"));
        }
    }

    #[test]
    fn a_day_that_has_no_number_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        for day in ["1910-04-14", "2089-09-18"] {
            let sql = Sources::new(Vec::new()).values("true");
            let (day_value, _) = sql.split_once(" AS ").unwrap();
            let select = format!("SELECT {day_value} FROM (SELECT DATE '{day}' AS date)");
            let error = connection.query_row(&select, [], |row| row.get::<_, i16>(0)).unwrap_err();
            assert!(error.to_string().contains("out of range"), "{error}");
        }
    }
}
