//! Certificates from the configuration: `redis.tls_ca`, `redis.tls_cert` and `redis.tls_key`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::tls::{TlsServer, WANTED, certificate, openssl};
use crate::preflight::Server;
use crate::util::binary::{Output, urlseen};
use crate::util::redis::free_port;

/// End of the validity of the certificates.
const END: &str = "20991231235959Z";

/// Starts a server that requires a certificate, with the files of two clients. The server trusts
/// the authority of the client `ann`, and not the one of the client `eve`.
fn server(settings: &str) -> TlsServer {
    let server = TlsServer::with(END, &format!("tls-auth-clients yes {settings}"));
    certificate(server.folder(), "ann", "ours", END);
    certificate(server.folder(), "eve", "theirs", END);
    server
}

/// Runs a command with these files. Each pair is the end of a configuration key, such as `ca` for
/// `redis.tls_ca`, and the name of a file.
fn command(server: &TlsServer, words: &[&str], files: &[(&str, &str)]) -> Output {
    command_at(&server.url("localhost"), server, words, files)
}

/// Does the same with another URL.
fn command_at(url: &str, server: &TlsServer, words: &[&str], files: &[(&str, &str)]) -> Output {
    let mut run = urlseen(words).env("URLSEEN_REDIS__URL", url);
    run = run.env("SSL_CERT_FILE", "/nowhere").env("URLSEEN_FILTER__CAPACITY", "1000");
    for (key, file) in files {
        let variable = format!("URLSEEN_REDIS__TLS_{}", key.to_uppercase());
        run = run.env(&variable, server.folder().join(file));
    }
    run.output()
}

const ANN: [(&str, &str); 3] = [("ca", "ours.pem"), ("cert", "ann.pem"), ("key", "ann.key")];

#[test]
fn a_crawl_runs_with_a_certificate_that_the_server_trusts_and_with_no_other() {
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        let server = server(&format!("tls-protocols {protocol}"));
        let items = "https://a.example/ https://b.example/ https://a.example/ nonsense";
        server.server.run::<()>(&format!("RPUSH demo:discovered {items}"));
        let ran = command(&server, &["run", "--drain"], &ANN);
        assert_eq!(ran.code(), Some(0), "{protocol}: {}", ran.stderr);
        let passed: Vec<String> = server.server.run("LRANGE demo:unseen 0 -1");
        assert_eq!(passed, ["https://a.example/", "https://b.example/"]);
        // A command opens its own connection with the same files.
        let listed = command(&server, &["rejects", "list"], &ANN);
        assert_eq!(listed.code(), Some(0), "{protocol}: {}", listed.stderr);
        assert!(String::from_utf8_lossy(&listed.stdout).contains("nonsense"), "{protocol}");

        let without = command(&server, &["run", "--drain"], &ANN[..1]);
        assert_eq!(without.code(), Some(3), "{protocol}: {}", without.stderr);
        assert!(without.stderr.contains(WANTED), "{protocol}: {}", without.stderr);

        let wrong = [ANN[0], ("cert", "eve.pem"), ("key", "eve.key")];
        let refused = command(&server, &["run", "--drain"], &wrong);
        assert_eq!(refused.code(), Some(3), "{protocol}: {}", refused.stderr);
        let message = "Redis refused the certificate in redis.tls_cert with the TLS alert \
                       UnknownCA; it must be valid today and signed by an authority in the \
                       server's tls-ca-cert-file";
        assert!(refused.stderr.contains(message), "{protocol}: {}", refused.stderr);

        let other = [("ca", "theirs.pem"), ANN[1], ANN[2]];
        let untrusted = command(&server, &["run", "--drain"], &other);
        assert_eq!(untrusted.code(), Some(3), "{protocol}: {}", untrusted.stderr);
        assert!(untrusted.stderr.contains("UnknownIssuer"), "{protocol}: {}", untrusted.stderr);

        server.server.run::<()>("CONFIG SET tls-auth-clients optional");
        let listed = command(&server, &["rejects", "list"], &ANN[..1]);
        assert_eq!(listed.code(), Some(0), "{protocol}: {}", listed.stderr);
    }
}

/// Starts a Sentinel that accepts only TLS, with the certificate of `primary`. Returns it with its
/// port.
fn sentinel(primary: &TlsServer) -> (Server, String) {
    let (folder, port) = (TempDir::new().unwrap(), free_port());
    let file = |name: &str| primary.folder().join(name).display().to_string();
    let text = format!(
        "port 0\ntls-port {port}\ntls-replication yes\ntls-auth-clients yes\n\
         tls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n\
         sentinel resolve-hostnames yes\nsentinel announce-hostnames yes\n\
         sentinel monitor mymaster localhost {} 1\n",
        file("redis.pem"),
        file("redis.key"),
        file("ours.pem"),
        primary.port
    );
    fs::write(Server::config(&folder), text).unwrap();
    (Server::start_in(folder, &["--sentinel", "--bind", "127.0.0.1"]), port)
}

