//! A venue that runs, and what it tells.

use std::sync::mpsc;
use std::time::Duration;

use domain::clock::wall_now;
use domain::gateway_mapping::GatewayDescription;
use ipc::Command;
use secrecy::SecretString;
use serde_json::{Value, json};
use venues::local_broker::{
    Busy, ForcedLogout, KeepAlive, LocalBrokerConfig, Service, Setup, Told,
};

use crate::dialect::Dialect;
use crate::server::Server;

/// No test waits longer for something that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Venue {
    pub(crate) service: Service,
    told: mpsc::Receiver<Value>,
}

/// A command of client 1 as JSON.
fn command(name: &str, mut fields: Value) -> Command {
    fields["op"] = name.into();
    fields["request_id"] = "r".into();
    fields["venue"] = "local_broker".into();
    serde_json::from_value(fields).unwrap()
}

impl Venue {
    /// Starts a venue at a gateway; nobody is logged in.
    pub(crate) fn start(server: &Server) -> Self {
        Self::start_with(server, Duration::from_secs(30), || {})
    }

    /// The same; `before` is done before something is told, on the venue's thread.
    pub(crate) fn start_with(
        server: &Server,
        request_timeout: Duration,
        mut before: impl FnMut() + Send + 'static,
    ) -> Self {
        let config = LocalBrokerConfig {
            base_url: Some(format!("http://127.0.0.1:{}", server.port)),
            // Of our own gateway nothing answers pings.
            keep_alive: KeepAlive::ReadTimeout,
            read_timeout: PATIENCE * 60,
            // Whatever the time is, boards are shown.
            forced_logout: ForcedLogout::away_from(wall_now()),
            retry_wait: Duration::from_millis(1),
            reconnect_base: Duration::from_millis(1),
            request_timeout,
            ..LocalBrokerConfig::default()
        };
        let description = GatewayDescription {
            push_path: "/push".to_owned(),
            board_read_registers: true,
            ..GatewayDescription::default()
        };
        let setup = Setup {
            config,
            mapping: Box::new(Dialect(description)),
            kept: None,
            ask_password: Box::new(|| Ok(SecretString::from("password"))),
        };
        let (sender, told) = mpsc::channel();
        let tell = move |told: Told<'_>| {
            before();
            let told = match told {
                Told::Event(_, event) => serde_json::to_value(event).unwrap(),
                Told::Market(data) => json!({ "event": "Market", "ticker": data.symbol }),
                Told::MarketPause => json!({ "event": "MarketPause" }),
            };
            // A test that has heard enough is over.
            let _ = sender.send(told);
        };
        Self { service: Service::start(setup, tell).unwrap(), told }
    }

    /// One that is logged in and has a symbol's frames told.
    pub(crate) fn subscribed(server: &Server) -> Self {
        let venue = Self::start(server);
        venue.send("RequestVenueLogin", json!({})).unwrap();
        venue.until("VenueReady");
        venue.send("Subscribe", json!({ "ticker": "7203" })).unwrap();
        venue.until("Subscribed");
        venue
    }

    pub(crate) fn send(&self, name: &str, fields: Value) -> Result<(), Busy> {
        self.service.command(1, command(name, fields))
    }

    /// The next event.
    pub(crate) fn next(&self) -> Value {
        self.told.recv_timeout(PATIENCE).unwrap()
    }

    /// The next event of a kind.
    pub(crate) fn until(&self, event: &str) -> Value {
        loop {
            let told = self.told.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {event}"));
            if told["event"] == event {
                return told;
            }
        }
    }

    /// Waits until the stream stands so.
    pub(crate) fn until_push(&self, push: &str) {
        loop {
            self.send("GetVenueState", json!({})).unwrap();
            let state = self.until("VenueState");
            if state["push"].as_str().is_some_and(|found| found.starts_with(push)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
