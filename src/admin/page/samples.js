// Newest rejects, drops and items over a limit.

import { rows } from "./dom.js";
import { clock } from "./format.js";

/** Number of rows of each table. */
const SHOWN = 10;

/** Fates that have a table, each with the table's body and the reason of an item. */
const TABLES = {
  rejected: ["reject-rows", (sample) => sample.reason],
  dropped: ["drop-rows", (sample) => sample.rule],
  "over-limit": ["over-rows", (sample) => sample.rule],
};

/** Samples that the page shows, the newest first. */
export class Samples {
  #byFate = {};
  #newest = 0;

  /** Number of the newest sample that the page knows. */
  get newest() {
    return this.#newest;
  }

  /** Adds samples, the oldest first, and draws the tables. */
  add(samples) {
    for (const sample of samples) {
      this.#newest = sample.number;
      const shown = (this.#byFate[sample.fate] ??= []);
      shown.unshift(sample);
      shown.length = Math.min(shown.length, SHOWN);
    }
    for (const [fate, [id, why]] of Object.entries(TABLES)) draw(id, this.#byFate[fate] ?? [], why);
  }

  /** Forgets all samples, which were those of an earlier daemon. */
  clear() {
    [this.#byFate, this.#newest] = [{}, 0];
  }
}

function draw(id, samples, why) {
  const none = [["–", { text: "none since the start", kind: "quiet" }, ""]];
  const lines = samples.map((sample) => [clock(sample.time), sample.text, why(sample)]);
  rows(id, lines.length > 0 ? lines : none);
}
