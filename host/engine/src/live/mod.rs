//! The venues of a live engine, and which commands are whose (specification 2, "Endpoints";
//! specification 4, P15, P23b, P51, P58).

mod feed;
mod local_broker;
mod recording;
mod web_broker;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use domain::{ReasonCode, Rejection};
use ipc::{
    Command, Dialect, EngineMode, Event, OrderContext, OrderRejected, Text, VenueCapabilities,
    error_code,
};
use sandbox::{Sandbox, SandboxConfig, SandboxError};

use crate::hub::ClientId;
use crate::session::{Refusing, Shared};
use crate::startup::{EngineConfig, StartError};

use local_broker::Gateway;
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

    /// Hands a command over; gives it up where the venue is too busy or has ended.
    fn command(self, client: ClientId, command: Command) -> Result<(), ()> {
        match self {
            Self::WebBroker(desk) => desk.command(client, command),
            Self::LocalBroker(gateway) => gateway.command(client, command),
        }
    }
}

impl Venues {
    fn all(&self) -> impl Iterator<Item = Venue<'_>> {
        let web_broker = self.web_broker.get().map(Venue::WebBroker);
        let local_broker = self.local_broker.get().map(Venue::LocalBroker);
        web_broker.into_iter().chain(local_broker)
    }

    /// What each of them can do.
    pub(crate) fn capabilities(&self) -> BTreeMap<String, VenueCapabilities> {
        self.all().map(|venue| (venue.name().to_owned(), venue.capabilities())).collect()
    }

    /// The dialect that each of them is spoken to in.
    pub(crate) fn dialects(&self) -> BTreeMap<String, Dialect> {
        self.all().map(|venue| (venue.name().to_owned(), venue.dialect())).collect()
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

    /// Ends all of them, at the same time, and waits for that.
    pub(crate) fn stop(&self) {
        std::thread::scope(|threads| {
            for venue in self.all() {
                threads.spawn(move || match venue {
                    Venue::WebBroker(desk) => desk.stop(),
                    Venue::LocalBroker(gateway) => gateway.stop(),
                });
            }
        });
    }
}

/// Starts the venues that a live engine is told of.
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
        return Err(failed("there is no such file".to_owned()));
    }
    let config =
        SandboxConfig { cache_folder: Some(cache.join("components")), ..SandboxConfig::default() };
    let loaded = Sandbox::new(config).and_then(|sandbox| load(&sandbox, path));
    let why = |error| domain::text::on_one_line(&domain::text::with_causes(&error)).into_owned();
    loaded.map_err(|error| failed(why(error).chars().take(WHY_CHARS).collect()))
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
    /// Hands venues a command that is theirs, and gives every other one back.
    pub(crate) fn take_for_venue(&self, to: &Refusing<'_>, command: Command) -> Option<Command> {
        let desk = self.live.web_broker.get().map(Venue::WebBroker);
        let gateway = self.live.local_broker.get().map(Venue::LocalBroker);
        if let Command::GetVenueState(state) = &command
            && state.venue.is_none()
        {
            let mut asked = false;
            for venue in self.live.all() {
                asked = true;
                self.hand_over(to, venue, command.clone());
            }
            return (!asked).then_some(command);
        }
        let venue = match &command {
            Command::SetSecondPassword(_) | Command::ForgetSecondPassword(_) => desk,
            other => match other.venue() {
                Some(WEB_BROKER) => desk,
                Some(LOCAL_BROKER) => gateway,
                _ => None,
            },
        };
        let Some(venue) = venue else { return Some(command) };
        self.hand_over(to, venue, command);
        None
    }

    /// Hands a venue a command, or tells its sender why not.
    fn hand_over(&self, to: &Refusing<'_>, venue: Venue<'_>, command: Command) {
        match venue {
            Venue::WebBroker(_) if is_for_market_data(&command) => {
                let why = "web_broker takes orders; market data are at local_broker";
                return self.lock().error(to, error_code::VENUE_NOT_AVAILABLE, why);
            }
            // No way leads from here to an endpoint for orders (specification 4, P58).
            Venue::LocalBroker(_) if local_broker::is_order(&command) => {
                return self.reject(to, &command, &local_broker::rejection(&command));
            }
            _ => {}
        }
        if venue.command(to.client, command).is_err() {
            let name = venue.name();
            let why = format!("too many commands wait for {name}; wait for their answers");
            self.lock().busy(to, &why);
        }
    }

    /// Refuses a command about orders at a venue that nobody knows (specification 4, P23b). Tells
    /// whether it was one.
    pub(crate) fn refuse_unknown_venue(&self, to: &Refusing<'_>, command: &Command) -> bool {
        let (true, Some(_), Some(venue)) =
            (self.config.mode == EngineMode::Live, order_id(command), to.venue)
        else {
            return false;
        };
        let text = format!("VENUE: `{venue}` is none of {WEB_BROKER}, {LOCAL_BROKER}");
        self.reject(to, command, &Rejection::new(ReasonCode::ValidationError, text));
        true
    }

    /// Rejects a command about orders, and counts that as an error of its sender.
    fn reject(&self, to: &Refusing<'_>, command: &Command, rejection: &Rejection) {
        let id = order_id(command).flatten();
        let event = Event::OrderRejected(OrderRejected {
            client_order_id: id.map(Text::Borrowed),
            reason_code: rejection.code,
            reason_text: Text::Borrowed(&rejection.text),
            ts_event_ms: domain::clock::wall_now().millis(),
            context: OrderContext {
                request_id: to.request_id.map(Text::Borrowed),
                // One that nobody knows is a text of the client's.
                venue: to.venue.filter(|venue| *venue == LOCAL_BROKER).map(Text::Borrowed),
                ..OrderContext::default()
            },
        });
        let mut core = self.lock();
        core.hub.tell_all(&event);
        core.hub.count_error(to.client, to.now);
    }
}
