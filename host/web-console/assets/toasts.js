// Short notices at the edge of the page: at most five, the rest is counted.

import { make, number, shown } from "./dom.js";
import { t } from "./language.js";

const MOST = 5;
const STAYS_MS = 12_000;

let host = null;
let rest = null;
let more = 0;

/** Where they stand. */
export function toastHost() {
  rest = make("div", { class: "toast more", hidden: true });
  host = make("div", { role: "status", class: "toasts", label: "toasts" }, rest);
  return host;
}

function showRest() {
  rest.hidden = more === 0;
  if (more > 0) rest.replaceChildren(number("span", more), t("toastsMore", { count: more }));
}

/** Shows a notice. `kind` is fill, reject or info; `parts` are nodes or texts. */
export function toast(kind, parts, clientOrderId) {
  const close = make("button", { type: "button", class: "icon", label: "close" });
  close.textContent = "\u00d7";
  const node = make("div", { class: "toast", "data-toast": kind, "data-client-order-id": clientOrderId },
    make("strong", { text: `toast.${kind}` }), make("span", {}, ...parts), close);
  const end = () => {
    node.remove();
    more = host.querySelector("[data-toast]") === null ? 0 : more;
    showRest();
  };
  close.addEventListener("click", end);
  setTimeout(end, STAYS_MS);
  host.prepend(node);
  const all = host.querySelectorAll("[data-toast]");
  if (all.length > MOST) {
    all[all.length - 1].remove();
    more += 1;
  }
  showRest();
}

/** A number for a notice. */
export const part = (wire) => number("b", wire, {}, shown(wire));
