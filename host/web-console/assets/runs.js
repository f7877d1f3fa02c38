// The runs that the engine has kept, and their reports.

import { listen } from "./bus.js";
import { actionButton, foreign, make, number } from "./dom.js";
import { draw, drawing } from "./frames.js";
import { dayText, known } from "./language.js";
import { smallTable } from "./order_table.js";
import { makePane } from "./panes.js";
import { refusalParts } from "./refusals.js";
import { ask, askPatiently, isReady } from "./state.js";
import { toast } from "./toasts.js";

let runs = [];

export function makeRunsPane() {
  const pane = makePane("runs");
  const table = smallTable("runs", ["run", "report", "runKind", "strategy", "instrument", "days", "end", "finalEquity"]);
  pane.tools.append(actionButton("refresh", "refresh", () => refresh()));
  pane.body.append(table.node);
  const job = drawing(() => table.body.replaceChildren(...runs.map(row)));
  listen("runs", () => draw(job));
  refreshed = () => draw(job);
  return pane;
}

let refreshed = () => {};

function row(run) {
  const days = run.start_date == null ? "" : `${dayText(run.start_date)} \u2013 ${dayText(run.end_date ?? run.start_date)}`;
  const open = actionButton("open-report", "open", () => openReport(run.run_id), { class: "small", disabled: run.report === false });
  return make("tr", { "data-run-id": run.run_id, "data-run-kind": run.run_kind, "data-status": run.status },
    foreign("td", run.run_id), make("td", {}, open), make("td", {}, known("runKind", run.run_kind)), foreign("td", run.strategy_id ?? ""),
    make("td", { translate: "no" }, (run.instrument_ids ?? []).join(" ")), number("td", days === "" ? null : `${run.start_date} ${run.end_date ?? run.start_date}`, {}, days), make("td", {}, known("runEnd", run.status)),
    number("td", run.final_equity ?? null, { class: "right" }));
}

async function refresh() {
  if (!isReady()) return;
  const answer = await askPatiently("GetRuns").catch(() => null);
  if (answer === null) return;
  runs = answer.runs;
  refreshed();
}

async function openReport(run_id) {
  try {
    const { url } = await ask("OpenReport", { run_id });
    const address = new URL(url, location.origin);
    if (address.origin === location.origin) window.open(address.href, "_blank", "noopener,noreferrer");
  } catch (error) {
    toast("reject", refusalParts(error));
  }
}

for (const name of ["synced", "run-ended"]) listen(name, refresh);
