//! The folder of this user and machine in which fetched and prepared tools are kept: checkouts share it.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The folder; it need not be there yet.
pub(crate) fn folder() -> Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .or_else(|| absolute("LOCALAPPDATA"))
        .map(|folder| folder.join("kumiki"))
        .context(
            "neither XDG_CACHE_HOME nor HOME is set, so there is no cache folder; set one of them",
        )
}

/// The place in the cache of what is made from a pinned list: another list has another place.
pub(crate) fn pinned(name: &str, list: &str) -> Result<PathBuf> {
    Ok(folder()?.join(format!("{name}-{}", &hex(&Sha256::digest(list))[..16])))
}

/// Makes a folder and locks it, so that only one process fills it; the lock ends with the file.
pub(crate) fn locked(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.with_extension("lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// A digest as text.
pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_list_has_another_place() {
        let place = |list| pinned("tools", list).expect("a home");
        assert_eq!(place("a==1"), place("a==1"));
        assert_ne!(place("a==1"), place("a==2"));
        assert!(place("a==1").starts_with(folder().expect("a home")));
    }
}
