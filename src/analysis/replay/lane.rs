//! Lane of a replay: a filter of one kind, compared with the exact filter.

use urlseen_filter::choice::FilterPlace;
use urlseen_filter::{
    FilterKind, FilterSpec, Full, KeyHasher, Kind, Parameters, ScriptFilter, Seed, SpecError,
    Verdict,
};
use urlseen_fingerprint::Fingerprint;

use super::curve::{Curve, CurvePoint};
use super::report::LaneReport;

/// Maximum memory of a daemon in addition to its filter, in bytes. It is the bound of its buffers,
/// not a measurement.
const DAEMON_BYTES: u64 = 67_108_864;

/// Bytes of memory that a daemon needs for each recent fingerprint of a filter in Redis.
const RECENT_BYTES: u64 = 8;

/// Spec of a lane whose filter is not created yet.
#[derive(Debug)]
pub(crate) struct LaneSpec {
    parameters: Parameters,
    scripted: Option<ScriptFilter>,
    /// Memory that the filter takes at the start, in bytes.
    pub(super) bytes: u64,
    /// Number of recent fingerprints that a daemon keeps, if the filter is in Redis.
    recent: Option<u64>,
}

impl LaneSpec {
    /// Checks that a filter can have this spec. `place` counts only for a kind that can be in both
    /// places. In Redis, a daemon keeps `recent` fingerprints in memory.
    ///
    /// # Errors
    /// The kind cannot have this size.
    pub(crate) fn new(
        spec: &FilterSpec,
        place: FilterPlace,
        recent: usize,
    ) -> Result<Self, SpecError> {
        let parameters = spec.parameters.clone();
        let bytes = parameters.outlook(0)?.bytes[1];
        let kind = parameters.kind();
        let is_local = kind.is_in(FilterPlace::Local);
        let scripted = if is_local { None } else { ScriptFilter::new(parameters.in_redis()?) };
        let is_in_redis = !is_local || place == FilterPlace::Redis && kind.is_in(place);
        let recent = is_in_redis.then_some(recent as u64);
        Ok(Self { parameters, scripted, bytes, recent })
    }
}

/// Fingerprints that the lanes judge, from one batch.
#[derive(Debug)]
pub(super) struct Judgable {
    /// Number of items up to the end of this batch.
    pub(super) items: u64,
    /// New fingerprints, in order: fingerprints that were not seen before.
    pub(super) new: Vec<Fingerprint>,
    /// Number of fingerprints that were seen before.
    pub(super) again: u64,
    /// Fingerprints that were seen before, if a lane needs them.
    pub(super) seen: Vec<Fingerprint>,
    /// True if the batch only tells the lanes which fingerprints count as seen before the first
    /// item.
    pub(super) is_given: bool,
}

/// Filter that judges fingerprints, with the counts of its verdicts.
#[derive(Debug)]
pub(super) struct Lane {
    parameters: Parameters,
    recent: Option<u64>,
    filter: Filter,
    /// Report with the counts so far.
    report: LaneReport,
    /// Next point of the curve, without its rates. Its new fingerprints are those for which the
    /// kind has bit positions.
    now: CurvePoint,
    curve: Curve,
    /// Number of different fingerprints that the filter was given, except those for which the kind
    /// has no bit positions. New fingerprints that the filter wrongly reported as seen are
    /// included, because all of their bits are set.
    members: u64,
    /// Number of fingerprints that the filter was given and judged unseen.
    added: u64,
}

/// Filter of a lane, by its place.
#[derive(Debug)]
enum Filter {
    /// Filter in the memory of this process.
    Local(Box<dyn FilterKind>, KeyHasher),
    /// Simulation of a Redis filter in the memory of this process. Its verdicts equal those of the
    /// scripts in Redis.
    Scripted(ScriptFilter),
    /// Exact filter in Redis. Its verdicts equal those of the replay's own exact filter, so the
    /// lane has no filter.
    Exact,
}

/// Counts of fingerprints by the answer of the filter.
#[derive(Debug, Default, Clone, Copy)]
struct LaneCounts {
    unseen: u64,
    seen: u64,
    no_place: u64,
}

impl Lane {
    /// Creates the lane with an empty filter.
    pub(super) fn start(spec: LaneSpec, seed: Seed) -> anyhow::Result<Self> {
        let parameters = spec.parameters.reseeded(seed);
        let filter = match spec.scripted {
            _ if parameters.kind().is_in(FilterPlace::Local) => {
                Filter::Local(parameters.build()?, parameters.hasher())
            }
            Some(scripted) => Filter::Scripted(scripted),
            None => Filter::Exact,
        };
        let kind = parameters.kind();
        let report = LaneReport { name: kind.name(), kind, ..LaneReport::default() };
        let (recent, now, curve) = (spec.recent, CurvePoint::default(), Curve::new());
        Ok(Self { parameters, recent, filter, report, now, curve, members: 0, added: 0 })
    }

    /// Returns the kind of the filter.
    pub(super) fn kind(&self) -> Kind {
        self.parameters.kind()
    }

    /// Returns true if the kind may have no bit positions for some fingerprints. The lane then also
    /// needs the fingerprints that were seen before.
    pub(super) fn needs_seen(&self) -> bool {
        matches!(self.filter, Filter::Scripted(_))
    }

