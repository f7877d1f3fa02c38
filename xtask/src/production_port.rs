//! No test may reach a real gateway (specification 1, "What the service does"): while tests run, the port of
//! the production environment is ours, and whoever connects to it fails the run.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
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
    let guard = Guard::hold_at(port)?;
    work().and_then(|()| guard.release())
}

/// Holds the port.
struct Guard {
    ended: Arc<AtomicBool>,
    connections: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Guard {
    /// Takes the port on every address of this machine that a gateway may have. Where somebody has it, that
    /// may be a real gateway, beside which no test runs.
    fn hold_at(port: u16) -> Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(AtomicU64::new(0));
        let mut threads = Vec::new();
        for address in addresses() {
            let address = SocketAddr::new(address, port);
            let listener = match listen(address) {
                Ok(listener) => listener,
                // A machine without that kind of addresses has no gateway there either.
                Err(error) if address.is_ipv6() && error.kind() != io::ErrorKind::AddrInUse => {
                    continue;
                }
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!(
                            "{address} is the port of a production gateway, and somebody has it; end \
                             that program before tests and benches, which must not reach it"
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
                        Ok((stream, from)) if is_of_this_machine(&stream, from) => {
                            connections.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(_) => {}
                        Err(_) => std::thread::sleep(LOOK_EVERY),
                    }
                }
            }));
        }
        Ok(Self { ended, connections, threads })
    }

    /// Gives the port back; fails where somebody connected to it.
    fn release(mut self) -> Result<()> {
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
            "a test or bench has connected to port {PORT}, the production gateway's, {connections} \
             times; they use a simulated one on a port of its own"
        );
        Ok(())
    }
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

    #[test]
    fn work_is_done_while_the_port_is_held() {
        let port = free();
        let mut was_held = false;
        let work = || {
            was_held = Guard::hold_at(port).is_err();
            Ok(())
        };
        held_at(port, work).unwrap();
        assert!(was_held);
        let connects = || {
            drop(TcpStream::connect((Ipv4Addr::LOCALHOST, port))?);
            Ok(())
        };
        let told = held_at(port, connects).unwrap_err().to_string();
        assert!(told.contains("1 times"), "{told}");
        let told = held_at(port, || anyhow::bail!("its own")).unwrap_err().to_string();
        assert_eq!(told, "its own");
    }

    /// The engine takes each of these addresses for a gateway's.
    #[test]
    #[cfg(target_os = "linux")]
    fn whoever_connects_to_another_address_of_this_machine_fails_the_run() {
        let port = free();
        let other = Ipv4Addr::new(127, 9, 8, 7);
        let guard = Guard::hold_at(port).unwrap();
        drop(TcpStream::connect((other, port)).unwrap());
        // Where there are no addresses of the sixth version, nobody connects to one.
        let sixth = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).is_ok();
        let told = guard.release().unwrap_err().to_string();
        assert!(told.contains(if sixth { "2 times" } else { "1 times" }), "{told}");
        let elsewhere = TcpListener::bind((other, port)).unwrap();
        let why = format!("{:#}", Guard::hold_at(port).err().unwrap());
        assert!(why.contains("somebody has it"), "{why}");
        drop(elsewhere);
    }
}
