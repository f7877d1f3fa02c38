//! Tests that passed without looking, because data or a tool was missing: they say `skipped: <reason>`,
//! and the verdict counts them.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use crate::cases::{self, Case};
use crate::project::Project;

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

    /// Something is skipped now, which is said at once too.
    pub(crate) fn say(&mut self, what: &str, reason: &str) {
        eprintln!("{MARK}{what}: {reason}");
        self.add(what, reason);
    }

    /// Takes tests that ran.
    pub(crate) fn take(&mut self, cases: &[Case]) {
        for case in cases {
            let said = case.output.lines().filter_map(reason_in);
            said.chain(case.skipped.as_deref()).for_each(|reason| self.add(&case.name, reason));
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

/// Notes in `<target>/release` why the tests that want a tool are to be skipped, or that it is there:
/// `found` is what to say then.
pub(crate) fn write_reason(
    project: &Project,
    tool: &str,
    tests: &str,
    found: Result<String, String>,
) -> Result<()> {
    let file = project.release().join(format!("{tool}.skipped"));
    match found {
        Ok(found) => {
            eprintln!("{found}");
            cases::remove(&file)
        }
        Err(reason) => {
            eprintln!("{MARK}{tests}: {reason}");
            fs::create_dir_all(project.release())
                .and_then(|()| fs::write(&file, reason))
                .with_context(|| format!("cannot write {}", file.display()))
        }
    }
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
        skips.take(&cases::of_junit(NEXTEST));
        skips.take(&cases::of_junit(PYTEST));
        skips.add("statistics", "no tool");
        assert_eq!(
            skips.told(),
            "4 skipped:\n  \
             1 could not import 'pyarrow' (t test_parquet)\n  \
             1 no data at <here> & there (marketdata::suite real_data::all)\n  \
             2 no tool (x c, statistics)"
        );
    }

    #[test]
    fn what_cargo_test_shows_is_read_too() {
        let mut skips = Skips::default();
        skips.take(&cases::of_cargo_test(
            "running 3 tests\ntest a ... ok\ntest b ... ignored\ntest c ... ignored, by hand\n\n\
             successes:\n\n---- a stdout ----\nskipped: no data\n\n---- d stdout ----\nfine\n",
        ));
        assert_eq!(
            skips.told(),
            "3 skipped:\n  1 by hand (c)\n  1 marked `ignore` (b)\n  1 no data (a)"
        );
    }
}
