//! The journal of a sweep: one line for each finished run and each run that was verified, so that a
//! killed sweep goes on where it was.
//!
//! The first line says which sweep it is. A line is a JSON object whose
//! last member `checksum` is the xxh3-64 of the bytes before it. Lines are only ever appended. A last
//! line that was cut off by a crash is dropped; damage anywhere else is an error.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use atomic_file::{AtomicFile, UNFINISHED_PREFIX};
use domain::limits::SWEEP_JOURNAL_LINE_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use crate::finished::{Finished, Verified};
use crate::manifest::SweepHeader;

/// Its name in the sweep's folder.
pub const JOURNAL_FILE: &str = "journal.jsonl";
const CHECKSUM: &str = ",\"checksum\":\"";
/// Bytes of a header, which holds all values of the grid.
const HEADER_MAX: usize = 64 << 20;
/// Bytes with which all headers begin.
const HEADER_BEGIN: usize = 17;

/// A line after the first.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Finished(Box<Finished>),
    Verified(Verified),
}

/// A line as its schema tells it: the first one pins the sweep, each other one is a run that was
/// finished or verified.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum JournalLine {
    /// What the sweep was made from.
    Header(Sealed<SweepHeader<'static>>),
    /// A finished run.
    Finished(Sealed<Finished>),
    /// A verified run.
    Verified(Sealed<Verified>),
}

/// What a line holds, and its checksum.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Sealed{T}")]
#[expect(dead_code, reason = "only its schema is used; lines are sealed by their checksum")]
pub struct Sealed<T> {
    #[schemars(flatten)]
    content: T,
    /// xxh3-64 of the line's bytes before it, in hexadecimal.
    checksum: String,
}

/// Why a journal cannot be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The disk says no.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The journal.
        path: PathBuf,
        /// The failure of the disk.
        source: io::Error,
    },
    /// Another process sweeps into the folder.
    #[error("{0} is in use by another sweep; wait for it, or choose another folder")]
    InUse(PathBuf),
    /// The folder belongs to another sweep.
    #[error(
        "{} holds another sweep: {difference}; choose another --out, or delete that folder",
        .path.parent().unwrap_or(path).display()
    )]
    OtherSweep {
        /// The journal.
        path: PathBuf,
        /// What is different.
        difference: String,
    },
    /// The file is somebody's.
    #[error("{0} does not belong to a sweep; choose another folder")]
    NoSweep(PathBuf),
    /// A line in the middle is damaged.
    #[error("{path}, line {line}: {problem}; delete the folder and sweep again")]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
}

/// An open journal; nobody else can open it meanwhile.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// What an earlier sweep into the same folder left.
#[derive(Debug, Default)]
pub struct Kept {
    /// Runs that need not run again, in the order they finished.
    pub runs: Vec<Finished>,
    /// Runs that need not be verified again.
    pub verified: Vec<Verified>,
    /// What was dropped, for people.
    pub warning: Option<String>,
}

impl Journal {
    /// Opens the journal in `folder` for the sweep that `header` describes, or starts one.
    ///
    /// # Errors
    /// [`JournalError`] when it belongs to another sweep, is in use or damaged, or cannot be read.
    pub fn open(folder: &Path, header: &Value) -> Result<(Self, Kept), JournalError> {
        let path = folder.join(JOURNAL_FILE);
        let failed = |source| JournalError::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse(path)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut journal = Self { path, file };
        let kept = journal.read_or_start(header)?;
        Ok((journal, kept))
    }

    /// Reads what a sweep left in `folder`, and leaves it as it is: the header, which is none where
    /// nothing was finished before it was whole, and the runs.
    ///
    /// # Errors
    /// [`JournalError`] when a sweep is under way there, or it is damaged or cannot be read.
    pub fn read(folder: &Path) -> Result<(Option<Value>, Kept), JournalError> {
        let path = folder.join(JOURNAL_FILE);
        let failed = |source| JournalError::Io { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        match file.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse(path)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let journal = Self { path, file };
        let mut lines = journal.lines()?;
        let header = journal.header(&mut lines)?;
        let kept = journal.runs(&mut lines)?;
        Ok((header, kept))
    }

    /// Puts these runs into the place of the whole journal at once. It is there as a whole or as it was.
    ///
    /// # Errors
    /// [`JournalError::Io`] when the disk is full or gone.
    pub fn replace<'a>(
        self,
        header: &Value,
        runs: impl Iterator<Item = &'a Finished>,
        verified: impl Iterator<Item = &'a Verified>,
    ) -> Result<(), JournalError> {
        let Self { path, file } = self;
        let write = || -> io::Result<()> {
            let mut new = BufWriter::new(AtomicFile::create_in(atomic_file::folder_of(&path))?);
            new.write_all(sealed(header)?.as_bytes())?;
            for run in runs {
                new.write_all(sealed(run)?.as_bytes())?;
            }
            for run in verified {
                new.write_all(sealed(run)?.as_bytes())?;
            }
            let new = new.into_inner().map_err(io::IntoInnerError::into_error)?;
            // Locked until its end; but not each disk of Windows can replace a file that is open.
            let locked = Some(file).filter(|_| !cfg!(windows));
            new.commit(&path)?;
            drop(locked);
            Ok(())
        };
        write().map_err(|source| JournalError::Io { path: path.clone(), source })
    }

