//! `kumiki completions` and `kumiki man`: what shells and manuals need, made from the arguments themselves.

use std::fs;
use std::io::{self, Write};

use anyhow::{Context, Result};

use crate::Ending;
use crate::args::{self, CompletionsArgs, ManArgs};

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Ending> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "kumiki", &mut script);
    printed(&script)
}

/// Prints the manual page, or writes the pages of all commands.
pub(crate) fn man(args: &ManArgs) -> Result<Ending> {
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(args::command()).render(&mut page)?;
        return printed(&page);
    };
    let unwritable = || format!("cannot write manual pages into {}", folder.display());
    fs::create_dir_all(folder).with_context(unwritable)?;
    clap_mangen::generate_to(args::command(), folder).with_context(unwritable)?;
    Ok(Ending::Done)
}

/// Prints a text as it is; a reader that goes away ends it.
fn printed(text: &[u8]) -> Result<Ending> {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Ending::Done),
    }
}
