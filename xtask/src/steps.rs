//! Numbered steps with their times, and the verdict at the end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// A task made of steps. The first failure ends it.
pub(crate) struct Steps {
    done: usize,
    watch: Stopwatch,
}

impl Steps {
    /// A task that begins now.
    pub(crate) fn new() -> Self {
        Self { done: 0, watch: Stopwatch::start() }
    }

    /// Does one step under a heading.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let number = self.done + 1;
        eprintln!("\n== {number} {name}");
        let watch = Stopwatch::start();
        work().with_context(|| format!("step {number}, {name}, failed"))?;
        eprintln!("== {number} {name}: done in {}", watch.shown());
        self.done = number;
        Ok(())
    }

    /// How many steps passed, one line.
    pub(crate) fn passed(&self) -> String {
        format!("{} steps passed in {}", self.done, self.watch.shown())
    }
}

/// Measures how long something took.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[allow(clippy::disallowed_methods, reason = "build times are no part of any result")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// The time since the start, for people.
    pub(crate) fn shown(&self) -> String {
        shown(self.elapsed())
    }
}

/// A time for people.
pub(crate) fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_step() {
        let mut steps = Steps::new();
        assert!(steps.step("first", || Ok(())).is_ok());
        let error = steps.step("second", || anyhow::bail!("broken")).expect_err("it fails");
        assert_eq!(format!("{error:#}"), "step 2, second, failed: broken");
    }

    #[test]
    fn the_verdict_counts_steps() {
        let mut steps = Steps::new();
        assert!(steps.step("only", || Ok(())).is_ok());
        assert!(steps.passed().starts_with("1 steps passed in "));
    }

    #[test]
    fn times_are_for_people() {
        assert_eq!(shown(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(shown(Duration::from_secs(305)), "5 min 05 s");
    }
}
