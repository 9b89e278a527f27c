//! Size of the pipe's filter, and messages about a full filter.

use super::urls;
use crate::util::binary::urlseen;

#[test]
fn a_filter_that_does_not_fit_is_refused_with_its_size() {
    for kind in ["native", "two-choice", "redisbloom"] {
        let huge = ["filter", "--kind", kind, "--capacity", "1e12", "--error-rate", "1e-8"];
        let output = urlseen(huge).stdin("http://a/\n").output();
        assert_eq!((output.code(), output.text()), (Some(3), ""), "{output:?}");
        let said = output.stderr.as_str();
        assert!(said.starts_with("urlseen: the filter does not fit: it begins with "), "{said}");
        assert!(said.contains(" GiB for 1000000000000 fingerprints, and "), "{said}");
        assert!(said.contains("lower filter.capacity to ") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn impossible_sizes_are_wrong_use() {
    for (option, value) in [
        ("--capacity", "0"),
        ("--capacity", "many"),
        ("--grow-to", "0"),
        ("--grow-to", "2T"),
        ("--error-rate", "1"),
    ] {
        let output = urlseen(["filter", option, value]).stdin("http://a/\n").output();
        assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
        assert!(output.stderr.contains(&format!("'{value}' for '{option} <")), "{output:?}");
    }
}

/// The command reads all lines as one block, so only the check at the end can notice the fill.
#[test]
fn warnings_report_the_fill_after_the_last_line() {
    for (lines, warning) in [
        (799, None),
        (800, Some("the filter has 800 fingerprints, 80 % of what it is made for")),
        (999, Some("the filter has 999 fingerprints, 99 % of")),
        (1000, Some("the filter has 1000 fingerprints, 100 % of")),
        (1500, Some("the filter has 1500 fingerprints, 150 % of")),
    ] {
        let links = urls(lines);
        let small = ["--kind", "native", "--capacity", "1000", "--error-rate", "1e-6"];
        let output =
            urlseen(["filter", "--seed", "1"].iter().chain(&small)).stdin(&*links).output();
        assert_eq!((output.text(), output.code()), (&*links, Some(0)));
        let said = output.stderr.lines().collect::<Vec<_>>();
        assert_eq!(said.len(), usize::from(warning.is_some()), "{lines} lines: {said:?}");
        let begins = |warning| said[0].starts_with(&format!("urlseen: {warning}"));
        assert!(warning.is_none_or(begins), "{lines} lines: {said:?}");
    }
}

/// The filter begins with a hundredth of its keys, and only the numbers of `--grow-to` count for
/// the warnings.
#[test]
fn a_filter_that_grows_warns_at_the_size_to_which_it_may_grow() {
    for (lines, warning) in [
        (7999, None),
        (8000, Some("the filter has 8000 fingerprints, 80 % of what it is made for")),
        (12_000, Some("the filter has 12000 fingerprints, 120 % of")),
    ] {
        let links = urls(lines);
        // A random seed would lose a line in one of a hundred runs.
        let small = ["--capacity", "100", "--grow-to", "10000"];
        let output =
            urlseen(["filter", "--seed", "1"].iter().chain(&small)).stdin(&*links).output();
        assert_eq!((output.text(), output.code()), (&*links, Some(0)));
        let said = output.stderr.lines().collect::<Vec<_>>();
        assert_eq!(said.len(), usize::from(warning.is_some()), "{lines} lines: {said:?}");
        let Some(warning) = warning else { continue };
        assert!(said[0].starts_with(&format!("urlseen: {warning}")), "{said:?}");
        assert!(said[0].contains("two-choice with a --grow-to that suffices"), "{said:?}");
    }
}

#[test]
fn a_kind_of_fixed_size_refuses_a_size_to_grow_to() {
    let output =
        urlseen(["filter", "--kind", "native", "--grow-to", "1e9"]).stdin("http://a/\n").output();
    assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
    let said = "urlseen: a filter of the kind native has no --grow-to: leave it out, or give \
                --kind two-choice";
    assert!(output.stderr.starts_with(said), "{output:?}");
}
