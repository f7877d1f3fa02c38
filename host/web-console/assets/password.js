// The second password: asked for when the engine wants it, sent once, kept nowhere.

import { listen } from "./bus.js";
import { closeDialog, openDialog, openedDialog } from "./dialogs.js";
import { make } from "./dom.js";
import { pendingOrders, setStage } from "./pending.js";
import { ask, isReplay, mayAct, send } from "./state.js";
import { toast } from "./toasts.js";
import { refusalParts } from "./refusals.js";
import { venueOf } from "./venues_state.js";

/** The reason where an order of somebody else wants it: a strategy's, or another page's. */
const OF_OTHERS = "why.otherOrder";

/**
 * Asks for the second password and gives it to the engine. `why` is the key of the reason. Gives whether the
 * engine holds it now; cancel makes the engine forget it, unless another page has given it for an order of others.
 */
export async function askPassword(why) {
  const input = make("input", { name: "second_password", type: "password", autocomplete: "off", label: "secondPassword" });
  let value = "";
  const confirmed = await openDialog("second-password", {
    why,
    title: "dialog.secondPassword",
    content: [make("p", { text: why }), make("label", { class: "field" }, make("span", { text: "secondPassword" }), input)],
    ready: () => input.value !== "",
    // Nobody clicked for it: what a person is just typing elsewhere is no password.
    first: why === OF_OTHERS ? null : input,
    confirmed: () => {
      value = input.value;
      input.value = "";
    },
  });
  input.value = "";
  if (!confirmed) {
    // Another page may have given it meanwhile; a strategy needs it.
    if (why !== OF_OTHERS || !isHeld()) send("ForgetSecondPassword");
    return false;
  }
  const answer = ask("SetSecondPassword", { value });
  value = "";
  try {
    await answer;
    return true;
  } catch (error) {
    toast("reject", refusalParts(error));
    // What waits for it ends as after a cancel.
    send("ForgetSecondPassword");
    return false;
  }
}

const isHeld = () => venueOf("web_broker").second_password === "held";

listen("venue", () => {
  const dialog = openedDialog();
  if (dialog?.dataset.dialog === "second-password" && dialog.dataset.why === OF_OTHERS && isHeld()) closeDialog();
});

/** The order of this tab that waits for this request; null for a strategy's, another tab's, or none. */
const ownOrder = (requestId) => pendingOrders().find((one) => one.request_id === requestId && one.stage === "sent" && !one.again);

/** Questions come one after the other. */
let questions = Promise.resolve();

listen("SecondPasswordRequired", ({ request_id }) => {
  // A replay never asks; a page that may only read cannot answer.
  if (isReplay() || !mayAct()) return;
  const own = ownOrder(request_id);
  if (own !== undefined) setStage(own.order.client_order_id, "asked");
  else if (openedDialog()?.dataset.dialog === "second-password") return;
  questions = questions.then(() => (own === undefined ? askPassword(OF_OTHERS) : askForOrder(own)));
});

/** The same order once more, and only once, where it is still pending after the password was given. */
async function askForOrder(own) {
  const waits = () => pendingOrders().includes(own) && own.stage === "asked";
  if (waits() && (await askPassword("why.ownOrder")) && waits()) resend(own);
}

let resender = () => {};

/** Who sends an order again after its password. */
export function onResend(work) {
  resender = work;
}

function resend(own) {
  own.again = true;
  setStage(own.order.client_order_id, "sent");
  resender(own);
}
