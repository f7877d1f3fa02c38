//! The files of a run's folder: tables as CSV, JSON and Parquet, events and the audit log as JSON
//! lines, and the manifest.
//!
//! The same run writes the same bytes. Nothing in the folder tells when or where it was made.

pub(crate) mod cells;
mod column;
pub mod commands;
pub(crate) mod events;
mod files;
pub(crate) mod forms;
pub mod json;
mod manifest;
pub mod narrative;
pub(crate) mod read;
pub(crate) mod removable;
pub(crate) mod tables;
pub(crate) mod whole_lines;

pub use column::{Column, Kind, Table};
pub(crate) use files::ROOM_FILE;
pub use files::{
    AUDIT_FILE, COMMANDS_FILE, EVENTS_FILE, FolderError, MANIFEST_FILE, NotOurs, REPORT_FILE,
    ReadError, SUMMARY_FILE,
};
pub use manifest::{ComponentIdentity, InputFile, MANIFEST_VERSION, Manifest, SettingsFile};
pub use read::{read_json, read_json_text};
pub use tables::TABLES;
