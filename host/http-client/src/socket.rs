//! Connections for what is no question and answer, as streams of events: TLS by the same rules as
//! everything else here.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A connection, with TLS or without.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// Connects to a server, with TLS where `is_secure`, within `time`. Errors name neither the server nor
/// anything of what is sent later.
///
/// # Errors
/// What the system or TLS says, or [`io::ErrorKind::TimedOut`].
pub async fn connect_socket(
    host: &str,
    port: u16,
    is_secure: bool,
    time: Duration,
) -> io::Result<Box<dyn Socket>> {
    let connecting = async {
        let socket = TcpStream::connect((host, port)).await?;
        socket.set_nodelay(true)?;
        if !is_secure {
            return Ok(Box::new(socket) as Box<dyn Socket>);
        }
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let socket = TlsConnector::from(tls()?).connect(name, socket).await?;
        Ok(Box::new(socket) as Box<dyn Socket>)
    };
    match tokio::time::timeout(time, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Certificates are judged as those of requests are: by the system's own verifier.
fn tls() -> io::Result<Arc<ClientConfig>> {
    static TLS: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = TLS.get() {
        return Ok(config.clone());
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = ClientConfig::builder().with_platform_verifier();
    let config = Arc::new(builder.map_err(io::Error::other)?.with_no_client_auth());
    Ok(TLS.get_or_init(|| config).clone())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn what_speaks_no_tls_is_no_secure_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                socket.unwrap().write_all(b"plain text, and no word of TLS").unwrap();
            }
        });
        let time = Duration::from_secs(5);
        let mut socket = connect_socket("127.0.0.1", port, false, time).await.unwrap();
        let mut bytes = [0; 5];
        socket.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"plain");
        let error = connect_socket("127.0.0.1", port, true, time).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_waited_for_until_the_time_is_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let time = Duration::from_millis(50);
        let error = connect_socket("localhost", port, true, time).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }
}
