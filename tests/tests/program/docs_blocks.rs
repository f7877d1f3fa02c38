//! Every block of commands and code in README.md and in the pages below docs/ runs as a reader would run it: the
//! commands of a page one after the other in a fresh folder, its strategies as components, its Python in one
//! interpreter. A block that cannot run here has a tag that says what it needs, and is counted.

#![allow(clippy::print_stdout, reason = "what is skipped is told and counted")]

mod page;
mod shell;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tests::{built, files};

use page::{Block, Kind, NEEDS};
use shell::Shell;

/// Folders of docs/ whose pages have a test here.
const FOLDERS: [&str; 6] = ["concepts", "howto", "ja", "reference", "start", "tutorials"];
/// Pages beside these folders, each with a test here.
const SINGLE: [&str; 1] = ["docs/live.md"];
/// Pages that are not run: those of the development, the list of pages, and those that are generated from the code.
const NOT_RUN: [&str; 7] = [
    "docs/develop/",
    "docs/SUMMARY.md",
    "docs/reference/command-line.md",
    "docs/reference/configuration.md",
    "docs/reference/limits.md",
    "docs/reference/messages.md",
    "docs/reference/update-rules.md",
];
/// What the system has to make terminals with.
const TERMINALS: &str = "the program `script` of util-linux";
/// Blocks that run at least, so that a reader of pages which finds none is noticed.
const RUN_LEAST: usize = 40;

/// A page with its blocks.
struct Page {
    /// From the project's folder, with `/`.
    path: String,
    blocks: Vec<Block>,
}

impl Page {
    fn read(path: String) -> Self {
        let text = fs::read_to_string(files::workspace_root().join(&path));
        let text = text.unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { blocks: page::blocks(&text), path }
    }

    /// The page that this one is a translation of.
    fn original(&self) -> Option<Self> {
        let path = match self.path.strip_prefix("docs/ja/") {
            Some(inside) => format!("docs/{inside}"),
            None => self.path.strip_suffix(".ja.md").map(|name| format!("{name}.md"))?,
        };
        files::workspace_root().join(&path).is_file().then(|| Self::read(path))
    }

    /// The blocks that run, with the languages and tags of their fences.
    fn that_run(&self) -> Vec<(&str, &str)> {
        let runs = |block: &&Block| ["console", "rust", "python"].contains(&block.language());
        let pair = |block| (Block::fence(block), Block::text(block));
        self.blocks.iter().filter(runs).map(pair).collect()
    }
}

/// What became of the blocks of some pages.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    /// They ran.
    run: usize,
    /// They hold no commands and no code, or are files and excerpts, which were checked.
    shown: usize,
    /// They are those of another page, in another language.
    translated: usize,
    /// They need what is not here, by what that is.
    needs: BTreeMap<&'static str, usize>,
}

impl Counts {
    fn all(&self) -> usize {
        self.run + self.shown + self.translated + self.needs.values().sum::<usize>()
    }

    fn add(&mut self, other: &Self) {
        self.run += other.run;
        self.shown += other.shown;
        self.translated += other.translated;
        for (need, count) in &other.needs {
            *self.needs.entry(need).or_default() += count;
        }
    }

    fn told(&self) -> String {
        format!(
            "{} blocks run, {} shown, {} as in English, {} need what is not here",
            self.run,
            self.shown,
            self.translated,
            self.needs.values().sum::<usize>()
        )
    }
}

/// The pages below docs/ and the front pages, but those that are not run.
fn pages() -> Vec<String> {
    let root = files::workspace_root();
    let mut found = vec!["README.md".to_owned(), "README.ja.md".to_owned()];
    let mut open = vec![root.join("docs")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                let parts: Vec<_> = path.strip_prefix(&root).unwrap().iter().collect();
                let parts: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
                found.push(parts.join("/"));
            }
        }
    }
    found.retain(|path| !NOT_RUN.iter().any(|begin| path.starts_with(begin)));
    found.sort();
    found
}

/// The commands of all blocks that need something, by its tag: in the order of the pages, each once.
pub(crate) fn commands_that_need(tag: &str) -> Vec<String> {
    let (_, need) = NEEDS.iter().find(|(known, _)| *known == tag).unwrap();
    let mut found = Vec::new();
    for page in pages().into_iter().map(Page::read) {
        for block in page.blocks.iter().filter(|block| block.kind() == Ok(Kind::Needs(need))) {
            for typed in page::commands(block.text()).unwrap() {
                if !found.contains(&typed.command) {
                    found.push(typed.command);
                }
            }
        }
    }
    found
}

