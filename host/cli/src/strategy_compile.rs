//! `kumiki strategy compile`: compiles the built-in strategies beside the program.
//!
//! Others may keep files in that folder. A list in it names those that this command wrote; only these are
//! ever removed, once what takes their place is there.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use atomic_file::AtomicFolder;
use sandbox::CacheOutcome;
use trader::{Loading, Strategies};

use crate::Ending;
use crate::args::StrategyCompileArgs;
use crate::paths;

/// Names the files of the folder that this command wrote, one in each line.
const LIST_FILE: &str = "written-by-kumiki.txt";
/// The folder of compiled code in a cache.
const COMPONENTS: &str = "components";
/// The ending of compiled code.
const ENDING: &str = "cwasm";

/// Runs the command.
pub(crate) fn run(args: &StrategyCompileArgs) -> Result<Ending> {
    let loading = Loading { limits: args.limits.of_strategy()?, ..Loading::default() };
    let folder = paths::strategies_folder(None)?;
    let compiled = paths::compiled_folder(&folder);
    let mut strategies = Strategies { folder, cache: PathBuf::new(), shipped: None };
    let names = strategies.names();
    if names.is_empty() {
        bail!(
            "there are no strategies in {}; build them with `cargo xtask guests`, or put their .wasm \
             files there",
            strategies.folder.display()
        );
    }
    let unfinished = AtomicFolder::create_beside(&compiled)
        .with_context(|| format!("cannot write beside {}", compiled.display()))?;
    strategies.cache = unfinished.unfinished_path().to_owned();
    for name in &names {
        let module = strategies.load_with(name, &loading)?;
        if let CacheOutcome::NotKept(reason) = module.cache_outcome() {
            bail!("the compiled strategy {name} could not be kept: {reason}");
        }
    }
    let place = compiled.join(COMPONENTS);
    take_over(&strategies.cache.join(COMPONENTS), &place)
        .with_context(|| format!("cannot write {}", place.display()))?;
    for name in names {
        println!("{name}");
    }
    Ok(Ending::Done)
}

/// Moves the files of one folder into another, in the place of those that were moved there before.
fn take_over(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let mut new = BTreeSet::new();
    for entry in fs::read_dir(from)? {
        new.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    let old = listed(to)?;
    // A crash in between leaves a list that names every file of ours.
    write_list(to, old.union(&new))?;
    for name in &new {
        atomic_file::rename(&from.join(name), &to.join(name))?;
    }
    for name in old.difference(&new) {
        remove(&to.join(name))?;
    }
    write_list(to, new.iter())
}

/// The files that this command wrote. A line that could name anything else is not one of its.
fn listed(folder: &Path) -> Result<BTreeSet<String>> {
    let text = match fs::read_to_string(folder.join(LIST_FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("cannot read {LIST_FILE}"))?,
    };
    Ok(text.lines().filter(|name| is_of_compiled_code(name)).map(str::to_owned).collect())
}

/// Whether a name is one that the sandbox gives: two numbers in hexadecimal and the way of calling.
fn is_of_compiled_code(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(ENDING).and_then(|stem| stem.strip_suffix('.')) else {
        return false;
    };
    let is_hexadecimal = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match stem.split('-').collect::<Vec<_>>()[..] {
        [sha256, engine, path] => {
            is_hexadecimal(sha256, 64)
                && is_hexadecimal(engine, 16)
                && ["direct", "general"].contains(&path)
        }
        _ => false,
    }
}

fn write_list<'a>(folder: &Path, names: impl Iterator<Item = &'a String>) -> Result<()> {
    let text: String = names.map(|name| format!("{name}\n")).collect();
    Ok(atomic_file::write(&folder.join(LIST_FILE), text.as_bytes())?)
}

/// Removes a file of ours; whatever else has its name by now is left.
fn remove(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(fs::remove_file(path)?),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_compiled_code_are_ours() {
        let ours = format!("{}-{}-direct.cwasm", "a".repeat(64), "0".repeat(16));
        assert!(
            is_of_compiled_code(&ours) && is_of_compiled_code(&ours.replace("direct", "general"))
        );
        for other in
            ["", ".cwasm", "notes.txt", "../a.cwasm", &ours[1..], &ours.replace("direct", "x")]
        {
            assert!(!is_of_compiled_code(other), "{other}");
        }
    }
}
