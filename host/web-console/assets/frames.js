// Drawing happens at most once for each frame of the screen, however many events come in between.
// A hidden page draws once a second.

const HIDDEN_MS = 1_000;

/** A frame that comes later than this shows that the page has too much to do; the next one then waits. */
const LATE_MS = 60;
const REST_MS = 150;

const waiting = new Set();
const everything = new Set();
let planned = false;
let asked = 0;
let late = false;

function frame() {
  late = performance.now() - asked > LATE_MS;
  flush();
}

function flush() {
  planned = false;
  const jobs = [...waiting];
  waiting.clear();
  for (const job of jobs) job();
}

function ask() {
  asked = performance.now();
  requestAnimationFrame(frame);
}

function plan() {
  if (planned) return;
  planned = true;
  if (document.hidden) setTimeout(flush, HIDDEN_MS);
  else if (late) setTimeout(ask, REST_MS);
  else ask();
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

document.addEventListener("visibilitychange", () => {
  if (document.hidden || waiting.size === 0) return;
  flush();
});
