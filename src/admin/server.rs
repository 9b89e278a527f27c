//! Thread of the admin endpoint.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::{Router, middleware};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, oneshot};

use super::hosts::Hosts;
use super::listener::Listener;
use super::socket::{self, SOCKET, SocketFile};
use super::{Limits, View, routes};
use urlseen_engine::config::HostPort;

/// Threads that wait for the owners of the filter: one for a check, and one that may hang.
const BLOCKING_THREADS: usize = 2;

/// Reason why the endpoint could not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum StartError {
    /// Missing thread, or missing descriptors for it.
    #[error("the admin endpoint has no thread to run on: {0}; is the limit on processes too low?")]
    Thread(io::Error),
    /// Unix socket that cannot be made.
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

/// Endpoint that lives until it is dropped. At first it listens nowhere.
#[derive(Debug)]
pub struct AdminServer {
    runtime: Handle,
    router: Router,
    limits: Limits,
    /// Ends the thread when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    /// Ends of parts of the endpoint before that.
    ends: mpsc::UnboundedSender<()>,
    ended: mpsc::UnboundedReceiver<()>,
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
        let (ends, ended) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new().name("admin".to_owned());
        let last = Last(ends.clone());
        let life = move || {
            let _last = last;
            run(runtime, stopped);
        };
        let thread = thread.spawn(life).map_err(StartError::Thread)?;
        Ok(Self {
            runtime: handle,
            router: routes::router(view, limits),
            limits,
            stop: Some(stop),
            ends,
            ended,
            thread: Some(thread),
            socket: None,
        })
    }

    /// Returns once a part of the endpoint has ended. None ends by itself.
    pub(crate) async fn ended(&mut self) {
        self.ended.recv().await;
    }

    /// Listens on the socket [`SOCKET`] in the storage folder. It replaces a socket that an ended
    /// process left there. The caller holds the folder's lock, and drops this value before it
    /// releases the lock.
    pub fn listen_in(&mut self, folder: &Path) -> Result<(), StartError> {
        let failed = |error| StartError::Socket { path: folder.join(SOCKET), error };
        let (listener, file) = socket::listen(folder).map_err(failed)?;
        let open = || Ok(Listener::Unix(tokio::net::UnixListener::from_std(listener)?));
        self.serve(open, self.router.clone()).map_err(failed)?;
        self.socket = Some(file);
        Ok(())
    }

    /// Listens at an address as well, and returns that address: for port 0 the system chooses one.
    /// Answers requests for IP addresses, `localhost`, the address's own name and the names in
    /// `hosts`.
    pub fn listen_at(
        &self,
        address: &HostPort,
        hosts: &[String],
    ) -> Result<SocketAddr, StartError> {
        let failed = |error| StartError::Listen { address: address.clone(), error };
        let listener = TcpListener::bind((address.host.as_str(), address.port)).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let names = hosts.iter().chain([&address.host]).map(String::as_str);
        let guard = middleware::from_fn_with_state(Hosts::new(names), Hosts::guard);
        let open = || {
            listener.set_nonblocking(true)?;
            Ok(Listener::Tcp(tokio::net::TcpListener::from_std(listener)?))
        };
        self.serve(open, self.router.clone().layer(guard)).map_err(failed)?;
        Ok(bound)
    }

    /// Serves the clients of a listener, which `open` makes on the runtime.
    fn serve(&self, open: impl FnOnce() -> io::Result<Listener>, router: Router) -> io::Result<()> {
        let _context = self.runtime.enter();
        let work = open()?.serve(router, self.limits);
        let last = Last(self.ends.clone());
        self.runtime.spawn(async move {
            let _last = last;
            work.await;
        });
        Ok(())
    }
}

/// Reports the end of its owner, also by a panic.
struct Last(mpsc::UnboundedSender<()>);

impl Drop for Last {
    fn drop(&mut self) {
        // At the end of the run nothing listens.
        let _ = self.0.send(());
    }
}

/// Runs the thread until the endpoint is dropped.
fn run(runtime: Runtime, stopped: oneshot::Receiver<()>) {
    // Waiting ends when the other end is dropped, which is no error.
    let _ = runtime.block_on(stopped);
    // A check that hangs must not keep the process from ending.
    runtime.shutdown_background();
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
