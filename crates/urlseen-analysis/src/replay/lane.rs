//! A kind that judges: a filter of its own, held against the exact set.

use super::curve::{Curve, Point};
use super::error::ReplayError;
use super::report::LaneReport;
use urlseen_core::filter::choice::FilterPlace;
use urlseen_core::filter::native::{KeyHash, Native};
use urlseen_core::filter::{
    FilterKind, FilterSpec, Full, KeyHasher, Kind, Parameters, Placed, ScriptFilter, SpecError,
    Verdict, count_by_shard,
};
use urlseen_core::fingerprint::Fingerprint;

/// A filter that is to judge, and not made yet.
#[derive(Debug)]
pub struct LaneSpec {
    parameters: Parameters,
    strings: Option<Box<dyn ScriptFilter>>,
    bytes: u64,
}

impl LaneSpec {
    /// A filter that is made for this.
    ///
    /// # Errors
    /// The kind cannot be that large.
    pub fn new(spec: &FilterSpec) -> Result<Self, SpecError> {
        let parameters = spec.parameters.clone();
        let bytes = parameters.outlook(0)?.bytes[1];
        let is_local = parameters.kind().is_in(FilterPlace::Local);
        let strings = if is_local { None } else { parameters.in_redis()?.in_memory() };
        Ok(Self { parameters, strings, bytes })
    }

    /// The memory that its bits take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A batch, with all that is known of it.
#[derive(Debug)]
pub(super) struct Judgable {
    /// How many items there were, with this batch.
    pub(super) items: u64,
    pub(super) fingerprints: Vec<Fingerprint>,
    pub(super) key_hashes: Vec<KeyHash>,
    /// Which of them never came before.
    pub(super) new: Vec<bool>,
    /// Whether it counts as seen from the begin on.
    pub(super) is_given: bool,
}

/// A filter that judges.
#[derive(Debug)]
pub(super) struct Lane {
    kind: Kind,
    parameters: Parameters,
    capacity: Option<u64>,
    filter: Filter,
    report: Counts,
    new: u64,
    curve: Curve,
    stopped: Option<String>,
    full_after: Option<u64>,
    items: u64,
    /// Different fingerprints that it was given and has a place for. Its bits are those of all of
    /// them: one that it took for seen would have set none.
    members: u64,
}

/// The filter itself.
#[derive(Debug)]
enum Filter {
    /// In a daemon's memory; with what it hashes by, where that is not what all are hashed by.
    InMemory(Box<dyn FilterKind>, Option<KeyHasher>),
    Strings(Box<dyn ScriptFilter>),
    Set,
}

#[derive(Debug, Default)]
struct Counts {
    pub unseen: u64,
    pub seen: u64,
    wrong: u64,
    no_place: u64,
}

/// What a filter makes of a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unseen,
    Seen,
    NoPlace,
}

