//! Runs kernels (hot loops, such as the hash of a key) with fixed input. `scripts/instructions`
//! counts their instructions with callgrind. Only instructions inside [`counted`] count. The counts
//! before each call of [`report`] belong to the kernel that the call names.
//!
//! Prints the features of the processor, then a line for each kernel: `{"kernel", "unit",
//! "units"}`.

use std::hint::black_box;
use std::path::Path;

use serde_json::json;
use urlseen_engine::engine::store::{Keeping, Local};
use urlseen_engine::engine::{Engine, Parts, Threads};
use urlseen_engine::item::batch::{Batch, Judged};
use urlseen_engine::item::{Form, Items, Options, Reader};
use urlseen_filter::Native;
use urlseen_filter::choice::{Fsync, ItemForm};
use urlseen_filter::{FilterSpec, KeyHash, Kind, Parameters, Seed, Shards, Sizing};
use urlseen_fingerprint::Request;
use urlseen_fingerprint::canonical::CanonicalForm;
use urlseen_fingerprint::{Algorithm, Fingerprint, FingerprintSpec, Fingerprinter};
use urlseen_storage::{Folder, StoragePolicy, StorageSpec};

mod links;

/// Options of the kernels that read items.
fn options() -> Options {
    Options::new(Form::Item(ItemForm::Auto), Algorithm::Scrapy)
}

/// Runs a kernel. Callgrind counts from the entry of this function to its return.
#[inline(never)]
fn counted(kernel: &mut dyn FnMut()) {
    kernel();
    // This keeps the compiler from turning the call into a jump, so that the function really
    // returns.
    black_box(());
}

/// Runs a kernel twice: the first run warms up its buffers, and the second run is counted.
fn count(name: &str, unit: &str, units: usize, mut kernel: impl FnMut()) {
    kernel();
    count_once(name, unit, units, kernel);
}

/// Runs a kernel that can run only once.
fn count_once(name: &str, unit: &str, units: usize, mut kernel: impl FnMut()) {
    counted(&mut kernel);
    report(name, unit, units);
}

/// Prints the name of the kernel that was just counted. When the program enters this function,
/// callgrind writes its counts and sets them to zero.
#[inline(never)]
fn report(name: &str, unit: &str, units: usize) {
    println!("{}", json!({"kernel": name, "unit": unit, "units": units}));
}

fn urls(kind: &str, links: &[String]) {
    let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy);
    count(&format!("canonical URL, {kind}"), "link", links.len(), || {
        for link in links {
            let _ = black_box(fingerprinter.canonical(&Request::get(black_box(link))));
        }
    });
    count(&format!("fingerprint, {kind}"), "link", links.len(), || {
        for link in links {
            let _ = black_box(fingerprinter.fingerprint(&Request::get(black_box(link))));
        }
    });
    let old = FingerprintSpec { canonical: CanonicalForm::W3lib24, ..FingerprintSpec::default() };
    let mut fingerprinter = Fingerprinter::new(old);
    count(&format!("canonical URL of w3lib 2.4, {kind}"), "link", links.len(), || {
        for link in links {
            let _ = black_box(fingerprinter.canonical(&Request::get(black_box(link))));
        }
    });
}

fn items(kind: &str, items: &[impl AsRef<[u8]>]) {
    let mut reader = Reader::new(options());
    count(&format!("read {kind} item"), "item", items.len(), || {
        for item in items {
            let _ = black_box(reader.read(black_box(item.as_ref())));
        }
    });
}

fn filter(native: Native, fingerprints: &[Fingerprint]) {
    let mut shards = Shards::allocate(native, 1000).expect("memory");
    let key_hashes: Vec<KeyHash> =
        fingerprints.iter().map(|fingerprint| native.key_hash(fingerprint)).collect();
    count("key hash", "key", key_hashes.len(), || {
        for fingerprint in fingerprints {
            black_box(native.key_hash(black_box(fingerprint)));
        }
    });
    let test = |shards: &Shards| {
        let mut verdicts = Vec::new();
        shards.test_all(black_box(&key_hashes), &mut verdicts);
        black_box(verdicts);
    };
    count("test of an unseen key", "key", key_hashes.len(), || test(&shards));
    count_once("set", "key", key_hashes.len(), || {
        shards.set_all(black_box(&key_hashes));
    });
    count("test of a seen key", "key", key_hashes.len(), || test(&shards));
}

