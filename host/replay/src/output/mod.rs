//! A run's folder: tables as CSV, JSON and Parquet, events and the audit log as JSON lines, the
//! manifest and the page.
//!
//! The same run writes the same bytes. Nothing in the folder tells when or where it was made.

mod cells;
mod convert;
mod events;
mod folder;
mod manifest;
pub mod narrative;
pub(crate) mod read;
pub(crate) mod tables;

pub use folder::{AUDIT_FILE, EVENTS_FILE, FolderError, FolderWriter, MANIFEST_FILE, REPORT_FILE};
pub use manifest::{ComponentIdentity, InputFile, MANIFEST_VERSION, Manifest, of_each};
pub use read::ReadError;
pub use tables::{Column, Kind, TABLES, Table};

pub use crate::statistics::Summary;
