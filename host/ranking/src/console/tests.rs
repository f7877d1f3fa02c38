//! What statements can do, and what they cannot.

use std::fs;

use super::*;

fn data() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mother = DataDir::new(folder.path()).mother();
    fs::create_dir_all(mother.parent().unwrap()).unwrap();
    let connection = Connection::open(&mother).unwrap();
    let tables = "CREATE TABLE daily (date DATE, code VARCHAR, close DOUBLE, volume DOUBLE); \
                  INSERT INTO daily VALUES ('2024-01-04', '7203', 2500.5, 100), \
                  ('2024-01-05', '7203', 2501, NULL), ('2024-01-04', '1301', 3000, 5)";
    connection.execute_batch(tables).unwrap();
    connection.close().unwrap();
    let runs = folder.path().join("narrative").join("first");
    fs::create_dir_all(&runs).unwrap();
    fs::write(runs.join("narrative.csv"), "ts_event_ns,text\n1,hello\n2,\"a, b\"\n").unwrap();
    let audit = folder.path().join("audit");
    fs::create_dir_all(&audit).unwrap();
    fs::write(audit.join("audit.jsonl"), "{\"what\":\"start\",\"n\":1}\n").unwrap();
    folder
}

fn console(folder: &tempfile::TempDir) -> Console {
    let options = ConsoleOptions { rows: Some(100), ..ConsoleOptions::default() };
    Console::open(&DataDir::new(folder.path()), &options).unwrap()
}

fn ask(console: &Console, sql: &str) -> Result<Table, ConsoleError> {
    console.query(sql, &CancelToken::new())
}

#[test]
fn views_show_what_is_stored() {
    let folder = data();
    let console = console(&folder);
    let names: Vec<&str> = console.views().iter().map(|view| view.name.as_str()).collect();
    assert_eq!(names, ["audit", "daily", "narrative"]);
    let table =
        ask(&console, "SELECT date, close, volume FROM daily WHERE code = '7203' ORDER BY 1;");
    let table = table.unwrap();
    assert_eq!(
        table.columns.iter().map(|column| column.numeric).collect::<Vec<_>>(),
        [false, true, true]
    );
    let cell = |row: usize, column: usize| table.rows[row][column].as_deref();
    assert_eq!((cell(0, 0), cell(0, 1), cell(1, 2)), (Some("2024-01-04"), Some("2500.5"), None));
    let table = ask(&console, "SELECT text FROM narrative ORDER BY ts_event_ns -- last").unwrap();
    assert_eq!(table.rows, [[Some("hello".to_owned())], [Some("a, b".to_owned())]]);
    assert_eq!(ask(&console, "SELECT what FROM audit").unwrap().rows.len(), 1);
    assert!(ask(&console, "DESCRIBE daily").unwrap().rows.len() == 4);
    let plan = ask(&console, "explain SELECT code, avg(close) FROM daily GROUP BY code").unwrap();
    assert!(format!("{:?}", plan.rows).contains("HASH_GROUP_BY"), "{plan:?}");
}

#[test]
fn answers_are_cut_and_say_so() {
    let folder = data();
    let console = console(&folder);
    let table = ask(&console, "SELECT * FROM range(100)").unwrap();
    assert_eq!((table.rows.len(), table.cut), (100, false));
    let table = ask(&console, "SELECT * FROM range(101)").unwrap();
    assert_eq!((table.rows.len(), table.cut), (100, true));
    let long = format!("SELECT '{}'", "x".repeat(SQL_BYTES_MAX));
    assert!(matches!(ask(&console, &long), Err(ConsoleError::Refused(_))));
}

