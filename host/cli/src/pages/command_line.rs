//! `docs/reference/command-line.md`: every command and every flag, from the definitions that parse them.

use clap::{Arg, ArgAction, Command};

use super::prose;

const START: &str = "\
# Command line

Every command of `kumiki`, with its arguments and flags. `kumiki help COMMAND` says the same in a terminal. A flag \
comes before its environment variable, and the variable comes before the default.

";

/// The page.
pub(super) fn page(mut program: Command) -> String {
    program.build();
    let mut text = String::from(START);
    contents(&program, "kumiki", &mut text);
    if let Some(help) = program.get_after_help() {
        block(&help.to_string(), &mut text);
    }
    text.push_str("\n## Flags of every command\n\nThese flags work with every command.\n");
    arguments(program.get_arguments().filter(|arg| arg.is_global_set()), &mut text);
    sections(&mut program, "kumiki", &mut text);
    text
}

/// Commands that users are shown.
fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// A line for each command, those of a group below it.
fn contents(command: &Command, path: &str, text: &mut String) {
    for one in command.get_subcommands().filter(|one| is_shown(one)) {
        let path = format!("{path} {}", one.get_name());
        let depth = path.matches(' ').count() - 1;
        let about = one.get_about().map(|about| prose(&about.to_string())).unwrap_or_default();
        text.push_str(&format!(
            "{}- [`{path}`](#{}): {about}\n",
            "  ".repeat(depth),
            path.replace(' ', "-")
        ));
        contents(one, &path, text);
    }
}

/// A section for each command.
fn sections(command: &mut Command, path: &str, text: &mut String) {
    for one in command.get_subcommands_mut().filter(|one| is_shown(one)) {
        let path = format!("{path} {}", one.get_name());
        text.push_str(&format!("\n## {path}\n\n"));
        if let Some(about) = one.get_long_about().or(one.get_about()) {
            text.push_str(&format!("{}\n", prose(about.to_string().trim())));
        }
        let usage = one.render_usage().to_string();
        block(usage.trim().strip_prefix("Usage: ").unwrap_or(usage.trim()), text);
        arguments(one.get_arguments().filter(|arg| !arg.is_global_set()), text);
        if let Some(help) = one.get_after_long_help().or(one.get_after_help()) {
            block(&help.to_string(), text);
        }
        sections(one, &path, text);
    }
}

/// Text as it stands in a terminal.
fn block(shown: &str, text: &mut String) {
    text.push_str(&format!("\n```text\n{}\n```\n", shown.trim_end()));
}

/// The arguments under their headings, in their order.
fn arguments<'a>(all: impl Iterator<Item = &'a Arg>, text: &mut String) {
    let is_help = |arg: &Arg| {
        matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        )
    };
    let all: Vec<&Arg> = all.filter(|arg| !arg.is_hide_set() && !is_help(arg)).collect();
    let heading = |arg: &Arg| match (arg.get_help_heading(), arg.is_positional()) {
        (Some(heading), _) => heading.to_owned(),
        (None, true) => "Arguments".to_owned(),
        (None, false) => "Options".to_owned(),
    };
    let mut headings: Vec<String> = Vec::new();
    for arg in &all {
        let heading = heading(arg);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    // What must be there comes first, as in the help.
    headings.sort_by_key(|heading| match heading.as_str() {
        "Arguments" => 0,
        "Options" => 1,
        _ => 2,
    });
    for one in headings {
        text.push_str(&format!("\n{}:\n\n", prose(&one)));
        all.iter().filter(|arg| heading(arg) == one).for_each(|arg| argument(arg, text));
    }
}

