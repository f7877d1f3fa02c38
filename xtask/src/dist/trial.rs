//! Tries a product as its user does: unpacks or installs it, makes sample data, replays a built-in strategy,
//! ranks, and looks for the report. The wheel's user also does what the quick start of
//! `clients/python/README.md` says, word for word.

use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::contents::{Contents, VERSION};
use super::place::Place;
use super::{Product, unpack};
use crate::environment::{copy, told};
use crate::process::Answer;
use crate::project::Project;
use crate::windows;

/// Reads all texts of the installed package, and those that its documentation names.
const READS_TEXTS: &str = "import kumiki, pathlib, re, sys
assert kumiki.schemas() == sorted(sys.argv[1:]), kumiki.schemas()
assert all(map(kumiki.schema, kumiki.schemas())), 'one is empty'
sources = [path.read_text('utf-8') for path in pathlib.Path(kumiki.__file__).parent.glob('*.py')]
named = re.findall(r'kumiki\\.schema\\(\"([^\"]+)', ' '.join(sources))
assert len(named) > 4 and set(named) <= set(kumiki.schemas()), named
";
/// Where the quick start is.
const GUIDE: &str = "clients/python/README.md";
const TITLE: &str = "## Quick start";
/// Where a session is shown first.
const FRONT_PAGE: &str = "README.md";
/// The releases that the tests of the package take, so that another release of one is no news of ours.
const RELEASES: &str = "clients/python/requirements.txt";
/// What is said where frames are asked for without pandas.
const WANTS_PANDAS: &str = "frames need it: pip install pandas pyarrow";
/// What frames show of themselves when they are printed.
const PANDAS_SHOWS: &str = " columns]";
const POLARS_SHOWS: &str = "shape: (";

/// What a trial gives: the reason why it cannot be done here comes in the inner result.
pub(super) type Tried = Result<Result<(), String>>;

/// Unpacks the archive into an empty folder of this machine, and uses it.
pub(super) fn archive(project: &Project, contents: &Contents, archive: &Path) -> Tried {
    let place = Place::empty(project, "archive")?;
    unpack(archive, &place.path(""))?;
    let program = format!("{}/kumiki{EXE_SUFFIX}", contents.archive_folder());
    used(&place, &program).map(Ok)
}

