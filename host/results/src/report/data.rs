//! What the page shows, read from a run's folder.

use std::io::{self, Write};
use std::path::Path;

use domain::Money;
use serde_json::Value;

use super::calendar::Calendar;
use super::curve::{Curve, InstrumentCurve};
use super::page_table::PageTable;
use super::{POINTS_MAX, written};
use crate::output::read::{TableReader, read_json};
use crate::output::tables::Positions;
use crate::output::{MANIFEST_FILE, ReadError};
use crate::summary::DEFINITIONS;

/// Everything that one page shows.
pub(super) struct PageData {
    manifest: Value,
    summary: Value,
    curve: Curve,
    instruments: Vec<InstrumentCurve>,
    calendar: Calendar,
    tables: Vec<PageTable>,
}

impl PageData {
    /// Reads a run's folder; `tables` are given, or are read there too.
    pub(super) fn read(folder: &Path, tables: Option<Vec<PageTable>>) -> Result<Self, ReadError> {
        let manifest = read_json(folder, MANIFEST_FILE)?;
        let summary = read_json(folder, "summary.json")?;
        let cash = cash_start(folder, &summary)?;
        let ids = instrument_ids(folder)?;
        let curve = Curve::read(folder, cash, Curve::step_of(folder, POINTS_MAX)?)?;
        Ok(Self {
            instruments: curve.instruments(folder, &ids)?,
            calendar: Calendar::read(folder, cash)?,
            tables: tables.map_or_else(|| PageTable::read_all(folder), Ok)?,
            manifest,
            summary,
            curve,
        })
    }

    /// Writes it as a JSON object.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{\"manifest\":")?;
        written(out, &self.manifest)?;
        out.write_all(b",\"summary\":")?;
        written(out, &self.summary)?;
        out.write_all(b",\"definitions\":")?;
        written(out, &DEFINITIONS)?;
        out.write_all(b",\"curve\":")?;
        written(out, &self.curve)?;
        out.write_all(b",\"instruments\":")?;
        written(out, &self.instruments)?;
        out.write_all(b",\"calendar\":")?;
        written(out, &self.calendar)?;
        for table in &self.tables {
            out.write_all(b",")?;
            table.write(out)?;
        }
        out.write_all(b"}")
    }
}

/// The money at the start, from the summary.
pub(super) fn cash_start(folder: &Path, summary: &Value) -> Result<Money, ReadError> {
    let text = summary["cash_start"].as_str().unwrap_or_default();
    text.parse().map_err(|_| ReadError::Content {
        path: folder.join("summary.json"),
        line: 0,
        expected: "cash_start with an amount of yen".to_owned(),
        found: text.to_owned(),
    })
}

/// The instruments of a run in their order, from the table that has a row for each.
fn instrument_ids(folder: &Path) -> Result<Vec<String>, ReadError> {
    let mut ids = Vec::new();
    let mut rows = TableReader::open(folder, &Positions::TABLE)?;
    while let Some(row) = rows.next_row()? {
        ids.push(row.text("instrument_id").to_owned());
    }
    Ok(ids)
}
