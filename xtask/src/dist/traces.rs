//! Folders of the machine that compiled the program: its messages of faults name the source files of
//! packages. They are blanked where they stand, in their length; to have the compiler write other names,
//! everything would have to be compiled once more.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::guests::CRATES_IO;
use crate::project::Project;
use crate::toolchain::Active;

/// What stands in place of each byte of a folder.
const BLANK: u8 = b'_';

/// Folders that are blanked, and what must be in no product afterwards.
pub(super) struct Traces {
    blanked: Vec<String>,
    forbidden: Vec<String>,
}

impl Traces {
    /// Those of this machine. `registries` are the folders that cargo has unpacked packages into.
    pub(super) fn of(project: &Project, active: &Active, registries: &BTreeSet<PathBuf>) -> Self {
        let target = &project.target;
        let made = [target.join("release/build"), target.join("duckdb-sources")];
        let mut forbidden = vec![project.root.clone(), target.clone(), active.sysroot.clone()];
        forbidden.extend(env::home_dir());
        // And the names of mirrors alone: they say from where packages came.
        let names = registries.iter().filter_map(|folder| folder.file_name()?.to_str());
        let mirrors = names.filter(|name| !name.starts_with(CRATES_IO)).map(str::to_owned);
        Self {
            blanked: registries.iter().chain(&made).filter_map(|path| text(path)).collect(),
            forbidden: forbidden.iter().filter_map(|path| text(path)).chain(mirrors).collect(),
        }
    }

    /// Blanks the folders.
    pub(super) fn blank(&self, bytes: &mut [u8]) {
        for folder in &self.blanked {
            let found: Vec<usize> = memmem::find_iter(bytes, folder).collect();
            for at in found {
                bytes[at..at + folder.len()].fill(BLANK);
            }
        }
    }

    /// One that is in there.
    pub(super) fn first_in(&self, bytes: &[u8]) -> Option<&str> {
        let is_in = |trace: &&String| memmem::find(bytes, trace.as_bytes()).is_some();
        self.forbidden.iter().find(is_in).map(String::as_str)
    }
}

/// A folder as it stands in a program. One right below the root is none: `/src` is in every other path.
fn text(folder: &Path) -> Option<String> {
    let depth = folder.components().count();
    // The root counts as one.
    (depth > 2).then(|| folder.to_str().map(str::to_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_blanked_in_their_length_and_found_otherwise() {
        let project = Project {
            root: "/home/x/kumiki".into(),
            target: "/work/target".into(),
            rust_version: "1.95".to_owned(),
        };
        let active = Active {
            version: "1.95.0".to_owned(),
            host: "x86_64-unknown-linux-gnu".to_owned(),
            sysroot: "/opt/rust".into(),
        };
        let registry = PathBuf::from("/home/x/.cargo/registry/src/mirror.example-1");
        let traces = Traces::of(&project, &active, &BTreeSet::from([registry]));
        let mut bytes = b"a/home/x/.cargo/registry/src/mirror.example-1/c-1/d.rs, \
                          /work/target/release/build/e/out/f.rs /src/g"
            .to_vec();
        let length = bytes.len();
        assert!(traces.first_in(&bytes).is_some());
        traces.blank(&mut bytes);
        let blanked = String::from_utf8(bytes).expect("it is text");
        assert_eq!(blanked.len(), length);
        assert!(blanked.starts_with("a____") && blanked.contains("_/c-1/d.rs, ___"), "{blanked}");
        assert!(blanked.ends_with("___/e/out/f.rs /src/g"), "{blanked}");
        assert_eq!(traces.first_in(blanked.as_bytes()), None);
        for left in ["/home/x/kumiki/host", "/work/target/x", "/opt/rust/lib", "mirror.example-1"] {
            assert!(traces.first_in(left.as_bytes()).is_some(), "{left}");
        }
        assert_eq!(text(Path::new("/src")), None);
    }
}
