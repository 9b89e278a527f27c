//! The page for browsers: its files, its headers, and who gets it.

use std::net::SocketAddr;

use urlseen_cli::config::{Config, Sources};

use super::{Answer, Endpoint, JSON, ask, connect_tcp};
use crate::tidy::report;
use crate::util::sources::root;

/// Token that the requests of these tests have.
const TOKEN: &str = "not-much-of-a-secret";

/// Requests that show the crawl.
const CRAWL: [&str; 3] = ["GET /status", "GET /samples?after=1", "POST /check"];

/// Requests that show no state of the crawl and no item, or only its counts.
const PROBES: [&str; 3] = ["GET /healthz", "GET /readyz", "GET /metrics"];

/// Paths of the files that the page loads.
fn files() -> Vec<String> {
    let html = Endpoint::new().get("/").body;
    let named = html.split(['"']).filter(|it| it.starts_with("page/")).map(|it| format!("/{it}"));
    let scripts = std::fs::read_dir(root().join("src/admin/page")).unwrap();
    let scripts = scripts.map(|file| file.unwrap().path());
    let scripts = scripts.filter(|path| path.extension().is_some_and(|it| it == "js"));
    let scripts = scripts.map(|it| format!("/page/{}", it.file_name().unwrap().display()));
    let mut files = named.chain(scripts).collect::<Vec<_>>();
    files.sort();
    files.dedup();
    files
}

#[test]
fn the_page_and_all_its_files_are_served_with_a_strict_policy() {
    let endpoint = Endpoint::new();
    let files = files();
    assert!(files.contains(&"/page/style.css".to_owned()) && files.len() > 8, "{files:?}");
    for path in files.iter().map(String::as_str).chain(["/", "/status", "/metrics"]) {
        let answer = endpoint.get(path);
        assert_eq!(answer.status, 200, "{path}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'\r\n",
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
            "cache-control: no-store\r\n",
        ] {
            assert!(format!("{}\r\n", answer.head).contains(header), "{path}: {answer:?}");
        }
        let media = match path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ if path == "/" => "text/html; charset=utf-8",
            _ => continue,
        };
        assert!(answer.head.contains(&format!("content-type: {media}")), "{path}: {answer:?}");
    }
}

/// The policy forbids these in the browser. The test finds them before a browser does.
#[test]
fn the_page_has_no_markup_from_data_and_no_asset_from_elsewhere() {
    let endpoint = Endpoint::new();
    let problems = files().into_iter().chain(["/".to_owned()]).flat_map(|path| {
        let text = endpoint.get(&path).body;
        let forbidden = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("];
        let elsewhere = ["https://", "style=\"", "onclick", "<style", "javascript:"];
        let found = forbidden.into_iter().chain(elsewhere).filter(move |it| text.contains(it));
        found.map(move |it| format!("{path} contains {it}")).collect::<Vec<_>>()
    });
    report(problems);
}

/// Listens at all addresses of the machine, and returns the address on loopback.
fn listen_everywhere(endpoint: &Endpoint, token: Option<&str>) -> SocketAddr {
    let env = token.map(|token| ("URLSEEN_ADMIN_TOKEN".into(), token.into()));
    let sources = Sources { env: env.into_iter().collect(), ..Sources::default() };
    let token = Config::load(sources).unwrap().admin_token;
    let server = &endpoint.server;
    let everywhere = "0.0.0.0:0";
    let bound = server.listen_at(everywhere, &[], token.as_ref(), endpoint.view.clone()).unwrap();
    assert!(!bound.ip().is_loopback());
    SocketAddr::from(([127, 0, 0, 1], bound.port()))
}

/// Sends a request with more header lines. A check asks for one item.
fn send(address: SocketAddr, request: &str, headers: &str) -> Answer {
    let body = if request.starts_with("POST") { r#"{"items": ["sa"]}"# } else { "" };
    let length = format!("Content-Length: {}\r\n", body.len());
    let head = format!("{request} HTTP/1.1\r\nHost: localhost\r\n{JSON}{length}{headers}\r\n");
    ask(connect_tcp(address), &format!("{head}{body}"))
}

#[test]
fn on_loopback_no_token_is_necessary() {
    let mut endpoint = Endpoint::new();
    let address = endpoint.listen();
    for request in CRAWL.into_iter().chain(PROBES).chain(["GET /", "GET /page/main.js"]) {
        assert_eq!(send(address, request, "").status, 200, "{request}");
    }
}

#[test]
fn beyond_loopback_without_a_token_only_probes_are_answered() {
    let endpoint = Endpoint::new();
    let address = listen_everywhere(&endpoint, None);
    for request in PROBES {
        assert_eq!(send(address, request, "").status, 200, "{request}");
    }
    for request in CRAWL.into_iter().chain(["GET /", "GET /page/main.js"]) {
        let answer = send(address, request, "Authorization: Bearer \r\n");
        assert_eq!(answer.status, 403, "{request}: {answer:?}");
        assert_eq!(
            answer.body,
            "this address is not on loopback, and the daemon has no token: set \
             URLSEEN_ADMIN_TOKEN in its environment, or use urlseen status on its machine\n"
        );
    }
}

#[test]
fn with_a_token_requests_that_show_the_crawl_need_it() {
    let endpoint = Endpoint::new();
    let address = listen_everywhere(&endpoint, Some(TOKEN));
    for request in PROBES.into_iter().chain(["GET /", "GET /page/main.js"]) {
        let answer = send(address, request, "");
        assert_eq!(answer.status, 200, "{request}");
        assert!(!answer.body.contains(TOKEN));
    }
    for request in CRAWL {
        for header in [
            String::new(),
            format!("Authorization: Bearer {TOKEN}x\r\n"),
            format!("Authorization: Bearer {}\r\n", &TOKEN[1..]),
            format!("Authorization: Basic {TOKEN}\r\n"),
            format!("Authorization: {TOKEN}\r\n"),
            "Authorization: Bearer\r\n".to_owned(),
            "Authorization: Bearer \r\n".to_owned(),
            format!("Cookie: token={TOKEN}\r\n"),
        ] {
            let answer = send(address, request, &header);
            assert_eq!(answer.status, 401, "{request} {header}: {answer:?}");
            assert!(answer.head.contains("www-authenticate: bearer"), "{answer:?}");
            assert!(answer.body.starts_with("this request needs the token"), "{answer:?}");
            assert!(!answer.body.contains(TOKEN));
        }
        let answer = send(address, request, &format!("Authorization: bearer {TOKEN}\r\n"));
        assert_eq!(answer.status, 200, "{request}: {answer:?}");
    }
    assert_eq!(endpoint.get("/status").status, 200, "the socket in the folder needs no token");
}
