// Sections of the page, each drawn from the status and the history.

import { attribute, element, number, rows, show, svg, text } from "./dom.js";
import * as format from "./format.js";
import { COVERED } from "./history.js";

/** Fates of items: the name of the count, the name of the class, and the words. */
export const FATES = [
  ["unseen", "unseen", "Unseen"],
  ["seen", "seen", "Seen"],
  ["unfiltered", "unfiltered", "Unfiltered"],
  ["dropped", "dropped", "Dropped"],
  ["over_limit", "over-limit", "Over a limit"],
  ["rejected", "rejected", "Rejected"],
];

/** Age in seconds from which a length is shown with its age. */
const STALE = 3;

const items = (counts) => FATES.reduce((sum, [name]) => sum + (counts[name] ?? 0), 0);

/** Returns the values of a status whose rates the page shows. */
export function values({ counts, lists, held }) {
  return { ...counts, items: items(counts), ...prefixed({ ...lists, held: held?.requests }) };
}

const prefixed = (lists) =>
  Object.fromEntries(Object.entries(lists).map(([name, length]) => [`list ${name}`, length]));

export function drawOverview({ counts, lists, filter }, history) {
  const [rate, unseen] = [history.rate("items"), history.rate("unseen")];
  text("rate", format.rate(rate));
  text("rate-note", "mean of the last 10 seconds");
  const all = items(counts);
  const share = rate > 0 ? unseen / rate : all > 0 ? counts.unseen / all : null;
  text("share", format.percent(share));
  text("share-note", rate > 0 ? "of the last 10 seconds" : "of all items since the start");
  drawWaiting(lists, rate);
  drawFill(filter);
}

function drawWaiting({ source, age_seconds: age }, rate) {
  text("waiting", format.count(source));
  const lag = rate > 0 && source > 0 ? `about ${format.span(source / rate)} at this rate` : "";
  const old = age >= STALE ? `as of ${age} s ago` : "";
  text("waiting-note", [lag, old].filter(Boolean).join(", ") || (source === 0 ? "no lag" : ""));
}

function drawFill(filter) {
  const made = filter?.limit ?? filter?.capacity;
  text("fill", format.percent(filter && filter.keys / made));
  text("fill-note", filter ? `of ${format.count(made)} fingerprints` : "not known yet");
  text("lost", format.expected(filter?.lost_urls));
  const isKnown = filter?.lost_urls != null;
  text("lost-note", isKnown ? "so far, by expectation" : "not known for this filter");
  const seconds = filter?.full_seconds;
  text("full", seconds != null ? format.span(seconds) : format.UNKNOWN);
  text("full-note", filter ? fullNote(filter) : "not known yet");
}

function fullNote({ limit, keys, full_seconds: seconds }) {
  if (seconds != null) return "at the speed of the last minutes";
  if (limit == null) return "takes more memory instead";
  return keys >= limit ? "full: the error rate rises" : "hardly grows now";
}

/** Draws the table of fates, with a line for each. */
export function drawItems({ counts }, history) {
  const all = items(counts);
  const lines = [...FATES, ["items", "sum", "All items"]].map(([name, kind, words]) => {
    const series = history.series(name);
    const peak = Math.max(0, ...series.map((it) => it.rate));
    return { name, kind, words, series, peak, value: name === "items" ? all : counts[name] };
  });
  rows("fates", lines.map(({ name, kind, words, series, peak, value }) => [
    { text: words, kind: kind === "sum" ? kind : `fate ${kind}` },
    number(format.rate(history.rate(name)), kind),
    { text: "", kind: `spark ${kind}` },
    number(format.rate(series.length > 0 ? peak : null), `wide ${kind}`),
    number(format.percent(all > 0 ? value / all : null), `wide ${kind}`),
    number(format.count(value), kind),
  ]));
  lines.forEach(({ series, peak }, index) => {
    const cell = element("fates").rows[index].cells[2];
    drawLine(cell.firstElementChild ?? cell.appendChild(line()), series, history.end, peak);
  });
}

/** Draws the lengths of the lists. */
export function drawLists({ lists, held, waiting_seconds: oldest }, history) {
  const lengths = { ...lists, held: held?.requests };
  const known = [
    ["source", "Source", "wait to be claimed"],
    ["processing", "Processing", "are claimed and not committed"],
    ["sink", "Sink", "are unseen and wait for crawlers"],
    ["rejected", "Rejects", "are unreadable and wait for a decision"],
    ["held", "Held", "consumers fetched and have not finished"],
  ].filter(([name]) => lengths[name] != null);
  rows("list-rows", known.map(([name, words, what]) => [
    words,
    { text: what, kind: "wide quiet" },
    number(format.count(lengths[name])),
    number(format.change(history.rate(`list ${name}`)), "quiet"),
  ]));
  const age = lists.age_seconds;
  const note = [
    oldest > 0 && `The oldest uncommitted item is at most ${format.span(Math.ceil(oldest))} old.`,
    held && `Consumers that can hold requests: ${format.count(held.consumers)}.`,
    age >= STALE && `The daemon read the length of the source ${age} s ago.`,
  ];
  text("list-note", note.filter(Boolean).join(" "));
}

