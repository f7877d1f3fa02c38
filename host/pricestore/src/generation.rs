//! A generation: the published files that belong together, tied by one small file that is published
//! last, `jp/generation.json`.

mod files;
mod making;
mod names;
mod reader;
#[cfg(test)]
mod tests;

use std::fs::Metadata;
use std::io::{self, Read};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::data_dir::DataDir;
use crate::dataset::DatasetStatus;
use crate::limits::GENERATION_BYTES_MAX;
use crate::text::excerpt;

pub use files::{changed_by_owner, digest_of, read_files};
pub use making::{GenerationError, Issues, publish_generation, publish_generation_of};
pub use names::GenerationFileName;
pub use reader::{CurrentGeneration, GenerationReader};

/// The version of the file's form.
const VERSION: u32 = 1;

/// The published files that belong together, and what tells them from those before and after.
///
/// | Rule | While | a reader sees |
/// |---|---|---|
/// | M1 | nothing is published | `jp/generation.json` names the files as they are: bytes, digest and time of change of each are those on disk |
/// | M2 | a publication is under way, or was killed | the file of the generation before, as a whole; what it names is there, or is replaced already |
/// | M3 | the same | each database is a whole one, of the generation before or the next; files are renamed one by one, so two of them may be of different ones |
/// | M4 | the same | one whole snapshot in all rankings of a request: that of the generation before, or the next |
/// | M5 | a publication has ended | the next file, renamed into place when all that it names is on the disk |
/// | M6 | the next run after a kill | as M2, until it ends as M5 |
/// | M7 | a publication takes a file over that it did not write | it with the bytes that it was written with, or the generation before: one that has others is no part of the next |
///
/// | Who reads | knows the generation by |
/// |---|---|
/// | files over HTTP | the header `Kumiki-Generation` of a download; without it the file is of a publication that has not ended, or damaged; the entity tag of a file is its digest |
/// | rankings | the same header, `dataset { generation }`, and `generation` of `/health`; null for a snapshot whose publication has not ended |
/// | files on disk | this file: a file belongs to it while its bytes and its time of change are those that stand here ([`PublishedFile::is_file`]); its digest tells for sure |
///
/// So who takes several files compares one text, and a mix is one that differs or is not there. The
/// name of a generation is derived from its content: equal names mean equal bytes. Digests are
/// XXH3 (128 bits, as `xxh128sum` prints them): they find damage and mixes and cost a fraction of
/// reading, while against malice they need not help, because who can change a file can change this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Version of this form.
    pub version: u32,
    /// Its name: 32 hexadecimal digits made of all that is below but times and `dataset`.
    pub generation: String,
    /// Number of the snapshot that rankings read.
    pub snapshot: u64,
    /// What tells the snapshot's content from any other: 16 hexadecimal digits.
    pub snapshot_content: String,
    /// First business day, `YYYY-MM-DD`.
    pub first_date: String,
    /// Last business day, `YYYY-MM-DD`.
    pub last_date: String,
    /// The combined database, the snapshot, and the listed issues where there are some, by path.
    pub files: Vec<PublishedFile>,
    /// The databases of single issues.
    pub issues: IssueFiles,
    /// How complete the data is; no part of the name.
    pub dataset: Option<DatasetStatus>,
}

/// The databases of single issues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueFiles {
    /// How many there are.
    pub count: u64,
    /// Digest of the lines `path bytes digest` of all of them.
    pub xxh128: String,
    /// All of them by path; none in a copy that does without.
    pub files: Option<Vec<PublishedFile>>,
}

/// A file of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedFile {
    /// Its path below the data directory, with `/`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// XXH3 of its bytes: 32 hexadecimal digits.
    pub xxh128: String,
    /// When it was changed last, in microseconds since 1970.
    pub modified_us: u64,
}

impl PublishedFile {
    /// Whether a file on disk is this one, by its size and time of change.
    #[must_use]
    pub fn is_file(&self, found: &Metadata) -> bool {
        self.is(found.len(), modified_us(found))
    }

    /// The same for a size and a time of change in microseconds since 1970.
    #[must_use]
    pub fn is(&self, bytes: u64, modified_us: u64) -> bool {
        (self.bytes, self.modified_us) == (bytes, modified_us)
    }

    /// What counts of it in names and digests.
    fn line(&self) -> String {
        format!("{} {} {}\n", self.path, self.bytes, self.xxh128)
    }
}

