//! Trading days of the simulated gateway over real sockets, with faults at random, through the dialects' components:
//! what the venue tells adds up to what was traded, and the gateway has in the end what is wanted. Seeds are told on failure;
//! `KUMIKI_SOAK_GATEWAY_SOCKET_SEEDS` sets how many there are, and `KUMIKI_GATEWAY_SEED` plays one alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends at the first surprise, and tells its seed"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test tells its seeds")]

mod seen;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::Random;
use domain::clock::{Stopwatch, sleep, wall_now};
use sandbox::{GatewayDialectInstance, Sandbox, SandboxConfig};
use secrecy::SecretString;
use serde_json::{Value, json};
use sim::local_broker::{Config, Dialect, Server};
use tests::built;
use venues::RequestContext;
use venues::local_broker::{
    Command, ForcedLogout, LocalBrokerConfig, REGISTER_MAX, Service, Setup,
};

use seen::{BOARD_READER, Seen};

/// Seeds of the usual tests: a twentieth of `cargo xtask soak`.
const SEEDS: u64 = 1;
/// Trading days of a seed, and what happens on each.
const DAYS: u64 = 10;
const STEPS: u64 = 60;
/// Symbols whose trades are counted, of client 1.
const COUNTED: [&str; 5] = ["7203", "130A", "7261", "1301", "9984"];
/// How long anything may take; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Faults of calls and frames, as on the command line of the simulator.
const FAULTS: [&str; 19] = [
    "unauthorized=4001001*1",
    "unauthorized=4001009*1",
    "too-many*1",
    "server-error=503*2",
    "delay-answer=400*1",
    "drop-before*2",
    "drop-answer*1",
    "half-answer*1",
    "garbage*1",
    "empty-answer*1",
    "missing-entries=2*1",
    "duplicate-frames*3",
    "lost-frames*2",
    "wrong-utf8*1",
    "binary-frames*1",
    "malformed-frames*2",
    "giant-frames=100000*1",
    "giant-frames=2000000*1",
    "foreign-exchange-frames=3*2",
];

