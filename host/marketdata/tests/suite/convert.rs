//! Trades files become tables and come back as the same text.

use std::io::Read;
use std::path::Path;

use marketdata::convert::trade_fields;
use marketdata::parquet::{Kind, TableWriter, Values, read_table};
use marketdata::{ConvertError, ConvertReport, SampleCodes, SampleSpec, convert, write_sample};

use crate::common::{HEADER, TEXT, code, go_on, gzip};

const NAME: &str = "equities_trades_202501.csv.gz";

fn text_of(path: &Path) -> String {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// There and back; gives the report of the way there and the text that comes back.
fn round_trip(text: &str) -> (ConvertReport, String) {
    let folder = tempfile::tempdir().unwrap();
    let (from, table) = (folder.path().join(NAME), folder.path().join("trades.parquet"));
    std::fs::write(&from, gzip(text)).unwrap();
    let there = convert(&from, &table, None, false, &mut go_on).unwrap();
    let back = convert(&table, &from, None, true, &mut go_on).unwrap();
    assert_eq!((there.rows, there.rows_with_text), (back.rows, back.rows_with_text));
    (there, text_of(&from))
}

#[test]
fn the_vendors_text_comes_back_byte_for_byte() {
    let (report, text) = round_trip(TEXT);
    assert_eq!(text, TEXT);
    assert_eq!((report.rows, report.rows_with_text), (7, 0));
}

#[test]
fn other_legal_spellings_come_back_too() {
    let text = format!(
        "{HEADER}\n\
         2025-01-06,13010,09:00:00.067558,01,4810.50,2200,21\n\
         2025-01-06,13010,09:00:00.067558,01,4810.50,2200,000000000017\n\
         2025-01-06,13010,09:00:00.067558,01,4810.0,2200,000000000018\n\
         2025-01-06,13010,09:00:00.067558,01,04810.0,2200,000000000019\n\
         \"2025-01-06\",13010,09:00:00.067558,01,4815,300,\"000000000022\"\n\
         2025-01-06,13010,09:00:00.0675580,01,4815,300,000000000023\n\
         2025-01-06,13010,09:00:01.123456789,01,4815,300,000000000024\n\
         2025-01-06,13010,09:00:02,01,4815,300,000000000025\r\n\
         2025-01-06,13010,09:00:03.000000,01,4815,300,9999999999999999999\n\
         2025-01-06,13010,09:00:04.000000,01,4815,300,000000000026\n"
    );
    let (report, back) = round_trip(&text);
    assert_eq!(back, text);
    assert_eq!((report.rows, report.rows_with_text), (10, 7));
}

/// Every oddity of a text: it comes back equal, or is refused with its line.
#[test]
fn whatever_a_text_has_comes_back_equal_or_is_refused_with_its_line() {
    let last = |text: &str| format!("line {}:", text.lines().count());
    let quoted = |text: &str| {
        text.lines().map(|line| format!("\"{}\"\n", line.replace(',', "\",\""))).collect::<String>()
    };
    let after_header = |text: &str, change: &dyn Fn(&str) -> String| {
        let (header, rows) = text.split_once('\n').unwrap();
        format!("{header}\n{}", change(rows))
    };
    let equal = |line: &str| (line.to_owned(), false);
    for (name, text) in [(NAME, TEXT), (MINUTE_NAME, MINUTES), (DAY_NAME, DAYS)] {
        let cases: Vec<(String, (String, bool))> = vec![
            (text.to_owned(), equal("")),
            (text.strip_suffix('\n').unwrap().to_owned(), (last(text), true)),
            (format!("\u{feff}{text}"), ("line 1:".to_owned(), true)),
            (text.replacen('\n', "\r\n", 1), ("line 1:".to_owned(), true)),
            (quoted("A,B\n") + text, ("line 1:".to_owned(), true)),
            (format!("{text}\n"), (format!("line {}:", text.lines().count() + 1), true)),
            (
                after_header(text, &|rows| rows.replacen('\n', " \n", 1)),
                // The last column of daily files is none that is read.
                if name == DAY_NAME { equal("") } else { ("line 2, column".to_owned(), true) },
            ),
            (
                after_header(text, &|rows| rows.replacen("2025-01-06", "2025-1-6", 1)),
                ("line 2, column Date".to_owned(), true),
            ),
            (after_header(text, &|rows| rows.replacen("4810", "04810", 1)), equal("")),
            (
                after_header(text, &|rows| rows.replacen(",4810", ",+4810", 1)),
                ("line 2, column".to_owned(), true),
            ),
            (after_header(text, &|rows| rows.replacen("\n", "\r\n", 1)), equal("")),
            (
                after_header(text, &|rows| rows.replacen("2025-01-06", "\"2025-01-06\"", 1)),
                equal(""),
            ),
        ];
        for (changed, (place, is_refused)) in cases {
            let folder = tempfile::tempdir().unwrap();
            let (from, table) = (folder.path().join(name), folder.path().join("t.parquet"));
            std::fs::write(&from, gzip(&changed)).unwrap();
            match convert(&from, &table, None, false, &mut go_on) {
                Err(error) => {
                    let error = error.to_string();
                    assert!(is_refused && error.contains(&place), "{name} {changed:?}: {error}");
                    assert!(!table.exists());
                }
                Ok(_) => {
                    assert!(!is_refused, "{name} {changed:?} was converted");
                    convert(&table, &from, None, true, &mut go_on).unwrap();
                    assert_eq!(text_of(&from), changed, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_row_that_is_no_text_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (from, table) = (folder.path().join(DAY_NAME), folder.path().join("t.parquet"));
    let mut bytes = DAYS.as_bytes().to_vec();
    let last = bytes.len() - 2;
    assert_eq!(bytes[last], b'x');
    bytes[last] = 0xff;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &bytes).unwrap();
    std::fs::write(&from, packed.finish().unwrap()).unwrap();
    let error = convert(&from, &table, None, false, &mut go_on).unwrap_err().to_string();
    assert!(error.contains("line 4: the row is no UTF-8 text"), "{error}");
    // What the line feed of the advice makes of a file is converted.
    std::fs::write(&from, gzip(DAYS.strip_suffix('\n').unwrap())).unwrap();
    let error = convert(&from, &table, None, false, &mut go_on).unwrap_err().to_string();
    assert!(error.ends_with("or add the line feed"), "{error}");
    std::fs::write(&from, gzip(DAYS)).unwrap();
    convert(&from, &table, None, false, &mut go_on).unwrap();
}

#[test]
fn a_sample_of_many_row_groups_comes_back_and_tables_are_typed() {
    let folder = tempfile::tempdir().unwrap();
    let spec = SampleSpec {
        seed: 3,
        start: "2025-01-06".parse().unwrap(),
        days: 10,
        codes: SampleCodes::Count(3),
        trades_per_code_day: 5_000,
    };
    let sample = write_sample(folder.path(), &spec).unwrap();
    let (from, table) = (&sample.files[0].path, folder.path().join("all.parquet"));
    let mut told = 0;
    let report = convert(from, &table, None, false, &mut |progress| {
        told += 1;
        go_on(progress)
    });
    assert_eq!((report.unwrap().rows, report_free(sample.rows)), (sample.rows, true));
    let whole = read_table(&table).unwrap();
    assert_eq!((whole.rows() as u64, whole.fields.clone()), (sample.rows, trade_fields()));
    assert_eq!(whole.fields[0].kind, Kind::Timestamp);
    let original = text_of(from);
    let back = folder.path().join("back");
    std::fs::create_dir(&back).unwrap();
    let back = back.join(NAME);
    convert(&table, &back, None, false, &mut |progress| {
        told += 1;
        go_on(progress)
    })
    .unwrap();
    assert!(text_of(&back) == original);
    assert!(told > 1);
    // The sample's own bytes too: text and compression are the same.
    assert!(std::fs::read(&back).unwrap() == std::fs::read(from).unwrap());
}

/// More rows than one row group holds.
fn report_free(rows: u64) -> bool {
    rows > marketdata::limits::CONVERT_GROUP_ROWS as u64
}

#[test]
fn one_code_can_be_taken_out_in_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    let (from, table) = (folder.path().join(NAME), folder.path().join("one.parquet"));
    std::fs::write(&from, gzip(TEXT)).unwrap();
    let one = convert(&from, &table, Some(code("13010")), false, &mut go_on).unwrap();
    assert_eq!(one.rows, 5);
    let whole = folder.path().join("whole.parquet");
    convert(&from, &whole, None, false, &mut go_on).unwrap();
    convert(&whole, &from, Some(code("130A0")), true, &mut go_on).unwrap();
    let expected = "2025-01-06,130A0,12:30:00.004211,02,1234,100,000000000001\n";
    assert_eq!(text_of(&from), format!("{HEADER}\n{expected}"));
    let none = convert(&whole, &from, Some(code("99990")), true, &mut go_on).unwrap_err();
    assert!(none.to_string().ends_with("has no rows of code 99990"), "{none}");
}

#[test]
fn nothing_is_overwritten_and_nothing_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let (from, table) = (folder.path().join(NAME), folder.path().join("t.parquet"));
    let bytes = gzip(TEXT);
    std::fs::write(&from, &bytes).unwrap();
    std::fs::write(&table, b"mine").unwrap();
    let refused = convert(&from, &table, None, false, &mut go_on).unwrap_err();
    assert!(refused.to_string().contains("exists; choose another name"), "{refused}");
    std::fs::write(&from, &bytes[..bytes.len() / 2]).unwrap();
    let damaged = convert(&from, &table, None, true, &mut go_on).unwrap_err();
    assert!(matches!(damaged, ConvertError::Data(_)), "{damaged}");
    assert_eq!(std::fs::read(&table).unwrap(), b"mine");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn what_cannot_be_converted_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let refused = |from: &Path, to: &Path| {
        convert(from, to, None, false, &mut go_on).unwrap_err().to_string()
    };
    assert!(refused(&at("a.csv"), &at("a.parquet")).contains("one of the two ends in .csv.gz"));
    assert!(refused(&at("a.csv.gz"), &at("a.parquet")).contains("is not named like a trades file"));
    std::fs::write(at(NAME), gzip(TEXT.replacen("Date,Code", "Code,Date", 1))).unwrap();
    assert!(
        refused(&at(NAME), &at("a.parquet")).contains("the vendor's own columns in their order")
    );
    let mut other = TableWriter::new(Vec::new(), &trade_fields()[..1]).unwrap();
    other.write(&[Values::Int(vec![Some(1)])]).unwrap();
    std::fs::write(at("other.parquet"), other.finish().unwrap()).unwrap();
    let february = at("equities_trades_202502.csv.gz");
    assert!(refused(&at("other.parquet"), &february).contains("is no table of trades"));
    std::fs::write(at(NAME), gzip(TEXT)).unwrap();
    convert(&at(NAME), &at("january.parquet"), None, false, &mut go_on).unwrap();
    let wrong = refused(&at("january.parquet"), &february);
    assert!(wrong.contains("row 0: its date is not in the period"), "{wrong}");
    assert!(!february.exists());
}

#[test]
fn tables_with_impossible_rows_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join(NAME);
    let good = || {
        vec![
            Values::Int(vec![Some(1_736_121_600_067_558_000)]),
            Values::Text(vec![Some("13010".into())]),
            Values::Int(vec![Some(48_100_000)]),
            Values::Int(vec![Some(100)]),
            Values::Int(vec![Some(1)]),
            Values::Int(vec![Some(2)]),
            Values::Text(vec![None]),
        ]
    };
    let written = |columns: &[Values]| {
        let path = folder.path().join("rows.parquet");
        let mut table = TableWriter::new(Vec::new(), &trade_fields()).unwrap();
        table.write(columns).unwrap();
        std::fs::write(&path, table.finish().unwrap()).unwrap();
        convert(&path, &to, None, true, &mut go_on)
    };
    assert_eq!(written(&good()).unwrap().rows, 1);
    for (column, values, wanted) in [
        (0, Values::Int(vec![Some(-1)]), "its moment is before 1970"),
        (1, Values::Text(vec![Some("x".into())]), "its code is no vendor code"),
        (2, Values::Int(vec![Some(0)]), "its price is not above 0"),
        (3, Values::Int(vec![Some(-5)]), "its quantity is below 0"),
        (4, Values::Int(vec![None]), "its transaction id is missing"),
        (5, Values::Int(vec![Some(-1)]), "an impossible number of digits"),
        (5, Values::Int(vec![Some(10)]), "an impossible number of digits"),
        (6, Values::Text(vec![Some("a\nb".into())]), "has a line feed inside"),
    ] {
        let mut columns = good();
        columns[column] = values;
        let error = written(&columns).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

const MINUTE_NAME: &str = "equities_bars_minute_202501.csv.gz";
const DAY_NAME: &str = "equities_bars_daily_202501.csv.gz";
const MINUTES: &str = "\
Date,Time,Code,O,H,L,C,Vo,Va
2025-01-06,09:00,13010,4810,4815,4805.0,4815,2500,12027500
\"2025-01-06\",09:00,130A0,1234,1234.5,1234,1234.5,100,123400
2025-01-06,11:30,13010,4820,4820,4820,4820,100.0,482000.0\r
2025-01-06,15:30,13010,4820,4820,4820,4820,1500,7230000
";
const DAYS: &str = "\
Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor,Note
2025-01-06,13010,4810.0,4830.0,4800.0,4820.0,0,0,4100,19746500,1.0,
2025-01-06,13050,,,,,0,0,,,1.0,\"a, b\"
2025-01-07,13050,,,,,0,0,0,0.0,1.0,x
";

/// There and back through `name`; the report of the way there and the text that comes back.
fn bars_round_trip(name: &str, text: &str) -> (ConvertReport, String) {
    let folder = tempfile::tempdir().unwrap();
    let (from, table) = (folder.path().join(name), folder.path().join("bars.parquet"));
    std::fs::write(&from, gzip(text)).unwrap();
    let there = convert(&from, &table, None, false, &mut go_on).unwrap();
    let back = convert(&table, &from, None, true, &mut go_on).unwrap();
    assert_eq!((there.rows, there.rows_with_text), (back.rows, back.rows_with_text));
    (there, text_of(&from))
}

#[test]
fn bars_come_back_byte_for_byte() {
    for (name, text, rows, with_text) in [(MINUTE_NAME, MINUTES, 4, 2), (DAY_NAME, DAYS, 3, 1)] {
        let (report, back) = bars_round_trip(name, text);
        assert_eq!(back, text);
        assert_eq!(report, ConvertReport { rows, rows_with_text: with_text });
    }
}

#[test]
fn bar_files_of_many_row_groups_come_back_as_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let spec = SampleSpec {
        seed: 3,
        start: "2025-01-06".parse().unwrap(),
        days: 15,
        codes: SampleCodes::Count(4),
        trades_per_code_day: 1_000,
    };
    let sample = marketdata::write_sample_with_bars(folder.path(), &spec).unwrap();
    for file in &sample.bar_files {
        let (table, back) = (folder.path().join("all.parquet"), folder.path().join("back"));
        let report = convert(&file.path, &table, None, true, &mut go_on).unwrap();
        std::fs::create_dir_all(&back).unwrap();
        let back = back.join(file.path.file_name().unwrap());
        convert(&table, &back, None, false, &mut go_on).unwrap();
        assert!(std::fs::read(&back).unwrap() == std::fs::read(&file.path).unwrap());
        let is_minute = file.granularity == domain::market::BarGranularity::Minute;
        let limit = marketdata::limits::CONVERT_BAR_GROUP_ROWS as u64;
        assert_eq!(report.rows > limit, is_minute, "{} rows", report.rows);
    }
}

#[test]
fn tables_of_bars_are_typed_and_other_tables_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at(DAY_NAME), gzip(DAYS)).unwrap();
    let only = Some(code("13050"));
    assert_eq!(convert(&at(DAY_NAME), &at("d.parquet"), only, false, &mut go_on).unwrap().rows, 2);
    convert(&at(DAY_NAME), &at("d.parquet"), None, true, &mut go_on).unwrap();
    let table = read_table(at("d.parquet")).unwrap();
    let names: Vec<&str> = table.fields.iter().map(|field| field.name.as_str()).collect();
    let expected = "ts_event open high low close volume text Date Code O H L C UL LL Vo Va \
                    AdjFactor Note";
    assert_eq!(names.join(" "), expected);
    assert_eq!(table.columns[1], Values::Int(vec![Some(48_100_000), None, None]));
    convert(&at("d.parquet"), &at(DAY_NAME), only, true, &mut go_on).unwrap();
    assert_eq!(text_of(&at(DAY_NAME)).lines().count(), 3);

    let refused = |from: &str, to: &str| {
        convert(&at(from), &at(to), None, true, &mut go_on).unwrap_err().to_string()
    };
    assert!(refused("d.parquet", MINUTE_NAME).contains("is no table of such bars"));
    assert!(refused("d.parquet", NAME).contains("is no table of trades"));
    let wrong = refused("d.parquet", "equities_bars_daily_202502.csv.gz");
    assert!(wrong.contains("row 0: its date is not in the period"), "{wrong}");
    for names in ["Date,Code,O,H,L,C,Vo,Va,open", "Date,Code,O,H,L,C,Vo,Va,a b"] {
        let text = format!("{names}\n2025-01-06,13010,1,1,1,1,1,1,1\n");
        std::fs::write(at(DAY_NAME), gzip(text)).unwrap();
        assert!(refused(DAY_NAME, "x.parquet").contains("letters, digits and underscores"));
    }
}
