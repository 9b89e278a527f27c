// Counts of the last minutes, and the rates that follow from them.

/** Time that the history covers, in milliseconds. */
export const COVERED = 5 * 60 * 1000;

/** Time over which a present rate is the mean, in milliseconds. */
const PRESENT = 10 * 1000;

/** Maximum number of points, also if the page asks more often than once a second. */
const POINTS = 400;

/** Values of a few names at the times of the last minutes. */
export class History {
  #points = [];
  #origin = "";

  /**
   * Adds the values of a time. If they have another origin than before, such as a new process,
   * earlier values are dropped, and the result is true.
   */
  add(time, values, origin) {
    const isNew = origin !== this.#origin;
    if (isNew) this.#points = [];
    this.#origin = origin;
    this.#points.push({ time, values });
    const old = this.#points.findIndex((point) => time - point.time <= COVERED);
    this.#points.splice(0, Math.max(old, this.#points.length - POINTS));
    return isNew;
  }

  /** Returns the present rate of a name, a second; null before there are two points. */
  rate(name) {
    const last = this.#points.at(-1);
    const isPresent = (point) => last.time - point.time <= PRESENT && point.values[name] != null;
    const first = this.#points.find(isPresent);
    return first && first !== last ? slope(first, last, name) : null;
  }

  /** Returns the rates of a name between the points, each with the time of its end. */
  series(name) {
    const pairs = this.#points.slice(1).map((point, index) => [this.#points[index], point]);
    return pairs.map(([from, to]) => ({ time: to.time, rate: slope(from, to, name) ?? 0 }));
  }

  /** Returns the time of the last point. */
  get end() {
    return this.#points.at(-1)?.time ?? 0;
  }
}

function slope(from, to, name) {
  const [before, after] = [from.values[name], to.values[name]];
  if (before == null || after == null) return null;
  return ((after - before) * 1000) / Math.max(to.time - from.time, 1);
}
