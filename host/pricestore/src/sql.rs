//! What all statements need: quoting, single columns, and rows that come and go as columns.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use domain::adjustment::Adjustment;
use duckdb::arrow::array::{ArrayRef, RecordBatch};
use duckdb::types::FromSql;
use duckdb::{Config, Connection, Error, Result, Statement};

/// The version of DuckDB that this program is made for: others write databases that it cannot read.
const ENGINE: &str = "v1.5.6";

/// The statement of [`objects`].
const OBJECTS: &str = "
    SELECT DISTINCT lower(concat(kind, ' ', schema_name, '.', name)) FROM (
      SELECT 'schema' AS kind, schema_name, '' AS name
        FROM duckdb_schemas() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'table', schema_name, table_name
        FROM duckdb_tables() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'view', schema_name, view_name
        FROM duckdb_views() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'macro', schema_name, function_name
        FROM duckdb_functions() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'sequence', schema_name, sequence_name
        FROM duckdb_sequences() WHERE database_name = $1
      UNION ALL SELECT 'type', schema_name, type_name
        FROM duckdb_types() WHERE database_name = $1 AND NOT internal
      UNION ALL SELECT 'index', schema_name, index_name
        FROM duckdb_indexes() WHERE database_name = $1
      UNION ALL SELECT 'comment', schema_name, table_name
        FROM duckdb_tables() WHERE database_name = $1 AND comment IS NOT NULL
      UNION ALL SELECT 'comment', schema_name, view_name
        FROM duckdb_views() WHERE database_name = $1 AND comment IS NOT NULL
      UNION ALL SELECT 'comment', schema_name, concat(table_name, '.', column_name)
        FROM duckdb_columns() WHERE database_name = $1 AND comment IS NOT NULL)";

/// Starts an instance of the engine in memory. It loads no extension by itself: a file that is opened could ask for
/// one, which the engine would fetch from the network. Times with a zone are shown in UTC on every machine.
///
/// # Errors
/// What DuckDB says, or that the library is of another version.
pub fn open(config: Config) -> Result<Connection> {
    let connection =
        Connection::open_in_memory_with_flags(config.enable_autoload_extension(false)?)?;
    let found = connection.version()?;
    if found != ENGINE {
        let what = format!(
            "DuckDB's library has version {found}, and this program needs {ENGINE}; put that version beside \
             the program, and check that LD_LIBRARY_PATH names no other"
        );
        return Err(Error::ToSqlConversionFailure(what.into()));
    }
    // Only the library knows zones; compiled in, the engine shows UTC.
    if cfg!(not(feature = "bundled")) {
        connection.execute_batch("SET TimeZone = 'UTC'")?;
    }
    Ok(connection)
}

