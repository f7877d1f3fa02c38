//! A reader of a page: a fresh folder, a shell in which `kumiki` is the program, servers that run to the end of the
//! page, and a Python interpreter.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use domain::clock::{self, Stopwatch};
use tempfile::TempDir;
use tests::{built, files};

/// How long a command may take, and a server to say its first line.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at a process.
const STEP: Duration = Duration::from_millis(10);
/// Bytes of what a command wrote that a failure shows, its last.
const SHOWN: usize = 4_000;
/// What a reader answers: where this stands last, this is typed. The passwords are those of the simulators.
const ANSWERS: [(&str, &str); 2] =
    [("[y/N]", "y\n"), ("password of the web broker (is not shown):", "0000\n")];
/// Ends what goes on and asks nothing.
const QUIT: &str = "q";
/// How long the reader looks at such a thing.
const LOOK: Duration = Duration::from_secs(3);
/// How the line begins with which an engine says that clients can connect.
const LISTENING: &str = "{\"listening\":";
/// Makes a terminal.
const TERMINAL: &str = "script";
/// The size of the reader's terminal.
const SIZE: &str = "stty rows 40 cols 120";
/// Names the interpreter; `cargo xtask test` sets it.
const PYTHON: &str = "KUMIKI_PAGES_PYTHON";
/// What the reader keeps of the tests' environment.
const KEPT: [&str; 3] = ["LD_LIBRARY_PATH", "TMPDIR", "SystemRoot"];
/// Runs blocks one after the other with the same names, and writes how each has ended into a file.
const INTERPRETER: &str = r#"
import os, sys, traceback
names = {"__name__": "__main__"}
while line := sys.stdin.buffer.readline():
    text = sys.stdin.buffer.read(int(line)).decode()
    try:
        exec(compile(text, "block", "exec"), names)
        ended = "done"
    except BaseException:
        traceback.print_exc()
        ended = "failed"
    sys.stdout.flush()
    sys.stderr.flush()
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(ended)
    os.replace(sys.argv[1] + ".new", sys.argv[1])
"#;

/// The reader.
pub(super) struct Shell {
    folder: TempDir,
    /// Servers, and the interpreter if there is one; each leads a group of processes.
    running: Vec<Child>,
    python: Option<Python>,
    /// Outputs that were begun.
    outputs: usize,
    /// Held by one page at a time that starts servers: they have fixed ports.
    _ports: Option<File>,
}

struct Python {
    /// Which of the processes that run.
    index: usize,
    said: PathBuf,
}

