//! Passwords: where they may stand, and that nobody gets to see them.

use super::super::Config;
use super::{load, refused};

#[test]
fn a_password_may_stand_in_the_file_or_the_environment() {
    let password = |config: Config| {
        let info = config.redis.url.connection_info().unwrap();
        info.redis_settings().password().map(str::to_owned)
    };
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
        assert_eq!(password(config).as_deref(), Some(wanted));
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
    assert!(load("", &[], &["redis.url=redis://crawler@localhost"]).is_ok());
}

#[test]
fn who_looks_for_a_key_for_the_password_is_told_where_it_goes() {
    let told = "the password is part of redis.url or in the environment as URLSEEN_REDIS_PASSWORD";
    let env = [("URLSEEN_REDIS_PASWORD", "hunter2")];
    assert_eq!(
        refused("[redis]\npassword = 'hunter2'", &env, &["redis.pasword=hunter2"]),
        [
            format!("config.toml:2:1: there is no key redis.password; {told}"),
            "environment URLSEEN_REDIS_PASWORD: no key has this name, and what begins with \
             URLSEEN_ must have one's; did you mean URLSEEN_REDIS_PASSWORD?"
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
