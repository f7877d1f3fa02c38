//! The venue of a live engine: the order desk of the web broker, its dialect, and which commands are its
//! (specification 2, "Endpoints"; specification 4, P1, P3, P15, P23b).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use domain::order_mapping::OrderMapping;
use domain::{ReasonCode, Rejection};
use ipc::{
    Command, Dialect, EngineMode, Event, OrderContext, OrderRejected, Text, VenueCapabilities,
    error_code,
};
use orders::{AuditError, DeskRules, Recipient, Service, ServiceError, Setup};
use sandbox::{Sandbox, SandboxConfig};
use venues::web_broker::WebBrokerConfig;

use crate::credentials;
use crate::hub::ClientId;
use crate::session::{Refusing, Shared};
use crate::startup::StartError;

/// The venue's name on the wire.
pub(crate) const WEB_BROKER: &str = orders::desk::VENUE;

/// What the web broker's desk is started with.
#[derive(Debug, Clone)]
pub struct WebBroker {
    /// Where the broker is.
    pub broker: WebBrokerConfig,
    /// How the desk works.
    pub rules: DeskRules,
    /// The file of the dialect.
    pub dialect: PathBuf,
    /// Whether the credentials of development count.
    pub dev_login_allowed: bool,
}

/// A desk that runs.
#[derive(Debug)]
pub(crate) struct LiveVenue {
    /// None once the engine ends.
    service: Mutex<Option<Service>>,
    dialect: Dialect,
    capabilities: VenueCapabilities,
}

impl LiveVenue {
    /// The dialect that the broker is spoken to in.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect.clone()
    }

    /// What the venue can do.
    pub(crate) const fn capabilities(&self) -> VenueCapabilities {
        self.capabilities
    }

    /// Hands a command over; gives it up where the desk is too busy or has ended.
    fn command(&self, client: ClientId, command: Command) -> Result<(), ()> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = service.as_ref().map(|service| service.command(client.number(), command));
        taken.and_then(Result::ok).ok_or(())
    }

    /// A client is gone.
    pub(crate) fn client_left(&self, client: ClientId) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = service.as_ref() {
            service.client_left(client.number());
        }
    }

    /// Ends the desk, after the answer that is on its way. Waits for that.
    pub(crate) fn stop(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(service) = service {
            service.stop();
        }
    }
}

/// Characters of what is wrong with a dialect's file.
const WHY_CHARS: usize = 500;

/// Makes a dialect ready to run, through the cache of compiled components.
fn load_dialect(path: &Path, cache: &Path) -> Result<Box<dyn OrderMapping>, StartError> {
    let failed = |why: String| StartError::Dialect { path: path.to_owned(), why };
    if !path.is_file() {
        return Err(failed("there is no such file".to_owned()));
    }
    let config =
        SandboxConfig { cache_folder: Some(cache.join("components")), ..SandboxConfig::default() };
    let loaded = Sandbox::new(config).and_then(|sandbox| sandbox.load_dialect(path));
    let instance = loaded.and_then(|module| module.instantiate());
    let why = |error| domain::text::on_one_line(&domain::text::with_causes(&error)).into_owned();
    let instance =
        instance.map_err(|error| failed(why(error).chars().take(WHY_CHARS).collect()))?;
    Ok(Box::new(instance))
}

