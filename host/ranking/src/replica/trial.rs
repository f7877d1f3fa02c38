//! A generation is tried before any file of it is put in place: every byte of every file, those that are in
//! place already too, and that each of them opens as what it is.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use duckdb::{Config, Connection};
use pricestore::generation::{Generation, GenerationFileName, PublishedFile};
use pricestore::grid::{Grid, GridFault, content_text};
use pricestore::limits::DIGEST_THREADS_MAX;
use pricestore::listed;
use pricestore::sql::{self, quoted_path};

use super::ReplicaError;
use super::folder::ReplicaFolder;
use crate::text::redacted;

/// Memory of DuckDB: only what says which tables a file has is read.
const MEMORY: &str = "256MB";

/// A generation whose files are all here, some of them still aside.
pub(super) struct Trial<'a> {
    pub(super) folder: &'a ReplicaFolder,
    pub(super) generation: &'a Generation,
    /// The files that have come and are still aside, by path.
    pub(super) came: BTreeSet<&'a str>,
}

/// Why a generation is not put in place.
pub(super) enum Fault {
    /// A file has other bytes than it has to have.
    Differs(PublishedFile),
    /// It is as it was sent, and no use.
    Unusable(ReplicaError),
    /// It could not be tried.
    Untried(ReplicaError),
}

impl Trial<'_> {
    /// Holds all of it against what it has to be.
    pub(super) fn run(&self) -> Result<(), Fault> {
        let mut places = Vec::new();
        for file in self.generation.all_files() {
            let Some(name) = GenerationFileName::parse(&file.path) else {
                return Err(unusable(file, "it has no place"));
            };
            let path = match self.came.contains(file.path.as_str()) {
                true => self.folder.part(file),
                false => name.on_disk(&self.folder.data),
            };
            match PublishedFile::read(&path, &name) {
                Ok(found) if found.has_bytes_of(file) => places.push((file, name, path)),
                _ => return Err(Fault::Differs(file.clone())),
            }
        }
        let databases = Databases::new()?;
        places.iter().try_for_each(|(file, name, path)| match name {
            GenerationFileName::Grid(number) => self.is_grid(file, *number, path),
            GenerationFileName::Listed => are_lists(file, path),
            GenerationFileName::Combined | GenerationFileName::Issue(_) => {
                databases.has_prices(file, path)
            }
        })
    }

    /// The grid is that of the generation, and whole.
    fn is_grid(&self, file: &PublishedFile, number: u64, path: &Path) -> Result<(), Fault> {
        let refused = |fault| match fault {
            GridFault::Damaged(what) => unusable(file, &what),
            GridFault::Unreadable(error) => Fault::Untried(ReplicaError::Io(error)),
        };
        let grid = Grid::open(path, number).map_err(refused)?;
        grid.check_all(DIGEST_THREADS_MAX).map_err(refused)?;
        let Generation { snapshot_content, first_date, last_date, .. } = self.generation;
        let days = [grid.days().first(), grid.days().last()];
        let days = days.map(|day| day.map(ToString::to_string).unwrap_or_default());
        let is_of = content_text(grid.content()) == *snapshot_content
            && days.each_ref() == [first_date, last_date];
        if is_of { Ok(()) } else { Err(unusable(file, "it is the grid of other days or prices")) }
    }
}

fn are_lists(file: &PublishedFile, path: &Path) -> Result<(), Fault> {
    listed::read_file(path).map(drop).map_err(|error| no_database(file, &error))
}

/// Databases that are opened one after the other. Of what is in them nothing is run.
struct Databases(Connection);

impl Databases {
    fn new() -> Result<Self, Fault> {
        let config = Config::default().threads(1).and_then(|config| config.max_memory(MEMORY));
        let connection = config.and_then(sql::open);
        let failed =
            |_| ReplicaError::Io(std::io::Error::other("the database engine failed to start"));
        connection.map(Self).map_err(|error| Fault::Untried(failed(error)))
    }

    fn has_prices(&self, file: &PublishedFile, path: &Path) -> Result<(), Fault> {
        let attach = format!("ATTACH {} AS tried (READ_ONLY)", quoted_path(path));
        self.0.execute_batch(&attach).map_err(|error| no_database(file, &error))?;
        let columns = "SELECT count(*) = 2 FROM duckdb_columns() WHERE database_name = 'tried'
            AND table_name = 'daily' AND column_name IN ('date', 'code')";
        let found = self.0.query_row(columns, [], |row| row.get::<_, bool>(0));
        let detached = self.0.execute_batch("DETACH tried");
        match found.and_then(|found| detached.map(|()| found)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(unusable(file, "it has no daily prices")),
            Err(error) => Err(no_database(file, &error)),
        }
    }
}

fn unusable(file: &PublishedFile, what: &str) -> Fault {
    let (path, what) = (file.path.clone(), what.to_owned());
    Fault::Unusable(ReplicaError::Unusable { path, what })
}

/// What the engine says may hold a path, so it is for the log only, and there without.
fn no_database(file: &PublishedFile, error: &dyn Error) -> Fault {
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let cause = redacted(&cause);
    tracing::error!(file = file.path, cause, "a file that was copied does not open");
    unusable(file, "it does not open as a database")
}
