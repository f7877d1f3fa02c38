//! JUnit reports, of nextest and of pytest: what each test did and wrote.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

/// A test of a report.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Case {
    /// Its own name.
    pub(crate) test: String,
    /// The program or file that it belongs to.
    pub(crate) suite: String,
    /// What it wrote, to stdout and then to stderr.
    pub(crate) output: String,
    /// Why it failed, in the words of the report. `None` where it did not fail.
    pub(crate) failure: Option<String>,
    /// Why it was skipped. `None` where it was not.
    pub(crate) skipped: Option<String>,
}

/// Removes the report of an earlier run, which must not be taken for that of the next.
pub(crate) fn remove(report: &Path) -> Result<()> {
    match fs::remove_file(report) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", report.display()))
        }
        _ => Ok(()),
    }
}

/// All tests of a report, in its order.
pub(crate) fn cases(report: &str) -> Vec<Case> {
    report.split("<testcase ").skip(1).map(case).collect()
}

fn case(text: &str) -> Case {
    let text = text.split("</testcase>").next().unwrap_or(text);
    let (tag, body) = text.split_once('>').unwrap_or((text, ""));
    let tag = format!(" {tag}");
    // A tag that closes itself has no body; what follows belongs to nobody.
    let body = if tag.ends_with('/') { "" } else { body };
    let failure = ["failure", "error"].into_iter().find_map(|name| element(body, name));
    let skipped = body.split_once("<skipped").map(|(_, skipped)| skipped);
    let written = ["system-out", "system-err"].into_iter().filter_map(|name| element(body, name));
    Case {
        test: attribute(&tag, "name").unwrap_or_default(),
        suite: attribute(&tag, "classname").unwrap_or_default(),
        output: written.collect::<Vec<_>>().join("\n"),
        failure,
        skipped: skipped.map(|skipped| attribute(skipped, "message").unwrap_or_default()),
    }
}

/// The text of an element of a test; of an empty one, its message.
fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}"))?;
    let (tag, rest) = rest.split_once('>')?;
    let closing = format!("</{name}>");
    let content = if tag.ends_with('/') { "" } else { rest.split(&closing).next().unwrap_or("") };
    // What a tool wrote is wrapped so, or escaped.
    let content = content.trim();
    let plain = content.strip_prefix("<![CDATA[").and_then(|text| text.strip_suffix("]]>"));
    let text = plain.map_or_else(|| unescaped(content), str::to_owned);
    if text.is_empty() { attribute(tag, "message").or(Some(text)) } else { Some(text) }
}

/// The value of an attribute in the text of a tag.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, value) = tag.split_once(&format!(" {name}=\""))?;
    Some(unescaped(value.split_once('"')?.0))
}

fn unescaped(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#10;", "\n")];
    let text = pairs.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_has_its_reason_and_its_output() {
        let report = "<testsuite><testcase name=\"a::b\" classname=\"tests::x\" time=\"0.1\">\
            <failure message=\"thread panicked\" type=\"test failure with exit code 101\">thread \
            &apos;a::b&apos; panicked:\nno</failure><system-out>\nrunning 1 test\n</system-out>\
            <system-err>thread &apos;a::b&apos; panicked:\nno</system-err></testcase>\
            <testcase name=\"c\" classname=\"tests::x\"/></testsuite>";
        let [failed, passed] = &cases(report)[..] else { panic!("not two tests") };
        assert_eq!(failed.failure.as_deref(), Some("thread 'a::b' panicked:\nno"));
        assert_eq!(failed.output, "running 1 test\nthread 'a::b' panicked:\nno");
        let test = |case: &Case| format!("{} {}", case.suite, case.test);
        assert_eq!((test(failed), test(passed)), ("tests::x a::b".into(), "tests::x c".into()));
        assert_eq!((passed.failure.as_ref(), passed.skipped.as_ref()), (None, None));
    }

    #[test]
    fn a_failure_without_a_text_has_its_message() {
        let report = "<testcase classname=\"t\" name=\"d\"><error message=\"no &lt;file&gt;\" />\
            <system-out><![CDATA[1 < 2 &amp;]]></system-out></testcase>";
        let case = cases(report).remove(0);
        assert_eq!(case.failure.as_deref(), Some("no <file>"));
        assert_eq!(case.output, "1 < 2 &amp;");
    }
}
