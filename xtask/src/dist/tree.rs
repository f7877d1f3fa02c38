//! The files of a product, in a fixed order, with fixed times and owners: the same files give the same
//! bytes on every machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

/// The time of every file, seconds since 1970: the start of 2020 in UTC. Wheels know none before 1980.
pub(super) const TIME: u64 = 1_577_836_800;
/// How products are packed: a good deal smaller than the fastest, and not much slower.
const LEVEL: u32 = 6;

/// Files by their place, which is written with `/` on every system.
#[derive(Debug, Default, Clone)]
pub(super) struct Tree(BTreeMap<String, Item>);

/// A file.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) bytes: Arc<[u8]>,
    is_program: bool,
}

impl Item {
    /// What its owner, the group and the others may do with it.
    pub(super) const fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }
}

impl Tree {
    /// Adds a file of this machine.
    pub(super) fn add(&mut self, place: impl Into<String>, path: &Path) -> Result<()> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        self.add_text(place, bytes);
        Ok(())
    }

    /// Adds a text.
    pub(super) fn add_text(&mut self, place: impl Into<String>, text: impl Into<Arc<[u8]>>) {
        self.0.insert(place.into(), Item { bytes: text.into(), is_program: false });
    }

    /// Adds a program, or a script.
    pub(super) fn add_program(&mut self, place: impl Into<String>, bytes: impl Into<Arc<[u8]>>) {
        self.0.insert(place.into(), Item { bytes: bytes.into(), is_program: true });
    }

    /// Adds the files of a folder that end so, if any, and tells how many there were.
    pub(super) fn add_folder(&mut self, place: &str, folder: &Path, ending: &str) -> Result<usize> {
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut found = 0;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().context("a file's name is not text")?;
            if entry.file_type()?.is_file() && name.ends_with(ending) {
                self.add(format!("{place}/{name}"), &entry.path())?;
                found += 1;
            }
        }
        Ok(found)
    }

    /// Adds the files of a folder and of all folders below it.
    pub(super) fn add_folders(&mut self, place: &str, folder: &Path) -> Result<()> {
        self.add_folder(place, folder, "")?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                let name = entry.file_name();
                let name = name.to_str().context("a folder's name is not text")?;
                self.add_folders(&format!("{place}/{name}"), &entry.path())?;
            }
        }
        Ok(())
    }

    /// The files, sorted by their place.
    pub(super) fn items(&self) -> impl Iterator<Item = (&str, &Item)> {
        self.0.iter().map(|(place, item)| (place.as_str(), item))
    }

    /// The folders that the files are in, each after the one that it is in.
    pub(super) fn folders(&self) -> BTreeSet<&str> {
        let above =
            |place: &'_ str| -> Vec<usize> { place.match_indices('/').map(|(at, _)| at).collect() };
        let of = |place| above(place).into_iter().map(move |at| &place[..at]);
        self.0.keys().flat_map(|place| of(place.as_str())).collect()
    }

    /// Everything with a folder in front.
    pub(super) fn below(&self, folder: &str) -> Self {
        let moved = self.0.iter().map(|(place, item)| (format!("{folder}/{place}"), item.clone()));
        Self(moved.collect())
    }

    /// Everything with another text in place of one, in files that have it.
    pub(super) fn replacing(mut self, old: &str, new: &str) -> Result<Self> {
        for item in self.0.values_mut() {
            let text = str::from_utf8(&item.bytes).context("a file is not text")?;
            item.bytes = text.replace(old, new).into_bytes().into();
        }
        Ok(self)
    }

    /// Takes another tree's files too.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Writes the files into a folder, which is made.
    pub(super) fn write_folder(&self, folder: &Path) -> Result<()> {
        for place in self.folders() {
            fs::create_dir_all(folder.join(place))?;
            set_mode(&folder.join(place), 0o755)?;
        }
        for (place, item) in self.items() {
            let path = folder.join(place);
            fs::write(&path, &item.bytes)
                .with_context(|| format!("cannot write {}", path.display()))?;
            set_mode(&path, item.mode())?;
        }
        Ok(())
    }

    /// Writes a zip.
    pub(super) fn write_zip(&self, path: &Path) -> Result<()> {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut archive = ZipWriter::new(BufWriter::new(file));
        let options = SimpleFileOptions::default()
            .last_modified_time(zip_time())
            .compression_level(Some(LEVEL.into()));
        for (place, item) in self.items() {
            archive.start_file(place, options.unix_permissions(item.mode()))?;
            archive.write_all(&item.bytes)?;
        }
        archive.finish()?.flush()?;
        Ok(())
    }

    /// Writes a packed tape archive.
    pub(super) fn write_tar_gz(&self, path: &Path) -> Result<()> {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let packed = GzBuilder::new().write(BufWriter::new(file), Compression::new(LEVEL));
        let mut archive = tar::Builder::new(packed);
        for place in self.folders() {
            let mut header = header(tar::EntryType::Directory, 0o755, 0);
            archive.append_data(&mut header, format!("{place}/"), std::io::empty())?;
        }
        for (place, item) in self.items() {
            let size = item.bytes.len() as u64;
            let mut header = header(tar::EntryType::Regular, item.mode(), size);
            archive.append_data(&mut header, place, &*item.bytes)?;
        }
        archive.into_inner()?.finish()?.flush()?;
        Ok(())
    }
}

