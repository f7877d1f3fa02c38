// Exact decimal numbers of the wire: integers of 1/10,000, as BigInt. No amount is a binary fraction.

const DIGITS = 4;
const SCALE = 10n ** BigInt(DIGITS);
const FORM = /^(-?)(\d+)(?:\.(\d{1,4}))?$/;

/** The units of a decimal text, or null where it is none. */
export function units(text) {
  const found = FORM.exec(text ?? "");
  if (found === null) return null;
  const value = BigInt(found[2]) * SCALE + BigInt((found[3] ?? "").padEnd(DIGITS, "0"));
  return found[1] === "-" ? -value : value;
}

/** The shortest decimal text of units. */
export function decimal(value) {
  const negative = value < 0n;
  const digits = String(negative ? -value : value).padStart(DIGITS + 1, "0");
  const fraction = digits.slice(-DIGITS).replace(/0+$/, "");
  return (negative ? "-" : "") + digits.slice(0, -DIGITS) + (fraction === "" ? "" : `.${fraction}`);
}

/** The product of a count of shares and a price, in units. */
export const worth = (shares, price) => BigInt(shares) * price;

/** The step at a price of an instrument's table; null without a table. */
export function tickAt(ticks, price) {
  const band = (ticks ?? []).find(({ up_to }) => up_to === null || up_to === undefined || price <= units(up_to));
  return band === undefined ? null : units(band.tick);
}

/** The next price of the table above (`by` 1) or below (-1). */
export function stepped(ticks, price, by) {
  // Just above a band's end the next band's step holds; below an end the lower one's.
  const step = tickAt(ticks, by > 0 ? price + 1n : price);
  if (step === null || step === 0n) return price;
  const rest = ((price % step) + step) % step;
  if (by > 0) return price - rest + step;
  const next = rest === 0n ? price - step : price - rest;
  return next > 0n ? next : price;
}

/** A count of shares that is one lot more or less, and never less than one lot. */
export function steppedLots(lot, shares, by) {
  const size = BigInt(lot > 0 ? lot : 1);
  const count = /^\d+$/.test(shares) ? BigInt(shares) : 0n;
  const next = by > 0 ? (count / size + 1n) * size : ((count + size - 1n) / size - 1n) * size;
  return String(next > 0n ? next : size);
}
