//! Sizes, times and digests of files: only of those that changed is every byte read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

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
    let mut file = File::open(path)?;
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

/// What stands on disk under these names, with the digests of the generation before for what it knows.
pub(super) fn describe(
    data: &DataDir,
    names: &[GenerationFileName],
    before: Option<&Generation>,
) -> io::Result<Vec<PublishedFile>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = names.len().div_ceil(threads.min(DIGEST_THREADS_MAX)).max(DIGEST_FILES_MIN);
    std::thread::scope(|scope| {
        let parts: Vec<_> = names
            .chunks(part)
            .map(|names| {
                let one = move |name| describe_one(data, name, before);
                scope.spawn(move || names.iter().map(one).collect::<io::Result<Vec<_>>>())
            })
            .collect();
        let mut files = Vec::with_capacity(names.len());
        for part in parts {
            files.extend(part.join().map_err(|_| io::Error::other("a digest failed"))??);
        }
        files.sort_unstable_by(|one: &PublishedFile, other| one.path.cmp(&other.path));
        Ok(files)
    })
}

fn describe_one(
    data: &DataDir,
    name: &GenerationFileName,
    before: Option<&Generation>,
) -> io::Result<PublishedFile> {
    let on_disk = name.on_disk(data);
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", name.path()));
    let found = fs::metadata(&on_disk).map_err(told)?;
    if let Some(known) = before.and_then(|before| before.file(&name.path()))
        && known.is_file(&found)
    {
        return Ok(known.clone());
    }
    let (bytes, xxh128) = digest_of(&on_disk).map_err(told)?;
    let after = fs::metadata(&on_disk).map_err(told)?;
    if (bytes, modified_us(&found)) != (after.len(), modified_us(&after)) || bytes == 0 {
        return Err(told(io::Error::other("it was changed while it was looked at")));
    }
    Ok(PublishedFile { path: name.path(), bytes, xxh128, modified_us: modified_us(&found) })
}
