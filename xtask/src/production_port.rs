//! No test may reach a real gateway (specification 1, "What the service does"): while tests run, the port of
//! the production environment is ours, and whoever connects to it fails the run.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The port of the real market.
const PORT: u16 = 18_080;
/// How long a look for a connection may be late.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Holds the port while something is done that must not reach a real gateway.
///
/// # Errors
/// Somebody has the port or connected to it, or the work failed.
pub(crate) fn held(work: impl FnOnce() -> Result<()>) -> Result<()> {
    held_at(PORT, work)
}

fn held_at(port: u16, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let listeners = listeners(port)?;
    let connections = AtomicU64::new(0);
    let worked = thread::scope(|scope| {
        let ended = Ended(Arc::default());
        for listener in &listeners {
            let (ended, connections) = (Arc::clone(&ended.0), &connections);
            scope.spawn(move || count(listener, connections, &ended));
        }
        let worked = work();
        // One that came just now is waiting.
        thread::sleep(2 * LOOK_EVERY);
        worked
    });
    worked?;
    let connections = connections.into_inner();
    ensure!(
        connections == 0,
        "a test or bench connected {connections} times to port {PORT} of the production gateway; use a \
         simulated gateway on its own port"
    );
    Ok(())
}

/// Ends the threads that count, after a panic too.
struct Ended(Arc<AtomicBool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn count(listener: &TcpListener, connections: &AtomicU64, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        match listener.accept() {
            // Closed at once.
            Ok((stream, from)) if is_of_this_machine(&stream, from) => {
                connections.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) => {}
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

/// Takes the port on every address of this machine that a gateway may have. Where somebody has it, that may be
/// a real gateway, beside which no test runs.
fn listeners(port: u16) -> Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for address in addresses().map(|address| SocketAddr::new(address, port)) {
        let listener = match listen(address) {
            Ok(listener) => listener,
            // A machine without that kind of addresses has no gateway there either.
            Err(error) if address.is_ipv6() && error.kind() != io::ErrorKind::AddrInUse => continue,
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "{address} is the port of a production gateway, and another program uses it; end that \
                         program, because tests and benches must not reach it"
                    )
                });
            }
        };
        listener.set_nonblocking(true)?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Whether a connection comes from this machine; others in its networks are no tests.
fn is_of_this_machine(stream: &TcpStream, from: SocketAddr) -> bool {
    from.ip().is_loopback() || stream.local_addr().is_ok_and(|own| own.ip() == from.ip())
}

/// Where a gateway may listen: all of 127.0.0.0/8 is this machine, and so are its addresses in networks. Linux
/// gives every one of them with the unspecified address; other systems let somebody else have a single one beside
/// it, so those that are usual are taken first.
fn addresses() -> impl Iterator<Item = IpAddr> {
    let usual = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    usual.into_iter().filter(|_| !cfg!(target_os = "linux")).chain(all)
}

/// Listens to one kind of addresses alone, so that both can be held.
#[cfg(unix)]
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    /// Connections that wait to be counted.
    const WAITING_MAX: i32 = 128;

    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let listener = socket(family, SocketType::STREAM, None)?;
    rustix::io::ioctl_fioclex(&listener)?;
    if address.is_ipv6() {
        set_ipv6_v6only(&listener, true)?;
    }
    // Connections of before that the system still remembers are no listener.
    set_socket_reuseaddr(&listener, true)?;
    bind(&listener, &address)?;
    listen(&listener, WAITING_MAX)?;
    Ok(TcpListener::from(listener))
}

/// The same; here the system keeps them apart.
#[cfg(not(unix))]
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port that is free now.
    fn free() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.local_addr().unwrap().port()
    }

    fn connect(address: Ipv4Addr, port: u16) -> Result<()> {
        drop(TcpStream::connect((address, port))?);
        Ok(())
    }

    #[test]
    fn whoever_connects_fails_the_run() {
        let port = free();
        held_at(port, || Ok(())).unwrap();
        let told = held_at(port, || connect(Ipv4Addr::LOCALHOST, port)).unwrap_err().to_string();
        assert!(told.contains("1 times"), "{told}");
        let told = held_at(port, || anyhow::bail!("its own")).unwrap_err().to_string();
        assert_eq!(told, "its own");
    }

    #[test]
    fn the_port_is_held_while_work_is_done_and_free_after_a_panic() {
        let port = free();
        let why = held_at(port, || held_at(port, || Ok(()))).unwrap_err();
        assert!(format!("{why:#}").contains("another program uses it"), "{why:#}");
        let panicked = std::panic::catch_unwind(|| held_at(port, || panic!("on purpose")));
        assert!(panicked.is_err());
        held_at(port, || Ok(())).unwrap();
    }

    /// The engine takes each of these addresses for a gateway's.
    #[test]
    #[cfg(target_os = "linux")]
    fn whoever_connects_to_another_address_of_this_machine_fails_the_run() {
        let port = free();
        let other = Ipv4Addr::new(127, 9, 8, 7);
        let mut sixth = false;
        let connects = || {
            connect(other, port)?;
            // Where there are no addresses of the sixth version, nobody connects to one.
            sixth = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).is_ok();
            Ok(())
        };
        let told = held_at(port, connects).unwrap_err().to_string();
        assert!(told.contains(if sixth { "2 times" } else { "1 times" }), "{told}");
        let elsewhere = TcpListener::bind((other, port)).unwrap();
        let why = format!("{:#}", held_at(port, || Ok(())).unwrap_err());
        assert!(why.contains("another program uses it"), "{why}");
        drop(elsewhere);
    }
}
