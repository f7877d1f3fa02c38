//! Where things are: the cache, the built-in strategies.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use replay::strategies::Strategies;

use crate::args::FolderArgs;

/// The cache folder: as asked for, else where the system keeps caches.
pub(crate) fn cache_folder(folders: &FolderArgs) -> Result<PathBuf> {
    match &folders.cache {
        Some(folder) => Ok(folder.clone()),
        None => {
            system_cache().context("this system names no cache folder; give one with --cache DIR")
        }
    }
}

/// Where the system keeps our cache; none where it names no place for caches.
pub(crate) fn system_cache() -> Option<PathBuf> {
    dirs::cache_dir().map(|folder| folder.join("kumiki"))
}

/// The folder with the built-in strategies: as asked for, else beside the program.
pub(crate) fn strategies_folder(asked: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = asked {
        return Ok(folder.to_owned());
    }
    let program = env::current_exe().context("cannot find out where this program is")?;
    Ok(program.parent().unwrap_or(Path::new(".")).join("strategies"))
}

/// Where strategies are, as asked for.
pub(crate) fn strategies(folders: &FolderArgs) -> Result<Strategies> {
    let folder = strategies_folder(folders.strategies.as_deref())?;
    // Compiled code in a folder that somebody names may come from anywhere.
    let shipped = folders.strategies.is_none().then(|| compiled_folder(&folder));
    Ok(Strategies { folder, cache: cache_folder(folders)?, shipped })
}

/// Where the built-in strategies are compiled ahead, in the folder beside the program: a cache folder
/// of its own.
pub(crate) fn compiled_folder(strategies: &Path) -> PathBuf {
    strategies.join("compiled")
}