#[test]
fn sentinels_and_their_primary_get_the_same_certificate() {
    let server = server("");
    let (_sentinel, port) = sentinel(&server);
    server.server.run::<()>("RPUSH demo:discovered https://a.example/ https://a.example/");
    let url = format!("rediss+sentinel://localhost:{port}/mymaster");
    let ran = command_at(&url, &server, &["run", "--drain"], &ANN);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert_eq!(server.server.run::<Vec<String>>("LRANGE demo:unseen 0 -1"), ["https://a.example/"]);
    let without = command_at(&url, &server, &["run", "--drain"], &ANN[..1]);
    assert_eq!(without.code(), Some(3), "{}", without.stderr);
    assert!(without.stderr.contains(WANTED), "{}", without.stderr);
}

#[test]
fn files_that_do_not_fit_are_problems_of_the_configuration() {
    let server = server("");
    let folder = server.folder();
    let key = fs::read_to_string(folder.join("ann.key")).unwrap();
    // Each of these files has a part of the private key. Messages must not show this part.
    let secret = key.lines().nth(1).unwrap();
    fs::write(folder.join("cut.key"), &key[..key.len() / 2]).unwrap();
    fs::write(folder.join("invalid.key"), key.replace(secret, &format!("{secret}~"))).unwrap();
    openssl(
        folder,
        &["pkey", "-in", "ann.key", "-aes128", "-passout", "pass:x", "-out", "locked.key"],
    );
    let no_key = "the file has no valid private key in PEM form";
    for (cert, key, fault) in [
        (
            "ann.pem",
            "eve.key",
            "the key does not belong to the first certificate of redis.tls_cert",
        ),
        ("ann.pem", "cut.key", no_key),
        ("ann.pem", "invalid.key", no_key),
        ("ann.pem", "locked.key", no_key),
        ("ann.pem", "ann.pem", no_key),
        ("ann.key", "ann.key", "the file has no valid certificate in PEM form"),
        ("missing.pem", "ann.key", "the file cannot be read: No such file or directory"),
        (".", "ann.key", "the file cannot be read: Is a directory"),
    ] {
        let found = refusal(&server, &[ANN[0], ("cert", cert), ("key", key)]);
        assert!(found.contains(fault) && !found.contains(secret), "{cert} {key}: {found}");
    }
    let found = refusal(&server, &[("ca", "ann.key"), ("cert", "."), ("key", "cut.key")]);
    for key in ["redis.tls_ca is", "redis.tls_cert is", "redis.tls_key is", "3 problems"] {
        assert!(found.contains(key) && !found.contains(secret), "{key}: {found}");
    }
}

/// Returns the message of a daemon that refuses its configuration.
fn refusal(server: &TlsServer, files: &[(&str, &str)]) -> String {
    let refused = command(server, &["run", "--drain"], files);
    assert_eq!(refused.code(), Some(2), "{}", refused.stderr);
    refused.stderr
}

/// An operator renames new files over old ones while the daemon runs.
#[test]
fn a_file_that_is_damaged_later_is_read_again_until_it_is_whole() {
    let server = server("");
    let run = |words: &[&str]| urlseen(words).env("URLSEEN_REDIS__URL", server.url("localhost"));
    let mut run = run(&["run"]);
    for (key, file) in ANN {
        let variable = format!("URLSEEN_REDIS__TLS_{}", key.to_uppercase());
        run = run.env(&variable, server.folder().join(file));
    }
    let mut daemon = run.env("URLSEEN_FILTER__CAPACITY", "1000").start();
    let soon = crate::util::wait::SOON;
    daemon.wait_for_line("this daemon has taken the lease", soon);
    let [cert, kept] = ["ann.pem", "kept.pem"].map(|name| server.folder().join(name));
    move_to(&cert, &kept);
    server.server.run::<i64>("CLIENT KILL TYPE normal SKIPME yes");
    daemon.wait_for_line("redis.tls_cert is", soon);
    move_to(&kept, &cert);
    server.server.run::<()>("RPUSH demo:discovered https://a.example/");
    crate::preflight::wait_until("the item is in the sink", || {
        server.server.run::<i64>("LLEN demo:unseen") == 1
    });
}

fn move_to(from: &Path, to: &Path) {
    fs::rename(from, to).unwrap();
}