struct World {
    random: Random,
    gateway: Server,
    service: Service,
    seen: Arc<Mutex<Seen>>,
    commands: u64,
    /// Boards that were asked for.
    boards: u64,
    /// Days whose sums were compared.
    compared: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        // Each dialect in its turn.
        let (name, dialect) = match seed % 2 {
            0 => ("local-broker-spec", Dialect::Spec),
            _ => ("local-broker-kabusapi", Dialect::Kabusapi),
        };
        let gateway = Server::start(Config { dialect, ..Config::default() }).unwrap();
        let config = LocalBrokerConfig {
            base_url: Some(gateway.base_url()),
            forced_logout: ForcedLogout::away_from(wall_now()),
            retry_wait: Duration::from_millis(20),
            reconnect_base: Duration::from_millis(20),
            request_timeout: Duration::from_millis(300),
            login_at_start: true,
            ..LocalBrokerConfig::default()
        };
        let setup = Setup {
            config,
            mapping: Box::new(component(name)),
            ask_password: Box::new(|| Ok(SecretString::from("demo"))),
            registration_file: None,
        };
        let seen = Arc::new(Mutex::new(Seen::default()));
        let told = Arc::clone(&seen);
        let service = Service::start(setup, move |what| told.lock().unwrap().take(&what)).unwrap();
        let random = Random::new(&[seed, 3]);
        Self { random, gateway, service, seen, commands: 0, boards: 0, compared: 0 }
    }

    fn play(mut self) -> u64 {
        for symbol in COUNTED {
            self.send(1, Command::Subscribe(symbol.to_owned()));
        }
        for day in 0..DAYS {
            self.day(day);
        }
        self.heal();
        self.service.client_left(2);
        self.no_place_is_lost();
        self.wait("only what is wanted is registered", |world| world.registered() == wanted());
        let Self { gateway, service, seen, compared, .. } = self;
        service.stop();
        let left = gateway.view()["registered"].clone();
        assert_eq!(left, json!([]), "nothing of ours stays at the gateway");
        seen.lock().unwrap().check();
        compared
    }

    /// Whoever reads boards keeps the places of those that were read, and no other one: without them all the rest
    /// of the register set is free.
    fn no_place_is_lost(&mut self) {
        self.wait("boards are answered", |world| {
            world.seen(|seen| seen.boards_answered) == world.boards
        });
        for symbol in self.seen(|seen| seen.boards.clone()) {
            self.send(BOARD_READER, Command::Unsubscribe(symbol));
        }
        let before = self.seen(|seen| (seen.subscribed, seen.refused.len()));
        let others: Vec<String> =
            (COUNTED.len()..REGISTER_MAX).map(|number| (4_000 + number).to_string()).collect();
        others.iter().for_each(|ticker| self.send(1, Command::Subscribe(ticker.clone())));
        self.wait("subscriptions are answered", |world| {
            let answered =
                world.seen(|seen| seen.subscribed - before.0 + seen.refused.len() as u64);
            answered - before.1 as u64 == others.len() as u64
        });
        let refused = self.seen(|seen| seen.refused[before.1..].to_vec());
        assert_eq!(refused, Vec::<String>::new(), "{}", self.describe());
        others.into_iter().for_each(|ticker| self.send(1, Command::Unsubscribe(ticker)));
    }

    fn seen<T>(&self, read: impl FnOnce(&Seen) -> T) -> T {
        let seen = self.seen.lock().unwrap();
        seen.check();
        read(&seen)
    }

    fn send(&mut self, client: u64, command: Command) {
        self.commands += 1;
        let request_id = format!("{client}-{}", self.commands);
        self.service.command(RequestContext { client, request_id }, command).unwrap();
    }

    fn control(&self, command: &Value) {
        self.gateway.control(command).unwrap_or_else(|error| panic!("{command}: {error}"));
    }

    fn wait(&mut self, what: &str, is_so: impl Fn(&mut Self) -> bool) {
        let watch = Stopwatch::start();
        while !is_so(self) {
            assert!(watch.elapsed() < PATIENCE, "{what}: {}", self.describe());
            sleep(Duration::from_millis(5));
        }
    }

    fn describe(&self) -> String {
        let view = self.gateway.view();
        format!("{:?}; {} {}", self.seen.lock().unwrap(), view["registered"], view["symbols"])
    }

    fn registered(&self) -> BTreeSet<String> {
        let view = self.gateway.view();
        let rows = view["registered"].as_array().unwrap().clone();
        rows.iter().map(|row| row["Symbol"].as_str().unwrap().to_owned()).collect()
    }

    /// Shares of a symbol's day.
    fn volume(&self, symbol: &str) -> i64 {
        self.gateway.view()["symbols"][symbol]["day_volume"].as_i64().unwrap_or(0)
    }

    /// The last fault is over, and the venue is whole again.
    fn heal(&mut self) {
        for command in ["clear-faults", "accept", "login-open", "drop-push"] {
            // A connection that is half open ends like every other one.
            self.control(&json!({ "do": command }));
        }
        let watch = Stopwatch::start();
        loop {
            let state = self.state();
            if state == "Ready Streaming" && self.registered().is_superset(&wanted()) {
                return;
            }
            assert!(
                watch.elapsed() < PATIENCE,
                "{state} after the last fault: {}",
                self.describe()
            );
            sleep(Duration::from_millis(20));
        }
    }

    /// Where the venue stands; whoever has to log in does.
    fn state(&mut self) -> String {
        let asked = self.seen(|seen| seen.states);
        self.send(1, Command::ReadState);
        self.wait("a state", |world| world.seen(|seen| seen.states > asked));
        let state = self.seen(|seen| seen.state.clone());
        if ["TokenExpired", "Disconnected"].contains(&&*state) {
            self.send(1, Command::Login);
        }
        state
    }

    /// Pushes the boards of all symbols until each of the counted ones was told.
    fn boards(&mut self) {
        let before = self.seen(|seen| seen.snapshots.clone());
        let watch = Stopwatch::start();
        let is_told = |seen: &Seen| {
            COUNTED.iter().all(|symbol| seen.snapshots.get(*symbol) > before.get(*symbol))
        };
        while !self.seen(is_told) {
            assert!(watch.elapsed() < PATIENCE, "boards are not told: {}", self.describe());
            self.control(&json!({ "do": "boards" }));
            sleep(Duration::from_millis(20));
            // The last fault may have been noticed only now.
            self.state();
        }
    }

    fn day(&mut self, day: u64) {
        self.heal();
        if day > 0 {
            self.control(&json!({ "do": "day" }));
        }
        // From the first number on it is ours.
        for symbol in COUNTED {
            self.trade(symbol, 100);
        }
        self.boards();
        let base = COUNTED.map(|symbol| (symbol, self.volume(symbol)));
        let (told, session) = self.seen(|seen| (seen.told.clone(), seen.session.clone()));
        for _ in 0..STEPS {
            self.step();
        }
        self.heal();
        self.boards();
        self.boards();
        let is_one_session = self.seen(|seen| seen.session == session);
        for (symbol, base) in base {
            let before = told.get(symbol).copied().unwrap_or(0);
            let told = self.seen(|seen| seen.told.get(symbol).copied().unwrap_or(0)) - before;
            let traded = self.volume(symbol) - base;
            assert!(told <= traded, "{symbol}: {told} shares were told of {traded}");
            // A login begins a session: what was traded before its first frame is nobody's.
            let is_whole = told == traded || !is_one_session;
            assert!(is_whole, "{symbol}: {told} shares were told of {traded} on day {day}");
        }
        self.compared += u64::from(is_one_session);
    }

    fn trade(&mut self, symbol: &str, quantity: u64) {
        let price = (1_000 + self.random.below(20)).to_string();
        let trade =
            json!({ "do": "trade", "symbol": symbol, "price": price, "quantity": quantity });
        self.control(&trade);
    }

    fn step(&mut self) {
        let symbol = COUNTED[self.random.place(COUNTED.len())];
        match self.random.below(100) {
            0..60 => {
                let lots = 1 + self.random.below(9);
                self.trade(symbol, 100 * lots);
            }
            60..75 => self.control(&json!({ "do": "book", "symbol": symbol })),
            75..85 => self.other_client(),
            _ => self.fault(),
        }
        sleep(Duration::from_millis(self.random.below(4)));
    }

    /// A client that comes to want and not to want others.
    fn other_client(&mut self) {
        let ticker = (2_000 + self.random.below(60)).to_string();
        match self.random.below(7) {
            0 | 1 => self.send(2, Command::Subscribe(ticker)),
            2 => self.send(2, Command::Unsubscribe(ticker)),
            3 => self.send(2, Command::ListPositions),
            4 | 5 => {
                let ticker = (3_000 + self.random.below(3)).to_string();
                self.send(BOARD_READER, Command::ReadBoard(ticker));
                self.boards += 1;
            }
            _ => self.send(2, Command::ReadBuyingPower),
        }
    }

    fn fault(&mut self) {
        let down = self.random.below(100);
        match self.random.below(40) {
            0..5 => self.control(&json!({ "do": "drop-push" })),
            5 | 6 => self.control(&json!({ "do": "half-open" })),
            7 | 8 => self.control(&json!({ "do": "restart", "down_ms": down })),
            9 | 10 => self.control(&json!({ "do": "refuse", "ms": down })),
            11 => self.control(&json!({ "do": "end-token" })),
            12 => self.control(&json!({ "do": "log-out" })),
            _ => {
                let fault = FAULTS[self.random.place(FAULTS.len())];
                self.gateway.fault(fault).unwrap();
            }
        }
    }
}