/// A query for the fraction that each number of a relation's column is read as, where it is not 1: columns `factor`,
/// `shares_new` and `shares_old`. It is `Adjustment::of_factor` as a statement: of the fractions with terms of at
/// most 1,000 the nearest, of two the one with the smaller terms. All of it is exact.
#[must_use]
pub fn fractions(relation: &str, column: &str) -> String {
    let (most, scale) = (Adjustment::TERM_MAX, 1_000_000_000_000_u64);
    format!(
        "SELECT factor, shares_new, shares_old
         FROM (SELECT *, abs(value * shares_new - shares_old * {scale}) / shares_new AS away
           FROM (SELECT factor, value, shares_new, greatest(1, least({most},
                 (value * shares_new * 2 + {scale}) // (2 * {scale}))) AS shares_old
             FROM (SELECT factor, round(factor * 1e12)::BIGINT AS value
                 FROM (SELECT DISTINCT {column} AS factor FROM {relation}
                   WHERE {column} BETWEEN 0.001 AND {most} AND {column} <> 1)),
               (SELECT unnest(range(1, {most} + 1)) AS shares_new)))
         QUALIFY row_number() OVER (PARTITION BY factor ORDER BY away, shares_new) = 1"
    )
}

/// A price of an earlier day as it compares with later ones, where `shares_old` became `shares_new`: in whole 1/10,000
/// yen until it is divided, so that a price that did not move is the same number.
#[must_use]
pub fn adjusted_price(price: &str, shares_new: &str, shares_old: &str) -> String {
    format!("round({price} * 1e4) * {shares_old} / {shares_new} / 1e4")
}

/// A volume of an earlier day likewise, in whole shares.
#[must_use]
pub fn adjusted_volume(volume: &str, shares_new: &str, shares_old: &str) -> String {
    format!("round({volume} * {shares_new} / {shares_old})")
}

/// Quotes a text as an SQL string.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Whether a database can be opened: without waiting for a pipe in the place of its file or of its log, and in a
/// storage format that the engine reads.
///
/// # Errors
/// What the system says, that one of them is no file, or that a newer engine has written it and how it is converted.
pub fn must_be_database(path: &Path) -> io::Result<()> {
    atomic_file::must_be_file(path)?;
    atomic_file::must_be_file(&log_of(path))?;
    let mut head = [0; HEAD_BYTES];
    // What is missing or shorter is for the engine to judge.
    if File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_err() {
        return Ok(());
    }
    match newer(&head) {
        None => Ok(()),
        Some(writer) => Err(io::Error::other(format!(
            "{file} was written by DuckDB {writer}, in a storage format that this program's DuckDB {ENGINE} \
             does not read. Open {file} with that version and convert it by\n  \
             ATTACH {converted} AS converted (STORAGE_VERSION '{version}');\n  \
             COPY FROM DATABASE \"{name}\" TO converted;\nand put the converted file in its place",
            file = path.display(),
            converted = quoted(&path.with_extension("converted.db").to_string_lossy()),
            version = crate::STORAGE_VERSION,
            name = path.file_stem().unwrap_or_default().to_string_lossy().replace('"', "\"\""),
        ))),
    }
}

/// Bytes of a database's file up to the end of the version that wrote it.
const HEAD_BYTES: usize = 84;
/// The highest number of a storage format that the engine reads.
const STORAGE_NUMBER_MAX: u64 = 68;

/// The version that wrote a file in a storage format that the engine does not read.
fn newer(head: &[u8; HEAD_BYTES]) -> Option<String> {
    let number = head.get(12..20)?.try_into().map(u64::from_le_bytes).ok()?;
    let writer = head.get(52..)?.iter().take_while(|byte| byte.is_ascii_graphic());
    let writer: String = writer.map(|byte| char::from(*byte)).collect();
    // Else it is damaged, of which the engine tells.
    let is_newer =
        head.get(8..12)? == b"DUCK" && number > STORAGE_NUMBER_MAX && writer.starts_with('v');
    is_newer.then_some(writer)
}

/// Whether a database that this program has published is as it was published: without a log beside it, in which
/// somebody has changed it, and which the engine would take up each time that it is opened, with whatever file has
/// the name then.
///
/// # Errors
/// As [`must_be_database`], or that there is such a log.
pub fn must_be_published(path: &Path) -> io::Result<()> {
    must_be_database(path)?;
    let log = log_of(path);
    match log.try_exists()? {
        false => Ok(()),
        true => Err(io::Error::other(format!(
            "{} exists: another program changed the database and did not close it. These changes are not the \
             job's prices. Move this file away",
            log.display()
        ))),
    }
}

/// DuckDB's log of what is not in a database's file yet.
#[must_use]
pub fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push(".wal");
    PathBuf::from(log)
}

/// Quotes a path as an SQL string. DuckDB would take `~` at the beginning of one for the user's home, and
/// a word before a colon for a kind of database or server, in a whole path neither.
#[must_use]
pub fn quoted_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = !matches!(path.components().next(), Some(Component::Normal(_)))
        || !(text.starts_with('~') || text.contains(':'));
    match std::path::absolute(path) {
        Ok(whole) if !is_plain => quoted(&whole.to_string_lossy()),
        _ => quoted(&text),
    }
}

/// A view in place of the tables `daily` and `calendar` of an attached database, where there is one; views in
/// schemas of somebody's own are read by nobody. A view of somebody else's may read any file of this machine.
///
/// # Errors
/// What DuckDB says.
pub fn view_among(connection: &Connection, database: &str) -> Result<Option<String>> {
    let views = "SELECT view_name FROM duckdb_views() WHERE database_name = ? AND NOT internal
        AND schema_name = 'main' AND lower(view_name) IN ('daily', 'calendar') ORDER BY 1 LIMIT 1";
    let mut views = connection.prepare(views)?;
    views.query_map([database], |row| row.get(0))?.next().transpose()
}

