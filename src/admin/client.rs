//! Client that asks a running daemon through the socket in its storage folder.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde::de::DeserializeOwned;

use super::socket::{SOCKET, SocketAddress};
use super::{CheckQuery, Checked, ItemText, Limits, Verdicts};

/// Time limit for an answer, longer than any answer of a daemon takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of an item in a request beside its own bytes, as a safe estimate.
const OVERHEAD: usize = 32;

/// Maximum number of bytes that JSON uses for one byte: a control character becomes `\u0000`.
const ESCAPED: usize = 6;

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum ClientError {
    /// Missing socket, or a socket on which no process listens.
    #[error("no daemon is running on the storage folder {}", folder.display())]
    NoDaemon { folder: PathBuf },
    /// Socket that belongs to another user.
    #[error(
        "may not use {}: permission denied; run this as the user that the daemon runs as",
        socket.display()
    )]
    Forbidden { socket: PathBuf },
    /// Answer with another status than 200.
    #[error("the daemon answered: {reason}")]
    Refused { reason: String },
    /// Answer that is not valid here.
    #[error("the daemon's answer cannot be read ({0}); it is of another version than this urlseen")]
    Nonsense(serde_json::Error),
    /// Any other failure of a request.
    #[error("the daemon on the storage folder {} does not answer: {cause}", folder.display())]
    Silent { folder: PathBuf, cause: String },
}

/// Connection to the daemon that uses a storage folder.
pub struct AdminClient {
    http: reqwest::Client,
    folder: PathBuf,
    /// Keeps the address valid.
    _address: SocketAddress,
}

impl AdminClient {
    /// Prepares requests to the daemon on this folder. It sends nothing yet.
    pub fn new(folder: &Path) -> Result<Self, ClientError> {
        let address = SocketAddress::of(folder).map_err(|error| of_io(folder, &error))?;
        let http = reqwest::Client::builder()
            .unix_socket(address.path.clone())
            .timeout(TIMEOUT)
            .build()
            .map_err(|error| of_http(folder, &error))?;
        Ok(Self { http, folder: folder.to_owned(), _address: address })
    }

    /// Asks for the daemon's [`super::Status`], or for the JSON of another version.
    pub async fn status<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        self.ask(self.http.get("http://daemon/status")).await
    }

    /// Asks whether these items have been seen. Returns one verdict for each, in order. It splits
    /// the items into several requests if their limits demand that.
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

    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let failed = |error| of_http(&self.folder, &error);
        let response: Response = request.send().await.map_err(failed)?;
        let is_success = response.status().is_success();
        let body = response.bytes().await.map_err(failed)?;
        if !is_success {
            let reason = String::from_utf8_lossy(&body).trim_end().to_owned();
            return Err(ClientError::Refused { reason });
        }
        serde_json::from_slice(&body).map_err(ClientError::Nonsense)
    }
}

/// Number of these items that fit into a request. At least one item is sent, which the daemon may
/// refuse.
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
