//! Reads a journal.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::line;
use super::record::{Header, JOURNAL_VERSION, Record};
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
    /// A line that is not as it was written, before the end of the last file.
    #[error(
        "{} is damaged at line {line}: its checksum is another one; read a copy of the file",
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
        matches!(self, Self::Damaged { .. } | Self::Missing { .. })
    }
}

/// A file with its lines.
struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    /// The last line that was read, with its end.
    line: Vec<u8>,
    number: u64,
}

/// What the next line is.
enum Next {
    /// The file ends before it.
    End,
    /// It is whole; its JSON stands at the end of `line`.
    Whole,
    /// It is not whole, and nothing follows it.
    Torn,
}

impl Lines {
    fn open(path: PathBuf) -> Result<Self, JournalError> {
        let unreadable = |source| JournalError::Unreadable { path: path.clone(), source };
        let reader = BufReader::new(File::open(&path).map_err(unreadable)?);
        Ok(Self { path, reader, line: Vec::new(), number: 0 })
    }

    /// Reads the next line.
    fn next(&mut self) -> Result<Next, JournalError> {
        let (is_end, is_last) = self
            .read()
            .map_err(|source| JournalError::Unreadable { path: self.path.clone(), source })?;
        if is_end {
            return Ok(Next::End);
        }
        match line::json(&self.line) {
            Some(_) => Ok(Next::Whole),
            None if is_last => Ok(Next::Torn),
            None => Err(JournalError::Damaged { path: self.path.clone(), line: self.number }),
        }
    }

    /// Reads the bytes of a line; says whether there was none, and whether nothing follows.
    fn read(&mut self) -> io::Result<(bool, bool)> {
        self.line.clear();
        (&mut self.reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line)?;
        self.number += 1;
        Ok((self.line.is_empty(), self.reader.fill_buf()?.is_empty()))
    }

    /// The record of the line that was read.
    fn record(&self) -> Result<Record<'static>, JournalError> {
        let json = line::json(&self.line).unwrap_or_default();
        line::parse(json).map_err(|error| {
            self.foreign(format!("is of another version of this program: {error}"))
        })
    }

    fn foreign(&self, problem: String) -> JournalError {
        JournalError::Foreign { path: self.path.clone(), line: self.number, problem }
    }

    /// Reads the first line; none where the file has no whole one.
    fn header(&mut self) -> Result<Option<Header>, JournalError> {
        match self.next()? {
            Next::End | Next::Torn => Ok(None),
            Next::Whole => match self.record()? {
                Record::Header(header) if header.version == JOURNAL_VERSION => Ok(Some(*header)),
                Record::Header(header) => {
                    let problem = format!(
                        "is of version {} of a journal, and this program reads {JOURNAL_VERSION}",
                        header.version
                    );
                    Err(self.foreign(problem))
                }
                _ => Err(self.foreign("is no header".to_owned())),
            },
        }
    }
}

/// The records of a journal after its header, in order.
pub struct Records {
    header: Header,
    folder: PathBuf,
    files: VecDeque<Lines>,
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

    fn next_record(&mut self) -> Result<Option<Record<'static>>, JournalError> {
        loop {
            let is_last = self.files.len() == 1;
            let Some(file) = self.files.front_mut() else { return Ok(None) };
            match file.next()? {
                Next::Whole => return file.record().map(Some),
                Next::Torn if !is_last => {
                    let path = file.path.clone();
                    return Err(JournalError::Damaged { path, line: file.number });
                }
                Next::Torn => self.torn = true,
                Next::End => {}
            }
            self.files.pop_front();
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record<'static>, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_record().transpose();
        if matches!(next, Some(Err(_))) {
            self.files.clear();
        }
        next
    }
}

/// Reads the journal of a run: of its folder, or the first file of it. A last line that a crash has cut off is left
/// out, and [`Records::torn`] tells it.
///
/// # Errors
/// [`JournalError`].
pub fn read(path: &Path) -> Result<Records, JournalError> {
    if !path.is_dir() {
        let mut file = Lines::open(path.to_owned())?;
        let header = file.header()?;
        let header = header.ok_or_else(|| damaged(&file))?;
        if header.part != 1 {
            return Err(JournalError::NotFirst { path: file.path, part: header.part });
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        return Ok(Records { header, folder, files: VecDeque::from([file]), torn: false });
    }
    let mut files = Vec::new();
    let mut headless = Vec::new();
    for path in files_of(path)? {
        let mut file = Lines::open(path)?;
        match file.header()? {
            Some(header) => files.push((header, file)),
            None => headless.push(file),
        }
    }
    files.sort_by_key(|(header, _)| header.part);
    // The last file may have been begun by a program that was killed then.
    if files.is_empty() || headless.len() > 1 {
        let none = || JournalError::None(path.to_owned());
        return Err(headless.first().map_or_else(none, damaged));
    }
    for (part, (header, file)) in (1..).zip(&files) {
        if header.part != part {
            return Err(JournalError::Missing { path: file.path.clone(), part });
        }
        if header.run_id != files[0].0.run_id {
            return Err(file.foreign(format!("is of another run, {}", header.run_id)));
        }
    }
    let header = files[0].0.clone();
    let files = files.into_iter().map(|(_, file)| file).collect();
    Ok(Records { header, folder: path.to_owned(), files, torn: !headless.is_empty() })
}

fn damaged(file: &Lines) -> JournalError {
    JournalError::Damaged { path: file.path.clone(), line: 1 }
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
