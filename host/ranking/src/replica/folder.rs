//! The folder of a copy: whose it is, where files wait until all are there, and how they are put in
//! their places.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::PathBuf;

use pricestore::generation::{
    Generation, GenerationFileName, PublishedFile, digest_of, is_digest, modified_us,
};
use pricestore::{DataDir, DatasetStatus};

use super::ReplicaError;

/// Bytes of the notes: a name takes 40, and a generation has 20,000 at most.
const NOTES_BYTES_MAX: u64 = 4 << 20;
/// Bytes of an entity tag.
const TAG_BYTES_MAX: u64 = 256;
/// Endings of a file that is on its way, and of the tag of what came of it.
const PART: &str = "part";
const TAG: &str = "tag";

/// What became of a file that was put in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InPlace {
    /// It has the size and time that were noted, and the digest where that was looked at.
    AsNoted,
    /// It has its digest, and another time.
    Touched,
    /// It is gone, or another one.
    Lost,
}

/// A folder that this replica alone writes to.
#[derive(Debug)]
pub(super) struct ReplicaFolder {
    pub(super) data: DataDir,
    /// The files that this replica or one before it in the same folder has put in place.
    placed: BTreeSet<GenerationFileName>,
    _lock: File,
}

impl ReplicaFolder {
    /// Takes a folder that is a replica's already, or nobody's.
    pub(super) fn take(data: &DataDir) -> Result<Self, ReplicaError> {
        let own = data.replica_folder();
        if data.work_folder().exists() {
            return Err(ReplicaError::Folder(
                "the data folder is that of an update job; give the copy a folder of its own with \
                 --prices",
            ));
        }
        if !own.is_dir() && (data.jp_folder().exists() || data.rank_folder().exists()) {
            return Err(ReplicaError::Folder(
                "the data folder holds data that no replica has copied; give the copy a folder of its \
                 own with --prices",
            ));
        }
        fs::create_dir_all(&own)?;
        let lock = atomic_file::open_own(&own.join("LOCK"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ReplicaError::Folder(
                    "another replica keeps its copy in the data folder; give each a folder of its own",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let placed = load_notes(data)?;
        Ok(Self { data: data.clone(), placed, _lock: lock })
    }

    /// Where a file is while it is on its way.
    pub(super) fn part(&self, file: &PublishedFile) -> PathBuf {
        self.data.replica_folder().join(format!("{}.{PART}", file.xxh128))
    }

    fn tag_path(&self, file: &PublishedFile) -> PathBuf {
        self.data.replica_folder().join(format!("{}.{TAG}", file.xxh128))
    }

    /// The entity tag of what came of a file so far.
    pub(super) fn tag(&self, file: &PublishedFile) -> Option<String> {
        let mut tag = String::new();
        let found = atomic_file::open_to_read(&self.tag_path(file)).ok()?;
        found.take(TAG_BYTES_MAX + 1).read_to_string(&mut tag).ok()?;
        (tag.len() as u64 <= TAG_BYTES_MAX).then_some(tag)
    }

    /// Notes the entity tag of what comes of a file. One that promises no equal bytes is not noted.
    pub(super) fn note_tag(&self, file: &PublishedFile, tag: &str) -> io::Result<()> {
        let is_strong = tag.starts_with('"') && tag.len() as u64 <= TAG_BYTES_MAX;
        let path = self.tag_path(file);
        if is_strong { fs::write(path, tag) } else { atomic_file::remove_if_there(&path) }
    }

    /// Forgets what came of a file.
    pub(super) fn discard(&self, file: &PublishedFile) -> io::Result<()> {
        atomic_file::remove_if_there(&self.part(file))?;
        atomic_file::remove_if_there(&self.tag_path(file))
    }

    /// Whether a file is in its place. Only where the generation of this folder does not know it,
    /// its bytes are read.
    pub(super) fn has(&self, file: &PublishedFile, own: Option<&Generation>) -> io::Result<bool> {
        let Some(name) = GenerationFileName::parse(&file.path) else { return Ok(false) };
        let path = name.on_disk(&self.data);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() && found.len() == file.bytes => found,
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        if !self.placed.contains(&name) {
            return Ok(false);
        }
        match own.and_then(|own| own.file(&file.path)) {
            Some(known) if known.is_file(&found) => Ok(known.xxh128 == file.xxh128),
            _ => Ok(digest_of(&path)?.1 == file.xxh128),
        }
    }

    /// The files of the generation in place that are gone or not what they were, by their paths. Of those
    /// that `reads` tells every byte is read; of the others, where size or time are other ones. A file
    /// that only has another time is noted anew.
    pub(super) fn damaged(
        &self,
        own: Option<&Generation>,
        reads: &dyn Fn(&str) -> bool,
    ) -> io::Result<BTreeSet<String>> {
        let Some(own) = own else {
            // Before the first copy nothing is in place.
            let gone = (!self.placed.is_empty()).then(|| "jp/generation.json".to_owned());
            return Ok(gone.into_iter().collect());
        };
        let (mut damaged, mut is_touched) = (BTreeSet::new(), false);
        for file in own.all_files() {
            match self.state(file, reads(&file.path)) {
                InPlace::AsNoted => {}
                InPlace::Touched => is_touched = true,
                InPlace::Lost => {
                    damaged.insert(file.path.clone());
                }
            }
        }
        if self.data.current().ok().flatten() != Some(own.snapshot) {
            damaged.insert("rank/CURRENT".to_owned());
        }
        let has_dataset = DatasetStatus::load(&self.data).is_ok_and(|found| found.is_some());
        if own.dataset.is_some() && !has_dataset {
            damaged.insert("update/dataset.json".to_owned());
        }
        if is_touched && damaged.is_empty() {
            self.as_placed(own.clone())?.store(&self.data)?;
        }
        Ok(damaged)
    }

    /// What became of a file of the generation in place. One that cannot be read is lost.
    fn state(&self, file: &PublishedFile, reads: bool) -> InPlace {
        let Some(name) = GenerationFileName::parse(&file.path) else { return InPlace::Lost };
        let path = name.on_disk(&self.data);
        let is_noted = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() && found.len() == file.bytes => file.is_file(&found),
            _ => return InPlace::Lost,
        };
        if is_noted && !reads {
            return InPlace::AsNoted;
        }
        match digest_of(&path) {
            Ok((_, digest)) if digest == file.xxh128 && is_noted => InPlace::AsNoted,
            Ok((_, digest)) if digest == file.xxh128 => InPlace::Touched,
            _ => InPlace::Lost,
        }
    }

    /// Bytes of the files in place.
    pub(super) fn bytes(&self) -> u64 {
        let sizes = self.placed.iter().map(|name| fs::symlink_metadata(name.on_disk(&self.data)));
        sizes.flatten().map(|found| found.len()).sum()
    }

    /// Removes what came of files that nobody wants any more.
    pub(super) fn forget_parts(&self, wanted: &[PublishedFile]) -> io::Result<()> {
        for entry in fs::read_dir(self.data.replica_folder())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some((digest, ending)) = name.rsplit_once('.') else { continue };
            let is_part = [PART, TAG].contains(&ending) && is_digest(digest);
            if is_part && !wanted.iter().any(|file| file.xxh128 == digest) {
                atomic_file::remove_if_there(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Puts files that have come whole in their places, then the generation, then the name of its
    /// snapshot; then removes what belongs to neither this generation nor the snapshot before it.
    pub(super) fn switch(
        &mut self,
        generation: Generation,
        came: &[PublishedFile],
    ) -> Result<(), ReplicaError> {
        let names = |files: &mut dyn Iterator<Item = &PublishedFile>| {
            files.filter_map(|file| GenerationFileName::parse(&file.path)).collect::<BTreeSet<_>>()
        };
        let all = names(&mut generation.all_files());
        for name in names(&mut came.iter()) {
            let is_there = fs::symlink_metadata(name.on_disk(&self.data)).is_ok();
            if is_there && !self.placed.contains(&name) {
                return Err(ReplicaError::Foreign(name.path()));
            }
        }
        // First, so that no file is ever in place of which the notes do not tell.
        self.placed.extend(all.iter().cloned());
        self.store_notes()?;
        let folders = [self.data.rank_folder(), self.data.jp_folder().join("stocks_daily")];
        folders.iter().try_for_each(fs::create_dir_all)?;
        for file in came {
            let Some(name) = GenerationFileName::parse(&file.path) else { continue };
            let (part, path) = (self.part(file), name.on_disk(&self.data));
            // Files of equal content come once.
            match came.iter().filter(|one| one.xxh128 == file.xxh128).count() {
                1 => atomic_file::replace(&part, &path)?,
                _ => atomic_file::write(&path, &fs::read(&part)?)?,
            }
        }
        for folder in folders.iter().chain([&self.data.jp_folder()]) {
            atomic_file::sync_folder(folder)?;
        }
        let (before, snapshot) = (self.data.current().unwrap_or_default(), generation.snapshot);
        if let Some(dataset) = &generation.dataset {
            dataset.clone().store(&self.data)?;
        }
        self.as_placed(generation)?.store(&self.data)?;
        if before != Some(snapshot) {
            let text = format!("{snapshot}\n");
            atomic_file::write(&self.data.current_file(), text.as_bytes())?;
            self.remove_old(&all, before)?;
        } else {
            self.remove_old(&all, None)?;
        }
        self.forget_parts(&[])?;
        Ok(())
    }

    /// A generation with the times of the files here.
    fn as_placed(&self, mut generation: Generation) -> io::Result<Generation> {
        let issues = generation.issues.files.iter_mut().flatten();
        for file in generation.files.iter_mut().chain(issues) {
            let path = GenerationFileName::parse(&file.path).map(|name| name.on_disk(&self.data));
            let path = path.ok_or_else(|| io::Error::other("a file without a place"))?;
            file.modified_us = modified_us(&fs::symlink_metadata(path)?);
        }
        Ok(generation)
    }

    /// Removes what was put in place for generations before. What the system holds fast is tried again
    /// the next time.
    fn remove_old(
        &mut self,
        kept: &BTreeSet<GenerationFileName>,
        snapshot_before: Option<u64>,
    ) -> io::Result<()> {
        let data = &self.data;
        let keeps_snapshot = |name: &GenerationFileName| {
            name.snapshot().is_some()
                && (name.snapshot() == snapshot_before || snapshot_before.is_none())
        };
        self.placed.retain(|name| {
            kept.contains(name)
                || keeps_snapshot(name)
                || atomic_file::remove_if_there(&name.on_disk(data)).is_err()
        });
        self.store_notes()
    }

    fn store_notes(&self) -> io::Result<()> {
        let paths: Vec<String> = self.placed.iter().map(GenerationFileName::path).collect();
        let bytes = serde_json::to_vec(&paths).map_err(io::Error::other)?;
        atomic_file::write(&notes(&self.data), &bytes)
    }
}

fn notes(data: &DataDir) -> PathBuf {
    data.replica_folder().join("placed.json")
}

/// The files that were put in place; a note that is none of ours is an error.
fn load_notes(data: &DataDir) -> Result<BTreeSet<GenerationFileName>, ReplicaError> {
    let file = match atomic_file::open_to_read(&notes(data)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    file.take(NOTES_BYTES_MAX).read_to_end(&mut bytes)?;
    let paths: Option<Vec<String>> = serde_json::from_slice(&bytes).ok();
    let names = paths.and_then(|paths| {
        paths.iter().map(|path| GenerationFileName::parse(path)).collect::<Option<BTreeSet<_>>>()
    });
    let damaged = "the notes of the replica (replica/placed.json) are damaged; remove the data folder, \
                   it is copied again";
    names.ok_or(ReplicaError::Folder(damaged))
}
