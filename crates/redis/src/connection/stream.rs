//! Byte stream to a server: TCP, TLS over TCP, or a Unix socket.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::ConnectionAddr;
use rustls_native_certs::{Error, ErrorKind};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, AlertDescription, ClientConfig, RootCertStore, SignatureScheme};
use urlseen_filter::descriptors;

use super::tls::TlsFiles;
use crate::error::LinkError;

/// Silence after which the operating system probes a TCP connection, and time between two probes.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Transport for the bytes of a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a stream to a server. If a certificate or a TLS handshake is faulty, the returned error
/// contains a [`rustls::Error`].
pub(super) async fn open(place: &ConnectionAddr, files: &TlsFiles) -> io::Result<Box<dyn Stream>> {
    match place {
        ConnectionAddr::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(tcp(host, *port).await?)),
        ConnectionAddr::TcpTls { host, port, .. } => {
            let name = ServerName::try_from(host.clone())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let roots = files.authorities()?.map_or_else(authorities_of_system, Ok)?;
            let (certificate, asked) = (files.certificate()?, AtomicBool::default());
            let presented = Arc::new(Presented { certificate, asked });
            let config = ClientConfig::builder().with_root_certificates(roots);
            let config = config.with_client_cert_resolver(presented.clone());
            let connector = TlsConnector::from(Arc::new(config));
            let connected = connector.connect(name, tcp(host, *port).await?).await;
            Ok(Box::new(connected.map_err(|error| presented.explain(error))?))
        }
        // The crate may add kinds of addresses.
        _ => Err(io::Error::other("a kind of address that this version does not know")),
    }
}

/// Opens a TCP connection to the first of the host's addresses that answers.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // Each command is written as a whole, so there is no reason to delay a packet.
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}

/// Returns the error if the server ended the connection because of the client's certificate.
/// Servers with TLS 1.3 report this after the handshake, in place of their first reply.
pub(crate) fn certificate_error(error: &io::Error) -> Option<LinkError> {
    use AlertDescription as Alert;
    match alert(error)? {
        Alert::CertificateRequired => Some(LinkError::CertificateWanted),
        alert @ (Alert::UnknownCA
        | Alert::BadCertificate
        | Alert::CertificateExpired
        | Alert::CertificateRevoked
        | Alert::CertificateUnknown
        | Alert::UnsupportedCertificate
        | Alert::AccessDenied) => {
            Some(LinkError::CertificateRefused { alert: format!("{alert:?}") })
        }
        _ => None,
    }
}

/// Returns the TLS alert with which a server ended the connection.
fn alert(error: &io::Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}

/// Resolver that presents the configured certificate, and remembers that a server requested one.
#[derive(Debug)]
struct Presented {
    certificate: Option<Arc<CertifiedKey>>,
    asked: AtomicBool,
}

impl Presented {
    /// Explains the error of a handshake. TLS 1.2 has no alert of its own for a missing
    /// certificate. If the server requested a certificate, a failed handshake means that the
    /// certificate is missing.
    fn explain(&self, error: io::Error) -> io::Error {
        if self.certificate.is_none()
            && self.asked.load(Ordering::Relaxed)
            && alert(&error) == Some(AlertDescription::HandshakeFailure)
        {
            let alert = AlertDescription::CertificateRequired;
            return io::Error::new(error.kind(), rustls::Error::AlertReceived(alert));
        }
        error
    }
}

impl ResolvesClientCert for Presented {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.certificate.clone()
    }

    fn has_certs(&self) -> bool {
        self.certificate.is_some()
    }
}

/// Reads the authorities of this machine, or those in `SSL_CERT_FILE`.
fn authorities_of_system() -> io::Result<RootCertStore> {
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
    Ok(roots)
}
