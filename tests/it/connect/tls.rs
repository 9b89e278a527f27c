//! TLS: certificates of server and client, and connections to a port of the wrong kind.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use urlseen_redis::RedisAddress;
use urlseen_redis::connect::connect;
use urlseen_redis::error::LinkError;

use super::trouble;
use crate::preflight::{Server, wait_until};
use crate::util::redis::free_port;

/// Configuration of `openssl ca`, which can make certificates with any validity.
const AUTHORITY: &str = "\
[ca]
default_ca = ours
[ours]
database = index
new_certs_dir = .
policy = names
default_md = sha256
rand_serial = yes
[names]
commonName = supplied
[server]
subjectAltName = DNS:localhost
basicConstraints = critical,CA:FALSE
";

pub(super) fn openssl(folder: &Path, words: &[&str]) {
    let made = Command::new("openssl").args(words).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Makes the files `name.key` and `name.pem` of a certificate authority.
pub(super) fn authority(folder: &Path, name: &str) {
    let (key, pem, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
    let kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let files = ["-days", "2", "-keyout", &key, "-out", &pem, "-subj", &subject];
    openssl(folder, &[&kind[..], &files].concat());
}

/// Makes the files `name.key` and `name.pem` for localhost, signed by the authority `ca` and valid
/// until `end`.
pub(super) fn certificate(folder: &Path, name: &str, ca: &str, end: &str) {
    fs::write(folder.join("ca.cnf"), AUTHORITY).unwrap();
    fs::write(folder.join("index"), "").unwrap();
    let kind = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let [key, pem, request] = ["key", "pem", "csr"].map(|kind| format!("{name}.{kind}"));
    let subject = format!("/CN={name}");
    let files = ["-keyout", &key, "-out", &request, "-subj", &subject];
    openssl(folder, &[&kind[..], &files].concat());
    let signed = ["ca", "-batch", "-notext", "-config", "ca.cnf", "-extensions", "server"];
    let [ca_pem, ca_key] = ["pem", "key"].map(|kind| format!("{ca}.{kind}"));
    let by = ["-cert", &ca_pem, "-keyfile", &ca_key];
    let days = ["-startdate", "20200101000000Z", "-enddate", end];
    let files = ["-in", &request, "-out", &pem];
    openssl(folder, &[&signed[..], &by, &days, &files].concat());
}

/// Real Redis server with a TLS port.
pub(super) struct TlsServer {
    pub(super) server: Server,
    pub(super) port: String,
}

impl TlsServer {
    /// Starts a server with a valid certificate. It requires no client certificates.
    fn start() -> Self {
        Self::with("20991231235959Z", "tls-auth-clients no")
    }

    /// Starts a server with these settings and a certificate that is valid until `end`.
    pub(super) fn with(end: &str, settings: &str) -> Self {
        let server = Server::start(&[]);
        let folder = server.folder.path();
        authority(folder, "ours");
        authority(folder, "theirs");
        certificate(folder, "redis", "ours", end);
        let port = free_port();
        let file = |name: &str| folder.join(name).display().to_string();
        server.run::<()>(&format!(
            "CONFIG SET tls-cert-file {} tls-key-file {} tls-ca-cert-file {} {settings} tls-port \
             {port}",
            file("redis.pem"),
            file("redis.key"),
            file("ours.pem"),
        ));
        wait_until("the TLS port is open", || {
            TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
        });
        Self { server, port }
    }

    pub(super) fn folder(&self) -> &Path {
        self.server.folder.path()
    }

    pub(super) fn url(&self, host: &str) -> String {
        format!("rediss://{host}:{}", self.port)
    }

    /// Returns the answer to a client that trusts only the authority `ours`.
    fn answer(&self) -> String {
        answer(&self.url("localhost"), &self.folder().join("ours.pem"))
    }
}

/// Environment variable with a URL. It makes a test act as a client of this URL. A client reads its
/// trusted authorities from the environment, so each client is a separate process.
const CLIENT_OF: &str = "URLSEEN_TEST_TLS_CLIENT_OF";

/// Environment variable with the time limit for connecting, in milliseconds.
const WITHIN: &str = "URLSEEN_TEST_TLS_WITHIN";

/// Returns `PONG`, or the error: `Later: …` or `Never: …`.
fn answer(url: &str, authority: &Path) -> String {
    answer_within("20000", url, authority)
}

fn answer_within(milliseconds: &str, url: &str, authority: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "connect::tls::a_client_runs_in_a_separate_process", "--nocapture"])
        .env(CLIENT_OF, url)
        .env(WITHIN, milliseconds)
        .env("SSL_CERT_FILE", authority)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let end = said.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    end.unwrap_or_else(|| panic!("{said}")).0.to_owned()
}

