//! The engine that a command speaks with: one that runs, or one that the command starts.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
#[cfg(not(windows))]
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use domain::clock::{self, Stopwatch};
use engine::StartError;
use engine::client::{Client, ClientError};
use engine::session_file::is_taken;
use ipc::EngineMode;
// A program that Rust's library starts gets all pipes of this command on Windows: who reads what it says would wait for
// the end of the engine.
#[cfg(windows)]
use windows_spawn::{Child, Command, CreationFlags, SpawnOptions, Stdio};

use crate::args::{EngineFolderArgs, EngineToStartArgs};
use crate::configuration::Configuration;
use crate::interrupt::Interrupt;
use crate::{order, paths};

/// Where an engine that a command started writes its log, in the cache folder.
pub(crate) const LOG_FILE: &str = "engine.log";
/// How long an engine may take until clients can connect, whoever starts it: it compiles dialects.
const START_TIME: Duration = Duration::from_secs(120);
/// Between two looks at an engine that starts.
const STEP: Duration = Duration::from_millis(50);
/// Bytes of the log that a failure shows, its last.
const SHOWN: u64 = 2_000;

/// Folders of an engine, as flags, environment and file say.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    /// Where its session file is.
    pub(crate) config: PathBuf,
    /// Where its runs are; none where the system names no place for caches.
    pub(crate) cache: Option<PathBuf>,
}

impl Folders {
    pub(crate) fn of(attach: &EngineFolderArgs, cache: Option<&Path>) -> Result<Self> {
        let file = Configuration::read(attach.config.as_deref())?;
        let config = order::config_folder(attach, &file)?;
        let cache = cache.map(Path::to_owned).or(file.cache_dir).or_else(paths::system_cache);
        Ok(Self { config, cache })
    }

    /// The folder of a run, where it is there: an engine may keep its runs elsewhere.
    pub(crate) fn of_run(&self, run_id: &str) -> Option<PathBuf> {
        let folder = self.cache.as_ref()?.join("runs").join(run_id);
        folder.is_dir().then_some(folder)
    }
}

/// An engine that this command has started.
#[derive(Debug)]
pub(crate) struct StartedEngine {
    /// Its log.
    pub(crate) log: PathBuf,
}

/// The engine that runs with the config folder, whether it trades or replays.
pub(crate) fn any(folders: &Folders) -> Result<Client> {
    match Client::attach(&folders.config, EngineMode::Live) {
        Err(ClientError::Refused { code, .. }) if code == ipc::error_code::MODE_MISMATCH => {
            Ok(Client::attach(&folders.config, EngineMode::Replay)?)
        }
        other => Ok(other?),
    }
}

/// The engine that runs with the config folder; where none runs, a new one. One that starts is waited for. None: the
/// user does not wait for it.
pub(crate) fn or_start(
    folders: &Folders,
    attach: &EngineFolderArgs,
    (engine, mode): (&EngineToStartArgs, EngineMode),
    interrupt: &Interrupt,
) -> Result<Option<(Client, Option<StartedEngine>)>> {
    let client = match running(folders, mode, START_TIME, interrupt)? {
        Running::Yes(client) => client,
        Running::No => {
            return start(folders, attach, (engine, mode), interrupt);
        }
        Running::NotAwaited => return Ok(None),
    };
    let flags = engine.given();
    if !flags.is_empty() {
        let flags = flags.join(", ");
        eprintln!("note: an engine runs already, and keeps its settings; without effect: {flags}");
    }
    Ok(Some((*client, None)))
}

/// Whether an engine runs with a config folder.
#[derive(Debug)]
enum Running {
    /// It takes clients.
    Yes(Box<Client>),
    /// None does, and none starts.
    No,
    /// The user does not wait for it.
    NotAwaited,
}

/// Looks for an engine. One that has the config folder and takes no clients yet is waited for, so long.
fn running(
    folders: &Folders,
    mode: EngineMode,
    wait: Duration,
    interrupt: &Interrupt,
) -> Result<Running> {
    let folder = folders.config.display();
    let mut since: Option<Stopwatch> = None;
    loop {
        // Looked at first: an engine that starts in between is found, or waited for in the next turn.
        let is_taken = is_taken(&folders.config);
        match Client::attach(&folders.config, mode) {
            Ok(client) => return Ok(Running::Yes(Box::new(client))),
            Err(error) if is_absent(&error) && !is_taken => return Ok(Running::No),
            Err(error) if is_absent(&error) => {}
            Err(ClientError::Refused { code, .. }) if code == ipc::error_code::MODE_MISMATCH => {
                let (wanted, what) = match mode {
                    EngineMode::Live => ("live", "replays past data"),
                    EngineMode::Replay => ("replay", "trades"),
                };
                bail!(
                    "the command needs an engine with --mode {wanted}; the one of {folder} {what}; \
                     `kumiki live stop --engine` ends it"
                )
            }
            Err(error) => return Err(error.into()),
        }
        match since {
            None => {
                eprintln!("an engine is starting or ending; waiting for it");
                since = Some(Stopwatch::start());
            }
            Some(since) if since.elapsed() >= wait => bail!(
                "an engine has {folder}, and no client could connect within {} s; end it, or name another folder \
                 with --config-dir",
                wait.as_secs()
            ),
            Some(_) => {}
        }
        if interrupt.is_wanted() {
            return Ok(Running::NotAwaited);
        }
        clock::sleep(STEP);
    }
}

