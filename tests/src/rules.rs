//! The rules of the project as functions over files. Each has a test with a violating sample.

pub mod documents;
pub mod manifests;
pub mod sources;
pub mod texts;
pub mod wit;

use std::fmt;

use crate::files::File;

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

impl Violation {
    /// A violation at the line with this index, from 0.
    pub fn at(file: &File, index: usize, what: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line: index + 1, what: what.into() }
    }

    /// A violation at the first line that has `text`; at the first line when none has.
    pub fn near(file: &File, text: &str, what: impl Into<String>) -> Self {
        let index = file.text.lines().position(|line| line.contains(text)).unwrap_or(0);
        Self::at(file, index, what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// A failure message: the rule with its reason, then the places; none when all is well.
pub fn complaint(rule: &str, why: &str, violations: &[Violation]) -> Option<String> {
    if violations.is_empty() {
        return None;
    }
    let mut text = format!("\nRule: {rule}\nWhy:  {why}\nBroken at:\n");
    for violation in violations {
        text += &format!("  {violation}\n");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_rule_reason_and_place() {
        let file = File::new("a/b.rs", "one\ntwo");
        let violation = Violation::near(&file, "two", "is wrong");
        let text = complaint("the rule", "the reason", &[violation]).unwrap();
        for part in ["the rule", "the reason", "a/b.rs:2: is wrong"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert_eq!(complaint("the rule", "the reason", &[]), None);
    }
}
