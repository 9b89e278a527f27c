//! Tests of allowed URLs, and of passwords that stay hidden.

use super::*;
use crate::error::DEFAULT_ADDRESS;

fn shown(url: &str) -> String {
    RedisAddress::new(url, None).unwrap().to_string()
}

fn refused(url: &str) -> RedisAddressError {
    RedisAddress::new(url, None).unwrap_err()
}

#[test]
fn shows_every_part_but_the_password() {
    for (url, expected) in [
        ("redis://127.0.0.1", "redis://127.0.0.1:6379/0"),
        ("  redis://127.0.0.1:7000/3 ", "redis://127.0.0.1:7000/3"),
        ("redis://:hunter2@host", "redis://:***@host:6379/0"),
        ("redis://ann:hunter2@host:1/2", "redis://ann:***@host:1/2"),
        ("rediss://ann:hunter2@host/1", "rediss://ann:***@host:6379/1"),
        ("REDIS://host/", "redis://host:6379/0"),
        ("valkey://host", "valkey://host:6379/0"),
        ("redis://[::1]:7000/3", "redis://[::1]:7000/3"),
        ("redis://a%0Ab:hunter2@host", "redis://a\\nb:***@host:6379/0"),
        ("unix:///run/r.sock", "unix:///run/r.sock?db=0"),
        ("redis+sentinel://a,b:1/main", "redis+sentinel://a:26379,b:1/main/0"),
        (
            "REDISS+sentinel://ann:hunt%2Cer@[::1],b/my-main.1/3",
            "rediss+sentinel://ann:***@[::1]:26379,b:26379/my-main.1/3",
        ),
        ("redis+cluster://a,b:1", "redis+cluster://a:6379,b:1"),
        ("VALKEYS+cluster://ann:hunt%2Cer@[::1]:1,b/0", "valkeys+cluster://ann:***@[::1]:1,b:6379"),
        ("redis+unix:///run/r.sock?db=3", "redis+unix:///run/r.sock?db=3"),
        (
            "unix:///run/r.sock?pass=hunter2&db=1&user=ann",
            "unix:///run/r.sock?db=1&user=ann&pass=***",
        ),
    ] {
        assert_eq!(shown(url), expected, "{url}");
    }
}

#[test]
fn returns_user_password_and_database_of_a_url() {
    let address = RedisAddress::new("rediss://an%20n:hunter%402@host/7", None).unwrap();
    assert_eq!(address.user.as_deref(), Some("an n"));
    assert_eq!(address.password.as_deref(), Some("hunter@2"));
    assert_eq!(address.db, 7);
    assert!(address.is_tls());
}

#[test]
fn a_separate_password_replaces_the_one_in_the_url() {
    let address = |password: &str| {
        RedisAddress::new("redis://ann:inside@host", Some(password.to_owned())).unwrap()
    };
    assert_eq!(address("apart").password.as_deref(), Some("apart"));
    assert_eq!(address("").password.as_deref(), Some("inside"));
    assert_eq!(format!("{:?}", address("apart")), "RedisAddress(redis://ann:***@host:6379/0)");
}

#[test]
fn only_the_address_of_a_cluster_depends_on_the_key() {
    for (url, is_cluster) in [("redis+cluster://a,b", true), ("redis+sentinel://a/b", false)] {
        let address = RedisAddress::new(url, None).unwrap();
        assert_eq!(address.is_cluster(), is_cluster);
        assert_eq!(address.for_key("one") != address.for_key("two"), is_cluster);
        assert_eq!(address.for_key("one").to_string(), address.to_string());
    }
}

#[test]
fn the_local_address_equals_its_url() {
    assert_eq!(RedisAddress::new(DEFAULT_ADDRESS, None), Ok(RedisAddress::local()));
    assert_eq!(RedisAddress::local().to_string(), DEFAULT_ADDRESS);
}

#[test]
fn no_refusal_repeats_a_password() {
    for url in [
        "hunter2@redis://host",
        "redis://ann:hunter2/x@host",
        "redis://ann:1/hunter2@host",
        "redis://ann:1?hunter2@host",
        "redis://ann:1#hunter2@host",
        "redis://ann:hunter2@",
        "redis://ann:hunter2@0.0.0.0",
        "unix://ann:hunter2@host/run/r.sock",
        "redis+sentinel://ann:hunter2/x@a,b/main",
        "redis+sentinel://ann:1@a:hunter2,b/main",
        "redis+sentinel://ann:hunter2@a,b",
        "redis+cluster://ann:hunter2@a,b/1",
        "redis+cluster://ann:hunter2/x@a,b",
    ] {
        let error = refused(url);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}: {error}");
    }
}
