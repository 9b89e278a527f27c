//! Bytes of a record of the log.

use urlseen_filter::Generation;
use urlseen_filter::id::RandomId;
use urlseen_filter::limit::{Counted, Group};
use urlseen_filter::{Lifetime, Lifetimes};
use urlseen_fingerprint::Fingerprint;

use super::super::record::*;
use crate::head::{Head, Position};

fn fingerprints() -> Vec<Fingerprint> {
    vec![
        Fingerprint::Raw20([1; 20]),
        Fingerprint::Raw16([2; 16]),
        Fingerprint::Text(b""[..].into()),
        Fingerprint::Raw32([3; 32]),
        Fingerprint::Text(b"https://example.com/"[..].into()),
    ]
}

fn positions() -> (Position, Position) {
    let before = Position { number: 6, head: Head { seq: 3, commit_id: RandomId::new(33) } };
    (before, Position { number: 7, head: Head { seq: 4, commit_id: RandomId::new(44) } })
}

fn encoded() -> Vec<u8> {
    let tail = (Lifetimes::default(), Vec::new());
    encoded_as(RecordKind::Batch, Generation::FOREVER, &tail)
}

fn encoded_as(
    kind: RecordKind,
    generation: Generation,
    (lifetimes, counted): &(Lifetimes, Vec<Counted>),
) -> Vec<u8> {
    let (before, position) = positions();
    let mut bytes = Vec::new();
    let fingerprints = &fingerprints()[..];
    let content = RecordContent { synced: 5, fingerprints, generation, lifetimes, counted };
    encode(kind, before.head, position, content, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_record_is_read_back_and_its_end_is_needed() {
    let changes = [("a", 3), ("b", 1)];
    let changes = changes.map(|(name, items)| Counted { group: Group::of(name), items });
    let mut lifetimes = Lifetimes::default();
    lifetimes.push(1, Lifetime::FOREVER);
    let (forever, dated) = (Generation::FOREVER, Generation::new(4711));
    for (kind, generation, lifetimes, counted) in [
        (RecordKind::Batch, forever, Lifetimes::default(), vec![]),
        (RecordKind::Batch, dated, Lifetimes::default(), vec![]),
        (RecordKind::Batch, dated, lifetimes.clone(), vec![]),
        (RecordKind::Batch, forever, Lifetimes::default(), changes.to_vec()),
        (RecordKind::Batch, dated, lifetimes, changes.to_vec()),
    ] {
        let tail = (lifetimes, counted);
        let bytes = encoded_as(kind, generation, &tail);
        let (head, body) = bytes.split_first_chunk().unwrap();
        let head = RecordHead::decode(head).unwrap();
        let (before, position) = positions();
        assert_eq!((head.kind, head.position, head.count), (kind, position, 5));
        assert_eq!((head.synced, head.generation), (5, generation));
        assert_eq!(head.length as usize, body.len());
        assert!(head.follows(before) && head.matches(body));
        let (fingerprints, (lifetimes, counted)) = (fingerprints(), tail);
        assert_eq!(decode(&head, body), Some(RecordBody { fingerprints, lifetimes, counted }));
        assert_eq!(decode(&head, &body[..body.len() - 1]), None);
    }
}

#[test]
fn every_flipped_bit_of_a_record_is_noticed() {
    let good = encoded();
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (head, body) = bytes.split_first_chunk().unwrap();
        match RecordHead::decode(head) {
            Ok(head) => assert!(bit >= 8 * HEAD && !head.matches(body), "bit {bit}"),
            Err(what) => assert!(bit < 8 * HEAD && what.ends_with("damaged"), "bit {bit}"),
        }
    }
    assert!(RecordHead::decode(&[0; HEAD]).is_err(), "a hole in the file");
}

#[test]
fn a_record_follows_only_the_one_before() {
    let (before, position) = positions();
    let elsewhere = RandomId::new(9);
    for kind in [RecordKind::Batch, RecordKind::Adds, RecordKind::Forgets, RecordKind::Generation] {
        let own = if kind == RecordKind::Batch { position.head } else { before.head };
        let head = RecordHead {
            kind,
            position: Position { number: 7, head: own },
            predecessor: before.head.commit_id,
            synced: 0,
            generation: Generation::FOREVER,
            count: 0,
            length: 0,
            body_crc: 0,
        };
        assert!(head.follows(before));
        let with_head = |head| Position { head, ..before };
        for other in [
            Position { number: 5, ..before },
            Position { number: 7, ..before },
            with_head(Head { seq: 2, ..before.head }),
            with_head(Head { seq: 4, ..before.head }),
            with_head(Head { commit_id: elsewhere, ..before.head }),
        ] {
            assert!(!head.follows(other), "{kind:?} behind {other}");
        }
    }
    let mut renamed = RecordHead {
        kind: RecordKind::Adds,
        position: Position { number: 7, head: before.head },
        predecessor: before.head.commit_id,
        synced: 0,
        generation: Generation::FOREVER,
        count: 0,
        length: 0,
        body_crc: 0,
    };
    renamed.position.head.commit_id = elsewhere;
    assert!(!renamed.follows(before), "adds move no head");
}

#[test]
fn a_body_with_another_count_of_fingerprints_is_refused() {
    let bytes = encoded();
    let (head, body) = bytes.split_first_chunk().unwrap();
    let head = RecordHead::decode(head).unwrap();
    let with = |count| RecordHead { count, ..head };
    assert_eq!(decode(&with(4), body), None);
    assert_eq!(decode(&with(6), body), None);
    assert_eq!(decode(&head, &body[..body.len() - 1]), None);
    assert_eq!(decode(&with(1), &[17]), None);
}
