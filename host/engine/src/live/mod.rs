//! The venues of a live engine, and which commands are whose (specification 2, "Endpoints";
//! specification 4, P15, P23b, P51, P58).

mod desk_command;
mod feed;
mod local_broker;
mod real;
mod recording;
mod strategy;
mod web_broker;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use domain::Rejection;
use ipc::{Dialect, EngineMode, VenueCapabilities, error_code};
use sandbox::{Sandbox, SandboxConfig, SandboxError};

use crate::command::{AccountCommand, PasswordCommand, StrategiesCommand, VenueCommand};
use crate::dispatch::NO_LOGIN;
use crate::hub::ClientId;
use crate::present::orders::{of_command, rejected};
use crate::session::{CommandContext, Shared};
use crate::startup::{EngineConfig, StartError};

use local_broker::Gateway;
use real::StrategyOrders;
use strategy::StrategyFeed;
use venues::web_broker::Masters;
use web_broker::OrderDesk;

pub use local_broker::LocalBroker;
pub(crate) use local_broker::VENUE as LOCAL_BROKER;
pub(crate) use web_broker::VENUE as WEB_BROKER;
pub use web_broker::WebBroker;

/// The venues of a live engine; a replay has none.
#[derive(Debug, Default)]
pub(crate) struct Venues {
    web_broker: OnceLock<OrderDesk>,
    local_broker: OnceLock<Gateway>,
    /// The way of market data to the live strategy.
    strategy: StrategyFeed,
    /// The way of the order desk's reports to it.
    orders: StrategyOrders,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
enum Venue<'a> {
    WebBroker(&'a OrderDesk),
    LocalBroker(&'a Gateway),
}

impl Venue<'_> {
    const fn name(self) -> &'static str {
        match self {
            Self::WebBroker(_) => WEB_BROKER,
            Self::LocalBroker(_) => LOCAL_BROKER,
        }
    }

    fn capabilities(self) -> VenueCapabilities {
        match self {
            Self::WebBroker(desk) => desk.capabilities(),
            Self::LocalBroker(gateway) => gateway.capabilities(),
        }
    }

    fn dialect(self) -> Dialect {
        match self {
            Self::WebBroker(desk) => desk.dialect(),
            Self::LocalBroker(gateway) => gateway.dialect(),
        }
    }
}

impl Venues {
    fn all(&self) -> impl Iterator<Item = Venue<'_>> {
        let web_broker = self.web_broker.get().map(Venue::WebBroker);
        let local_broker = self.local_broker.get().map(Venue::LocalBroker);
        web_broker.into_iter().chain(local_broker)
    }

    /// The web broker's lists of issues and price steps, once it has sent them.
    pub(crate) fn masters(&self) -> Option<Arc<Masters>> {
        self.web_broker.get()?.masters()
    }

    /// What each of them can do.
    pub(crate) fn capabilities(&self) -> BTreeMap<String, VenueCapabilities> {
        self.all().map(|venue| (venue.name().to_owned(), venue.capabilities())).collect()
    }

    /// The dialect that each of them is spoken to in.
    pub(crate) fn dialects(&self) -> BTreeMap<String, Dialect> {
        self.all().map(|venue| (venue.name().to_owned(), venue.dialect())).collect()
    }

    /// The addresses of simulators that stand in a broker's place.
    pub(crate) fn simulators(&self) -> BTreeMap<String, String> {
        let address = self.web_broker.get().and_then(OrderDesk::simulator);
        address.map(|address| (WEB_BROKER.to_owned(), address.to_owned())).into_iter().collect()
    }

    /// A client is gone.
    pub(crate) fn client_left(&self, client: ClientId) {
        for venue in self.all() {
            match venue {
                Venue::WebBroker(desk) => desk.client_left(client),
                Venue::LocalBroker(gateway) => gateway.client_left(client),
            }
        }
    }

    /// Ends all of them, at the same time, and waits for that. `before_desk` comes before the end of the order desk.
    pub(crate) fn stop(&self, before_desk: impl Fn() + Sync) {
        let before_desk = &before_desk;
        std::thread::scope(|threads| {
            for venue in self.all() {
                threads.spawn(move || match venue {
                    Venue::WebBroker(desk) => {
                        before_desk();
                        desk.stop();
                    }
                    Venue::LocalBroker(gateway) => gateway.stop(),
                });
            }
        });
    }
}

