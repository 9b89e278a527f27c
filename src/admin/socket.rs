//! Unix socket in the storage folder.
//!
//! The address of a Unix socket has room for a path of 107 bytes. A longer path is reached through
//! the folder's descriptor, as `/proc/self/fd/N/admin.sock`.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Name of the socket in the storage folder.
pub const SOCKET: &str = "admin.sock";

/// Name of the socket until it is usable.
const NEW: &str = "admin.sock.new";

/// Longest path in `sockaddr_un`, without the zero after it (unix(7)).
const PATH_MAX: usize = 107;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// Socket in a folder. Dropping it removes the socket if it is still there.
pub(super) struct SocketFile {
    folder: OwnedFd,
    /// Device and inode of the socket.
    id: (u64, u64),
}

/// Makes the socket in `folder` and listens. It replaces a socket that an ended process left, so
/// only the holder of the folder's lock may call this.
pub(super) fn listen(folder: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let descriptor = open(folder)?;
    remove(&descriptor, NEW)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(reach(&descriptor, folder, NEW))?)?;
    // No client can connect before the socket listens, and afterwards only its owner can.
    rustix::fs::chmodat(&descriptor, NEW, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    rustix::net::listen(&socket, BACKLOG)?;
    rustix::fs::renameat(&descriptor, NEW, &descriptor, SOCKET)?;
    let id = identify(&descriptor)?;
    Ok((UnixListener::from(socket), SocketFile { folder: descriptor, id }))
}

/// Address for connecting to the socket in a folder.
pub(super) struct SocketAddress {
    /// Path that is valid as long as this value lives.
    pub(super) path: PathBuf,
    _folder: File,
}

impl SocketAddress {
    /// Opens the folder. Fails if that is impossible.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let descriptor = open(folder)?;
        let path = reach(&descriptor, folder, SOCKET);
        Ok(Self { path, _folder: File::from(descriptor) })
    }
}

fn open(folder: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Path to `name` in the folder that fits into a socket's address.
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
            // A socket that remains refuses all clients, and the next start replaces it.
            let _ = remove(&self.folder, SOCKET);
        }
    }
}

impl fmt::Debug for SocketFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketFile").field("id", &self.id).finish_non_exhaustive()
    }
}