/// Acts as a client if the variable `CLIENT_OF` is set. Does nothing otherwise.
#[tokio::test]
async fn a_client_runs_in_a_separate_process() {
    let Ok(url) = std::env::var(CLIENT_OF) else { return };
    let mut address = RedisAddress::new(&url, None).unwrap();
    let within = std::env::var(WITHIN).unwrap().parse().unwrap();
    address.timeouts.connect = Duration::from_millis(within);
    match connect(&address).await {
        Ok(mut link) => {
            println!("<{}>", redis::cmd("PING").query_async::<String>(&mut link).await.unwrap());
        }
        Err(trouble) => {
            println!("<{}: {trouble}>", if trouble.is_passing() { "Later" } else { "Never" });
        }
    }
}

fn refused(url: &str, cause: &str) -> String {
    format!(
        "Never: no TLS connection to Redis at {url}/0: {cause}; the port must be the server's \
         tls-port, and its certificate must be valid today, made for that host name and signed by \
         an authority that this machine trusts (set redis.tls_ca to the file of an authority of \
         your own)"
    )
}

#[test]
fn certificates_are_checked_with_the_authorities_of_the_system() {
    let server = TlsServer::start();
    assert_eq!(server.answer(), "PONG");
    let [localhost, number] = ["localhost", "127.0.0.1"].map(|host| server.url(host));
    let trusting = |url: &str, authority: &str| answer(url, &server.folder().join(authority));
    let unknown = refused(&localhost, "invalid peer certificate: UnknownIssuer");
    assert_eq!(trusting(&localhost, "theirs.pem"), unknown);
    let named = trusting(&number, "ours.pem");
    assert!(named.contains("127.0.0.1") && named.contains("not valid for"), "{named}");
    let missing = trusting(&localhost, "missing.pem");
    assert!(missing.starts_with("Never: no TLS connection to Redis at"), "{missing}");
}

#[test]
fn an_expired_certificate_is_refused() {
    let server = TlsServer::with("20200102000000Z", "tls-auth-clients no");
    let said = server.answer();
    let start = format!("Never: no TLS connection to Redis at {}/0: ", server.url("localhost"));
    assert!(said.starts_with(&start) && said.contains("certificate expired"), "{said}");
}

/// Message if the server requires a client certificate, and the client has none.
pub(super) const WANTED: &str = "Redis requires a certificate of its clients, and urlseen has \
    presented none; set redis.tls_cert and redis.tls_key to the files of a certificate that the \
    server trusts, or set tls-auth-clients no (or optional) on the server";

#[test]
fn a_plain_client_at_a_tls_port_and_the_reverse_are_reported() {
    let server = TlsServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let plain = format!("redis://127.0.0.1:{}", server.port);
    let found = runtime.block_on(trouble(&plain));
    assert!(matches!(found, LinkError::HungUp { .. }), "{found:?}");

    let port = free_port();
    let plain = Server::start(&["--bind", "127.0.0.1", "--port", &port]);
    let url = format!("rediss://localhost:{port}");
    // Redis reads the bytes of the TLS handshake as the start of a command, and waits for the end
    // of this command.
    let cause = "no answer within 500ms (a port without TLS never gives one)";
    let said = answer_within("500", &url, &server.folder().join("ours.pem"));
    assert_eq!(
        said,
        format!(
            "Later: cannot reach Redis at {url}/0: {cause}; check that the server runs and that \
             redis.url is correct"
        )
    );
    drop(plain);
}

#[test]
fn a_server_that_closes_the_handshake_is_tried_again() {
    let server = TlsServer::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The server closes the connection after the client's greeting: once with a FIN, once with a
    // reset.
    let impostor = thread::spawn(move || {
        let mut client = listener.accept().unwrap().0;
        assert!(client.read(&mut [0; 1 << 14]).unwrap() > 0);
        drop(client);
        let mut client = listener.accept().unwrap().0;
        client.read_exact(&mut [0]).unwrap();
    });
    for _ in 0..2 {
        let said = answer(&format!("rediss://localhost:{port}"), &server.folder().join("ours.pem"));
        assert_eq!(
            said,
            format!(
                "Later: Redis at rediss://localhost:{port}/0 closed the new connection before it \
                 answered anything over TLS; either the server has too many clients (maxclients), \
                 or the port is not its tls-port (without TLS, write redis:// in redis.url), or it \
                 is shutting down: its log has the reason"
            )
        );
    }
    impostor.join().unwrap();
}
