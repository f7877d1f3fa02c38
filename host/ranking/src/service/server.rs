//! Sockets: accept, serve, and end when told to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use pricestore::DataDir;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::Backend;
use super::files::{self, Files};
use super::graphql::Endpoint;
use super::http::{self, Site};
use super::limits::ServiceLimits;
use super::metrics::{Metrics, Up};
use super::patience::Patient;
use super::resolve::{Desk, Log};
use super::token::BearerToken;
use crate::FormulaShelf;

/// Most bytes of a request's headers.
const HEADER_BYTES: usize = 32 * 1024;
/// Most headers of a request.
const HEADERS: usize = 64;
/// Threads that read and write sockets. The work itself has threads of its own.
const SOCKET_THREADS: usize = 2;
/// Pause after the system refuses a new connection, until there is room again.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// How the service runs.
#[derive(Debug, Clone, Default)]
pub struct ServiceOptions {
    /// What requests may hold and cost.
    pub limits: ServiceLimits,
    /// Who may ask; everybody when there is none.
    pub token: Option<BearerToken>,
    /// Origins whose pages may ask (CORS); none by default.
    pub origins: Vec<String>,
    /// Formula modules that clients may rank by; none by default.
    pub formulas: Option<Arc<FormulaShelf>>,
    /// Whether GET /graphql shows a page for trying queries.
    pub graphiql: bool,
    /// Where the stored files are that GET /jp/ hands out; none does without.
    pub files: Option<DataDir>,
}

/// Why the service cannot start or had to end.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The address cannot be used.
    #[error("cannot listen on {address}: {error}; choose another with --listen ADDR:PORT")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The system has no threads or sockets left.
    #[error("the service cannot run: {0}")]
    Run(#[from] io::Error),
}

/// Ends a service from any thread.
#[derive(Debug, Clone)]
pub struct ServiceStop(Arc<watch::Sender<bool>>);

impl ServiceStop {
    /// Accepts no more; what runs may end within [`ServiceLimits::shutdown_time`].
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// A service that listens already, and answers once it runs.
pub struct Service {
    listener: std::net::TcpListener,
    address: SocketAddr,
    site: Arc<Site>,
    stop: ServiceStop,
}

impl Service {
    /// Listens on an address; port 0 lets the system choose one. `log` gets what clients are not
    /// told.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn bind(
        address: SocketAddr,
        backend: Arc<dyn Backend>,
        options: ServiceOptions,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, ServiceError> {
        let listen = || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) =
            listen().map_err(|error| ServiceError::Listen { address, error })?;
        let log: Log = Arc::new(log);
        let desk = Arc::new(Desk {
            backend,
            formulas: options.formulas,
            limits: options.limits,
            metrics: Metrics::default(),
            log,
        });
        let site = Site {
            files: options.files.map(|data| Files::new(&data, Arc::clone(&desk))),
            endpoint: Endpoint::new(desk),
            token: options.token,
            origins: options.origins,
            graphiql: options.graphiql,
        };
        let stop = ServiceStop(Arc::new(watch::Sender::new(false)));
        Ok(Self { listener, address, site: Arc::new(site), stop })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Something to end it with.
    #[must_use]
    pub fn stop(&self) -> ServiceStop {
        self.stop.clone()
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// When the system has no threads left.
    pub fn run(self) -> Result<(), ServiceError> {
        let limits = self.site.endpoint.desk.limits.clone();
        // Each answer has a thread for each of its rankings, and one to write it.
        let blocking = limits.concurrent_answers.saturating_mul(limits.aliases.max(1) + 1).max(2);
        let blocking = blocking.saturating_add(files::READING_THREADS);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(SOCKET_THREADS)
            .max_blocking_threads(blocking)
            .thread_name("ranking-service")
            .enable_all()
            .build()?;
        let served = runtime.block_on(self.serve(&limits));
        // Queries that still run were cancelled with their requests.
        runtime.shutdown_timeout(limits.shutdown_time);
        served
    }

    async fn serve(self, limits: &ServiceLimits) -> Result<(), ServiceError> {
        let listener = TcpListener::from_std(self.listener)?;
        let room = Arc::new(Semaphore::new(limits.connections.clamp(1, Semaphore::MAX_PERMITS)));
        let router = http::router(Arc::clone(&self.site));
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(limits.receive_time)
            .max_buf_size(HEADER_BYTES)
            .max_headers(HEADERS);
        let graceful = GracefulShutdown::new();
        let mut stopped = self.stop.0.subscribe();
        loop {
            let accepted = tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => break,
                accepted = accept(&listener, &room) => accepted,
            };
            let Some((socket, place)) = accepted else { continue };
            let service = TowerToHyperService::new(router.clone());
            let socket = TokioIo::new(Patient::new(socket, limits.send_time));
            let connection = protocol.serve_connection(socket, service);
            let connection = graceful.watch(connection);
            let site = Arc::clone(&self.site);
            tokio::spawn(async move {
                let metrics = &site.endpoint.desk.metrics;
                let _open = Up::new(&metrics.connections);
                // A client that breaks off is no failure of the service.
                if let Err(error) = connection.await
                    && is_late(&error)
                {
                    metrics.slow.fetch_add(1, Ordering::Relaxed);
                }
                drop(place);
            });
        }
        drop(listener);
        if tokio::time::timeout(limits.shutdown_time, graceful.shutdown()).await.is_err() {
            (self.site.endpoint.desk.log)("some requests did not end in time and were dropped");
        }
        Ok(())
    }
}

/// Whether a connection ended because its client was too slow.
fn is_late(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut failures = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    failures.any(|failure| failure.kind() == io::ErrorKind::TimedOut)
}

type Accepted = (tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit);

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> Option<Accepted> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((socket, _)) => {
            // An answer is one write; waiting to join it with another only delays it.
            let _ = socket.set_nodelay(true);
            Some((socket, place))
        }
        Err(_) => {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
