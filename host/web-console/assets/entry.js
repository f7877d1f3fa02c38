"use strict";

// Runs before everything else: takes the one-time code out of the address, so that neither the tab's
// history nor another script finds it there.

const codeOfEntry = (() => {
  let code = "";
  const take = () => {
    if (location.hash === "" && !location.href.endsWith("#")) return;
    code = location.hash.slice(1);
    history.replaceState(null, "", location.pathname + location.search);
  };
  take();
  return {
    /** The code of the address; it is given once. */
    take() {
      const given = code;
      code = "";
      return given;
    },
    /** A code that the address has got since. */
    takeNew() {
      take();
      return this.take();
    },
  };
})();
