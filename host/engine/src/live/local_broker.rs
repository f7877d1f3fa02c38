//! The venue of the local broker's gateway: market data and an account that is read. No order goes there
//! (specification 1, "What the service does"; specification 4, P43 to P60).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use domain::gateway_mapping::GatewayMapping;
use domain::{ReasonCode, Rejection};
use ipc::{Dialect, OrderListFilter, VenueCapabilities};
use keys::dialog::Dialog;
use live::notify::NoticeKind;
use venues::local_broker::config::Endpoint;
use venues::local_broker::{
    Command, ConfigError, ErrorCode, LocalBrokerConfig, Output, REGISTER_MAX, STRATEGY, Service,
    ServiceError, Setup, VenueEvent,
};
use venues::{OrderQuery, Recipient, RequestContext};

use super::feed::{self, Feed};
use super::load_dialect;
use super::recording::Recording;
use crate::command::{AccountCommand, MarketCommand, OrderInstruction};
use crate::credentials;
use crate::hub::ClientId;
use crate::session::{CommandContext, Shared};
use crate::startup::StartError;

/// The venue's name on the wire.
pub(crate) const VENUE: &str = venues::local_broker::VENUE;
/// The dialects that are built in.
const DIALECTS: [&str; 2] = ["local-broker-spec", "local-broker-kabusapi"];

/// What the local broker's venue is started with.
#[derive(Debug, Clone)]
pub struct LocalBroker {
    /// Where the gateway is and how it is spoken to.
    pub config: LocalBrokerConfig,
    /// The file of the dialect.
    pub dialect: PathBuf,
    /// Whether the password of development counts.
    pub dev_login_allowed: bool,
    /// Whether a password may be typed in the terminal of this process.
    pub asks_in_terminal: bool,
    /// The folder where boards are recorded; `None`: they are not.
    pub record: Option<PathBuf>,
}

/// A venue that runs.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// None once the engine ends.
    service: Mutex<Option<Service>>,
    dialog: Dialog,
    dialect: Dialect,
    is_production: bool,
}

impl Gateway {
    /// The dialect that the gateway is spoken to in.
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect.clone()
    }

    /// What the venue can do (specification 1, "Capabilities entry").
    pub(super) fn capabilities(&self) -> VenueCapabilities {
        VenueCapabilities {
            requires_local_app: true,
            max_push_symbols: u32::try_from(REGISTER_MAX).unwrap_or(u32::MAX),
            supports_amend: false,
            requires_trade_password_for_cancel: true,
            is_production: self.is_production,
        }
    }

    /// Hands a command over; fails where the venue is too busy or has ended.
    pub(super) fn command(&self, to: &CommandContext<'_>, command: Command) -> Result<(), ()> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = service.as_ref().map(|service| service.command(to.venue_request(), command));
        taken.and_then(Result::ok).ok_or(())
    }

    /// Hands over a command of the live strategy; fails as [`Self::command`].
    pub(super) fn strategy_command(&self, to: RequestContext, command: Command) -> Result<(), ()> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        service.as_ref().and_then(|service| service.command(to, command).ok()).ok_or(())
    }

    /// A client is gone.
    pub(super) fn client_left(&self, client: ClientId) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = service.as_ref() {
            service.client_left(client.number());
        }
    }

    /// Ends the venue: the dialog is closed, and what it has registered is unregistered.
    pub(super) fn stop(&self) {
        self.dialog.close();
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(service) = service {
            service.stop();
        }
    }

    /// Checks where the gateway may be, before anything else of the engine is under way: the real market needs two
    /// variables together (specification 4, P44).
    pub(super) fn check(local_broker: &LocalBroker) -> Result<(), StartError> {
        Endpoint::of(&local_broker.config).map(drop).map_err(not_there)
    }

    /// Starts the venue. Its output goes to the clients of `shared`.
    pub(super) fn start(
        shared: &Arc<Shared>,
        local_broker: &LocalBroker,
    ) -> Result<Self, StartError> {
        let cache = &shared.config.cache_dir;
        let loaded =
            load_dialect((VENUE, &DIALECTS), &local_broker.dialect, cache, |sandbox, path| {
                sandbox.load_gateway_dialect(path)?.instantiate()
            });
        let dialog = Dialog::from_environment(local_broker.asks_in_terminal);
        let password = (dialog, local_broker.dev_login_allowed);
        let config = local_broker.config.clone();
        Self::of_parts(shared, config, Box::new(loaded?), password, local_broker.record.as_deref())
    }

    fn of_parts(
        shared: &Arc<Shared>,
        config: LocalBrokerConfig,
        mapping: Box<dyn GatewayMapping>,
        (dialog, dev_login_allowed): (Dialog, bool),
        record: Option<&Path>,
    ) -> Result<Self, StartError> {
        let identity = mapping.identity();
        let dialect = Dialect { name: identity.component, sha256: identity.sha256 };
        let password_dialog = dialog.clone();
        let place = Endpoint::of(&config).map_err(not_there)?.authority();
        // Both are the same gateway.
        let place = place.replace("localhost:", "127.0.0.1:");
        let file = format!(
            "local-broker/registered-{}.json",
            place.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-")
        );
        let setup = Setup {
            config,
            registration_file: Some(shared.config.cache_dir.join(file)),
            mapping,
            ask_password: Box::new(move || {
                credentials::gateway_password(dev_login_allowed, &password_dialog)
            }),
        };
        let clients = Arc::downgrade(shared);
        let recording = record.map(|folder| Recording::start(folder, Arc::downgrade(shared)));
        // What it has taken is on the disk when the venue's thread has ended.
        let recording = recording.transpose()?;
        let mut feed = Feed::default();
        let service = Service::start(setup, move |output| {
            if let (Output::Market(update), Some(recording)) = (&output, &recording) {
                recording.record(update);
            }
            let Some(shared) = clients.upgrade() else { return };
            match output {
                Output::Event(Recipient::Client(STRATEGY), event) => {
                    shared.live.strategy.answer(event);
                }
                Output::Event(to, event) => {
                    if let VenueEvent::Unusable { code, message } = event
                        && matches!(code, ErrorCode::TokenExpired | ErrorCode::LoginFailed)
                    {
                        shared.notice(NoticeKind::LoginNeeded, &format!("{VENUE}: {message}"));
                    }
                    feed::send(&mut shared.lock(), to, event);
                }
                Output::Market(update) => {
                    shared.live.strategy.update(update);
                    feed.market(&shared, update);
                }
                Output::MarketPause => shared.lock().hub.wake_writers(),
                Output::Streaming(is_streaming) => {
                    if shared.live.strategy.streaming(is_streaming) {
                        shared.market_data_lost();
                    }
                }
                Output::Tick => feed.tick(&shared),
            }
        });
        let service = service.map_err(|error| match error {
            ServiceError::Config(wrong) => not_there(wrong),
            other => StartError::Gateway(domain::text::with_causes(&other)),
        })?;
        let is_production = service.is_production();
        tracing::info!(is_production, "market data come from the local broker's gateway");
        Ok(Self { service: Mutex::new(Some(service)), dialog, dialect, is_production })
    }
}

