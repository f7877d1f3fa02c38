//! Tables survive their files; what does not fit is refused with its place.

use domain::ShortText;
use std::io;
use std::path::PathBuf;

use proptest::prelude::*;

use super::read::read_up_to;
use super::*;

const KINDS: [Kind; 7] =
    [Kind::Timestamp, Kind::Yen, Kind::Int, Kind::Double, Kind::Text, Kind::Bool, Kind::Date];

fn bytes_of(fields: &[Field], groups: &[Vec<Values>]) -> Result<Vec<u8>, ParquetError> {
    let mut writer = TableWriter::new(Vec::new(), fields)?;
    for group in groups {
        writer.write(group)?;
    }
    writer.finish()
}

fn file_with(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn back(bytes: &[u8]) -> Table {
    let (_folder, path) = file_with(bytes);
    read_table(path).unwrap()
}

fn ints(values: &[i64]) -> Values {
    Values::Int(values.iter().copied().map(Some).collect())
}

/// One column of each kind that may be empty, and one that may not.
fn all_fields() -> Vec<Field> {
    let mut fields = vec![Field::required("id", Kind::Int)];
    fields.extend(KINDS.map(|kind| Field::optional(kind.to_string(), kind)));
    fields
}

#[test]
fn every_kind_survives_with_and_without_values() {
    let group = vec![
        ints(&[1, 2, 3]),
        Values::Int(vec![Some(1_736_121_600_067_558_000), None, Some(i64::MIN)]),
        Values::Int(vec![Some(48_125_000), Some(-1), None]),
        Values::Int(vec![None, Some(i64::MAX), Some(0)]),
        Values::Double(vec![Some(0.1), None, Some(f64::NEG_INFINITY)]),
        Values::Text(vec![Some("組木,\"\n".into()), Some("".into()), None]),
        Values::Bool(vec![None, Some(true), Some(false)]),
        Values::Int(vec![Some(20_094), Some(-1), None]),
    ];
    let table = back(&bytes_of(&all_fields(), std::slice::from_ref(&group)).unwrap());
    assert_eq!(table.fields, all_fields());
    assert_eq!(table.columns, group);
    assert_eq!((table.rows(), table.column("yen")), (3, Some(&group[2])));
    assert_eq!(table.column("none"), None);
}

#[test]
fn row_groups_are_read_one_by_one() {
    let fields = [Field::required("n", Kind::Int), Field::optional("t", Kind::Text)];
    let group = |from: i64| {
        let text = Values::Text(vec![Some(from.to_string().into()), None]);
        vec![ints(&[from, from + 1]), text]
    };
    let nothing = vec![Values::empty(Kind::Int), Values::empty(Kind::Text)];
    let bytes = bytes_of(&fields, &[group(1), nothing, group(5)]).unwrap();
    let (_folder, path) = file_with(&bytes);
    let reader = TableReader::open(&path).unwrap();
    assert_eq!((reader.rows(), reader.groups(), reader.fields()), (4, 2, &fields[..]));
    assert_eq!(reader.group(0).unwrap(), group(1));
    assert_eq!(reader.group(1).unwrap(), group(5));
    assert!(reader.group(2).unwrap_err().to_string().contains("2 row groups, not 3"));
    assert_eq!(read_table(&path).unwrap().columns[0], ints(&[1, 2, 5, 6]));
}

#[test]
fn a_table_without_rows_keeps_its_columns() {
    let table = back(&bytes_of(&all_fields(), &[]).unwrap());
    assert_eq!((table.rows(), table.fields), (0, all_fields()));
}

#[test]
fn the_same_table_gives_the_same_bytes() {
    let fields = [Field::required("n", Kind::Int)];
    let numbers: Vec<i64> = (0..10_000).map(|n| n * n % 977).collect();
    let once = || bytes_of(&fields, &[vec![ints(&numbers)]]).unwrap();
    assert_eq!(once(), once());
    let marker = b"kumiki version 1";
    assert!(once().windows(marker.len()).any(|bytes| bytes == marker));
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let fields = [Field::required("n", Kind::Int), Field::required("day", Kind::Date)];
    let refused =
        |columns: &[Values]| bytes_of(&fields, &[columns.to_vec()]).unwrap_err().to_string();
    assert_eq!(refused(&[ints(&[1])]), "1 columns given for a table of 2");
    assert_eq!(
        refused(&[ints(&[1]), ints(&[1, 2])]),
        "column `day` has 2 rows, the first column has 1"
    );
    assert_eq!(
        refused(&[Values::Bool(vec![Some(true)]), ints(&[1])]),
        "column `n` holds integer values, bool values were given"
    );
    assert_eq!(
        refused(&[Values::Int(vec![Some(1), None]), ints(&[1, 2])]),
        "column `n` needs a value in every row, row 1 has none"
    );
    assert_eq!(
        refused(&[ints(&[1]), ints(&[1 << 40])]),
        "column `day`, row 0: day 1099511627776 after 1970-01-01 is out of range"
    );
    let too_many = vec![Some(0); ROW_GROUP_ROWS_MAX + 1];
    assert!(
        refused(&[Values::Int(too_many.clone()), Values::Int(too_many)])
            .contains("1048577 rows in one row group, the limit is 1048576")
    );
    assert!(bytes_of(&[], &[]).unwrap_err().to_string().contains("without columns"));
    let twice = [Field::required("n", Kind::Int), Field::optional("n", Kind::Text)];
    assert!(bytes_of(&twice, &[]).unwrap_err().to_string().contains("two columns are named `n`"));
}

#[test]
fn large_missing_and_damaged_files_are_refused() {
    let fields = [Field::required("n", Kind::Int)];
    let bytes = bytes_of(&fields, &[vec![ints(&[1, 2, 3])]]).unwrap();
    let (folder, path) = file_with(&bytes);
    let error = read_up_to(&path, 2).unwrap_err();
    assert!(matches!(error, ParquetError::TableTooLarge { rows: 3, .. }), "{error}");
    let missing = read_table(folder.path().join("missing.parquet")).unwrap_err();
    assert!(matches!(missing, ParquetError::Unreadable { .. }), "{missing}");
    for damage in [&b""[..], b"PAR1", &bytes[..bytes.len() / 2], b"Date,Code\n2025-01-06,13010\n"] {
        std::fs::write(&path, damage).unwrap();
        let error = read_table(&path).unwrap_err();
        assert!(matches!(error, ParquetError::Damaged { .. }), "{error}");
    }
}

/// A sink that is full after so many bytes.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let mut writer = TableWriter::new(Full(64), &[Field::required("n", Kind::Int)]).unwrap();
    let written = writer.write(&[ints(&[1; 10_000])]);
    let error = written.and_then(|()| writer.finish().map(drop)).unwrap_err();
    assert!(error.to_string().starts_with("cannot write the table: "), "{error}");
}

proptest! {
    #[test]
    fn any_values_survive(
        numbers in prop::collection::vec(prop::option::of(any::<i64>()), 0..200),
        texts in prop::collection::vec(prop::option::of(".*".prop_map(ShortText::from)), 0..200),
    ) {
        let rows = numbers.len().min(texts.len());
        let fields = [Field::optional("n", Kind::Yen), Field::optional("t", Kind::Text)];
        let group =
            vec![Values::Int(numbers[..rows].to_vec()), Values::Text(texts[..rows].to_vec())];
        let table = back(&bytes_of(&fields, std::slice::from_ref(&group)).unwrap());
        prop_assert_eq!(table.columns, group);
    }
}
