//! A running `kumiki rank serve`, for tests of the whole program.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::{built, http};

/// The service as a process of its own; ends with the test.
#[derive(Debug)]
pub struct Serving {
    /// The process.
    pub child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Serving {
    /// Starts it over a data folder, with more arguments.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(data: &Path, more: &[&str]) -> Self {
        Self::of(Self::command(data, more))
    }

    /// The command that [`Self::start`] starts.
    #[must_use]
    pub fn command(data: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(built::kumiki());
        command.args(["rank", "serve", "--listen", "127.0.0.1:0"]).args(more);
        // The data of tests are of days that are long over.
        if !more.contains(&"--behind-days") {
            command.args(["--behind-days", "20000"]);
        }
        command.env("DATA_DIR", data).env_remove("KUMIKI_RANK_TOKEN").stdin(Stdio::null());
        command
    }

    /// Starts a command and waits until it says where it listens.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub fn of(mut command: Command) -> Self {
        let started = command.stdout(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|error| panic!("it does not start: {error}"));
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            let read = BufReader::new(out).read_line(&mut line);
            read.unwrap_or_else(|error| panic!("it says nothing: {error}"));
        }
        let address = line.trim().rsplit("http://").next().unwrap_or_default().parse();
        let address = address.unwrap_or_else(|error| panic!("{error}: `{line}`"));
        Self { child, address }
    }

    /// The answer to a GraphQL text.
    ///
    /// # Panics
    /// When the status is not 200.
    #[must_use]
    pub fn ask(&self, query: &str) -> Value {
        let reply = http::graphql(self.address, &json!({ "query": query }).to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
        serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A number of `/metrics`; none where there is no such.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<String> {
        let text = http::request(self.address, "GET /metrics", &[], &[]).text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(str::to_owned)
    }

    /// The most memory that it ever held, in bytes, where the system tells it.
    #[must_use]
    pub fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1_024)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