#[test]
fn nothing_can_be_changed_or_read_elsewhere() {
    let folder = data();
    fs::write(folder.path().join("secret.csv"), "a\n1\n").unwrap();
    let console = console(&folder);
    let inside = |name: &str| folder.path().join(name).display().to_string();
    for sql in [
        "CREATE TABLE t AS SELECT 1".to_owned(),
        "INSERT INTO mother.daily VALUES ('2024-01-09', 'x', 1, 1)".to_owned(),
        "DELETE FROM mother.daily".to_owned(),
        "DROP VIEW daily".to_owned(),
        "SET memory_limit = '100GB'".to_owned(),
        "SET enable_external_access = true".to_owned(),
        "PRAGMA enable_profiling".to_owned(),
        "SELECT * FROM enable_profiling()".to_owned(),
        "SELECT (SELECT count(*) FROM enable_logging()) AS n".to_owned(),
        "EXPLAIN ANALYZE SELECT * FROM disable_logging()".to_owned(),
        "SELECT * FROM query('SELECT * FROM enable_' || 'profiling()')".to_owned(),
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM force_checkpoint()'))"
            .to_owned(),
        "WITH w AS MATERIALIZED (SELECT * FROM truncate_duckdb_logs()) SELECT * FROM w, w AS v".to_owned(),
        "INSTALL httpfs".to_owned(),
        format!("ATTACH '{}' AS other", inside("new.db")),
        format!("COPY (SELECT 1) TO '{}'", inside("out.csv")),
        format!("COPY (SELECT 1) TO '{}'", inside("narrative/first/narrative.csv")),
        format!("EXPLAIN ANALYZE COPY (SELECT 1) TO '{}'", inside("audit/audit.jsonl")),
        format!("SELECT * FROM read_csv('{}')", inside("secret.csv")),
        format!("SELECT * FROM '{}'", inside("secret.csv")),
        format!("SELECT * FROM glob('{}/*')", folder.path().display()),
        "SELECT 1; SELECT 2".to_owned(),
        "SELECT 1) TO 'x'; --".to_owned(),
        "SELECT 1) LIMIT 1; DROP VIEW daily; SELECT * FROM (SELECT 1".to_owned(),
        String::new(),
        "SELEC 1".to_owned(),
    ] {
        let error = ask(&console, &sql).expect_err(&sql);
        assert!(!error.to_string().is_empty(), "{sql}");
    }
    assert!(!folder.path().join("out.csv").exists() && !folder.path().join("new.db").exists());
    let text = fs::read_to_string(folder.path().join("narrative/first/narrative.csv")).unwrap();
    assert!(text.starts_with("ts_event_ns"));
    let table = ask(&console, "SELECT count(*) FROM daily").unwrap();
    assert_eq!(table.rows[0][0].as_deref(), Some("3"));
}

#[test]
fn a_cancelled_statement_ends() {
    let folder = data();
    let console = console(&folder);
    let cancel = CancelToken::new();
    let other = cancel.clone();
    let endless =
        "SELECT count(*) FROM range(100000000000) a, range(1000) b WHERE a.range % 7 = b.range";
    std::thread::scope(|scope| {
        scope.spawn(move || other.cancel());
        let error = console.query(endless, &cancel).expect_err("it never ends by itself");
        assert!(matches!(error, ConsoleError::Cancelled), "{error}");
    });
    assert!(ask(&console, "SELECT 1").is_ok(), "the console goes on");
}

#[test]
fn memory_has_a_limit() {
    let folder = data();
    let options = ConsoleOptions { memory_bytes: 50_000_000, ..ConsoleOptions::default() };
    let console = Console::open(&DataDir::new(folder.path()), &options).unwrap();
    let error = ask(&console, "SELECT list(range) FROM range(100000000)").unwrap_err();
    assert!(error.to_string().contains("emory"), "{error}");
}

#[test]
fn an_empty_folder_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Console::open(&DataDir::new(folder.path()), &ConsoleOptions::default());
    let error = opened.err().expect("there is nothing");
    assert!(error.to_string().contains("kumiki data sample --daily"), "{error}");
    let mixed = folder.path().join("trades");
    fs::create_dir(&mixed).unwrap();
    fs::write(mixed.join("a.csv"), "a\n1\n").unwrap();
    fs::write(mixed.join("b.jsonl"), "{}\n").unwrap();
    let opened = Console::open(&DataDir::new(folder.path()), &ConsoleOptions::default());
    assert!(opened.err().expect("two forms").to_string().contains("several forms"));
}

