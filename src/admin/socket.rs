//! Unix socket in the storage folder.
//!
//! The address of a Unix socket has room for a path of 107 bytes. A longer path is reached through
//! the folder's descriptor, as `/proc/self/fd/N/admin.sock`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use tokio::net::{UnixListener, UnixSocket};

/// Name of the socket in the storage folder.
pub const SOCKET: &str = "admin.sock";

/// Name of the socket until the daemon listens on it.
const NEW: &str = "admin.sock.new";

/// Maximum length of a path in `sockaddr_un`, without the zero byte at its end (unix(7)).
const PATH_MAX: usize = 107;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 64;

/// Socket in a folder. Dropping this value removes the socket, unless another process has replaced
/// it.
#[derive(Debug)]
pub(super) struct SocketFile {
    folder: OwnedFd,
    /// Device and inode of the socket.
    id: (u64, u64),
}

/// Creates the socket in `folder` and listens on it. Replaces a socket that an ended process has
/// left. Only the holder of the folder's lock may call this function, and only within a runtime.
pub(super) fn listen(folder: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let descriptor = open(folder)?;
    remove(&descriptor, NEW)?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(reach(&descriptor, folder, NEW))?;
    // No client can connect until `listen` below. From then on, only the owner can connect.
    rustix::fs::chmodat(&descriptor, NEW, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    let listener = socket.listen(BACKLOG)?;
    rustix::fs::renameat(&descriptor, NEW, &descriptor, SOCKET)?;
    let id = identify(&descriptor)?;
    Ok((listener, SocketFile { folder: descriptor, id }))
}

/// Returns a path for connecting to the socket in a folder. The path is valid as long as the
/// descriptor is open.
pub(super) fn address(folder: &Path) -> io::Result<(PathBuf, OwnedFd)> {
    let descriptor = open(folder)?;
    Ok((reach(&descriptor, folder, SOCKET), descriptor))
}

fn open(folder: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Returns a path to the file `name` in the folder. The path is short enough for a socket's
/// address.
fn reach(descriptor: &OwnedFd, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    if path.as_os_str().as_bytes().len() <= PATH_MAX {
        return path;
    }
    PathBuf::from(format!("/proc/self/fd/{}/{name}", descriptor.as_raw_fd()))
}

fn remove(folder: &OwnedFd, name: &str) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(rustix::io::Errno::NOENT) => Ok(()),
        other => other,
    }
}

fn identify(folder: &OwnedFd) -> rustix::io::Result<(u64, u64)> {
    let found = rustix::fs::statat(folder, SOCKET, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((found.st_dev, found.st_ino))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identify(&self.folder) == Ok(self.id) {
            // If the removal fails, the socket refuses all clients, and the next start replaces it.
            let _ = remove(&self.folder, SOCKET);
        }
    }
}
