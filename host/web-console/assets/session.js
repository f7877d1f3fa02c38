// The tab's session with the engine: a key of its own, in sessionStorage and nowhere else.

const KEY = "kumiki.session";

/** Why a page may not come in. */
export class Refused extends Error {
  constructor(status) {
    super(`refused: ${status}`);
    this.status = status;
  }
}

/** The session of this tab, or null. */
export function storedSession() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY));
  } catch {
    return null;
  }
}

/** Forgets the session. */
export function forgetSession() {
  sessionStorage.removeItem(KEY);
}

/** Exchanges a one-time code for a session. Throws `Refused`, or a TypeError where nobody answers. */
export async function beginSession(code) {
  const answer = await fetch("/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
    credentials: "omit",
    redirect: "error",
  });
  if (!answer.ok) throw new Refused(answer.status);
  const { session_id, key, port, mode, scope } = await answer.json();
  const session = { session_id, key, port, mode, scope };
  sessionStorage.setItem(KEY, JSON.stringify(session));
  return session;
}