impl Shell {
    /// A reader in an empty folder.
    pub(super) fn new(has_servers: bool) -> Self {
        let ports = has_servers.then(|| {
            let file = File::create(built::release_folder().join("page-ports.lock")).unwrap();
            file.lock().unwrap();
            file
        });
        let folder = tempfile::tempdir().unwrap();
        let shell = Self { folder, running: Vec::new(), python: None, outputs: 0, _ports: ports };
        let cache = shell.path("home/.cache/kumiki");
        for folder in [shell.work(), shell.path("bin"), cache.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        symlink(built::kumiki(), shell.path("bin/kumiki")).unwrap();
        // What a compiler makes of guests is the same for all pages.
        symlink(built::compiled_guests(), cache.join("components")).unwrap();
        fs::write(shell.state(), format!("cd '{}'\n", shell.work().display())).unwrap();
        shell
    }

    /// The folder in which the reader works.
    pub(super) fn work(&self) -> PathBuf {
        self.path("work")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where variables and the folder go from one command to the next.
    fn state(&self) -> PathBuf {
        self.path("state.sh")
    }

    /// A program with nothing of the tests' own environment, which leads a group of processes.
    fn program(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command.env_clear().current_dir(self.work()).stdin(Stdio::null()).process_group(0);
        let path = env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.env("HOME", self.path("home")).env("LANG", "C.UTF-8");
        command.env("KUMIKI_KEY_STORE", "off").env("KUMIKI_PROGRAM", built::kumiki());
        let package = files::workspace_root().join("clients/python/src");
        command.env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("MPLBACKEND", "Agg").env("KUMIKI_BROWSER", "true");
        command.envs(KEPT.iter().filter_map(|name| Some((name, env::var_os(name)?))));
        command
    }

    /// Starts a program; all that it writes goes into a file.
    fn start(&mut self, command: &mut Command) -> (Child, PathBuf) {
        self.outputs += 1;
        let said = self.path(&format!("said-{}.txt", self.outputs));
        let file = File::create(&said).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        (child, said)
    }

    /// Runs a command to its end, which must come with this exit code; gives what it wrote.
    pub(super) fn run(&mut self, text: &str, exit_code: i32) -> Result<String, String> {
        let mut command = self.program("sh");
        let (mut child, said) = self.start(command.args(["-c", &self.script(text)]));
        let ended = wait(&mut child, PATIENCE, || false);
        self.judge(text, ended, &mut child, &said, exit_code)
    }

    /// A command as the shell runs it, with the variables and the folder of the one before it.
    fn script(&self, text: &str) -> String {
        let state = self.state();
        let state = state.display();
        format!(
            ". '{state}'\n{text}\nstatus=$?\n\
             {{ export -p; printf \"cd '%s'\\n\" \"$PWD\"; }} > '{state}'\nexit $status"
        )
    }

    /// What a command wrote, if it ended as it should.
    fn judge(
        &self,
        text: &str,
        ended: Option<ExitStatus>,
        child: &mut Child,
        said: &Path,
        exit_code: i32,
    ) -> Result<String, String> {
        let found = read(said);
        match ended {
            Some(status) if status.code() == Some(exit_code) => Ok(found),
            Some(status) => Err(format!("`{text}` ended with {status}:\n{}", last(&found))),
            None => {
                stop(child);
                Err(format!("`{text}` does not end:\n{}", last(&found)))
            }
        }
    }

    /// Runs a command at a terminal, and answers what it asks; gives what was seen there.
    pub(super) fn type_in(&mut self, text: &str) -> Result<String, String> {
        let script = self.path("typed.sh");
        fs::write(&script, format!("{SIZE}\n{}", self.script(text))).unwrap();
        let mut command = self.program(TERMINAL);
        command.arg("-qec").arg(format!("sh '{}'", script.display())).arg("/dev/null");
        let (mut child, said) = self.start(command.stdin(Stdio::piped()));
        let Some(mut input) = child.stdin.take() else { return Err("no input".to_owned()) };
        let (watch, mut seen, mut is_left) = (Stopwatch::start(), 0, false);
        let ended = loop {
            if let Some(status) = wait(&mut child, STEP, || false) {
                break Some(status);
            }
            let shown = read(&said);
            let new = shown.get(seen..).unwrap_or_default();
            let asked = ANSWERS.iter().find(|(question, _)| new.trim_end().ends_with(question));
            if let Some((_, answer)) = asked {
                // It may have ended at this moment.
                let _ = input.write_all(answer.as_bytes());
                seen = shown.len();
            } else if !is_left && watch.elapsed() > LOOK {
                let _ = input.write_all(QUIT.as_bytes());
                is_left = true;
            } else if watch.elapsed() > PATIENCE {
                break None;
            }
        };
        self.judge(text, ended, &mut child, &said, 0)
    }

    /// Starts a server, which ends with the page, and waits until clients can connect: an engine says so, whatever it
    /// logs before; any other server has written the last line that the page shows, up to the first number in it, or
    /// any line where the page shows none. Gives what it wrote.
    pub(super) fn serve(&mut self, text: &str, shown: &[String]) -> Result<String, String> {
        let script = format!(". '{}'\n{text}", self.state().display());
        let mut command = self.program("sh");
        let (mut child, said) = self.start(command.args(["-c", &script]));
        let mut shown =
            shown.iter().map(|line| line.trim()).filter(|line| !["", "..."].contains(line));
        let shown = shown.next_back().unwrap_or_default();
        let sign = match text.contains("kumiki serve") {
            true => LISTENING,
            false => shown.split(|one: char| one.is_ascii_digit()).next().unwrap_or_default(),
        };
        let is_up = || {
            let found = read(&said);
            let mut lines = found.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            lines.any(|line| line.starts_with(sign))
        };
        let ended = wait(&mut child, PATIENCE, is_up);
        self.running.push(child);
        let found = read(&said);
        match ended {
            None if is_up() => Ok(found),
            None => Err(format!("`{text}` does not say that it is there:\n{}", last(&found))),
            Some(status) => Err(format!("`{text}` ended with {status}:\n{}", last(&found))),
        }
    }

    /// Runs a block of Python, with the names of those before it; nothing where there is no interpreter.
    pub(super) fn python(&mut self, text: &str) -> Option<Result<(), String>> {
        let interpreter = env::var_os(PYTHON)?;
        let sign = self.path("python-ended.txt");
        if self.python.is_none() {
            let mut command = self.program(interpreter);
            command.args(["-c", INTERPRETER]).arg(&sign).stdin(Stdio::piped());
            let (child, said) = self.start(&mut command);
            self.running.push(child);
            self.python = Some(Python { index: self.running.len() - 1, said });
        }
        let python = self.python.as_ref()?;
        let child = &mut self.running[python.index];
        let written = child
            .stdin
            .as_mut()
            .map(|input| write!(input, "{}\n{text}", text.len()).and_then(|()| input.flush()));
        if !matches!(written, Some(Ok(()))) {
            return Some(Err(format!("the interpreter ended:\n{}", last(&read(&python.said)))));
        }
        wait(child, PATIENCE, || sign.is_file());
        let ended = read(&sign);
        let _ = fs::remove_file(&sign);
        Some(match ended.as_str() {
            "done" => Ok(()),
            _ => Err(format!("this block of Python failed:\n{}", last(&read(&python.said)))),
        })
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.running.iter_mut().for_each(stop);
    }
}

/// Waits until a process ends, `is_enough`, or for so long; gives how it ended.
fn wait(child: &mut Child, patience: Duration, is_enough: impl Fn() -> bool) -> Option<ExitStatus> {
    let watch = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if is_enough() || watch.elapsed() > patience {
            return None;
        }
        clock::sleep(STEP);
    }
}

/// Whether this system has what makes terminals.
pub(super) fn has_terminals() -> bool {
    let asked = Command::new(TERMINAL).arg("--version").stdin(Stdio::null()).output();
    asked.is_ok_and(|output| output.status.success())
}

/// Ends a process and all that it has started.
fn stop(child: &mut Child) {
    let group = format!("kill -9 -{}", child.id());
    let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
    let _ = child.wait();
}

fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The end of a text.
fn last(text: &str) -> &str {
    let mut from = text.len().saturating_sub(SHOWN);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}