/// Uses a product for Windows under Wine, as on a machine that is new.
pub(super) fn on_windows(
    project: &Project,
    contents: &Contents,
    product: Product,
    path: &Path,
) -> Tried {
    let place = Place::windows(project)?;
    if product == Product::Archive {
        unpack(path, &place.path(""))?;
        let folder = contents.archive_folder();
        windows::put_stand_in(&place.path(&folder)).map_err(anyhow::Error::msg)?;
        return used(&place, &format!("{folder}/kumiki.exe")).map(Ok);
    }
    let interpreter = match windows::python::folder(project) {
        Ok(folder) => folder,
        Err(reason) => return Ok(Err(reason)),
    };
    copy(&interpreter, &place.path("python")).map_err(anyhow::Error::msg)?;
    let (python, wheel) = ("python/python.exe", path.display().to_string());
    place.run(&[python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", &wheel])?;
    windows::put_stand_in(&place.path("python/Scripts")).map_err(anyhow::Error::msg)?;
    used(&place, "python/Scripts/kumiki.exe")?;
    knows_its_files(&place, python, contents).map(Ok)
}

/// Uses a product in a small Debian, which has nothing but what its packages declare.
pub(super) fn in_debian(
    project: &Project,
    contents: &Contents,
    product: Product,
    path: &Path,
) -> Tried {
    let root = match Place::debian(project) {
        Ok(root) => root,
        Err(reason) => return Ok(Err(reason)),
    };
    let name = path.file_name().and_then(|name| name.to_str()).context("it has a name")?;
    let inside = format!("/tmp/{name}");
    fs::copy(path, root.path(&inside))?;
    match product {
        Product::Archive => {
            unpack(path, &root.path(""))?;
            used(&root, &format!("/{}/kumiki", contents.archive_folder()))?;
        }
        Product::Debian => {
            root.run(&["dpkg", "--install", &inside])?;
            if !root.path("usr/lib/kumiki/strategies/compiled").is_dir() {
                bail!("the installation did not compile its strategies");
            }
            used(&root, "kumiki")?;
            root.run(&["dpkg", "--remove", "kumiki"])?;
            for path in ["usr/bin/kumiki", "usr/lib/kumiki"] {
                if root.path(path).exists() {
                    bail!("/{path} is still there after the package was removed");
                }
            }
        }
        Product::Wheel => {
            root.run(&["python3", "-m", "venv", "/opt/venv"])?;
            let install = ["/opt/venv/bin/pip", "install", "--quiet", "--no-index", "--no-deps"];
            root.run(&[&install[..], &[&inside]].concat())?;
            used(&root, "/opt/venv/bin/kumiki")?;
            knows_its_files(&root, "/opt/venv/bin/python", contents)?;
        }
    }
    Ok(Ok(()))
}

/// Installs the wheel into an empty virtual environment of this machine, uses it as a program and as a
/// package, makes the first session, and another with each of its extras.
pub(super) fn wheel(
    project: &Project,
    contents: &Contents,
    interpreter: &OsStr,
    wheel: &Path,
) -> Tried {
    let place = Place::empty(project, "environment")?;
    let mut make = Command::new(interpreter);
    let made = told("no virtual environment", make.args(["-m", "venv"]).arg(place.path("venv")));
    if let Err(reason) = made {
        return Ok(Err(reason));
    }
    let bin = if cfg!(windows) { "venv/Scripts" } else { "venv/bin" };
    let program = |name: &str| format!("{bin}/{name}{EXE_SUFFIX}");
    let python = program("python");
    let pip = |what: OsString| {
        let mut install = Command::new(place.path(&python));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        install.arg("--constraint").arg(project.root.join(RELEASES)).arg(what);
        install
    };
    let with_extra = |extra: &str| {
        let mut named = wheel.as_os_str().to_owned();
        named.push(format!("[{extra}]"));
        // Large packages, of which little is used here.
        told("the wheel cannot be installed with an extra", pip(named).arg("--no-compile"))
            .map_err(anyhow::Error::msg)
    };
    told("the wheel cannot be installed", pip(wheel.into()).args(["--no-index", "--no-deps"]))
        .map_err(anyhow::Error::msg)?;
    used(&place, &program("kumiki"))?;
    knows_its_files(&place, &python, contents)?;
    if let Err(reason) = told("pip cannot install its dependencies", &mut pip(wheel.into())) {
        return Ok(Err(format!("its program was tried, no session: {reason}")));
    }
    let guide = fs::read_to_string(project.root.join(GUIDE))?;
    let QuickStart { commands, script } = QuickStart::of(&guide)?;
    for line in &commands {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let first = program(words.first().context("a command has a name")?);
        words[0] = &first;
        place.run(&words)?;
    }
    fs::write(place.path("first.py"), &script)?;
    let answer = place.ask(&[&python, "first.py"])?;
    let result = answer.out.lines().find(|line| line.contains(": completed at "));
    let Some(result) = result else {
        bail!("the quick start printed no result:\n{}{}", answer.out, answer.err);
    };
    // Without a package for frames the script must end there, and say what to install.
    must_want_pandas(&answer)?;
    with_extra("polars")?;
    fs::write(
        place.path("with_polars.py"),
        script.replace("fills()", "fills(backend=\"polars\")"),
    )?;
    let answer = place.ask(&[&python, "with_polars.py"])?;
    if !answer.out.contains(POLARS_SHOWS) {
        bail!("there are no fills with polars:\n{}{}", answer.out, answer.err);
    }
    must_want_pandas(&answer)?;
    with_extra("pandas")?;
    let page = fs::read_to_string(project.root.join(FRONT_PAGE))?;
    fs::write(place.path("front_page.py"), script_of(&page)?)?;
    for script in ["first.py", "front_page.py"] {
        if !place.run(&[&python, script])?.contains(PANDAS_SHOWS) {
            bail!("{script} has no fills");
        }
    }
    eprintln!("tried: the quick start: {result}");
    Ok(Ok(()))
}

/// A script must have failed because there is no pandas.
fn must_want_pandas(answer: &Answer) -> Result<()> {
    if answer.ok || !answer.err.contains(WANTS_PANDAS) {
        bail!("`{WANTS_PANDAS}` should have been said:\n{}{}", answer.out, answer.err);
    }
    Ok(())
}

/// What the quick start says.
struct QuickStart {
    /// Command lines.
    commands: Vec<String>,
    /// A script.
    script: String,
}

impl QuickStart {
    fn of(guide: &str) -> Result<Self> {
        let part = guide.split_once(TITLE).with_context(|| format!("{GUIDE} has no {TITLE}"))?.1;
        // Text and blocks take turns.
        let mut blocks = part.split("```").skip(1).step_by(2);
        let mut block = |kind: &str| {
            let block = blocks.next().and_then(|block| block.strip_prefix(kind));
            block.with_context(|| format!("{GUIDE}: `{kind}` is not the next block of {TITLE}"))
        };
        // The wheel is installed already, from where it was made.
        let is_done = |line: &&str| line.trim().is_empty() || line.starts_with("pip install ");
        let commands = block("\n")?.lines().filter(|line| !is_done(line));
        let commands = commands.map(str::to_owned).collect();
        Ok(Self { commands, script: block("python\n")?.to_owned() })
    }
}

/// The script of a page.
fn script_of(page: &str) -> Result<&str> {
    let script = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    script.with_context(|| format!("{FRONT_PAGE} has no script"))
}

/// The package starts the program too, and has the texts that its documentation names and no others than the
/// project.
fn knows_its_files(place: &Place, python: &str, contents: &Contents) -> Result<()> {
    let told = place.run(&[python, "-m", "kumiki", "strategy", "list"])?;
    if !told.contains("sma-cross") {
        bail!("`python -m kumiki` does not know the built-in strategies: {told}");
    }
    let names = contents.sources.schemas.items().filter_map(|(place, _)| place.rsplit('/').next());
    let arguments: Vec<&str> = [python, "-c", READS_TEXTS].into_iter().chain(names).collect();
    place.run(&arguments).context("the package lacks texts that it names")?;
    Ok(())
}

/// Uses an installed program.
fn used(place: &Place, program: &str) -> Result<()> {
    let run = |line: &str| {
        let words: Vec<&str> = [program].into_iter().chain(line.split(' ')).collect();
        place.run(&words)
    };
    let told = run("--version")?;
    if told.trim() != format!("kumiki {VERSION}") {
        bail!("`{program} --version` says {}", told.trim());
    }
    run("data sample --out tmp/data --days 3 --instrument 7203.TSE")?;
    run("replay run sma-cross --data tmp/data --instrument 7203.TSE --out tmp/run --quiet")?;
    let report = place.path("tmp/run/report.html");
    let bytes = fs::metadata(&report).context("the replay left no report.html")?.len();
    run("data sample --daily --issues 50 --days 30 --prices tmp/prices")?;
    let ranked = run("rank query --prices tmp/prices --format jsonl")?;
    if ranked.lines().count() == 0 {
        bail!("`{program} rank` gave no rows");
    }
    eprintln!("tried: {}, a replay's report.html of {bytes} bytes, and a ranking", told.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_start_is_commands_and_a_script() {
        let project = Project::find().expect("the tests run inside the project");
        let guide = fs::read_to_string(project.root.join(GUIDE)).expect("it is there");
        let QuickStart { commands, script } = QuickStart::of(&guide).expect("it is complete");
        assert!(commands.iter().all(|line| line.starts_with("kumiki ")), "{commands:?}");
        assert!(!commands.is_empty());
        assert!(script.starts_with("import kumiki\n") && script.contains("result.fills()"));
        let read = |name: &str| fs::read_to_string(project.root.join(name)).expect("it is there");
        let (english, japanese) = (read(FRONT_PAGE), read("README.ja.md"));
        assert_eq!(script_of(&english).ok(), script_of(&japanese).ok());
        assert!(script_of(&english).is_ok_and(|script| script.starts_with("import kumiki\n")));
        assert!(QuickStart::of("## Quick start\n```python\nimport kumiki\n```").is_err());
    }
}