    /// Adds a finished run. Once this returns, it survives the end of the process.
    ///
    /// # Errors
    /// [`JournalError::Io`] when the disk is full or gone.
    pub fn add(&mut self, run: &Finished) -> Result<(), JournalError> {
        self.append(run)
    }

    /// Adds a verified run. Once this returns, it survives the end of the process.
    ///
    /// # Errors
    /// [`JournalError::Io`] when the disk is full or gone.
    pub fn add_verified(&mut self, run: &Verified) -> Result<(), JournalError> {
        self.append(run)
    }

    fn append(&mut self, content: &impl Serialize) -> Result<(), JournalError> {
        let line = sealed(content).map_err(|error| self.failed(error.into()))?;
        self.file.write_all(line.as_bytes()).map_err(|error| self.failed(error))
    }

    /// Asks the system to put everything on the disk.
    ///
    /// # Errors
    /// [`JournalError::Io`] when the disk is full or gone.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.file.sync_all().map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> JournalError {
        JournalError::Io { path: self.path.clone(), source }
    }

    fn read_or_start(&mut self, header: &Value) -> Result<Kept, JournalError> {
        let line = sealed(header).map_err(|error| self.failed(error.into()))?;
        self.check_ours(&line)?;
        let mut lines = self.lines()?;
        let Some(found) = self.header(&mut lines)? else {
            // Nothing was finished before the header was whole, so there is nothing else of a sweep.
            self.check_alone()?;
            return self.start(&line).map(|()| Kept::default());
        };
        if found != *header {
            let difference = difference("", &found, header).unwrap_or_default();
            return Err(JournalError::OtherSweep { path: self.path.clone(), difference });
        }
        let kept = self.runs(&mut lines)?;
        let good = lines.good_bytes;
        self.file.set_len(good).map_err(|error| self.failed(error))?;
        Ok(kept)
    }

    /// A file of this name that begins like no journal is somebody's.
    fn check_ours(&self, header: &str) -> Result<(), JournalError> {
        let begin = &header.as_bytes()[..HEADER_BEGIN.min(header.len())];
        let mut found = Vec::new();
        let read = self.lines()?.source.take(begin.len() as u64).read_to_end(&mut found);
        read.map_err(|error| self.failed(error))?;
        if begin.starts_with(&found) { Ok(()) } else { Err(self.no_sweep()) }
    }

    /// A sweep that has not begun leaves nothing but its journal and what it had not finished writing.
    fn check_alone(&self) -> Result<(), JournalError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        for entry in fs::read_dir(folder).map_err(|error| self.failed(error))? {
            let name = entry.map_err(|error| self.failed(error))?.file_name();
            if name != JOURNAL_FILE && !name.to_string_lossy().starts_with(UNFINISHED_PREFIX) {
                return Err(self.no_sweep());
            }
        }
        Ok(())
    }

    fn no_sweep(&self) -> JournalError {
        JournalError::NoSweep(self.path.clone())
    }

    fn lines(&self) -> Result<Lines<BufReader<&File>>, JournalError> {
        (&self.file).seek(SeekFrom::Start(0)).map_err(|error| self.failed(error))?;
        Ok(Lines { source: BufReader::new(&self.file), good_bytes: 0, number: 0 })
    }

    fn header(&self, lines: &mut Lines<BufReader<&File>>) -> Result<Option<Value>, JournalError> {
        match lines.next::<Value>(HEADER_MAX).map_err(|error| self.failed(error))? {
            Next::Line(found) => Ok(Some(found)),
            Next::End | Next::Torn(_) => Ok(None),
            Next::Damaged(problem) => Err(self.damaged(1, problem)),
        }
    }

    fn runs(&self, lines: &mut Lines<BufReader<&File>>) -> Result<Kept, JournalError> {
        let mut kept = Kept::default();
        loop {
            let next = lines.next::<Line>(SWEEP_JOURNAL_LINE_MAX);
            match next.map_err(|error| self.failed(error))? {
                Next::Line(Line::Finished(run)) => kept.runs.push(*run),
                Next::Line(Line::Verified(run)) => kept.verified.push(run),
                Next::End => break,
                Next::Torn(problem) => {
                    let line = lines.number;
                    kept.warning = Some(format!(
                        "{}: the last line ({line}) was cut off ({problem}) and is dropped; its run runs again",
                        self.path.display(),
                    ));
                    break;
                }
                Next::Damaged(problem) => return Err(self.damaged(lines.number, problem)),
            }
        }
        Ok(kept)
    }

    fn start(&mut self, header: &str) -> Result<(), JournalError> {
        self.file.set_len(0).map_err(|error| self.failed(error))?;
        self.file.write_all(header.as_bytes()).map_err(|error| self.failed(error))
    }

    fn damaged(&self, line: u64, problem: String) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), line, problem }
    }
}