/// Whether no engine of the config folder can be spoken with; a session file may be left of one that was killed.
const fn is_absent(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::NoEngine(_) | ClientError::NoAnswer { .. } | ClientError::NotTheEngine(_)
    )
}

/// The words of the command that starts an engine.
fn words(
    folders: &Folders,
    attach: &EngineFolderArgs,
    engine: &EngineToStartArgs,
    mode: EngineMode,
) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        ["serve", "--mode", mode.as_str(), "--standalone", "--detached"].map(OsString::from).into();
    let mut add = |flag: &str, value: &OsStr| words.extend([flag.into(), value.to_owned()]);
    let paths = [
        ("--config", &attach.config),
        ("--config-dir", &Some(folders.config.clone())),
        ("--cache-dir", &folders.cache),
        ("--data", &engine.data),
    ];
    for (flag, path) in paths {
        if let Some(path) = path {
            add(flag, path.as_os_str());
        }
    }
    for (flag, port) in [("--port", engine.port), ("--console-port", engine.console_port)] {
        if let Some(port) = port {
            add(flag, port.to_string().as_ref());
        }
    }
    for setting in &engine.local_broker {
        add("--local-broker", setting.as_ref());
    }
    for setting in &engine.web_broker {
        add("--web-broker", setting.as_ref());
    }
    if engine.dev_login {
        words.push("--dev-login".into());
    }
    words
}

fn start(
    folders: &Folders,
    attach: &EngineFolderArgs,
    (engine, mode): (&EngineToStartArgs, EngineMode),
    interrupt: &Interrupt,
) -> Result<Option<(Client, Option<StartedEngine>)>> {
    let cache = folders.cache.as_ref();
    let cache =
        cache.context("this system has no folder for caches; give one with --cache-dir DIR")?;
    let log = cache.join(LOG_FILE);
    let cannot = || format!("cannot write the engine's log {}", log.display());
    fs::create_dir_all(cache).with_context(cannot)?;
    let out = OpenOptions::new().create(true).append(true).open(&log).with_context(cannot)?;
    let begin = out.metadata().with_context(cannot)?.len();
    let err = out.try_clone().with_context(cannot)?;
    let program = env::current_exe().context("cannot find out where this program is")?;
    let mut command = Command::new(program);
    command.args(words(folders, attach, engine, mode));
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    eprintln!("no engine runs; one is started, and its log is {}", log.display());
    #[cfg(not(windows))]
    let mut child = command.spawn().context("cannot start the engine")?;
    #[cfg(windows)]
    let mut child = {
        // No console, and a group of its own.
        let alone = CreationFlags::DETACHED_PROCESS | CreationFlags::NEW_PROCESS_GROUP;
        let options = SpawnOptions::new().creation_flags(alone);
        command.spawn_with(options).context("cannot start the engine")?
    };
    let connected = connected(folders, mode, &mut child, interrupt)
        .map_err(|error| error.context(format!("the engine did not start{}", last(&log, begin))))?;
    Ok(connected.map(|(client, is_ours)| (client, is_ours.then_some(StartedEngine { log }))))
}

/// The connection to an engine that has just been started, and whether it is this one: another may have been faster.
/// None where the user does not wait for it.
fn connected(
    folders: &Folders,
    mode: EngineMode,
    child: &mut Child,
    interrupt: &Interrupt,
) -> Result<Option<(Client, bool)>> {
    let watch = Stopwatch::start();
    let other = StartError::Running { port: None, folder: PathBuf::new() }.exit_code();
    while watch.elapsed() < START_TIME {
        if let Some(status) = child.try_wait().context("cannot see whether it runs")? {
            if status.code() == Some(other.into()) {
                match running(folders, mode, START_TIME, interrupt)? {
                    Running::Yes(client) => return Ok(Some((*client, false))),
                    Running::NotAwaited => return Ok(None),
                    Running::No => {}
                }
            }
            bail!("it ended with {status}");
        }
        if interrupt.is_wanted() {
            // Who wants no run wants no engine for it.
            let _ = child.kill();
            return Ok(None);
        }
        match Client::attach(&folders.config, mode) {
            Ok(client) => return Ok(Some((client, true))),
            Err(error) if is_absent(&error) => clock::sleep(STEP),
            Err(error) => return Err(error.into()),
        }
    }
    let _ = child.kill();
    bail!("no client could connect within {} s", START_TIME.as_secs())
}

