//! `urlseen import` and `urlseen export` of filters of RedisBloom, compared with dumps of a real
//! server.

mod fake;
mod files;
mod servers;

use std::collections::HashSet;
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;
use sha1::{Digest, Sha1};
use tempfile::TempDir;
use urlseen_filter::redisbloom::{Filter, Loader};

use crate::util::binary::{Output, Run, urlseen};

/// Filter of a real server with RedisBloom.
#[derive(Deserialize)]
struct Dump {
    name: String,
    /// Arguments of `BF.RESERVE`. `None` if the first addition made the filter.
    reserve: Option<Vec<String>>,
    /// Number of items. Item i, counted from 0, is `sha1(NAME:i)` in hex digits.
    n: usize,
    /// Numbers i of the absent items that the filter reported as seen. The filter was asked about
    /// 20,000 absent items, `sha1(other-NAME:i)`.
    others_seen: HashSet<usize>,
    /// Iterators of the dump, each with its chunk in base64.
    scandump: Vec<(i64, String)>,
}

static DUMPS: LazyLock<Vec<Dump>> = LazyLock::new(|| {
    let file = include_bytes!("../../vectors/redisbloom-scandump.jsonl.gz");
    let mut text = String::new();
    GzDecoder::new(file.as_slice()).read_to_string(&mut text).unwrap();
    let dumps: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(dumps.len(), 6);
    dumps
});

impl Dump {
    fn named(name: &str) -> &'static Self {
        DUMPS.iter().find(|dump| dump.name == name).unwrap()
    }

    fn chunks(&self) -> Vec<(i64, Vec<u8>)> {
        let bytes = |text| BASE64_STANDARD.decode(text).unwrap();
        self.scandump.iter().map(|(iterator, text)| (*iterator, bytes(text))).collect()
    }

    fn filter(&self) -> Filter {
        let mut chunks = self.chunks().into_iter();
        let (iterator, header) = chunks.next().unwrap();
        let mut loader = Loader::new(iterator, &header, 1 << 20).unwrap();
        chunks.for_each(|(iterator, data)| loader.load(iterator, &data).unwrap());
        loader.finish().unwrap()
    }

    /// Returns capacity, error rate and expansion as settings of the configuration.
    fn settings(&self) -> [String; 3] {
        let reserve = self.reserve.clone().unwrap_or_else(|| vec!["0.01".into(), "100".into()]);
        let expansion = self.filter().expansion();
        [
            format!("filter.error_rate={}", reserve[0]),
            format!("filter.capacity={}", reserve[1]),
            format!("filter.expansion={expansion}"),
        ]
    }

    fn items(&self) -> Vec<String> {
        (0..self.n).map(|number| item(&self.name, number)).collect()
    }
}

/// Returns an item of a dump, by its number.
fn item(name: &str, number: usize) -> String {
    let digest = Sha1::digest(format!("{name}:{number}"));
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns the bytes of a dump file, according to the documented format.
fn file_of(chunks: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"RBDUMP 1".to_vec();
    for (iterator, data) in chunks.iter().chain([&(0, Vec::new())]) {
        let mut record = iterator.to_le_bytes().to_vec();
        record.extend((data.len() as u64).to_le_bytes());
        record.extend(data);
        let mut crc = flate2::Crc::new();
        crc.update(&record);
        bytes.extend(&record);
        bytes.extend(crc.sum().to_le_bytes());
    }
    bytes
}

/// Folder for a test's files.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// Prepares `urlseen COMMAND --storage DIR …` with the storage folder of this name.
    fn command(&self, command: &str, state: &str, arguments: &[&str]) -> Run {
        let run = urlseen([command, "--storage"]).arg(self.path(state));
        arguments.iter().fold(run, Run::arg)
    }

    fn import(&self, state: &str, file: &Path) -> Output {
        self.command("import", state, &["--redisbloom-file"]).arg(file).output()
    }

    fn export(&self, state: &str, file: &Path) -> Output {
        self.command("export", state, &["--redisbloom-file"]).arg(file).output()
    }
}

#[track_caller]
fn done(output: &Output) {
    assert_eq!(output.code(), Some(0), "{output:?}");
}

#[track_caller]
fn refused(output: &Output, code: i32, words: &str) {
    assert_eq!(output.code(), Some(code), "{output:?}");
    assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
}
