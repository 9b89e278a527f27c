//! Crawler with many tasks that fetches each page of a site once.
//!
//! ```text
//! cargo run --example crawler                               # serves and crawls a small site
//! cargo run --example crawler -- http://127.0.0.1:8000/     # crawls this site
//! cargo run --example crawler -- http://127.0.0.1:8000/ redis://127.0.0.1/
//! ```
//!
//! With the URL of a Redis, crawlers on many machines share the filter, so only one of them fetches
//! each page.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use html5gum::{Token, Tokenizer};
use reqwest::Client;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use url::Url;
use urlseen::{
    AsyncFilter, AsyncFilterExt, AsyncRedisFilter, FilterSpec, Fingerprinter, LocalFilter, Request,
};

/// Number of pages that are fetched at once.
const AT_ONCE: usize = 8;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let spec = FilterSpec::native(10_000_000, 1e-6);
    let (start, redis) = match arguments.as_slice() {
        [] => (site::serve().await?, None),
        [start] => (start.clone(), None),
        [start, redis] => (start.clone(), Some(redis)),
        _ => return Err("give the page to start with, and a Redis if there is one".into()),
    };
    let seen: Box<dyn AsyncFilter> = match redis {
        None => Box::new(LocalFilter::new(&spec)?),
        Some(redis) => Box::new(AsyncRedisFilter::open(redis, "crawler:filter", &spec).await?),
    };
    let fetched = crawl(&start, seen).await?;
    println!("{} pages", fetched.len());
    for (page, links) in fetched {
        println!("{links:>6} links  {page}");
    }
    Ok(())
}

/// Fetches `start`, and all pages of the same host that can be reached by links. Returns each page
/// with the number of its links.
async fn crawl(start: &str, seen: Box<dyn AsyncFilter>) -> Outcome<BTreeMap<String, usize>> {
    let start = Url::parse(start)?;
    let crawl = Arc::new(Crawl {
        client: Client::new(),
        host: start.host_str().ok_or("the first page has no host")?.to_owned(),
        seen,
        fingerprinter: Mutex::new(Fingerprinter::default()),
        slots: Semaphore::new(AT_ONCE),
    });
    let (mut fetched, mut tasks) = (BTreeMap::new(), JoinSet::new());
    for page in crawl.unseen([start]).await? {
        tasks.spawn(Arc::clone(&crawl).fetch(page));
    }
    while let Some(done) = tasks.join_next().await {
        let (page, links) = done??;
        fetched.insert(page.to_string(), links.len());
        for page in crawl.unseen(links).await? {
            tasks.spawn(Arc::clone(&crawl).fetch(page));
        }
    }
    Ok(fetched)
}

/// State that all tasks of the crawler share.
struct Crawl {
    client: Client,
    host: String,
    seen: Box<dyn AsyncFilter>,
    fingerprinter: Mutex<Fingerprinter>,
    slots: Semaphore,
}

impl Crawl {
    /// Returns the links to unseen pages of the host. One call of the filter tests all links.
    async fn unseen(&self, links: impl IntoIterator<Item = Url>) -> Outcome<Vec<Url>> {
        let links: Vec<Url> =
            links.into_iter().filter(|link| link.host_str() == Some(&self.host)).collect();
        let fingerprints = {
            let mut fingerprinter = self.fingerprinter.lock().expect("nothing panics with it");
            let of = |link: &Url| fingerprinter.fingerprint(&Request::get(link.as_str()));
            links.iter().map(of).collect::<Result<Vec<_>, _>>()?
        };
        let is_new = self.seen.extend(fingerprints).await?;
        Ok(links.into_iter().zip(is_new).filter(|(_, is_new)| *is_new).map(|(it, _)| it).collect())
    }

    /// Fetches a page. Returns the page with its links.
    async fn fetch(self: Arc<Self>, page: Url) -> Outcome<(Url, Vec<Url>)> {
        let _slot = self.slots.acquire().await?;
        let body = self.client.get(page.clone()).send().await?.error_for_status()?.text().await?;
        let links = links(&body).filter_map(|link| page.join(&link).ok()).collect();
        Ok((page, links))
    }
}

/// Returns the `href` of each anchor in a page.
fn links(html: &str) -> impl Iterator<Item = String> {
    Tokenizer::new(html).filter_map(|token| match token {
        Ok(Token::StartTag(tag)) if &**tag.name == b"a" => {
            let href = tag.attributes.get(b"href".as_slice())?;
            String::from_utf8(href.to_vec()).ok()
        }
        _ => None,
    })
}

/// Small site for a trial of the crawler.
mod site {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::extract::Path;
    use axum::response::Html;
    use axum::routing::get;

    use super::Outcome;

    /// Number of pages, not counting the start page.
    pub(super) const PAGES: usize = 50;

    /// Serves the site on a free port, and returns its URL.
    pub(super) async fn serve() -> Outcome<String> {
        serve_counting(Arc::default()).await
    }

    /// Serves the site, and counts the requests for pages.
    pub(super) async fn serve_counting(asked: Arc<AtomicUsize>) -> Outcome<String> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let page = |number: usize| async move {
            asked.fetch_add(1, Ordering::SeqCst);
            Html(page(number))
        };
        let first = page.clone();
        let site = Router::new()
            .route("/", get(|| first(0)))
            .route("/page/{number}", get(|Path(number)| page(number)));
        tokio::spawn(async move { axum::serve(listener, site).await });
        Ok(format!("http://{address}/"))
    }

    /// Makes a page with links to other pages. Each link has several spellings.
    fn page(number: usize) -> String {
        let link = |step: usize| {
            let other = (number + step) % PAGES + 1;
            format!(
                "<a href='/page/{other}?b=2&amp;a=1'>one</a> <a href='/page/{other}?a=1&amp;b=2#x'>\
                 the same</a> <a href='https://example.org/{other}'>elsewhere</a>"
            )
        };
        (1..10).map(link).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn each_page_is_fetched_once() -> Outcome<()> {
        let asked = Arc::new(AtomicUsize::new(0));
        let start = site::serve_counting(Arc::clone(&asked)).await?;
        let seen = LocalFilter::new(&FilterSpec::native(1000, 1e-9))?;
        let fetched = crawl(&start, Box::new(seen)).await?;
        assert_eq!(fetched.len(), site::PAGES + 1);
        assert!(fetched.values().all(|&links| links == 27), "{fetched:?}");
        assert_eq!(asked.load(Ordering::SeqCst), site::PAGES + 1);
        Ok(())
    }
}
