//! Thread of the admin endpoint, which serves one request on each connection, within the limits.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::config::{Secret, host_and_port};
use axum::{Extension, Router, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Mutex, oneshot, watch};
use tokio::task::AbortHandle;
use tokio_util::net::Listener;
use tracing::debug;

use super::access::Access;
use super::hosts::Hosts;
use super::socket::{self, SOCKET, SocketFile};
use super::{Limits, View, routes};
use crate::serve::accept;

/// Maximum number of headers in a request.
const HEADERS: usize = 64;

/// Smallest buffer that hyper accepts. The head of a request has to fit into the buffer.
const BUFFER_MIN: usize = 8 << 10;

/// Maximum number of threads that wait for an answer of the filter's threads.
const BLOCKING_THREADS: usize = 2;

/// Reason why the endpoint could not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum StartError {
    /// The system refused to start a thread, or had no file descriptors for the thread's runtime.
    #[error(
        "cannot start the thread of the admin endpoint: {0}; raise the limits on processes and \
         open files (ulimit -u, ulimit -n)"
    )]
    Thread(io::Error),
    /// Unix socket that cannot be created.
    #[error(
        "cannot make the admin socket {}: {error}; the storage folder must be on a file system \
         that has sockets, and writable for this user",
        path.display()
    )]
    Socket { path: PathBuf, error: io::Error },
    /// Address at which the endpoint cannot listen.
    #[error("cannot listen at admin.listen = \"{address}\": {error}; choose another port or host")]
    Listen { address: String, error: io::Error },
}

/// Admin endpoint, which runs until this value is dropped. At first the endpoint listens nowhere.
#[derive(Debug)]
pub struct AdminServer {
    runtime: Handle,
    limits: Limits,
    /// True once a task that accepts connections has panicked.
    ended: Arc<watch::Sender<bool>>,
    /// Sender whose drop ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Socket in a storage folder, on which the endpoint listens until this value is dropped.
#[derive(Debug)]
pub struct ListeningSocket {
    listener: AbortHandle,
    _file: SocketFile,
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl AdminServer {
    /// Starts the thread of the endpoint.
    pub fn start(limits: Limits) -> Result<Self, StartError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .thread_name("admin-check")
            .max_blocking_threads(BLOCKING_THREADS)
            .build()
            .map_err(StartError::Thread)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let life = move || {
            // The wait ends when `stop` is dropped. The channel reports this as an error.
            let _ = runtime.block_on(stopped);
            // The process must be able to end while a check hangs.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("admin".to_owned());
        Ok(Self {
            runtime: handle,
            limits,
            ended: Arc::new(watch::Sender::new(false)),
            stop: Some(stop),
            thread: Some(thread.spawn(life).map_err(StartError::Thread)?),
        })
    }

    /// Waits until a task that accepts connections ends by itself. Only a panic ends such a task.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut ended = self.ended.subscribe();
        async move {
            if ended.wait_for(|ended| *ended).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Accepts connections until the result is told to abort.
    fn listen(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let (task, ended) = (self.runtime.spawn(work), Arc::clone(&self.ended));
        let abort = task.abort_handle();
        self.runtime.spawn(async move {
            if task.await.is_err_and(|error| error.is_panic()) {
                ended.send_replace(true);
            }
        });
        abort
    }

    /// Listens on the socket [`SOCKET`] in the storage folder. Answers from `view`. A
    /// socket of an ended process is replaced. The caller holds the folder's lock, and drops the
    /// result before it releases the lock.
    pub fn listen_in(
        &self,
        folder: &Path,
        view: Arc<dyn View>,
    ) -> Result<ListeningSocket, StartError> {
        let failed = |error| StartError::Socket { path: folder.join(SOCKET), error };
        let _context = self.runtime.enter();
        let (listener, file) = socket::listen(folder).map_err(failed)?;
        let router = routes::router(view, self.limits, Access::Open);
        let work = serve(listener, router, self.limits);
        let listener = self.listen(work);
        Ok(ListeningSocket { listener, _file: file })
    }

    /// Listens also at an address, answers from `view`, and returns the address. If its port is 0,
    /// the system chooses a port. Answers a request only if its host is an IP address, `localhost`,
    /// the host of `address`, or a name in `hosts`. If there is a token, requests that show the
    /// crawl must have it. Without a token, they are answered only on loopback.
    pub fn listen_at(
        &self,
        address: &str,
        hosts: &[String],
        token: Option<&Secret>,
        view: Arc<dyn View>,
    ) -> Result<SocketAddr, StartError> {
        let failed = |error| StartError::Listen { address: address.to_owned(), error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let host = host_and_port(address).map(|(host, _)| host);
        let names = hosts.iter().map(String::as_str).chain(host);
        let guard = middleware::from_fn_with_state(Hosts::new(names), Hosts::guard);
        let _context = self.runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        let router = routes::router(view, self.limits, Access::at(bound.ip(), token));
        let work = serve(listener, router.layer(guard), self.limits);
        self.listen(work);
        Ok(bound)
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported on standard error.
            let _ = thread.join();
        }
    }
}

/// Serves all clients that connect, and never returns.
async fn serve<L>(mut listener: L, router: Router, limits: Limits)
where
    L: Listener<Io: Send + Unpin + 'static>,
{
    let mut places = Places { most: limits.connections, taken: VecDeque::new() };
    loop {
        let tried = "the admin endpoint cannot accept a connection";
        let (stream, _) = accept(&mut listener, tried).await;
        let busy = Busy::default();
        let router = router.clone().layer(Extension(busy.clone()));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_headers(HEADERS)
            .max_buf_size(limits.head_bytes.max(BUFFER_MIN))
            // Each connection serves one request, so a connection that is not busy is idle.
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
        let task = tokio::spawn(async move {
            match tokio::time::timeout(limits.connection, connection).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!("an admin connection ended early: {error}"),
                Err(_) => debug!("an admin connection was cut off after {:?}", limits.connection),
            }
        });
        places.take(task.abort_handle(), busy);
        // Lets the new task run first. If the request has already arrived, the task answers it
        // before a newer connection can end the task.
        tokio::task::yield_now().await;
    }
}

/// Lock that is held while the daemon works on the request of a connection.
pub(super) type Busy = Arc<Mutex<()>>;

/// Connections to one listen address, in the order in which they were accepted. If no place is
/// free, a new connection takes the place of an idle one.
struct Places {
    most: usize,
    taken: VecDeque<(AbortHandle, Busy)>,
}

impl Places {
    /// Takes a place for a connection. If no place is free, ends the oldest idle connection. Only
    /// one check of items runs at a time, so at most one connection is busy.
    fn take(&mut self, task: AbortHandle, busy: Busy) {
        self.taken.retain(|(task, _)| !task.is_finished());
        if self.taken.len() >= self.most {
            let idle = self.taken.iter().position(|(_, busy)| busy.try_lock().is_ok());
            if let Some((task, _)) = self.taken.remove(idle.unwrap_or(0)) {
                task.abort();
            }
        }
        self.taken.push_back((task, busy));
    }
}
