//! Tries a product as its user does: unpacks or installs it in an empty root, makes sample data, replays a
//! built-in strategy, ranks, and looks for the report.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::contents::Contents;
use super::first_session::{Newcomer, Wheels};
use super::root::{self, Root};
use crate::environment::told;
use crate::process;
use crate::project::Project;
use crate::steps::Stopwatch;

/// Reads all texts of the installed package, and those that its documentation names.
const READS_TEXTS: &str = "import kumiki, pathlib, re, sys
assert kumiki.schemas() == sorted(sys.argv[1:]), kumiki.schemas()
assert all(map(kumiki.schema, kumiki.schemas())), 'one is empty'
sources = [path.read_text('utf-8') for path in pathlib.Path(kumiki.__file__).parent.glob('*.py')]
named = re.findall(r'kumiki\\.schema\\(\"([^\"]+)', ' '.join(sources))
assert len(named) > 4 and set(named) <= set(kumiki.schemas()), named
";
/// Where a product is tried. Paths inside are told from its first folder.
pub(super) trait Place {
    /// Where a path of the place is for us.
    fn path(&self, inside: &str) -> PathBuf;

    /// Runs a command there, and gives what it wrote to stdout.
    fn run(&self, arguments: &[&str]) -> Result<String>;
}

/// A folder of this machine that is removed at the end; what runs there knows none of our variables.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over costs disk space, nothing else.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Keeps variables from a command that would tell it of us, or another Python.
pub(super) fn forget_ours(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let of_ours = ["KUMIKI_", "PYTHON", "DATA_DIR", "STOCKDATA_", "VIRTUAL_ENV"];
        if of_ours.iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
}

impl Place for Folder {
    fn path(&self, inside: &str) -> PathBuf {
        self.0.join(inside)
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let (program, rest) = arguments.split_first().context("no program")?;
        let mut command = Command::new(self.path(program));
        command.current_dir(&self.0).args(rest);
        forget_ours(&mut command);
        let answer = process::ask(command.env("KUMIKI_CACHE", self.path("cache")));
        if !answer.ok {
            bail!("`{}` failed:\n{}{}", arguments.join(" "), answer.out, answer.err.trim());
        }
        Ok(answer.out)
    }
}

/// What a trial gives: the reason why it cannot be done here comes in the inner result.
type Tried = Result<Result<(), String>>;

/// Tries the archive in a root with nothing but the libraries that the program is linked with.
pub(super) fn archive(project: &Project, contents: &Contents, archive: &Path) -> Tried {
    if let Err(reason) = root::possible() {
        return Ok(Err(reason));
    }
    let root = Root::with_libraries(project, contents)?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(archive).arg("-C").arg(root.path("opt"));
    told("the archive cannot be unpacked", &mut unpack).map_err(anyhow::Error::msg)?;
    let program = format!("/opt/{}/kumiki", contents.archive_folder());
    used(&root, &program, &contents.version).map(Ok)
}

/// Installs the wheel with what it depends on into an empty virtual environment of this machine, makes the
/// first session, uses it as a program and as a package, and then with each of its extras. Without what it
/// depends on only the program is used.
pub(super) fn wheel_here(
    project: &Project,
    contents: &Contents,
    interpreter: &OsString,
    wheel: &Path,
) -> Tried {
    let folder = project.target.join("dist-trial").join("environment");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("tmp"))?;
    let folder = Folder(folder);
    let mut make = Command::new(interpreter);
    if let Err(reason) =
        told("no virtual environment", make.args(["-m", "venv"]).arg(folder.path("venv")))
    {
        return Ok(Err(reason));
    }
    let bin = if cfg!(windows) { "venv/Scripts" } else { "venv/bin" };
    let wheels = Wheels::find(project, interpreter, wheel)?;
    let newcomer = Newcomer::new(project, folder.path(bin), folder.path("home"))?;
    match &wheels {
        Ok(wheels) => {
            let watch = Stopwatch::start();
            newcomer.install(wheels, wheel, "")?;
            let result = newcomer.first_result()?;
            let took = watch.shown();
            eprintln!("tried: from installing the wheel to a session's result in {took}: {result}");
        }
        Err(_) => newcomer.install_alone(wheel)?,
    }
    let python = format!("{bin}/python{}", std::env::consts::EXE_SUFFIX);
    let program = format!("{bin}/kumiki{}", std::env::consts::EXE_SUFFIX);
    used(&folder, &program, &contents.version)?;
    knows_strategies(&folder, &python)?;
    has_its_texts(&folder, &python, contents)?;
    let wheels = match wheels {
        Ok(wheels) => wheels,
        Err(reason) => return Ok(Err(format!("its program was tried, no session: {reason}"))),
    };
    newcomer.install(&wheels, wheel, "polars")?;
    newcomer.frames_of_polars()?;
    newcomer.install(&wheels, wheel, "pandas")?;
    newcomer.frames_of_pandas()?;
    Ok(Ok(()))
}

