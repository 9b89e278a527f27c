//! Tests of the intake: its window, its linger and the times of arrivals.

use super::*;

/// Fails if the daemon waits for more items although the last claim found many, or is long ago.
#[test]
fn a_claim_waits_only_after_a_claim_that_found_few_items() {
    let mut linger = Linger::new(Duration::from_hours(1));
    linger.begin();
    assert!(linger.is_over(), "before the first claim");
    for (items, waits) in [(1, true), (ENOUGH, false), (1000, false), (ENOUGH - 1, true)] {
        linger.note(items);
        linger.begin();
        assert_eq!(linger.is_over(), !waits, "{items}");
    }
    linger.not_before = Some(time::Instant::now());
    linger.begin();
    assert!(linger.is_over(), "the last claim is long ago");
}

#[test]
fn waiting_items_arrived_after_the_claim_before_theirs() {
    let mut arrivals = Arrivals::new();
    let start = arrivals.last;
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(arrivals.since(false, true), None);
    assert_eq!(arrivals.since(false, false), Some(at(0)));
    arrivals.claimed(at(5));
    assert_eq!(arrivals.since(true, false), Some(at(0)));
    assert_eq!(arrivals.since(false, false), Some(at(5)));
    arrivals.claimed(at(9));
    assert_eq!(arrivals.since(true, true), Some(at(5)));
    assert_eq!(arrivals.since(false, true), None);
    arrivals.last = at(20);
    arrivals.claimed(at(21));
    assert_eq!(arrivals.since(true, false), Some(at(20)));
}

fn items(sizes: &[usize]) -> Items {
    sizes.iter().map(|&size| vec![b'x'; size]).collect::<Vec<_>>().iter().map(|i| &i[..]).collect()
}

#[test]
fn windows_start_small_and_double_until_they_reach_a_limit() {
    let mut window = Window::new(1000, 1 << 20);
    let sizes = |window: &mut Window, item| {
        (0..8).map(|_| (window.items(), window.split(items(&[item]))).0).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&mut window, 10), [16, 32, 64, 128, 256, 512, 1000, 1000]);
    let mut window = Window::new(1000, 1 << 20);
    assert_eq!(window.at_once(8), 1);
    assert_eq!(sizes(&mut window, 1 << 18), [16, 4, 4, 4, 4, 4, 4, 4]);
    assert_eq!(window.at_once(8), 8);
}

#[test]
fn windows_shrink_at_once_when_items_grow_and_grow_again_slowly() {
    let mut window = Window::new(1000, 1_000_000);
    (0..10).for_each(|_| drop(window.split(items(&[10]))));
    assert_eq!(window.items(), 1000);
    window.split(items(&[10, 100_000, 10]));
    assert_eq!(window.items(), 10);
    window.split(items(&[10]));
    assert_eq!(window.items(), 11);
    (0..100).for_each(|_| drop(window.split(items(&[10]))));
    assert_eq!(window.items(), 1000);
    window.split(items(&[5_000_000]));
    assert_eq!(window.items(), 1);
}

#[test]
fn a_part_exceeds_the_limit_only_if_it_is_a_single_item() {
    let mut window = Window::new(10, 100);
    let parts = window.split(items(&[60, 40, 1, 250, 100, 0]));
    let sizes: Vec<Vec<_>> =
        parts.iter().map(|part| part.iter().map(<[u8]>::len).collect()).collect();
    assert_eq!(sizes, [vec![60, 40], vec![1], vec![250], vec![100, 0]]);
    assert_eq!(window.split(items(&[])).len(), 1);
}