/// The latest time of files in a zip, which knows no zone: the start of 2020, as [`TIME`] is.
fn zip_time() -> DateTime {
    DateTime::from_date_and_time(2020, 1, 1, 0, 0, 0).unwrap_or_default()
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    header
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_with_all_that_is_below() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("a/b")).expect("it can be made");
        for name in ["1", "a/2", "a/b/3"] {
            fs::write(folder.path().join(name), name).expect("it can be written");
        }
        let mut tree = Tree::default();
        tree.add_folders("docs", folder.path()).expect("it can be read");
        let places: Vec<_> = tree.items().map(|(place, _)| place).collect();
        assert_eq!(places, ["docs/1", "docs/a/2", "docs/a/b/3"]);
    }

    /// The same files, added in another order.
    fn twins() -> [Tree; 2] {
        [["b.txt", "a/program"], ["a/program", "b.txt"]].map(|order| {
            let mut tree = Tree::default();
            for name in order {
                let bytes = name.repeat(1000).into_bytes();
                match name {
                    "b.txt" => tree.add_text(name, bytes),
                    _ => tree.add_program(name, bytes),
                }
            }
            tree.add_text("a/c/readme", *b"text");
            tree
        })
    }

    #[test]
    fn the_same_files_give_the_same_zip() {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = twins().map(|tree| {
            let path = folder.path().join("x.zip");
            tree.below("top").write_zip(&path).expect("it can be packed");
            fs::read(path).expect("it is there")
        });
        assert!(bytes[0] == bytes[1]);
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(&bytes[0])).expect("a zip");
        let mut file = archive.by_name("top/a/program").expect("it is there");
        let time = file.last_modified().map(|time| (time.year(), time.month(), time.day()));
        assert_eq!((time, file.unix_mode()), (Some((2020, 1, 1)), Some(0o100_755)));
        let mut text = String::new();
        std::io::Read::read_to_string(&mut file, &mut text).expect("a text");
        assert_eq!(text, "a/program".repeat(1000));
    }

    #[test]
    fn the_same_files_give_the_same_archive() {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = twins().map(|tree| {
            let path = folder.path().join("x.tar.gz");
            tree.below("top").write_tar_gz(&path).expect("it can be packed");
            fs::read(path).expect("it is there")
        });
        assert!(bytes[0] == bytes[1]);
        let read = flate2::read::GzDecoder::new(bytes[0].as_slice());
        let mut archive = tar::Archive::new(read);
        let entries = archive.entries().expect("it is an archive").map(|entry| {
            let entry = entry.expect("it is whole");
            let header = entry.header();
            assert_eq!(header.mtime().ok(), Some(TIME));
            assert_eq!((header.uid().ok(), header.gid().ok()), (Some(0), Some(0)));
            let place = entry.path().expect("a path").to_string_lossy().into_owned();
            (place, header.mode().expect("a mode"))
        });
        let entries: Vec<_> = entries.collect();
        let wanted = [
            ("top/", 0o755),
            ("top/a/", 0o755),
            ("top/a/c/", 0o755),
            ("top/a/c/readme", 0o644),
            ("top/a/program", 0o755),
            ("top/b.txt", 0o644),
        ];
        assert_eq!(entries, wanted.map(|(place, mode)| (place.to_owned(), mode)));
    }
}