/** Draws the counts of commits and of events. */
export function drawCommits({ counts, head, storage, lease_seconds: lease }, history) {
  const good = [
    ["Batches", counts.batches],
    ["Snapshots", counts.snapshots],
    ["Recoveries", counts.recoveries],
  ];
  const bad = [
    ["Rollbacks", counts.rollbacks],
    ["Batches not committed and tested again", counts.batches_aborted],
    ["Rejects dropped from a full list", counts.rejects_dropped],
  ].filter(([words, value]) => value > 0 || words === "Rollbacks");
  rows("commit-rows", [
    ...good.map(([words, value]) => [words, number(format.count(value))]),
    ...bad.map(([words, value]) => [words, number(format.count(value), value > 0 ? "alarm" : "")]),
  ]);
  const rate = history.rate("batches");
  const parts = [
    head && `Last commit: ${format.count(head.seq)}`,
    rate != null && `${format.rate(rate)} batches a second`,
    lease != null && `lease for ${Math.floor(lease)} s`,
    storage && `log: ${format.bytes(storage.log_bytes)}, fsync: ${storage.fsync}`,
    storage?.last_snapshot && `last snapshot at ${format.clock(storage.last_snapshot)}`,
  ];
  text("commit-note", parts.filter(Boolean).join("; "));
}

/** Draws the table of the filter and its generations. */
export function drawFilter({ filter }) {
  show("filter", Boolean(filter));
  if (!filter) return;
  const { frozen_error_rate: frozen } = filter;
  const lines = [
    ["Fingerprints", format.count(filter.keys)],
    ["Capacity", format.count(filter.capacity)],
    ["Keeps its error rate up to", filter.limit == null ? "no limit" : format.count(filter.limit)],
    ["Error rate now", format.probability(filter.error_rate)],
    ["Part of the frozen filter", frozen && format.probability(frozen)],
    ["Lost URLs, by expectation", format.expected(filter.lost_urls)],
    ["Forgotten, pass again", filter.forgotten > 0 && format.count(filter.forgotten)],
    ["Memory", format.bytes(filter.bytes)],
  ].filter(([, value]) => value);
  rows("filter-rows", lines.map(([words, value]) => [words, number(value)]));
  drawGenerations(filter.generations);
}

function drawGenerations(generations) {
  show("generations", Boolean(generations));
  text("generation-note", "");
  if (!generations) return;
  const { keys, next_seconds: next, number: present, expired, swept } = generations;
  const age = (index) => (index === 0 ? "Present generation" : `${index} earlier`);
  rows("generation-rows", keys.map((keys, index) => [age(index), number(format.count(keys))]));
  const parts = [
    `Generation ${present}`,
    next != null && `the next one begins in ${format.span(next)}`,
    `expired and not freed: ${format.count(expired)}`,
    `freed: ${format.count(swept)}`,
  ];
  text("generation-note", parts.filter(Boolean).join("; "));
}

/** Draws the numbers of items by rule. */
export function drawRules(status) {
  const { passed = [], dropped_by_rule: dropped = [], over_limit_by_rule: over = [] } = status;
  const row = (kind) => ({ rule, items }) => [rule, kind, number(format.count(items))];
  const kept = [...dropped.map(row("drop")), ...over.map(row("limit"))];
  const lines = [...passed.map(row("pass")), ...kept];
  show("rules", lines.length > 0);
  show("drops", dropped.length > 0);
  show("over", over.length > 0);
  rows("rule-rows", lines);
}

/** Draws the answers to clients, and the number of clients. */
export function drawAsked({ asked, clients }) {
  const lines = [
    ["Seen", asked.seen],
    ["Unseen", asked.unseen],
    ["Refused, no room", asked.full],
    ["Forgotten", asked.forgotten],
  ];
  show("asked", Boolean(clients) || lines.some(([, value]) => value > 0));
  text("client-note", clients ? clientNote(clients) : "");
  rows("asked-rows", lines.map(([words, value]) => [words, number(format.count(value))]));
}

function clientNote({ open, accepted, refused }) {
  const [now, all, none] = [open, accepted, refused].map(format.count);
  return `Clients that are connected: ${now}; accepted since the start: ${all}; refused: ${none}.`;
}

/** Size of the drawings of rates over time. */
const WIDTH = 300;
const HEIGHT = 28;

/** Makes an empty drawing for a line. The numbers beside it say the same, so it has no name. */
function line() {
  const drawing = svg("svg");
  drawing.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("aria-hidden", "true");
  const area = drawing.appendChild(svg("path"));
  area.setAttribute("class", "area");
  drawing.appendChild(svg("path"));
  return drawing;
}

/** Draws the rates of the last minutes before `end`, from 0 up to `peak`. */
function drawLine(drawing, series, end, peak) {
  const x = (time) => (WIDTH * (1 - (end - time) / COVERED)).toFixed(1);
  const y = (rate) => (HEIGHT - 1 - ((HEIGHT - 3) * Math.max(rate, 0)) / (peak || 1)).toFixed(1);
  const points = series.map(({ time, rate }) => `${x(time)} ${y(rate)}`);
  const path = points.length > 1 ? `M${points.join("L")}` : "";
  const [area, stroke] = drawing.children;
  const [first, last] = [series[0], series.at(-1)];
  const close = path && `L${x(last.time)} ${HEIGHT}L${x(first.time)} ${HEIGHT}Z`;
  attribute(area, "d", path + close);
  attribute(stroke, "d", path);
}