/// Inserts keys into a filter that grows from a hundredth of their number.
fn two_choice() {
    const KEYS: u64 = 200_000;
    let parameters = Kind::TWO_CHOICE.read(&|name| match name {
        "filter.capacity" => Some((KEYS / 100).to_string()),
        "filter.grow_to" => Some(KEYS.to_string()),
        "filter.error_rate" => Some("1e-8".to_owned()),
        "filter.seed" => Some("1".to_owned()),
        _ => None,
    });
    let parameters = parameters.expect("parameters of the kind");
    let mut filter = parameters.build().expect("memory");
    let hasher = parameters.hasher();
    let key_hash = |n: u64| {
        let mut raw = [0; 20];
        // The leading byte is that of a digest: all values are equally frequent.
        raw[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        hasher.key_hash(&Fingerprint::Raw20(raw))
    };
    let key_hashes: Vec<KeyHash> = (0..KEYS).map(key_hash).collect();
    count_once("two-choice, insert while it grows", "key", key_hashes.len(), || {
        filter.insert(black_box(&key_hashes)).expect("memory");
    });
    count_once("two-choice, test of a seen key", "key", key_hashes.len(), || {
        let mut verdicts = Vec::new();
        filter.test(black_box(&key_hashes), &mut verdicts);
        black_box(verdicts);
    });
}

/// Passes the items to the engine, and returns the batch with its verdicts. The filter has seen
/// none of the items.
fn judged(store: &mut Local, items: &[String]) -> Batch<Judged> {
    let items: Items = items.iter().map(String::as_bytes).collect();
    store.engine.submit(Batch::new(items));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(store.engine.judged()).expect("the engine works")
}

/// Counts the instructions that log the second of two batches.
fn batch(layout: Native, sizing: &Sizing, items: &[String], folder: &Path) {
    let parameters = Parameters::native(sizing, Some(layout.seed));
    let threads = Threads::start(1).expect("a thread");
    let parts = Parts::local(parameters.clone(), options(), threads);
    let engine = Engine::start(&parts).expect("the engine starts");
    let keeping = Keeping {
        spec: StorageSpec {
            crawl: "instructions".to_owned(),
            filter: FilterSpec { parameters, fingerprint: Algorithm::Scrapy.into() },
        },
        policy: StoragePolicy {
            fsync: Fsync::Never,
            snapshot_bytes: u64::MAX,
            ..StoragePolicy::default()
        },
        emit_again: false,
    };
    let mut store = Local::kept(engine, Folder::open(folder).expect("a folder"), keeping);
    store.recover_to(None, None).expect("an empty folder");
    let (first, second) = items.split_at(items.len() / 2);
    let first = judged(&mut store, first);
    store.append(first).expect("room on the disk");
    let mut batch = Some(judged(&mut store, second));
    // The logged batch is dropped later, so that its end is not counted.
    let mut logged = None;
    count_once("log a batch", "unseen item", second.len(), || {
        let batch = batch.take().expect("once");
        logged = Some(store.append(batch).expect("room on the disk"));
    });
    black_box(logged);
}

/// Returns the features of the processor by which urlseen chooses the variants of its kernels.
fn processor() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let offered = [
        ("sha", is_x86_feature_detected!("sha")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vbmi2", is_x86_feature_detected!("avx512vbmi2")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let offered: [(&str, bool); 0] = [];
    let names = offered.into_iter().filter_map(|(name, is_there)| is_there.then_some(name));
    std::iter::once(std::env::consts::ARCH).chain(names).collect()
}

fn main() {
    println!("{}", json!({"processor": processor().join(" ")}));
    let (real, busy) = (links::real(), links::busy());
    let (real, busy) = (&real[..500], &busy[..500]);
    urls("real link", real);
    urls("busy link", busy);

    let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy);
    // Each link has a different query, so all fingerprints differ.
    let fingerprints: Vec<Fingerprint> = (0..2000)
        .map(|n| fingerprinter.fingerprint(&Request::get(&format!("http://example.com/?n={n}"))))
        .collect::<Result<_, _>>()
        .expect("links");
    let ready: Vec<_> = fingerprints.iter().map(ToString::to_string).collect();
    let tab: Vec<_> = ready.iter().map(|hex| format!("{hex}\t{:053}", 7)).collect();
    items("fingerprint", &ready);
    items("tab", &tab);
    items("url", real);
    let pickles: Vec<_> = real.iter().map(|link| links::pickled(link)).collect();
    items("pickle", &pickles);
    let before = ready.iter().map(|hex| format!("{hex}\t&priority=10\t").into_bytes());
    let flagged: Vec<_> =
        before.zip(&pickles).map(|(it, pickle)| [&it[..], pickle].concat()).collect();
    items("flagged pickle", &flagged);

    let sizing =
        Sizing::new("1M".parse().expect("a capacity"), "1e-8".parse().expect("an error rate"));
    let native = Native::new(Seed::new(1), sizing.geometry);
    filter(native, &fingerprints);
    two_choice();
    let folder = tempfile::tempdir().expect("a folder");
    batch(native, &sizing, &tab, folder.path());
}
