//! `kumiki console`: opens the engine's page in the browser, or prints its address.

use std::env;
use std::io::Write;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use domain::clock::{self, Stopwatch};
use engine::client::Client;
use ipc::{Command, EngineMode, Event, OpenConsole, Shutdown};
use serde_json::json;

use crate::Ending;
use crate::args::{self, ConsoleArgs};
use crate::interrupt::Interrupt;
use crate::running_engine::{self, Folders};

/// How long the engine may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// How long the file that leads to the page stays: as long as the address is good.
const FILE_TIME: Duration = Duration::from_secs(60);
/// Between two looks at Ctrl-C.
const STEP: Duration = Duration::from_millis(50);

/// Runs the command.
pub(crate) fn run(args: &ConsoleArgs) -> Result<Ending> {
    let interrupt = Interrupt::listen()?;
    let folders = Folders::of(&args.folder, args.engine.cache_dir.as_deref())?;
    let mode = args.mode.map(|mode| match mode {
        args::EngineMode::Live => EngineMode::Live,
        args::EngineMode::Replay => EngineMode::Replay,
    });
    let client = match mode {
        None => Some((running_engine::any(&folders)?, None)),
        Some(mode) => {
            running_engine::or_start(&folders, &args.folder, (&args.engine, mode), &interrupt)?
        }
    };
    let Some((mut client, started)) = client else { return Ok(Ending::Interrupted) };
    let opened = open(&mut client, args.read_only);
    if let (Err(_), Some(_)) = (&opened, &started) {
        // Nobody asked for an engine without a page; the next try starts another one.
        let request_id = client.request_id()?;
        client.send(&Command::Shutdown(Shutdown { request_id }))?;
    }
    let (url, expires_ms) = opened?;
    drop(client);
    if args.print {
        println!("{}", json!({"url": url, "expires_ms": expires_ms}));
        return Ok(Ending::Done);
    }
    show(&url, &interrupt)
}

/// The address of a new page, and until when it is good.
fn open(client: &mut Client, read_only: bool) -> Result<(String, u64)> {
    let request_id = client.request_id()?;
    let asked = request_id.as_text().into_owned();
    client.send(&Command::OpenConsole(OpenConsole { request_id, read_only }))?;
    let watch = Stopwatch::start();
    while let Some(received) = client.next(ANSWER_TIME.saturating_sub(watch.elapsed()))? {
        match received.event {
            Event::ConsoleOpened(opened) if opened.request_id == asked => {
                return Ok((opened.url.into_owned(), opened.expires_ms));
            }
            Event::Error(error) if error.request_id.as_deref() == Some(asked.as_str()) => {
                bail!("the engine opens no page ({}): {}", error.code, error.message)
            }
            _ => {}
        }
    }
    bail!("the engine did not answer within {} s", ANSWER_TIME.as_secs())
}

/// Lets the browser open the page. It gets a file that leads there, and that only this user can read: every user sees
/// the arguments of a process.
fn show(url: &str, interrupt: &Interrupt) -> Result<Ending> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("kumiki-console-").suffix(".html");
    let mut file = builder.tempfile().context("cannot write the file that leads to the page")?;
    write!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\"><title>Kumiki</title>"
    )
    .and_then(|()| file.flush())
    .context("cannot write the file that leads to the page")?;
    start_browser(file.path())?;
    eprintln!(
        "the page is opened in the browser; its address is good for 60 s, and once (Ctrl-C ends this command, not \
         the page)"
    );
    let watch = Stopwatch::start();
    // The browser reads the file when it likes.
    while watch.elapsed() < FILE_TIME && !interrupt.is_wanted() {
        clock::sleep(STEP);
    }
    file.close().context("cannot remove the file that leads to the page")?;
    Ok(Ending::Done)
}

fn start_browser(file: &Path) -> Result<()> {
    let named = env::var_os("KUMIKI_BROWSER").filter(|name| !name.is_empty());
    let mut process = match &named {
        Some(program) => Process::new(program),
        None if cfg!(windows) => {
            let mut process = Process::new("cmd");
            process.args(["/C", "start", ""]);
            process
        }
        None if cfg!(target_os = "macos") => Process::new("open"),
        None => Process::new("xdg-open"),
    };
    process.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = process.spawn();
    let program = process.get_program().to_string_lossy().into_owned();
    started.map(drop).with_context(|| {
        format!(
            "cannot start the browser `{program}`; name one with KUMIKI_BROWSER, or open the address that \
             `kumiki console --print` prints"
        )
    })
}
