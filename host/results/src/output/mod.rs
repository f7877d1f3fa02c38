//! The files of a run's folder: tables as CSV, JSON and Parquet, events and the audit log as JSON
//! lines, and the manifest.
//!
//! The same run writes the same bytes. Nothing in the folder tells when or where it was made.

mod cells;
mod convert;
mod events;
mod folder;
mod manifest;
pub mod narrative;
pub(crate) mod read;
mod removable;
pub(crate) mod tables;

pub(crate) use folder::FolderWriter;
pub use folder::{AUDIT_FILE, EVENTS_FILE, FolderError, MANIFEST_FILE, REPORT_FILE};
pub use manifest::{ComponentIdentity, InputFile, MANIFEST_VERSION, Manifest};
pub use read::ReadError;
pub use removable::NotOurs;
pub use tables::{Column, Kind, TABLES, Table};
