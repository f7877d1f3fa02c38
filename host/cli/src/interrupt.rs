//! Ctrl-C: the first asks the work to end cleanly, a second one ends the program. On Windows Ctrl-Break, the closing
//! of the console window, signing out and shutting down ask for the same; after the last three the system ends the
//! program in 5 s.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// What a signal does while somebody is asked something, in place of all else.
static PROMPT: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Does what the prompt of this moment wants done; false where there is none.
fn does_prompt() -> bool {
    let prompt = PROMPT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(action) = &*prompt else { return false };
    action();
    true
}

/// Does `act` at each signal. Once for each process.
#[cfg(not(windows))]
fn take_signals(act: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(act)
}

/// The same, and when the console window closes.
#[cfg(windows)]
fn take_signals(act: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    let act = Arc::new(Mutex::new(act));
    let call = |act: &Mutex<dyn FnMut() + Send>| {
        (*act.lock().unwrap_or_else(PoisonError::into_inner))();
    };
    let of_window = Arc::clone(&act);
    ctrlc::set_handler(move || call(&*act))?;
    window::on_close(move || call(&*of_window)).map_err(ctrlc::Error::System)
}

/// The console window, whose closing Windows tells each program in it.
#[cfg(windows)]
mod window {
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use tokio::runtime::Builder;
    use tokio::signal::windows::{ctrl_close, ctrl_logoff, ctrl_shutdown};

    /// Whether it has closed.
    pub(super) static IS_CLOSED: AtomicBool = AtomicBool::new(false);

    /// Does `act` when the window closes, its user signs out or the machine shuts down. Windows ends the program as soon
    /// as a handler returns; tokio's never does, so there are 5 s. Windows asks the handler first that came last, so
    /// this one must come after that of Ctrl-C, which returns.
    pub(super) fn on_close(mut act: impl FnMut() + Send + 'static) -> io::Result<()> {
        let runtime = Builder::new_current_thread().build()?;
        let (mut close, mut logoff, mut shutdown) = {
            let _inside = runtime.enter();
            (ctrl_close()?, ctrl_logoff()?, ctrl_shutdown()?)
        };
        let wait = async move {
            tokio::select! {
                _ = close.recv() => (),
                _ = logoff.recv() => (),
                _ = shutdown.recv() => (),
            }
        };
        let waits = move || {
            runtime.block_on(wait);
            IS_CLOSED.store(true, Ordering::Relaxed);
            act();
        };
        thread::Builder::new().name("window".to_owned()).spawn(waits).map(drop)
    }
}

/// As long as it lives, signals do what a prompt wants.
#[derive(Debug)]
pub(crate) struct Prompt(());

impl Prompt {
    /// Each signal does `action` until the end of the prompt, whether something listens already or not.
    pub(crate) fn begin(action: impl Fn() + Send + 'static) -> Result<Self> {
        *PROMPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
        let alone = || {
            if !does_prompt() {
                std::process::exit(i32::from(crate::INTERRUPTED));
            }
        };
        match take_signals(alone) {
            Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(Self(())),
            Err(error) => Err(error).context("cannot listen to Ctrl-C"),
        }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        *PROMPT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

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
        take_signals(move || {
            if does_prompt() {
                return;
            }
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
        take_signals(action).context("cannot listen to Ctrl-C")?;
        Ok(Self(Arc::new(AtomicBool::new(false))))
    }

    /// One that nobody can ask for.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self(Arc::default())
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

/// Whether the terminal has closed. The system tells it by a signal, which an [`Interrupt`] takes for Ctrl-C too.
#[derive(Debug, Clone, Default)]
pub(crate) struct HangUp(#[cfg(unix)] Arc<AtomicBool>);

impl HangUp {
    /// Starts listening, after the [`Interrupt`], which would take the signal for itself.
    pub(crate) fn listen() -> Result<Self> {
        let closed = Self::default();
        #[cfg(unix)]
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&closed.0))
            .context("cannot listen to the end of the terminal")?;
        Ok(closed)
    }

    /// Whether it has closed.
    pub(crate) fn is_told(&self) -> bool {
        #[cfg(unix)]
        let closed = &*self.0;
        #[cfg(not(unix))]
        let (Self(), closed) = (self, &window::IS_CLOSED);
        closed.load(Ordering::Relaxed)
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

    /// The process that gets the signals of [`the_end_of_a_terminal_is_told_from_ctrl_c`].
    #[test]
    #[ignore = "waits for a signal"]
    fn waits_for_a_signal() {
        let interrupt = super::Interrupt::listen().unwrap();
        let closed = super::HangUp::listen().unwrap();
        println!("ready");
        while !interrupt.is_wanted() {
            domain::clock::sleep(std::time::Duration::from_millis(5));
        }
        domain::clock::sleep(std::time::Duration::from_millis(40));
        println!("closed {}", closed.is_told());
    }

    #[test]
    fn the_end_of_a_terminal_is_told_from_ctrl_c() {
        use std::io::{BufRead, BufReader};
        for (signal, told) in [("-HUP", "closed true"), ("-INT", "closed false")] {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "interrupt::tests::waits_for_a_signal", "--ignored"])
                .arg("--nocapture")
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut lines = lines.map(Result::unwrap);
            assert!(lines.any(|line| line.ends_with("ready")));
            let sent = Command::new("kill").arg(signal).arg(child.id().to_string()).status();
            assert!(sent.unwrap().success());
            assert!(lines.any(|line| line.contains(told)), "{signal}");
            assert!(child.wait().unwrap().success(), "{signal}");
        }
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
