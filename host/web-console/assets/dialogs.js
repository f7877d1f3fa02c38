// Dialogs: modal, named by `data-dialog`, with the actions confirm and cancel. One is open at a time.

import { actionButton, make } from "./dom.js";

let open = null;

/**
 * Opens a dialog and gives `true` for confirm, `false` for cancel. `ready` says whether confirm can be used;
 * it is asked again at each input. `first` takes the focus; null: no control does.
 */
export function openDialog(name, { why = null, title, content, confirm = "confirm", ready = () => true, first, confirmed }) {
  closeDialog();
  return new Promise((resolve) => {
    const dialog = make("dialog", { "data-dialog": name, "data-why": why, tabindex: "-1", "aria-labelledby": `dialog-${name}` });
    const form = make("form", { method: "dialog" });
    const yes = make("button", { type: "submit", "data-action": "confirm", text: confirm, class: "main" });
    const end = (answer) => {
      if (open !== dialog) return;
      open = null;
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    const no = actionButton("cancel", "dismiss", () => end(false));
    const check = () => (yes.disabled = !ready());
    form.append(make("h2", { text: title, id: `dialog-${name}` }), ...content, make("div", { class: "actions" }, no, yes));
    form.addEventListener("input", check);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      check();
      if (yes.disabled) return;
      confirmed?.();
      end(true);
    });
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      end(false);
    });
    dialog.append(form);
    dialog.recheck = check;
    dialog.end = end;
    document.body.append(dialog);
    open = dialog;
    dialog.showModal();
    check();
    if (first === null) dialog.focus();
    else (first ?? no).focus();
  });
}

/** The dialog that is open, or null. */
export const openedDialog = () => open;

/** Closes what is open, as cancel does. */
export function closeDialog() {
  open?.end(false);
}

/** Has the quantity typed again; gives whether it was. */
export function retype(quantity, summary) {
  const input = make("input", { name: "quantity", inputmode: "numeric", autocomplete: "off", label: "quantity" });
  return openDialog("retype", {
    title: "dialog.retype",
    content: [make("p", { text: "dialog.retypeWhy" }), summary, make("label", { class: "field" }, make("span", { text: "quantity" }), input)],
    ready: () => input.value.trim() === quantity,
    first: input,
  });
}
