//! Other names for folders of this machine in what is compiled: source files that panics name would tell of
//! it, and the same source would give other bytes elsewhere.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::project::Project;

/// How cargo's folder of the packages of crates.io begins.
const CRATES_IO: &str = "index.crates.io-";
/// That folder, as components know it.
const CRATES_IO_SOURCES: &str = "/cargo/registry/src/index.crates.io-1949cf8c6b5b557f";

/// Folders, and what they are called instead; the last one that fits counts.
pub(crate) fn renamed(
    project: &Project,
    more: &[(PathBuf, &'static str)],
) -> Vec<(PathBuf, String)> {
    let home = cargo_home();
    let mirrors = home.as_deref().map(mirrors).unwrap_or_default();
    let ours = [Some((project.root.clone(), "/kumiki")), home.map(|home| (home, "/cargo"))];
    let mirrors = mirrors.into_iter().map(|folder| (folder, CRATES_IO_SOURCES));
    let all = ours.into_iter().flatten().chain(more.iter().cloned()).chain(mirrors);
    all.map(|(from, to)| (from, to.to_owned())).collect()
}

/// What tells rustc of them.
pub(crate) fn rustc_flags(folders: &[(PathBuf, String)]) -> Vec<String> {
    let flag =
        |(from, to): &(PathBuf, String)| format!("--remap-path-prefix={}={to}", from.display());
    folders.iter().map(flag).collect()
}

fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")))
}

/// Where cargo unpacks the packages of other registries than crates.io, such as mirrors of it.
fn mirrors(home: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    let is_mirror = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        !name.to_string_lossy().starts_with(CRATES_IO)
    };
    let mut mirrors: Vec<PathBuf> = folders.map(|entry| entry.path()).filter(is_mirror).collect();
    mirrors.sort();
    mirrors
}

/// What nothing that is shipped may name: folders of this machine, and the names of mirrors alone, which say
/// from where packages came.
pub(crate) fn forbidden(project: &Project, sysroot: &Path) -> Vec<String> {
    let folders =
        [Some(project.root.clone()), Some(project.target.clone()), env::home_dir(), cargo_home()];
    let folders = folders.into_iter().flatten().chain([sysroot.to_owned()]);
    // One right below the root is none: `/src` is in every other path.
    let folders = folders.filter(|folder| folder.components().count() > 2);
    let mirrors = cargo_home().as_deref().map(mirrors).unwrap_or_default();
    let names = mirrors.into_iter().filter_map(|folder| folder.file_name().map(PathBuf::from));
    folders.chain(names).filter_map(|path| path.to_str().map(str::to_owned)).collect()
}

/// The first of these texts that is in there.
pub(crate) fn first_in<'a>(bytes: &[u8], texts: &'a [String]) -> Option<&'a str> {
    let is_in = |text: &&String| {
        let text = text.as_bytes();
        bytes.windows(text.len()).any(|part| part[0] == text[0] && part == text)
    };
    texts.iter().find(is_in).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_get_other_names_and_are_found_otherwise() {
        let project = Project {
            root: "/home/x/kumiki".into(),
            target: "/src".into(),
            is_database_compiled: false,
        };
        let flags = rustc_flags(&renamed(&project, &[("/work/target".into(), "/target")]));
        assert_eq!(flags[0], "--remap-path-prefix=/home/x/kumiki=/kumiki");
        assert!(
            flags.contains(&"--remap-path-prefix=/work/target=/target".to_owned()),
            "{flags:?}"
        );
        let texts = forbidden(&project, Path::new("/opt/rust"));
        for left in ["a /home/x/kumiki/host/b.rs", "/opt/rust/lib"] {
            assert!(first_in(left.as_bytes(), &texts).is_some(), "{left}");
        }
        for fine in ["/src/lib.rs", "/kumiki/host", "", "/home/x/kumik"] {
            assert_eq!(first_in(fine.as_bytes(), &texts), None, "{fine}");
        }
    }

    #[test]
    fn registries_other_than_crates_io_are_mirrors() {
        let home = tempfile::tempdir().expect("a folder");
        for name in ["index.crates.io-1949cf8c6b5b557f", "mirror.example-1"] {
            fs::create_dir_all(home.path().join("registry/src").join(name)).expect("a folder");
        }
        let found = mirrors(home.path());
        assert_eq!(found, [home.path().join("registry/src/mirror.example-1")]);
    }
}
