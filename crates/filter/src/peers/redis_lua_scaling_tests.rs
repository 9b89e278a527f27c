//! Layers, bits and verdicts of the kind redis-lua-scaling.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::Verdict;
use crate::peers::script_filter::ScriptFilter;

/// Compares layers and bits with the output of `scripts/data/kinds`, which computes them
/// independently.
#[test]
fn bits_are_those_of_the_oracle() {
    let file = include_str!("../../../../tests/vectors/kinds.jsonl");
    let lines = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut filters = 0;
    for line in lines.filter(|line| line["kind"] == NAME) {
        let (capacity, rate) = (line["capacity"].as_u64(), line["error_rate"].as_f64());
        let layout = Scaling::new(capacity.unwrap(), rate.unwrap()).unwrap();
        let layers: Vec<_> = layout.layers.iter().map(|it| (it.bits, it.hashes)).collect();
        assert_eq!(line["layers"], serde_json::json!(layers));
        for (text, bits) in line["items"].as_object().unwrap() {
            let words = words(text.as_bytes());
            let found: Vec<Vec<u32>> =
                layout.layers.iter().take(5).map(|it| it.positions(words).collect()).collect();
            assert_eq!(*bits, serde_json::json!(found), "{text:?}");
        }
        filters += 1;
    }
    assert_eq!(filters, 5);
}

#[test]
fn new_items_go_to_the_next_layer_once_a_layer_is_full() {
    let layout = Scaling::new(10, 0.01).unwrap();
    let layers = [1, 10, 11, 30, 31, 70, 71].map(|item| layout.layer_of(item));
    assert_eq!(layers, [0, 0, 1, 1, 2, 2, 3]);
    assert!(Scaling::new(0, 0.01).is_err());
    assert!(Scaling::new(10, 1.0).is_err());
    assert!(Scaling::new(1_000_000_000, 1e-6).is_err(), "no string has so many bits");
}

/// Compares the verdicts of the filter in memory with those of sets of positions. Also compares the
/// number of wrong verdicts with the computed error rate.
#[test]
fn a_growing_filter_keeps_its_error_rate() {
    let layout = Scaling::new(500, 0.05).unwrap();
    let mut filter = ScriptFilter::new(Arc::new(layout.clone())).unwrap();
    let mut sets = vec![HashSet::new(); layout.layers.len()];
    let (mut count, mut wrong, mut expected) = (0, 0, 0.0);
    for number in 0..20_000_u64 {
        let text = format!("{:040x}", u128::from(number) * 0x9e37_79b9);
        let newest = layout.layer_of(count + 1);
        let words = words(text.as_bytes());
        let is_in = |(set, layer): (&HashSet<u32>, &ScalingLayer)| {
            layer.positions(words).all(|bit| set.contains(&bit))
        };
        let is_seen = sets.iter().zip(&layout.layers).take(newest + 1).any(is_in);
        expected += layout.error_rate(count);
        if is_seen {
            wrong += 1;
        } else {
            sets[newest].extend(layout.layers[newest].positions(words));
            count += 1;
        }
        let found = filter.add(&Fingerprint::Text(text.as_bytes().into()));
        assert_eq!(found, Ok(Verdict::of(is_seen)), "{number}");
    }
    assert_eq!(layout.outlook(count).strings, layout.layer_of(count) + 1);
    let sigma = f64::sqrt(expected);
    assert!((f64::from(wrong) - expected).abs() < 4.0 * sigma, "{wrong} wrong of {expected}");
}

#[test]
fn keys_in_redis_have_their_names_and_the_count_gives_the_estimate() {
    let layout = Scaling::new(10_000_000, 1e-6).unwrap();
    let keys: Vec<_> = layout.keys().iter().map(|&(it, _)| layout.key("f", it)).collect();
    assert_eq!(keys, ["f:count", "f:1", "f:2", "f:3", "f:4"]);
    let looks = [KeyLook { size: 25_000_000, fill: 0.0 }];
    let Estimate { keys, error_rate } = layout.estimate(&looks);
    assert!(keys == 25_000_000 && (5e-7..1e-6).contains(&error_rate), "{error_rate:e}");
    assert_eq!(layout.estimate(&[KeyLook::default()]), Estimate::default());
    assert!(layout.is_seen(&[false, true]) && !layout.is_seen(&[false, false]));
}
