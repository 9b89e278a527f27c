//! Client that asks a running daemon through the socket in its storage folder.

use std::error::Error;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use reqwest::{RequestBuilder, Response};
use serde::de::DeserializeOwned;

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

/// Connection to the daemon that uses a storage folder.
pub struct AdminClient {
    http: reqwest::Client,
    folder: PathBuf,
    /// Descriptor of the folder. The path of the socket is valid while the descriptor is open.
    _descriptor: OwnedFd,
}

impl AdminClient {
    /// Prepares requests to the daemon that uses this folder. Sends nothing yet.
    pub fn new(folder: &Path) -> Result<Self, ClientError> {
        let (path, descriptor) = address(folder).map_err(|error| of_io(folder, &error))?;
        let http = reqwest::Client::builder()
            .unix_socket(path)
            .timeout(TIMEOUT)
            .build()
            .map_err(|error| of_http(folder, &error))?;
        Ok(Self { http, folder: folder.to_owned(), _descriptor: descriptor })
    }

    /// Asks for the status of the daemon, as a [`Status`](crate::report::Status) or another type.
    pub async fn status<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        self.ask(self.http.get("http://daemon/status")).await
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
            let request = self.http.post("http://daemon/check").json(&question);
            checked.extend(self.ask::<Verdicts>(request).await?.items);
            rest = later;
        }
        Ok(checked)
    }

    /// Asks for the sampled items with higher numbers than `after`.
    pub(crate) async fn samples(&self, after: u64) -> Result<Vec<Sample>, ClientError> {
        self.ask(self.http.get(format!("http://daemon/samples?after={after}"))).await
    }

    /// Asks whether the daemon is healthy, as `GET /healthz` defines it.
    pub(crate) async fn health(&self) -> Result<(), ClientError> {
        self.send(self.http.get("http://daemon/healthz")).await.map(drop)
    }

    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        serde_json::from_slice(&self.send(request).await?).map_err(ClientError::Nonsense)
    }

    /// Sends a request, and returns the body of the answer.
    async fn send(&self, request: RequestBuilder) -> Result<Bytes, ClientError> {
        let failed = |error| of_http(&self.folder, &error);
        let response: Response = request.send().await.map_err(failed)?;
        let is_success = response.status().is_success();
        let body = response.bytes().await.map_err(failed)?;
        if !is_success {
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

fn of_http(folder: &Path, error: &reqwest::Error) -> ClientError {
    let mut source = error.source();
    let mut cause = error.to_string();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref() {
            return of_io(folder, error);
        }
        cause = error.to_string();
        source = error.source();
    }
    ClientError::Silent { folder: folder.to_owned(), cause }
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
