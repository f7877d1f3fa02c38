//! Sweeps: one strategy over many combinations of its parameters.
//!
//! - [`grid`]: the parameters and their values; [`sample`]: some combinations drawn by a seed.
//! - [`windows`]: walk-forward, choose on one stretch of days and test on the next.
//! - [`points`]: combinations that somebody has chosen, from a file.
//! - [`plan`]: which runs there are, in the order of the table; [`rows`]: some of them.
//! - [`score`]: the few numbers that are kept of each run.
//! - [`runner`] and [`execute`]: one run, and all of them on several threads.
//! - [`verify`]: the best runs once more with window 1, which shows who saw the future.
//! - [`luck`]: how much of the best run may be luck.
//! - [`journal`]: finished runs on disk, so that a killed sweep goes on where it was.
//! - [`merge`]: parts of a sweep, made on several machines, put together.
//! - [`finished`]: what came out, row by row; [`manifest`]: what it was made from.
//! - [`table`], [`page`] and [`folder`]: what a sweep leaves.
//!
//! Rows stand in the order of the plan whatever finishes first, and no file of the folder but the
//! journal depends on the number of threads or on how often the sweep was interrupted.

pub mod execute;
pub mod finished;
pub mod folder;
pub mod grid;
pub mod journal;
pub mod limits;
pub mod luck;
pub mod manifest;
pub mod merge;
pub mod page;
pub mod plan;
pub mod points;
pub mod rows;
pub mod runner;
pub mod sample;
pub mod score;
pub mod table;
pub mod verify;
pub mod windows;

pub use execute::{Sweep, SweepError, SweepProgress};
pub use finished::{Finished, Results};
pub use folder::SweepFolder;
pub use grid::{Axis, Grid, GridError};
pub use journal::{Journal, JournalError, Kept};
pub use luck::Luck;
pub use manifest::{Asked, SweepManifest, header};
pub use merge::{MergeError, Merged, PartFolder};
pub use plan::{Choice, Phase, Plan};
pub use points::{Points, PointsError};
pub use rows::RowRange;
pub use runner::{Attempt, Outcome, ReplayRunner, Runner};
pub use score::{Score, Statistic};
pub use windows::{Fold, WalkForward, WindowsError};
