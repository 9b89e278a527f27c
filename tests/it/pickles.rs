//! Checks that urlseen reads pickled requests in the same way as Scrapy and scrapy-redis.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fastrand::Rng;
use flate2::read::GzDecoder;
use serde::Deserialize;
use urlseen_engine::item::ItemForm;
use urlseen_engine::item::{Identity, Options, Reader};
use urlseen_fingerprint::Algorithm;

#[derive(Deserialize)]
struct Header {
    vectors: usize,
}

/// Pickle with its contents according to Python: see `scripts/vectors pickles`.
#[derive(Deserialize)]
pub(crate) struct Vector {
    pub(crate) pickle: String,
    pub(crate) json: Option<String>,
    pub(crate) meta: Option<serde_json::Value>,
    #[serde(default)]
    pub(crate) fingerprints: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    pub(crate) unfiltered: bool,
    score: Option<f64>,
    pub(crate) reason: Option<String>,
}

impl Vector {
    pub(crate) fn pickle(&self) -> Vec<u8> {
        BASE64_STANDARD.decode(&self.pickle).unwrap()
    }
}

pub(crate) fn vectors() -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/pickles.jsonl.gz");
    let mut lines = BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines();
    let header: Header = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let vectors: Vec<Vector> =
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(vectors.len(), header.vectors);
    vectors
}

fn reader(form: ItemForm, algorithm: Algorithm) -> Reader {
    Reader::new(Options { scored: true, ..Options::new(form.into(), algorithm) })
}

#[test]
fn each_recorded_pickle_is_read_in_the_same_way_as_by_scrapy() {
    let vectors = vectors();
    let (mut read, mut in_json, mut refused) = (0, 0, 0);
    for &algorithm in Algorithm::all() {
        let mut pickled = reader(ItemForm::Pickle, algorithm);
        let mut auto = reader(ItemForm::Auto, algorithm);
        for vector in &vectors {
            let pickle = vector.pickle();
            let item = pickled.read(&pickle);
            if let Some(reason) = &vector.reason {
                let found = item.unwrap_err().to_string();
                assert!(found.contains(reason), "{found:?} for {}", vector.pickle);
                refused += 1;
                continue;
            }
            let item = item.unwrap_or_else(|error| panic!("{error}: {}", vector.pickle));
            check(vector, algorithm, &item.identity);
            let score = vector.score.unwrap_or(0.0);
            assert_eq!(item.score.to_bits(), score.to_bits(), "{}", vector.pickle);
            assert_eq!(auto.read(&pickle).unwrap(), item);
            read += 1;
            if let Some(json) = &vector.json {
                let item = auto.read(json.as_bytes()).unwrap();
                check(vector, algorithm, &item.identity);
                assert_eq!(Some(item.score), vector.score, "{json}");
                in_json += 1;
            }
        }
    }
    assert!(read > 2000 && in_json > 1000 && refused > 100, "{read}, {in_json}, {refused}");
}

#[track_caller]
fn check(vector: &Vector, algorithm: Algorithm, identity: &Identity) {
    match identity {
        Identity::Unfiltered => assert!(vector.unfiltered, "{}", vector.pickle),
        Identity::Dropped(rule) => panic!("{} is dropped by the rule {rule}", vector.pickle),
        Identity::Fingerprint(found) => {
            let expected = vector.fingerprints[algorithm.name()].as_str();
            assert!(!vector.unfiltered, "{}", vector.pickle);
            assert_eq!(Some(&*found.to_string()), expected, "{algorithm}: {}", vector.pickle);
        }
    }
}

/// Changes, removes, doubles and joins bytes of real pickles. Each result must be read or refused,
/// without any other effect. `FUZZ_SEED` sets the seed, and `FUZZ_COUNT` the number of pickles
/// (200,000).
#[test]
fn mutated_pickles_are_read_or_refused() {
    let number = |name, otherwise| {
        std::env::var(name).map_or(otherwise, |text| text.parse::<u64>().unwrap())
    };
    let (seed, count) = (number("FUZZ_SEED", 1), number("FUZZ_COUNT", 200_000));
    let mut rng = Rng::with_seed(seed);
    let pickles: Vec<Vec<u8>> =
        vectors().iter().map(Vector::pickle).filter(|pickle| pickle.len() < 4000).collect();
    let mut reader = reader(ItemForm::Pickle, Algorithm::Scrapy);
    let mut read = 0;
    for _ in 0..count {
        let mut pickle = rng.choice(&pickles).unwrap().clone();
        for _ in 0..rng.usize(1..6) {
            mutate(&mut rng, &mut pickle, &pickles);
        }
        read += u64::from(reader.read(&pickle).is_ok());
    }
    assert!(read > count / 100 && read < count, "{read} of {count} read");
}

fn mutate(rng: &mut Rng, pickle: &mut Vec<u8>, others: &[Vec<u8>]) {
    let at = rng.usize(0..=pickle.len());
    let to = pickle.len().min(at + rng.usize(0..9));
    match rng.u8(0..6) {
        0 if at < pickle.len() => pickle[at] = rng.u8(..),
        1 => drop(pickle.drain(at..to)),
        2 => pickle.insert(at, rng.u8(..)),
        3 => {
            let again = pickle[at..to].repeat(rng.usize(1..50));
            pickle.splice(at..at, again);
        }
        4 => {
            let other = rng.choice(others).unwrap();
            let from = rng.usize(0..other.len());
            pickle.truncate(at);
            pickle.extend(&other[from..]);
        }
        _ if at < pickle.len() => pickle[at] ^= 1 << rng.u8(0..8),
        _ => {}
    }
}
