//! Where things are: the cache, the built-in strategies and dialects.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use trader::Strategies;

use crate::args::FolderArgs;

/// The cache folder: as asked for, else where the system keeps caches.
pub(crate) fn cache_folder(folders: &FolderArgs) -> Result<PathBuf> {
    match &folders.cache_dir {
        Some(folder) => Ok(folder.clone()),
        None => system_cache()
            .context("this system has no folder for caches; give one with --cache-dir DIR"),
    }
}

/// Where the system keeps our cache; none where it names no place for caches.
pub(crate) fn system_cache() -> Option<PathBuf> {
    dirs::cache_dir().map(|folder| folder.join("kumiki"))
}

/// Where the system keeps our settings; none where it names no place for settings.
pub(crate) fn system_config() -> Option<PathBuf> {
    dirs::config_dir().map(|folder| folder.join("kumiki"))
}

/// The folder with the built-in strategies: as asked for, else beside the program.
pub(crate) fn strategies_folder(asked: Option<&Path>) -> Result<PathBuf> {
    components_folder(asked, "strategies")
}

/// The folder with the built-in dialects of brokers: as asked for, else beside the program.
pub(crate) fn dialects_folder(asked: Option<&Path>) -> Result<PathBuf> {
    components_folder(asked, "dialects")
}

fn components_folder(asked: Option<&Path>, name: &str) -> Result<PathBuf> {
    if let Some(folder) = asked {
        return Ok(folder.to_owned());
    }
    let program = env::current_exe().context("cannot find out where this program is")?;
    Ok(installed(program.parent().unwrap_or(Path::new(".")), name))
}

/// Beside the program; where a package has put the program into a folder of programs, as in `bin/kumiki`,
/// its files are in `lib/kumiki` beside that folder.
fn installed(programs: &Path, name: &str) -> PathBuf {
    let beside = programs.join(name);
    let is_for_programs = programs.ends_with("bin") || programs.ends_with("Scripts");
    match programs.parent().map(|above| above.join("lib/kumiki").join(name)) {
        Some(of_package) if is_for_programs && !beside.is_dir() && of_package.is_dir() => {
            of_package
        }
        _ => beside,
    }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn strategies_are_beside_the_program_or_where_packages_put_them() {
        let folder = env::temp_dir().join(format!("kumiki-paths-{}", std::process::id()));
        let (programs, of_package) = (folder.join("bin"), folder.join("lib/kumiki/strategies"));
        let beside = programs.join("strategies");
        assert_eq!(installed(&programs, "strategies"), beside, "that is what a message names");
        fs::create_dir_all(&of_package).unwrap();
        assert_eq!(installed(&programs, "strategies"), of_package);
        assert_eq!(
            installed(&folder.join("tmp"), "strategies"),
            folder.join("tmp/strategies"),
            "no other folder is a folder of programs"
        );
        fs::create_dir_all(&beside).unwrap();
        assert_eq!(installed(&programs, "strategies"), beside);
        fs::remove_dir_all(folder).unwrap();
    }
}
