//! proto
mod crawl;
mod limit;
use crawl::{Crawl, fingerprint};
use limit::Limit;
use std::time::Instant;
use urlseen::filter::native::{Native, Probe};
use urlseen::filter::{Capacity, ErrorRate, Seed, Shards, Sizing, Verdict};

fn main() {
    let cap: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let sizing = Sizing::new(Capacity::new(cap).unwrap(), ErrorRate::new(1e-8).unwrap());
    let native = Native::new(Seed::new(1), sizing.geometry());
    let mut shards = Shards::allocate(native, 0, 1).unwrap();
    let mut crawl = Crawl::new(cap / 2);
    let t = Instant::now();
    shards.set_all((0..cap / 2).map(|k| native.probe(&fingerprint(k))));
    println!("fill {:.1} ns/key", t.elapsed().as_nanos() as f64 / (cap / 2) as f64);
    let p: Vec<Probe> =
        crawl.keys(300).into_iter().map(|k| native.probe(&fingerprint(k))).collect();
    let fps: Vec<_> = crawl.keys(300).into_iter().map(fingerprint).collect();
    let best = |name: &str, work: &mut dyn FnMut()| {
        let mut min = f64::MAX;
        for _ in 0..20000 {
            let t = Instant::now();
            work();
            min = min.min(t.elapsed().as_nanos() as f64 / 300.0);
        }
        println!("hot {name}: {min:.1}");
    };
    best("test_all", &mut || {
        std::hint::black_box(shards.test_all(p.iter().copied()));
    });
    best("set_all", &mut || {
        shards.set_all(p.iter().copied());
    });
    best("hash", &mut || {
        fps.iter().for_each(|k| {
            std::hint::black_box(native.probe(k));
        })
    });
    let mut limit = Limit::new(sizing.geometry().bytes());
    let mut times = vec![vec![]; 6];
    const N: usize = 20_000;
    let mut unseen: Vec<Probe> = vec![];
    for _ in 0..300 {
        let p: Vec<Probe> =
            crawl.keys(N).into_iter().map(|k| native.probe(&fingerprint(k))).collect();
        let mut time =
            |n: usize, t: Instant| times[n].push(t.elapsed().as_nanos() as f64 / N as f64);
        let places = limit.places(N * 2);
        let t = Instant::now();
        limit.change(&places);
        time(0, t);
        let t = Instant::now();
        for b in p.chunks(1000) {
            std::hint::black_box(shards.test_all(b.iter().copied()));
        }
        time(1, t);
        let p: Vec<Probe> =
            crawl.keys(N).into_iter().map(|k| native.probe(&fingerprint(k))).collect();
        let t = Instant::now();
        for b in p.chunks(1000) {
            let v = shards.test_all(b.iter().copied());
            unseen.clear();
            unseen.extend(b.iter().zip(v).filter(|(_, v)| *v == Verdict::Unseen).map(|(p, _)| *p));
            shards.set_all(unseen.iter().copied());
        }
        time(2, t);
        let p: Vec<Probe> =
            crawl.keys(N).into_iter().map(|k| native.probe(&fingerprint(k))).collect();
        let t = Instant::now();
        for b in p.chunks(1000) {
            let v = shards.test_all(b.iter().copied());
            unseen.clear();
            unseen.extend(b.iter().zip(v).filter(|(_, v)| *v == Verdict::Unseen).map(|(p, _)| *p));
        }
        time(3, t);
        let p: Vec<Probe> =
            crawl.keys(N).into_iter().map(|k| native.probe(&fingerprint(k))).collect();
        let t = Instant::now();
        for b in p.chunks(200) {
            let v = shards.test_all(b.iter().copied());
            unseen.clear();
            unseen.extend(b.iter().zip(v).filter(|(_, v)| *v == Verdict::Unseen).map(|(p, _)| *p));
            shards.set_all(unseen.iter().copied());
        }
        time(4, t);
        let p: Vec<_> = crawl.keys(N).into_iter().map(fingerprint).collect();
        let t = Instant::now();
        for b in p.chunks(1000) {
            let b: Vec<Probe> = b.iter().map(|f| native.probe(f)).collect();
            let v = shards.test_all(b.iter().copied());
            unseen.clear();
            unseen.extend(b.iter().zip(v).filter(|(_, v)| *v == Verdict::Unseen).map(|(p, _)| *p));
            shards.set_all(unseen.iter().copied());
        }
        time(5, t);
    }
    for (n, t) in
        ["limit", "test_all", "test+set 1000", "test+collect", "test+set 200", "hash+test+set"]
            .iter()
            .zip(&mut times)
    {
        t.sort_by(f64::total_cmp);
        println!("{n}: min {:.1} p10 {:.1} med {:.1}", t[0], t[30], t[150]);
    }
}
