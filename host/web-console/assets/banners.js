// What must not be overlooked: real money, a lost connection, a frozen session, a venue that is down.

import { listen } from "./bus.js";
import { foreign, make } from "./dom.js";
import { draw, drawing } from "./frames.js";
import { has, t } from "./language.js";
import { isReplay, isRunning, productionVenues, state } from "./state.js";
import { adviceOf } from "./refusals.js";
import { venueOf, VENUES } from "./venues_state.js";

let host = null;
let shown = "";

export function makeBanners() {
  host = make("div", { class: "banners" });
  const job = drawing(render);
  for (const name of ["venue", "session-state", "connection", "run-began"]) listen(name, () => draw(job));
  return host;
}

/** `{banner, venue, code, nodes}` of all that hold now. */
function current() {
  const banners = [];
  if (state.connection === "lost" || state.connection === "ended" || state.connection === "refused") {
    banners.push({ banner: "connection", code: state.why ?? state.connection, nodes: connectionNodes() });
  }
  if (isReplay()) {
    banners.push({ banner: "replay", nodes: [t("banner.replay")] });
    return banners;
  }
  const production = productionVenues();
  for (const venue of production) {
    const others = Object.keys(state.venueCapabilities).filter((one) => !production.includes(one));
    const nodes = [make("strong", {}, t("banner.production")), " ", make("code", { translate: "no" }, venue)];
    for (const other of others) nodes.push(" \u00b7 ", make("code", { translate: "no" }, other), ` ${t("banner.notProduction")}`);
    banners.push({ banner: "production", venue, nodes });
  }
  if (isRunning() && state.run?.kind === "paper") banners.push({ banner: "paper", venue: "paper", nodes: [t("banner.paper")] });
  for (const name of VENUES) {
    const venue = venueOf(name);
    if (venue.frozen) banners.push({ banner: "session-frozen", venue: name, code: "session_expired", nodes: [t("banner.frozen"), " ", ...message(venue)] });
    else if (outageOf(venue) !== null) {
      const code = outageOf(venue);
      const advice = adviceOf(code);
      banners.push({ banner: "venue-error", venue: name, code,
        nodes: [make("code", { translate: "no" }, name), " ", make("code", { translate: "no" }, code), " ",
          advice === null ? "" : t(advice), " ", ...message(venue)] });
    }
  }
  return banners;
}

/** What to do about a connection that is none: by its reason where the table has it. */
function connectionText() {
  const special = `connection.${state.connection}.${state.why}`;
  return has(special) ? special : `connection.${state.connection}`;
}

/** With the code of the engine where it gave one. */
function connectionNodes() {
  const advice = adviceOf(state.why);
  const said = state.connection !== "lost" || advice === null ? [] : [" ", make("code", { translate: "no" }, state.why), " ", t(advice)];
  return [t(connectionText()), ...said];
}

/** The code of what is wrong with a venue, or null. A page that came later has it from the venue's state alone. */
const outageOf = ({ state: stands, code, error }) =>
  error?.code ?? (stands === "Ready" || stands === "LoggingIn" || code === "forced_logout" ? null : code);

const message = (venue) => (venue.error === null ? [] : [foreign("span", venue.error.message, { class: "message" })]);

function render() {
  const banners = current();
  // Banners are announced when they appear, not with each frame.
  const key = JSON.stringify([globalThis.language, banners.map(({ nodes, ...rest }) => [rest, nodes.map((node) => node.textContent ?? node)])]);
  if (key === shown) return;
  shown = key;
  host.replaceChildren(...banners.map(({ banner, venue, code, nodes }) => make("div", {
    class: "banner", "data-banner": banner === "replay" ? null : banner, "data-strip": banner, "data-venue": venue, "data-code": code,
    role: banner === "connection" || banner === "session-frozen" || banner === "venue-error" ? "alert" : null,
  }, ...nodes)));
}