/// The package starts the program too.
fn knows_strategies(place: &dyn Place, python: &str) -> Result<()> {
    let told = place.run(&[python, "-m", "kumiki", "strategy", "list"])?;
    if !told.contains("sma-cross") {
        bail!("`python -m kumiki` does not know the built-in strategies: {told}");
    }
    Ok(())
}

/// The package has the texts that its documentation names, and no others than the project.
fn has_its_texts(place: &dyn Place, python: &str, contents: &Contents) -> Result<()> {
    let names = contents.schemas.items().filter_map(|(place, _)| place.rsplit('/').next());
    let arguments: Vec<&str> = [python, "-c", READS_TEXTS].into_iter().chain(names).collect();
    place.run(&arguments).context("the package lacks texts that it names")?;
    Ok(())
}

/// Installs the Debian package, uses it, and removes it.
pub(super) fn debian(project: &Project, contents: &Contents, package: &Path) -> Tried {
    let root = match Root::debian(project, "debian") {
        Ok(root) => root,
        Err(reason) => return Ok(Err(reason)),
    };
    fs::copy(package, root.path("tmp/kumiki.deb"))?;
    root.run(&["dpkg", "--install", "/tmp/kumiki.deb"])?;
    if !root.path("usr/lib/kumiki/strategies/compiled").is_dir() {
        bail!("its strategies were not compiled when it was installed");
    }
    used(&root, "kumiki", &contents.version)?;
    root.run(&["dpkg", "--remove", "kumiki"])?;
    for path in ["usr/bin/kumiki", "usr/lib/kumiki"] {
        if root.path(path).exists() {
            bail!("/{path} is still there after the package was removed");
        }
    }
    Ok(Ok(()))
}

/// Installs the wheel into a virtual environment, and uses it as a program and as a package.
pub(super) fn wheel(project: &Project, contents: &Contents, wheel: &Path) -> Tried {
    let root = match Root::debian(project, "wheel") {
        Ok(root) => root,
        Err(reason) => return Ok(Err(reason)),
    };
    let name = wheel.file_name().and_then(|name| name.to_str()).context("a wheel has a name")?;
    fs::copy(wheel, root.path("tmp").join(name))?;
    root.run(&["python3", "-m", "venv", "/opt/venv"])?;
    let inside = format!("/tmp/{name}");
    root.run(&["/opt/venv/bin/pip", "install", "--quiet", "--no-index", "--no-deps", &inside])?;
    used(&root, "/opt/venv/bin/kumiki", &contents.version)?;
    knows_strategies(&root, "/opt/venv/bin/python")?;
    has_its_texts(&root, "/opt/venv/bin/python", contents).map(Ok)
}

/// Uses an installed program.
fn used(place: &dyn Place, program: &str, version: &str) -> Result<()> {
    let run = |line: &str| {
        let words: Vec<&str> = [program].into_iter().chain(line.split(' ')).collect();
        place.run(&words)
    };
    let told = run("--version")?;
    if told.trim() != format!("kumiki {version}") {
        bail!("`{program} --version` says {}", told.trim());
    }
    run("data sample --out tmp/data --days 3 --instrument 7203.TSE")?;
    run("replay run sma-cross --data tmp/data --instrument 7203.TSE --out tmp/run --quiet")?;
    let report = place.path("tmp/run/report.html");
    let bytes = fs::metadata(&report).context("the replay left no report.html")?.len();
    run("data sample --daily --codes 50 --days 30 --data-dir tmp/prices")?;
    let ranked = run("rank --data-dir tmp/prices --format jsonl")?;
    if ranked.lines().count() == 0 {
        bail!("`{program} rank` gave no rows");
    }
    eprintln!("tried: {}, a replay's report.html of {bytes} bytes, and a ranking", told.trim());
    Ok(())
}
