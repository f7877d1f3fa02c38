//! Where things are: the cache, the built-in strategies.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

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
pub(crate) fn strategies_folder(folders: &FolderArgs) -> Result<PathBuf> {
    if let Some(folder) = &folders.strategies {
        return Ok(folder.clone());
    }
    let program = env::current_exe().context("cannot find out where this program is")?;
    Ok(program.parent().unwrap_or(Path::new(".")).join("strategies"))
}

/// The names of the strategies in a folder, sorted. None where there is no such folder.
pub(crate) fn strategy_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "wasm"))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

/// The file of a strategy that is given as a path or as a built-in name.
pub(crate) fn find_strategy(given: &str, folders: &FolderArgs) -> Result<PathBuf> {
    let as_path = Path::new(given);
    let looks_like_path = as_path.components().count() > 1
        || as_path.extension().is_some_and(|ending| ending == "wasm");
    if looks_like_path {
        if as_path.is_file() {
            return Ok(as_path.to_owned());
        }
        let names = strategy_names(&strategies_folder(folders)?).join(", ");
        bail!(
            "there is no strategy file {given}; build it first, or name a built-in strategy: {names}"
        );
    }
    let folder = strategies_folder(folders)?;
    let path = folder.join(format!("{given}.wasm"));
    if path.is_file() {
        return Ok(path);
    }
    let names = strategy_names(&folder);
    if names.is_empty() {
        bail!(
            "there is no strategy `{given}`: the folder {} holds none; build them with \
             `cargo xtask guests`, or give the path of a .wasm file",
            folder.display()
        );
    }
    bail!(
        "there is no built-in strategy `{given}`; there are: {}. For a file of your own give its \
         path, like ./{given}.wasm",
        names.join(", ")
    );
}
