//! A running venue, and its output.

use std::sync::mpsc;
use std::time::Duration;

use domain::clock::wall_now;
use domain::gateway_mapping::GatewayDescription;
use secrecy::SecretString;
use serde_json::{Value, json};
use venues::local_broker::{
    Command, ForcedLogout, KeepAlive, LocalBrokerConfig, Output, Service, Setup, VenueEvent,
};
use venues::{Busy, OrderQuery, RequestContext};

use crate::dialect::Dialect;
use crate::server::Server;

/// The longest wait of a test for an event that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Venue {
    pub(crate) service: Service,
    reported: mpsc::Receiver<Value>,
}

/// A command by its name on the wire.
fn command(name: &str, fields: &Value) -> Command {
    let ticker = || fields["ticker"].as_str().unwrap().to_owned();
    match name {
        "Subscribe" => Command::Subscribe(ticker()),
        "Unsubscribe" => Command::Unsubscribe(ticker()),
        "GetBoard" => Command::ReadBoard(ticker()),
        "EvictLru" => Command::EvictLru,
        "GetBuyingPower" => Command::ReadBuyingPower,
        "GetOrderList" => Command::ListOrders(OrderQuery::default()),
        "GetPositions" => Command::ListPositions,
        "RequestVenueLogin" => Command::Login,
        "GetVenueState" => Command::ReadState,
        other => panic!("{other} is not a command"),
    }
}

/// The fields of an event that tests look at, with its name on the wire.
fn seen(event: &VenueEvent) -> Value {
    match event {
        VenueEvent::LoginStarted { .. } => json!({ "event": "VenueLoginStarted" }),
        VenueEvent::LoginCancelled { .. } => json!({ "event": "VenueLoginCancelled" }),
        VenueEvent::Ready { .. } => json!({ "event": "VenueReady" }),
        VenueEvent::Unusable { code, message } => {
            json!({ "event": "VenueError", "code": code.name(), "message": message })
        }
        VenueEvent::State { state, .. } => {
            let push = state.push().map(|push| push.to_string());
            json!({ "event": "VenueState", "push": push })
        }
        VenueEvent::Error { code, message, .. } => {
            json!({ "event": "Error", "code": code.name(), "message": message })
        }
        VenueEvent::Subscribed { symbol, .. } => json!({ "event": "Subscribed", "ticker": symbol }),
        VenueEvent::Unsubscribed { symbol, .. } => {
            json!({ "event": "Unsubscribed", "ticker": symbol })
        }
        VenueEvent::Evicted { symbol, .. } => {
            json!({ "event": "SubscriptionEvicted", "symbol": symbol })
        }
        VenueEvent::Board { board, .. } => {
            json!({ "event": "DepthSnapshot", "ticker": board.symbol.as_str() })
        }
        VenueEvent::BuyingPower { cash, margin, .. } => json!({
            "event": "BuyingPowerUpdated",
            "cash_available": cash.map(|amount| amount.to_string()),
            "credit_available": margin.map(|amount| amount.to_string()),
        }),
        VenueEvent::Orders { orders, .. } => {
            json!({ "event": "OrderListUpdated", "orders": vec![(); orders.len()] })
        }
        VenueEvent::Positions { positions, .. } => {
            json!({ "event": "PositionsUpdated", "positions": vec![(); positions.len()] })
        }
        VenueEvent::UnreadableOrder { message, .. } => {
            json!({ "event": "OrderDiscrepancy", "message": message })
        }
    }
}

impl Venue {
    /// Starts a venue at a gateway, without a login.
    pub(crate) fn start(server: &Server) -> Self {
        Self::start_with(server, Duration::from_secs(30), || {})
    }

    /// The same; `before` is called before each output, on the venue's thread.
    pub(crate) fn start_with(
        server: &Server,
        request_timeout: Duration,
        mut before: impl FnMut() + Send + 'static,
    ) -> Self {
        let config = LocalBrokerConfig {
            base_url: Some(format!("http://127.0.0.1:{}", server.port)),
            // The test's gateway answers no pings.
            keep_alive: KeepAlive::ReadTimeout,
            read_timeout: PATIENCE * 60,
            // At this time boards are shown.
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
            registration_file: None,
            ask_password: Box::new(|| Ok(SecretString::from("password"))),
        };
        let (sender, reported) = mpsc::channel();
        let emit = move |output: Output<'_>| {
            before();
            let reported = match output {
                Output::Event(_, event) => seen(event),
                Output::Market(update) => {
                    json!({ "event": "Market", "ticker": update.board.symbol.as_str() })
                }
                Output::MarketPause => json!({ "event": "MarketPause" }),
                Output::Streaming(_) | Output::Tick => return,
            };
            // The test is over if it takes no more events.
            let _ = sender.send(reported);
        };
        Self { service: Service::start(setup, emit).unwrap(), reported }
    }

    /// A venue that is logged in and subscribed to a symbol.
    pub(crate) fn subscribed(server: &Server) -> Self {
        let venue = Self::start(server);
        venue.send("RequestVenueLogin", json!({})).unwrap();
        venue.until("VenueReady");
        venue.send("Subscribe", json!({ "ticker": "7203" })).unwrap();
        venue.until("Subscribed");
        venue
    }

    pub(crate) fn send(&self, name: &str, fields: Value) -> Result<(), Busy> {
        let context = RequestContext { client: 1, request_id: "r".to_owned() };
        self.service.command(context, command(name, &fields))
    }

    /// The next event.
    pub(crate) fn next(&self) -> Value {
        self.reported.recv_timeout(PATIENCE).unwrap()
    }

    /// The next event of a kind.
    pub(crate) fn until(&self, event: &str) -> Value {
        loop {
            let reported =
                self.reported.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {event}"));
            if reported["event"] == event {
                return reported;
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
