//! Tests that failed, and the last that they wrote: told once more at the very end, because what ran
//! after them may have pushed their own words out of sight.

use anyhow::{Result, bail};

use crate::cases::Case;

/// Last lines that are shown of a test.
const LINES_SHOWN: usize = 20;
/// Tests whose last lines are shown; of more, the names.
const TESTS_SHOWN: usize = 20;

/// What failed so far.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    tests: Vec<Failure>,
    /// What commands that failed said of themselves.
    commands: Vec<String>,
}

#[derive(Debug)]
struct Failure {
    test: String,
    /// The last lines that it wrote.
    lines: Vec<String>,
}

impl Failures {
    /// Takes tests that ran.
    pub(crate) fn take(&mut self, cases: &[Case]) {
        for case in cases {
            let Some(reason) = &case.failure else { continue };
            let mut lines = last_lines(&case.output);
            // Other lines have pushed it away, or it was never written.
            let told = |first: &str| lines.iter().any(|line| line.trim() == first.trim());
            if reason.trim().lines().next().is_some_and(|first| !told(first)) {
                lines = last_lines(reason).into_iter().chain(lines).collect();
            }
            self.tests.push(Failure { test: case.name.clone(), lines });
        }
    }

    /// Takes how a command ended.
    pub(crate) fn take_end(&mut self, ended: Result<()>) {
        self.commands.extend(ended.err().map(|error| format!("{error:#}")));
    }

    /// Fails if something failed, and tells all of it.
    pub(crate) fn verdict(self) -> Result<()> {
        if self.tests.is_empty() && self.commands.is_empty() {
            return Ok(());
        }
        let mut text = self.commands.join("\n");
        for failure in self.tests.iter().take(TESTS_SHOWN) {
            text.push_str(&format!("\n\n---- {}", failure.test));
            failure.lines.iter().for_each(|line| text.push_str(&format!("\n    {line}")));
        }
        if !self.tests.is_empty() {
            text.push_str(&format!("\n\n{} tests failed:", self.tests.len()));
            self.tests.iter().for_each(|failure| text.push_str(&format!("\n    {}", failure.test)));
        }
        bail!(text)
    }
}

/// The last lines of a text, without the frames of Rust's backtraces: what was said stands before them.
fn last_lines(text: &str) -> Vec<String> {
    let mut in_backtrace = false;
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        in_backtrace |= line.trim() == "stack backtrace:";
        if !in_backtrace {
            lines.push(line);
        }
        in_backtrace &= !line.starts_with("note: ");
    }
    lines[lines.len().saturating_sub(LINES_SHOWN)..].iter().map(|&line| line.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{of_cargo_test, of_junit};

    fn told(failures: Failures) -> String {
        failures.verdict().map_or_else(|error| error.to_string(), |()| "nothing".to_owned())
    }

    #[test]
    fn reports_tell_the_last_lines_and_the_reason() {
        let mut failures = Failures::default();
        failures.take(&of_junit("<testcase name=\"fine\" classname=\"x\"></testcase>"));
        assert_eq!(told(failures), "nothing");

        let mut failures = Failures::default();
        let trace: String = (0..30).map(|line| format!("frame {line}\n")).collect();
        failures.take(&of_junit(&format!(
            "<testcase name=\"long\" classname=\"x\"><failure>it panicked</failure>\
             <system-err>it panicked\n{trace}</system-err></testcase>\
             <testcase name=\"short\" classname=\"x\"><failure>no</failure>\
             <system-err>before\nno</system-err></testcase>"
        )));
        failures.take_end(Err(anyhow::anyhow!("nextest ended")));
        let told = told(failures);
        let long = "nextest ended\n\n---- x long\n    it panicked\n    frame 10\n    frame 11\n";
        assert!(told.starts_with(long), "{told}");
        let end = "    frame 29\n\n---- x short\n    before\n    no\n\n\
                   2 tests failed:\n    x long\n    x short";
        assert!(told.ends_with(end), "{told}");
    }

    #[test]
    fn backtraces_are_left_out() {
        let text = "before\nthread 'a' panicked:\nno\nstack backtrace:\n   0: core::panic\n\
                    \x20            at /rustc/lib.rs:1\nnote: Some details are omitted\nafter\n";
        assert_eq!(last_lines(text), ["before", "thread 'a' panicked:", "no", "after"]);
    }

    #[test]
    fn many_failures_end_with_their_names() {
        let mut failures = Failures::default();
        let output: String =
            (0..TESTS_SHOWN + 2).map(|n| format!("test t{n} ... FAILED\n")).collect();
        failures.take(&of_cargo_test(&output));
        let told = told(failures);
        assert_eq!(told.matches("---- ").count(), TESTS_SHOWN);
        assert!(told.ends_with("    t20\n    t21"), "{told}");
    }
}
