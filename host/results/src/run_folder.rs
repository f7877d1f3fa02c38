//! A run's folder from its first row to its page.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFolder;
use domain::csv_cell::guarded;
use domain::{InstrumentId, OrderEventKind, Origin, TsNanos};
use serde_json::Value;

use crate::output::cells::Names;
use crate::output::commands::CommandLog;
use crate::output::events::{AuditFile, AuditLog, EventLog};
use crate::output::forms::TableForms;
use crate::output::json;
use crate::output::read::read_json;
use crate::output::removable;
use crate::output::tables::{Positions, StreamedTables, SummaryNumbers};
use crate::output::whole_lines::WholeLines;
use crate::output::{
    AUDIT_FILE, COMMANDS_FILE, EVENTS_FILE, FolderError, MANIFEST_FILE, Manifest, REPORT_FILE,
    ROOM_FILE, SUMMARY_FILE,
};
use crate::report;
use crate::sink::{Record, RunSink};
use crate::summary::Summary;
use crate::totals::{RunStatus, RunTotals};

/// Writes a run's folder while the run goes on, so that it is never half there and never in memory:
/// rows are appended to files in a folder aside, which is put in place once it is complete.
/// Dropped before [`Self::finish`], it leaves nothing behind but what people did: the audit log and their
/// commands. A run on the live market is different ([`Self::create_live`]).
pub struct RunFolder {
    folder: PathBuf,
    names: Names,
    tables: StreamedTables,
    events: EventLog,
    audit: AuditLog,
    commands: CommandLog,
    /// The time of the outside, where people take part in the run.
    wall_clock: Option<WallClock>,
    // Dropped after the files in it, whose last lines may be in memory.
    place: Place,
}

/// Where the folder is while the run goes on.
enum Place {
    /// In a folder aside, which gets its name when it is complete.
    Aside(AtomicFolder),
    /// In its own place: a run on the live market.
    Own,
}

/// Bytes of the room for the last manifest: several times what one has.
const ROOM_BYTES: usize = 64 << 10;

/// Tells the time of the outside.
pub type WallClock = fn() -> TsNanos;

impl RunFolder {
    /// Begins the folder of a run that trades `instruments`. A folder that holds an earlier run will
    /// be replaced; one that holds anything else is left alone: `output/removable.rs` has the rule.
    ///
    /// # Errors
    /// [`FolderError`]; nothing has changed then.
    pub fn create(folder: &Path, instruments: &[InstrumentId]) -> Result<Self, FolderError> {
        let seen = removable::check(folder).map_err(FolderError::at(folder))?;
        seen.map_err(|what| FolderError::Occupied { folder: folder.to_owned(), what })?;
        let aside = AtomicFolder::create_beside(folder).map_err(FolderError::at(folder))?;
        Self::begin(folder, instruments, Place::Aside(aside))
    }

    /// Begins the folder of a run on the live market. It is in its place from now on, with `manifest`, and whatever
    /// ends the run it stays there: [`Self::finish`] completes it. Other files may be put into it meanwhile. There must
    /// be nothing of its name.
    ///
    /// # Errors
    /// [`FolderError`]; what was made is removed then.
    pub fn create_live(
        folder: &Path,
        instruments: &[InstrumentId],
        manifest: &Manifest,
    ) -> Result<Self, FolderError> {
        let around = folder.parent().unwrap_or(Path::new(""));
        std::fs::create_dir_all(around)
            .and_then(|()| std::fs::create_dir(folder))
            .map_err(FolderError::at(folder))?;
        let room = folder.join(ROOM_FILE);
        let begun = replace_manifest(folder, manifest)
            .and_then(|()| std::fs::write(&room, [0; ROOM_BYTES]).map_err(FolderError::at(&room)))
            .and_then(|()| Self::begin(folder, instruments, Place::Own));
        // It was made just now, so everything in it is ours.
        begun.inspect_err(|_| drop(std::fs::remove_dir_all(folder)))
    }

    fn begin(
        folder: &Path,
        instruments: &[InstrumentId],
        place: Place,
    ) -> Result<Self, FolderError> {
        let path = place.path(folder);
        Ok(Self {
            folder: folder.to_owned(),
            names: Names::new(instruments),
            tables: StreamedTables::create(path)?,
            events: EventLog::new(begin_file(&path.join(EVENTS_FILE))?),
            audit: AuditLog::new(AuditFile::Held(begin_file(&path.join(AUDIT_FILE))?)),
            commands: CommandLog::new(path.join(COMMANDS_FILE)),
            wall_clock: None,
            place,
        })
    }

    /// A folder of a run in which people take part: the audit log says when things were done and whose
    /// each order is, and an order of a person is on the disk before it counts as sent
    /// (specification 4, P79).
    ///
    /// # Errors
    /// [`FolderError`] where the audit log cannot be made.
    pub fn with_people(self, wall_clock: WallClock) -> Result<Self, FolderError> {
        let path = self.place.path(&self.folder).join(AUDIT_FILE);
        let audit = File::create(&path).map_err(FolderError::at(&path))?;
        Ok(Self {
            wall_clock: Some(wall_clock),
            audit: AuditLog::new(AuditFile::Whole(WholeLines::new(audit))),
            commands: self.commands.begin(),
            place: match self.place {
                Place::Aside(aside) => Place::Aside(aside.keeping(&KEPT_UNFINISHED)),
                Place::Own => Place::Own,
            },
            ..self
        })
    }

