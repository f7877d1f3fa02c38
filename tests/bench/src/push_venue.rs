//! The local broker's venue, logged in and subscribed to all symbols, and what it makes of a frame.

use domain::clock::{Stopwatch, wall_now};
use domain::fault::Identity;
use domain::gateway_mapping::{
    GatewayBoard, GatewayDescription, GatewayErrorKind, GatewayMapping, GatewayRefusal,
};
use domain::market_update::{self, MarketUpdate};
use domain::order_mapping::Mapped;
use ipc::{Event, Trades};
use kumiki_dialect_sdk::gateway::{Board, Level, board};
use sandbox::{GatewayDialectInstance, Sandbox, SandboxConfig};
use secrecy::SecretString;
use serde_json::json;
use venues::local_broker::gateway::{Gateway, Out, Rules};
use venues::local_broker::lifecycle::Push;
use venues::local_broker::request::{Answer, Question};
use venues::local_broker::{ForcedLogout, LocalBrokerConfig, VENUE};
use venues::{Now, RequestContext};

use crate::push_frames::{SYMBOLS, symbol};
use crate::rank_bench::or_stop;

/// A dialect's component.
pub(crate) fn component(path: &std::path::Path) -> GatewayDialectInstance {
    let sandbox = or_stop(Sandbox::new(SandboxConfig::default()));
    or_stop(or_stop(sandbox.load_gateway_dialect(path)).instantiate())
}

/// The code of the dialects, compiled into this program: what a component costs is beside it.
pub(crate) struct Native(pub(crate) GatewayDescription);

impl GatewayMapping for Native {
    fn identity(&self) -> Identity {
        Identity { component: "native".to_owned(), sha256: String::new() }
    }

    fn description(&self) -> &GatewayDescription {
        &self.0
    }

    fn classify(&mut self, _: u16, _: &str) -> Mapped<GatewayRefusal> {
        let kind = GatewayErrorKind::Other;
        Ok(GatewayRefusal { kind, code: None, message: String::new() })
    }

    fn read_board(&mut self, message: &str) -> Mapped<Result<GatewayBoard, String>> {
        Ok(board::read(message).map(of_guest))
    }
}

/// The host's words for what the guest's code has read.
fn of_guest(read: Board) -> GatewayBoard {
    let levels = |levels: Vec<Level>| {
        let level =
            |level: &Level| market_update::Level { price: level.price, quantity: level.qty };
        levels.iter().map(level).collect()
    };
    GatewayBoard {
        symbol: read.symbol,
        exchange: read.exchange,
        name: read.name,
        last_price: read.last_price,
        time_ms: read.time_ms,
        volume: read.volume,
        best_ask: read.best_ask,
        best_bid: read.best_bid,
        asks: levels(read.asks),
        bids: levels(read.bids),
    }
}

/// A venue whose stream is open.
pub(crate) struct Venue {
    gateway: Gateway,
    watch: Stopwatch,
    connection: u64,
}

/// What was told, as texts that are ready to be sent.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) messages: u64,
    pub(crate) trades: u64,
    pub(crate) bytes: u64,
}

impl Venue {
    /// Logs in and subscribes to everything; the gateway takes all of it.
    pub(crate) fn new(mapping: Box<dyn GatewayMapping>) -> Self {
        let forced_logout = ForcedLogout::away_from(wall_now());
        let config = LocalBrokerConfig { forced_logout, ..LocalBrokerConfig::default() };
        let watch = Stopwatch::start();
        let rules = Rules::of(&config);
        let mut venue =
            Self { gateway: Gateway::new(rules, mapping, now(watch)), watch, connection: 0 };
        venue.gateway.login(None, now(watch));
        for number in 0..SYMBOLS {
            let context = RequestContext { client: 1, request_id: number.to_string() };
            venue.gateway.subscribe(context, &symbol(number), now(watch));
        }
        while venue.gateway.state().push() != Some(Push::Streaming) {
            venue.settle();
            let now = venue.now();
            venue.gateway.tick(now);
        }
        venue
    }

    fn now(&self) -> Now {
        now(self.watch)
    }

    fn settle(&mut self) {
        for out in self.gateway.take_out() {
            let now = self.now();
            match out {
                Out::AskPassword => {
                    self.gateway.password(Ok(SecretString::from("demo")), now);
                }
                Out::Ask { ticket, request } => {
                    let body = match request.question {
                        Question::Token => json!({ "ResultCode": 0, "Token": "of-the-bench" }),
                        _ => list(),
                    };
                    let answer = Answer { status: 200, body: body.to_string().into() };
                    self.gateway.answered(ticket, Ok(answer), now);
                }
                Out::OpenPush { connection } => {
                    self.connection = connection;
                    self.gateway.push_opened(connection, now);
                }
                Out::Send(..) | Out::ClosePush | Out::WriteRegistered { .. } | Out::Ping => {}
            }
        }
    }

    /// Takes a frame; it must count.
    pub(crate) fn frame(&mut self, text: &str) -> MarketUpdate {
        let now = self.now();
        let update = self.gateway.frame(self.connection, text.as_bytes(), now);
        self.settle();
        let Some(update) = update else { panic!("a frame was dropped: {text:.300}") };
        update
    }

    /// The whole way of a frame: read, mapped, and written as what clients are sent.
    pub(crate) fn whole(&mut self, text: &str, told: &mut Told) {
        texts(&self.frame(text), told);
    }
}

/// What a frame became as the texts of events, as the engine writes them.
fn texts(update: &MarketUpdate, told: &mut Told) {
    let board = &update.board;
    let trades = update.trade.as_ref().map(|trade| Trades {
        venue: VENUE.into(),
        exchange: engine::EXCHANGE.into(),
        ticker: board.symbol.as_str().to_owned().into(),
        instrument_id: None,
        stream_session_id: board.stream_session_id.to_string().into(),
        trades: vec![engine::live_trade(trade)],
    });
    told.write(&Event::DepthSnapshot(engine::depth(board)));
    if let Some(trades) = trades {
        told.write(&Event::Trades(trades));
        told.trades += 1;
    }
}

impl Told {
    fn write(&mut self, event: &Event<'_>) {
        let text = std::hint::black_box(or_stop(serde_json::to_string(event)));
        self.messages += 1;
        self.bytes += text.len() as u64;
    }
}

fn now(watch: Stopwatch) -> Now {
    Now { mono: watch.elapsed(), wall: wall_now() }
}

fn list() -> serde_json::Value {
    let rows: Vec<_> =
        (0..SYMBOLS).map(|number| json!({ "Symbol": symbol(number), "Exchange": 1 })).collect();
    json!({ "RegistList": rows })
}
