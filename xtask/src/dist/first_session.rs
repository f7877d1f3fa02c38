//! The first session of somebody who has only the wheel: an empty virtual environment, an empty folder, and
//! what the quick start of `clients/python/README.md` says, word for word.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::environment::told;
use crate::process::{self, Answer};
use crate::project::Project;

/// Where the quick start is.
const GUIDE: &str = "clients/python/README.md";
const TITLE: &str = "## Quick start";
/// How its first command begins.
const INSTALLS: &str = "pip install ";
/// Where a session is shown first.
const FRONT_PAGE: &str = "README.md";
/// The releases that the tests of the package take, so that another release of one is no news of ours.
const RELEASES: &str = "clients/python/requirements.txt";
/// What declares what the package needs.
const MANIFEST: &str = "clients/python/pyproject.toml";
/// What is said where frames are asked for without pandas.
const WANTS_PANDAS: &str = "frames need it: pip install pandas pyarrow";
/// What frames show of themselves when they are printed.
const PANDAS_SHOWS: &str = " columns]";
const POLARS_SHOWS: &str = "shape: (";
/// Where the wheels of other packages are kept between runs, in the target folder.
const KEPT: &str = "dist-wheels";

/// The wheels that ours depends on, with all its extras.
pub(super) struct Wheels(PathBuf);

impl Wheels {
    /// Those of an earlier run; else they are fetched.
    ///
    /// # Errors
    /// Why they cannot be had.
    pub(super) fn find(
        project: &Project,
        python: &OsString,
        wheel: &Path,
    ) -> Result<Result<Self, String>> {
        let folder = project.target.join(KEPT);
        let read = |path: &str| fs::read_to_string(project.root.join(path));
        // Another Python wants other wheels.
        let version = process::ask(Command::new(python).arg("--version")).out;
        let wanted = [version, read(RELEASES)?, read(MANIFEST)?].concat();
        // Written last, so that a folder that was begun is filled anew.
        let stamp = folder.join("fetched.txt");
        if fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == wanted) {
            return Ok(Ok(Self(folder)));
        }
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        eprintln!("fetching what the Python package depends on into {}", folder.display());
        let mut fetch = Command::new(python);
        fetch.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check"]);
        fetch.args(["--only-binary", ":all:", "--dest"]).arg(&folder);
        fetch.arg("--constraint").arg(project.root.join(RELEASES));
        fetch.arg(with_extras(wheel, "pandas,polars"));
        if let Err(reason) = told("what the package depends on could not be had", &mut fetch) {
            return Ok(Err(reason));
        }
        if let Some(name) = wheel.file_name() {
            // pip keeps a copy of what it was asked for, too.
            let _ = fs::remove_file(folder.join(name));
        }
        fs::write(&stamp, wanted)?;
        Ok(Ok(Self(folder)))
    }
}

fn with_extras(wheel: &Path, extras: &str) -> OsString {
    let mut named = wheel.as_os_str().to_owned();
    named.push(format!("[{extras}]"));
    named
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
        let is_done = |line: &&str| line.trim().is_empty() || line.starts_with(INSTALLS);
        let commands = block("\n")?.lines().filter(|line| !is_done(line));
        let commands = commands.map(str::to_owned).collect();
        Ok(Self { commands, script: block("python\n")?.to_owned() })
    }
}

/// Somebody who has only the wheel.
pub(super) struct Newcomer<'a> {
    project: &'a Project,
    /// Where the programs of the environment are.
    bin: PathBuf,
    /// An empty folder, which is also the home.
    home: PathBuf,
}

impl<'a> Newcomer<'a> {
    /// In an environment, with a folder of their own.
    pub(super) fn new(project: &'a Project, bin: PathBuf, home: PathBuf) -> Result<Self> {
        fs::create_dir_all(&home)?;
        Ok(Self { project, bin, home })
    }

    /// Installs the wheel as people do, with what it declares and `extras`; nothing comes from the network.
    pub(super) fn install(&self, wheels: &Wheels, wheel: &Path, extras: &str) -> Result<()> {
        let mut install = self.pip_install();
        install.arg("--find-links").arg(&wheels.0);
        if extras.is_empty() {
            install.arg(wheel);
        } else {
            // Large packages, of which little is used here.
            install.arg("--no-compile").arg(with_extras(wheel, extras));
        }
        told("the wheel cannot be installed with what it depends on", &mut install)
            .map_err(anyhow::Error::msg)
    }