/// Starts the venues of a live engine's configuration.
pub(crate) fn start(shared: &Arc<Shared>) -> Result<(), StartError> {
    let EngineConfig { mode, web_broker, local_broker, .. } = &shared.config;
    if *mode != EngineMode::Live {
        return Ok(());
    }
    // Before anything is under way.
    if let Some(local_broker) = local_broker {
        Gateway::check(local_broker)?;
    }
    // Each is started once for each engine.
    if let Some(web_broker) = web_broker {
        let _ = shared.live.web_broker.set(OrderDesk::start(shared, web_broker)?);
    }
    if let Some(local_broker) = local_broker {
        let _ = shared.live.local_broker.set(Gateway::start(shared, local_broker)?);
    }
    Ok(())
}

/// Characters of what is wrong with a dialect's file.
const WHY_CHARS: usize = 500;

/// Makes a venue's dialect ready to run, through the cache of compiled components.
fn load_dialect<D>(
    (venue, built_in): (&'static str, &'static [&'static str]),
    path: &Path,
    cache: &Path,
    load: impl FnOnce(&Sandbox, &Path) -> Result<D, SandboxError>,
) -> Result<D, StartError> {
    let failed = |why: String| StartError::Dialect { venue, built_in, path: path.to_owned(), why };
    if !path.is_file() {
        return Err(failed("the file does not exist".to_owned()));
    }
    let config =
        SandboxConfig { cache_folder: Some(cache.join("components")), ..SandboxConfig::default() };
    let loaded = Sandbox::new(config).and_then(|sandbox| load(&sandbox, path));
    let why = |error| domain::text::on_one_line(&domain::text::with_causes(&error)).into_owned();
    loaded.map_err(|error| failed(why(error).chars().take(WHY_CHARS).collect()))
}

impl Shared {
    /// Hands a command to the venue that it names, or to all if it names none. A replay takes its own.
    pub(crate) fn venue_command(&self, to: &CommandContext<'_>, command: VenueCommand) {
        let Some(name) = to.venue else {
            let venues: Vec<_> = self.live.all().collect();
            if venues.is_empty() {
                self.needs_venue(to, NO_LOGIN);
            }
            for venue in venues {
                self.hand_over(to, venue, VenueCommand::Account(AccountCommand::VenueState));
            }
            return;
        };
        match self.live.all().find(|venue| venue.name() == name) {
            Some(venue) => self.hand_over(to, venue, command),
            None if self.is_here(to, &command, name) => self.replay_command(to, command),
            None => {}
        }
    }

    /// Hands the order desk a command about its password.
    pub(crate) fn password_command(&self, to: &CommandContext<'_>, command: PasswordCommand) {
        match self.live.web_broker.get() {
            Some(desk) => {
                let taken = desk.command(to, |_| desk_command::password(command));
                self.busy_if_refused(to, WEB_BROKER, taken);
            }
            None => self.needs_venue(to, "a replay needs no second password"),
        }
    }

    /// Hands the order desk a command about what it knows of strategies.
    pub(crate) fn strategies_command(&self, to: &CommandContext<'_>, command: StrategiesCommand) {
        let Some(desk) = self.live.web_broker.get() else {
            return self.needs_venue(to, "a replay has no orders at a broker");
        };
        match desk_command::strategies(command) {
            Ok(command) => {
                let taken = desk.command(to, |_| command);
                self.busy_if_refused(to, WEB_BROKER, taken);
            }
            Err(why) => self.lock().error(to, error_code::VALIDATION_ERROR, &why),
        }
    }

    /// Hands a venue a command, or refuses it.
    fn hand_over(&self, to: &CommandContext<'_>, venue: Venue<'_>, command: VenueCommand) {
        use VenueCommand::{Account, Market, Order};
        let taken = match (venue, command) {
            (Venue::WebBroker(desk), Order(order)) => {
                desk.command(to, |instruments| desk_command::order(order, instruments))
            }
            (Venue::WebBroker(desk), Account(account)) => {
                desk.command(to, |_| desk_command::account(account, to.request_id))
            }
            (Venue::WebBroker(_), Market(_)) => {
                let why = "web_broker takes orders; for market data use local_broker";
                return self.lock().error(to, error_code::VENUE_NOT_AVAILABLE, why);
            }
            // No way leads from here to an endpoint for orders (specification 4, P58).
            (Venue::LocalBroker(_), Order(order)) => {
                let rejection = local_broker::rejection(&order);
                return self.reject(to, order.client_order_id(), &rejection);
            }
            (Venue::LocalBroker(gateway), Account(account)) => {
                gateway.command(to, local_broker::account_command(account))
            }
            (Venue::LocalBroker(gateway), Market(market)) => {
                gateway.command(to, local_broker::market_command(market))
            }
        };
        self.busy_if_refused(to, venue.name(), taken);
    }

    fn busy_if_refused(&self, to: &CommandContext<'_>, venue: &str, taken: Result<(), ()>) {
        if taken.is_err() {
            let why = format!("too many commands wait for {venue}; wait for their answers");
            self.lock().busy(to, &why);
        }
    }

    /// Rejects a command about orders, and counts that as an error of its sender.
    pub(crate) fn reject(&self, to: &CommandContext<'_>, id: Option<&str>, rejection: &Rejection) {
        // An unknown name is a text of the client's.
        let venue = to.venue.filter(|venue| *venue == LOCAL_BROKER);
        let now = domain::clock::wall_now();
        let context = of_command(to.request_id, venue, None);
        let event = rejected(id, Cow::Borrowed(rejection), now, context);
        let mut core = self.lock();
        core.hub.broadcast(&event);
        core.hub.count_error(to.client, to.now);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use domain::Secret;
    use domain::fault::Identity;
    use domain::gateway_mapping::{
        GatewayBoard, GatewayDescription, GatewayErrorKind, GatewayMapping, GatewayRefusal,
    };
    use domain::order_mapping::Mapped;
    use live::notify::Notifier;
    use sandbox::Limits;
    use tempfile::TempDir;
    use trader::Strategies;
    use venues::local_broker::LocalBrokerConfig;

    use super::*;
    use crate::outbox::{Outbox, Taken};
    use crate::{CancellationToken, EngineConfig, StrategyRules};

    /// A live engine's session without venues, which writes nothing.
    pub(crate) fn shared() -> Arc<Shared> {
        shared_with_cache("d".into())
    }

    fn shared_with_cache(cache_dir: PathBuf) -> Arc<Shared> {
        let config = EngineConfig {
            mode: EngineMode::Live,
            port: 0,
            token: Secret::from("0123456789abcdef".to_owned()),
            config_dir: "c".into(),
            cache_dir,
            data: None,
            strategies: Strategies { folder: "s".into(), cache: "d".into(), shipped: None },
            standalone: true,
            allowed_origins: Vec::new(),
            runs_kept: 1,
            limits: Limits::default(),
            web_broker: None,
            local_broker: None,
            live_engine: true,
            strategy_rules: StrategyRules::default(),
            notify_command: Vec::new(),
            console_port: 0,
            confirm_above_jpy: 0,
        };
        Arc::new(Shared::new(config, Notifier::default(), CancellationToken::new()))
    }

    struct NoDialect(GatewayDescription);

    impl GatewayMapping for NoDialect {
        fn identity(&self) -> Identity {
            Identity { component: "none".to_owned(), sha256: "0".repeat(64) }
        }

        fn description(&self) -> &GatewayDescription {
            &self.0
        }

        fn classify(&mut self, _: u16, _: &str) -> Mapped<GatewayRefusal> {
            let kind = GatewayErrorKind::Other;
            Ok(GatewayRefusal { kind, code: None, message: String::new() })
        }

        fn read_board(&mut self, _: &str) -> Mapped<Result<GatewayBoard, String>> {
            Ok(Err("none".to_owned()))
        }
    }

    /// A live engine with the local broker's venue, where no gateway runs, the queue of one client, and the
    /// engine's cache.
    fn engine() -> (Arc<Shared>, ClientId, Arc<Outbox>, TempDir) {
        let cache = tempfile::tempdir().unwrap();
        let shared = shared_with_cache(cache.path().to_owned());
        // The port of a service that is gone: nothing listens there, and nothing asks.
        let config = LocalBrokerConfig {
            base_url: Some("http://127.0.0.1:9".to_owned()),
            ..LocalBrokerConfig::default()
        };
        let mapping = Box::new(NoDialect(GatewayDescription::default()));
        let gateway = Gateway::of_mapping(&shared, config, mapping, None).unwrap();
        assert!(shared.live.local_broker.set(gateway).is_ok());
        let outbox = Arc::new(Outbox::default());
        let client = shared.lock().hub.join(Arc::clone(&outbox), None);
        (shared, client, outbox, cache)
    }

    pub(in crate::live) fn events(outbox: &Outbox) -> Vec<serde_json::Value> {
        match outbox.take() {
            Taken::Messages(messages) => messages
                .into_iter()
                .map(|message| serde_json::from_str(&message.into_text()).unwrap())
                .collect(),
            _ => Vec::new(),
        }
    }

    const ORDER: &str = r#"{"client_order_id":"o1","instrument_id":"7203.TSE","order_side":"BUY",
        "order_type":"MARKET","quantity":"100","price":null,"trigger_price":null,"trigger_type":null,
        "time_in_force":"DAY","expire_time_ns":null,"post_only":false,"reduce_only":false,"tags":null}"#;

    /// P58: what is no stock first, everything else is not taken, and none of it reaches the venue.
    #[test]
    fn p58_no_order_command_reaches_the_local_broker() {
        let (shared, client, outbox, _cache) = engine();
        let order = |instrument: &str| {
            let order = ORDER.replace("7203.TSE", instrument);
            format!(
                r#"{{"op":"SubmitOrder","request_id":"r","venue":"local_broker","order":{order}}}"#
            )
        };
        let plain = |op: &str, fields: &str| {
            format!(r#"{{"op":"{op}","request_id":"r","venue":"local_broker"{fields}}}"#)
        };
        let (futures, refused) = ("UNSUPPORTED_INSTRUMENT", "VENUE_UNSUPPORTED");
        for (command, code, start) in [
            (order("7203.TSE"), refused, "PHASE_1: "),
            (order("160060018.TSE"), futures, "FUTURES: "),
            (order("no instrument"), refused, "PHASE_1: "),
            (
                plain("ModifyOrder", r#","client_order_id":"o1","change":{"new_quantity":"1"}"#),
                refused,
                "PHASE_1: ",
            ),
            (plain("CancelOrder", r#","venue_order_id":"5""#), refused, "PHASE_1: "),
            (plain("CancelAllOrders", ""), refused, "PHASE_1: "),
            (plain("CancelAllOrders", r#","instrument_id":"160060018.OSE""#), futures, "FUTURES: "),
        ] {
            shared.handle(client, None, &command);
            let events = events(&outbox);
            assert_eq!(events.len(), 1, "{command}: {events:?}");
            let event = &events[0];
            assert_eq!(event["event"], "OrderRejected", "{command}");
            assert_eq!(event["reason_code"], code, "{command}");
            assert!(event["reason_text"].as_str().unwrap().starts_with(start), "{event}");
            assert_eq!(
                (&event["request_id"], &event["venue"]),
                (&"r".into(), &"local_broker".into())
            );
        }
        // An order that is none is refused before that, at its venue.
        shared.handle(client, None, &order("7203.TSE").replace("\"BUY\"", "1"));
        let events = events(&outbox);
        assert_eq!(events[0]["reason_code"], "VALIDATION_ERROR", "{events:?}");
        assert_eq!(events[0]["venue"], "local_broker", "{events:?}");
        shared.live.stop(|| {});
    }

    /// P44: five fields, always.
    #[test]
    fn p44_the_capabilities_of_the_local_broker() {
        let (shared, _, _, _cache) = engine();
        let capabilities = serde_json::to_value(shared.live.capabilities()).unwrap();
        let expected = serde_json::json!({"local_broker": {
            "requires_local_app": true, "max_push_symbols": 50, "supports_amend": false,
            "requires_trade_password_for_cancel": true, "is_production": false,
        }});
        assert_eq!(capabilities, expected);
        assert_eq!(shared.live.dialects()["local_broker"].name, "none");
        shared.live.stop(|| {});
    }

    /// A command for a venue that has ended, or that the engine does not have, is refused.
    #[test]
    fn commands_go_to_the_venue_that_they_name() {
        let (shared, client, outbox, _cache) = engine();
        shared.handle(
            client,
            None,
            r#"{"op":"GetBuyingPower","request_id":"w","venue":"web_broker"}"#,
        );
        shared.handle(client, None, r#"{"op":"SetSecondPassword","request_id":"p","value":"v"}"#);
        shared.handle(client, None, r#"{"op":"GetStrategyPositions","request_id":"s"}"#);
        let settle = r#"{"op":"SettleOrder","request_id":"o","client_order_id":"c","origin":"person","venue_order_id":null}"#;
        shared.handle(client, None, settle);
        let refused = events(&outbox);
        assert_eq!(refused.len(), 4, "{refused:?}");
        for event in refused {
            assert_eq!(
                (&event["event"], &event["code"]),
                (&"Error".into(), &"venue_not_available".into())
            );
        }
        shared.live.stop(|| {});
        for (op, fields) in [
            ("Subscribe", r#","venue":"local_broker","ticker":"7203""#),
            ("GetBoard", r#","venue":"local_broker","ticker":"7203""#),
            ("GetOrderList", r#","venue":"local_broker","filter":{}"#),
            ("GetPositions", r#","venue":"local_broker""#),
            ("GetVenueState", ""),
        ] {
            shared.handle(client, None, &format!(r#"{{"op":"{op}","request_id":"r"{fields}}}"#));
            let events = events(&outbox);
            assert_eq!(events.len(), 1, "{op}: {events:?}");
            assert_eq!(events[0]["event"], "EngineBusy", "{op}: {events:?}");
            assert!(events[0]["reason"].as_str().unwrap().contains("local_broker"), "{events:?}");
        }
    }

    #[test]
    fn the_real_market_is_refused_before_anything_starts() {
        let local_broker = |config| LocalBroker {
            config,
            dialect: "d".into(),
            dev_login_allowed: false,
            asks_in_terminal: false,
            record: None,
        };
        let usual =
            LocalBrokerConfig { retry_wait: Duration::ZERO, ..LocalBrokerConfig::default() };
        let port = LocalBrokerConfig {
            base_url: Some("http://127.0.0.1:18080".to_owned()),
            ..usual.clone()
        };
        let alone = LocalBrokerConfig { production_wanted: true, ..usual.clone() };
        for (config, code) in [(port, 19), (alone, 19)] {
            let error = Gateway::check(&local_broker(config)).unwrap_err();
            assert_eq!(error.exit_code(), code);
            assert!(error.to_string().contains("LOCALBROKER_ALLOW_PROD=1"), "{error}");
        }
        let elsewhere =
            LocalBrokerConfig { base_url: Some("http://192.0.2.1".to_owned()), ..usual.clone() };
        let error = Gateway::check(&local_broker(elsewhere)).unwrap_err();
        assert_eq!(error.exit_code(), 20);
        assert!(error.to_string().contains("not on this machine"), "{error}");
        assert!(Gateway::check(&local_broker(usual)).is_ok());
    }
}
