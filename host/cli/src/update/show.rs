//! A report of the update job for people.

use domain::JstDate;
use pricestore::DataDir;
use update::{
    DayOutcome, Ending, FailureReason, FindingReport, Report, Severity, SourceKind, SourceReport,
    SourceState, WaitingDayReport,
};

use crate::terminal::{columns, grouped, pairs};

/// Days and issues that are shown with the reasons of their failures; the stored report has more.
const SHOWN_MAX: usize = 10;

/// Prints the report.
pub(super) fn report(report: &Report, data: &DataDir) {
    let ending = match report.ending {
        Ending::Done => "done",
        Ending::Incomplete => "incomplete",
        Ending::Gap => "with a gap",
        Ending::Interrupted => "interrupted",
        Ending::Failed => "failed",
    };
    println!("data update {} {ending} in {:.1} s\n", report.number, report.seconds);
    print!("{}", columns(&source_rows(&report.sources)));
    for part in &report.sources {
        if let Some(reason) = &part.reason {
            println!("  {}: {reason}", part.source);
        }
    }
    print!("\n{}", pairs(&summary(report, data)));
    let has_no_key = report
        .sources
        .iter()
        .any(|part| part.source == SourceKind::Vendor && part.state == SourceState::NotConfigured);
    let has_rows = report.sources.iter().any(|part| part.fetched > 0);
    if has_no_key && !has_rows && report.ending == Ending::Failed {
        println!("\nthe stored report names each day and issue that is missing");
        return;
    }
    let failed = report.days.iter().filter(|day| day.outcome == DayOutcome::Failed);
    let days = failed.map(|day| (day.date.to_string(), day.reasons.as_slice()));
    failures("days that could not be fetched", "see the issues below", days.collect());
    odd_rows(report);
    corrections(report);
    waiting_days(&report.waiting, &report.findings);
    findings(&report.findings);
    gaps(&report.gaps);
    let issues = report.issues.iter();
    let issues = issues.map(|issue| (issue.code.to_string(), issue.reasons.as_slice()));
    failures("issues that no source gave", "no source was asked", issues.collect());
}

fn number(value: u64) -> String {
    grouped(&value.to_string())
}