/// What somebody has made in an attached database, like `table main.daily`: each schema but the engine's own,
/// each table, view, macro, sequence, type and index, and each comment. In lower case, because the engine
/// does not tell names by their case.
///
/// # Errors
/// What DuckDB says.
pub fn objects(connection: &Connection, database: &str) -> Result<BTreeSet<String>> {
    let mut objects = connection.prepare(OBJECTS)?;
    objects.query_map([database], |row| row.get(0))?.collect()
}

/// The first column of what a statement finds.
///
/// # Errors
/// What DuckDB says.
pub fn column<T: FromSql>(connection: &Connection, sql: &str) -> Result<Vec<T>> {
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// An expression for the digest of all rows with these columns: the same for the same rows in any order,
/// and within one version of the engine only. Each row's hash is hashed once more, because the engine
/// joins the hashes of columns by exclusive or: a value that many rows have, and another one later, would
/// be taken out by its like in another row.
#[must_use]
pub fn digest_of_rows(columns: &str) -> String {
    format!("bit_xor(hash(hash({columns})))")
}

/// Columns of one length as rows for [`append`].
///
/// # Errors
/// When the lengths differ.
pub fn rows<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> Result<RecordBatch> {
    RecordBatch::try_from_iter(columns)
        .map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))
}

/// Appends batches of rows to a table of an attached database that has their columns in their order.
///
/// # Errors
/// What DuckDB says. Some of the rows may be there then; a transaction takes them back.
pub fn append(
    connection: &Connection,
    (catalog, table): (&str, &str),
    batches: impl IntoIterator<Item = RecordBatch>,
) -> Result<()> {
    let mut appender = connection.appender_to_catalog_and_db(table, catalog, "main")?;
    for batch in batches {
        appender.append_record_batch(batch)?;
    }
    appender.flush()
}

/// Runs a statement and gives its rows as batches of columns, each read when it is asked for.
///
/// The library's own iterator panics where the engine fails in the middle of an answer; this one gives the error.
/// All batches are read here.
///
/// # Errors
/// What DuckDB says, before the first batch or in place of a later one; nothing follows an error.
pub fn batches(statement: &mut Statement<'_>) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
    drop(statement.stream_arrow([])?);
    let statement = &*statement;
    let mut is_over = false;
    Ok(std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let next = statement.step().map(|rows| rows.map(RecordBatch::from)).map_err(in_words);
        let next = next.transpose();
        is_over = !matches!(next, Some(Ok(_)));
        next
    }))
}

