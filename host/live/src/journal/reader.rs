//! Reads a journal, also one that still grows: of each file what it has when it is opened.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use domain::fault::FaultKind;
use results::output::{MANIFEST_FILE, ReadError, read_json};
use thiserror::Error;

use super::line;
use super::record::{Header, HostRecord, JOURNAL_VERSION, Record};
use super::writer::JOURNAL_WAITING_BYTES_MAX;

/// Bytes of a line: more could never have waited to be written.
const LINE_BYTES_MAX: u64 = JOURNAL_WAITING_BYTES_MAX as u64;
/// How the names of its files begin and end.
const NAME_BEGIN: &str = "journal-";
const NAME_ENDING: &str = ".jsonl";

/// Why a journal cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The system does not let it be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A folder without a journal.
    #[error(
        "{} holds no journal (journal-YYYYMMDD.jsonl); name the folder of a run on the live market",
        .0.display()
    )]
    None(PathBuf),
    /// A journal without a whole line: its run was killed as it began.
    #[error("the journal in {} has no whole line: its run was killed as it began", .0.display())]
    Nothing(PathBuf),
    /// A line that is not as it was written or not where it was, before the end of the last file.
    #[error(
        "{} is damaged at line {line}: its checksum is not that of this line after the one before; \
         read a copy of the file",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// A file of the run is not there.
    #[error(
        "file {part} of the journal is missing before {}; put all files of the run into one folder",
        path.display()
    )]
    Missing {
        /// The file before which another one was.
        path: PathBuf,
        /// Number of the missing file in the run.
        part: u32,
    },
    /// A file does not follow the one before it: lines are missing between them.
    #[error(
        "{} is damaged: it does not begin where the file before it ends; read a copy of the files",
        path.display()
    )]
    Unlinked {
        /// The file.
        path: PathBuf,
    },
    /// The run has ended, and its journal has no end.
    #[error(
        "the journal in {} is damaged: its run has ended and the end is missing; put all files of \
         the run into one folder",
        .0.display()
    )]
    NoEnd(PathBuf),
    /// The manifest does not say whether the run has ended.
    #[error(transparent)]
    Manifest(ReadError),
    /// A file that is not the first of its run.
    #[error(
        "{} is file {part} of its run, and the strategy began in the first; name the run's folder",
        path.display()
    )]
    NotFirst {
        /// The file.
        path: PathBuf,
        /// Its number in the run.
        part: u32,
    },
    /// It is of another version of the program, or of another run.
    #[error("{} cannot be used: line {line} {problem}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
}

impl JournalError {
    /// Whether the journal itself is damaged, elsewhere than in its tail.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Damaged { .. } | Self::Missing { .. } | Self::Unlinked { .. } | Self::NoEnd(_)
        )
    }
}

/// A file with its lines, as far as it was written when it was opened.
struct Lines {
    path: PathBuf,
    reader: Take<BufReader<File>>,
    /// The last line that was read, with its end.
    line: Vec<u8>,
    number: u64,
    /// The checksum of that line.
    checksum: u64,
    /// Each checksum covers the line before.
    is_chain: bool,
}

/// What the next line is.
enum Next {
    /// The file ends before it.
    End,
    /// It is whole.
    Whole(Box<Record<'static>>),
    /// It is not whole, and nothing follows it.
    Torn,
}

impl Lines {
    fn open(path: PathBuf) -> Result<Self, JournalError> {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) =
            opened.map_err(|source| JournalError::Unreadable { path: path.clone(), source })?;
        let reader = BufReader::new(file).take(bytes);
        Ok(Self { path, reader, line: Vec::new(), number: 0, checksum: 0, is_chain: true })
    }

    /// Reads the next line.
    fn next(&mut self) -> Result<Next, JournalError> {
        let (is_end, is_last) = self
            .read()
            .map_err(|source| JournalError::Unreadable { path: self.path.clone(), source })?;
        if is_end {
            return Ok(Next::End);
        }
        let before = if self.is_chain { self.checksum } else { 0 };
        let Some((checksum, json)) = line::json(&self.line, before) else {
            return match is_last {
                true => Ok(Next::Torn),
                false => Err(self.damaged()),
            };
        };
        self.checksum = checksum;
        let record = line::parse(json).map_err(|error| {
            self.foreign(format!("is of another version of this program: {error}"))
        })?;
        Ok(Next::Whole(Box::new(record)))
    }

    /// Reads the bytes of a line; says whether there was none, and whether nothing follows.
    fn read(&mut self) -> io::Result<(bool, bool)> {
        self.line.clear();
        (&mut self.reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line)?;
        self.number += 1;
        Ok((self.line.is_empty(), self.reader.fill_buf()?.is_empty()))
    }

    fn foreign(&self, problem: String) -> JournalError {
        JournalError::Foreign { path: self.path.clone(), line: self.number, problem }
    }

    fn damaged(&self) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), line: self.number }
    }

    /// Reads the first line; none where the file has no whole one.
    fn header(&mut self) -> Result<Option<Header>, JournalError> {
        let Next::Whole(record) = self.next()? else { return Ok(None) };
        let Record::Header(header) = *record else {
            return Err(self.foreign("is no header".to_owned()));
        };
        if header.version == 0 || header.version > JOURNAL_VERSION {
            let problem = format!(
                "is of version {} of a journal, and this program reads up to {JOURNAL_VERSION}",
                header.version
            );
            return Err(self.foreign(problem));
        }
        self.is_chain = header.version > 1;
        Ok(Some(*header))
    }
}

