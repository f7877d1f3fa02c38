// Who wants to hear of what: the engine's events by their names, and the page's own ones.

const listeners = new Map();

/** Calls `listener` with every event of this name from now on. */
export function listen(name, listener) {
  if (!listeners.has(name)) listeners.set(name, []);
  listeners.get(name).push(listener);
}

/** Tells an event to all who listen, in the order in which they began to. */
export function tell(name, event) {
  const those = listeners.get(name);
  if (those === undefined) return;
  for (const listener of those) listener(event);
}
