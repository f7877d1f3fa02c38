//! The prompt of `kumiki sql`: history, completion of views, columns and words of SQL.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use ranking::console::Console;
use reedline::{
    ColumnarMenu, DefaultCompleter, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder,
    Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal,
    ValidationResult, Validator, default_emacs_keybindings,
};

use super::{Running, is_cancelled, show};
use crate::args::SqlFormat;
use crate::hidden::Echo;
use crate::interrupt::Interrupt;
use crate::rank::is_broken_pipe;
use crate::{Ending, INTERRUPTED, output};

/// Statements that are remembered.
const HISTORY: usize = 1_000;
/// The menu's name inside the editor.
const MENU: &str = "completion";
/// Words that are completed, besides views and columns.
const WORDS: [&str; 34] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "HAVING",
    "JOIN",
    "LEFT JOIN",
    "USING",
    "WITH",
    "AS",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "BETWEEN",
    "DISTINCT",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "DESC",
    "ASC",
    "count",
    "avg",
    "sum",
    "min",
    "max",
    "median",
    "DESCRIBE",
    "SUMMARIZE",
    "EXPLAIN",
];
const HELP: &str = "\
A statement ends with `;`, or is one line. Tab completes, the up key brings back what was asked.
  .views      views and their columns
  .help       this
  .quit       leave (Ctrl-D does too); Ctrl-C stops a statement that runs";

/// Asks and answers until the user leaves.
pub(super) fn run(console: &Console, format: SqlFormat) -> Result<Ending> {
    let running = Running::default();
    let is_asked = Arc::new(AtomicBool::new(false));
    let (stop, is_running) = (running.clone(), Arc::clone(&is_asked));
    let shown = Echo::now();
    let _interrupt = Interrupt::listen_each(move || {
        // While a line is typed Ctrl-C is a key, so that a signal asks for the end.
        if is_running.load(Ordering::Acquire) {
            stop.cancel();
        } else {
            shown.again();
            std::process::exit(i32::from(INTERRUPTED));
        }
    })?;
    let mut editor = editor(console)?;
    println!("{}\n{HELP}", views(console));
    loop {
        let line = match editor.read_line(&SqlPrompt)? {
            Signal::Success(line) => line,
            Signal::CtrlD => return Ok(Ending::Done),
            _ => continue,
        };
        match line.trim() {
            "" => {}
            ".quit" | ".exit" | "exit" | "quit" => return Ok(Ending::Done),
            ".help" => println!("{HELP}"),
            ".views" | ".tables" => println!("{}", views(console)),
            other if other.starts_with('.') => eprintln!("{other} is no command; .help lists them"),
            sql => {
                is_asked.store(true, Ordering::Release);
                match show::answer(console, sql, &running.next(), format) {
                    Ok(()) => {}
                    Err(error) if is_cancelled(&error) => eprintln!("stopped"),
                    Err(error) if is_broken_pipe(&error) => return Ok(Ending::Done),
                    Err(error) => output::failure(&error.to_string()),
                }
                is_asked.store(false, Ordering::Release);
            }
        }
    }
}

fn views(console: &Console) -> String {
    let lines = console.views().iter().map(|view| {
        let columns: Vec<&str> = view.columns.iter().map(|(name, _)| name.as_str()).collect();
        format!("{}({})", view.name, columns.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn editor(console: &Console) -> Result<Reedline> {
    let mut words: Vec<String> = WORDS.map(str::to_owned).to_vec();
    for view in console.views() {
        words.push(view.name.clone());
        words.extend(view.columns.iter().map(|(name, _)| name.clone()));
    }
    words.sort();
    words.dedup();
    let mut completer = DefaultCompleter::with_inclusions(&['_']);
    completer.insert(words);
    let mut keys = default_emacs_keybindings();
    let complete = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::Menu(MENU.to_owned()),
        ReedlineEvent::MenuNext,
    ]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    let menu = ColumnarMenu::default().with_name(MENU);
    let editor = Reedline::create()
        .with_completer(Box::new(completer))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_validator(Box::new(WholeStatement))
        .with_ansi_colors(console::colors_enabled())
        .with_quick_completions(true);
    let Some(folder) = dirs::data_local_dir().map(|folder| folder.join("kumiki")) else {
        return Ok(editor);
    };
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let history = FileBackedHistory::with_file(HISTORY, folder.join("sql-history"))
        .context("cannot open the history of statements")?;
    Ok(editor.with_history(Box::new(history)))
}

/// A statement goes on over lines until its brackets and quotes are closed.
struct WholeStatement;

impl Validator for WholeStatement {
    fn validate(&self, line: &str) -> ValidationResult {
        if is_whole(line) { ValidationResult::Complete } else { ValidationResult::Incomplete }
    }
}

fn is_whole(text: &str) -> bool {
    let (mut depth, mut quote) = (0_usize, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let ends_open = text.trim_end().ends_with(',') || text.trim_end().ends_with('\\');
    quote.is_none() && depth == 0 && !ends_open
}

struct SqlPrompt;

impl Prompt for SqlPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "sql".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        "> ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "...> ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!("(history: {}) ", search.term).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_goes_on_while_something_is_open() {
        for whole in ["SELECT 1", "SELECT (1)", "SELECT '('", "SELECT \"a'b\"", ".quit"] {
            assert!(is_whole(whole), "{whole}");
        }
        for open in ["SELECT (", "SELECT 'a", "SELECT a,", "SELECT \"a"] {
            assert!(!is_whole(open), "{open}");
        }
    }
}
