//! Tests that passwords are accepted only in the allowed places, and that no message shows them.

use super::{load, refused};

#[test]
fn a_password_may_stand_in_the_file_or_the_environment() {
    let file = "redis.url = 'redis://:first@localhost'";
    let url = ("URLSEEN_REDIS__URL", "redis://:second@localhost");
    let alone = ("URLSEEN_REDIS_PASSWORD", "third");
    for (env, wanted) in [
        (vec![], "first"),
        (vec![url], "second"),
        (vec![alone], "third"),
        (vec![alone, url], "third"),
        (vec![("URLSEEN_REDIS_PASSWORD", "")], "first"),
    ] {
        let config = load(file, &env, &[]).unwrap();
        let shown = format!("{config:?} {config:#?} {}", config.redis.url);
        for secret in ["first", "second", "third"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(config.redis.url.password(), Some(wanted));
    }
}

#[test]
fn a_password_on_the_command_line_is_refused() {
    assert_eq!(
        refused("", &[], &["redis.url=redis://:hunter2@localhost"]),
        ["--set redis.url: redis.url is \"redis://***@localhost\": a password on the command \
          line shows in the process list; put it in the environment as URLSEEN_REDIS_PASSWORD, or \
          the URL as URLSEEN_REDIS__URL"]
    );
    let apart = ("URLSEEN_REDIS_PASSWORD", "hunter2");
    assert!(load("", &[apart], &["redis.url=redis://crawler@localhost"]).is_ok());
}

#[test]
fn a_url_with_a_user_and_no_password_is_refused() {
    let file = "redis.url = 'redis://crawler@localhost'";
    let alone = ("URLSEEN_REDIS_PASSWORD", "hunter2");
    let url = load(file, &[alone], &[]).unwrap().redis.url;
    assert_eq!((url.user(), url.password()), (Some("crawler"), Some("hunter2")));
    assert_eq!(
        refused(file, &[], &[]),
        ["config.toml:1:13: redis.url is \"redis://***@localhost:6379/0\": there is a user and \
             no password; add one as user:password@, or set URLSEEN_REDIS_PASSWORD (any text for a \
             user with nopass)"]
    );
    // Only the URL that takes effect needs a password. A malformed URL causes no second problem.
    assert!(load(file, &[], &["redis.url=redis://localhost"]).is_ok());
    assert_eq!(refused(file, &[], &["redis.url=redis://"]).len(), 1);
}

#[test]
fn a_url_that_cannot_be_used_is_told_why() {
    let file = "[redis]\nurl = 'rediss://crawler:hunter2@localhost#insecure'";
    let env = [("URLSEEN_REDIS__URL", "http://localhost")];
    assert_eq!(
        refused(file, &env, &["redis.url=redis://0.0.0.0"]),
        [
            "config.toml:2:7: redis.url is \"rediss://***@localhost#insecure\": nothing may follow \
             a #; certificates are always checked (no #insecure): name the file of your own \
             authority in redis.tls_ca instead, and write a # in a password as %23",
            "environment URLSEEN_REDIS__URL: redis.url is \"http://localhost\": http:// is not \
             Redis; write redis:// for TCP, rediss:// for TLS or unix:// for a socket file",
            "--set redis.url: redis.url is \"redis://0.0.0.0\": 0.0.0.0 and :: are addresses that \
             only servers can listen on; write 127.0.0.1 for this machine, or the server's own \
             address",
        ]
    );
    assert_eq!(
        refused("redis.url = 6379", &[], &[]),
        ["config.toml:1:13: redis.url is a number; allowed: \
          redis://[[user]:password@]host[:port][/database], the same with rediss:// for TLS, \
          redis+sentinel://host[:port],…/name[/database] for a primary that Sentinels know, \
          redis+cluster://host[:port],… for a Redis Cluster, or unix:///path/to/socket[?db=0]"]
    );
}

#[test]
fn a_key_for_the_password_is_refused_with_its_right_place() {
    let told = "the password is part of redis.url or in the environment as URLSEEN_REDIS_PASSWORD";
    let env = [("URLSEEN_REDIS_PASWORD", "hunter2")];
    assert_eq!(
        refused("[redis]\npassword = 'hunter2'", &env, &["redis.pasword=hunter2"]),
        [
            format!("config.toml:2:1: there is no key redis.password; {told}"),
            "environment URLSEEN_REDIS_PASWORD: no key has this name, and variables that begin \
             with URLSEEN_ must name a key; did you mean URLSEEN_REDIS_PASSWORD?"
                .to_owned(),
            format!("--set redis.pasword: there is no key redis.pasword; {told}"),
        ]
    );
}

#[test]
fn no_problem_shows_a_password() {
    let file = r#"
"redis://:hunter2@localhost" = 1
redis.password = "hunter2"
redis.url = "redis://:hunter2@localhost:port"
redis.pasword = "hunter2"
password = "hunter2"
[redis_hunter]
password = "hunter2"
"#;
    let broken = [
        "[redis]\nurl = redis://:hunter2@localhost",
        "[redis]\nurl = \"redis://:hunter2@localhost",
        "[redis]\nurl \"redis://:hunter2@localhost\"",
        "[redis]\nurl = 'a'\nurl = 'redis://:hunter2@localhost'",
        "[redis]\nurl: redis://:hunter2@localhost",
        "[redis]\nurl = ['redis://:hunter2@localhost']",
        "[redis]\nurl = {password = 'hunter2'}",
    ];
    let env = [
        ("URLSEEN_REDIS__URL", "redis://:hunter2"),
        ("URLSEEN_REDIS__PASSWORD", "hunter2"),
        ("URLSEEN_REDIS_PASWORD", "hunter2"),
        ("URLSEEN_REDIS_PASSWORD", "hunter2"),
    ];
    let set = [
        "redis.url:redis://:hunter2@localhost",
        "redis.url redis://:hunter2@localhost",
        "redis.url:redis://:hunter2@localhost?a=b",
        "redis.password=hunter2",
        "redis.url=redis://:hunter2@",
        "redis.url=redis://:hunter2@localhost",
        "redis.url=unix:///socket?pass=hunter2&db=x",
    ];
    for file in std::iter::once(file).chain(broken) {
        let problems = load(file, &env, &set).unwrap_err();
        let shown = format!("{problems} {problems:?} {problems:#?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_token_must_be_long_and_fit_into_a_header() {
    let token = |text| load("", &[("URLSEEN_ADMIN_TOKEN", text)], &[]);
    let config = token("0123456789abcdef").unwrap();
    assert!(config.admin_token.as_ref().unwrap().is(b"0123456789abcdef"));
    assert!(!format!("{config:?}").contains("0123456789"));
    assert_eq!(token("").unwrap().admin_token, None);
    for text in ["0123456789abcde", "0123456789 abcdef", "0123456789abcdef\u{fc}"] {
        assert_eq!(
            refused("", &[("URLSEEN_ADMIN_TOKEN", text)], &[]),
            ["environment URLSEEN_ADMIN_TOKEN: is not a valid token; allowed: 16 or more ASCII \
              characters without spaces, such as the output of: openssl rand -hex 16"]
        );
    }
}