    /// Judges a batch, and adds its unseen fingerprints to the filter.
    pub(super) fn judge(&mut self, batch: &Judgable) {
        if self.report.stopped.is_some() {
            return;
        }
        let new = match self.filter.judge_new(&batch.new) {
            Ok(new) => new,
            Err(why) => {
                self.report.stopped = Some(why.to_string());
                return;
            }
        };
        self.members += new.unseen + new.seen;
        self.added += new.unseen;
        if batch.is_given {
            return;
        }
        self.now.new += new.unseen + new.seen;
        self.now.wrong += new.seen;
        self.now.again += batch.again;
        self.now.items = batch.items;
        for LaneCounts { unseen, seen, no_place } in [new, self.filter.judge_again(batch)] {
            self.report.unseen += unseen;
            self.report.seen += seen;
            self.report.no_place += no_place;
        }
        let is_full = self.parameters.capacity().is_some_and(|most| self.keys() >= most);
        if is_full && !self.parameters.grows() {
            self.report.full_after.get_or_insert(batch.items);
        }
        if self.curve.wants(batch.items) {
            self.mark();
        }
    }

    /// Adds a point to the curve.
    fn mark(&mut self) {
        let before = self.curve.last();
        let error_rate_now = self.error_rate();
        // The rate grows between the two points, so the mean of both rates is used.
        let rate = f64::midpoint(before.error_rate_now, error_rate_now);
        let expected = before.expected + rate * (self.now.new - before.new) as f64;
        self.curve.push(CurvePoint { expected, error_rate_now, ..self.now });
    }

    /// Ends the lane, and returns its report.
    pub(super) fn end(mut self) -> LaneReport {
        if self.now.items > self.curve.last().items {
            self.mark();
        }
        let keys = self.keys();
        let capacity = match &self.filter {
            Filter::Local(filter, _) if !self.parameters.is_exact() => {
                Some(filter.gauge().fill().capacity)
            }
            _ => self.parameters.capacity(),
        };
        let outlook = |keys| self.parameters.outlook(keys).ok();
        let bytes = outlook(keys).map_or([0; 2], |outlook| outlook.bytes);
        LaneReport {
            items: self.now.items,
            wrong: self.now.wrong,
            wrong_computed: self.curve.last().expected,
            error_rate: self.curve.last().measured(),
            error_rate_now: self.error_rate(),
            keys,
            capacity,
            filter_bytes: bytes[0],
            daemon_bytes: DAEMON_BYTES + self.recent.map_or(bytes[1], |it| it * RECENT_BYTES),
            redis_bytes: self.recent.map(|_| bytes),
            warning: capacity.and_then(outlook).and_then(|outlook| outlook.warning),
            curve: self.curve.points,
            ..self.report
        }
    }

    /// Returns the share of unseen fingerprints that the filter reports as seen now.
    fn error_rate(&self) -> f64 {
        match &self.filter {
            Filter::Local(filter, _) => filter.gauge().error_rate(),
            Filter::Scripted(_) | Filter::Exact => {
                self.parameters.outlook(self.members).map_or(0.0, |outlook| outlook.error_rate)
            }
        }
    }

    fn keys(&self) -> u64 {
        match &self.filter {
            Filter::Local(filter, _) => filter.gauge().fill().counted,
            Filter::Scripted(_) | Filter::Exact => self.added,
        }
    }
}

impl Filter {
    /// Judges new fingerprints, and adds the unseen ones to the filter. A filter in memory first
    /// tests all fingerprints, as a daemon does with a batch. A script tests and adds the
    /// fingerprints one by one.
    fn judge_new(&mut self, fingerprints: &[Fingerprint]) -> Result<LaneCounts, Full> {
        let all = fingerprints.len() as u64;
        Ok(match self {
            Self::Local(filter, hasher) => {
                let key_hashes: Vec<_> =
                    fingerprints.iter().map(|it| hasher.key_hash(it)).collect();
                let mut verdicts = Vec::new();
                filter.test(&key_hashes, &mut verdicts);
                let unseen = key_hashes.into_iter().zip(verdicts);
                let unseen = unseen.filter(|&(_, verdict)| verdict == Verdict::Unseen);
                let unseen: Vec<_> = unseen.map(|(key_hash, _)| key_hash).collect();
                filter.reserve_for(&unseen)?;
                filter.insert(&unseen)?;
                let unseen = unseen.len() as u64;
                LaneCounts { unseen, seen: all - unseen, no_place: 0 }
            }
            Self::Scripted(filter) => scripted(filter, fingerprints),
            Self::Exact => LaneCounts { unseen: all, ..LaneCounts::default() },
        })
    }

    /// Judges fingerprints that were judged before. The filter reports each of them as seen, unless
    /// the kind has no bit positions for it.
    fn judge_again(&mut self, batch: &Judgable) -> LaneCounts {
        match self {
            Self::Scripted(filter) => scripted(filter, &batch.seen),
            Self::Local(..) | Self::Exact => {
                LaneCounts { seen: batch.again, ..LaneCounts::default() }
            }
        }
    }
}

/// Judges fingerprints in the same way as the scripts of a filter in Redis.
fn scripted(filter: &mut ScriptFilter, fingerprints: &[Fingerprint]) -> LaneCounts {
    let mut counts = LaneCounts::default();
    for fingerprint in fingerprints {
        match filter.add(fingerprint) {
            Ok(Verdict::Seen) => counts.seen += 1,
            Ok(Verdict::Unseen) => counts.unseen += 1,
            Err(_) => counts.no_place += 1,
        }
    }
    counts
}
