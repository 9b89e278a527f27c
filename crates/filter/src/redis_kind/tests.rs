//! Keys, refusals and estimates of each kind of filter in Redis.

use std::sync::Arc;

use super::super::{Blocks, Geometry, Seed};
use super::*;
use crate::native::Native;
use crate::peers::block_cluster::layout as block_cluster;
use crate::peers::imooc::layout as imooc;
use crate::peers::pyrebloom::rounded as pyrebloom;
use crate::peers::scrapy_redis::Set;

fn filter(kind: impl RedisKind + 'static) -> RedisFilterKeys {
    RedisFilterKeys::new("f", Arc::new(kind))
}

#[test]
fn redis_keys_have_the_names_of_their_project() {
    let native = Native::new(Seed::new(1), Geometry::new(Blocks::One, 9, 5).unwrap());
    let native = filter(native);
    assert_eq!((native.keys.len(), native.key(0xab)), (256, "f:ab".to_owned()));
    assert_eq!(native.keys[3].1.max_bytes(), Some(320));
    let imooc = filter(imooc(1000, 0.01).unwrap());
    assert_eq!((imooc.keys.len(), imooc.keys[0].0, imooc.key(0)), (1, 0, "f_0".to_owned()));
    let set = filter(Set);
    assert_eq!(
        (set.keys.clone(), set.key(0), set.keys[0].1.max_bytes()),
        (vec![(0, Content::Members)], "f".to_owned(), None)
    );
}

#[test]
fn a_text_that_a_layout_cannot_place_is_refused() {
    let block = block_cluster(20, 6, 4).unwrap();
    let block = filter(block);
    assert!(block.check(&Fingerprint::Raw20([1; 20])).is_ok());
    let text = Fingerprint::from_text(b"zz");
    assert!(block.check(&text).is_err());
    assert!(filter(Set).check(&text).is_ok());
}

#[test]
fn keys_are_estimated_from_the_fill() {
    let pyre = pyrebloom(10_000, 0.01).unwrap();
    let (m, k) = (pyre.m as f64, f64::from(pyre.hashes));
    let fill = -(-k * 7000.0 / m).exp_m1();
    let shared = filter(pyre);
    let Estimate { keys, error_rate } = shared.kind.estimate(&[KeyLook { size: 0, fill }]);
    assert!((6990..=7010).contains(&keys), "{keys}");
    assert!((1e-4..1e-2).contains(&error_rate), "{error_rate}");
    assert_eq!(shared.kind.estimate(&[KeyLook::default()]).keys, 0);
}
