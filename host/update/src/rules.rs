//! The rules of the update job, one sentence each. The page of these rules is made from this table, and each rule
//! has a test.

use std::fmt::Write;

use crate::checks::{CHECKS, Severity};

/// A rule of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name, as reports, code and tests call it.
    pub name: &'static str,
    /// The rule, in at most 30 words.
    pub says: &'static str,
}

const fn rule(name: &'static str, says: &'static str) -> Rule {
    Rule { name, says }
}

/// Every rule but the [checks](CHECKS).
pub const RULES: [Rule; 22] = [
    rule(
        "business_day",
        "A weekday is a business day if the vendor's calendar or Japan's holiday law opens it, or if it has rows.",
    ),
    rule(
        "due",
        "A business day is due from 16:30 in Japan on, if the vendor's subscription covers it.",
    ),
    rule(
        "complete",
        "A day is complete if 99 % of its listed issues have rows; without a list, 99 % of the nearest \
         complete day's, less 1 % per month.",
    ),
    rule(
        "first_day",
        "Without a list and another complete day, a day that came in one answer is complete, and the report \
         warns of it.",
    ),
    rule(
        "wait",
        "The job publishes complete days only; any other day waits, stands in report and health, and every run \
         asks for it again.",
    ),
    rule(
        "gap",
        "An unpublished business day between published ones is a gap, and the run ends with exit code 6.",
    ),
    rule(
        "accept",
        "`--accept DATE` takes the vendor's rows of the day, complete or not; without rows, a published day \
         stays and any other day is closed.",
    ),
    rule(
        "codes",
        "`--codes` changes rows of its issues without the checks of a day, and makes no day complete.",
    ),
    rule(
        "asked",
        "A run asks for each due day since the last complete one and for each that waits; `--days` begins earlier.",
    ),
    rule(
        "order",
        "Days come whole from the vendor; where it fails or has none, each issue comes from the first source that \
         answers: vendor, web broker, public.",
    ),
    rule(
        "again",
        "A run fetches the last three complete days (`--recheck`) again, and those of the last 20 weekdays \
         that the vendor did not give whole.",
    ),
    rule(
        "outage",
        "If a better source fails for a day, the run ends with exit code 3, even if a lesser source fills the day.",
    ),
    rule(
        "files",
        "`--from-files` reads the vendor's files in place of the vendor; a month's file has priority over the \
         files of its days.",
    ),
    rule(
        "better",
        "A better source replaces a whole row, a lesser one only fills missing values: vendor = files > web \
         broker > public.",
    ),
    rule(
        "corrections",
        "The log shows every changed value: the old one, the new one and both sources.",
    ),
    rule("factor", "A row without an adjustment factor keeps the known one."),
    rule(
        "taken_back",
        "If a whole answer lacks a stored row, the row stays, unless the day's list lacks the issue too.",
    ),
    rule(
        "published_stays",
        "A published day stays unchanged if a new answer is not complete or removes values of over 1 % of its \
         issues.",
    ),
    rule(
        "unusable",
        "The job leaves out and names impossible rows, like ten times the last close; with over 1 % of them it \
         refuses the answer.",
    ),
    rule(
        "adjusted",
        "No price is adjusted across a missing row or day, an unknown factor, or rows of the public source.",
    ),
    rule(
        "key",
        "The run fails if the vendor refuses the key, or if there is none and days are missing.",
    ),
    rule(
        "own_files",
        "The job makes a damaged or missing published file again; a file with foreign content stays, and the \
         run fails.",
    ),
];

/// The tables of all rules, as Markdown.
#[must_use]
pub fn rules_as_markdown() -> String {
    let mut text = String::from("| rule | |\n|---|---|\n");
    for Rule { name, says } in RULES {
        _ = writeln!(text, "| `{name}` | {says} |");
    }
    text.push_str("\n| check | counts | too much is | then the day |\n|---|---|---|---|\n");
    for check in CHECKS {
        let then = match check.severity {
            Severity::Refuse => "waits for a person",
            Severity::Warn => "is published, with one warning",
        };
        let (name, metric, threshold) = (check.name, check.metric, check.threshold_in_words());
        _ = writeln!(text, "| `{name}` | {metric} | {threshold} | {then} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_at_most_thirty_rules_of_one_sentence() {
        assert!(RULES.len() + CHECKS.len() <= 30 && CHECKS.len() <= 8);
        let sentences = RULES.iter().map(|rule| (rule.name, rule.says));
        let sentences: Vec<_> =
            sentences.chain(CHECKS.iter().map(|check| (check.name, check.metric))).collect();
        for (name, says) in &sentences {
            let words = says
                .split_whitespace()
                .filter(|word| word.len() > 1 || word.chars().all(char::is_alphanumeric));
            assert!(words.count() <= 30, "{name}: {says}");
            assert!(!says.trim_end_matches('.').contains(". "), "{name} is one sentence");
        }
        let names: BTreeSet<_> = sentences.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), sentences.len());
    }

    #[test]
    fn the_page_has_these_rules() {
        let page = include_str!("../../../docs/reference/update-rules.md");
        let lacks = |line: &&str| !line.is_empty() && !page.lines().any(|other| other == *line);
        let rules = rules_as_markdown();
        // The head of the first table is the page's own.
        let missing: Vec<_> = rules.lines().skip(2).filter(lacks).collect();
        assert!(missing.is_empty(), "run `cargo xtask schemas`: {missing:#?}");
    }
}
