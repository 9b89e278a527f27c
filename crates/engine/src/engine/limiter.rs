//! Limiter: lets the unseen items of a batch through as far as the limits allow.

use std::collections::HashMap;
use std::sync::Arc;

use crate::item::{Findings, Items, Options, OverLimit, Reader};
use urlseen_filter::limit::{Claim, Counted, Counts, GROUPS_MAX, Group, Limits};
use urlseen_filter::{Hashed, Lifetimes};

/// Limiter of the unseen items of batches, in the order of the batches.
#[derive(Debug)]
pub(super) struct Limiter {
    limits: Limits,
    reader: Reader,
    /// Numbers of items that were let through and are not committed.
    in_flight: HashMap<Group, u64, Hashed>,
}

impl Limiter {
    /// Makes a limiter with the rules of these options; `None` if there are no rules.
    pub(super) fn new(items: &Options) -> Option<Self> {
        let has_rules = !items.limits.is_empty();
        has_rules.then(|| Self {
            limits: Limits::new(Arc::clone(&items.limits)),
            reader: Reader::new(items.clone()),
            in_flight: HashMap::default(),
        })
    }

    /// Takes those items out of the unseen ones that are over a limit, in the order of the items.
    /// `counts` has the items of all committed batches.
    pub(super) fn admit(&mut self, items: &Items, found: &mut Findings, counts: &Counts) {
        let mut onward = Vec::with_capacity(found.onward.len());
        let mut added = Vec::with_capacity(found.added.len());
        let mut lifetimes = Lifetimes::default();
        let mut unfiltered = found.unfiltered.iter().map(|&(index, _)| index).peekable();
        let mut counted = HashMap::<Group, u64, Hashed>::default();
        let unseen = std::mem::take(&mut found.added).into_iter().enumerate();
        let mut unseen = unseen.map(|(place, it)| (it, found.lifetimes.of(place)));
        for &index in &found.onward {
            if unfiltered.next_if_eq(&index).is_some() {
                onward.push(index);
                continue;
            }
            let (fingerprint, lifetime) = unseen.next().expect("an unseen item has a fingerprint");
            let url = self.reader.canonical_url(items.get(index as usize));
            let claims = url.map(|url| self.limits.claims(url)).unwrap_or_default();
            match self.take(claims, counts) {
                Ok(taken) => taken.iter().for_each(|&it| *counted.entry(it).or_default() += 1),
                Err(full) => {
                    let rule = u16::try_from(full.rule).expect("there are at most 100 rules");
                    let group = full.name.as_str().into();
                    found.over_limit.push(OverLimit { index, fingerprint, rule, group });
                    continue;
                }
            }
            onward.push(index);
            lifetimes.push(added.len(), lifetime);
            added.push(fingerprint);
        }
        let counted = counted.into_iter().map(|(group, items)| Counted { group, items });
        found.counted = counted.collect();
        (found.onward, found.added, found.lifetimes) = (onward, added, lifetimes);
    }

    /// Counts an item that no crawl in Redis has, at once. `url` is its canonical URL. Returns the
    /// changes of the counts; `None` if the item is over a limit.
    pub(super) fn admit_one(&mut self, url: &str, counts: &mut Counts) -> Option<Vec<Counted>> {
        let claims = self.limits.claims(url);
        let taken = self.take(claims, counts).ok()?.into_iter();
        let counted: Vec<_> = taken.map(|group| Counted { group, items: 1 }).collect();
        counts.change(&counted, 0);
        self.settle(&counted);
        Some(counted)
    }

    /// Takes the places that an item claims. Returns the groups whose counts go up. The error is
    /// the first claim of a full group.
    fn take(&mut self, claims: Vec<Claim>, counts: &Counts) -> Result<Vec<Group>, Claim> {
        if let Some(full) = claims.iter().position(|it| self.is_full(it, counts)) {
            return Err(claims.into_iter().nth(full).expect("the place of a claim"));
        }
        let mut taken = Vec::new();
        for Claim { group, value, .. } in claims {
            let is_known = value.is_some_and(|value| self.count(value, counts) > 0);
            for group in [Some(group), value].into_iter().flatten().filter(|_| !is_known) {
                *self.in_flight.entry(group).or_default() += 1;
                taken.push(group);
            }
        }
        Ok(taken)
    }

    /// Returns true if a group has no room for the claim of one more item.
    fn is_full(&self, claim: &Claim, counts: &Counts) -> bool {
        let count = self.count(claim.group, counts);
        if claim.value.is_some_and(|value| self.count(value, counts) > 0) {
            return false;
        }
        let most = self.limits.rules()[claim.rule].max;
        let is_new = count == 0 || claim.value.is_some();
        let lacks_memory = is_new && counts.len() + self.in_flight.len() >= GROUPS_MAX;
        count >= self.reader.share(most) || lacks_memory
    }

    /// Returns the number of items of a group that were let through.
    fn count(&self, group: Group, counts: &Counts) -> u64 {
        let in_flight = self.in_flight.get(&group).copied().unwrap_or_default();
        counts.of(group).unwrap_or_default() + in_flight
    }

    /// Records the commit of a batch, whose items are in the counts of committed batches now.
    pub(super) fn settle(&mut self, counted: &[Counted]) {
        for Counted { group, items } in counted {
            if let Some(left) = self.in_flight.get_mut(group) {
                *left -= items;
            }
        }
        self.in_flight.retain(|_, items| *items > 0);
    }

    /// Forgets all items that are not committed.
    pub(super) fn abort(&mut self) {
        self.in_flight.clear();
    }
}
