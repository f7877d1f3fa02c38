//! The order desk of the web broker (specification 2, "Endpoints"; specification 4, P1, P3).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use domain::InstrumentIx;
use ipc::{Dialect, VenueCapabilities};
use live::notify::NoticeKind;
use orders::event::{DeskEvent, Reply, SessionEvent};
use orders::{AuditError, DeskCommand, DeskRules, InstrumentTable, Service, ServiceError, Setup};
use venues::web_broker::{Masters, WebBrokerConfig};

use super::load_dialect;
use crate::credentials;
use crate::hub::ClientId;
use crate::session::{CommandContext, Shared};
use crate::startup::StartError;

/// The venue's name on the wire.
pub(crate) const VENUE: &str = orders::desk::VENUE;
/// The dialects that are built in: that of this machine first, the vendor's newest last.
const DIALECTS: [&str; 3] = ["web-broker-spec", "web-broker-v4r8", "web-broker-v4r10"];

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

/// What a person has to know of an event.
fn notice_of(event: &DeskEvent) -> Option<(NoticeKind, &str)> {
    match event {
        DeskEvent::Session(SessionEvent::Fault { message, .. }) => {
            Some((NoticeKind::LoginNeeded, message))
        }
        DeskEvent::Reply(Reply::SecondPasswordRequired { .. }) => {
            Some((NoticeKind::PasswordNeeded, "it wants the second password"))
        }
        _ => None,
    }
}

/// A desk that runs.
#[derive(Debug)]
pub(crate) struct OrderDesk {
    /// None once the engine ends.
    service: Mutex<Option<Service>>,
    dialect: Dialect,
    capabilities: VenueCapabilities,
    simulator: Option<String>,
}

impl OrderDesk {
    /// The dialect that the broker is spoken to in.
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect.clone()
    }

    /// What the venue can do.
    pub(super) const fn capabilities(&self) -> VenueCapabilities {
        self.capabilities
    }

    /// The address of the simulator in the broker's place, if orders go to one.
    pub(super) fn simulator(&self) -> Option<&str> {
        self.simulator.as_deref()
    }

    /// Hands a command over; fails where the desk is too busy or has ended.
    pub(super) fn command(
        &self,
        to: &CommandContext<'_>,
        command: impl FnOnce(&InstrumentTable) -> DeskCommand,
    ) -> Result<(), ()> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        let service = service.as_ref().ok_or(())?;
        service.command(to.venue_request(), command(service.instruments())).map_err(|_| ())
    }

    /// Hands over a command of the strategy's run; fails where the desk is too busy or has ended.
    pub(super) fn strategy_command(
        &self,
        to: venues::RequestContext,
        command: DeskCommand,
    ) -> Result<(), ()> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        service.as_ref().ok_or(())?.command(to, command).map_err(|_| ())
    }

    /// The places of instruments in the desk's table; those that have none are left out.
    pub(super) fn places(&self, names: Vec<String>) -> BTreeMap<String, InstrumentIx> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(service) = service.as_ref() else { return BTreeMap::new() };
        let place = |name: String| Some((name.clone(), service.instruments().place(&name)?));
        names.into_iter().filter_map(place).collect()
    }

    /// What the broker says of its issues; none before the first login.
    pub(super) fn masters(&self) -> Option<Arc<Masters>> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        service.as_ref()?.masters()
    }

    /// Whether the desk has ended with the engine.
    pub(super) fn has_ended(&self) -> bool {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// A client is gone.
    pub(super) fn client_left(&self, client: ClientId) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = service.as_ref() {
            service.client_left(client.number());
        }
    }

    /// Ends the desk, after the answer that is on its way. Waits for that.
    pub(super) fn stop(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(service) = service {
            service.stop();
        }
    }

    /// Starts the desk, which restores what its log says. Its events go to the clients of `shared`.
    pub(super) fn start(shared: &Arc<Shared>, web_broker: &WebBroker) -> Result<Self, StartError> {
        let cache = &shared.config.cache_dir;
        let loaded =
            load_dialect((VENUE, &DIALECTS), &web_broker.dialect, cache, |sandbox, path| {
                sandbox.load_dialect(path)?.instantiate()
            });
        let mapping: Box<dyn domain::order_mapping::OrderMapping> = Box::new(loaded?);
        let identity = mapping.identity();
        let dialect = Dialect { name: identity.component, sha256: identity.sha256 };
        let dev_login_allowed = web_broker.dev_login_allowed;
        let setup = Setup {
            broker: web_broker.broker.clone(),
            rules: web_broker.rules,
            mapping,
            config_dir: shared.config.config_dir.clone(),
            credentials: Box::new(move |kind| credentials::find(dev_login_allowed, kind)),
        };
        let clients = Arc::downgrade(shared);
        let service = Service::start(setup, move |to, event| {
            if let Some(shared) = clients.upgrade() {
                if let Some((kind, why)) = notice_of(event) {
                    shared.notice(kind, &format!("{VENUE}: {why}"));
                }
                shared.desk_event(to, event);
            }
        });
        let service = service.map_err(|error| match error {
            ServiceError::Audit(AuditError::Locked(path)) => StartError::LogLocked(path),
            other @ ServiceError::OtherHost { .. } => StartError::DialectHost(other.to_string()),
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
        let simulator = service.simulator().map(str::to_owned);
        Ok(Self { service: Mutex::new(Some(service)), dialect, capabilities, simulator })
    }
}
