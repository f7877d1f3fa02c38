//! Pages in the browser: they are opened, are clients with a key of their own, may do less than other clients, and ask
//! for what their forms show.
//!
//! | module | what it does |
//! |---|---|
//! | `forms` | data, strategies, parameters, trading units, what was traded, runs |

mod forms;

use std::io::ErrorKind;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use domain::clock::wall_now;
use ipc::{ConsoleOpened, ConsoleScope, Event, ReportOpened, error_code};
use web_console::{CODE_TIME, Console, Place, Scope, SessionKey, Sessions};

use crate::command::{ClientCommand, ConsoleCommand, SessionCommand, VenueCommand};
use crate::outbox::Closing;
use crate::session::{CommandContext, Shared};

/// The engine's pages.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) sessions: Arc<Sessions>,
    /// There once a page was opened.
    console: Mutex<Option<Console>>,
    /// The port of the engine's WebSocket, once it listens.
    pub(crate) ipc_port: OnceLock<u16>,
}

/// A client that is a page.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) session_id: String,
    pub(crate) scope: ConsoleScope,
}

impl From<SessionKey> for Page {
    fn from(session: SessionKey) -> Self {
        let scope = match session.scope {
            Scope::Full => ConsoleScope::Full,
            Scope::ReadOnly => ConsoleScope::ReadOnly,
        };
        Self { session_id: session.session_id, scope }
    }
}

impl Page {
    /// Whether the page may send a command.
    pub(crate) const fn may_send(&self, command: &ClientCommand) -> bool {
        use SessionCommand as Session;
        match command {
            ClientCommand::Session(Session::Shutdown)
            | ClientCommand::Console(ConsoleCommand::Open { .. }) => false,
            _ if matches!(self.scope, ConsoleScope::Full) => true,
            ClientCommand::Session(command) => {
                matches!(command, Session::Hello | Session::Ping | Session::GetSession)
            }
            ClientCommand::Venue(command) => match command {
                VenueCommand::Order(_) => false,
                VenueCommand::Account(command) => command.reads(),
                VenueCommand::Market(command) => command.looks(),
            },
            ClientCommand::Password(_) => false,
            ClientCommand::Strategies(command) => command.reads(),
            ClientCommand::Console(command) => !matches!(command, ConsoleCommand::SignOut),
        }
    }
}

impl Pages {
    /// The origin of the pages, once there are any.
    pub(crate) fn origin(&self) -> Option<String> {
        let console = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        console.as_ref().map(|console| console.origin().to_owned())
    }
}

impl Shared {
    /// Answers a command about pages, or one that pages send for their forms.
    pub(crate) fn console_command(
        self: &Arc<Self>,
        to: &CommandContext<'_>,
        command: ConsoleCommand,
    ) {
        match command {
            ConsoleCommand::Open { read_only } => self.open_console(to, read_only),
            ConsoleCommand::SignOut => self.sign_out(to),
            ConsoleCommand::Report(run_id) => self.open_report(to, &run_id),
            ConsoleCommand::Instrument { venue, instrument_id } => {
                self.instrument(to, &venue, &instrument_id);
            }
            ConsoleCommand::History(asked) => self.history(to, asked),
            ConsoleCommand::Catalog => self.in_background(to, Self::catalog),
            ConsoleCommand::Strategies => self.in_background(to, Self::strategies),
            ConsoleCommand::Parameters(file) => {
                self.in_background(to, move |shared, id| shared.parameters_of(id, &file));
            }
            ConsoleCommand::Runs => self.in_background(to, Self::runs),
        }
    }

    /// The console, which listens from its first use on.
    fn console(&self, to: &CommandContext<'_>) -> Option<Console> {
        let mut console = self.pages.console.lock().unwrap_or_else(PoisonError::into_inner);
        if console.is_none() {
            let port = self.config.console_port;
            let ipc_port = self.pages.ipc_port.get().copied().unwrap_or_default();
            let place = Place { ipc_port, mode: self.config.mode.as_str() };
            match Console::bind(port, place, Arc::clone(&self.pages.sessions)) {
                Ok((new, listener)) => {
                    tracing::info!(origin = new.origin(), "the console listens");
                    tokio::spawn(new.clone().serve(listener, self.shutdown.clone()));
                    *console = Some(new);
                }
                Err(error) => {
                    drop(console);
                    let what = match error.kind() {
                        ErrorKind::AddrInUse => "is taken by another program".to_owned(),
                        _ => format!("cannot be used ({error})"),
                    };
                    let text = format!(
                        "the console's port {port} {what}; start the engine with --console-port PORT, 0 for any"
                    );
                    self.lock().error(to, error_code::CONSOLE_PORT_IN_USE, &text);
                    return None;
                }
            }
        }
        console.clone()
    }

