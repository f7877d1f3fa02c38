//! The Debian package, made by dpkg-deb: the program in /usr/bin, its files in /usr/lib/kumiki.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::contents::{Contents, THIRD_PARTY, VERSION};
use super::tree::{TIME, Tree};
use crate::{duckdb, process};

/// Runs then compile nothing. An installation without it works too, so it may fail.
const AFTER_INSTALLATION: &str = "#!/bin/sh
set -e
if [ \"$1\" = configure ]; then
    kumiki strategy compile >/dev/null || echo 'kumiki: strategies are compiled when they run' >&2
fi
";
/// What was compiled is no file of the package.
const BEFORE_REMOVAL: &str = "#!/bin/sh
set -e
rm -rf /usr/lib/kumiki/strategies/compiled
";

/// The architecture that dpkg, which makes packages, is of.
///
/// # Errors
/// Why packages cannot be made here.
pub(super) fn architecture() -> Result<String, String> {
    for program in ["dpkg-deb", "dpkg-shlibdeps"] {
        if !process::ask(Command::new(program).arg("--version")).ok {
            return Err(format!("there is no {program}; on Debian, `apt install dpkg-dev`"));
        }
    }
    let answer = process::ask(Command::new("dpkg").arg("--print-architecture"));
    if answer.ok { Ok(answer.out.trim().to_owned()) } else { Err(answer.last_line().to_owned()) }
}

/// Makes the package in `folder`, and gives its path; `work`, for its files, is removed.
pub(super) fn make(
    contents: &Contents,
    architecture: &str,
    work: &Path,
    folder: &Path,
) -> Result<PathBuf> {
    let out = folder.join(format!("kumiki_{VERSION}-1_{architecture}.deb"));
    let _ = fs::remove_dir_all(work);
    let tree = tree(contents)?;
    let size: usize = tree.items().map(|(_, item)| item.bytes.len()).sum();
    let files = work.join("files");
    tree.write_folder(&files)?;
    let needs = libraries(&work.join("needs"), &files)?;
    let control = format!(
        "Package: kumiki\nVersion: {VERSION}-1\nArchitecture: {architecture}\n\
         Maintainer: The Kumiki developers <kumiki@localhost>\nInstalled-Size: {}\n\
         Depends: {needs}\nRecommends: ca-certificates\nSection: science\nPriority: optional\n\
         Description: trading engine for the Tokyo market with sandboxed strategies\n \
         Replays strategies over past trades, ranks all issues by a formula, and keeps the daily\n \
         prices fresh. Strategies are WebAssembly components: they get no files, no network, no\n \
         clock and no randomness.\n",
        size.div_ceil(1024),
    );
    let mut about = Tree::default();
    about.add_text("DEBIAN/control", control.into_bytes());
    about.add_program("DEBIAN/postinst", AFTER_INSTALLATION.as_bytes());
    about.add_program("DEBIAN/prerm", BEFORE_REMOVAL.as_bytes());
    about.write_folder(&files)?;
    let mut command = Command::new("dpkg-deb");
    // Not xz: it takes a minute, and a quarter less is not worth it.
    command.args(["--root-owner-group", "-Zgzip", "-z6", "--build"]).arg(&files).arg(&out);
    let answer = process::ask(command.env("SOURCE_DATE_EPOCH", TIME.to_string()));
    fs::remove_dir_all(work)?;
    if !answer.ok {
        bail!("dpkg-deb: {}", answer.last_line());
    }
    Ok(out)
}

/// Where the examples have the program, and where the package puts it.
const BY_HAND: &str = "/usr/local/bin/kumiki";
const INSTALLED: &str = "/usr/bin/kumiki";

/// The files that it installs.
pub(super) fn tree(contents: &Contents) -> Result<Tree> {
    let mut tree = contents.components.below("usr/lib/kumiki");
    contents.add_program(&mut tree, "usr/bin/", "usr/lib/kumiki/")?;
    let mut texts = contents.sources.to_read();
    // They start what people have put there by hand.
    let examples = contents.sources.examples.clone().replacing(BY_HAND, INSTALLED)?;
    texts.extend(examples.below("examples"));
    texts.add_text("copyright", copyright().into_bytes());
    tree.extend(texts.below("usr/share/doc/kumiki"));
    tree.extend(contents.pages.share.below("usr/share"));
    Ok(tree)
}

fn copyright() -> String {
    format!(
        "Kumiki: The Kumiki developers, MIT or Apache-2.0, at your choice; see LICENSE-MIT and \
         LICENSE-APACHE beside this file.\nWhat the program is compiled of: {THIRD_PARTY}.\n"
    )
}

/// The packages with the libraries that the program and DuckDB's are linked with, in the versions that they
/// need.
fn libraries(work: &Path, files: &Path) -> Result<String> {
    // dpkg-shlibdeps wants the folder of a source package.
    fs::create_dir_all(work.join("debian"))?;
    let source = "Source: kumiki\n\nPackage: kumiki\nArchitecture: any\n";
    fs::write(work.join("debian/control"), source)?;
    let files = std::path::absolute(files)?;
    let (own, program) = (files.join("usr/lib/kumiki"), files.join("usr/bin/kumiki"));
    let library = Some(own.join(duckdb::LIBRARY)).filter(|library| library.is_file());
    let mut command = Command::new("dpkg-shlibdeps");
    command.current_dir(work).arg("-O").arg(format!("-l{}", own.display())).arg(program);
    let answer = process::ask(command.args(library));
    let needs = answer.out.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    needs
        .filter(|_| answer.ok)
        .map(str::to_owned)
        .with_context(|| format!("dpkg-shlibdeps: {}", answer.last_line()))
}