/// Starts the desk, which restores what its log says. What it tells goes to the clients of `shared`.
pub(crate) fn start(shared: &Arc<Shared>, web_broker: &WebBroker) -> Result<(), StartError> {
    let mapping = load_dialect(&web_broker.dialect, &shared.config.cache_dir)?;
    let identity = mapping.identity();
    let dialect = Dialect { name: identity.component, sha256: identity.sha256 };
    let dev_login_allowed = web_broker.dev_login_allowed;
    let setup = Setup {
        broker: web_broker.broker.clone(),
        rules: web_broker.rules,
        mapping,
        config_dir: shared.config.config_dir.clone(),
        credentials: Box::new(move || credentials::find(dev_login_allowed)),
    };
    let clients = Arc::downgrade(shared);
    let service = Service::start(setup, move |to, event| {
        let Some(shared) = clients.upgrade() else { return };
        let mut core = shared.lock();
        match to {
            Recipient::All => core.hub.tell_all(event),
            Recipient::Client(number) => core.hub.tell(ClientId::of(number), event),
        }
    });
    let service = service.map_err(|error| match error {
        ServiceError::Audit(AuditError::Locked(path)) => StartError::LogLocked(path),
        other => StartError::Desk(domain::text::with_causes(&other)),
    })?;
    let is_production = service.is_production();
    tracing::info!(host = service.host(), is_production, "orders go to the web broker");
    let capabilities = VenueCapabilities {
        requires_local_app: false,
        max_push_symbols: 0,
        supports_amend: web_broker.rules.phase.takes_changes(),
        requires_trade_password_for_cancel: true,
        is_production,
    };
    let service = Mutex::new(Some(service));
    // Started once for each engine.
    let _ = shared.live.set(LiveVenue { service, dialect, capabilities });
    Ok(())
}

/// Whether the desk answers a command.
fn is_for_desk(command: &Command) -> bool {
    match command {
        Command::SetSecondPassword(_) | Command::ForgetSecondPassword(_) => true,
        Command::GetVenueState(state) => {
            state.venue.as_deref().is_none_or(|venue| venue == WEB_BROKER)
        }
        other => other.venue() == Some(WEB_BROKER),
    }
}

/// Whether a command wants market data.
const fn is_for_market_data(command: &Command) -> bool {
    matches!(
        command,
        Command::Subscribe(_)
            | Command::Unsubscribe(_)
            | Command::GetBoard(_)
            | Command::EvictLru(_)
    )
}

/// The client's id of the order that a command is about, and whether it is about orders at all.
fn order_id(command: &Command) -> Option<Option<&str>> {
    match command {
        Command::SubmitOrder(submit) => Some(Some(&submit.order.client_order_id)),
        Command::ModifyOrder(modify) => Some(modify.client_order_id.as_deref()),
        Command::CancelOrder(cancel) => Some(cancel.client_order_id.as_deref()),
        Command::CancelAllOrders(_) | Command::GetOrderList(_) => Some(None),
        _ => None,
    }
}

impl Shared {
    /// Hands the desk a command that is its own, and gives every other one back.
    pub(crate) fn take_for_desk(&self, to: &Refusing<'_>, command: Command) -> Option<Command> {
        let Some(live) = self.live.get().filter(|_| is_for_desk(&command)) else {
            return Some(command);
        };
        if is_for_market_data(&command) {
            let why = "web_broker takes orders; it has no market data here";
            self.lock().error(to, error_code::VENUE_NOT_AVAILABLE, why);
        } else if live.command(to.client, command).is_err() {
            let why = "too many commands wait for the web broker; wait for their answers";
            self.lock().busy(to, why);
        }
        None
    }

    /// Refuses a command about orders at a venue that nobody knows (specification 4, P23b). Tells
    /// whether it was one.
    pub(crate) fn refuse_unknown_venue(&self, to: &Refusing<'_>, command: &Command) -> bool {
        if self.config.mode != EngineMode::Live {
            return false;
        }
        let (Some(id), Some(venue)) = (order_id(command), to.venue) else { return false };
        let text = format!("VENUE: `{venue}` is none of web_broker, local_broker");
        let rejection = Rejection::new(ReasonCode::ValidationError, text);
        let event = Event::OrderRejected(OrderRejected {
            client_order_id: id.map(Text::Borrowed),
            reason_code: rejection.code,
            reason_text: Text::Borrowed(&rejection.text),
            ts_event_ms: domain::clock::wall_now().millis(),
            context: OrderContext {
                request_id: to.request_id.map(Text::Borrowed),
                ..OrderContext::default()
            },
        });
        let mut core = self.lock();
        core.hub.tell_all(&event);
        core.hub.count_error(to.client, to.now);
        true
    }
}