/// Runs the pages that a test is for, and tells what became of their blocks.
#[track_caller]
fn run(name: &str, is_meant: impl Fn(&str) -> bool) {
    let (mut counts, mut failures) = (Counts::default(), Vec::new());
    let pages = pages().into_iter().filter(|path| is_meant(path));
    let pages: Vec<Page> = pages.map(Page::read).collect();
    assert!(!pages.is_empty(), "{name} has no pages");
    for page in &pages {
        match run_page(page) {
            Ok(found) => {
                assert_eq!(found.all(), page.blocks.len(), "{}: blocks were left out", page.path);
                counts.add(&found);
            }
            Err(why) => failures.push(format!("{}:{why}", page.path)),
        }
    }
    println!("{name}: {} pages, {}", pages.len(), counts.told());
    for (need, count) in &counts.needs {
        println!("skipped: {count} blocks of {name} need {need}");
    }
    assert!(failures.is_empty(), "{} pages fail:\n\n{}", failures.len(), failures.join("\n\n"));
}

/// Runs a page; an error begins with the line of the block that failed.
fn run_page(page: &Page) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let is_translated =
        page.original().is_some_and(|original| original.that_run() == page.that_run());
    let mut shell = None;
    for block in &page.blocks {
        let failed = |why: String| format!("{}: {why}", block.line());
        let kind = block.kind().map_err(failed)?;
        let runs = matches!(kind, Kind::Commands { .. } | Kind::Guest { .. } | Kind::Python);
        if runs && is_translated {
            counts.translated += 1;
            continue;
        }
        let shell = shell.get_or_insert_with(|| Shell::new(has_servers(page)));
        match kind {
            Kind::Needs(need) => {
                *counts.needs.entry(need).or_default() += 1;
                continue;
            }
            Kind::Commands { is_server, at_terminal, exit_code, is_output_held } => {
                if at_terminal && !shell::has_terminals() {
                    *counts.needs.entry(TERMINALS).or_default() += 1;
                    continue;
                }
                let typed = page::commands(block.text()).map_err(failed)?;
                for (index, one) in typed.iter().enumerate() {
                    let is_last = index + 1 == typed.len();
                    let said = match one.command.strip_suffix(" &") {
                        Some(server) => shell.serve(server, &one.output),
                        None if is_server && is_last => shell.serve(&one.command, &one.output),
                        None if at_terminal => shell.type_in(&one.command),
                        None => shell.run(&one.command, if is_last { exit_code } else { 0 }),
                    };
                    let said = said.map_err(failed)?;
                    if is_output_held {
                        page::holds(&said, &one.output).map_err(failed)?;
                    }
                }
            }
            Kind::Guest { component, is_strategy } => {
                let built = component_of(block.text()).map_err(failed)?;
                fs::copy(&built, shell.work().join(component)).unwrap();
                if is_strategy {
                    shell.run(&format!("kumiki strategy check {component}"), 0).map_err(failed)?;
                }
            }
            Kind::Python => match shell.python(block.text()) {
                Some(ended) => ended.map_err(failed)?,
                None => {
                    *counts.needs.entry("Python with the packages of the tests").or_default() += 1;
                    continue;
                }
            },
            Kind::File(name) => {
                let path = shell.work().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, block.text()).unwrap();
                counts.shown += 1;
                continue;
            }
            Kind::Excerpt(source) => {
                let sources = match source {
                    Some(path) => vec![files::workspace_root().join(path)],
                    None => rust_sources(),
                };
                let others = page.blocks.iter().filter(|other| other.line() != block.line());
                let texts = others.map(|other| other.text().to_owned());
                let mut texts = texts.chain(sources.iter().flat_map(fs::read_to_string));
                if !texts.any(|text| page::is_excerpt(block.text(), &text)) {
                    let of = source.unwrap_or("the page, of examples/ or of guests/");
                    return Err(failed(format!("this is no excerpt of {of}")));
                }
                counts.shown += 1;
                continue;
            }
            Kind::Shown => {
                counts.shown += 1;
                continue;
            }
        }
        counts.run += 1;
    }
    Ok(counts)
}

/// Whether a page starts servers, which listen on ports that other pages use too.
fn has_servers(page: &Page) -> bool {
    page.blocks.iter().any(|block| match block.kind() {
        Ok(Kind::Commands { is_server, .. }) => {
            is_server || block.text().lines().any(|line| line.ends_with(" &"))
        }
        _ => false,
    })
}

