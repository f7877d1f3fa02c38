//! Ties the files that a publication has left, once they are all in place.

use std::io;

use thiserror::Error;

use super::files::{Expected, changed_by_owner, describe};
use super::{Generation, GenerationFileName, IssueFiles, PublishedFile, VERSION};
use crate::data_dir::DataDir;
use crate::dataset::DatasetStatus;
use crate::grid::{Grid, GridFault, content_text};
use crate::snapshot::Published;

/// Which databases of single issues belong to a generation.
#[derive(Debug, Clone, Copy)]
pub enum Issues<'a> {
    /// Those of these codes.
    Of(&'a [String]),
    /// Those of the generation before, while the combined database is the same; else none.
    AsBefore,
}

/// Why no generation was published. The one before stays as it is.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// There is no snapshot that it could have.
    #[error("no snapshot is published")]
    NoSnapshot,
    /// The snapshot cannot be used.
    #[error("the snapshot cannot be used")]
    Snapshot(#[from] GridFault),
    /// A file has other bytes than it was written with.
    #[error(
        "{} has {} bytes with the digest {} instead of {} with {}: it was damaged, or another program changed \
         it. It is not published. `kumiki data update` makes it again; else put back a copy of it",
        expected.path, found.bytes, found.xxh128, expected.bytes, expected.xxh128
    )]
    Differs {
        /// The file as it was written.
        expected: Box<PublishedFile>,
        /// The file as it is.
        found: Box<PublishedFile>,
    },
    /// A file cannot be read or written.
    #[error("the generation was not published")]
    Io(#[from] io::Error),
}

/// Publishes the generation of what is on disk now, where it is another one or says more. The caller
/// holds the data directory, and everything is in place.
///
/// Of the files in `known` the caller has read or written every byte: they are not read again while they have
/// that size and time of change. All others are, and held against the generation before.
///
/// # Errors
/// Why it was not published.
pub fn publish_generation(
    data: &DataDir,
    issues: Issues<'_>,
    known: &[PublishedFile],
) -> Result<Generation, GenerationError> {
    // What cannot be read is made anew.
    let before = Generation::load(data).unwrap_or_default();
    let snapshot = data.current()?.ok_or(GenerationError::NoSnapshot)?;
    let grid = Grid::open(&data.rank_grid(snapshot), snapshot)?;
    let (Some(first), Some(last)) = (grid.days().first(), grid.days().last()) else {
        return Err(GenerationError::NoSnapshot);
    };
    let (first_date, last_date) = (first.to_string(), last.to_string());
    let mut names = vec![GenerationFileName::Combined, GenerationFileName::Grid(snapshot)];
    let listed = GenerationFileName::Listed;
    if listed.on_disk(data).is_file() {
        names.push(listed);
    }
    let expected = Expected::new(known, before.as_ref());
    let files = describe(data, &names, &expected)?;
    let combined = GenerationFileName::Combined.path();
    let same_rows = before.as_ref().and_then(|before| before.file(&combined))
        == files.iter().find(|file| file.path == combined);
    let of_issues: Vec<GenerationFileName> = match issues {
        Issues::Of(codes) => codes.iter().filter_map(|c| GenerationFileName::issue(c)).collect(),
        Issues::AsBefore if same_rows => {
            let known = before.iter().flat_map(|before| before.issues.files.iter().flatten());
            known.filter_map(|file| GenerationFileName::parse(&file.path)).collect()
        }
        Issues::AsBefore => Vec::new(),
    };
    let mut made = Generation {
        version: VERSION,
        generation: String::new(),
        snapshot,
        snapshot_content: content_text(grid.content()),
        first_date,
        last_date,
        files,
        issues: IssueFiles::of(describe(data, &of_issues, &expected)?),
        // Without it nothing is known of it.
        dataset: DatasetStatus::load(data).unwrap_or_default(),
    };
    made.generation = made.name();
    if before.as_ref() != Some(&made) {
        made.store(data)?;
    }
    Ok(made)
}

/// The same after a snapshot was made of a combined database that its owner may have changed: what else
/// is published belongs to it as before.
///
/// # Errors
/// Why it was not published.
pub fn publish_generation_of(
    data: &DataDir,
    snapshot: &Published,
) -> Result<Generation, GenerationError> {
    let mut known: Vec<PublishedFile> = snapshot.file.iter().cloned().collect();
    for name in [GenerationFileName::Combined, GenerationFileName::Listed] {
        known.extend(changed_by_owner(data, &name)?);
    }
    publish_generation(data, Issues::AsBefore, &known)
}
