//! The admin socket in the storage folder.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use urlseen_cli::admin::{
    AdminClient, AdminServer, ClientError, Limits, ListeningSocket, SOCKET, StartError, View,
};
use urlseen_cli::report::{Phase, Status};

use super::{Endpoint, Pretender, by_first_letter, connect_tcp, status};

fn pretender() -> Arc<dyn View> {
    let check = Box::new(|items: &[Vec<u8>]| Ok(by_first_letter(items)));
    let phase = Mutex::new(Phase::Working);
    Arc::new(Pretender { phase, route: Mutex::default(), check, asked: AtomicUsize::default() })
}

fn server_in(folder: &Path) -> (ListeningSocket, AdminServer) {
    let server = AdminServer::start(Limits::default()).unwrap();
    (server.listen_in(folder, pretender()).unwrap(), server)
}

fn asked_in(folder: &Path) -> Result<Status, ClientError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { AdminClient::new(folder)?.status().await })
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn only_the_owner_can_use_the_socket_which_is_removed_at_the_end() {
    let endpoint = Endpoint::new();
    let found = fs::symlink_metadata(endpoint.socket()).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let Endpoint { socket_file, folder, .. } = endpoint;
    assert_eq!(names_in(folder.path()), [SOCKET]);
    drop(socket_file);
    assert_eq!(names_in(folder.path()), [""; 0]);
}

#[test]
fn a_socket_that_a_dead_process_left_is_replaced() {
    let folder = TempDir::new().unwrap();
    for name in [SOCKET, "admin.sock.new"] {
        drop(UnixListener::bind(folder.path().join(name)).unwrap());
    }
    assert!(matches!(asked_in(folder.path()), Err(ClientError::NoDaemon { .. })));
    let _server = server_in(folder.path());
    assert_eq!(asked_in(folder.path()).unwrap(), status(Phase::Working));
    assert_eq!(names_in(folder.path()), [SOCKET]);
}

#[test]
fn an_endpoint_does_not_remove_the_socket_of_a_later_one() {
    let folder = TempDir::new().unwrap();
    let first = server_in(folder.path());
    let second = server_in(folder.path());
    let inode = || fs::symlink_metadata(folder.path().join(SOCKET)).unwrap().ino();
    let before = inode();
    drop(first);
    assert_eq!(inode(), before);
    assert!(asked_in(folder.path()).is_ok());
    drop(second);
    assert!(matches!(asked_in(folder.path()), Err(ClientError::NoDaemon { .. })));
}

#[test]
fn server_and_client_support_a_folder_whose_path_is_too_long_for_a_socket() {
    let folder = TempDir::new().unwrap();
    // Some of these lengths are just below the limit of 107 bytes. With these, only the temporary
    // name of the socket is too long.
    let base = folder.path().as_os_str().len() + 1 + SOCKET.len() + 1;
    for length in (100 - base..112 - base).chain([200]) {
        let long = folder.path().join("x".repeat(length));
        fs::create_dir(&long).unwrap();
        let server = server_in(&long);
        assert_eq!(asked_in(&long).unwrap(), status(Phase::Working), "{}", long.display());
        drop(server);
        assert_eq!(names_in(&long), [""; 0]);
    }
}

#[test]
fn an_endpoint_that_cannot_start_reports_the_reason() {
    let folder = TempDir::new().unwrap();
    let server = AdminServer::start(Limits::default()).unwrap();
    let absent = folder.path().join("absent");
    let error = server.listen_in(&absent, pretender()).unwrap_err();
    assert!(matches!(error, StartError::Socket { .. }));
    let start = format!("cannot make the admin socket {}/admin.sock: ", absent.display());
    assert!(error.to_string().starts_with(&start), "{error}");
    let address = server.listen_at("127.0.0.1:0", &[], None, pretender()).unwrap();
    drop(connect_tcp(address));
    let again = address.to_string();
    let error = server.listen_at(&again, &[], None, pretender()).unwrap_err();
    let start = format!("cannot listen at admin.listen = \"{address}\": Address already in use");
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[test]
fn a_missing_daemon_and_a_forbidden_socket_have_different_errors() {
    let folder = TempDir::new().unwrap();
    for folder in [folder.path(), &folder.path().join("absent")] {
        let error = asked_in(folder).unwrap_err();
        let said = format!("no daemon is running on the storage folder {}", folder.display());
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn samples_have_numbers_after_which_a_client_can_ask() {
    let endpoint = Endpoint::new();
    let all = endpoint.get("/samples");
    assert_eq!((all.status, all.body.matches("\"number\"").count()), (200, 3));
    let last = endpoint.get("/samples?after=2");
    let expected = concat!(
        r#"[{"number":3,"time":"1970-01-01T00:00:00.000Z","fate":"dropped","rule":"archives","#,
        r#""text":"http://a/\\xff.zip","item":{"base64":"aHR0cDovL2Ev/y56aXA="}}]"#
    );
    assert_eq!(last.body, expected);
    assert_eq!(endpoint.get("/samples?after=3").body, "[]");
    assert_eq!(endpoint.get("/samples?after=x").status, 400);
    assert_eq!(endpoint.get("/samples?before=3").status, 400);
}
