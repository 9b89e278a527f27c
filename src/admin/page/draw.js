// Drawings: lines of rates over time.

import { attribute, svg } from "./dom.js";
import { COVERED } from "./history.js";

const WIDTH = 300;
const HEIGHT = 28;

/** Makes an empty drawing for a line. The numbers beside it say the same, so it has no name. */
export function line() {
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
export function drawLine(drawing, series, end, peak) {
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