/// A value as a line with its checksum.
fn sealed(value: &impl Serialize) -> serde_json::Result<String> {
    let json = serde_json::to_string(value)?;
    let body = json.strip_suffix('}').unwrap_or(&json);
    Ok(format!("{body}{CHECKSUM}{:016x}\"}}\n", xxh3_64(body.as_bytes())))
}

/// The value of a line without its line feed.
fn opened<T: for<'de> Deserialize<'de>>(line: &[u8]) -> Result<T, String> {
    let text = str::from_utf8(line).map_err(|_| "it is not UTF-8 text".to_owned())?;
    let (body, checksum) = text.rsplit_once(CHECKSUM).ok_or("it has no checksum")?;
    if checksum != format!("{:016x}\"}}", xxh3_64(body.as_bytes())) {
        return Err("its checksum does not match".to_owned());
    }
    serde_json::from_str(&format!("{body}}}")).map_err(|error| error.to_string())
}

struct Lines<R> {
    source: R,
    good_bytes: u64,
    number: u64,
}

enum Next<T> {
    Line(T),
    End,
    Torn(String),
    Damaged(String),
}

impl<R: BufRead> Lines<R> {
    fn next<T: for<'de> Deserialize<'de>>(&mut self, bytes_max: usize) -> io::Result<Next<T>> {
        let mut line = Vec::new();
        let limit = bytes_max as u64 + 1;
        let length = self.source.by_ref().take(limit).read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            return Ok(Next::End);
        }
        self.number += 1;
        let opened = match line.strip_suffix(b"\n") {
            Some(whole) => opened(whole),
            None if length == limit => {
                return Ok(Next::Damaged(format!("it is longer than {bytes_max} bytes")));
            }
            None => return Ok(Next::Torn("it has no end".to_owned())),
        };
        match opened {
            Ok(value) => {
                self.good_bytes += length;
                Ok(Next::Line(value))
            }
            Err(problem) if self.source.fill_buf()?.is_empty() => Ok(Next::Torn(problem)),
            Err(problem) => Ok(Next::Damaged(problem)),
        }
    }
}

