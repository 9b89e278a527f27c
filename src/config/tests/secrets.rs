//! Tests that passwords are accepted only in the allowed places, and that no message shows them.

use super::load;

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
        assert_eq!(config.redis.url.password.as_deref(), Some(wanted));
    }
}

#[test]
fn a_password_apart_is_that_of_the_user_in_the_url() {
    let file = "redis.url = 'redis://crawler@localhost'";
    let alone = ("URLSEEN_REDIS_PASSWORD", "hunter2");
    let url = load(file, &[alone], &[]).unwrap().redis.url;
    assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("crawler"), Some("hunter2")));
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
fn a_token_is_read_and_not_shown() {
    let token = |text| load("", &[("URLSEEN_ADMIN_TOKEN", text)], &[]);
    let config = token("0123456789abcdef").unwrap();
    assert!(config.admin_token.as_ref().unwrap().is(b"0123456789abcdef"));
    assert!(!format!("{config:?}").contains("0123456789"));
    assert_eq!(token("").unwrap().admin_token, None);
}
