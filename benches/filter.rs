//! Time per key of a filter far larger than any cache, beside what the machine could do at best.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use urlseen::filter::native::{Native, Probe};
use urlseen::filter::{Capacity, ErrorRate, Seed, Shards, Sizing, Verdict};
use urlseen::fingerprint::Fingerprint;

const CAPACITY: u64 = 50_000_000;
const ERROR_RATE: f64 = 1e-8;
/// Keys that are prefetched, then tested and set, together.
const BATCH: usize = 1000;
/// Of ten keys, how many were set before.
const SEEN_OF_TEN: u64 = 7;

/// The number's well mixed bits: SplitMix64.
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The number's fingerprint: 20 bytes as good as random.
fn fingerprint(number: u64) -> Fingerprint {
    let mut raw = [0; 20];
    raw[..8].copy_from_slice(&mixed(number).to_le_bytes());
    raw[8..16].copy_from_slice(&mixed(!number).to_le_bytes());
    Fingerprint::Raw20(raw)
}

/// The next batch of a crawl: seven of ten keys from those set, the others new.
struct Crawl {
    asked: u64,
    set: u64,
}

impl Crawl {
    fn batch(&mut self, native: &Native, probes: &mut Vec<Probe>) {
        probes.clear();
        for _ in 0..BATCH {
            self.asked += 1;
            let number = if self.asked % 10 < SEEN_OF_TEN {
                mixed(self.asked) % self.set
            } else {
                self.set += 1;
                self.set
            };
            probes.push(native.probe(&fingerprint(number)));
        }
    }
}

/// Tests keys and sets the unseen, `ahead` keys prefetched at a time; how many were unseen.
fn judge(shards: &mut Shards, probes: &[Probe], ahead: usize) -> usize {
    let mut unseen = 0;
    for group in probes.chunks(ahead) {
        for &probe in group {
            shards.prefetch(probe);
        }
        for &probe in group {
            if shards.test(probe) == Verdict::Unseen {
                shards.set(probe);
                unseen += 1;
            }
        }
    }
    unseen
}

fn test_and_set(criterion: &mut Criterion) {
    let sizing = Sizing::new(
        Capacity::new(CAPACITY).expect("a capacity"),
        ErrorRate::new(ERROR_RATE).expect("an error rate"),
    );
    let native = Native::new(Seed::new(1), sizing.geometry());
    let mut shards = Shards::allocate(native, 0, 1).expect("memory");
    // Half full, so that it stays within its capacity while measured.
    let mut crawl = Crawl { asked: 0, set: CAPACITY / 2 };
    let mut probes = Vec::with_capacity(BATCH);
    for chunk in (0..crawl.set).collect::<Vec<_>>().chunks(BATCH) {
        probes.clear();
        probes.extend(chunk.iter().map(|&number| native.probe(&fingerprint(number))));
        judge(&mut shards, &probes, Shards::AHEAD);
    }

    let mut group = criterion.benchmark_group("filter");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.measurement_time(Duration::from_secs(8)).sample_size(30);
    for ahead in [Shards::AHEAD, BATCH] {
        group.bench_function(format!("test and set, 70 % seen, {ahead} ahead"), |bencher| {
            bencher.iter_batched_ref(
                || {
                    let mut probes = Vec::with_capacity(BATCH);
                    crawl.batch(&native, &mut probes);
                    probes
                },
                |probes| judge(&mut shards, probes, ahead),
                criterion::BatchSize::SmallInput,
            );
        });
    }
    let fingerprints: Vec<_> = (0..BATCH as u64).map(fingerprint).collect();
    group.bench_function("hash", |bencher| {
        bencher.iter(|| {
            for fingerprint in &fingerprints {
                black_box(native.probe(fingerprint));
            }
        });
    });
    drop(shards);
    machine_limit(&mut group, &sizing);
    group.finish();
}

/// What no filter of this size and so many lines a key can be faster than: as many random lines
/// read and written, prefetched in the same way, with nothing computed in between.
fn machine_limit(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    sizing: &Sizing,
) {
    let mut asked = 0;
    let geometry = sizing.geometry();
    let lines = usize::try_from(geometry.bits() / 512).expect("an index");
    let mut memory = memmap2::MmapMut::map_anon(lines * 64).expect("memory");
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    memory.fill(1);
    let memory: &mut [[u64; 8]] = bytemuck::cast_slice_mut(&mut memory);
    let per_batch = BATCH * geometry.lines().get() as usize;
    group.bench_function("the machine's limit", |bencher| {
        bencher.iter_batched_ref(
            || {
                (0..per_batch)
                    .map(|_| {
                        asked += 1;
                        usize::try_from(mixed(asked)).expect("64 bits") % lines
                    })
                    .collect::<Vec<_>>()
            },
            |places| {
                for &place in places.iter() {
                    prefetch(&memory[place]);
                }
                for &place in places.iter() {
                    memory[place][0] |= place as u64;
                }
            },
            criterion::BatchSize::SmallInput,
        );
    });
}

/// As the filter does it.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which touches nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    test_and_set(&mut criterion);
    criterion.final_summary();
}
