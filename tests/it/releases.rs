//! Storage folders that released versions wrote: `scripts/data/release-folders` has their crawls.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use tempfile::TempDir;

use crate::util::binary::urlseen;
use crate::util::sources::root;

/// URLs that were forgotten after they were seen.
const FORGOTTEN: [usize; 2] = [3, 700];

/// A folder of a release, decompressed.
struct Written {
    name: String,
    folder: TempDir,
}

impl Written {
    fn unpack(packed: &Path) -> Self {
        let folder = TempDir::new().unwrap();
        for file in fs::read_dir(packed).unwrap() {
            let path = file.unwrap().path();
            let mut to = File::create(folder.path().join(path.file_stem().unwrap())).unwrap();
            io::copy(&mut GzDecoder::new(File::open(&path).unwrap()), &mut to).unwrap();
        }
        Self { name: packed.file_name().unwrap().to_str().unwrap().to_owned(), folder }
    }

    /// Runs a command on the folder, with lines as its input. Returns the lines that it prints.
    fn lines(&self, words: &[&str], status: i32, input: &[String]) -> Vec<String> {
        let run = urlseen(words.iter().copied()).arg("--storage").arg(self.folder.path());
        let run = if words == ["check"] { run.arg("-") } else { run };
        let output = run.stdin(input.join("\n")).output();
        assert_eq!(output.code(), Some(status), "{}: {output:?}", self.name);
        output.text().lines().map(str::to_owned).collect()
    }

    fn shown(&self) -> Value {
        serde_json::from_str(&self.lines(&["storage", "show", "--json"], 0, &[]).join("")).unwrap()
    }
}

fn urls(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("http://a.test/{number}")).collect()
}

/// Returns the folders of each release.
fn releases() -> Vec<Vec<PathBuf>> {
    let inside = |folder: &Path| {
        let mut paths: Vec<_> =
            fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let is_release =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("release-");
    let data = inside(&root().join("tests/data")).into_iter();
    data.filter(is_release).map(|release| inside(&release)).collect()
}

#[test]
fn the_folders_of_each_release_are_read_with_all_their_content() {
    let releases = releases();
    assert!(!releases.is_empty());
    for folders in releases {
        assert!(folders.len() >= 10, "{folders:?}");
        read_folders(&folders);
    }
}

fn read_folders(packed: &[PathBuf]) {
    let all = urls(1220);
    let mut of_partitions = vec![0; 1220];
    for written in packed.iter().map(|packed| Written::unpack(packed)) {
        let is_partition = written.name.starts_with("partition-");
        let shown = written.shown();
        assert_eq!(shown["damages"], serde_json::json!([]), "{}", written.name);
        assert_eq!(shown["archive"]["is_on"], true, "{}", written.name);
        assert!(shown["archive"]["lacks_before"].is_null(), "{}", written.name);
        let checked = written.lines(&["check"], 1, &all);
        assert_eq!(checked.len(), all.len(), "{}", written.name);
        let is_seen: Vec<_> = checked.iter().map(|line| line.starts_with("seen\t")).collect();
        for (number, &is_seen) in is_seen.iter().enumerate() {
            of_partitions[number] += usize::from(is_seen && is_partition);
            let wanted = number < 1210 && !FORGOTTEN.contains(&number);
            assert!(is_partition || is_seen == wanted, "{}: {number}", written.name);
        }
        let seen = is_seen.iter().filter(|&&is_seen| is_seen).count();
        let exported = written.lines(&["export", "--archive"], 0, &[]);
        assert_eq!(exported.len(), seen, "{}", written.name);
        if !is_partition {
            assert!(shown["archive"]["parts"].as_u64() > Some(0), "{}", written.name);
        }
        // The next run recovers the filter, and continues with it.
        let unseen = all.iter().zip(&is_seen).filter(|&(_, is_seen)| !is_seen);
        let unseen: Vec<_> = unseen.map(|(url, _)| url.clone()).collect();
        assert_eq!(written.lines(&["filter"], 0, &all), unseen, "{}", written.name);
        assert!(written.lines(&["filter"], 0, &all).is_empty(), "{}", written.name);
        assert_eq!(written.shown()["damages"], serde_json::json!([]), "{}", written.name);
    }
    assert!(of_partitions.iter().all(|&partitions| partitions <= 1));
    // A limit permits 800 URLs, of which two were forgotten.
    assert_eq!(of_partitions.iter().sum::<usize>(), 798);
    assert!(FORGOTTEN.iter().all(|&number| of_partitions[number] == 0));
}
