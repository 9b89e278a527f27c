// Numbers, times and sizes as text.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const ONE_DIGIT = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
const FRACTION = new Intl.NumberFormat("en", ONE_DIGIT);
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const SPANS = [["y", 31557600], ["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
const CENTURY = 100 * SPANS[0][1];

/** Text in place of a value that is not known. */
export const UNKNOWN = "–";

/** Formats a count. */
export const count = (number) => (number == null ? UNKNOWN : WHOLE.format(number));

/** Formats a number of events a second. Slow ones keep a decimal. */
export function rate(number) {
  if (number == null) return UNKNOWN;
  return number === 0 || Math.abs(number) >= 100 ? WHOLE.format(number) : FRACTION.format(number);
}

/** Formats the change of a length, with its sign. */
export function change(number) {
  if (number == null) return UNKNOWN;
  if (Math.abs(number) < 0.05) return "0";
  return (number > 0 ? "+" : "−") + rate(Math.abs(number));
}

/** Formats a share between 0 and 1. A small one keeps a digit that is not 0. */
export function percent(share) {
  if (share == null) return UNKNOWN;
  const number = 100 * share;
  if (number === 0 || number >= 0.05) return `${FRACTION.format(number)} %`;
  return `${number < 1e-4 ? "< 0.0001" : number.toPrecision(1)} %`;
}

/** Formats a small probability, such as an error rate. */
export const probability = (number) => (number === 0 ? "0" : number.toExponential(1));

/** Formats an expected number of URLs. */
export function expected(number) {
  if (number == null) return UNKNOWN;
  if (number === 0 || number >= 100) return WHOLE.format(number);
  return number < 0.01 ? "< 0.01" : number.toFixed(2);
}

/** Formats a size in bytes. */
export function bytes(number) {
  if (number == null) return UNKNOWN;
  let unit = 0;
  for (; number >= 1024 && unit < UNITS.length - 1; unit += 1) number /= 1024;
  return `${unit === 0 ? number : number.toFixed(number < 10 ? 2 : 1)} ${UNITS[unit]}`;
}

/** Formats a time in its two largest units. */
export function span(seconds) {
  if (seconds > CENTURY) return "over 100 y";
  const first = SPANS.findIndex(([, length]) => seconds >= length);
  if (first < 0) return "under 1 s";
  const parts = [];
  for (const [unit, length] of SPANS.slice(first, first + 2)) {
    const whole = Math.floor(seconds / length);
    if (whole > 0) parts.push(`${whole} ${unit}`);
    seconds -= whole * length;
  }
  return parts.join(" ");
}

/** Formats a time of day. */
export const clock = (date) => new Date(date).toLocaleTimeString("en-GB");
