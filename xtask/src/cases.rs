//! What tests did and wrote, read from JUnit reports (of nextest and of pytest) and from `cargo test`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

/// A test that ran, or was left out.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Case {
    /// The program or file that it belongs to, where that is known, and its own name.
    pub(crate) name: String,
    /// How long it took; nothing where nobody said so.
    pub(crate) seconds: f64,
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

/// All tests of a JUnit report, in its order.
pub(crate) fn of_junit(report: &str) -> Vec<Case> {
    report.split("<testcase ").skip(1).map(junit_case).collect()
}

fn junit_case(text: &str) -> Case {
    let text = text.split("</testcase>").next().unwrap_or(text);
    let (tag, body) = text.split_once('>').unwrap_or((text, ""));
    let tag = format!(" {tag}");
    // A tag that closes itself has no body; what follows belongs to nobody.
    let body = if tag.ends_with('/') { "" } else { body };
    let named = ["classname", "name"].into_iter().filter_map(|name| attribute(&tag, name));
    let written = ["system-out", "system-err"].into_iter().filter_map(|name| element(body, name));
    let skipped = body.split_once("<skipped").map(|(_, skipped)| skipped);
    Case {
        name: named.collect::<Vec<_>>().join(" "),
        seconds: attribute(&tag, "time").and_then(|time| time.parse().ok()).unwrap_or_default(),
        output: written.collect::<Vec<_>>().join("\n"),
        failure: ["failure", "error"].into_iter().find_map(|name| element(body, name)),
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

/// All tests of what `cargo test -- --show-output` wrote.
pub(crate) fn of_cargo_test(output: &str) -> Vec<Case> {
    output.lines().filter_map(|line| cargo_case(line, output)).collect()
}

fn cargo_case(line: &str, output: &str) -> Option<Case> {
    let (name, ended) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason =
        ended.strip_prefix("ignored").map(|reason| match reason.trim_start_matches(", ") {
            "" => "marked `ignore`".to_owned(),
            reason => reason.to_owned(),
        });
    let written =
        output.split_once(&format!("---- {name} stdout ----\n")).map_or("", |pair| pair.1);
    let ends = ["\n---- ", "\nfailures:\n", "\nsuccesses:\n"];
    let end = ends.into_iter().filter_map(|end| written.find(end)).min();
    Some(Case {
        name: name.to_owned(),
        output: written[..end.unwrap_or(written.len())].to_owned(),
        failure: (ended == "FAILED").then(String::new),
        skipped: reason,
        ..Case::default()
    })
}

/// The tests that took longest, a line each.
pub(crate) fn slowest(cases: &[Case], count: usize) -> String {
    let mut sorted: Vec<&Case> = cases.iter().collect();
    sorted.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let lines = sorted.iter().take(count);
    lines.map(|case| format!("  {:7.2} s  {}\n", case.seconds, case.name)).collect()
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
        let [failed, passed] = &of_junit(report)[..] else { panic!("not two tests") };
        assert_eq!(failed.failure.as_deref(), Some("thread 'a::b' panicked:\nno"));
        assert_eq!(failed.output, "running 1 test\nthread 'a::b' panicked:\nno");
        assert_eq!((&*failed.name, &*passed.name), ("tests::x a::b", "tests::x c"));
        assert_eq!((failed.seconds, passed.seconds), (0.1, 0.0));
        assert_eq!((passed.failure.as_ref(), passed.skipped.as_ref()), (None, None));
    }

    #[test]
    fn a_failure_without_a_text_has_its_message() {
        let report = "<testcase classname=\"t\" name=\"d\"><error message=\"no &lt;file&gt;\" />\
            <system-out><![CDATA[1 < 2 &amp;]]></system-out></testcase>";
        let case = of_junit(report).remove(0);
        assert_eq!(case.failure.as_deref(), Some("no <file>"));
        assert_eq!(case.output, "1 < 2 &amp;");
    }

    #[test]
    fn what_cargo_test_shows_is_read_too() {
        let cases = of_cargo_test(
            "running 4 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ignored\n\
             test d (line 3) ... ignored, by hand\n\nsuccesses:\n\n---- a stdout ----\nfine\n\n\n\
             failures:\n\n---- b stdout ----\nfirst\nlast\n\n\nfailures:\n    b\n\n",
        );
        let told = |case: &Case| (case.name.clone(), case.output.trim().to_owned());
        let wanted = [("a", "fine"), ("b", "first\nlast"), ("c", ""), ("d (line 3)", "")];
        let told: Vec<_> = cases.iter().map(told).collect();
        assert_eq!(told, wanted.map(|(name, output)| (name.to_owned(), output.to_owned())));
        assert!(cases[1].failure.is_some() && cases[0].failure.is_none());
        let skipped: Vec<_> = cases.iter().filter_map(|case| case.skipped.as_deref()).collect();
        assert_eq!(skipped, ["marked `ignore`", "by hand"]);
    }

    #[test]
    fn the_slowest_come_first() {
        let case = |name: &str, seconds| Case { name: name.to_owned(), seconds, ..Case::default() };
        let cases = [case("a", 0.5), case("b", 12.25), case("c", 1.0)];
        assert_eq!(slowest(&cases, 2), "    12.25 s  b\n     1.00 s  c\n");
    }
}
