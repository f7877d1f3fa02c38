// What a refusal says: its code, what to do about it, and the engine's own words unchanged.

import { foreign, make } from "./dom.js";
import { has } from "./language.js";

/** The code of an answer that is none. */
export function codeOf(error) {
  const event = error.event;
  if (event === null || event === undefined) return error.why ?? "internal_error";
  return event.reason_code ?? event.code ?? (event.event === "EngineBusy" ? "engine_busy" : error.why);
}

/** The key of what to do about a code; null where the table has none. */
export const adviceOf = (code) => (has(`code.${code}`) ? `code.${code}` : null);

/** The parts of a notice about a refusal. */
export function refusalParts(error) {
  const code = codeOf(error);
  const event = error.event;
  const words = event?.reason_text ?? event?.message ?? event?.reason ?? "";
  return codeParts(code, words);
}

/** A code with its advice and the engine's words. */
export function codeParts(code, words) {
  const parts = [make("code", { translate: "no" }, code)];
  if (words) parts.push(" ", foreign("span", words));
  const advice = adviceOf(code);
  if (advice !== null) parts.push(" ", make("span", { class: "advice", text: advice }));
  return parts;
}
