// Tables of partitions, those of a daemon and those of a router, and the sum of partitions.

import { number, rows, show, text } from "./dom.js";
import * as format from "./format.js";
import { phase } from "./phase.js";
import { FATES } from "./sections.js";

/** Draws a row for each partition of a daemon, if there are several. */
export function drawPartitions(statuses) {
  show("partitions", statuses.length > 1);
  if (statuses.length < 2) return;
  rows("partition-rows", statuses.map(({ partition, phase: now, lists, counts, filter }) => [
    number(partition),
    { text: phase(now), kind: now.name === "failed" ? "alarm" : "" },
    number(format.count(lists.source)),
    number(format.count(lists.sink)),
    number(format.count(FATES.reduce((sum, [name]) => sum + counts[name], 0)), "wide"),
    number(format.percent(filter?.fill)),
  ]));
}

/** Draws a row for each partition of a router. */
export function drawRouter({ partitions, routed, source }) {
  rows("router-rows", partitions.map(({ partition, pushed, waiting, trouble }) => [
    number(partition),
    number(format.count(pushed)),
    number(format.count(waiting)),
    trouble ? { text: trouble, kind: "alarm" } : "works",
  ]));
  text("router-note", `${format.count(routed)} items have left the list ${source}.`);
}

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
