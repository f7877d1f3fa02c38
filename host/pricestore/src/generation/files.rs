//! Sizes, times and digests of files. A digest is that of the file's writer, or of the generation before: what
//! is found on disk is held against it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use domain::threads::in_parallel;
use xxhash_rust::xxh3::Xxh3;

use super::making::GenerationError;
use super::{Generation, GenerationFileName, PublishedFile, modified_us};
use crate::data_dir::DataDir;
use crate::limits::{DIGEST_FILES_MIN, DIGEST_THREADS_MAX};

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Size and digest of a file.
///
/// # Errors
/// What the system says.
pub fn digest_of(path: &Path) -> io::Result<(u64, String)> {
    let mut file = atomic_file::open_to_read(path)?;
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(CHUNK_BYTES);
    let mut chunk = vec![0; size.clamp(1, CHUNK_BYTES)];
    let (mut hash, mut bytes) = (Xxh3::new(), 0);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok((bytes, format!("{:032x}", hash.digest128()))),
            read => {
                hash.update(&chunk[..read]);
                bytes += read as u64;
            }
        }
    }
}

/// What is done with each of some files, with a few threads and in their order.
fn with_each<T: Send>(
    names: &[GenerationFileName],
    one: impl Fn(&GenerationFileName) -> T + Copy + Send,
) -> io::Result<Vec<T>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = names.len().div_ceil(threads.min(DIGEST_THREADS_MAX)).max(DIGEST_FILES_MIN);
    let parts = names.chunks(part).map(|names| move || names.iter().map(one).collect::<Vec<T>>());
    let mut all = Vec::with_capacity(names.len());
    for part in in_parallel(parts) {
        all.extend(part.map_err(|_| io::Error::other("a digest failed"))?);
    }
    Ok(all)
}

/// Every file as it is on disk, in the order of the names; what the system says where one cannot be read.
/// Every byte is read.
///
/// # Errors
/// When a digest cannot be made, whatever the system says of the file.
pub fn read_files(
    data: &DataDir,
    names: &[GenerationFileName],
) -> io::Result<Vec<io::Result<PublishedFile>>> {
    with_each(names, |name| PublishedFile::read(&name.on_disk(data), name))
}

/// What a file has to be.
pub(super) struct Expected<'a> {
    /// Files of which every byte was read or written by the caller, by path.
    known: BTreeMap<&'a str, &'a PublishedFile>,
    /// The generation before.
    before: Option<&'a Generation>,
}

impl<'a> Expected<'a> {
    pub(super) fn new(known: &'a [PublishedFile], before: Option<&'a Generation>) -> Self {
        let known = known.iter().map(|file| (file.path.as_str(), file)).collect();
        Self { known, before }
    }

    /// A file on disk, where it is what it has to be.
    fn found(
        &self,
        data: &DataDir,
        name: &GenerationFileName,
    ) -> Result<PublishedFile, GenerationError> {
        let (path, on_disk) = (name.path(), name.on_disk(data));
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
        let known = self.known.get(path.as_str()).copied();
        if let Some(known) = known
            && known.is_file(&fs::metadata(&on_disk).map_err(told)?)
        {
            return Ok(known.clone());
        }
        let found = PublishedFile::read(&on_disk, name).map_err(told)?;
        match known.or_else(|| self.before.and_then(|before| before.file(&path))) {
            Some(expected) if !expected.has_bytes_of(&found) => {
                let (expected, found) = (Box::new(expected.clone()), Box::new(found));
                Err(GenerationError::Differs { expected, found })
            }
            _ => Ok(found),
        }
    }
}

/// What stands on disk under these names, by path; an error where one is not what it has to be.
pub(super) fn describe(
    data: &DataDir,
    names: &[GenerationFileName],
    expected: &Expected<'_>,
) -> Result<Vec<PublishedFile>, GenerationError> {
    let files = with_each(names, |name| expected.found(data, name))?;
    let mut files = files.into_iter().collect::<Result<Vec<_>, _>>()?;
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// A file that its owner may write as well as this program, as it is now; none where it is gone, or has the
/// size and time that the published generation says: then it must have the same bytes.
///
/// # Errors
/// What the system says.
pub fn changed_by_owner(
    data: &DataDir,
    name: &GenerationFileName,
) -> io::Result<Option<PublishedFile>> {
    let before = Generation::load(data).unwrap_or_default();
    let path = name.on_disk(data);
    let found = match fs::metadata(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match before.as_ref().and_then(|before| before.file(&name.path())) {
        Some(known) if known.is_file(&found) => Ok(None),
        _ => PublishedFile::read(&path, name).map(Some),
    }
}

impl PublishedFile {
    /// The file on disk at a path, which is or shall be the one with a name. Every byte is read.
    ///
    /// # Errors
    /// What the system says, or that it is empty or was changed while it was read.
    pub fn read(on_disk: &Path, name: &GenerationFileName) -> io::Result<Self> {
        let found = fs::metadata(on_disk)?;
        let (bytes, xxh128) = digest_of(on_disk)?;
        let after = fs::metadata(on_disk)?;
        if (bytes, modified_us(&found)) != (after.len(), modified_us(&after)) || bytes == 0 {
            return Err(io::Error::other("it is empty, or was changed while it was looked at"));
        }
        Ok(Self { path: name.path(), bytes, xxh128, modified_us: modified_us(&found) })
    }

    /// Whether another file has the same bytes, whenever it was written.
    #[must_use]
    pub fn has_bytes_of(&self, other: &Self) -> bool {
        (self.bytes, &self.xxh128) == (other.bytes, &other.xxh128)
    }
}
