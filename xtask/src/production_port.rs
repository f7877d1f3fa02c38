//! No test may reach a real gateway (specification 1, "What the service does"): while tests run, the port of
//! the production environment is ours, and whoever connects to it fails the run.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The port of the real market.
const PORT: u16 = 18_080;
/// How long a look for a connection may be late.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Holds the port.
pub(crate) struct Guard {
    ended: Arc<AtomicBool>,
    connections: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Guard {
    /// Takes the port on every address of this machine that a gateway may have.
    ///
    /// # Errors
    /// Somebody has it: that may be a real gateway, beside which no test runs.
    pub(crate) fn hold() -> Result<Self> {
        Self::hold_at(PORT)
    }

    fn hold_at(port: u16) -> Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(AtomicU64::new(0));
        let mut threads = Vec::new();
        let addresses = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ];
        for address in addresses {
            let listener = match TcpListener::bind(address) {
                Ok(listener) => listener,
                // A machine without that kind of addresses has no gateway there either.
                Err(error) if address.is_ipv6() && error.kind() != io::ErrorKind::AddrInUse => {
                    continue;
                }
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!(
                            "{address} is the port of a production gateway, and somebody has it; end \
                             that program before the tests, which must not reach it"
                        )
                    });
                }
            };
            listener.set_nonblocking(true)?;
            let (ended, connections) = (Arc::clone(&ended), Arc::clone(&connections));
            threads.push(std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    match listener.accept() {
                        // Closed at once.
                        Ok(_) => drop(connections.fetch_add(1, Ordering::Relaxed)),
                        Err(_) => std::thread::sleep(LOOK_EVERY),
                    }
                }
            }));
        }
        Ok(Self { ended, connections, threads })
    }

    /// Gives the port back.
    ///
    /// # Errors
    /// Somebody connected to it.
    pub(crate) fn release(mut self) -> Result<()> {
        // One that came just now is waiting.
        std::thread::sleep(2 * LOOK_EVERY);
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It only counts.
            let _ = thread.join();
        }
        let connections = self.connections.load(Ordering::Relaxed);
        ensure!(
            connections == 0,
            "a test has connected to port {PORT}, the production gateway's, {connections} times; \
             tests use a simulated one on a port of its own"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    /// A port that is free now.
    fn free() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.local_addr().unwrap().port()
    }

    #[test]
    fn whoever_connects_fails_the_run() {
        let port = free();
        Guard::hold_at(port).unwrap().release().unwrap();
        let guard = Guard::hold_at(port).unwrap();
        let why = format!("{:#}", Guard::hold_at(port).err().unwrap());
        assert!(why.contains("somebody has it"), "{why}");
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap());
        assert!(guard.release().unwrap_err().to_string().contains("1 times"));
    }
}
