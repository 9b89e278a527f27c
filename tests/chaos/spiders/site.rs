//! Web site on loopback: a tree of pages. Each page is linked from its parent alone, so a page
//! whose links are lost loses all pages below it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// Number of pages of the tree.
const PAGES: usize = 400;

/// Number of links from each page to pages below it.
const CHILDREN: usize = 5;

/// Pages of which one has a link that spiders do not filter.
const AGAIN: usize = 3;

/// Time from a request to its answer, in which a spider holds the request.
const LATENCY: Duration = Duration::from_millis(10);

/// Web site that serves its pages until the program ends.
pub(crate) struct Site {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Number of fetches of each page, by path.
    hits: Mutex<HashMap<String, u64>>,
    /// True while all answers wait.
    is_held: AtomicBool,
}

impl Site {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                // A killed spider breaks its connections.
                thread::spawn(move || drop(serve(&client, &state)));
            }
        });
        Ok(Self { address, state })
    }

    /// Returns the URL of the first page.
    pub(crate) fn url(&self) -> String {
        format!("http://{}{}?a=1&b=2", self.address, page(0))
    }

    /// Returns the paths of all pages.
    pub(crate) fn paths() -> Vec<String> {
        (0..PAGES).map(page).chain((0..PAGES).step_by(AGAIN).map(again)).collect()
    }

    /// Lets all answers wait, or no longer.
    pub(crate) fn hold(&self, is_held: bool) {
        self.state.is_held.store(is_held, Ordering::Relaxed);
    }

    /// Returns how often each page was fetched.
    pub(crate) fn hits(&self) -> HashMap<String, u64> {
        self.state.hits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of pages that were fetched.
    pub(crate) fn fetched(&self) -> usize {
        self.state.hits.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn page(number: usize) -> String {
    format!("/page/{number}")
}

fn again(number: usize) -> String {
    format!("/again/{number}")
}

/// Answers the requests of a connection until it ends.
fn serve(client: &TcpStream, state: &State) -> Result<()> {
    client.set_nodelay(true)?;
    let mut lines = BufReader::new(client).lines();
    while let Some(first) = lines.next().transpose()? {
        for line in lines.by_ref() {
            if line?.is_empty() {
                break;
            }
        }
        let path = first.split([' ', '?']).nth(1).unwrap_or_default();
        let mut counts = state.hits.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(path.to_owned()).or_default() += 1;
        drop(counts);
        thread::sleep(LATENCY);
        while state.is_held.load(Ordering::Relaxed) {
            thread::sleep(LATENCY);
        }
        let body = links(path);
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length:";
        write!(&*client, "{head} {length}\r\n\r\n{body}")?;
    }
    Ok(())
}

/// Returns the links of a page: to pages above it, and to its children, which have no other link.
fn links(path: &str) -> String {
    let Some(number) = path.strip_prefix("/page/").and_then(|it| it.parse::<usize>().ok()) else {
        return String::new();
    };
    let above = [0, number.saturating_sub(1) / CHILDREN];
    let below = (1..=CHILDREN).map(|child| CHILDREN * number + child).filter(|it| *it < PAGES);
    let mut body = Vec::new();
    for target in above.into_iter().chain(below) {
        // Both are the same request.
        for query in ["a=1&amp;b=2", "b=2&amp;a=1"] {
            body.push(format!("<a href=\"{}?{query}\">{target}</a>", page(target)));
        }
    }
    if number.is_multiple_of(AGAIN) {
        body.push(format!("<a class=\"again\" href=\"{}\">again</a>", again(number)));
    }
    body.concat()
}
