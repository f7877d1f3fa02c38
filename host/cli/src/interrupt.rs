//! Ctrl-C: the first asks the work to end cleanly, a second one ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use domain::clock::Stopwatch;

/// From now on a file that would grow over the limit of the process (`ulimit -f`) is an error of the write, as a
/// full disk is, and ends the program no more.
///
/// # Errors
/// The system refuses.
#[cfg(unix)]
pub(crate) fn survive_full_files() -> Result<()> {
    // Nobody asks for the flag: that the signal is taken keeps it from ending the program.
    let taken = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    taken.map(drop).context("cannot take the signal of files that are too large")
}

/// Signals within this time are one request to end.
const ONE_REQUEST: Duration = Duration::from_millis(300);

/// Tells whether the user wants the work to end.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts listening. Once for each process.
    pub(crate) fn listen() -> Result<Self> {
        Self::listen_and(|| {})
    }

    /// Starts listening; the first Ctrl-C does `action` besides.
    pub(crate) fn listen_and(action: impl Fn() + Send + 'static) -> Result<Self> {
        let wanted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&wanted);
        let mut asked = Stopwatch::start();
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                // A terminal and a supervisor may both say it at once; a person takes longer.
                if asked.elapsed() >= ONE_REQUEST {
                    std::process::exit(i32::from(crate::INTERRUPTED));
                }
                return;
            }
            asked = Stopwatch::start();
            action();
        })
        .context("cannot listen to Ctrl-C")?;
        Ok(Self(wanted))
    }

    /// Starts listening; each Ctrl-C does `action`, and none ends the program. For prompts.
    pub(crate) fn listen_each(action: impl Fn() + Send + 'static) -> Result<Self> {
        ctrlc::set_handler(action).context("cannot listen to Ctrl-C")?;
        Ok(Self(Arc::new(AtomicBool::new(false))))
    }

    /// The flag itself, for work on several threads.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether the user wants the work to end.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    /// The process that [`a_file_over_the_limit_is_an_error_of_the_write`] gives small files only.
    #[test]
    #[ignore = "needs a limit of the size of files"]
    fn writes_over_the_limit() {
        super::survive_full_files().unwrap();
        let path = std::env::temp_dir().join(format!("kumiki-limit-{}", std::process::id()));
        let written = std::fs::write(&path, [0; 4_096]);
        std::fs::remove_file(path).unwrap();
        println!("written {written:?}");
    }

    #[test]
    fn a_file_over_the_limit_is_an_error_of_the_write() {
        let output = Command::new("sh")
            .args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "interrupt::tests::writes_over_the_limit", "--ignored"])
            .arg("--nocapture")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}: {text}", output.status);
        assert!(text.contains("FileTooLarge"), "{text}");
    }
}
