//! The run's page: one HTML file that holds everything it shows and asks the network for nothing.
//!
//! The page is a fixed template with fixed scripts; what belongs to the run is data, written as JSON
//! that cannot end its element. Strategies choose names, ids and texts, so nothing of theirs is ever
//! written as markup. A page is made from the files of a run's folder, so it can be made again at any
//! time, and the same folder gives the same bytes. Memory is bounded by the limits below.
//!
//! uPlot (MIT) draws the charts; it and its licence are part of every page.

mod calendar;
mod columns;
mod compare;
mod curve;
mod data;
pub mod escape;
mod page_table;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
pub mod texts;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use crate::output::FolderError;
use crate::output::whole_lines::HELD_BYTES;

pub use compare::{Comparison, RUNS_COMPARED_MAX, RunOverview};
pub(crate) use page_table::PageTable;

/// The page of a run around its data. Between pairs of `@@` stands the name of the part that goes
/// there.
const RUN_PAGE: &str = include_str!("assets/template.html");

/// The page of a comparison.
const COMPARE_PAGE: &str = include_str!("assets/compare.html");

/// The page of a live run beside simulated ones.
const LIVE_PAGE: &str = include_str!("assets/live_compare.html");

/// The style sheet that all pages share.
pub const STYLE: &str = include_str!("assets/report.css");

/// The texts of both pages in both languages.
const TEXTS: &str = include_str!("assets/texts.json");

/// The library that draws charts.
pub const CHART_SCRIPT: &str = include_str!("assets/uPlot.iife.min.js");

/// Its style sheet.
pub const CHART_STYLE: &str = include_str!("assets/uPlot.min.css");

/// Its licence, which goes where it goes.
pub const CHART_LICENSE: &str = include_str!("assets/uPlot.LICENSE");

/// Points that the charts show at most; longer runs show every second minute, every third, ...
const POINTS_MAX: usize = 20_000;

/// Rows of one table that a page holds at most; the files beside it hold all.
pub const ROWS_MAX: usize = 50_000;

/// Bytes of text of one table that a page holds at most.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// Makes the page of a run's folder.
///
/// # Errors
/// [`FolderError`] when the folder is not a run's or the page cannot be written.
pub fn write(folder: &Path, page: &Path) -> Result<(), FolderError> {
    write_from(folder, None, page)
}

/// The same; `tables` are those of the run where they are known, else they are read too.
pub(crate) fn write_from(
    folder: &Path,
    tables: Option<Vec<PageTable>>,
    page: &Path,
) -> Result<(), FolderError> {
    let data = data::PageData::read(folder, tables)?;
    write_page(page, RUN_PAGE, |out| data.write(out))
}

/// Writes the page of a live run beside simulated ones; an earlier one is replaced. `data` has the names that
/// `assets/live_compare.js` reads.
///
/// # Errors
/// [`FolderError`] when it cannot be written, or `page` is there and something else.
pub fn write_live_page(page: &Path, data: &impl serde::Serialize) -> Result<(), FolderError> {
    replace_page(page, LIVE_PAGE, |out| written(out, data))
}

/// Writes a page where there is nothing, or one of the same template.
fn replace_page(
    page: &Path,
    template: &str,
    data: impl Fn(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FolderError> {
    if !is_replaceable(page, template).map_err(FolderError::at(page))? {
        return Err(FolderError::NoPage { path: page.to_owned() });
    }
    write_page(page, template, data)
}

/// Whether there is nothing, or a page that begins as ours. What a link leads to is somebody else's.
fn is_replaceable(page: &Path, template: &str) -> io::Result<bool> {
    let found = match page.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        found => found?,
    };
    let template = texts::filled(template, TEXTS);
    let start = template.split("@@").next().unwrap_or_default().as_bytes();
    let mut begins = Vec::new();
    if found.is_file() {
        File::open(page)?.take(start.len() as u64).read_to_end(&mut begins)?;
    }
    Ok(begins == start)
}

/// Puts the parts into a template in one pass, so that a part that looks like a placeholder stays
/// what it is.
fn write_page(
    page: &Path,
    template: &str,
    data: impl Fn(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FolderError> {
    let template = texts::filled(template, TEXTS);
    let write = || -> io::Result<()> {
        let mut out = BufWriter::with_capacity(HELD_BYTES, File::create(page)?);
        for (index, piece) in template.split("@@").enumerate() {
            match piece {
                _ if index % 2 == 0 => out.write_all(piece.as_bytes())?,
                "data" => data(&mut out)?,
                name => out.write_all(part(name).as_bytes())?,
            }
        }
        out.flush()
    };
    write().map_err(|source| FolderError::Write { path: page.to_owned(), source })
}

/// Writes a value so that it can stand in a page.
fn written(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    escape::write_script_json(out, value)
}

/// The part of a page with a name; empty for a name that does not exist, which a test excludes.
#[must_use]
pub fn part(name: &str) -> &'static str {
    match name {
        "uplot.css" => CHART_STYLE,
        "uplot.license" => CHART_LICENSE,
        "uplot.js" => CHART_SCRIPT,
        "report.css" => STYLE,
        "statistics.css" => include_str!("assets/statistics.css"),
        "texts.json" => TEXTS,
        "language.js" => texts::LANGUAGE_SCRIPT,
        "format.js" => include_str!("assets/format.js"),
        "table.js" => include_str!("assets/table.js"),
        "axis.js" => include_str!("assets/axis.js"),
        "charts.js" => include_str!("assets/charts.js"),
        "markers.js" => include_str!("assets/markers.js"),
        "run_charts.js" => include_str!("assets/run_charts.js"),
        "statistics.js" => include_str!("assets/statistics.js"),
        "tables.js" => include_str!("assets/tables.js"),
        "report.js" => include_str!("assets/report.js"),
        "compare.js" => include_str!("assets/compare.js"),
        "live_compare.js" => include_str!("assets/live_compare.js"),
        _ => "",
    }
}
