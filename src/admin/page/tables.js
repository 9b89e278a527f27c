// Captions and headings of all tables. The page itself has only the bodies of the tables.

import { element, heading, number } from "./dom.js";

const wide = (text) => ({ text, kind: "wide" });
const spark = (text) => ({ text, kind: "spark" });

/** Caption of each table, and its headings, by the id of its body. */
const TABLES = {
  fates: [
    "Committed items by fate", "Fate", number("A second"), spark("Last 5 minutes"),
    number("Peak", "wide"), number("Share", "wide"), number("Since the start"),
  ],
  "list-rows": [
    "Items that wait in Redis, and held requests", "List", wide("Items that"), number("Items"),
    number("Change a second"),
  ],
  "commit-rows": ["Since the start of the daemon", "Event", number("Number")],
  "filter-rows": ["Fingerprints in the filter", "Property", number("Value")],
  "generation-rows": ["Fingerprints by age, in generations", "Age", number("Fingerprints")],
  "rule-rows": [
    "Items that a rule decided about, since the start", "Rule", "Kind", number("Items"),
  ],
  "asked-rows": ["Answers to clients, since the start", "Answer", number("Fingerprints")],
  "partition-rows": [
    "Partitions of this process", number("Partition"), "Phase", number("Source"), number("Sink"),
    number("Items", "wide"), number("Fill"),
  ],
  "reject-rows": ["Items that could not be read", "Time", "Item", "Reason"],
  "drop-rows": ["Samples of items that a rule dropped", "Time", "Item", "Rule"],
  "over-rows": ["Samples of unseen items that limits drop", "Time", "Item", "Limit"],
  "router-rows": [
    "Partitions to which this process routes a list", number("Partition"), number("Acknowledged"),
    number("Waiting"), "Connection",
  ],
};

for (const [id, [caption, ...headings]] of Object.entries(TABLES)) {
  const table = element(id).parentElement;
  table.createCaption().textContent = caption;
  table.createTHead().insertRow().append(...headings.map(heading));
}