    /// Whether a run whose place this one would take has ended, at the end of its data or with a fault: what an
    /// interrupted run leaves is worth less.
    #[must_use]
    pub fn has_ended_run(&self) -> bool {
        let manifest = read_json(&self.folder, MANIFEST_FILE);
        manifest.is_ok_and(|manifest| manifest["status"] != RunStatus::Interrupted.as_str())
    }

    /// Removes what runs have left in a folder whose processes were killed. What people did in them stays: the
    /// audit log and the commands, in the folder that the run would have had.
    ///
    /// # Errors
    /// What the system says when the folder cannot be read.
    pub fn remove_unfinished(runs: &Path) -> io::Result<()> {
        atomic_file::remove_all_leftovers(runs, &KEPT_UNFINISHED)
    }

    /// Removes the folder of a run, if it holds what a run writes and nothing else, or what is kept of one that
    /// was killed. Tells whether it did.
    ///
    /// # Errors
    /// What the system says, as where a program of Windows has a file of it open. Parts of the folder may be gone then;
    /// it is still that of a run, so that the next call goes on.
    pub fn remove(folder: &Path) -> io::Result<bool> {
        let is_run = folder.join(MANIFEST_FILE).is_file();
        let is_ours = match is_run {
            true => removable::check(folder)?.is_ok(),
            false => holds_only(folder, &KEPT_UNFINISHED)?,
        };
        if is_ours {
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                match entry.file_type()?.is_dir() {
                    _ if entry.file_name() == MANIFEST_FILE => {}
                    true => std::fs::remove_dir_all(entry.path())?,
                    false => std::fs::remove_file(entry.path())?,
                }
            }
            std::fs::remove_dir_all(folder)?;
        }
        Ok(is_ours)
    }

    /// Puts the last manifest of a run on the live market into its folder, where [`Self::finish`] could not be done too:
    /// room for it was kept.
    ///
    /// # Errors
    /// [`FolderError`]; the manifest before is there then.
    pub fn end_live(folder: &Path, manifest: &Manifest) -> Result<(), FolderError> {
        let room = folder.join(ROOM_FILE);
        match std::fs::remove_file(&room) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FolderError::at(&room)(error));
            }
            _ => replace_manifest(folder, manifest),
        }
    }

    /// Completes the folder: tables, summary, manifest and the page; then puts it in place.
    ///
    /// # Errors
    /// [`FolderError`]; the folder is as it was before the run, or as the run left it on the live market.
    pub fn finish(mut self, manifest: &Manifest, totals: &RunTotals) -> Result<(), FolderError> {
        let path = self.place.path(&self.folder);
        let tables = self.tables.finish()?;
        self.events.finish().map_err(FolderError::at(&path.join(EVENTS_FILE)))?;
        self.audit.sync().map_err(FolderError::at(&path.join(AUDIT_FILE)))?;
        let mut positions = TableForms::create(path, &Positions::TABLE)?;
        for position in &totals.positions {
            let pushed = Positions::push(position, &self.names, |cells| positions.push(cells));
            pushed.map_err(FolderError::at(path))?;
        }
        positions.finish()?;
        write_summary(path, &Summary::new(totals), &self.names)?;
        match self.place {
            Place::Aside(_) => write_json(&path.join(MANIFEST_FILE), manifest)?,
            Place::Own => Self::end_live(path, manifest)?,
        }
        report::write_from(path, Some(tables), &path.join(REPORT_FILE))?;
        // What was put there while the run went on is not ours either.
        let may_remove = |old: &Path| {
            removable::check(old)?.map_err(|what| io::Error::other(format!("it {what}")))
        };
        match self.place {
            Place::Aside(aside) => aside.commit(may_remove).map_err(FolderError::at(&self.folder)),
            Place::Own => Ok(()),
        }
    }
}

impl Place {
    /// The path of the folder for now.
    fn path<'a>(&'a self, folder: &'a Path) -> &'a Path {
        match self {
            Self::Aside(aside) => aside.unfinished_path(),
            Self::Own => folder,
        }
    }
}

/// What is kept of a run that people took part in and whose folder was never finished: its process was killed,
/// or the disk is full.
static KEPT_UNFINISHED: [&str; 2] = [AUDIT_FILE, COMMANDS_FILE];

/// Whether a folder holds files of these names, and nothing else.
fn holds_only(folder: &Path, names: &[&str]) -> io::Result<bool> {
    let mut count = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if !names.iter().any(|known| name == *known) || !entry.file_type()?.is_file() {
            return Ok(false);
        }
        count += 1;
    }
    Ok(count > 0)
}