/// An error in words, where the engine tells one as JSON.
fn in_words(error: Error) -> Error {
    let Error::DuckDBFailure(code, Some(text)) = error else { return error };
    let told = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
    let part = |name: &str| told[name].as_str();
    let words = part("exception_type").zip(part("exception_message"));
    let text = words.map(|(kind, message)| format!("{kind} Error: {message}")).unwrap_or(text);
    Error::DuckDBFailure(code, Some(text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_answer_that_fails_in_the_middle_is_an_error_and_the_connection_goes_on() {
        let connection = Connection::open_in_memory().unwrap();
        let sql = "SELECT CASE WHEN i = 9000000 THEN error('broken here') ELSE i::VARCHAR END FROM range(9100000) t(i)";
        let mut statement = connection.prepare(sql).unwrap();
        let read: Vec<_> = batches(&mut statement).unwrap().collect();
        let (last, before) = read.split_last().unwrap();
        assert!(last.as_ref().unwrap_err().to_string().contains("broken here"), "{last:?}");
        assert!(!before.is_empty() && before.iter().all(Result::is_ok), "it is no answer's middle");
        drop(read);
        drop(statement);
        assert_eq!(column::<i64>(&connection, "SELECT 42").unwrap(), [42]);
    }

    #[test]
    fn errors_that_the_engine_tells_as_json_are_put_in_words() {
        let told = |text: &str| {
            let code = duckdb::ffi::Error::new(duckdb::ffi::DuckDBError);
            in_words(Error::DuckDBFailure(code, Some(text.to_owned()))).to_string()
        };
        let json = r#"{"exception_type":"Out of Memory","exception_message":"no 4 MB\nmore"}"#;
        assert_eq!(told(json), "Out of Memory Error: no 4 MB\nmore");
        for plain in ["Binder Error: no column", "{\"a\": 1}", "17"] {
            assert_eq!(told(plain), plain);
        }
    }

    #[test]
    fn what_was_appended_in_a_transaction_is_taken_back_with_it() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE one (a BIGINT UNIQUE)").unwrap();
        let batch = |values: Vec<i64>| {
            let values: ArrayRef =
                std::sync::Arc::new(duckdb::arrow::array::Int64Array::from(values));
            rows([("a", values)]).unwrap()
        };
        let transaction = connection.unchecked_transaction().unwrap();
        append(&transaction, ("memory", "one"), [batch(vec![1, 2]), batch(vec![3])]).unwrap();
        assert_eq!(column::<i64>(&transaction, "SELECT a FROM one ORDER BY a").unwrap(), [1, 2, 3]);
        drop(transaction);
        assert_eq!(column::<i64>(&connection, "SELECT count(*) FROM one").unwrap(), [0]);
        append(&connection, ("memory", "one"), [batch(vec![7, 7])]).unwrap_err();
    }

    #[test]
    fn a_database_of_a_newer_engine_tells_who_wrote_it_and_how_it_is_converted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mother.db");
        must_be_database(&path).unwrap();
        Connection::open(&path).unwrap();
        must_be_database(&path).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[12..20].copy_from_slice(&(STORAGE_NUMBER_MAX + 1).to_le_bytes());
        bytes[52..84].fill(0);
        bytes[52..58].copy_from_slice(b"v2.0.1");
        fs::write(&path, &bytes).unwrap();
        let told = must_be_database(&path).unwrap_err().to_string();
        for part in [
            "mother.db was written by DuckDB v2.0.1, in a storage format that this program's DuckDB v1.5.6",
            "mother.converted.db' AS converted (STORAGE_VERSION 'v1.2.0');\n",
            "COPY FROM DATABASE \"mother\" TO converted;\n",
        ] {
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn all_that_somebody_has_made_is_listed() {
        let connection = Connection::open_in_memory().unwrap();
        assert_eq!(objects(&connection, "memory").unwrap(), BTreeSet::new());
        connection
            .execute_batch(
                "CREATE TABLE Daily (code VARCHAR PRIMARY KEY, close DOUBLE); CREATE SCHEMA mine;
                 CREATE TABLE mine.daily AS SELECT 1 AS one; CREATE VIEW mine.tops AS FROM mine.daily;
                 CREATE MACRO twice(x) AS x * 2; CREATE MACRO ones() AS TABLE SELECT 1 AS one;
                 CREATE SEQUENCE mine.numbers; CREATE TYPE mood AS ENUM ('a'); CREATE INDEX by_close ON daily (close);
                 COMMENT ON TABLE mine.daily IS 'notes'; COMMENT ON COLUMN mine.daily.one IS 'notes';
                 COMMENT ON VIEW mine.tops IS 'notes'",
            )
            .unwrap();
        let expected = [
            "comment mine.daily",
            "comment mine.daily.one",
            "comment mine.tops",
            "index main.by_close",
            "macro main.ones",
            "macro main.twice",
            "schema mine.",
            "sequence mine.numbers",
            "table main.daily",
            "table mine.daily",
            "type main.mood",
            "view mine.tops",
        ];
        let found = objects(&connection, "memory").unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        assert_eq!(objects(&connection, "temp").unwrap(), BTreeSet::new());
    }

    #[test]
    fn paths_mean_files_below_this_folder() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_string_lossy();
        for (path, expected) in [
            ("data/x.db", "'data/x.db'".to_owned()),
            ("it's/x.db", "'it''s/x.db'".to_owned()),
            ("a/~/x.db", "'a/~/x.db'".to_owned()),
            ("/~/a:b/x.db", "'/~/a:b/x.db'".to_owned()),
            ("~/x.db", format!("'{here}/~/x.db'")),
            ("~me", format!("'{here}/~me'")),
            ("http:/a/x.db", format!("'{here}/http:/a/x.db'")),
        ] {
            assert_eq!(quoted_path(Path::new(path)), expected);
        }
    }
}
