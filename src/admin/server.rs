//! Thread of the admin endpoint.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::{Router, middleware};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::hosts::Hosts;
use super::listener::serve;
use super::socket::{self, SOCKET, SocketFile};
use super::{Limits, View, routes};
use urlseen_engine::config::HostPort;

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
    Listen { address: HostPort, error: io::Error },
}

/// Admin endpoint, which runs until this value is dropped. At first the endpoint listens nowhere.
#[derive(Debug)]
pub struct AdminServer {
    runtime: Handle,
    router: Router,
    limits: Limits,
    /// Tasks that accept connections.
    listeners: JoinSet<()>,
    /// Sender whose drop ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    socket: Option<SocketFile>,
}

impl AdminServer {
    /// Starts the thread of the endpoint.
    pub fn start(view: Arc<dyn View>, limits: Limits) -> Result<Self, StartError> {
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
            router: routes::router(view, limits),
            limits,
            listeners: JoinSet::new(),
            stop: Some(stop),
            thread: Some(thread.spawn(life).map_err(StartError::Thread)?),
            socket: None,
        })
    }

    /// Waits until a task that accepts connections ends. Only a panic ends such a task.
    pub(crate) async fn ended(&mut self) {
        if self.listeners.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Listens on the socket [`SOCKET`] in the storage folder. A socket of an ended process is
    /// replaced. The caller holds the folder's lock, and drops this value before it releases the
    /// lock.
    pub fn listen_in(&mut self, folder: &Path) -> Result<(), StartError> {
        let failed = |error| StartError::Socket { path: folder.join(SOCKET), error };
        let _context = self.runtime.enter();
        let (listener, file) = socket::listen(folder).map_err(failed)?;
        let work = serve(listener, self.router.clone(), self.limits);
        self.listeners.spawn_on(work, &self.runtime);
        self.socket = Some(file);
        Ok(())
    }

    /// Listens also at an address, and returns this address. If its port is 0, the system chooses a
    /// port. Answers a request only if its host is an IP address, `localhost`, the host of
    /// `address`, or a name in `hosts`.
    pub fn listen_at(
        &mut self,
        address: &HostPort,
        hosts: &[String],
    ) -> Result<SocketAddr, StartError> {
        let failed = |error| StartError::Listen { address: address.clone(), error };
        let listener = TcpListener::bind((address.host.as_str(), address.port)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let names = hosts.iter().chain([&address.host]).map(String::as_str);
        let guard = middleware::from_fn_with_state(Hosts::new(names), Hosts::guard);
        let _context = self.runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        let work = serve(listener, self.router.clone().layer(guard), self.limits);
        self.listeners.spawn_on(work, &self.runtime);
        Ok(bound)
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.socket = None;
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported on standard error.
            let _ = thread.join();
        }
    }
}