/// When a file was changed last, in microseconds since 1970; 0 where that is not told.
#[must_use]
pub fn modified_us(found: &Metadata) -> u64 {
    let since = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

impl Generation {
    /// The published one; none where none was published.
    ///
    /// # Errors
    /// When the file cannot be read, is too large or is not what it has to be.
    pub fn load(data: &DataDir) -> io::Result<Option<Self>> {
        let file = match atomic_file::open_to_read(&data.generation_file()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(GENERATION_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        Self::from_bytes(&bytes).map(Some).map_err(wrong)
    }

    /// A generation from the bytes of its file, checked against its own name.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > GENERATION_BYTES_MAX {
            return Err(format!("generation.json has more than {GENERATION_BYTES_MAX} bytes"));
        }
        let found: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("generation.json: {error}"))?;
        found.check().map_err(|what| format!("generation.json: {what}"))?;
        Ok(found)
    }

    /// Puts it in the place of the one before.
    ///
    /// # Errors
    /// What the system says; the one before is there then.
    pub fn store(&self, data: &DataDir) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(self).map_err(io::Error::other)?;
        bytes.push(b'\n');
        atomic_file::write(&data.generation_file(), &bytes)
    }

    /// A file of it by its path below the data directory.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&PublishedFile> {
        let issues = self.issues.files.as_deref().unwrap_or_default();
        let found = |files: &[PublishedFile]| {
            files.binary_search_by(|one| one.path.as_str().cmp(path)).ok()
        };
        match found(&self.files) {
            Some(at) => self.files.get(at),
            None => issues.get(found(issues)?),
        }
    }

    /// All files that it names.
    pub fn all_files(&self) -> impl Iterator<Item = &PublishedFile> {
        self.files.iter().chain(self.issues.files.iter().flatten())
    }

    /// Holds every file on disk against its digest.
    ///
    /// # Errors
    /// The first that is not there or is another one.
    pub fn check_files(&self, data: &DataDir) -> io::Result<()> {
        self.all_files().try_for_each(|file| {
            let path = data.path().join(&file.path);
            let (bytes, digest) = digest_of(&path)?;
            if (bytes, &digest) == (file.bytes, &file.xxh128) {
                return Ok(());
            }
            let what = format!("{} is not of generation {}", file.path, self.generation);
            Err(io::Error::new(io::ErrorKind::InvalidData, what))
        })
    }

    /// Whether it can be what a publication has written.
    fn check(&self) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!("it has version {}, not {VERSION}", self.version));
        }
        let parts = [Some(&self.files), self.issues.files.as_ref()];
        for (part, files) in parts.into_iter().enumerate() {
            let mut before: Option<&str> = None;
            for file in files.into_iter().flatten() {
                if before.is_some_and(|before| before >= file.path.as_str()) {
                    return Err("its files are not in order, or one is there twice".to_owned());
                }
                before = Some(&file.path);
                let name = GenerationFileName::parse(&file.path);
                let is_issue = matches!(name, Some(GenerationFileName::Issue(_)));
                let fits =
                    name.is_some_and(|name| name.snapshot().is_none_or(|n| n == self.snapshot));
                if !fits || is_issue != (part == 1) || !is_digest(&file.xxh128) || file.bytes == 0 {
                    return Err(format!("`{}` is no file of a generation", excerpt(&file.path)));
                }
            }
        }
        let needed = [GenerationFileName::Combined, GenerationFileName::Grid(self.snapshot)];
        if let Some(name) = needed.iter().find(|name| self.file(&name.path()).is_none()) {
            return Err(format!("{} is not in it", name.path()));
        }
        if let Some(files) = &self.issues.files
            && self.issues != IssueFiles::of(files.clone())
        {
            return Err("the digest of the issues' files is another one".to_owned());
        }
        if self.generation != self.name() {
            return Err("its name is not that of its content".to_owned());
        }
        Ok(())
    }

    /// The name that its content has.
    fn name(&self) -> String {
        let mut hash = Xxh3::new();
        let dates = format!("{} {}\n", self.first_date, self.last_date);
        let issues = format!("{} {}\n", self.issues.count, self.issues.xxh128);
        let head = format!("generation {VERSION}\n{} {}\n", self.snapshot, self.snapshot_content);
        for text in [head, dates, issues] {
            hash.update(text.as_bytes());
        }
        self.files.iter().for_each(|file| hash.update(file.line().as_bytes()));
        format!("{:032x}", hash.digest128())
    }
}

impl IssueFiles {
    /// These files, which are ascending by path.
    fn of(files: Vec<PublishedFile>) -> Self {
        let mut hash = Xxh3::new();
        files.iter().for_each(|file| hash.update(file.line().as_bytes()));
        let xxh128 = format!("{:032x}", hash.digest128());
        Self { count: files.len() as u64, xxh128, files: Some(files) }
    }
}

/// Whether a text is a digest as it stands in the file of a generation.
#[must_use]
pub fn is_digest(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
