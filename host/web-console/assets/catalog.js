// What data the engine can load and which instruments have names; asked once for each connection.

import { listen, tell } from "./bus.js";
import { make } from "./dom.js";
import { askPatiently } from "./state.js";

export const catalog = { files: [], names: new Map() };
let list = null;

/** The list of instruments that text fields offer. */
export function instrumentList() {
  list = make("datalist", { id: "instruments" });
  return list;
}

listen("synced", async () => {
  const answer = await askPatiently("GetDataCatalog").catch(() => null);
  if (answer === null) return;
  catalog.files = answer.files ?? [];
  catalog.names = new Map((answer.instruments ?? []).map(({ instrument_id, name }) => [instrument_id, name ?? ""]));
  list?.replaceChildren(...[...catalog.names].map(([id, name]) => {
    const option = make("option", { value: id });
    option.textContent = name;
    return option;
  }));
  tell("catalog");
});