impl RunSink for RunFolder {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        self.events.take(record, &self.names)?;
        self.commands.take(record, &self.names)?;
        if let Record::OrderEvent { event, sent } = record {
            let is_sent_now = self.wall_clock.is_some()
                && event.origin == Origin::Client
                && matches!(event.kind, OrderEventKind::Submitted(_));
            let mut kept = self.audit.take(event, sent, &self.names, self.wall_clock);
            if is_sent_now {
                kept =
                    kept.and_then(|()| self.audit.sync().inspect_err(|_| self.audit.take_back()));
                if kept.is_err() {
                    // What was not sent is not done again either.
                    self.commands.take_back();
                }
            }
            kept?;
        }
        self.tables.take(record, &self.names)
    }
}

fn begin_file(path: &Path) -> Result<File, FolderError> {
    File::create(path).map_err(FolderError::at(path))
}

/// The summary: `name,value` as CSV, one object as JSON.
fn write_summary(folder: &Path, summary: &Summary, names: &Names) -> Result<(), FolderError> {
    let path = folder.join(SUMMARY_FILE);
    write_json(&path, summary)?;
    let value = serde_json::to_value(summary)
        .map_err(|error| FolderError::Write { path, source: error.into() })?;
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let path = folder.join(SummaryNumbers::TABLE.csv_name());
    let written = || -> io::Result<()> {
        let mut csv = csv::Writer::from_path(&path)?;
        csv.write_record(SummaryNumbers::TABLE.columns.iter().map(|column| column.name))?;
        for (name, value) in value.as_object().into_iter().flatten() {
            SummaryNumbers::push((name.as_str(), text(value)), names, |cells| {
                let cells = cells.iter().map(|cell| guarded(cell.text().unwrap_or_default()));
                Ok(csv.write_record(cells.map(Cow::into_owned))?)
            })?;
        }
        csv.flush()
    };
    written().map_err(FolderError::at(&path))
}

/// Puts the manifest of a run on the live market in the place of the one before: readers see one of both.
fn replace_manifest(folder: &Path, manifest: &Manifest) -> Result<(), FolderError> {
    let path = folder.join(MANIFEST_FILE);
    let mut bytes = Vec::new();
    json::write(&mut bytes, manifest)
        .and_then(|()| atomic_file::write(&path, &bytes))
        .map_err(FolderError::at(&path))
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), FolderError> {
    let file = File::create(path).map(BufWriter::new);
    file.and_then(|file| json::write(file, value)).map_err(FolderError::at(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{empty, instruments, manifest};

    /// P111: the folder of a live run is there while it goes on, and stays whatever happens. The engine removes none.
    #[test]
    fn p111_the_folder_of_a_live_run_is_in_its_place_from_the_start() {
        let around = tempfile::tempdir().unwrap();
        let path = around.path().join("runs").join("r-1");
        let result = empty();
        let ended = manifest(&result);
        let run_kind = Some("paper".to_owned());
        let status = "running".to_owned();
        let begun = Manifest { partial: true, status, run_kind, ..ended.clone() };
        let in_place = || read_json(&path, MANIFEST_FILE).unwrap();
        let folder = RunFolder::create_live(&path, &instruments(), &begun).unwrap();
        assert_eq!(
            (&in_place()["partial"], &in_place()["status"]),
            (&true.into(), &"running".into())
        );
        assert!(RunFolder::create_live(&path, &instruments(), &begun).is_err(), "it is there");
        std::fs::write(path.join("strategy.wasm"), "").unwrap();
        // As a kill leaves it.
        drop(folder);
        assert_eq!(in_place()["partial"], true);
        assert!(path.join(ROOM_FILE).is_file());
        // What can be done is told by all that reads what is made at the end.
        let page = around.path().join("page.html");
        let told = report::write(&path, &page).unwrap_err().to_string();
        assert!(told.contains("it still runs, or it was killed") && !page.exists(), "{told}");
        assert!(told.contains("`kumiki replay journal`"), "{told}");
        let fault = Some("JOURNAL: of a test".to_owned());
        let failed =
            Manifest { partial: false, status: "failed".to_owned(), fault, ..ended.clone() };
        RunFolder::end_live(&path, &Manifest { run_kind: Some("paper".to_owned()), ..failed })
            .unwrap();
        assert!(!path.join(ROOM_FILE).exists());
        let told = report::write(&path, &page).unwrap_err().to_string();
        assert!(told.contains("it ended with: JOURNAL: of a test"), "{told}");
        assert!(!RunFolder::remove(&path).unwrap());
        std::fs::remove_dir_all(&path).unwrap();

        let folder = RunFolder::create_live(&path, &instruments(), &begun).unwrap();
        std::fs::write(path.join("strategy.wasm"), "").unwrap();
        folder.finish(&Manifest { partial: false, ..ended }, &result.totals).unwrap();
        assert_eq!(in_place()["partial"], false);
        assert!(!path.join(ROOM_FILE).exists());
        assert!(path.join(REPORT_FILE).is_file() && path.join("fills.csv").is_file());
        assert!(!RunFolder::remove(&path).unwrap());
        assert!(
            RunFolder::create(&path, &instruments()).is_err(),
            "a replay does not take its place"
        );
    }
}
