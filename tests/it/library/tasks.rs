//! `AsyncRedisFilter`: filters in Redis for async tasks.

use std::sync::Arc;

use urlseen::{AsyncFilter, AsyncFilterExt, AsyncRedisFilter, ErrorKind};

use super::cutting::Cutting;
use super::{digests, impatient, kinds, native};
use crate::util::redis::RedisServer;

/// Runs a future on two threads.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(future)
}

#[test]
fn all_methods_work_with_every_kind() {
    let server = RedisServer::start();
    run(async {
        for (spec, _) in kinds() {
            let filter = AsyncRedisFilter::open(&server.url(), "f", &spec).await.unwrap();
            let keys = digests(0..1000);
            let twice = keys.iter().chain(&keys).map(String::as_str);
            let is_new = filter.extend(twice).await.unwrap();
            assert_eq!(is_new, [[true; 1000], [false; 1000]].concat(), "{spec:?}");
            let more = digests(900..1100);
            let seen = filter.contains_all(more.iter().map(String::as_str)).await.unwrap();
            assert_eq!(seen, [[true; 100], [false; 100]].concat(), "{spec:?}");
            filter.delete().await.unwrap();
            assert!(!filter.contains(keys[5].as_str()).await.unwrap(), "{spec:?}");
            assert!(filter.add(keys[5].as_str()).await.unwrap(), "the filter can still be used");
            filter.delete().await.unwrap();
        }
    });
}

#[test]
fn many_tasks_share_one_filter_while_answers_are_lost() {
    let server = RedisServer::start();
    let proxy = Cutting::before(&server);
    run(async {
        let filter = Arc::new(AsyncRedisFilter::open(&proxy.url(), "f", &native()).await.unwrap());
        // The server knows the script now, so the lost answers are those to `add`. A lost answer
        // closes its connection, so all other answers under way on this connection are lost, too.
        assert!(filter.add("the first").await.unwrap());
        proxy.lose_next(3);
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let filter = Arc::clone(&filter);
                tokio::spawn(async move {
                    let mut new = 0;
                    for key in digests(0..300) {
                        new += usize::from(filter.add(key).await.unwrap());
                    }
                    new
                })
            })
            .collect();
        let mut new = 0;
        for task in tasks {
            new += task.await.unwrap();
        }
        assert_eq!((new, proxy.to_lose()), (300, 0));
    });
}

#[test]
fn a_call_finally_fails_and_succeeds_when_redis_is_back() {
    let mut server = RedisServer::start();
    run(async {
        let options = impatient();
        let filter =
            AsyncRedisFilter::open_with(&server.url(), "f", &native(), options).await.unwrap();
        assert!(filter.add("a").await.unwrap());
        server.kill();
        let error = filter.add("b").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Redis);
        assert!(error.to_string().contains("tried 2 times"), "{error}");
        server.restart();
        assert_eq!(filter.extend(["a", "b", "a"]).await.unwrap(), [true, true, false]);
    });
}
