// What happens to orders, told as toasts: in a replay of people's orders only, live of all.

import { listen } from "./bus.js";
import { foreign, make } from "./dom.js";
import { codeParts } from "./refusals.js";
import { isReplay, state } from "./state.js";
import { part, toast } from "./toasts.js";

const isTold = (event) => state.synced && (!isReplay() || event.origin !== "strategy");

listen("OrderFilled", (event) => {
  if (!isTold(event)) return;
  toast("fill", [make("span", { translate: "no" }, event.instrument_id ?? ""), " ", event.order_side == null ? "" : make("span", { text: `side.${event.order_side}` }), " ",
    part(event.last_qty), " @ ", part(event.last_price)], event.client_order_id ?? undefined);
});

listen("OrderRejected", (event) => {
  // One without an order is the answer to a question; who asked tells it.
  if (isTold(event) && event.client_order_id != null) toast("reject", codeParts(event.reason_code, event.reason_text), event.client_order_id ?? undefined);
});

listen("EngineError", (event) => toast("reject", codeParts(event.code, event.message)));

listen("OrderDiscrepancy", (event) => {
  toast("info", [make("code", { translate: "no" }, event.discrepancy), " ", foreign("span", event.message)], event.client_order_id ?? undefined);
});

listen("SubscriptionEvicted", (event) => toast("info", codeParts("evicted", event.symbol)));
