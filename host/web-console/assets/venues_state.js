// Where each venue stands.

import { listen, tell } from "./bus.js";
import { ask, isReplay, state } from "./state.js";

const NEW = () => ({
  state: "Disconnected", push: null, code: null, since_ms: null, second_password: null, locked_until_ms: null,
  frozen: false, error: null,
});
const venues = new Map();

export const VENUES = ["web_broker", "local_broker"];

export function venueOf(name) {
  if (!venues.has(name)) venues.set(name, NEW());
  return venues.get(name);
}

function change(name, changes) {
  Object.assign(venueOf(name), changes);
  tell("venue", name);
}

let unlock = null;

/** When a lock ends the state is asked for again. */
function watchLock(until) {
  clearTimeout(unlock);
  if (until === null || until === undefined) return;
  unlock = setTimeout(() => ask("GetVenueState", { venue: "web_broker" }).catch(() => {}), Math.max(0, until - Date.now()) + 500);
}

listen("VenueState", (event) => {
  const password = event.second_password ?? (event.second_password_held === true ? "held" : event.second_password_held === false ? "none" : null);
  const good = event.state === "Ready";
  const before = venueOf(event.venue);
  change(event.venue, {
    state: event.state, push: event.push, code: event.code, since_ms: event.since_ms, second_password: password,
    locked_until_ms: event.locked_until_ms ?? null,
    frozen: good ? false : before.frozen || event.code === "session_expired",
    error: good ? null : before.error,
  });
  if (event.venue === "web_broker") watchLock(event.locked_until_ms);
});

listen("VenueLoginStarted", ({ venue }) => change(venue, { state: "LoggingIn" }));

listen("VenueReady", ({ venue }) => {
  change(venue, { state: "Ready", frozen: false, error: null, code: null });
  refresh(venue);
});

listen("VenueLoginCancelled", ({ venue }) => refresh(venue));

listen("VenueCredentialsRefreshed", ({ venue }) => change(venue, { frozen: false }));

listen("VenueError", ({ venue, code, message }) => {
  change(venue, { error: { code, message }, frozen: venueOf(venue).frozen || code === "session_expired" });
  refresh(venue);
});

// A frozen session tells so with each order too.
listen("OrderRejected", ({ venue, reason_code, reason_text }) => {
  if (reason_code === "SESSION_EXPIRED" && (reason_text ?? "").startsWith("FROZEN")) change(venue ?? "web_broker", { frozen: true });
});

function refresh(venue) {
  ask("GetVenueState", { venue }).catch(() => {});
}

/** Asks for all of them. */
export function askVenues() {
  if (isReplay()) return;
  venues.clear();
  for (const venue of Object.keys(state.venueCapabilities)) refresh(venue);
}

listen("synced", askVenues);

// The push stream begins and ends without an event of its own; boards show it at once.
const PUSH_MS = 2_000;
setInterval(() => {
  const venue = venueOf("local_broker");
  if (!isReplay() && state.synced && venue.state === "Ready" && venue.push !== "Streaming") refresh("local_broker");
}, PUSH_MS);
