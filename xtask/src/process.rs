//! Child processes: run one, read one, show one so that it can be typed again.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a command with our own input and output; fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status =
        command.status().with_context(|| format!("could not start `{}`", shown(command)))?;
    ended(command, status)
}

/// Runs a command like [`run`], shows what it writes to stdout, and gives that and how it ended.
pub(crate) fn run_and_read(command: &mut Command) -> Result<(String, Result<()>)> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start `{}`", shown(command)))?;
    let mut read = String::new();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            read.push_str(&line);
            read.push('\n');
        }
    }
    let ended = ended(command, child.wait()?);
    Ok((read, ended))
}

fn ended(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    bail!(
        "the command ended with {status}; to repeat it alone, in the project's folder:\n    {}",
        shown(command)
    );
}

/// What a command answered.
pub(crate) struct Answer {
    /// Whether it succeeded.
    pub(crate) ok: bool,
    /// What it wrote to stdout.
    pub(crate) out: String,
    /// What it wrote to stderr, or why it could not start.
    pub(crate) err: String,
}

impl Answer {
    /// The last line it said, for messages of one line.
    pub(crate) fn last_line(&self) -> &str {
        let text = if self.err.trim().is_empty() { &self.out } else { &self.err };
        text.trim().lines().next_back().unwrap_or("it said nothing").trim()
    }
}

/// Runs a command quietly. One that cannot be started is an answer too: it is not `ok`.
pub(crate) fn ask(command: &mut Command) -> Answer {
    match command.stdin(Stdio::null()).output() {
        Ok(Output { status, stdout, stderr }) => Answer {
            ok: status.success(),
            out: String::from_utf8_lossy(&stdout).into_owned(),
            err: String::from_utf8_lossy(&stderr).into_owned(),
        },
        Err(error) => Answer { ok: false, out: String::new(), err: error.to_string() },
    }
}

/// The command as one would type it, with the environment that was set for it.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={}", name.to_string_lossy(), quoted(value)))
    });
    // The path of cargo inside its toolchain tells a reader nothing.
    let program = Path::new(command.get_program());
    let program = match program.file_stem() {
        Some(stem) if stem == "cargo" => "cargo".to_owned(),
        _ => quoted(program.as_os_str()),
    };
    let arguments = command.get_args().map(quoted);
    variables.chain([program]).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quoted(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./\\:=,+@%~".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{text}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_can_be_typed_again() {
        let mut command = Command::new("/toolchain/bin/cargo");
        command.args(["doc", "--release"]).env("RUSTDOCFLAGS", "-D warnings").env_remove("GONE");
        assert_eq!(shown(&command), "RUSTDOCFLAGS='-D warnings' cargo doc --release");
    }

    #[test]
    fn a_program_that_is_missing_is_an_answer() {
        let answer = ask(&mut Command::new("kumiki-no-such-program"));
        assert!(!answer.ok);
        assert!(!answer.last_line().is_empty());
    }

    #[test]
    fn a_failure_names_the_command() {
        let mut command = Command::new("rustc");
        command.arg("--no-such-option").stderr(Stdio::null());
        let message = run(&mut command).map_err(|error| error.to_string());
        assert!(message.is_err_and(|text| text.contains("\n    rustc --no-such-option")));
    }
}
