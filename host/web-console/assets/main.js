// The start of the page: comes in with the code of the address or the session of the tab, connects, and
// shows the page of the engine's mode.

/* global codeOfEntry -- of entry.js */

import { makeBanners } from "./banners.js";
import { tell } from "./bus.js";
import { instrumentList } from "./catalog.js";
import { closeDialog } from "./dialogs.js";
import { make } from "./dom.js";
import { loadTexts, showLanguage, t } from "./language.js";
import { makeLivePage } from "./live_layout.js";
import "./notices.js";
import { takeBoard } from "./market.js";
import { makeReplayPage } from "./replay_page.js";
import { beginSession, forgetSession, storedSession } from "./session.js";
import { makeBar } from "./shell.js";
import { Socket } from "./socket.js";
import { isReplay, setConnection, showRoot, state, sync, useSocket } from "./state.js";
import { toastHost } from "./toasts.js";

const texts = loadTexts();
let socket = null;
let built = null;

/** Shows the page of a mode. */
function build(mode) {
  if (built === mode) return;
  built = mode;
  state.mode = mode;
  document.getElementById("page").replaceChildren(makeBar(), makeBanners(), make("main", {}, isReplay() ? makeReplayPage() : makeLivePage()), toastHost(), instrumentList());
  showLanguage();
}

/** A page that may not come in says what to do. */
function turnedAway(connection, why) {
  setConnection(connection, why);
  if (built !== null) return;
  // The engine has as many pages as it takes.
  const text = why === "429" ? "connection.full" : `connection.${connection}`;
  const node = make("main", { class: "away" }, make("h1", { text: "appName" }), make("p", { text, role: "alert" }),
    make("p", {}, make("code", { translate: "no" }, "kumiki console")));
  document.getElementById("page").replaceChildren(node);
  document.title = t("appName");
}

function connect(session) {
  socket?.end();
  state.scope = session.scope;
  build(session.mode);
  socket = new Socket(session, {
    connecting: () => state.connection !== "lost" && setConnection("connecting"),
    ready: (event) => {
      tell("Ready", event);
      setConnection("ready");
      sync();
    },
    event: (event) => tell(event.event, event),
    board: takeBoard,
    lost: (reason) => {
      closeDialog();
      setConnection("lost", reason);
    },
    refused: (why) => {
      closeDialog();
      turnedAway("refused", why);
    },
    ended: (why) => {
      closeDialog();
      forgetSession();
      turnedAway("ended", why);
    },
  });
  useSocket(socket);
}

/** Comes in: with a new code where there is one, else with the session of this tab. */
async function enter(code) {
  const stored = storedSession();
  if (code !== "") {
    try {
      connect(await beginSession(code));
      return;
    } catch (error) {
      // A code that is no good ends no session.
      if (stored === null) {
        turnedAway("refused", String(error.status ?? "unreachable"));
        return;
      }
    }
  }
  if (stored === null) turnedAway("refused", "no_code");
  else connect(stored);
}

// A new code in the address of an open page counts only where the page has no connection.
addEventListener("hashchange", () => {
  const code = codeOfEntry.takeNew();
  if (code !== "" && state.connection !== "ready" && state.connection !== "connecting") enter(code);
});

showRoot();
await texts;
await enter(codeOfEntry.take());