#[test]
fn files_of_other_commands_become_views() {
    let folder = data();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.csv"), "code,price,note\n0123,1.5,\"x, y\"\n").unwrap();
    fs::write(path("b.csv"), "code,price,more\n130A,2,3\n").unwrap();
    fs::write(path("empty.csv"), "code,price,note\n").unwrap();
    let file = |name: &str| LabelledFile { path: path(name), label: format!("it's {name}") };
    let csv = FileView {
        name: "notes".to_owned(),
        form: FileForm::Csv,
        files: ["a.csv", "b.csv", "empty.csv"].map(file).to_vec(),
        label: Some("source"),
        types: [("price".to_owned(), "DECIMAL(38,4)"), ("none".to_owned(), "DATE")].into(),
    };
    let rows = RowsView {
        name: "numbers".to_owned(),
        columns: vec![("name".to_owned(), "VARCHAR"), ("value".to_owned(), "DOUBLE")],
        rows: vec![
            vec![Some("o'ne".to_owned()), Some("1.5".to_owned())],
            vec![Some("none".to_owned()), None],
        ],
    };
    let stored = vec![StoredView::Files(csv.clone()), StoredView::Rows(rows)];
    let options = ConsoleOptions { stored, ..ConsoleOptions::default() };
    let console = Console::open(&DataDir::new(folder.path()), &options).unwrap();
    let text = |sql: &str| {
        let rows = ask(&console, sql).unwrap().rows;
        let cell = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        let row =
            |row: Vec<Option<String>>| row.into_iter().map(cell).collect::<Vec<_>>().join("|");
        rows.into_iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(
        text("SELECT source, code, price, note, more FROM notes ORDER BY price"),
        ["it's a.csv|0123|1.5000|x, y|-", "it's b.csv|130A|2.0000|-|3"]
    );
    assert_eq!(text("SELECT name, value FROM numbers ORDER BY name"), ["none|-", "o'ne|1.5"]);
    // What no view is made of stays closed.
    fs::write(path("c.csv"), "a\n1\n").unwrap();
    let closed = format!("SELECT * FROM read_csv('{}')", path("c.csv").display());
    assert!(ask(&console, &closed).is_err());
    let opened = |view: FileView| {
        let stored = vec![StoredView::Files(view)];
        let options = ConsoleOptions { stored, ..ConsoleOptions::default() };
        Console::open(&DataDir::new(folder.path()), &options)
    };
    let twice = opened(FileView { name: "daily".to_owned(), ..csv.clone() });
    let twice = twice.err().unwrap().to_string();
    assert!(twice.contains("two views would have the name daily"), "{twice}");
    // Files that cannot be read take nothing away from the others.
    let refused = |view: FileView| {
        let console = opened(view).unwrap();
        assert_eq!(ask(&console, "SELECT count(*) FROM daily").unwrap().rows.len(), 1);
        ask(&console, "SELECT count(*) FROM notes").unwrap_err().to_string()
    };
    let missing = refused(FileView { files: vec![file("none.csv")], ..csv.clone() });
    assert!(missing.contains("the files of notes cannot be read"), "{missing}");
    let pattern = refused(FileView { files: vec![file("[a].csv")], ..csv });
    assert!(pattern.contains("give it another one"), "{pattern}");
}

/// Statements and Rust must not disagree on what a cell of a CSV file says.
#[test]
fn statements_read_guarded_cells_as_rust_does() {
    let connection = Connection::open_in_memory().unwrap();
    // Every character that there is, in front of a formula, of a number, behind a sign, and behind a number.
    for form in ["'{}=x", "'{}-5", "'={}", "'-5{}", "'{}", "{}=x", "''{}+1e5", "'+{}"] {
        let cell = text_literal(form).replace("{}", "' || chr(i::INTEGER) || '");
        let sql = format!(
            "SELECT i FROM (SELECT i, {cell} AS cell FROM range(1, 1114112) r(i) \
                            WHERE i NOT BETWEEN 55296 AND 57343) \
             WHERE {} <> cell ORDER BY i",
            stored::unguarded("cell")
        );
        let mut statement = connection.prepare(&sql).unwrap();
        let found = statement.query_map([], |row| row.get::<_, u32>(0)).unwrap();
        let found: Vec<u32> = found.collect::<Result<_, _>>().unwrap();
        let is_changed = |letter: &char| {
            let cell = form.replace("{}", &letter.to_string());
            domain::csv_cell::unguarded(&cell) != cell
        };
        let expected = ('\u{1}'..=char::MAX).filter(is_changed).map(u32::from);
        assert_eq!(found, expected.collect::<Vec<u32>>(), "{form}");
    }
    for number in
        ["-5", "+1.5e3", "-.5", "-5.", "-inf", "+NaN", "-Infinity", "-1_000", "- 5", "-0x1", "-"]
    {
        let cell = format!("'{number}");
        let sql = format!("SELECT {}", stored::unguarded(&text_literal(&cell)));
        let found: String = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(found, domain::csv_cell::unguarded(&cell), "{cell}");
    }
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_line() {
    let folder = data();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("good.csv"), "day,price,note\n2025-01-06,1,a\n").unwrap();
    let told = |name: &str, text: &str, column: &str| {
        fs::write(path(name), text).unwrap();
        let file = |name: &str| LabelledFile { path: path(name), label: name.to_owned() };
        let view = FileView {
            name: "notes".to_owned(),
            form: FileForm::Csv,
            files: vec![file("good.csv"), file(name)],
            label: Some("source"),
            types: [("price", "DECIMAL(38,4)"), ("day", "DATE")]
                .map(|(name, kind)| (name.to_owned(), kind))
                .into(),
        };
        let stored = vec![StoredView::Files(view)];
        let options = ConsoleOptions { stored, ..ConsoleOptions::default() };
        let console = Console::open(&DataDir::new(folder.path()), &options).unwrap();
        ask(&console, "SELECT 1").unwrap();
        let sql = format!("SELECT max({column}) FROM notes");
        ask(&console, &sql).unwrap_err().to_string()
    };
    let head = "day,note,price\n2025-01-06,\"two\nlines\",1\n";
    let many = format!("{head}{}2025-01-07,c\n", "2025-01-07,b,2\n".repeat(50_000));
    for (text, column, expected) in [
        (
            format!("{head}6 January,b,2\n"),
            "day",
            ", line 4: day is `6 January`, which is no date (YYYY-MM-DD)",
        ),
        (
            format!("{head}2025-01-07,b,many\n"),
            "price",
            ", line 4: price is `many`, which is no number",
        ),
        (format!("{head}2025-01-07,b\n"), "price", ", line 4: 2 columns where the head has 3"),
        (many, "price", ", line 50004: 2 columns where the head has 3"),
        (format!("{head}2025-01-07,\"b,2\n"), "price", ", line 4: a value begins with a quote"),
    ] {
        let found = told("bad.csv", &text, column);
        assert!(found.contains(&format!("bad.csv{expected}")), "{expected}: {found}");
        assert!(found.ends_with("; mend the file, or move it out of the folder"), "{found}");
    }
}

