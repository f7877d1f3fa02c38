//! Finds links of Markdown pages that lead nowhere: files, anchors, images. No network is used, so addresses of
//! other sites are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path};

/// A page.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// Its path from the project's folder, with `/` on every system.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

impl Page {
    /// The files and folders of the project that it links to.
    #[cfg(test)]
    pub(crate) fn linked(&self) -> Vec<String> {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let links = links_of(&without_code(&self.text)).into_iter().map(|link| link.target);
        links
            .filter(|target| !target.contains(':') && !target.starts_with('#'))
            .filter_map(|target| resolved(folder, &target))
            .collect()
    }
}

/// A link, and the line that has it.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    target: String,
    line: usize,
}

/// Checks all links of all pages: how many there are, and what is wrong.
pub(super) fn check(root: &Path, pages: &[Page]) -> (usize, Vec<String>) {
    let mut anchors: BTreeMap<String, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.clone(), anchors_of(&page.text))).collect();
    let (mut count, mut problems) = (0, Vec::new());
    for page in pages {
        let text = without_code(&page.text);
        for label in undefined_labels(&text) {
            problems.push(format!(
                "{}:{}: `[{}]` is defined nowhere",
                page.path, label.line, label.target
            ));
        }
        for link in links_of(&text) {
            count += 1;
            if let Err(why) = follow(root, page, &link.target, &mut anchors) {
                problems.push(format!("{}:{}: {}: {why}", page.path, link.line, link.target));
            }
        }
    }
    (count, problems)
}

/// Each page below docs/ is in the summary once, so that a reader of the book finds it.
pub(super) fn check_summary(summary: &Page, pages: &[Page]) -> Vec<String> {
    let folder = summary.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for link in links_of(&without_code(&summary.text)) {
        if let Some(path) = resolved(folder, &link.target) {
            *listed.entry(path).or_default() += 1;
        }
    }
    let is_in_book =
        |page: &&Page| page.path.starts_with(&format!("{folder}/")) && page.path != summary.path;
    let mut problems = Vec::new();
    for page in pages.iter().filter(is_in_book) {
        match listed.get(&page.path) {
            Some(1) => {}
            Some(times) => {
                problems.push(format!("{}: {} is there {times} times", summary.path, page.path));
            }
            None => problems.push(format!("{}: {} is not listed", summary.path, page.path)),
        }
    }
    problems
}

/// Whether a link leads to something; the reason if it does not.
fn follow(
    root: &Path,
    page: &Page,
    target: &str,
    anchors: &mut BTreeMap<String, BTreeSet<String>>,
) -> Result<(), String> {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    if scheme.is_some_and(|scheme| ["http", "https", "mailto"].contains(&scheme)) {
        return Ok(());
    }
    if scheme.is_some_and(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphabetic())) {
        return Err("its scheme is not http, https or mailto".to_owned());
    }
    if target.starts_with('/') {
        return Err("write it relative to the page".to_owned());
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let path = match path {
        "" => page.path.clone(),
        path => {
            let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            resolved(folder, &decoded(path)).ok_or("it leaves the project")?
        }
    };
    let file = root.join(&path);
    if !is_there(root, &path) {
        return Err("there is no such file".to_owned());
    }
    let Some(anchor) = anchor else { return Ok(()) };
    if !path.ends_with(".md") {
        // A line of a source, as in `lib.rs#L10`.
        return Ok(());
    }
    if !anchors.contains_key(&path) {
        let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        anchors.insert(path.clone(), anchors_of(&text));
    }
    match anchors[&path].contains(&decoded(anchor)) {
        true => Ok(()),
        false => Err(format!("{path} has no heading `#{anchor}`")),
    }
}

/// Whether a file or folder has exactly this name; systems that ignore case are not asked.
fn is_there(root: &Path, path: &str) -> bool {
    let mut folder = root.to_owned();
    for part in Path::new(path).components() {
        let Component::Normal(name) = part else { return false };
        let mut names = folder.read_dir().into_iter().flatten().flatten();
        if !names.any(|entry| entry.file_name() == name) {
            return false;
        }
        folder.push(name);
    }
    true
}

