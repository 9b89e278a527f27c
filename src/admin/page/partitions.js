// Tables of partitions: those of a daemon, and those of a router.

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
