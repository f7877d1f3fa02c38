// Controls for the parameters of a strategy, and what they say. One that was not changed is not sent.

import { foreign, make } from "./dom.js";

const FORMS = { integer: /^-?\d+$/, number: /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/ };

/** A control for each parameter, named `param.NAME`. */
export function paramControls(parameters) {
  return parameters.map(({ name, default: value, kind }) => {
    const shown = value === null || value === undefined ? "" : String(value);
    const attributes = { name: `param.${name}`, "data-kind-of": kind, "data-default": shown, autocomplete: "off", translate: "no" };
    let control;
    if (kind === "boolean") {
      control = make("input", { ...attributes, type: "checkbox" });
      control.checked = value === true;
    } else control = make("input", { ...attributes, value: shown, inputmode: kind === "text" ? "text" : "decimal" });
    return make("label", { class: "field" }, foreign("span", name), control);
  });
}

/** The values that were changed: `{values}`, or `{wrong}` with the control's name. */
export function readParams(host) {
  const values = {};
  for (const control of host.querySelectorAll("[name^='param.']")) {
    const kind = control.dataset.kindOf;
    const text = kind === "boolean" ? String(control.checked) : control.value.trim();
    if (text === control.dataset.default) continue;
    if (FORMS[kind] !== undefined && !FORMS[kind].test(text)) return { wrong: control.name };
    // JSON of a browser has no larger whole numbers.
    if (kind === "integer" && !Number.isSafeInteger(Number(text))) return { wrong: control.name };
    values[control.name.slice("param.".length)] = kind === "boolean" ? control.checked : FORMS[kind] === undefined ? text : Number(text);
  }
  return { values };
}
