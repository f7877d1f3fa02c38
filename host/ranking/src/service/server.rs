//! Sockets: accept, serve, and end when told to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use pricestore::DataDir;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutWriter;
use tracing::Instrument;

use super::backend::Backend;
use super::context::QueryContext;
use super::files::{self, Files};
use super::graphql::Endpoint;
use super::host_check::HostCheck;
use super::http::{self, AppState};
use super::limits::{STACK_BYTES, ServiceLimits};
use super::metrics::GaugeGuard;
use super::token::BearerToken;
use crate::FormulaRegistry;
use crate::replica::ReplicaStatus;

/// Most bytes of a request's headers.
const HEADER_BYTES_MAX: usize = 32 * 1024;
/// Most headers of a request.
const HEADERS_MAX: usize = 64;
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
    pub formulas: Option<Arc<FormulaRegistry>>,
    /// Names of hosts by which clients may call the service, beside addresses and `localhost`. With
    /// none, a service that only this machine reaches has no others, and any other service has all.
    pub hosts: Vec<String>,
    /// Whether GET /graphql shows a page for trying queries.
    pub graphiql: bool,
    /// What is known of the server that this one copies; none for one that copies nobody.
    pub replica: Option<ReplicaStatus>,
    /// Where the stored files are that GET /jp/ hands out; none does without.
    pub files: Option<DataDir>,
    /// Business days that may be over after the last one of the data before `/health` says `behind`.
    pub behind_days: usize,
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
    /// Accepts no more; what runs may end within [`ServiceLimits::shutdown_timeout`].
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// A service that listens already, and answers once it runs.
pub struct Service {
    listener: std::net::TcpListener,
    address: SocketAddr,
    state: Arc<AppState>,
    stop: ServiceStop,
}

impl Service {
    /// Listens on an address; port 0 lets the system choose one.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn bind(
        address: SocketAddr,
        backend: Arc<dyn Backend>,
        options: ServiceOptions,
    ) -> Result<Self, ServiceError> {
        let listen = || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) =
            listen().map_err(|error| ServiceError::Listen { address, error })?;
        let context = Arc::new(QueryContext::new(backend, options.formulas, options.limits));
        let state = AppState {
            files: options
                .files
                .map(|data| Files::new(&data, Arc::clone(&context), options.replica.clone())),
            replica: options.replica,
            behind_days: options.behind_days,
            endpoint: Endpoint::new(context),
            token: options.token,
            hosts: HostCheck::new(address, &options.hosts),
            origins: options.origins,
            graphiql: options.graphiql,
        };
        let stop = ServiceStop(Arc::new(watch::Sender::new(false)));
        Ok(Self { listener, address, state: Arc::new(state), stop })
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
        let limits = self.state.endpoint.context.limits.clone();
        // Each answer, large or small, has a thread for each of its rankings, and one to write it.
        let answers = limits.concurrent_answers.saturating_mul(2);
        let blocking = answers.saturating_mul(limits.aliases.max(1) + 1).max(2);
        let blocking = blocking.saturating_add(files::READING_THREADS);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(SOCKET_THREADS)
            .max_blocking_threads(blocking)
            .thread_stack_size(STACK_BYTES)
            .thread_name("ranking-service")
            .enable_all()
            .build()?;
        let span = tracing::info_span!("ranking_service", address = %self.address);
        let served = runtime.block_on(self.serve(&limits).instrument(span));
        // Queries that still run were cancelled with their requests.
        runtime.shutdown_timeout(limits.shutdown_timeout);
        served
    }

    async fn serve(self, limits: &ServiceLimits) -> Result<(), ServiceError> {
        let listener = TcpListener::from_std(self.listener)?;
        let permits = Arc::new(Semaphore::new(limits.connections.clamp(1, Semaphore::MAX_PERMITS)));
        let router = http::router(Arc::clone(&self.state));
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(limits.receive_timeout)
            .max_buf_size(HEADER_BYTES_MAX)
            .max_headers(HEADERS_MAX);
        let graceful = GracefulShutdown::new();
        let mut stopped = self.stop.0.subscribe();
        loop {
            let accepted = tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => break,
                accepted = accept(&listener, &permits) => accepted,
            };
            let Some((socket, client, permit)) = accepted else { continue };
            let service = TowerToHyperService::new(router.clone());
            // An answer must not stay in memory for as long as a client that takes nothing likes.
            let mut socket = TimeoutWriter::new(socket);
            socket.set_timeout(Some(limits.write_timeout));
            let connection = protocol.serve_connection(TokioIo::new(Box::pin(socket)), service);
            let connection = graceful.watch(connection);
            let state = Arc::clone(&self.state);
            let served = async move {
                let metrics = &state.endpoint.context.metrics;
                let _open = GaugeGuard::new(&metrics.connections);
                // A client that breaks off is no failure of the service.
                if let Err(error) = connection.await
                    && is_late(&error)
                {
                    metrics.slow.inc();
                }
                drop(permit);
            };
            let span = tracing::info_span!("connection", %client);
            tokio::spawn(served.instrument(span));
        }
        drop(listener);
        if tokio::time::timeout(limits.shutdown_timeout, graceful.shutdown()).await.is_err() {
            tracing::warn!("some requests did not end in time and were dropped");
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

type Accepted = (tokio::net::TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit);

/// The next connection, once there is a permit for it.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> Option<Accepted> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((socket, client)) => {
            // An answer is one write; waiting to join it with another only delays it.
            let _ = socket.set_nodelay(true);
            Some((socket, client, permit))
        }
        Err(error) => {
            tracing::debug!(cause = %error, "a connection was not accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