/// A relative target as a path from the project's folder; none where it leaves that.
fn resolved(folder: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().unwrap_or_default();
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A target without its percent signs.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The links and images of a text without code: those in brackets, those defined below, those of HTML.
fn links_of(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    let mut add = |at: usize, target: &str| {
        if !target.is_empty() {
            let line = 1 + text[..at].matches('\n').count();
            found.push(Link { target: target.to_owned(), line });
        }
    };
    for (at, _) in text.match_indices("](") {
        let rest = &text[at + 2..];
        add(at, destination(rest));
    }
    for attribute in [" src=\"", " href=\""] {
        for (at, _) in text.match_indices(attribute) {
            add(at, text[at + attribute.len()..].split('"').next().unwrap_or_default());
        }
    }
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some((_, target)) = definition(line) {
            add(at, target);
        }
        at += line.len();
    }
    found.sort_by_key(|link| link.line);
    found
}

/// Where a link in brackets leads: up to a title or the bracket that closes it.
fn destination(rest: &str) -> &str {
    if let Some(inside) = rest.strip_prefix('<') {
        return inside.split('>').next().unwrap_or_default();
    }
    let mut depth = 0_usize;
    for (at, character) in rest.char_indices() {
        match character {
            '(' => depth += 1,
            ')' if depth == 0 => return &rest[..at],
            ')' => depth -= 1,
            character if character.is_whitespace() => return &rest[..at],
            _ => {}
        }
    }
    rest
}

/// `[label]: target` on a line.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (label, rest) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    let target = rest.split_whitespace().next()?;
    Some((label, target.trim_matches(['<', '>'])))
}

/// Labels in `[text][label]` that no line defines.
fn undefined_labels(text: &str) -> Vec<Link> {
    let defined: BTreeSet<String> =
        text.lines().filter_map(definition).map(|(label, _)| label.to_lowercase()).collect();
    let mut found = Vec::new();
    for (at, _) in text.match_indices("][") {
        let label = text[at + 2..].split(']').next().unwrap_or_default();
        if !label.is_empty() && !defined.contains(&label.to_lowercase()) {
            let line = 1 + text[..at].matches('\n').count();
            found.push(Link { target: label.to_owned(), line });
        }
    }
    found
}

/// What a link may name in a page: its headings as GitHub and mdBook call them, and anchors in HTML.
fn anchors_of(text: &str) -> BTreeSet<String> {
    let text = without_fences(text);
    let mut found = BTreeSet::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines() {
        let marks = line.chars().take_while(|&character| character == '#').count();
        let Some(heading) = line.get(marks..).filter(|rest| rest.starts_with(' ')) else {
            continue;
        };
        if (1..=6).contains(&marks) {
            let slug = slug(heading);
            let before = times.entry(slug.clone()).or_default();
            found.insert(if *before == 0 { slug } else { format!("{slug}-{before}") });
            *before += 1;
        }
    }
    for attribute in [" id=\"", " name=\""] {
        let named = text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
        found.extend(named.map(str::to_owned));
    }
    found
}

/// A heading as an anchor.
fn slug(heading: &str) -> String {
    // Of a link only its text counts.
    let mut shown = String::new();
    let mut rest = heading.trim();
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    let keep = |character: char| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        character if character.is_alphanumeric() => Some(character),
        _ => None,
    };
    shown.to_lowercase().chars().filter_map(keep).collect()
}

/// A text in which blocks of code are blank; lines and their numbers stay.
fn without_fences(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut fence: Option<String> = None;
    for line in text.split_inclusive('\n') {
        let begin = line.trim_start();
        match &fence {
            None if begin.starts_with("```") || begin.starts_with("~~~") => {
                let mark = begin.chars().next().unwrap_or('`');
                fence = Some(begin.chars().take_while(|&one| one == mark).collect());
            }
            None => {
                shown.push_str(line);
                continue;
            }
            Some(open) => {
                let mark = open.chars().next().unwrap_or('`');
                let is_end = begin.starts_with(open.as_str())
                    && begin.trim_end().chars().all(|character| character == mark);
                if is_end {
                    fence = None;
                }
            }
        }
        shown.extend(line.ends_with('\n').then_some('\n'));
    }
    shown
}

