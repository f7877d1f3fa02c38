//! Manual pages and completions of shells: the program that is shipped writes them itself.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::tree::Tree;
use crate::process;

/// Shells, the names of their files, and where a system has such files below `share`.
const SHELLS: [(&str, &str, &str); 4] = [
    ("bash", "kumiki.bash", "bash-completion/completions/kumiki"),
    ("zsh", "_kumiki", "zsh/vendor-completions/_kumiki"),
    ("fish", "kumiki.fish", "fish/vendor_completions.d/kumiki.fish"),
    ("powershell", "_kumiki.ps1", "doc/kumiki/_kumiki.ps1"),
];

/// The pages and completions of a program.
pub(super) struct Pages {
    /// In one folder, as the archive has them.
    pub(super) together: Tree,
    /// Below `share`, where systems look for them.
    pub(super) share: Tree,
}

impl Pages {
    /// Has the program write them; `work` is a folder for them.
    pub(super) fn of(program: &Path, work: &Path) -> Result<Self> {
        let _ = fs::remove_dir_all(work);
        told(program, &["man".as_ref(), "--out".as_ref(), work.as_os_str()])?;
        let (mut together, mut share) = (Tree::default(), Tree::default());
        let count = together.add_folder("man", work, ".1")?;
        share.add_folder("man/man1", work, ".1")?;
        if count == 0 {
            bail!("{} wrote no manual pages", program.display());
        }
        for (shell, name, place) in SHELLS {
            let script = told(program, &["completions".as_ref(), shell.as_ref()])?;
            together.add_text(format!("completions/{name}"), script.clone().into_bytes());
            share.add_text(place, script.into_bytes());
        }
        Ok(Self { together, share })
    }
}

fn told(program: &Path, words: &[&OsStr]) -> Result<String> {
    let answer = process::ask(Command::new(program).args(words));
    if !answer.ok {
        bail!("{} {words:?}: {}", program.display(), answer.last_line());
    }
    Ok(answer.out)
}