/// The first path at which two headers differ, in words.
pub(crate) fn difference(path: &str, found: &Value, wanted: &Value) -> Option<String> {
    if found == wanted {
        return None;
    }
    if let (Value::Object(found), Value::Object(wanted)) = (found, wanted) {
        for name in wanted.keys().chain(found.keys()) {
            let inside = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let missing = &Value::Null;
            let pair = (found.get(name).unwrap_or(missing), wanted.get(name).unwrap_or(missing));
            if let Some(difference) = difference(&inside, pair.0, pair.1) {
                return Some(difference);
            }
        }
    }
    if let (Value::Array(found), Value::Array(wanted)) = (found, wanted)
        && found.len() == wanted.len()
    {
        let mut pairs = found.iter().zip(wanted).enumerate();
        return pairs.find_map(|(index, (found, wanted))| {
            let named = wanted.get("name").and_then(Value::as_str);
            let step = named.map_or_else(|| index.to_string(), str::to_owned);
            difference(&format!("{path}[{step}]"), found, wanted)
        });
    }
    let shown = |value: &Value| -> String {
        const SHOWN: usize = 80;
        let text = value.to_string();
        if text.chars().count() <= SHOWN {
            return text;
        }
        text.chars().take(SHOWN).chain("...".chars()).collect()
    };
    let is_parameter = path.starts_with("plan.grid[") && path.ends_with("].name");
    let path = if is_parameter { "a parameter" } else { path };
    Some(format!("{path} is {} there and {} here", shown(found), shown(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::scored;
    use serde_json::json;

    fn header() -> Value {
        json!({ "strategy": { "name": "sma-cross", "sha256": "ab" }, "plan": { "runs": 3 } })
    }

    fn run(row: usize) -> Finished {
        Finished {
            row,
            combination: Some(row as u64),
            score: Some(scored(Some(0.1 + 0.2), 0.3)),
            error: None,
        }
    }

    fn failed_run(row: usize) -> Finished {
        let error = "strategy `x`: \"no\",\"checksum\":\"0\"}\n組木".to_owned();
        Finished { row, combination: None, score: None, error: Some(error) }
    }

    fn written(runs: &[Finished]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, kept) = Journal::open(folder.path(), &header()).unwrap();
        assert!(kept.runs.is_empty() && kept.warning.is_none());
        runs.iter().for_each(|run| journal.add(run).unwrap());
        journal.sync().unwrap();
        folder
    }

    fn open(folder: &tempfile::TempDir) -> Result<Kept, JournalError> {
        Journal::open(folder.path(), &header()).map(|(_, kept)| kept)
    }

    #[test]
    fn runs_are_kept_in_order() {
        let runs = [run(2), failed_run(0), run(1)];
        let folder = written(&runs);
        assert_eq!(open(&folder).unwrap().runs, runs);
        let (mut journal, _) = Journal::open(folder.path(), &header()).unwrap();
        journal.add(&run(3)).unwrap();
        let again = [Some("0123"), None].map(|digest| digest.map(str::to_owned));
        let again = again.map(|digest| Verified { verified_row: 2, digest });
        again.iter().for_each(|run| journal.add_verified(run).unwrap());
        drop(journal);
        let kept = open(&folder).unwrap();
        assert_eq!((kept.runs.len(), kept.verified), (4, again.to_vec()));
    }

    #[test]
    fn a_torn_last_line_is_dropped_with_a_warning_wherever_it_was_cut() {
        let folder = written(&[run(0), failed_run(1)]);
        let path = folder.path().join(JOURNAL_FILE);
        let whole = fs::read(&path).unwrap();
        let ends: Vec<usize> = whole
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at + 1)
            .collect();
        for cut in ends[1] + 1..ends[2] {
            fs::write(&path, &whole[..cut]).unwrap();
            let kept = open(&folder).unwrap();
            assert_eq!(kept.runs, [run(0)], "cut at {cut}");
            assert!(kept.warning.unwrap().contains("the last line (3) was cut off"));
            // The rest is gone, so that the next line starts on a line of its own.
            assert_eq!(fs::read(&path).unwrap(), whole[..ends[1]]);
        }
        for cut in 1..ends[0] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(open(&folder).unwrap().runs.is_empty(), "cut at {cut}");
            assert_eq!(fs::read(&path).unwrap(), whole[..ends[0]]);
        }
    }

    #[test]
    fn a_last_line_with_wrong_bytes_is_dropped_and_damage_before_it_is_an_error() {
        let folder = written(&[run(0), run(1)]);
        let path = folder.path().join(JOURNAL_FILE);
        let whole = fs::read(&path).unwrap();
        let mut last = whole.clone();
        let length = last.len();
        last[length - 30] ^= 1;
        fs::write(&path, &last).unwrap();
        assert_eq!(open(&folder).unwrap().runs, [run(0)]);
        let mut middle = whole.clone();
        let place = middle.iter().position(|byte| *byte == b'\n').unwrap() + 20;
        middle[place] ^= 1;
        fs::write(&path, &middle).unwrap();
        let error = open(&folder).unwrap_err().to_string();
        assert!(
            error.contains("line 2: its checksum does not match; delete the folder"),
            "{error}"
        );
    }

    #[test]
    fn lines_have_a_limit() {
        let folder = written(&[]);
        let path = folder.path().join(JOURNAL_FILE);
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&vec![b'x'; SWEEP_JOURNAL_LINE_MAX + 1]).unwrap();
        file.write_all(b"\n").unwrap();
        let error = open(&folder).unwrap_err().to_string();
        assert!(error.contains("it is longer than 65536 bytes"), "{error}");
    }

    #[test]
    fn another_sweep_is_refused_with_the_difference() {
        let folder = written(&[run(0)]);
        let mut other = header();
        other["strategy"]["sha256"] = json!("cd");
        let error = Journal::open(folder.path(), &other).unwrap_err().to_string();
        assert!(
            error.contains("holds another sweep: strategy.sha256 is \"ab\" there and \"cd\" here"),
            "{error}"
        );
        let mut more = header();
        more["window"] = json!(1);
        let error = Journal::open(folder.path(), &more).unwrap_err().to_string();
        assert!(error.contains("window is null there and 1 here"), "{error}");
    }

    #[test]
    fn only_one_sweep_at_a_time() {
        let folder = written(&[]);
        let (_open, _) = Journal::open(folder.path(), &header()).unwrap();
        let error = Journal::open(folder.path(), &header()).unwrap_err();
        assert!(matches!(error, JournalError::InUse(_)), "{error}");
    }
}