/// A text without blocks of code, code in sentences and comments, each of which may show what looks like a link.
fn without_code(text: &str) -> String {
    let text = without_fences(text);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let blank = |shown: &mut String, hidden: &str| {
        shown.extend(hidden.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
    };
    loop {
        let code = rest.find('`');
        let comment = rest.find("<!--");
        let Some(at) = code.into_iter().chain(comment).min() else { break };
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        if Some(at) == comment {
            let end = from.find("-->").map_or(from.len(), |end| end + 3);
            blank(&mut shown, &from[..end]);
            rest = &from[end..];
            continue;
        }
        let marks = from.chars().take_while(|&character| character == '`').count();
        // Code ends with as many marks as it began with, and not behind its paragraph.
        let paragraph = from.find("\n\n").unwrap_or(from.len());
        let end = closing(&from[marks..paragraph], marks).map_or(marks, |end| marks + end);
        blank(&mut shown, &from[..end]);
        rest = &from[end..];
    }
    shown + rest
}

/// The place behind the next run of exactly so many backquotes.
fn closing(text: &str, marks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let begin = at + found;
        let run = text[begin..].chars().take_while(|&character| character == '`').count();
        at = begin + run;
        if run == marks {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<(String, usize)> {
        let links = links_of(&without_code(text));
        links.into_iter().map(|link| (link.target, link.line)).collect()
    }

    #[test]
    fn links_are_found_where_they_are_links() {
        let text = "[a](one.md) and ![b](images/two.png \"title\")\n\n```console\n[x](no.md)\n```\n\
                    `[y](no.md)` <!-- [z](no.md)\n --> [c](<three four.md>) <img src=\"five.svg\">\n\n\
                    [d]: six.md\n[e](seven(1).md) [text][d]\n";
        let found = targets(text);
        let found: Vec<(&str, usize)> =
            found.iter().map(|(target, line)| (target.as_str(), *line)).collect();
        assert_eq!(
            found,
            [
                ("one.md", 1),
                ("images/two.png", 1),
                ("three four.md", 7),
                ("five.svg", 7),
                ("six.md", 9),
                ("seven(1).md", 10),
            ]
        );
        assert!(undefined_labels(text).is_empty());
        assert_eq!(undefined_labels("[a][b]").len(), 1);
    }

    #[test]
    fn headings_are_anchors() {
        let text = "# A *new* `--flag`\n## [Linked](x.md) one\n## Twice\n## Twice\n```\n# none\n```\n\
                    ## 資格情報ストア\n<a id=\"own\"></a>\n#none\n";
        let found = anchors_of(text);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(
            found,
            ["a-new---flag", "linked-one", "own", "twice", "twice-1", "資格情報ストア"]
        );
    }

    #[test]
    fn what_leads_nowhere_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let docs = folder.path().join("docs");
        fs::create_dir_all(docs.join("images")).expect("a folder");
        fs::write(docs.join("images/a b.png"), "").expect("a file");
        fs::write(folder.path().join("LICENSE"), "").expect("a file");
        let text = "# One\n[a](two.md#second) [b](#one) [c](images/a%20b.png) [d](../LICENSE) \
                    [e](https://example.com/x) [f](two.md#third)\n[g](Two.md) [h](../../x) [i](/x) \
                    [j](ftp://x) [k](#two) [l][m]\n";
        let page = |path: &str, text: &str| {
            fs::write(folder.path().join(path), text).expect("a file");
            Page { path: path.to_owned(), text: text.to_owned() }
        };
        let pages = [page("docs/one.md", text), page("docs/two.md", "## Second\n")];
        let (count, problems) = check(folder.path(), &pages);
        assert_eq!(count, 11);
        let begins = ["`[m]`", "two.md#third", "Two.md", "../../x", "/x", "ftp://x", "#two"];
        let lines = [3, 2, 3, 3, 3, 3, 3];
        assert_eq!(problems.len(), begins.len(), "{problems:#?}");
        for ((problem, begin), line) in problems.iter().zip(begins).zip(lines) {
            let begin = format!("docs/one.md:{line}: {begin}");
            assert!(problem.starts_with(&begin), "{problem} does not begin with {begin}");
        }
    }

    #[test]
    fn the_summary_has_each_page_once() {
        let page = |path: &str, text: &str| Page { path: path.to_owned(), text: text.to_owned() };
        let summary = page("docs/SUMMARY.md", "- [a](a.md)\n- [b](b/c.md)\n- [b](b/c.md)\n");
        let pages = [
            page("README.md", ""),
            summary.clone(),
            page("docs/a.md", ""),
            page("docs/b/c.md", ""),
            page("docs/d.md", ""),
        ];
        let problems = check_summary(&summary, &pages);
        assert_eq!(
            problems,
            [
                "docs/SUMMARY.md: docs/b/c.md is there 2 times",
                "docs/SUMMARY.md: docs/d.md is not listed"
            ]
        );
    }
}