/// What an engine has written since it was started, from its end; nothing where that cannot be read.
fn last(log: &Path, begin: u64) -> String {
    let read = || {
        let mut file = File::open(log)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(begin.max(end.saturating_sub(SHOWN))))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        std::io::Result::Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    match read() {
        Ok(text) if !text.is_empty() => format!("; it says:\n{text}\n"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use clap::Parser;

    use super::*;
    use crate::args::LiveRunArgs;
    use crate::args::{self, Cli};

    fn run(line: &str) -> LiveRunArgs {
        let line = format!("kumiki live run sma-cross --instrument 7203.TSE {line}");
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        match cli.command {
            args::Command::Live(args::LiveCommand::Live(args::LiveRunCommand::Run(run))) => *run,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_engine_is_started_with_the_settings_of_the_run() {
        let args = run(
            "--config k.toml --config-dir c --cache-dir d --data e --port 0 --console-port 0 --dev-login \
                        --local-broker record=true --local-broker login_at_start=true \
                 --web-broker order_phase=O3",
        );
        let folders = Folders { config: "c".into(), cache: Some("d".into()) };
        let words = words(&folders, &args.attach.engine, &args.engine, EngineMode::Live);
        let told: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(
            told.join(" "),
            "serve --mode live --standalone --detached --config k.toml --config-dir c --cache-dir d \
             --data e --port 0 --console-port 0 --local-broker record=true --local-broker login_at_start=true \
             --web-broker order_phase=O3 --dev-login"
        );
        let line = std::iter::once("kumiki".into()).chain(words);
        let cli = Cli::try_parse_from(line).unwrap();
        let args::Command::Live(args::LiveCommand::Serve(serve)) = cli.command else { panic!() };
        assert!(serve.detached && serve.standalone && serve.dev_login, "{serve:?}");
        assert_eq!(
            args.engine.given(),
            [
                "--port",
                "--console-port",
                "--cache-dir",
                "--data",
                "--local-broker",
                "--web-broker",
                "--dev-login"
            ]
        );
        assert!(run("").engine.given().is_empty());
    }

    #[test]
    fn an_engine_that_is_not_there_is_started_and_no_other() {
        let gone = std::io::Error::other("gone");
        for error in [
            ClientError::NoEngine("c".into()),
            ClientError::NoAnswer { folder: "c".into(), port: 1, source: gone },
            ClientError::NotTheEngine(1),
        ] {
            assert!(is_absent(&error), "{error}");
        }
        let code = ipc::error_code::MODE_MISMATCH.to_owned();
        assert!(!is_absent(&ClientError::Refused { code, message: String::new() }));
        assert!(!is_absent(&ClientError::Ended(None)));
    }

    #[test]
    fn an_engine_that_ends_at_once_is_told_with_its_last_words() {
        let folder = env::temp_dir().join(format!("kumiki-live-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let log = folder.join(LOG_FILE);
        fs::write(&log, "of another engine\nthe port is in use\n").unwrap();
        assert_eq!(last(&log, 18), "; it says:\nthe port is in use\n");
        assert_eq!(last(&folder.join("none"), 0), "");
        let mut ended = Command::new(env::current_exe().unwrap())
            .arg("--help")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        ended.wait().unwrap();
        let folders = Folders { config: folder.clone(), cache: None };
        let interrupt = Interrupt::never();
        let error = connected(&folders, EngineMode::Live, &mut ended, &interrupt).unwrap_err();
        assert!(error.to_string().starts_with("it ended with"), "{error}");
        assert_eq!(folders.of_run("r"), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_engine_that_never_takes_a_client_is_an_error_after_the_wait() {
        let folder = env::temp_dir().join(format!("kumiki-live-taken-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let folders = Folders { config: folder.clone(), cache: None };
        let look = || running(&folders, EngineMode::Live, Duration::ZERO, &Interrupt::never());
        assert!(matches!(look().unwrap(), Running::No));
        // As an engine has it from its start on.
        let lock = File::create(folder.join("engine.lock")).unwrap();
        lock.lock().unwrap();
        let error = look().unwrap_err().to_string();
        assert!(error.contains("no client could connect within 0 s; end it"), "{error}");
        drop(lock);
        assert!(matches!(look().unwrap(), Running::No));
        fs::remove_dir_all(folder).unwrap();
    }
}
