// The layout of live mode: which panes are closed, which tickers are watched. It is the only thing that this
// page keeps in localStorage, and a replay neither reads nor writes it.

import { isReplay } from "./state.js";

const KEY = "kumiki.layout";

export const liveLayout = {
  read() {
    if (isReplay()) return {};
    try {
      return JSON.parse(localStorage.getItem(KEY)) ?? {};
    } catch {
      return {};
    }
  },
  change(changes) {
    if (isReplay()) return;
    try {
      localStorage.setItem(KEY, JSON.stringify({ version: 1, ...this.read(), ...changes }));
    } catch {
      // Where nothing may be stored the layout holds until the page is closed.
    }
  },
};
