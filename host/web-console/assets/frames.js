// Drawing happens at most once for each frame of the screen, however many events come in between.
// A hidden page draws once a second.

const HIDDEN_MS = 1_000;

/** A frame that comes later than this shows that the page has too much to do; the next one then waits. */
const LATE_MS = 60;
const REST_MS = 150;
/** After a frame that took longer than this the next one may wait some times as long: events come in between. */
const LONG_MS = 8;
let restTimes = () => 0;

const waiting = new Set();
const everything = new Set();
/** Whether a frame is on its way, or will be when the one before is on the screen. */
let planned = false;
let painting = false;
let asked = 0;
let begun = 0;
/** When the next frame may be asked for. */
let restsUntil = 0;

/** The browser lays out and paints after the jobs of a frame; its next task comes when that is done. */
const painted = new MessageChannel();

painted.port1.onmessage = () => {
  painting = false;
  const ended = performance.now();
  const took = ended - begun;
  const rest = begun - asked > LATE_MS ? REST_MS : took > LONG_MS ? Math.min(REST_MS, took * restTimes()) : 0;
  restsUntil = ended + rest;
  planned = false;
  if (waiting.size > 0) plan();
};

function frame() {
  begun = performance.now();
  painting = true;
  painted.port2.postMessage(null);
  flush();
}

/** Does all jobs, also those that they ask for, each once. */
function flush() {
  planned = false;
  const done = new Set();
  for (const job of waiting) {
    if (done.has(job)) continue;
    done.add(job);
    waiting.delete(job);
    job();
  }
}

function ask() {
  asked = performance.now();
  requestAnimationFrame(frame);
}

function plan() {
  if (planned || painting) return;
  planned = true;
  if (document.hidden) setTimeout(flush, HIDDEN_MS);
  else if (restsUntil > performance.now()) setTimeout(ask, restsUntil - performance.now());
  else ask();
}

/** Lets the page rest after long frames so many times as long as they took. */
export function restAfterFrames(times) {
  restTimes = times;
}

/** Runs `job` with the next frame, once. */
export function draw(job) {
  waiting.add(job);
  plan();
}

/** A function that has `job` drawn soon, and not more often than every so many ms. */
export function slowly(job, everyMs) {
  let drawn = 0;
  let timer = null;
  const now = () => {
    timer = null;
    drawn = performance.now();
    job();
  };
  return () => {
    if (timer !== null) return;
    const wait = everyMs - (performance.now() - drawn);
    if (wait <= 0) {
      draw(now);
      return;
    }
    timer = setTimeout(() => draw(now), wait);
  };
}

/** Makes `job` one of those that `drawAll` runs, and runs it with the next frame. */
export function drawing(job) {
  everything.add(job);
  draw(job);
  return job;
}

/** Ends what `drawing` began. */
export function noLongerDrawing(job) {
  everything.delete(job);
  waiting.delete(job);
}

/** Draws all anew: the language, the theme or the connection changed. */
export function drawAll() {
  for (const job of everything) waiting.add(job);
  plan();
}

// A frame that was asked for does not come while the page is hidden.
document.addEventListener("visibilitychange", () => {
  if (waiting.size === 0) return;
  if (document.hidden) setTimeout(flush, HIDDEN_MS);
  else flush();
});
