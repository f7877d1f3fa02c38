// The form that loads data of a replay. A code may be typed that no list has; several are separated by commas.

import { listen } from "./bus.js";
import { catalog } from "./catalog.js";
import { choice, field, instrumentOf, make, number } from "./dom.js";
import { draw, drawing } from "./frames.js";
import { dayText, known, t } from "./language.js";
import { makePane } from "./panes.js";
import { refusalParts } from "./refusals.js";
import { ask, mayAct, state } from "./state.js";
import { suggestInstrument } from "./ticket.js";

const DAY_MS = 86_400_000;
/** The first offer is a month: its first days may be holidays. */
const SPAN_DAYS = 30;

export function makeLoadPane() {
  const pane = makePane("load");
  const fields = {
    instrument_id: make("input", { name: "instrument_id", list: "instruments", autocomplete: "off", required: true, translate: "no", spellcheck: "false" }),
    start_date: make("input", { name: "start_date", type: "date", required: true }),
    end_date: make("input", { name: "end_date", type: "date", required: true }),
    granularity: choice("granularity", ["Trade", "Minute", "Daily"], (word) => `granularity.${word}`),
  };
  const load = make("button", { type: "submit", "data-action": "load", text: "load", class: "main" });
  const progress = make("progress", { max: "1", value: "0", hidden: true, label: "loading" });
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const loaded = make("ul", { class: "loaded" });
  const hint = make("p", { class: "hint" });
  const form = make("form", { class: "fields", "data-role": "load" },
    field("instrument", fields.instrument_id, { class: "field wide" }), field("from", fields.start_date), field("to", fields.end_date),
    field("granularity", fields.granularity), make("div", { class: "actions" }, load), hint, progress, problem);
  pane.body.append(form, loaded);
  let busy = false;

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy || !mayAct()) return;
    const ids = fields.instrument_id.value.split(/[\s,、]+/).map(instrumentOf).filter((id) => id !== "");
    if (ids.length === 0) return;
    busy = true;
    problem.hidden = true;
    progress.hidden = false;
    progress.value = 0;
    draw(job);
    try {
      await ask("LoadReplayData", {
        instrument_id: ids[0], ...(ids.length > 1 ? { instrument_ids: ids } : {}), start_date: fields.start_date.value,
        end_date: fields.end_date.value, granularity: fields.granularity.value,
      });
    } catch (error) {
      problem.replaceChildren(...refusalParts(error));
      problem.hidden = false;
    }
    busy = false;
    progress.hidden = true;
    draw(job);
  });

  listen("Progress", (event) => {
    if (event.kind === "load" && event.total > 0) progress.value = event.done / event.total;
  });

  /** Offers the first days of which there are files. */
  const offer = () => {
    const files = catalog.files.filter(({ granularity }) => granularity === fields.granularity.value);
    const [first, last] = [files[0], files[files.length - 1]];
    for (const name of ["start_date", "end_date"]) {
      fields[name].min = first?.start_date ?? "";
      fields[name].max = last?.end_date ?? "";
    }
    hint.dataset.value = first === undefined ? "" : `${first.start_date} ${last.end_date}`;
    hint.textContent = first === undefined ? "" : t("dataThere", { from: dayText(first.start_date), to: dayText(last.end_date) });
    if (first === undefined || fields.start_date.value !== "") return;
    const end = Math.min(Date.parse(first.end_date), Date.parse(first.start_date) + SPAN_DAYS * DAY_MS);
    fields.start_date.value = first.start_date;
    fields.end_date.value = new Date(end).toISOString().slice(0, 10);
  };
  fields.granularity.addEventListener("change", offer);
  listen("catalog", offer);

  const job = drawing(() => {
    load.disabled = busy || !mayAct() || state.sessionState === "Running" || state.sessionState === "Stopping";
    offer();
    loaded.replaceChildren(...state.instruments.map((one) => make("li", { "data-instrument-id": one.instrument_id },
      make("b", { translate: "no" }, one.instrument_id), " ", number("span", `${one.start_date} ${one.end_date}`, {}, `${dayText(one.start_date)} \u2013 ${dayText(one.end_date)}`), " ",
      known("granularity", one.granularity), " ",
      one.trades_loaded === undefined ? "" : number("span", one.trades_loaded > 0 ? one.trades_loaded : one.bars_loaded))));
    if (state.instruments.length > 0) suggestInstrument(state.instruments[0].instrument_id);
  });
  return pane;
}
