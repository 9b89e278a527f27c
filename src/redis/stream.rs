//! The bare way to a server: TCP, TLS over it, or a Unix socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::ConnectionAddr;
use rustls_native_certs::{Error, ErrorKind};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, pki_types::ServerName};

use crate::descriptors;

/// How long a TCP connection is silent before the system probes it, and between probes.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// What bytes go out and come in through.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens the way to a server. What is wrong with a certificate or a handshake is a
/// [`rustls::Error`] inside the error.
pub(super) async fn open(place: &ConnectionAddr) -> io::Result<Box<dyn Stream>> {
    match place {
        ConnectionAddr::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(tcp(host, *port).await?)),
        ConnectionAddr::TcpTls { host, port, .. } => {
            let name = ServerName::try_from(host.clone())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let connector = TlsConnector::from(Arc::new(trusting()?));
            Ok(Box::new(connector.connect(name, tcp(host, *port).await?).await?))
        }
        // The crate may add kinds of places.
        _ => Err(io::Error::other("a kind of address that this version does not know")),
    }
}

/// A TCP connection to the first of the host's addresses that answers.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // Commands go out whole: there is nothing to wait for.
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}

/// Trust in the authorities that this machine trusts, or those in `SSL_CERT_FILE`.
fn trusting() -> io::Result<ClientConfig> {
    let mut found = rustls_native_certs::load_native_certs();
    match found.errors.pop() {
        Some(Error { kind: ErrorKind::Io { inner, .. }, .. })
            if descriptors::are_exhausted(&inner) =>
        {
            return Err(inner);
        }
        Some(error) => return Err(io::Error::other(rustls::Error::General(error.to_string()))),
        None => {}
    }
    let mut roots = RootCertStore::empty();
    for certificate in found.certs {
        roots.add(certificate).map_err(io::Error::other)?;
    }
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}