impl Lane {
    /// Takes the memory of the filter.
    pub(super) fn start(spec: LaneSpec, native: Native) -> Result<Self, ReplayError> {
        let parameters = spec.parameters;
        let filter = match spec.strings {
            _ if parameters.kind().is_in(FilterPlace::Local) => {
                let parameters = parameters.reseeded(native.seed());
                let hasher = parameters.seed().is_none().then(|| parameters.hasher());
                Filter::InMemory(parameters.build(0, 1)?, hasher)
            }
            Some(strings) => Filter::Strings(strings),
            None => Filter::Set,
        };
        Ok(Self {
            kind: parameters.kind(),
            capacity: parameters.capacity(),
            parameters,
            filter,
            report: Counts::default(),
            new: 0,
            curve: Curve::new(),
            stopped: None,
            full_after: None,
            items: 0,
            members: 0,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Judges a batch, and remembers what is unseen of it.
    pub(super) fn judge(&mut self, batch: &Judgable) {
        if self.stopped.is_some() {
            return;
        }
        let fates = match self.filter.fates(batch) {
            Ok(fates) => fates,
            Err(why) => {
                self.stopped = Some(why.to_string());
                return;
            }
        };
        let placed = fates.iter().zip(&batch.new).filter(|&(&it, &new)| new && it != Fate::NoPlace);
        self.members += placed.count() as u64;
        if batch.is_given {
            return;
        }
        let count = &mut self.report;
        for (fate, &new) in fates.into_iter().zip(&batch.new) {
            match fate {
                Fate::Unseen => count.unseen += 1,
                Fate::Seen => count.seen += 1,
                Fate::NoPlace => count.no_place += 1,
            }
            let is_wrong = new && fate == Fate::Seen;
            count.wrong += u64::from(is_wrong);
            self.new += u64::from(new && fate != Fate::NoPlace);
        }
        self.items = batch.items;
        let is_full = self.capacity.is_some_and(|capacity| self.keys() >= capacity);
        if self.full_after.is_none() && is_full && !self.filter.grows() {
            self.full_after = Some(self.items);
        }
        if self.curve.wants(batch.items) {
            self.mark();
        }
    }

    /// Adds a point to the curve.
    fn mark(&mut self) {
        let before = self.curve.last();
        let error_rate_now = self.error_rate();
        // It grows in between: as it did at both ends, on average.
        let rate = f64::midpoint(before.error_rate_now, error_rate_now);
        self.curve.push(Point {
            items: self.items,
            new: self.new,
            wrong: self.report.wrong,
            expected: before.expected + rate * (self.new - before.new) as f64,
            error_rate_now,
        });
    }

    /// What it has found.
    pub(super) fn end(mut self) -> LaneReport {
        if self.items > self.curve.last().items {
            self.mark();
        }
        let keys = self.keys();
        let (kind, capacity) = (self.kind, self.capacity);
        let Counts { unseen, seen, wrong, no_place } = self.report;
        let capacity = match &self.filter {
            Filter::InMemory(filter, _) => Some(filter.gauge().fill().capacity),
            Filter::Strings(_) | Filter::Set => capacity,
        };
        let outlook = |keys| self.parameters.outlook(keys).ok();
        let full = capacity.and_then(outlook).and_then(|outlook| outlook.warning);
        LaneReport {
            name: kind.name(),
            kind,
            items: self.items,
            unseen,
            seen,
            wrong,
            no_place,
            wrong_computed: self.curve.last().expected,
            error_rate_now: self.error_rate(),
            keys,
            capacity,
            full_after: self.full_after,
            bytes: outlook(keys).map_or([0; 2], |outlook| outlook.bytes),
            warning: full,
            stopped: self.stopped,
            curve: self.curve.into_points(),
        }
    }

    /// The share of unseen fingerprints that it takes for seen now.
    fn error_rate(&self) -> f64 {
        match &self.filter {
            Filter::InMemory(filter, _) => filter.gauge().error_rate(),
            Filter::Strings(_) | Filter::Set => {
                self.parameters.outlook(self.members).map_or(0.0, |outlook| outlook.error_rate)
            }
        }
    }

    fn keys(&self) -> u64 {
        match &self.filter {
            Filter::InMemory(filter, _) => filter.gauge().fill().counted,
            Filter::Strings(filter) => filter.keys(),
            Filter::Set => self.members,
        }
    }
}

impl Filter {
    /// Judges a batch, in the order of its items, and sets what is unseen.
    ///
    /// Those in a daemon's memory are tested by the batch and set behind it, as the daemon does:
    /// what is twice in a batch is found by the exact set, as the daemon finds it in its own of
    /// what is in flight. Those in Redis are tested and set one by one, as its scripts do.
    fn fates(&mut self, batch: &Judgable) -> Result<Vec<Fate>, Full> {
        let Judgable { fingerprints, key_hashes, new, .. } = batch;
        let fate = |is_unseen| if is_unseen { Fate::Unseen } else { Fate::Seen };
        Ok(match self {
            Self::InMemory(filter, hasher) => {
                let own: Vec<KeyHash>;
                let key_hashes = match hasher {
                    Some(hasher) => {
                        own = fingerprints.iter().map(|it| hasher.key_hash(it)).collect();
                        &own
                    }
                    None => key_hashes,
                };
                let mut verdicts = Vec::new();
                filter.test(key_hashes, &mut verdicts);
                let unseen = verdicts.iter().zip(new);
                let unseen = unseen.map(|(&verdict, &new)| verdict == Verdict::Unseen && new);
                let fates: Vec<Fate> = unseen.map(fate).collect();
                let to_set = key_hashes.iter().zip(&fates).filter(|&(_, &it)| it == Fate::Unseen);
                let to_set: Vec<KeyHash> = to_set.map(|(&key_hash, _)| key_hash).collect();
                filter.reserve(&count_by_shard(&to_set))?;
                filter.insert(&to_set)?;
                fates
            }
            Self::Strings(filter) => {
                let mut fates = Vec::with_capacity(fingerprints.len());
                // Digits that stand beside each other, and where those of each end.
                let (mut digits, mut ends, mut room) = (Vec::new(), Vec::new(), [0; 64]);
                for fingerprint in fingerprints {
                    digits.extend_from_slice(fingerprint.text(&mut room));
                    ends.push(digits.len());
                }
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let texts: Vec<_> =
                    starts.zip(&ends).map(|(start, &end)| &digits[start..end]).collect();
                filter.add_all(&texts, &mut |placed| {
                    fates.push(match placed {
                        Placed::Seen => Fate::Seen,
                        Placed::Added => Fate::Unseen,
                        Placed::Nowhere(_) => Fate::NoPlace,
                    });
                });
                fates
            }
            Self::Set => new.iter().map(|&new| fate(new)).collect(),
        })
    }

    /// Returns true if it grows by layers.
    fn grows(&self) -> bool {
        matches!(self, Self::InMemory(filter, _) if filter.gauge().fill().layers > 0)
    }
}
