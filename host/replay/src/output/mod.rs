//! A run's folder: tables as CSV and JSON, the manifest, the log and the page.
//!
//! The same run writes the same bytes. Nothing in the folder tells when or where it was made.

mod folder;
mod manifest;
mod summary;
mod tables;

pub use folder::{FolderError, write_run};
pub use manifest::{ComponentIdentity, InputFile, MANIFEST_VERSION, Manifest};
pub use summary::Summary;
pub use tables::{Column, TABLES, Table};
