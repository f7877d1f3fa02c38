// What the venue knows of an instrument: name, lot, price steps and the day's limits.

import { listen, tell } from "./bus.js";
import { ask, isReady } from "./state.js";

/** The limits of the day move; they are asked for again after this. */
const FRESH_MS = 60_000;

const known = new Map();

/** What is known; it is asked for where it is missing or old. */
export function instrument(venue, id) {
  const key = `${venue} ${id}`;
  const entry = known.get(key);
  if (entry !== undefined && (entry.asking || performance.now() - entry.at < FRESH_MS)) return entry.value;
  if (!isReady() || !/^[0-9A-Z]{4,9}\.[A-Z]+$/.test(id)) return entry?.value ?? null;
  const next = { value: entry?.value ?? null, asking: true, at: 0 };
  known.set(key, next);
  ask("GetInstrument", { venue, instrument_id: id })
    .then((answer) => (next.value = answer), () => {})
    .finally(() => {
      Object.assign(next, { asking: false, at: performance.now() });
      tell("instrument", id);
    });
  return next.value;
}

for (const name of ["connection", "loaded", "run-began"]) listen(name, () => known.clear());
listen("VenueReady", () => known.clear());