fn component(name: &str) -> GatewayDialectInstance {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    sandbox.load_gateway_dialect(&built::dialect(name)).unwrap().instantiate().unwrap()
}

fn wanted() -> BTreeSet<String> {
    COUNTED.iter().map(|symbol| (*symbol).to_owned()).collect()
}

#[test]
fn no_outage_of_the_simulated_gateway_loses_or_doubles_a_share() {
    let count = std::env::var("KUMIKI_SOAK_GATEWAY_SOCKET_SEEDS").ok();
    let count = count.map_or(SEEDS, |text| text.parse().expect("a number of seeds"));
    let only = std::env::var("KUMIKI_GATEWAY_SEED").ok().map(|text| text.parse().unwrap());
    let seeds = only.map_or(0..count, |seed: u64| seed..seed + 1);
    let mut compared = 0;
    for seed in seeds.clone() {
        match std::panic::catch_unwind(|| World::new(seed).play()) {
            Ok(days) => compared += days,
            Err(why) => {
                eprintln!("seed {seed}: KUMIKI_GATEWAY_SEED={seed} plays it alone");
                std::panic::resume_unwind(why);
            }
        }
    }
    let days = DAYS * (seeds.end - seeds.start);
    println!("{compared} of {days} days were of one session");
    assert!(2 * compared >= days, "most days had a login: too little was compared");
}
