//! Reads the blocks of a page: what stands between fences, and what is to be done with it.

use serde_json::Value;

/// Tags of blocks that cannot run here, and what they need.
pub(super) const NEEDS: [(&str, &str); 6] = [
    ("needs-source", "the project's folder with a compiler, or an installation"),
    ("needs-vendor", "the vendor's key"),
    ("needs-cluster", "a cluster"),
    ("needs-broker", "a broker's account"),
    ("needs-root", "root with systemd, or a system of containers"),
    ("needs-windows", "Windows"),
];
/// Languages of blocks that hold no commands and no code.
const TEXTS: [&str; 2] = ["text", "csv"];
/// Languages of code that does not run by itself: such a block is a file that commands of the page use, or an
/// excerpt of one.
const CODE: [&str; 10] =
    ["bash", "c", "graphql", "html", "ini", "javascript", "powershell", "sql", "wit", "yaml"];

/// A block of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    line: usize,
    fence: String,
    text: String,
}

/// What is to be done with a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// Its commands run.
    Commands {
        /// The last one is a server: it runs to the end of the page.
        is_server: bool,
        /// They run at a terminal, where a person answers.
        at_terminal: bool,
        /// That of the last command.
        exit_code: i32,
        /// The lines below a command are in what it writes.
        is_output_held: bool,
    },
    /// It becomes a component.
    Guest {
        /// The file's name in the folder of the page.
        component: &'a str,
        is_strategy: bool,
    },
    /// It runs in the interpreter of the page.
    Python,
    /// It becomes a file in the folder of the page.
    File(&'a str),
    /// It is a part of a file of the project; none named: of any code of a guest, or of another block.
    Excerpt(Option<&'a str>),
    /// It is looked at only, and was read where it has a form.
    Shown,
    /// It needs what is not here.
    Needs(&'static str),
}

impl Block {
    /// The line of the page with its first fence.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// What stands behind the first fence: the language and the tags.
    pub(super) fn fence(&self) -> &str {
        &self.fence
    }

    /// What stands between the fences.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn language(&self) -> &str {
        self.words().next().unwrap_or_default()
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.fence.split([',', ' ']).filter(|word| !word.is_empty())
    }

    /// What is to be done with it.
    ///
    /// # Errors
    /// Its language or a tag is unknown, or it is not what its language says.
    pub(super) fn kind(&self) -> Result<Kind<'_>, String> {
        let language = self.language();
        let mut kind = None;
        let (mut is_server, mut at_terminal) = (false, false);
        let (mut exit_code, mut is_output_held) = (0, false);
        let mut component = None;
        for tag in self.words().skip(1) {
            let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
            match (language, name) {
                ("console", "server") => is_server = true,
                ("console", "terminal") => at_terminal = true,
                ("console", "output") => is_output_held = true,
                ("console", "exit") => {
                    exit_code = value.parse().map_err(|_| format!("`{tag}`: give a number"))?;
                }
                ("rust", "component") if is_name(value) => component = Some(value),
                ("rust", "ignore") => kind = Some(Kind::Excerpt(None)),
                (_, "from") if is_name(value) => kind = Some(Kind::Excerpt(Some(value))),
                (_, "file") if is_name(value) => kind = Some(Kind::File(value)),
                _ => {
                    let need = NEEDS.iter().find(|(need, _)| *need == tag);
                    let (_, need) = need.ok_or_else(|| format!("the tag `{tag}` is unknown"))?;
                    kind = Some(Kind::Needs(need));
                }
            }
        }
        let of_form = match language {
            "console" => {
                commands(&self.text)?;
                Kind::Commands { is_server, at_terminal, exit_code, is_output_held }
            }
            "rust" => match whole_guest(&self.text) {
                Some((usual, is_strategy)) => {
                    Kind::Guest { component: component.unwrap_or(usual), is_strategy }
                }
                None if kind.is_some() => Kind::Shown,
                None => {
                    return Err(
                        "this is no whole strategy or formula; an excerpt of code has the tag \
                                `ignore` or `from=PATH`"
                            .to_owned(),
                    );
                }
            },
            "python" => Kind::Python,
            "json" => {
                read_json(&self.text)?;
                Kind::Shown
            }
            "toml" => {
                let read: Result<toml::Table, _> = self.text.parse();
                read.map_err(|error| format!("this is no TOML: {error}"))?;
                Kind::Shown
            }
            text if TEXTS.contains(&text) => {
                if self.text.lines().any(|line| line.starts_with("$ ")) {
                    return Err("commands belong into a block of `console`".to_owned());
                }
                Kind::Shown
            }
            code if CODE.contains(&code) => match &kind {
                Some(_) => Kind::Shown,
                None => return Err(format!("code in {code} needs `file=NAME` or `from=PATH`")),
            },
            "" => return Err("a fence needs a language".to_owned()),
            other => return Err(format!("the language `{other}` is unknown")),
        };
        Ok(kind.unwrap_or(of_form))
    }
}

