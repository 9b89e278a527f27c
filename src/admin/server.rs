//! The endpoint's thread.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::{Router, middleware};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use super::hosts::Hosts;
use super::listener::Listener;
use super::socket::{self, SOCKET, SocketFile};
use super::{Limits, View, routes};
use urlseen_engine::config::HostPort;

/// Threads that wait for the owners of the filter: one for a check, and one that may hang.
const BLOCKING_THREADS: usize = 2;

/// Why the endpoint is not there.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No thread or no descriptors for it.
    #[error("the admin endpoint has no thread to run on: {0}; is the limit on processes too low?")]
    Thread(io::Error),
    /// The Unix socket cannot be made.
    #[error(
        "cannot make the admin socket {}: {error}; the storage folder must be on a file system \
         that has sockets, and writable for this user",
        path.display()
    )]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// The address cannot be listened at.
    #[error("cannot listen at admin.listen = \"{address}\": {error}; choose another port or host")]
    Listen {
        /// As configured.
        address: HostPort,
        /// The system's words.
        error: io::Error,
    },
}

/// The endpoint, until it is dropped. It listens nowhere unless told where.
#[derive(Debug)]
pub struct AdminServer {
    runtime: Handle,
    router: Router,
    limits: Limits,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    socket: Option<SocketFile>,
}

impl AdminServer {
    /// Starts the thread.
    pub fn start(view: Arc<dyn View>, limits: Limits) -> Result<Self, StartError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .thread_name("admin-check")
            .max_blocking_threads(BLOCKING_THREADS)
            .build()
            .map_err(StartError::Thread)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("admin".to_owned());
        let thread = thread.spawn(move || run(runtime, stopped)).map_err(StartError::Thread)?;
        Ok(Self {
            runtime: handle,
            router: routes::router(view, limits),
            limits,
            stop: Some(stop),
            thread: Some(thread),
            socket: None,
        })
    }

    /// Listens on the socket [`SOCKET`] in the storage folder, in place of one that an ended
    /// process left there. The caller holds the folder's lock, and drops this before it lets go of
    /// it.
    pub fn listen_in(&mut self, folder: &Path) -> Result<(), StartError> {
        let failed = |error| StartError::Socket { path: folder.join(SOCKET), error };
        let (listener, file) = socket::listen(folder).map_err(failed)?;
        self.serve_unix(listener).map_err(failed)?;
        self.socket = Some(file);
        Ok(())
    }

    /// Listens at an address as well, and returns which: port 0 lets the system choose. Answers
    /// requests for IP addresses, `localhost`, the address's own name and the names in `hosts`.
    pub fn listen_at(
        &self,
        address: &HostPort,
        hosts: &[String],
    ) -> Result<SocketAddr, StartError> {
        let failed = |error| StartError::Listen { address: address.clone(), error };
        let listener = TcpListener::bind((address.host.as_str(), address.port)).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let names = hosts.iter().chain([&address.host]).map(String::as_str);
        self.serve_tcp(listener, Hosts::new(names)).map_err(failed)?;
        Ok(bound)
    }

    fn serve_unix(&self, listener: UnixListener) -> io::Result<()> {
        let _context = self.runtime.enter();
        let listener = Listener::Unix(tokio::net::UnixListener::from_std(listener)?);
        self.runtime.spawn(listener.serve(self.router.clone(), self.limits));
        Ok(())
    }

    fn serve_tcp(&self, listener: TcpListener, hosts: Hosts) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let _context = self.runtime.enter();
        let listener = Listener::Tcp(tokio::net::TcpListener::from_std(listener)?);
        let guard = middleware::from_fn_with_state(hosts, Hosts::guard);
        self.runtime.spawn(listener.serve(self.router.clone().layer(guard), self.limits));
        Ok(())
    }
}

/// The life of the thread.
fn run(runtime: Runtime, stopped: oneshot::Receiver<()>) {
    // Ends when the other end is dropped, which is no error.
    let _ = runtime.block_on(stopped);
    // A check that hangs does not keep the process from ending.
    runtime.shutdown_background();
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.socket = None;
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic has told its story on standard error.
            let _ = thread.join();
        }
    }
}