fn source_rows(sources: &[SourceReport]) -> Vec<Vec<String>> {
    let heads = [
        "source",
        "state",
        "asked",
        "cached",
        "failed",
        "rows",
        "new",
        "changed",
        "confirmed",
        "same",
        "kept",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for part in sources {
        let state = match part.state {
            SourceState::NotNeeded => "not needed",
            SourceState::Asked => "asked",
            SourceState::NotConfigured => "not configured",
            SourceState::GivenUp => "given up",
        };
        let mut row = vec![part.source.to_string(), state.to_owned()];
        let numbers = [
            part.asked,
            part.cached,
            part.failed,
            part.fetched,
            part.inserted,
            part.changed,
            part.confirmed,
            part.unchanged,
            part.kept,
        ];
        row.extend(numbers.map(number));
        rows.push(row);
    }
    rows
}

fn summary(report: &Report, data: &DataDir) -> Vec<(&'static str, String)> {
    let days = [
        (report.days_with(DayOutcome::Fetched), "fetched"),
        (report.days_with(DayOutcome::FetchedByIssue), "fetched issue by issue"),
        (report.days_with(DayOutcome::Incomplete), "not complete"),
        (report.days_with(DayOutcome::Refused), "refused"),
        (report.days_with(DayOutcome::NoData), "without data"),
        (report.days_with(DayOutcome::NotDue), "not due"),
        (report.days_with(DayOutcome::Failed), "failed"),
        (report.days_with(DayOutcome::NotReached), "not reached"),
        (report.days_known, "known before"),
        (report.days_closed, "closed"),
    ];
    let days = days.into_iter().filter(|(count, _)| *count > 0);
    let days: Vec<String> = days.map(|(count, word)| format!("{} {word}", number(count))).collect();
    let days = if days.is_empty() { "none".to_owned() } else { days.join(", ") };
    let published = report.published.as_ref().map_or("nothing new".to_owned(), |done| {
        format!(
            "snapshot {}: {} issues, {} business days, {} to {}",
            done.snapshot,
            number(done.codes),
            number(done.days),
            done.first,
            done.last
        )
    });
    let mut rows = vec![("days", days), ("published", published)];
    if let Some(split) = &report.split {
        let files = [
            (split.written, "written"),
            (split.unchanged, "right already"),
            (split.removed, "removed"),
        ];
        let files = files.map(|(count, word)| format!("{} {word}", number(count)));
        rows.push(("issue files", files.join(", ")));
    }
    if report.listed.lists > 0 || report.listed.published {
        let published = if report.listed.published { "published" } else { "nothing new" };
        rows.push(("lists of issues", format!("{}, {published}", number(report.listed.lists))));
    }
    let path = data.path().join("update").join(format!("report-{}.json", report.number));
    rows.push(("report", path.display().to_string()));
    rows
}

fn waiting_days(days: &[WaitingDayReport], findings: &[FindingReport]) {
    if days.is_empty() {
        return;
    }
    println!("\ndays that wait");
    let line = |day: &WaitingDayReport| {
        let is_refusal = |found: &&FindingReport| found.severity == Severity::Refuse;
        if findings.iter().filter(is_refusal).any(|found| found.date == day.date) {
            // It is not for their number that its rows are not stored.
            return (day.date.to_string(), day.why.clone());
        }
        let of = day.expected.map_or(String::new(), |rows| format!(" of {}", number(rows)));
        (day.date.to_string(), format!("{}{of} rows: {}", number(day.rows), day.why))
    };
    once_each(days.iter().map(line));
    let mut told: Vec<&str> = Vec::new();
    for day in days.iter().take(SHOWN_MAX) {
        if !told.contains(&day.advice.as_str()) {
            println!("  {}: {}", day.date, day.advice);
            told.push(&day.advice);
        }
    }
}

fn findings(findings: &[FindingReport]) {
    if findings.is_empty() {
        return;
    }
    println!("\ndays that need a look");
    for finding in findings.iter().take(SHOWN_MAX) {
        println!("  {}  {}; {}", finding.date, finding.what, finding.advice);
        for row in &finding.rows {
            println!("              {row}");
        }
    }
    more(findings.len());
}

fn odd_rows(report: &Report) {
    if report.odd.is_empty() {
        return;
    }
    println!("\nrows that could not be used and were left out");
    for row in report.odd.iter().take(SHOWN_MAX) {
        println!("  {}  {}: {}", row.row, row.source, row.reason);
    }
    more(usize::try_from(report.odd_rows).unwrap_or(usize::MAX));
}

fn corrections(report: &Report) {
    if report.corrections.is_empty() {
        return;
    }
    println!("\nrows that got other values, or that the vendor took back");
    let shown = |value: Option<f64>| value.map_or("nothing".to_owned(), |value| value.to_string());
    for row in report.corrections.iter().take(SHOWN_MAX) {
        let values = row.values.iter().map(|value| match row.taken_back {
            true => format!("{} {}", value.column, shown(value.old)),
            false => format!("{} {} to {}", value.column, shown(value.old), shown(value.new)),
        });
        let values: Vec<String> = values.collect();
        let before = row.before.as_deref().unwrap_or("unknown");
        let how = if row.taken_back { "took back that of" } else { "after" };
        println!(
            "  {} {}  {} {how} {before}: {}",
            row.date,
            row.code,
            row.source,
            values.join(", ")
        );
    }
    let all: u64 = report.sources.iter().map(|part| part.changed + part.removed).sum();
    more(usize::try_from(all).unwrap_or(usize::MAX));
}

fn gaps(days: &[JstDate]) {
    listed("business days that are missing between published ones", days);
}

fn listed(title: &str, days: &[JstDate]) {
    if days.is_empty() {
        return;
    }
    println!("\n{title}");
    for day in days.iter().take(SHOWN_MAX) {
        println!("  {day}");
    }
    more(days.len());
}

/// How many lines are left out of a list of so many.
fn more(count: usize) {
    if let Some(more) = count.checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        println!("  and {} more; see the report", number(more as u64));
    }
}

/// What failed, each with its reasons; `without` says where to look for those of one that has none.
fn failures(title: &str, without: &str, failed: Vec<(String, &[FailureReason])>) {
    if failed.is_empty() {
        return;
    }
    println!("\n{title}");
    once_each(failed.into_iter().map(|(name, reasons)| {
        let reasons: Vec<String> =
            reasons.iter().map(|reason| format!("{}: {}", reason.source, reason.reason)).collect();
        let reasons = if reasons.is_empty() { without.to_owned() } else { reasons.join("; ") };
        (name, reasons)
    }));
}

/// Says each text once, with the first of the days or issues that it is true of.
fn once_each(lines: impl Iterator<Item = (String, String)>) {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for (name, text) in lines {
        match told.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => told.push((text, vec![name])),
        }
    }
    for (text, names) in told.iter().take(SHOWN_MAX) {
        let more = match names.len().saturating_sub(SHOWN_MAX) {
            0 => String::new(),
            more => format!(" and {} more", number(more as u64)),
        };
        println!("  {}{more}  {text}", names[..names.len().min(SHOWN_MAX)].join(", "));
    }
    more(told.len());
}