/// A path inside of a folder.
fn is_name(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && path.split('/').all(|part| part != "..")
}

/// The usual name of a guest's component, and whether it is a strategy.
fn whole_guest(text: &str) -> Option<(&'static str, bool)> {
    if text.contains("impl Strategy for ") {
        return Some(("my-strategy.wasm", true));
    }
    text.contains("impl Formula for ").then_some(("my-formula.wasm", false))
}

/// One value, or one on each line.
fn read_json(text: &str) -> Result<(), String> {
    let read = |text: &str| serde_json::from_str::<Value>(text).map(drop);
    let lines = || text.lines().filter(|line| !line.trim().is_empty()).try_for_each(read);
    read(text).or_else(|error| lines().map_err(|_| format!("this is no JSON: {error}")))
}

/// The blocks of a page.
pub(super) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (index, line) in page.lines().enumerate() {
        let begin = line.trim_start();
        let indent = line.len() - begin.len();
        let marks = begin.chars().take_while(|&one| one == '`').count();
        match &mut open {
            None if marks >= 3 => {
                let fence = begin[marks..].trim().to_owned();
                open = Some((indent, Block { line: index + 1, fence, text: String::new() }));
            }
            None => {}
            Some(_) if marks >= 3 && begin[marks..].trim().is_empty() => {
                found.extend(open.take().map(|(_, block)| block));
            }
            // Of a block in a list the indentation is not its own.
            Some((outer, block)) => {
                block.text.push_str(&line[indent.min(*outer)..]);
                block.text.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    found
}

/// A command, and the lines below it that it is said to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typed {
    pub(super) command: String,
    pub(super) output: Vec<String>,
}

/// The commands of a block: lines behind `$ `. One goes on behind a backslash, inside of quotes, and up to the end
/// of its here-document; `> ` at the start of such a line is the shell's.
///
/// # Errors
/// There is none, or one has no end.
pub(super) fn commands(text: &str) -> Result<Vec<Typed>, String> {
    let mut found: Vec<Typed> = Vec::new();
    for line in text.lines() {
        if let Some(last) = found.last_mut().filter(|last| is_open(&last.command)) {
            last.command.push('\n');
            last.command.push_str(line.strip_prefix("> ").unwrap_or(line));
        } else if let Some(command) = line.strip_prefix("$ ") {
            found.push(Typed { command: command.to_owned(), output: Vec::new() });
        } else if let Some(last) = found.last_mut() {
            last.output.push(line.to_owned());
        } else if !line.trim().is_empty() {
            return Err("a block of `console` begins with a command: `$ `".to_owned());
        }
    }
    match found.last() {
        None => Err("there is no command in this block: `$ ` begins one".to_owned()),
        Some(last) if is_open(&last.command) => Err(format!("`{}` has no end", last.command)),
        Some(_) => Ok(found),
    }
}

/// Whether the shell would ask for more.
fn is_open(command: &str) -> bool {
    if let Some((first, rest)) = command.split_once("<<") {
        let word = rest.trim_start_matches('-').trim_start_matches(['\'', '"']);
        let word: String = word.chars().take_while(char::is_ascii_alphanumeric).collect();
        if !word.is_empty() && !first.contains('\n') {
            return !command.lines().skip(1).any(|line| line == word);
        }
    }
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            // Nothing behind it: the line goes on. Else what is behind it is taken as it is.
            (None | Some('"'), '\\') if characters.next().is_none() => return true,
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            _ => {}
        }
    }
    quote.is_some()
}

/// Whether a command wrote lines in this order; `...` stands for what is left out.
///
/// # Errors
/// The first that it did not write.
pub(super) fn holds(said: &str, shown: &[String]) -> Result<(), String> {
    let mut lines = said.lines().map(str::trim_end);
    for line in shown.iter().map(|line| line.trim_end()) {
        if !line.is_empty() && line.trim() != "..." && !lines.any(|one| one == line) {
            return Err(format!("`{line}` was not written; this was:\n{said}"));
        }
    }
    Ok(())
}

