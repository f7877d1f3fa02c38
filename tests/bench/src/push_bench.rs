//! `cargo xtask bench push`: what a frame of the local gateway costs on its way to a client: read by the
//! dialect's component, beside the same code without a sandbox; mapped; written as events. Then how long it
//! takes at a steady pace; and the whole engine over real sockets, with its memory.

use domain::clock::{Stopwatch, sleep};
use domain::gateway_mapping::GatewayMapping;
use serde_json::json;
use tests::built;

use crate::measure::figure;
use crate::push_engine;
use crate::push_frames::{Frames, SYMBOLS};
use crate::push_venue::{Native, Told, Venue, component};
use crate::rank_bench::or_stop;
use crate::serve_mixed::at;

/// Dialects that are measured, the default one first.
const DIALECTS: [&str; 2] = ["local-broker-spec", "local-broker-kabusapi"];
/// Frames that are measured one after the other, and again: about 50 MB, more than any cache of a processor.
pub(crate) const FRAMES: usize = 20_000;
/// Repetitions of each step.
const REPETITIONS: usize = 7;
/// Frames a second of one core.
pub(crate) const GOAL_PER_SECOND: u32 = 50_000;
/// The steady pace, and for how many seconds.
pub(crate) const PACE_PER_SECOND: u32 = 5_000;
const PACED_SECONDS: u32 = 10;
/// Milliseconds of the way of 99 of 100 frames at that pace.
pub(crate) const GOAL_P99_MS: u32 = 1;
/// How long before a frame is due the bench stops sleeping.
const AWAKE_BEFORE: std::time::Duration = std::time::Duration::from_micros(100);

/// Runs all of it.
pub(crate) fn run() {
    let frames = Frames::new(FRAMES);
    for name in DIALECTS {
        steps(name, &frames);
    }
    paced(&frames);
    push_engine::report(&frames);
}

/// Nanoseconds of a frame in each repetition.
#[derive(Default)]
struct Nanos(Vec<f64>);

impl Nanos {
    fn time(&mut self, work: impl FnOnce()) {
        let watch = Stopwatch::start();
        work();
        self.0.push(watch.elapsed().as_secs_f64() * 1e9 / FRAMES as f64);
    }

    /// What one takes more than the other, repetition by repetition.
    fn above(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one - other).collect())
    }

    fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        at(&sorted, share)
    }

    fn median(&self) -> f64 {
        self.at(0.5)
    }

    fn best(&self) -> f64 {
        self.at(0.0)
    }
}

fn read_all(mapping: &mut dyn GatewayMapping, frames: &Frames) {
    for text in &frames.texts {
        let read = or_stop(mapping.read_board(text));
        assert!(std::hint::black_box(read).is_ok(), "a board is none");
    }
}

/// What each step of a frame's way costs, and the whole of it.
fn steps(name: &str, frames: &Frames) {
    let path = built::dialect(name);
    let mut sandboxed = component(&path);
    let description = sandboxed.description().clone();
    let mut compiled = Native(description.clone());
    for text in frames.texts.iter().take(SYMBOLS) {
        let (one, other) = (sandboxed.read_board(text), compiled.read_board(text));
        assert_eq!(or_stop(one), or_stop(other), "the component reads what the code reads");
    }
    // Around the code without a sandbox, so that the sandbox is in one figure only.
    let mut around_native = Venue::new(Box::new(Native(description)));
    let mut around_component = Venue::new(Box::new(component(&path)));
    let [mut native, mut read, mut mapped, mut written, mut whole] =
        std::array::from_fn(|_| Nanos::default());
    let mut told = Told::default();
    // In turns, so that a busy moment hits all of them.
    for _ in 0..REPETITIONS {
        native.time(|| read_all(&mut compiled, frames));
        read.time(|| read_all(&mut sandboxed, frames));
        mapped.time(|| {
            for text in &frames.texts {
                std::hint::black_box(around_native.frame(text));
            }
        });
        written.time(|| {
            for text in &frames.texts {
                around_native.whole(text, &mut Told::default());
            }
        });
        told = Told::default();
        whole.time(|| {
            for text in &frames.texts {
                around_component.whole(text, &mut told);
            }
        });
    }
    // Each round begins with a frame of each issue whose volume has fallen: a first frame again.
    assert_eq!(told.trades, frames.trades);
    assert_eq!(told.messages, FRAMES as u64 + told.trades);
    let of_native = native.median();
    let step = |step: &str, nanos: &Nanos, more: serde_json::Value| {
        let mut all = json!({
            "times_native_decoder": nanos.median() / of_native,
            "share_of_whole": nanos.median() / whole.median(),
        });
        if let (Some(all), serde_json::Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
        let name = format!("push/{name}/{step}");
        figure(&name, "ns/frame", nanos.median(), nanos.best(), &all);
    };
    step("native_decoder", &native, json!({ "bytes_per_frame": frames.bytes() }));
    step("component", &read, json!({ "times_native_best": read.best() / native.best() }));
    step("venue_and_feed", &mapped.above(&native), json!({}));
    let bytes = told.bytes as f64 / FRAMES as f64;
    step("events_as_json", &written.above(&mapped), json!({ "bytes_told_per_frame": bytes }));
    let more = json!({
        "ns_per_frame": whole.median(), "times_native_decoder": whole.median() / of_native,
        "times_without_sandbox": whole.median() / written.median(),
        "without_sandbox_frames_per_s": 1e9 / written.median(),
        "trades_per_frame": told.trades as f64 / FRAMES as f64, "goal_min": GOAL_PER_SECOND,
    });
    let name = format!("push/{name}/whole_in_process");
    figure(&name, "frames/s", 1e9 / whole.median(), 1e9 / whole.best(), &more);
}

/// The way of a frame from when it is due to its last text, at a steady pace.
fn paced(frames: &Frames) {
    let mut venue = Venue::new(Box::new(component(&built::dialect(DIALECTS[0]))));
    let mut told = Told::default();
    for text in &frames.texts {
        venue.whole(text, &mut told);
    }
    let count = u64::from(PACE_PER_SECOND * PACED_SECONDS);
    let (mut since_due, mut since_taken) = (Vec::new(), Vec::new());
    let watch = Stopwatch::start();
    for (number, text) in (0..count).zip(frames.texts.iter().cycle()) {
        let due = std::time::Duration::from_secs(1) / PACE_PER_SECOND * number as u32;
        loop {
            let left = due.saturating_sub(watch.elapsed());
            match left.checked_sub(AWAKE_BEFORE) {
                _ if left.is_zero() => break,
                Some(nap) => sleep(nap),
                None => std::hint::spin_loop(),
            }
        }
        let taken = watch.elapsed();
        venue.whole(text, &mut told);
        let done = watch.elapsed();
        since_due.push((done - due).as_secs_f64() * 1e3);
        since_taken.push((done - taken).as_secs_f64() * 1e3);
    }
    since_due.sort_by(f64::total_cmp);
    since_taken.sort_by(f64::total_cmp);
    let more = json!({
        "frames": count, "frames_per_s": PACE_PER_SECOND, "symbols": SYMBOLS,
        "p50_ms": at(&since_taken, 0.5), "since_due_p50_ms": at(&since_due, 0.5),
        "since_due_p99_ms": at(&since_due, 0.99), "max_ms": at(&since_due, 1.0),
        "p99_times_p50": at(&since_taken, 0.99) / at(&since_taken, 0.5), "goal_max": GOAL_P99_MS,
    });
    let p99 = at(&since_taken, 0.99);
    figure("push/paced/frame_to_event_p99", "ms", p99, at(&since_taken, 0.0), &more);
}
