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
        command.env("MPLBACKEND", "Agg");
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
        let state = self.state();
        let state = state.display();
        let script = format!(
            ". '{state}'\n{text}\nstatus=$?\n\
             {{ export -p; printf \"cd '%s'\\n\" \"$PWD\"; }} > '{state}'\nexit $status"
        );
        let mut command = self.program("sh");
        let (mut child, said) = self.start(command.args(["-c", &script]));
        let ended = wait(&mut child, |_| false);
        let found = read(&said);
        match ended {
            Some(status) if status.code() == Some(exit_code) => Ok(found),
            Some(status) => Err(format!("`{text}` ended with {status}:\n{}", last(&found))),
            None => {
                stop(&mut child);
                Err(format!("`{text}` does not end:\n{}", last(&found)))
            }
        }
    }

    /// Starts a server, which ends with the page, and waits for the first line that it writes; gives that.
    pub(super) fn serve(&mut self, text: &str) -> Result<String, String> {
        let script = format!(". '{}'\n{text}", self.state().display());
        let mut command = self.program("sh");
        let (mut child, said) = self.start(command.args(["-c", &script]));
        let ended = wait(&mut child, |_| read(&said).contains('\n'));
        let found = read(&said);
        self.running.push(child);
        match ended {
            // One that goes on has said its line.
            None if found.contains('\n') => Ok(found),
            None => Err(format!("`{text}` says nothing")),
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
        wait(child, |_| sign.is_file());
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

/// Waits until a process ends, `is_enough`, or for too long; gives how it ended.
fn wait(child: &mut Child, is_enough: impl Fn(&Child) -> bool) -> Option<ExitStatus> {
    let watch = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if is_enough(child) || watch.elapsed() > PATIENCE {
            return None;
        }
        clock::sleep(STEP);
    }
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
