//! Tests of the storage folder on the file system of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;

use super::super::header::encode;
use super::super::{AtRest, Folder, OpenError, Target, header_of, look};
use super::basic::{append, keep_all, recover};
use super::filter::{fingerprints, spec, write_all};
use crate::Moment;
use crate::head::{Head, Position};

const START: Position = Position { number: 0, head: Head::START };

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_folder_on_a_real_disk_is_written_and_recovered() {
    for fsync in [Fsync::Always, Fsync::Interval, Fsync::Never] {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("storage/demo");
        let mut folder = Folder::open(&dir).unwrap();
        folder.begin(&spec(), RandomId::new(5), Head::START).unwrap();
        let runs = [2, 1].map(RandomId::new);
        assert_eq!(folder.announce(runs[1]).unwrap(), []);
        assert_eq!(folder.announce(runs[0]).unwrap(), runs[1..]);
        let mut journal = folder.journal(START, fsync).unwrap();
        let first = append(&mut journal, &[(1, 1)]);
        journal.append_adds(&fingerprints([(2, 2)])).unwrap();
        let mut writer = journal.snapshot_writer().unwrap();
        write_all(&mut writer, &BTreeSet::from([(1, 1), (2, 2)]), first).unwrap();
        writer.finish(&keep_all(), Moment::now()).unwrap();
        journal.roll().unwrap();
        append(&mut journal, &[(3, 3)]);
        journal.append_adds(&fingerprints([(4, 4)])).unwrap();
        let position = journal.close(first.head).unwrap();
        assert_eq!(position, Position { number: 3, head: first.head });

        assert!(matches!(Folder::open(&dir), Err(OpenError::Locked { holder: Some(_), .. })));
        assert!(matches!(AtRest::open(&dir), Err(OpenError::Locked { holder: Some(_), .. })));
        assert!(look(&dir).unwrap().is_held);
        drop(folder);
        assert_eq!(mode(&dir), 0o700);
        for file in fs::read_dir(&dir).unwrap() {
            let file = file.unwrap();
            assert_eq!(mode(&file.path()), 0o600, "{file:?}");
        }
        fs::write(dir.join("snapshot.tmp"), "half").unwrap();
        assert_eq!(AtRest::open(&dir).unwrap().header().unwrap().filter, RandomId::new(5));
        let mut folder = Folder::open(&dir).unwrap();
        assert!(!dir.join("snapshot.tmp").exists());
        assert_eq!(folder.notes.runs, runs);
        let expected = BTreeSet::from([(1, 1), (2, 2), (4, 4)]);
        assert_eq!(recover(&mut folder, Target::At(first.head)), (position, expected));
        assert!(look(&dir).unwrap().damages.is_empty());
    }
}

#[test]
fn a_copy_of_a_folder_has_the_filter_and_no_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
    let mut folder = Folder::open(&one).unwrap();
    folder.begin(&spec(), RandomId::new(5), Head::START).unwrap();
    folder.announce(RandomId::new(1)).unwrap();
    fs::create_dir(&two).unwrap();
    for file in fs::read_dir(&one).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), two.join(file.file_name())).unwrap();
    }
    let mut copy = Folder::open(&two).unwrap();
    assert_eq!(copy.notes.runs, []);
    assert_eq!(recover(&mut copy, Target::Last).0, START);
}

/// The header of a folder of format 1, byte for byte as an earlier version wrote it.
const FORMAT_1: &str = r#"urlseen state folder
format = 1
filter = "0123456789abcdef"
crawl = "demo"
layout = "native"
positions = "murmur3-x64-128/wyrand/line-64/bit-9"
shards = "digest-leading-byte/text-murmur3-x64-128-top-byte"
seed = 7
bits = 131072
k = 4
lines = 1
bits_per_line = 4
lines_per_part = 1
capacity = 1000
error_rate = 1e-3
algorithm = "scrapy"
algorithm_version = "scrapy 2.19/w3lib 2.5"
keep_fragments = false
crc = "d0c31b37"
"#;

/// Without the check of the format, a folder of another version would look damaged. Its owner would
/// give it up, although the other version could read it.
#[test]
fn a_folder_of_another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let header = dir.path().join("header");
    fs::write(&header, FORMAT_1).unwrap();
    for error in [
        Folder::open(dir.path()).unwrap_err(),
        AtRest::open(dir.path()).unwrap_err(),
        look(dir.path()).unwrap_err(),
        header_of(dir.path()).unwrap_err(),
    ] {
        assert!(matches!(error, OpenError::Format { found: 1, .. }), "{error:?}");
        let said = error.to_string();
        let place = dir.path().display().to_string();
        let remedies =
            ["the version that wrote it", "another storage.dir", "urlseen storage reset"];
        for words in [&place, "format 1", "the format 7"].into_iter().chain(remedies) {
            assert!(said.contains(words), "no {words:?} in {said}");
        }
    }
    assert_eq!(fs::read_to_string(&header).unwrap(), FORMAT_1);
    // A later version keeps the number in its place. A damaged header is reported as damaged.
    let later = encode(&serde_json::json!({ "format": 9, "spec": 2 }));
    fs::write(&header, &later).unwrap();
    assert!(matches!(Folder::open(dir.path()), Err(OpenError::Format { found: 9, .. })));
    fs::write(&header, &later[1..]).unwrap();
    assert!(matches!(Folder::open(dir.path()), Err(OpenError::Header(_))));
}