/// One argument: how it is written, what it does, its default, its variable, its values.
fn argument(arg: &Arg, text: &mut String) {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut said = prose(help.trim()).replace('\n', "\n  ").replace("\n  \n", "\n\n");
    let mut say = |more: String| {
        if !said.is_empty() && !said.ends_with(['.', '?', ':']) {
            said.push('.');
        }
        said.push(' ');
        said.push_str(&more);
    };
    let code = |text: &str| format!("`{text}`");
    let values: Vec<_> = arg.get_possible_values();
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    if values.iter().any(|value| value.get_help().is_some()) {
        let one = |value: &&clap::builder::PossibleValue| match value.get_help() {
            Some(help) => format!("{} ({})", code(value.get_name()), prose(&help.to_string())),
            None => code(value.get_name()),
        };
        say(format!("Values: {}.", values.iter().map(one).collect::<Vec<_>>().join("; ")));
    } else if !values.is_empty() && arg.get_action().takes_values() {
        let names: Vec<_> = values.iter().map(|value| code(value.get_name())).collect();
        say(format!("Values: {}.", names.join(", ")));
    }
    let defaults = arg.get_default_values().iter().map(|value| code(&value.to_string_lossy()));
    let defaults: Vec<_> = defaults.collect();
    if arg.get_action().takes_values() && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        say(format!("Default: {}.", defaults.join(" ")));
    }
    if let Some(variable) = arg.get_env() {
        say(format!("Environment variable: {}.", code(&variable.to_string_lossy())));
    }
    if arg.is_required_set() && !arg.is_positional() {
        say("This flag is required.".to_owned());
    }
    if matches!(arg.get_action(), ArgAction::Append) && !help.contains("ay be given many times") {
        say("It may be given many times.".to_owned());
    }
    text.push_str(&format!("- `{}`: {}\n", spelled(arg), said.trim()));
}

/// How an argument is written, like `--data <DIR>`.
fn spelled(arg: &Arg) -> String {
    let mut parts = Vec::new();
    parts.extend(arg.get_short().map(|short| format!("-{short}")));
    parts.extend(arg.get_long().map(|long| format!("--{long}")));
    let flags = parts.join(", ");
    if !arg.get_action().takes_values() {
        return flags;
    }
    let names = match arg.get_value_names() {
        Some(names) => names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" "),
        None => format!("<{}>", arg.get_id().as_str().to_uppercase()),
    };
    match (flags.is_empty(), arg.is_required_set()) {
        (true, true) => names,
        (true, false) => names.replace('<', "[").replace('>', "]"),
        (false, _) => format!("{flags} {names}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// Calls `look` with each command that is shown.
    fn each(command: &Command, path: &str, look: &mut impl FnMut(&Command, &str)) {
        for one in command.get_subcommands().filter(|one| is_shown(one)) {
            let path = format!("{path} {}", one.get_name());
            look(one, &path);
            each(one, &path, look);
        }
    }

    #[test]
    fn every_command_and_every_flag_is_on_the_page() {
        let page = page(Cli::command());
        let mut program = Cli::command();
        program.build();
        let mut flags = 0;
        each(&program, "kumiki", &mut |command, path| {
            assert!(page.contains(&format!("\n## {path}\n")), "{path}");
            let section = page.split(&format!("\n## {path}\n")).nth(1).unwrap_or_default();
            let section = section.split("\n## ").next().unwrap_or_default();
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                if arg.is_global_set() || ["help", "version"].contains(&arg.get_id().as_str()) {
                    continue;
                }
                flags += 1;
                assert!(section.contains(&format!("- `{}`:", spelled(arg))), "{path}: {arg}");
            }
        });
        assert!(flags > 100, "{flags}");
        assert!(!page.contains(": \n"), "an argument without a help");
        let twice = page.lines().find(|line| line.matches("be given many times").count() > 1);
        assert_eq!(twice, None);
    }

    #[test]
    fn an_argument_is_told_with_all_that_is_known_of_it() {
        let data = Arg::new("data").long("data").short('d').value_name("DIR").env("KUMIKI_DATA");
        let data = data.default_value("data").help("Folder <of> files").action(ArgAction::Append);
        let program = Command::new("kumiki").subcommand(
            Command::new("run").about("Runs").arg(data).arg(Arg::new("file").required(true)),
        );
        let page = page(program);
        assert!(page.contains("- [`kumiki run`](#kumiki-run): Runs\n"), "{page}");
        let line = "- `-d, --data <DIR>`: Folder \\<of> files. Default: `data`. Environment variable: \
                    `KUMIKI_DATA`. It may be given many times.\n";
        assert!(page.contains(line), "{page}");
        assert!(page.contains("\nArguments:\n\n- `<FILE>`:"), "{page}");
    }
}