/// Whether a text has all lines of an excerpt in their order; what is left out is `...` there.
pub(super) fn is_excerpt(excerpt: &str, text: &str) -> bool {
    let is_left_out = |line: &&str| line.is_empty() || line.trim_start_matches('/').trim() == "...";
    let mut lines = text.lines().map(str::trim);
    let mut wanted = excerpt.lines().map(str::trim).filter(|line| !is_left_out(line));
    wanted.all(|line| lines.any(|one| one == line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fence: &str, text: &str) -> Block {
        Block { line: 1, fence: fence.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn blocks_are_found_in_lists_too() {
        let found = blocks("a\n```console\n$ b\n```\n- c\n\n  ```text\n  d\n    e\n  ```\n");
        let expected = [("console", "$ b\n", 2), ("text", "d\n  e\n", 7)];
        let found: Vec<_> = found.iter().map(|one| (one.fence(), one.text(), one.line())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn fences_say_what_is_to_be_done() {
        let commands = |is_server, at_terminal, exit_code, is_output_held| Kind::Commands {
            is_server,
            at_terminal,
            exit_code,
            is_output_held,
        };
        let run = "$ a\n";
        assert_eq!(block("console", run).kind(), Ok(commands(false, false, 0, false)));
        let found = block("console,server exit=3,output", run);
        assert_eq!(found.kind(), Ok(commands(true, false, 3, true)));
        let found = block("console,terminal", run);
        assert_eq!(found.kind(), Ok(commands(false, true, 0, false)));
        for (tag, need) in NEEDS {
            assert_eq!(block(&format!("console,{tag}"), run).kind(), Ok(Kind::Needs(need)));
        }
        let guest = Kind::Guest { component: "my-strategy.wasm", is_strategy: true };
        assert_eq!(block("rust", "impl Strategy for A {}").kind(), Ok(guest));
        let guest = Kind::Guest { component: "f.wasm", is_strategy: false };
        assert_eq!(block("rust,component=f.wasm", "impl Formula for A {}").kind(), Ok(guest));
        assert_eq!(block("rust,ignore", "fn a() {}").kind(), Ok(Kind::Excerpt(None)));
        assert_eq!(block("sql,from=a/b.sql", "SELECT").kind(), Ok(Kind::Excerpt(Some("a/b.sql"))));
        assert_eq!(block("toml,file=a.toml", "a = 1").kind(), Ok(Kind::File("a.toml")));
        assert_eq!(block("json", "{\"a\": 1}\n[2]\n").kind(), Ok(Kind::Shown));
        assert_eq!(block("python", "print(1)").kind(), Ok(Kind::Python));
    }

    #[test]
    fn what_would_be_left_out_is_refused() {
        for (fence, text) in [
            ("", run_of("a")),
            ("bash", run_of("a")),
            ("shell", run_of("a")),
            ("console,needs-luck", run_of("a")),
            ("console", "a\n".to_owned()),
            ("text", run_of("a")),
            ("rust", "fn a() {}".to_owned()),
            ("sql", "SELECT 1".to_owned()),
            ("json", "{...}".to_owned()),
            ("toml", "= 1".to_owned()),
            ("toml,file=../a.toml", "a = 1".to_owned()),
            ("rust,component=", "impl Strategy for A {}".to_owned()),
        ] {
            assert!(block(fence, &text).kind().is_err(), "{fence}");
        }
    }

    fn run_of(command: &str) -> String {
        format!("$ {command}\n")
    }

    #[test]
    fn commands_end_where_the_shell_ends_them() {
        let text = "$ a 'b\nc' \"d'\"\nsaid\n$ e \\\n> --f\n$ cat <<'END'\n$ x\nEND\n\n";
        let typed = |command: &str, output: &[&str]| Typed {
            command: command.to_owned(),
            output: output.iter().map(|line| (*line).to_owned()).collect(),
        };
        let expected = [
            typed("a 'b\nc' \"d'\"", &["said"]),
            typed("e \\\n--f", &[]),
            typed("cat <<'END'\n$ x\nEND", &[""]),
        ];
        assert_eq!(commands(text).unwrap(), expected);
        assert!(commands("$ a 'b\n").is_err());
        assert!(commands("a\n").is_err() && commands("\n").is_err());
    }

    #[test]
    fn excerpts_and_outputs_keep_the_order() {
        assert!(is_excerpt("a\n// ...\nc\n", "  a\nb\n  c\n"));
        assert!(!is_excerpt("c\na\n", "a\nb\nc\n"));
        let shown = |lines: &[&str]| -> Vec<String> {
            lines.iter().map(|line| (*line).to_owned()).collect()
        };
        assert!(holds("a\nb  \nc\n", &shown(&["a", "...", "c"])).is_ok());
        assert!(holds("a\nb\n", &shown(&["b", "a"])).is_err());
    }
}
