//! Ends of lines, unreadable lines, and unreadable files.

use std::fs;

use super::{gzip, urls, zstandard};
use crate::util::binary::urlseen;

#[test]
fn the_readable_part_of_a_cut_file_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    // The file has more than one block, so a part is decompressed before the command notices the
    // missing end.
    let links = urls(100_000);
    for (name, whole) in
        [("cut.gz", gzip(links.as_bytes())), ("cut.zst", zstandard(links.as_bytes()))]
    {
        fs::write(folder.path().join(name), &whole[..whole.len() / 2]).unwrap();
        for command in ["filter", "fingerprint"] {
            let output = urlseen([command, name]).dir(folder.path()).output();
            assert_eq!(output.code(), Some(3), "{output:?}");
            let printed = output.text().lines().count();
            assert!((10_000..90_000).contains(&printed), "{command}: {printed} lines of {name}");
            let said = format!("urlseen: cannot read {name} after line {printed}: ");
            assert!(output.stderr.starts_with(&said), "{} is not {said}", output.stderr);
            if command == "filter" {
                assert!(links.starts_with(output.text()), "{}", output.text());
            }
        }
    }
}
