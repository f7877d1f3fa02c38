//! The Python wheel, made by maturin from `clients/python`. It asks cargo for the program, which is compiled
//! already.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::build::Build;
use super::contents::{Contents, VERSION, name};
use super::tree::{TIME, Tree};
use crate::environment::Environment;
use crate::process;
use crate::project::Project;

/// The project of the package.
const PROJECT: &str = "clients/python";
/// What maturin puts below the prefix of the installation; `pyproject.toml` names it.
const DATA: &str = "kumiki.data";
/// What makes wheels.
const TOOLS: Environment = Environment {
    name: "maturin",
    requirements: "clients/python/build-requirements.txt",
    probe: "import maturin",
    optional: None,
};

/// An interpreter with maturin, which is installed into the cache folder.
///
/// # Errors
/// Why wheels cannot be made here.
pub(super) fn python(project: &Project) -> Result<OsString, String> {
    TOOLS.python(project).map_err(|why| format!("pip could not install maturin from PyPI: {why}"))
}

/// Makes the wheel in `folder`, and gives its path.
pub(super) fn make(
    project: &Project,
    python: &OsStr,
    build: &Build,
    contents: &Contents,
    folder: &Path,
) -> Result<PathBuf> {
    let (data, out) = (project.root.join(PROJECT).join(DATA), project.target.join("dist/wheel"));
    for folder in [&data, &out] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
    }
    let mut files = installed(contents);
    if let Some(library) = &contents.library {
        files.add(format!("{}{}", libraries(contents), name(library)), library)?;
    }
    files.write_folder(&data)?;
    let mut command = Command::new(python);
    command.current_dir(project.root.join(PROJECT)).env_remove("VIRTUAL_ENV");
    command.args(["-m", "maturin", "build", "--release", "--locked"]);
    // It would copy DuckDB's library and change the program; ours is where the program looks for it.
    command.args(["--auditwheel", "warn", "--out"]).arg(&out).args(build.arguments());
    if project.is_database_compiled {
        command.args(["--features", "bundled"]);
    }
    build.describe_to(command.env("SOURCE_DATE_EPOCH", TIME.to_string()));
    let answer = process::ask(&mut command);
    fs::remove_dir_all(&data)?;
    if !answer.ok {
        bail!("maturin: {}", answer.err.trim());
    }
    let wheel = fs::read_dir(&out)?.next().context("maturin made no wheel")??;
    let path = folder.join(wheel.file_name());
    fs::copy(wheel.path(), &path)?;
    Ok(path)
}

/// Where the program finds DuckDB's library: Windows looks beside it, others in `lib/kumiki` too.
fn libraries(contents: &Contents) -> &'static str {
    if contents.host.contains("windows") { "scripts/" } else { "data/lib/kumiki/" }
}

/// What is given to maturin: what goes below the prefix of an installation (`data` is its word for that), and
/// beside the modules of the package (`platlib`).
fn installed(contents: &Contents) -> Tree {
    let mut data = contents.components.below("data/lib/kumiki");
    data.extend(contents.sources.to_read().below("data/share/doc/kumiki"));
    data.extend(contents.pages.share.below("data/share"));
    data.extend(contents.sources.schemas.below("platlib/kumiki"));
    data
}

/// The files of the wheel that are not Python's.
pub(super) fn tree(contents: &Contents) -> Result<Tree> {
    let mut tree = installed(contents);
    contents.add_program(&mut tree, "scripts/", libraries(contents))?;
    Ok(tree.below(&format!("kumiki-{}.data", VERSION)))
}
