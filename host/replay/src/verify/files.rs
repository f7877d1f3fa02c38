//! Holds the files of a run made again against those of its folder, byte for byte, in little memory.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use domain::limits::VERIFY_OTHERS_MAX;
use results::output::{AUDIT_FILE, MANIFEST_FILE, REPORT_FILE};
use xxhash_rust::xxh3::Xxh3;

use super::{Difference, OtherFiles};

/// How the audit log tells the time of the outside.
const WALL_TIME: &[u8] = b"\"wall_ms\":";
/// Bytes of a file that are in memory at once; a line of the audit log is far shorter.
const PART_BYTES_MAX: u64 = 1 << 20;

/// The files of the run made again that are not in the folder as they are, byte for byte. Manifest and
/// page say the window too, and are made from what is compared.
///
/// # Errors
/// The file, and what the system says.
pub(super) fn changed(
    folder: &Path,
    again: &Path,
) -> Result<Vec<Difference>, (PathBuf, io::Error)> {
    let mut changed = Vec::new();
    let mut names: Vec<_> = fs::read_dir(again)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
        .map_err(|error| (again.to_owned(), error))?;
    names.sort();
    for name in names {
        if name == MANIFEST_FILE || name == REPORT_FILE {
            continue;
        }
        let is_audit = name == AUDIT_FILE;
        let told = compared(&folder.join(&name), &again.join(&name), is_audit);
        if let Some([was, is]) = told.map_err(|error| (folder.join(&name), error))? {
            let what = format!("the file {}", name.to_string_lossy());
            changed.push(Difference { what, was, is });
        }
    }
    Ok(changed)
}

/// What is in the folder and not in that of the run made again.
pub(super) fn others(folder: &Path, again: &Path) -> io::Result<OtherFiles> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !again.join(&name).exists() {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    let more = names.len().saturating_sub(VERIFY_OTHERS_MAX);
    names.truncate(VERIFY_OTHERS_MAX);
    Ok(OtherFiles { names, more })
}

/// Whether an audit log tells the time of the outside.
pub(super) fn tells_wall_time(audit: &Path) -> bool {
    let first = Content::open(audit).and_then(|mut content| Ok(content.next(true)?.to_vec()));
    first.is_ok_and(|line| has_wall_time(&line).is_some())
}

/// Two files in words, where they differ.
fn compared(was: &Path, is: &Path, is_audit: bool) -> io::Result<Option<[String; 2]>> {
    let (mut was, mut is) = (Content::open(was)?, Content::open(is)?);
    let mut is_same = was.kind == is.kind;
    loop {
        let (one, other) = (was.next(is_audit)?, is.next(is_audit)?);
        is_same &= one == other;
        if one.is_empty() && other.is_empty() {
            return Ok((!is_same).then(|| [was.told(), is.told()]));
        }
    }
}

/// What there is under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    File,
    /// A folder, or a pipe that could keep its reader waiting.
    Other,
}

/// A file, part by part.
struct Content {
    kind: Kind,
    file: Option<BufReader<File>>,
    part: Vec<u8>,
    sum: Xxh3,
}

impl Content {
    fn open(path: &Path) -> io::Result<Self> {
        let kind = match fs::metadata(path) {
            Ok(found) if found.is_file() => Kind::File,
            Ok(_) => Kind::Other,
            Err(error) if error.kind() == ErrorKind::NotFound => Kind::Nothing,
            Err(error) => return Err(error),
        };
        let file = (kind == Kind::File).then(|| File::open(path)).transpose()?;
        let file = file.map(BufReader::new);
        Ok(Self { kind, file, part: Vec::new(), sum: Xxh3::new() })
    }

    /// The next part, empty at the end: of the audit log a line without the time of the outside.
    fn next(&mut self, is_audit: bool) -> io::Result<&[u8]> {
        self.part.clear();
        if let Some(file) = &mut self.file {
            let mut rest = file.take(PART_BYTES_MAX);
            match is_audit {
                true => rest.read_until(b'\n', &mut self.part)?,
                false => rest.read_to_end(&mut self.part)?,
            };
        }
        if is_audit {
            without_wall_time(&mut self.part);
        }
        self.sum.update(&self.part);
        Ok(&self.part)
    }

    /// What was read, in words.
    fn told(&self) -> String {
        match self.kind {
            Kind::Nothing => String::new(),
            Kind::Other => "no ordinary file".to_owned(),
            Kind::File => format!("xxh3_64 {:016x}", self.sum.digest()),
        }
    }
}

/// Where the digits of the time of the outside are.
fn has_wall_time(line: &[u8]) -> Option<usize> {
    let at = line.windows(WALL_TIME.len()).position(|part| part == WALL_TIME)?;
    Some(at + WALL_TIME.len())
}

/// Takes the times of the outside out of a part of the audit log.
fn without_wall_time(part: &mut Vec<u8>) {
    let mut from = 0;
    while let Some(at) = has_wall_time(&part[from..]) {
        from += at;
        let digits = part[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        part.drain(from - WALL_TIME.len()..from + digits);
        from -= WALL_TIME.len();
    }
}
