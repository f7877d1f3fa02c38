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
    let first = Content::open(audit).and_then(|mut content| {
        content.read(true)?;
        Ok(wall_time_at(&content.part).is_some())
    });
    first.unwrap_or_default()
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

    /// Reads the next part, empty at the end.
    fn read(&mut self, is_line: bool) -> io::Result<()> {
        self.part.clear();
        if let Some(file) = &mut self.file {
            let mut rest = file.take(PART_BYTES_MAX);
            match is_line {
                true => rest.read_until(b'\n', &mut self.part)?,
                false => rest.read_to_end(&mut self.part)?,
            };
        }
        Ok(())
    }

    /// The next part, empty at the end: of the audit log a line without the time of the outside.
    fn next(&mut self, is_audit: bool) -> io::Result<&[u8]> {
        self.read(is_audit)?;
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
fn wall_time_at(line: &[u8]) -> Option<usize> {
    let at = line.windows(WALL_TIME.len()).position(|part| part == WALL_TIME)?;
    Some(at + WALL_TIME.len())
}

/// Takes the times of the outside out of a part of the audit log.
fn without_wall_time(part: &mut Vec<u8>) {
    let mut from = 0;
    while let Some(at) = wall_time_at(&part[from..]) {
        from += at;
        let digits = part[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        part.drain(from - WALL_TIME.len()..from + digits);
        from -= WALL_TIME.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_compared_to_their_last_byte() {
        let folder = tempfile::tempdir().unwrap();
        let [was, is] = ["was", "is"].map(|name| folder.path().join(name));
        let mut bytes = vec![b'x'; PART_BYTES_MAX as usize + 1];
        fs::write(&was, &bytes).unwrap();
        fs::write(&is, &bytes).unwrap();
        assert_eq!(compared(&was, &is, false).unwrap(), None);
        bytes.push(b'x');
        fs::write(&is, &bytes).unwrap();
        let [one, other] = compared(&was, &is, false).unwrap().unwrap();
        assert!(one.starts_with("xxh3_64 ") && one != other, "{one} {other}");
        fs::remove_file(&was).unwrap();
        assert_eq!(compared(&was, &is, false).unwrap().unwrap()[0], "");
        fs::create_dir(&was).unwrap();
        assert_eq!(compared(&was, &is, false).unwrap().unwrap()[0], "no ordinary file");
    }

    #[test]
    fn the_time_of_the_outside_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let [was, is] = ["was", "is"].map(|name| folder.path().join(name));
        fs::write(&was, "{\"a\":1,\"wall_ms\":17}\n{\"wall_ms\":18,\"b\":2}\n").unwrap();
        fs::write(&is, "{\"a\":1,\"wall_ms\":0}\n{\"wall_ms\":1234567,\"b\":2}\n").unwrap();
        assert!(tells_wall_time(&was) && tells_wall_time(&is));
        assert_eq!(compared(&was, &is, true).unwrap(), None);
        assert!(compared(&was, &is, false).unwrap().is_some());
        fs::write(&is, "{\"a\":1,\"wall_ms\":0}\n{\"wall_ms\":1234567,\"b\":3}\n").unwrap();
        assert!(compared(&was, &is, true).unwrap().is_some());
        fs::write(&is, "{\"a\":1}\n").unwrap();
        assert!(!tells_wall_time(&is));
    }
}