/// The component that was built of a guest on a page.
fn component_of(source: &str) -> Result<PathBuf, String> {
    let folder = built::release_folder().join("page-guests");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let is_its = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "rs")
            && fs::read_to_string(path).is_ok_and(|text| text == source)
    };
    let found = entries.map(|entry| entry.path()).find(is_its);
    found
        .map(|path| path.with_extension("wasm"))
        .ok_or_else(|| "this guest was not built: run `cargo xtask docs`".to_owned())
}

/// The code of examples and guests.
fn rust_sources() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                below(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    for folder in ["examples", "guests"] {
        below(&files::workspace_root().join(folder), &mut found);
    }
    found
}

fn is_in(folder: &str) -> impl Fn(&str) -> bool {
    let begin = format!("docs/{folder}/");
    move |path| path.starts_with(&begin)
}

#[test]
fn the_front_page_runs() {
    run("the front page", |path| path.starts_with("README"));
}

#[test]
fn the_pages_of_the_start_run() {
    run("docs/start", is_in("start"));
}

#[test]
fn the_tutorials_run() {
    run("docs/tutorials", is_in("tutorials"));
}

#[test]
fn the_pages_on_concepts_run() {
    run("docs/concepts", is_in("concepts"));
}

#[test]
fn the_pages_on_single_tasks_run() {
    run("docs/howto", is_in("howto"));
}

#[test]
fn the_page_on_real_orders_runs() {
    run(SINGLE[0], |path| path == SINGLE[0]);
}

#[test]
fn the_reference_runs() {
    run("docs/reference", is_in("reference"));
}

#[test]
fn the_japanese_pages_run() {
    run("docs/ja", is_in("ja"));
}

/// Who has walked through the front page more than once gets the report of the newest run.
#[test]
fn the_front_page_reports_the_newest_of_several_runs() {
    let page = Page::read("README.md".to_owned());
    let commands = page.blocks.iter().filter_map(|block| page::commands(block.text()).ok());
    let mut reports = commands.flatten().filter(|typed| typed.command.contains("cache/runs"));
    let report = reports.next().expect("the front page reports a run on paper").command;
    let mut shell = Shell::new(false);
    let data = "kumiki data sample --out data --instrument 7203.TSE --days 1";
    shell.run(data, 0).unwrap();
    let (older, newer) = ("20261130T003105123Z-ffffffff", "20261130T003105124Z-00000000");
    for run in [older, newer] {
        let line = format!(
            "kumiki replay run buy-and-hold --data data --instrument 7203.TSE --out cache/runs/{run}"
        );
        shell.run(&line, 0).unwrap();
    }
    let said = shell.run(&report, 0).unwrap();
    assert!(said.contains(newer) && !said.contains(older), "{said}");
}

/// No fence is of a language that nobody knows, no tag is, and no folder of pages is without a test.
#[test]
fn every_block_is_known_and_counted() {
    let (mut counts, mut failures) = (Counts::default(), Vec::new());
    let pages = pages();
    for path in &pages {
        let page = Page::read(path.clone());
        for block in &page.blocks {
            match block.kind() {
                Ok(Kind::Needs(need)) => *counts.needs.entry(need).or_default() += 1,
                Ok(Kind::Commands { .. }) if page::commands(block.text()).is_err() => {
                    let why = page::commands(block.text()).err().unwrap_or_default();
                    failures.push(format!("{path}:{}: {why}", block.line()));
                }
                Ok(Kind::Commands { .. } | Kind::Guest { .. } | Kind::Python) => counts.run += 1,
                Ok(Kind::File(_) | Kind::Excerpt(_) | Kind::Shown) => counts.shown += 1,
                Err(why) => failures.push(format!("{path}:{}: {why}", block.line())),
            }
        }
    }
    println!("{} pages: {}", pages.len(), counts.told());
    NEEDS.iter().for_each(|(tag, need)| {
        println!("{} blocks are {tag}", counts.needs.get(need).copied().unwrap_or_default());
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(counts.run >= RUN_LEAST, "{}", counts.told());
    let folder = |path: &String| {
        let (folder, _) = path.strip_prefix("docs/")?.split_once('/')?;
        Some(folder.to_owned())
    };
    let is_outside = |path: &&String| path.starts_with("docs/") && folder(path).is_none();
    let outside: Vec<&String> = pages.iter().filter(is_outside).collect();
    assert_eq!(outside, SINGLE, "another page lies in a folder of docs/");
    let folders: BTreeSet<String> = pages.iter().filter_map(folder).collect();
    assert!(folders.iter().eq(FOLDERS), "{folders:?}");
}
