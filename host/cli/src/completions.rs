//! `kumiki completions` and `kumiki man`: what shells and manuals need, made from the arguments themselves.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;

use crate::Ending;
use crate::args::{self, CompletionsArgs, ManArgs};

/// The section of a manual page that has all text below the flags.
const BELOW: &str = ".SH EXTRA\n";
/// Where remarks stand that are no example.
const NOTES: &str = ".SH NOTES\n";
/// Lines of a help that are titles of a manual page.
const TITLES: [(&str, &str); 3] = [
    ("Examples:", ".SH EXAMPLES\n"),
    ("Example:", ".SH EXAMPLES\n"),
    ("Exit codes:", ".SH \"EXIT STATUS\"\n"),
];

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Ending> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(&args::command()), "kumiki", &mut script);
    printed(&script)
}

/// A command without what is hidden, which shells would offer.
fn shown(command: &Command) -> Command {
    let below = command.get_subcommands().filter(|one| !one.is_hide_set()).map(shown);
    // Names live as long as the program, which ends with the script.
    let name: &'static str = command.get_name().to_owned().leak();
    let only = Command::new(name)
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true)
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()))
        .subcommands(below);
    match command.get_version() {
        Some(_) => only.version(env!("CARGO_PKG_VERSION")),
        None => only,
    }
}

/// Prints the manual page, or writes the pages of all commands.
pub(crate) fn man(args: &ManArgs) -> Result<Ending> {
    let Some(folder) = &args.out else {
        return printed(page(&Man::new(args::command()))?.as_bytes());
    };
    let unwritable = || format!("cannot write manual pages into {}", folder.display());
    fs::create_dir_all(folder).with_context(unwritable)?;
    let mut program = args::command().disable_help_subcommand(true);
    program.build();
    pages(&program, folder).with_context(unwritable)?;
    Ok(Ending::Done)
}

/// Writes the page of a command, and those of the commands below it.
fn pages(command: &Command, folder: &Path) -> Result<()> {
    let man = Man::new(command.clone());
    fs::write(folder.join(man.get_filename()), page(&man)?)?;
    let mut below = command.get_subcommands().filter(|one| !one.is_hide_set());
    below.try_for_each(|one| pages(one, folder))
}

/// A manual page, with its examples and exit codes under titles of their own.
fn page(man: &Man) -> Result<String> {
    let mut page = Vec::new();
    man.render(&mut page)?;
    let page = String::from_utf8(page)?;
    let Some((start, below)) = page.split_once(BELOW) else { return Ok(page) };
    let mut text = start.to_owned();
    let mut title = "";
    for line in below.lines() {
        let found = TITLES.iter().find(|(name, _)| *name == line).map(|(_, title)| *title);
        let is_remark = !line.is_empty() && !line.starts_with([' ', '.']);
        if let Some(found) = found {
            title = found;
            text.push_str(title);
            continue;
        }
        if is_remark && title != NOTES {
            title = NOTES;
            text.push_str(title);
        }
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

/// Prints a text as it is; a reader that goes away ends it.
fn printed(text: &[u8]) -> Result<Ending> {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Ending::Done),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn shells_are_offered_what_is_shown() {
        let mut script = Vec::new();
        let mut command = shown(&args::command());
        clap_complete::generate(clap_complete::Shell::Bash, &mut command, "kumiki", &mut script);
        let script = String::from_utf8(script).unwrap();
        for hidden in ["schemas", "check-pages", "--dry-run", "compile "] {
            assert!(!script.contains(hidden), "{hidden}");
        }
        for offered in ["replay", "--granularity", "--guest-limit", "--log-format", "--version"] {
            assert!(script.contains(offered), "{offered}");
        }
    }

    #[test]
    fn a_manual_page_has_the_usual_sections() {
        let help =
            "A note.\n\n  --a  1\n\nExamples:\n  kumiki x\n\nMore.\n\nExit codes:\n  0  done";
        let command = Command::new("x").version("1").arg(Arg::new("a")).after_long_help(help);
        let page = page(&Man::new(command)).unwrap();
        let below = page.split_once(NOTES).unwrap().1;
        let below = below.split_once(".SH VERSION").unwrap().0;
        let wanted = "A note.\n\n  \\-\\-a  1\n\n.SH EXAMPLES\n  kumiki x\n\n.SH NOTES\nMore.\n\n\
                      .SH \"EXIT STATUS\"\n  0  done\n";
        assert_eq!(below, wanted);
    }
}
