// Sum of the partitions of a process.

/** Parts of a status that are summed. All others are those of the first partition. */
const SUMMED = ["counts", "asked", "lists", "waiting_seconds", "held", "filter"].concat(
  ["passed", "dropped_by_rule", "over_limit_by_rule"]);
/** Numbers of which the greatest counts. A consumer can hold requests of several partitions. */
const GREATEST = ["age_seconds", "waiting_seconds", "consumers", "number"];
/** Times of which the shortest counts. The partition that is full first decides. */
const LEAST = ["full_seconds", "next_seconds"];
/** Values that are known only if they are known of all partitions. */
const OF_ALL = ["filter", "lost_urls", "limit", "generations"];

/** Returns one status for all partitions. That of a single partition stays as it is. */
export function total(statuses) {
  if (statuses.length === 1) return statuses[0];
  const sums = SUMMED.map((name) => [name, sum(statuses.map((it) => it[name]), name)]);
  const whole = { ...statuses[0], ...Object.fromEntries(sums) };
  if (whole.filter) Object.assign(whole.filter, shares(whole.filter, statuses));
  return whole;
}

/** Returns the shares of a summed filter. An error rate is the mean over all fingerprints. */
function shares({ keys, capacity, frozen_error_rate: frozen }, statuses) {
  const product = (filter, name) => (filter[name] ?? 0) * filter.keys;
  const products = (name) => statuses.reduce((all, it) => all + product(it.filter, name), 0);
  const mean = (name) => products(name) / Math.max(keys, 1);
  return {
    fill: keys / Math.max(capacity, 1),
    error_rate: mean("error_rate"),
    frozen_error_rate: frozen && mean("frozen_error_rate"),
  };
}

/** Adds the values of a name, those in objects and lists one by one. */
function sum(values, name) {
  const known = values.filter((it) => it != null);
  const isKnown = known.length > 0 && (known.length === values.length || !OF_ALL.includes(name));
  if (!isKnown) return undefined;
  const [first] = known;
  if (typeof first === "object") {
    const names = [...new Set(known.flatMap(Object.keys))];
    const parts = names.map((part) => [part, sum(known.map((it) => it[part]), part)]);
    return Array.isArray(first) ? parts.map(([, part]) => part) : Object.fromEntries(parts);
  }
  if (typeof first !== "number") return first;
  if (GREATEST.includes(name)) return Math.max(...known);
  return LEAST.includes(name) ? Math.min(...known) : known.reduce((all, it) => all + it);
}
