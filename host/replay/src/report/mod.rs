//! The run's page: one HTML file that holds everything it shows and asks the network for nothing.
//!
//! The page is a fixed template with fixed scripts; what belongs to the run is data, written as JSON
//! that cannot end its element. Strategies choose names, ids and texts, so nothing of theirs is ever
//! written as markup. The same run gives the same bytes.
//!
//! uPlot (MIT) draws the charts; it and its licence are part of every page.

mod columns;
mod curve;
mod data;
pub(crate) mod escape;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

use crate::output::Manifest;
use crate::record::RunResult;

/// The page around the data. Between pairs of `@@` stands the name of the part that goes there.
const TEMPLATE: &str = include_str!("assets/template.html");

/// Points that the charts show at most; longer runs show every second minute, every third, ...
const POINTS_MAX: usize = 20_000;

/// Rows of one table that a page holds at most; the files beside it hold all.
const ROWS_MAX: usize = 50_000;

/// Bytes of free text of one table that a page holds at most.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// The page.
#[must_use]
pub fn render(manifest: &Manifest, result: &RunResult) -> String {
    assemble(&escape::script_json(&data::PageData::new(manifest, result)))
}

/// Puts the parts into the template in one pass, so that a part that looks like a placeholder stays
/// what it is.
fn assemble(data: &str) -> String {
    let mut page = String::with_capacity(data.len() + (128 << 10));
    for (index, piece) in TEMPLATE.split("@@").enumerate() {
        page.push_str(if index % 2 == 0 { piece } else { part(piece, data) });
    }
    page
}

/// The part with a name; empty for a name that does not exist, which a test excludes.
fn part<'a>(name: &str, data: &'a str) -> &'a str {
    match name {
        "uplot.css" => include_str!("assets/uPlot.min.css"),
        "uplot.license" => include_str!("assets/uPlot.LICENSE"),
        "uplot.js" => include_str!("assets/uPlot.iife.min.js"),
        "report.css" => include_str!("assets/report.css"),
        "format.js" => include_str!("assets/format.js"),
        "table.js" => include_str!("assets/table.js"),
        "axis.js" => include_str!("assets/axis.js"),
        "charts.js" => include_str!("assets/charts.js"),
        "report.js" => include_str!("assets/report.js"),
        "data" => data,
        _ => "",
    }
}