    /// Installs the wheel without what it depends on: the program needs nothing else.
    pub(super) fn install_alone(&self, wheel: &Path) -> Result<()> {
        told("the wheel cannot be installed", self.pip_install().arg("--no-deps").arg(wheel))
            .map_err(anyhow::Error::msg)
    }

    fn pip_install(&self) -> Command {
        let mut install = self.command("python");
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        install.arg("--no-index");
        install
    }

    /// Does what the quick start says up to the printed result; without a package for frames the script
    /// must end there, and say what to install.
    pub(super) fn first_result(&self) -> Result<String> {
        let guide = fs::read_to_string(self.project.root.join(GUIDE))?;
        let QuickStart { commands, script } = QuickStart::of(&guide)?;
        for line in &commands {
            let mut words = line.split_whitespace();
            let mut command = self.command(words.next().context("a command has a name")?);
            told(line, command.args(words)).map_err(anyhow::Error::msg)?;
        }
        fs::write(self.home.join("first.py"), &script)?;
        let answer = self.ask("first.py");
        let result = answer.out.lines().find(|line| line.contains(": completed at "));
        let Some(result) = result else {
            bail!("the quick start printed no result:\n{}{}", answer.out, answer.err);
        };
        says(&answer, WANTS_PANDAS)?;
        Ok(result.to_owned())
    }

    /// The same script once more, now with pandas, and that of the front page.
    pub(super) fn frames_of_pandas(&self) -> Result<()> {
        let page = fs::read_to_string(self.project.root.join(FRONT_PAGE))?;
        fs::write(self.home.join("front_page.py"), script_of(&page)?)?;
        for script in ["first.py", "front_page.py"] {
            let answer = self.ask(script);
            if !answer.ok || !answer.out.contains(PANDAS_SHOWS) {
                bail!("{script} has no fills:\n{}{}", answer.out, answer.err);
            }
        }
        Ok(())
    }

    /// The same script with frames of polars; pandas is not there.
    pub(super) fn frames_of_polars(&self) -> Result<()> {
        let script = fs::read_to_string(self.home.join("first.py"))?;
        let script = script.replace("fills()", "fills(backend=\"polars\")");
        fs::write(self.home.join("polars_fills.py"), script)?;
        let answer = self.ask("polars_fills.py");
        if !answer.out.contains(POLARS_SHOWS) {
            bail!("there are no fills with polars:\n{}{}", answer.out, answer.err);
        }
        // The rest of it wants pandas.
        says(&answer, WANTS_PANDAS)
    }

    fn ask(&self, script: &str) -> Answer {
        process::ask(self.command("python").arg(script))
    }

    /// A program of the environment, in the folder, that knows neither our variables nor our builds.
    fn command(&self, program: &str) -> Command {
        let path = self.bin.join(format!("{program}{}", env::consts::EXE_SUFFIX));
        let mut command = Command::new(path);
        command.current_dir(&self.home);
        super::trial::forget_ours(&mut command);
        let ours = [&self.project.target, &self.project.root];
        let path = env::var_os("PATH").unwrap_or_default();
        let others =
            env::split_paths(&path).filter(|one| ours.iter().all(|of| !one.starts_with(of)));
        if let Ok(path) = env::join_paths([self.bin.clone()].into_iter().chain(others)) {
            command.env("PATH", path);
        }
        for home in ["HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA", "XDG_RUNTIME_DIR"] {
            command.env(home, &self.home);
        }
        for gone in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env_remove(gone);
        }
        command
    }
}

/// The script of a page.
fn script_of(page: &str) -> Result<&str> {
    let script = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    script.with_context(|| format!("{FRONT_PAGE} has no script"))
}

/// A script must have failed with these words.
fn says(answer: &Answer, words: &str) -> Result<()> {
    if answer.ok || !answer.err.contains(words) {
        bail!("`{words}` should have been said:\n{}{}", answer.out, answer.err);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_start_is_commands_and_a_script() {
        let project = Project::find(None).expect("the tests run inside the project");
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
