//! The view over sweeps: the types of its columns are those that the sweep gave them, and of a parameter the
//! one that its values have in all sweeps.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use domain::csv_cell::unguarded;
use marketdata::parquet::Kind;
use ranking::console::LabelledFile;
use sweep::grid::param_value;
use sweep::table::{head_columns, tail_columns};

use super::left_out::LeftOut;
use super::stored::YEN;

/// What the names of columns with parameters begin with.
const PARAMETER: &str = "param_";

/// The files that can be read, and the types of their columns.
pub(super) fn typed(
    files: Vec<LabelledFile>,
    left_out: &mut LeftOut,
) -> (Vec<LabelledFile>, BTreeMap<String, &'static str>) {
    let mut parameters = BTreeMap::new();
    let mut read = |file: &LabelledFile| match look(file, &parameters) {
        Ok(found) => {
            parameters = found;
            true
        }
        Err(error) => {
            left_out.add(crate::told_once(&error), file.label.clone());
            false
        }
    };
    let files = files.into_iter().filter(|file| read(file)).collect();
    let fixed = head_columns().into_iter().chain(tail_columns());
    let fixed = fixed.map(|column| (column.field.name.clone(), type_of(column.field.kind)));
    let parameters =
        parameters.into_iter().map(|(name, kind)| (name, kind.map_or("VARCHAR", type_of)));
    (files, parameters.chain(fixed).collect())
}

/// What is known of parameters, and what a file says of them; none for one without any value.
fn look(
    file: &LabelledFile,
    known: &BTreeMap<String, Option<Kind>>,
) -> Result<BTreeMap<String, Option<Kind>>> {
    let mut found = known.clone();
    let mut reader = csv::Reader::from_path(&file.path).context("it cannot be read")?;
    let names: Vec<String> =
        reader.headers().context("it cannot be read")?.iter().map(str::to_owned).collect();
    let mut row = csv::StringRecord::new();
    while reader.read_record(&mut row).context("it cannot be read")? {
        let cells = names.iter().zip(&row).filter(|(name, _)| name.starts_with(PARAMETER));
        for (name, cell) in cells {
            let kind = found.entry(name.clone()).or_default();
            if !cell.is_empty() {
                *kind = Some(joined(*kind, kind_of(unguarded(cell))));
            }
        }
    }
    Ok(found)
}

/// The kind of a parameter's value.
fn kind_of(text: &str) -> Kind {
    match param_value(text) {
        value if value.is_i64() => Kind::Int,
        value if value.is_number() => Kind::Double,
        value if value.is_boolean() => Kind::Bool,
        _ => Kind::Text,
    }
}

/// The kind that holds values of both.
fn joined(known: Option<Kind>, kind: Kind) -> Kind {
    match (known, kind) {
        (None, kind) => kind,
        (Some(known), kind) if known == kind => kind,
        (Some(Kind::Int | Kind::Double), Kind::Int | Kind::Double) => Kind::Double,
        _ => Kind::Text,
    }
}

const fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "BIGINT",
        Kind::Double => "DOUBLE",
        Kind::Yen => YEN,
        Kind::Date => "DATE",
        Kind::Bool => "BOOLEAN",
        _ => "VARCHAR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_holds_all_values_of_a_parameter() {
        let kind = |values: &[&str]| {
            values.iter().fold(None, |known, value| Some(joined(known, kind_of(value))))
        };
        for (values, expected) in [
            (&["5", "-10"][..], Some(Kind::Int)),
            (&["5", "0.5"], Some(Kind::Double)),
            (&["true", "false"], Some(Kind::Bool)),
            (&["007", "10"], Some(Kind::Text)),
            (&["5", "true"], Some(Kind::Text)),
            (&["=A1"], Some(Kind::Text)),
            (&[], None),
        ] {
            assert_eq!(kind(values), expected, "{values:?}");
        }
    }
}
