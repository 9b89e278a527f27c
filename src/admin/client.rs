//! Client that asks a running daemon through the socket in its storage folder.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::socket::{SOCKET, address};
use super::{CheckQuery, Checked, ItemText, Limits, Sample, Verdicts};

/// Time limit for an answer. A healthy daemon answers every request in less time.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Upper bound of the bytes that JSON adds to the text of each item, such as quotes and a comma.
const OVERHEAD: usize = 32;

/// Maximum number of bytes in JSON for one byte of an item: the byte 0 becomes `\u0000`.
const ESCAPED: usize = 6;

/// Reason why the client got no usable answer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum ClientError {
    /// Missing socket, or a socket on which no process listens.
    #[error("no daemon is running on the storage folder {}", folder.display())]
    NoDaemon { folder: PathBuf },
    /// Socket that another user owns.
    #[error(
        "cannot use {}: permission denied; run this as the user that the daemon runs as",
        socket.display()
    )]
    Forbidden { socket: PathBuf },
    /// Answer with a status other than 200.
    #[error("the daemon answered: {reason}")]
    Refused { reason: String },
    /// Answer that this version cannot read.
    #[error(
        "cannot read the daemon's answer: {0}; the daemon is another version of urlseen: use the \
         same version for both"
    )]
    Nonsense(serde_json::Error),
    /// Any other failure of a request.
    #[error("the daemon on the storage folder {} does not answer: {cause}", folder.display())]
    Silent { folder: PathBuf, cause: String },
}

/// Client of the daemon that uses a storage folder.
pub struct AdminClient {
    /// Path of the socket, which is valid while the descriptor of the folder is open.
    socket: PathBuf,
    folder: PathBuf,
    _descriptor: OwnedFd,
}

impl AdminClient {
    /// Prepares requests to the daemon that uses this folder. Sends nothing yet.
    pub fn new(folder: &Path) -> Result<Self, ClientError> {
        let (socket, descriptor) = address(folder).map_err(|error| of_io(folder, &error))?;
        Ok(Self { socket, folder: folder.to_owned(), _descriptor: descriptor })
    }

    /// Asks for the status of the daemon, as a [`Status`](crate::report::Status) or another type.
    pub async fn status<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        self.ask("/status", None).await
    }

    /// Asks the daemon whether these items were seen. Returns one verdict for each item, in order.
    /// Sends several requests if the items do not fit into one.
    pub async fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, ClientError> {
        let mut checked = Vec::with_capacity(items.len());
        let mut rest = items;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fitting(rest));
            let question =
                CheckQuery { items: now.iter().map(|item| ItemText::of(item)).collect() };
            let question = serde_json::to_string(&question).map_err(ClientError::Nonsense)?;
            checked.extend(self.ask::<Verdicts>("/check", Some(question)).await?.items);
            rest = later;
        }
        Ok(checked)
    }

    /// Asks for the sampled items with higher numbers than `after`.
    pub(crate) async fn samples(&self, after: u64) -> Result<Vec<Sample>, ClientError> {
        self.ask(&format!("/samples?after={after}"), None).await
    }

    /// Asks whether the daemon is healthy, as `GET /healthz` defines it.
    pub(crate) async fn health(&self) -> Result<(), ClientError> {
        self.send("/healthz", None).await.map(drop)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<String>,
    ) -> Result<T, ClientError> {
        serde_json::from_slice(&self.send(path, body).await?).map_err(ClientError::Nonsense)
    }

    /// Sends a request, which has a body in JSON if it is a `POST`. Returns the body of the answer.
    async fn send(&self, path: &str, body: Option<String>) -> Result<Bytes, ClientError> {
        let silent = |cause| ClientError::Silent { folder: self.folder.clone(), cause };
        let failed = |error: hyper::Error| silent(error.to_string());
        let answer = async {
            let stream = UnixStream::connect(&self.socket).await;
            let stream = TokioIo::new(stream.map_err(|error| of_io(&self.folder, &error))?);
            let (mut sender, connection) = http1::handshake(stream).await.map_err(failed)?;
            tokio::spawn(connection);
            let method = if body.is_some() { Method::POST } else { Method::GET };
            let request = Request::builder().method(method).uri(path);
            let request = request.header(header::HOST, "daemon");
            let request = request.header(header::CONTENT_TYPE, "application/json");
            let request = request.body(body.unwrap_or_default()).expect("a valid request");
            let response = sender.send_request(request).await.map_err(failed)?;
            let status = response.status();
            let body = axum::body::to_bytes(Body::new(response.into_body()), usize::MAX).await;
            Ok((status, body.map_err(|error| silent(error.to_string()))?))
        };
        let timed_out = |_| Err(silent("operation timed out".to_owned()));
        let (status, body) =
            tokio::time::timeout(TIMEOUT, answer).await.unwrap_or_else(timed_out)?;
        if !status.is_success() {
            let reason = String::from_utf8_lossy(&body).trim_end().to_owned();
            return Err(ClientError::Refused { reason });
        }
        Ok(body)
    }
}

/// Returns the number of items at the start of `items` that fit into one request, at least 1. The
/// daemon may refuse a single item that is too large.
fn fitting(items: &[Vec<u8>]) -> usize {
    let mut bytes = 0;
    let fits = |item: &&Vec<u8>| {
        bytes += item.len() * ESCAPED + OVERHEAD;
        bytes <= Limits::BODY_BYTES - OVERHEAD
    };
    items.iter().take(Limits::ITEMS).take_while(fits).count().max(1)
}

fn of_io(folder: &Path, error: &io::Error) -> ClientError {
    let folder = folder.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ClientError::NoDaemon { folder }
        }
        io::ErrorKind::PermissionDenied => ClientError::Forbidden { socket: folder.join(SOCKET) },
        _ => ClientError::Silent { folder, cause: error.to_string() },
    }
}