/// Puts a board of an issue into a data directory.
fn board(folder: &tempfile::TempDir, code: &str, sql: &str) {
    let boards = DataDir::new(folder.path()).jp_folder().join("stocks_board");
    fs::create_dir_all(&boards).unwrap();
    let connection = Connection::open(boards.join(format!("{code}.db"))).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
}

#[test]
fn boards_of_all_issues_are_two_views() {
    let folder = data();
    let sql = |code: &str, price: &str| {
        format!(
            "CREATE TABLE depth (code VARCHAR, last_price DECIMAL(18, 4));
             CREATE TABLE trades (code VARCHAR, price DECIMAL(18, 4));
             INSERT INTO depth VALUES ('{code}', NULL);
             INSERT INTO trades VALUES ('{code}', {price}), ('{code}', 1)"
        )
    };
    board(&folder, "7203", &sql("7203", "2000.5"));
    board(&folder, "130A", &sql("130A", "900"));
    // What others put there takes nothing away, and reads nothing.
    let boards = DataDir::new(folder.path()).jp_folder().join("stocks_board");
    fs::write(boards.join("9999.db"), "no database").unwrap();
    fs::write(boards.join("notes.db"), "no code").unwrap();
    let theirs = "CREATE VIEW depth AS SELECT 'x' AS code, 1 AS last_price;
        CREATE VIEW trades AS SELECT * FROM read_csv('/etc/hostname')";
    board(&folder, "8888", theirs);
    let console = console(&folder);
    let names: Vec<&str> = console.views().iter().map(|view| view.name.as_str()).collect();
    assert_eq!(names, ["audit", "board_depth", "board_trades", "daily", "narrative"]);
    let sums = "SELECT code, sum(price) FROM board_trades GROUP BY 1 ORDER BY 1";
    let rows = ask(&console, sums).unwrap().rows;
    let cells = |code: &str, sum: &str| [Some(code.to_owned()), Some(sum.to_owned())];
    assert_eq!(rows, [cells("130A", "901.0000"), cells("7203", "2001.5000")]);
    assert_eq!(ask(&console, "SELECT * FROM board_depth").unwrap().rows.len(), 2);
}

#[test]
fn boards_that_are_not_there_say_how_to_make_them() {
    let folder = data();
    let error = ask(&console(&folder), "SELECT * FROM board_trades").unwrap_err().to_string();
    assert!(
        error.ends_with("publish what an engine recorded with `kumiki data boards`"),
        "{error}"
    );
}

#[test]
fn too_many_boards_are_refused() {
    let folder = data();
    let boards = DataDir::new(folder.path()).jp_folder().join("stocks_board");
    fs::create_dir_all(&boards).unwrap();
    for number in 1_000..=1_000 + BOARDS_MAX {
        fs::write(boards.join(format!("{number}.db")), "").unwrap();
    }
    let console = console(&folder);
    let error = ask(&console, "SELECT * FROM board_trades").unwrap_err().to_string();
    assert!(error.contains("holds more than 500 boards"), "{error}");
    // The prices are there all the same.
    assert!(ask(&console, "SELECT * FROM daily").is_ok());
}
