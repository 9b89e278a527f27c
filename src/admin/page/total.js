// Sum of the partitions of a process.

/** Returns one status for all partitions. That of a single partition stays as it is. */
export function total(statuses) {
  if (statuses.length === 1) return statuses[0];
  const [first] = statuses;
  const filters = statuses.map((it) => it.filter).filter(Boolean);
  return {
    ...first,
    counts: sums(statuses.map((it) => it.counts)),
    asked: sums(statuses.map((it) => it.asked)),
    lists: {
      ...sums(statuses.map((it) => it.lists)),
      age_seconds: greatest(statuses.map((it) => it.lists.age_seconds)),
    },
    waiting_seconds: greatest(statuses.map((it) => it.waiting_seconds)),
    held: held(statuses.map((it) => it.held).filter(Boolean)),
    passed: byRule(statuses.map((it) => it.passed)),
    dropped_by_rule: byRule(statuses.map((it) => it.dropped_by_rule)),
    over_limit_by_rule: byRule(statuses.map((it) => it.over_limit_by_rule)),
    filter: filters.length === statuses.length ? filter(filters) : null,
  };
}

/** Adds the numbers with the same name. A number that one object lacks is left out there. */
function sums(objects) {
  const sum = {};
  for (const object of objects) {
    for (const [name, value] of Object.entries(object)) {
      if (typeof value === "number") sum[name] = (sum[name] ?? 0) + value;
    }
  }
  return sum;
}

/** Adds held requests. A consumer can hold requests of several partitions. */
function held(all) {
  if (all.length === 0) return null;
  return { ...sums(all), consumers: greatest(all.map((it) => it.consumers)) };
}

function filter(filters) {
  const sum = sums(filters);
  const mean = (name) => filters.reduce((all, it) => all + (it[name] ?? 0) * it.keys, 0);
  const known = (name) => filters.every((it) => it[name] != null);
  const times = filters.map((it) => it.full_seconds).filter((it) => it != null);
  return {
    ...sum,
    fill: sum.keys / Math.max(sum.capacity, 1),
    error_rate: mean("error_rate") / Math.max(sum.keys, 1),
    frozen_error_rate: sum.frozen_error_rate && mean("frozen_error_rate") / Math.max(sum.keys, 1),
    lost_urls: known("lost_urls") ? sum.lost_urls : null,
    limit: known("limit") ? sum.limit : null,
    // The partition that is full first decides.
    full_seconds: times.length > 0 ? Math.min(...times) : null,
    generations: known("generations") ? generations(filters.map((it) => it.generations)) : null,
  };
}

function generations(all) {
  const keys = all.reduce((sum, it) => zipped(sum, it.keys), []);
  const next = all.map((it) => it.next_seconds).filter((it) => it != null);
  const number = greatest(all.map((it) => it.number));
  return { ...sums(all), number, keys, next_seconds: next.length > 0 ? Math.min(...next) : null };
}

/** Adds lists of rules. All partitions have the same rules in the same order. */
function byRule(lists) {
  const [first = []] = lists;
  return first.map(({ rule }, index) => {
    return { rule, items: lists.reduce((sum, list) => sum + list[index].items, 0) };
  });
}

/** Adds the numbers at the same places of two lists. */
function zipped(one, other) {
  const longer = one.length > other.length ? one : other;
  return longer.map((_, index) => (one[index] ?? 0) + (other[index] ?? 0));
}

function greatest(numbers) {
  const known = numbers.filter((it) => it != null);
  return known.length > 0 ? Math.max(...known) : null;
}