#[cfg(test)]
impl Gateway {
    /// A venue with this dialect, without a dialog for the password.
    pub(super) fn of_mapping(
        shared: &Arc<Shared>,
        config: LocalBrokerConfig,
        mapping: Box<dyn GatewayMapping>,
        record: Option<&Path>,
    ) -> Result<Self, StartError> {
        let closed = Dialog::from_environment(false);
        closed.close();
        Self::of_parts(shared, config, mapping, (closed, false), record)
    }
}

fn not_there(error: ConfigError) -> StartError {
    match error {
        ConfigError::ProductionNotAllowed | ConfigError::ProductionPort => {
            StartError::Production(error.to_string())
        }
        ConfigError::Address(_) => StartError::Gateway(error.to_string()),
    }
}

pub(super) fn market_command(command: MarketCommand) -> Command {
    match command {
        MarketCommand::Subscribe(ticker) => Command::Subscribe(ticker),
        MarketCommand::Unsubscribe(ticker) => Command::Unsubscribe(ticker),
        MarketCommand::ReadBoard(ticker) => Command::ReadBoard(ticker),
        MarketCommand::EvictLru => Command::EvictLru,
    }
}

pub(super) fn account_command(command: AccountCommand) -> Command {
    match command {
        AccountCommand::OrderList(OrderListFilter { status, instrument_id, date }) => {
            Command::ListOrders(OrderQuery { status, instrument_id, date })
        }
        AccountCommand::BuyingPower => Command::ReadBuyingPower,
        AccountCommand::Positions => Command::ListPositions,
        AccountCommand::Login => Command::Login,
        AccountCommand::VenueState => Command::ReadState,
    }
}

/// Why the venue does not take an order: what is no stock first (specification 4, P58).
pub(super) fn rejection(order: &OrderInstruction) -> Rejection {
    order.instrument_id().and_then(crate::orders::no_stock).unwrap_or_else(|| {
        let text = format!(
            "PHASE_1: {VENUE} takes no orders in this version; it gives market data and shows the \
             account"
        );
        Rejection::new(ReasonCode::VenueUnsupported, text)
    })
}