/// The records of a journal after its header, in order.
pub struct Records {
    header: Header,
    folder: PathBuf,
    /// The files that are not read to their end, with what their headers say of the file before.
    files: VecDeque<(u64, Lines)>,
    /// All files of the run are there, and its manifest says that it has ended.
    must_end: bool,
    has_end: bool,
    torn: bool,
}

impl Records {
    /// The run.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The folder in which the journal is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the end of the journal was cut off, known once all records were read.
    #[must_use]
    pub const fn torn(&self) -> bool {
        self.torn
    }

    /// Whether the journal says that the run has ended, known once all records were read.
    #[must_use]
    pub const fn has_end(&self) -> bool {
        self.has_end
    }

    fn next_record(&mut self) -> Result<Option<Record<'static>>, JournalError> {
        loop {
            // A file without a header comes after them.
            let is_last = self.files.len() == 1 && !self.torn;
            let Some((_, file)) = self.files.front_mut() else {
                let is_cut = self.must_end && !self.has_end;
                return if is_cut {
                    Err(JournalError::NoEnd(self.folder.clone()))
                } else {
                    Ok(None)
                };
            };
            match file.next()? {
                Next::Whole(record) => {
                    self.has_end |= matches!(*record, Record::Host(HostRecord::End));
                    return Ok(Some(*record));
                }
                Next::Torn if !is_last => return Err(file.damaged()),
                Next::Torn => self.torn = true,
                Next::End => {}
            }
            let checksum = file.checksum;
            self.files.pop_front();
            let next = self.files.front().filter(|(_, file)| file.is_chain);
            if let Some((_, file)) = next.filter(|(after, _)| *after != checksum) {
                return Err(JournalError::Unlinked { path: file.path.clone() });
            }
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record<'static>, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_record().transpose();
        if matches!(next, Some(Err(_))) {
            self.files.clear();
            self.must_end = false;
        }
        next
    }
}

/// Reads the journal of a run: of its folder, or the first file of it. A last line that a crash has cut off is left
/// out, and [`Records::torn`] tells it. A run that goes on is read as far as it is written now.
///
/// # Errors
/// [`JournalError`].
pub fn read(path: &Path) -> Result<Records, JournalError> {
    if !path.is_dir() {
        let mut file = Lines::open(path.to_owned())?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let header = file.header()?.ok_or_else(|| JournalError::Nothing(folder.clone()))?;
        if header.part != 1 {
            return Err(JournalError::NotFirst { path: file.path, part: header.part });
        }
        let files = VecDeque::from([(0, file)]);
        return Ok(Records { header, folder, files, must_end: false, has_end: false, torn: false });
    }
    // Before the files: its manifest says that a run has ended after its journal has the end.
    let has_ended = has_ended(path)?;
    let mut files = Vec::new();
    let mut headless = 0;
    for path in files_of(path)? {
        let mut file = Lines::open(path)?;
        match file.header()? {
            Some(header) => files.push((header, file)),
            // The last file may have been begun by a program that was killed then.
            None if headless == 0 => headless = 1,
            None => return Err(file.damaged()),
        }
    }
    files.sort_by_key(|(header, _)| header.part);
    let Some((header, _)) = files.first() else {
        let path = path.to_owned();
        return Err(match headless {
            0 => JournalError::None(path),
            _ if has_ended => JournalError::NoEnd(path),
            _ => JournalError::Nothing(path),
        });
    };
    let header = header.clone();
    for (part, (next, file)) in (1..).zip(&files) {
        if next.part != part {
            return Err(JournalError::Missing { path: file.path.clone(), part });
        }
        if next.run_id != header.run_id {
            return Err(file.foreign(format!("is of another run, {}", next.run_id)));
        }
    }
    Ok(Records {
        must_end: has_ended && header.version > 1,
        header,
        folder: path.to_owned(),
        files: files.into_iter().map(|(header, file)| (header.after, file)).collect(),
        has_end: false,
        torn: headless > 0,
    })
}

/// Whether the manifest of a folder says that its run has ended, and not by a journal that could not be written. A
/// folder without a manifest tells nothing.
fn has_ended(folder: &Path) -> Result<bool, JournalError> {
    let manifest = match read_json(folder, MANIFEST_FILE) {
        Ok(manifest) => manifest,
        Err(ReadError::NoRun(_)) => return Ok(false),
        Err(error) => return Err(JournalError::Manifest(error)),
    };
    let begin = FaultKind::Journal(String::new()).to_string();
    let is_cut = manifest["fault"].as_str().is_some_and(|fault| fault.starts_with(&begin));
    Ok(manifest["partial"] == false && !is_cut)
}

/// The files of a journal in a folder.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let unreadable = |source| JournalError::Unreadable { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(NAME_BEGIN) && name.ends_with(NAME_ENDING) {
            files.push(entry.path());
        }
    }
    Ok(files)
}
