//! A running `kumiki serve`, and what its log says.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use domain::clock::wall_now;
use serde_json::{Value, json};
use tests::built;
use venues::local_broker::ForcedLogout;

use crate::data::scratch;
use crate::ipc_client::Client;
use crate::rank_bench::or_stop;
use crate::serve_mixed::status;

/// What both sides have to know.
const TOKEN: &str = "a token for a bench, 32 letters.";
/// How long a line of the log may take; nothing here is measured by it.
const LOG_TIME: Duration = Duration::from_secs(120);

/// The engine as a process of its own, so that its memory is only its own; ends with the bench.
pub(crate) struct Engine {
    child: Child,
    /// The engine ends when it is closed.
    _input: ChildStdin,
    port: u16,
    log: Receiver<Value>,
    /// Its config and cache folders.
    folder: tempfile::TempDir,
}

impl Engine {
    /// Starts it over a folder of the vendor's files.
    pub(crate) fn start(data: &Path) -> Self {
        Self::with("replay", |command| {
            command.arg("--data").arg(data);
        })
    }

    /// Starts a live one with a gateway at an address, and logs in there. No order goes anywhere.
    pub(crate) fn live(base_url: &str) -> Self {
        let window = ForcedLogout::away_from(wall_now());
        Self::with("live", |command| {
            // Nothing listens there.
            command.args(["--web-broker", "base_url=http://127.0.0.1:9/e_api_v4r8/"]);
            for setting in [
                format!("base_url={base_url}"),
                format!("forced_logout={window}"),
                "login_at_start=true".to_owned(),
            ] {
                command.arg("--local-broker").arg(setting);
            }
            command.env("DEV_LOCALBROKER_API_PASSWORD", "demo");
        })
    }

    fn with(mode: &str, set: impl FnOnce(&mut Command)) -> Self {
        let folder = scratch();
        let mut command = Command::new(built::kumiki());
        command.args(["serve", "--mode", mode, "--log", "debug", "--log-format", "json"]);
        set(&mut command);
        command.env_remove("KUMIKI_CONFIG");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = or_stop(command.spawn());
        let (Some(mut input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            panic!("the engine has no standard streams");
        };
        let (sender, log) = channel();
        thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let Ok(line) = serde_json::from_str(&line) else { continue };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let line = json!({
            "port": 0, "token": TOKEN, "config_dir": folder.path().join("config"),
            "cache_dir": folder.path().join("cache"), "dev_login_allowed": mode == "live",
        });
        or_stop(writeln!(input, "{line}"));
        let mut listening = String::new();
        or_stop(BufReader::new(output).read_line(&mut listening));
        let told: Value = or_stop(serde_json::from_str(&listening));
        let port = told["listening"].as_u64().and_then(|port| u16::try_from(port).ok());
        let Some(port) = port else { panic!("the engine says `{listening}`") };
        Self { child, _input: input, port, log, folder }
    }

    /// A new client.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port, TOKEN, "replay")
    }

    /// A new client of a live engine.
    pub(crate) fn live_client(&self) -> Client {
        Client::connect(self.port, TOKEN, "live")
    }

    /// Where decoded data and runs are.
    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// The next line of the log that says this.
    pub(crate) fn told(&self, message: &str) -> Value {
        loop {
            let line = or_stop(self.log.recv_timeout(LOG_TIME));
            if line["message"] == message {
                return line;
            }
        }
    }

    /// What the next client that leaves was told, and how long that had waited.
    pub(crate) fn waits(&self) -> Value {
        self.told("what a client was told, from its queue to its socket")
    }

    /// Processor time that it has used, in seconds, where the system tells it.
    pub(crate) fn processor_seconds(&self) -> Option<f64> {
        let text = std::fs::read_to_string(self.process().join("stat")).ok()?;
        let fields = text.rsplit_once(')')?.1;
        let mut fields = fields.split_whitespace().skip(11).map(str::parse::<f64>);
        // Linux counts them in hundredths of a second.
        Some((fields.next()?.ok()? + fields.next()?.ok()?) / 100.0)
    }

    /// A size of it in megabytes, where the system tells it.
    pub(crate) fn memory(&self, name: &str) -> Option<f64> {
        status(&self.process(), name)
    }

    /// Sets the peak of its memory back to its present size, where the system can.
    pub(crate) fn reset_peak(&self) {
        let _ = std::fs::write(self.process().join("clear_refs"), "5");
    }

    fn process(&self) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
