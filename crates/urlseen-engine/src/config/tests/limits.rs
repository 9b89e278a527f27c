//! Rules of `[[limit]]`, and settings that cannot stand beside them.

use super::{load, refused};

#[test]
fn a_limit_is_named_by_its_scope_unless_it_has_a_name() {
    let file = "[[limit]]\nby = 'host'\nmax = 10\n\
                [[limit]]\nby = 'pattern'\npath = '^/a'\nmax = 1\n\
                [[limit]]\nname = 'p'\nby = 'parameter'\nparameter = 'page'\nmax = 5\n";
    let config = load(file, &[], &[]).unwrap();
    let rules = config.limits.iter().map(|rule| (&rule.name[..], rule.max));
    let expected = [(r#"by = "host""#, 10), (r#"by = "pattern" path = '^/a'"#, 1), ("p", 5)];
    assert_eq!(rules.collect::<Vec<_>>(), expected);
}

#[test]
fn wrong_limits_are_refused_with_their_lines() {
    let file = "[[limit]]\nby = 'host'\n[[limit]]\nby = 'host'\nmax = 0\n[[limit]]\nmax = 1\n\
                [[limit]]\nby = 'hosts'\nmax = 1\n[[limit]]\nby = 'parameter'\nmax = 1\n\
                [[limit]]\nby = 'domain'\nparameter = 'p'\nmax = 1\n\
                [[limit]]\nby = 'domain'\nmax = '1'\n[[limit]]\nby = 'domain'\nmaximum = 1\n\
                [[limit]]\nby = 'domain'\nmax = 1.5\n";
    let allowed = r#"allowed: "host", "domain", "pattern", "parameter""#;
    assert_eq!(
        refused(file, &[], &[]),
        [
            "config.toml:1:1: [[limit]] has no max; allowed: 1 to 1000000000000".to_owned(),
            "config.toml:3:1: [[limit]] has max = 0; allowed: 1 to 1000000000000".to_owned(),
            format!("config.toml:6:1: [[limit]] has no by; {allowed}"),
            format!("config.toml:8:1: [[limit]] has by = \"hosts\"; {allowed}"),
            "config.toml:11:1: [[limit]] has no name as in parameter = \"page\", which by = \
             \"parameter\" needs"
                .to_owned(),
            "config.toml:14:1: [[limit]] has a parameter, which only by = \"parameter\" takes"
                .to_owned(),
            "config.toml:20:7: [[limit]] has max = \"1\"; allowed: a whole number".to_owned(),
            "config.toml:23:1: there is no key limit.maximum".to_owned(),
            "config.toml:26:7: [[limit]] has max = 1.5; allowed: a whole number".to_owned(),
        ]
    );
}

#[test]
fn overlapping_limits_are_refused() {
    let rule = |more: &str| format!("[[limit]]\nby = 'host'\nmax = 1\n{more}\n");
    let says = |name: &str| {
        format!(
            "config.toml:5:1: [[limit]] limits the same groups as the rule {name:?}, by = \
             \"host\"; keep one of them, or give each pages of its own"
        )
    };
    let path = "path = '^/a'";
    for (one, other, name) in [
        ("name = 'all'", path, "all"),
        (path, "name = 'all'", r#"by = "host" path = '^/a'"#),
        (path, path, r#"by = "host" path = '^/a'"#),
    ] {
        assert_eq!(refused(&(rule(one) + &rule(other)), &[], &[]), [says(name)]);
    }
    let apart = rule(path) + &rule("path = '^/b'") + &rule("").replace("host", "domain");
    assert_eq!(load(&apart, &[], &[]).unwrap().limits.len(), 3);
}

#[test]
fn limits_need_a_filter_of_their_own_that_keeps_its_fingerprints() {
    let rule = "[[limit]]\nby = 'host'\nmax = 1\n";
    for (set, says) in [
        (&["filter.place=redis"][..], "filter.place is \"redis\", where other daemons may use"),
        (&["serve.listen=127.0.0.1:1"], "serve.listen is \"127.0.0.1:1\", and [[limit]] applies"),
        (
            &["filter.kind=two-choice", "filter.expire_after=30d"],
            "filter.expire_after is \"30d\", and [[limit]] would count a page",
        ),
    ] {
        let lines = refused(rule, &[], set);
        assert!(lines.len() == 1 && lines[0].contains(says), "{lines:?}");
        assert!(load("", &[], set).is_ok());
    }
}