    fn open_console(&self, to: &CommandContext<'_>, read_only: bool) {
        let Some(console) = self.console(to) else { return };
        let scope = if read_only { Scope::ReadOnly } else { Scope::Full };
        let life = u64::try_from(CODE_TIME.as_millis()).unwrap_or(u64::MAX);
        let opened = Event::ConsoleOpened(ConsoleOpened {
            request_id: to.request_id.unwrap_or_default().into(),
            url: console.page_url(scope).into(),
            expires_ms: wall_now().millis() + life,
        });
        self.lock().hub.send(to.client, &opened);
    }

    fn open_report(&self, to: &CommandContext<'_>, run_id: &str) {
        let Some(report) = forms::report_of(&self.config, run_id) else {
            let text = format!("RUN_ID: run `{run_id}` has no report here; see GetRuns");
            return self.lock().error(to, error_code::VALIDATION_ERROR, &text);
        };
        let Some(console) = self.console(to) else { return };
        let opened = Event::ReportOpened(ReportOpened {
            request_id: to.request_id.unwrap_or_default().into(),
            run_id: run_id.into(),
            url: console.report_url(report).into(),
        });
        self.lock().hub.send(to.client, &opened);
    }

    fn sign_out(&self, to: &CommandContext<'_>) {
        let mut core = self.lock();
        let Some(page) = core.hub.page(to.client) else {
            let text = "only a page in the browser signs out";
            return core.error(to, error_code::VALIDATION_ERROR, text);
        };
        let session_id = page.session_id.clone();
        self.pages.sessions.sign_out(&session_id);
        core.hub.close_session(&session_id, &|| Closing {
            code: 1008,
            reason: "signed_out".to_owned(),
            at_once: false,
        });
    }

    /// Answers on a thread of its own: it reads files, or runs a guest.
    fn in_background(
        self: &Arc<Self>,
        to: &CommandContext<'_>,
        answer: impl FnOnce(&Self, &str) -> Result<Event<'static>, crate::load::Refusal>
        + Send
        + 'static,
    ) {
        let Ok(place) = Arc::clone(&self.form_places).try_acquire_owned() else {
            return self
                .lock()
                .busy(to, "too many questions of this kind are under way; ask again");
        };
        let (shared, request, op) = (Arc::clone(self), to.request(), to.op);
        tokio::task::spawn_blocking(move || {
            let answered = answer(&shared, &request.request_id);
            // An answer may be large: it is written before the lock is taken.
            let answered = answered.map(|event| crate::hub::text(&event));
            drop(place);
            let mut core = shared.lock();
            match answered {
                Ok(text) => core.hub.send_text(request.client, text),
                Err((code, text)) => {
                    let to = request.command_context(op, shared.started.elapsed());
                    core.error(&to, code, &text);
                }
            }
        });
    }
}

/// The answer to a command that a page may not send.
pub(crate) fn forbidden(request_id: Option<&str>) -> Event<'_> {
    Event::Error(ipc::Error {
        request_id: request_id.map(Into::into),
        code: error_code::FORBIDDEN.into(),
        message: "this page may not ask that; open another one with `kumiki console`".into(),
        venue_order_id: None,
    })
}

/// The connection of a page, as its session counts it.
#[derive(Debug)]
pub(crate) struct PageConnection {
    sessions: Arc<Sessions>,
    session_id: String,
}

impl PageConnection {
    /// A connection has begun; none where its session has ended meanwhile.
    pub(crate) fn begin(sessions: &Arc<Sessions>, page: &Page) -> Option<Self> {
        let session_id = page.session_id.clone();
        sessions.connected(&session_id).then(|| Self { sessions: Arc::clone(sessions), session_id })
    }
}

impl Drop for PageConnection {
    fn drop(&mut self) {
        self.sessions.disconnected(&self.session_id);
    }
}
