//! The rules of the update job, one sentence each. The page on daily data is made from this table, and each
//! rule has a test.

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
        "A day is complete with rows of 99 % of the issues listed for it; without a list, of the nearest complete \
         day's, less 1 % a month between.",
    ),
    rule(
        "first_day",
        "Without a list and another complete day, a day that came in one piece is complete, and the report says \
         that nothing proves it.",
    ),
    rule(
        "wait",
        "Only complete days are published; any other waits, is named in report and health, and is asked for by \
         every run.",
    ),
    rule(
        "gap",
        "A business day between published ones that is not published is a gap, which ends the run with exit code 6.",
    ),
    rule(
        "accept",
        "`--accept DATE` takes what the vendor says of the day, complete or not; without rows a published day stays, \
         and any other is closed from then on.",
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
        "The last three complete days (`--recheck`), and those of the last 20 weekdays that the vendor has not given \
         whole, are asked for again.",
    ),
    rule(
        "outage",
        "A day for which a better source failed ends the run with exit code 3, although lesser ones filled it.",
    ),
    rule(
        "files",
        "`--from-files` reads the vendor's files as the vendor; the file of a month goes before those of its days.",
    ),
    rule(
        "better",
        "A better source replaces a row as a whole, a worse one only fills what is missing: vendor = files > web \
         broker > public.",
    ),
    rule(
        "corrections",
        "Every value that changes is logged with the old one, the new one and both sources.",
    ),
    rule("factor", "A row that tells no adjustment factor keeps the one that is known."),
    rule(
        "taken_back",
        "A row that a whole answer no longer has stays, unless the list of its day does not have the issue either.",
    ),
    rule(
        "published_stays",
        "A published day stays as it was if an answer for it is not complete or takes values of over 1 % of its \
         issues away.",
    ),
    rule(
        "unusable",
        "Rows that cannot be right, as ten times the last close, are left out and named; if over 1 % are, the answer \
         is refused.",
    ),
    rule(
        "adjusted",
        "No price is adjusted across a missing row or day, a factor that nobody tells, or rows of the public source.",
    ),
    rule(
        "key",
        "The run fails if the vendor refuses the key, or if there is none and days are missing.",
    ),
    rule(
        "own_files",
        "A published file that is damaged or gone is made again; one that holds something foreign stays, and the run \
         fails.",
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
            Severity::Warn => "is published, and told once",
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
        let page = include_str!("../../../docs/daily-data.md");
        let rules = rules_as_markdown();
        assert!(page.contains(&rules), "put this into docs/daily-data.md:\n{rules}");
    }
}
