//! Tests that passed without looking, because data or a tool was missing: they say `skipped: <reason>`,
//! and the verdict counts them.

use std::collections::BTreeMap;

use crate::junit;

/// How a test says on a line of its own that it was skipped.
const MARK: &str = "skipped: ";
/// Names of tests that are shown for one reason.
const NAMES_SHOWN: usize = 3;

/// What was skipped so far.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    /// Tests by their reason.
    tests: BTreeMap<String, Vec<String>>,
}

impl Skips {
    /// Something was skipped.
    pub(crate) fn add(&mut self, test: &str, reason: &str) {
        self.tests.entry(reason.trim().to_owned()).or_default().push(test.to_owned());
    }

    /// Takes a JUnit report, of nextest or of pytest.
    pub(crate) fn take_report(&mut self, report: &str) {
        for case in junit::cases(report) {
            if let Some(reason) = &case.skipped {
                self.add(&case.test, reason);
            }
            for reason in case.output.lines().filter_map(reason_in) {
                self.add(&case.test, reason);
            }
        }
    }

    /// Takes what `cargo test -- --show-output` wrote.
    pub(crate) fn take_output(&mut self, output: &str) {
        let mut test = "";
        for line in output.lines() {
            let named =
                line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
            if let Some(name) = named {
                test = name;
            } else if let Some(reason) = reason_in(line) {
                self.add(test, reason);
            } else if let Some(rest) = line.strip_prefix("test ")
                && let Some((name, reason)) = rest.split_once(" ... ignored")
            {
                let reason = reason.trim_start_matches(", ");
                self.add(name, if reason.is_empty() { "marked `ignore`" } else { reason });
            }
        }
    }

    /// How many tests were skipped and why: a line for each reason.
    pub(crate) fn told(&self) -> String {
        let all: usize = self.tests.values().map(Vec::len).sum();
        if all == 0 {
            return "nothing was skipped".to_owned();
        }
        let mut text = format!("{all} skipped:");
        for (reason, tests) in &self.tests {
            let names = tests[..tests.len().min(NAMES_SHOWN)].join(", ");
            let more = if tests.len() > NAMES_SHOWN { ", ..." } else { "" };
            text.push_str(&format!("\n  {} {reason} ({names}{more})", tests.len()));
        }
        text
    }
}

/// The reason on a line: after the mark at its start, or after what the test runner began it with.
fn reason_in(line: &str) -> Option<&str> {
    line.strip_prefix(MARK).or_else(|| line.split_once(&format!(" ... {MARK}")).map(|pair| pair.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXTEST: &str = "<testsuites><testsuite name=\"marketdata::suite\">\
        <testcase name=\"real_data::all\" classname=\"marketdata::suite\" time=\"0.1\">\
        <system-out>\nrunning 1 test\nskipped: no data at &lt;here&gt; &amp; there\ntest ok\n\
        </system-out></testcase>\
        <testcase name=\"a\" classname=\"x\"/>\
        <testcase name=\"b\" classname=\"x\"><system-out>it skipped: lightly</system-out></testcase>\
        <testcase name=\"c\" classname=\"x\"><system-out>test c ... skipped: no tool\n</system-out>\
        </testcase></testsuite></testsuites>";
    const PYTEST: &str = "<testcase classname=\"t\" name=\"test_parquet\" time=\"0\"><skipped \
        type=\"pytest.skip\" message=\"could not import &apos;pyarrow&apos;\">path:1: x</skipped>\
        </testcase><testcase classname=\"t\" name=\"test_sharpe\" time=\"0\" />";

    #[test]
    fn reports_tell_who_was_skipped_and_why() {
        let mut skips = Skips::default();
        assert_eq!(skips.told(), "nothing was skipped");
        skips.take_report(NEXTEST);
        skips.take_report(PYTEST);
        skips.add("statistics", "no tool");
        assert_eq!(
            skips.told(),
            "4 skipped:\n  \
             1 could not import 'pyarrow' (test_parquet)\n  \
             1 no data at <here> & there (real_data::all)\n  \
             2 no tool (c, statistics)"
        );
    }

    #[test]
    fn what_cargo_test_shows_is_read_too() {
        let mut skips = Skips::default();
        skips.take_output(
            "running 3 tests\ntest a ... ok\ntest b ... ignored\ntest c ... ignored, by hand\n\n\
             successes:\n\n---- a stdout ----\nskipped: no data\n\n---- d stdout ----\nfine\n",
        );
        assert_eq!(
            skips.told(),
            "3 skipped:\n  1 by hand (c)\n  1 marked `ignore` (b)\n  1 no data (a)"
        );
    }
}
