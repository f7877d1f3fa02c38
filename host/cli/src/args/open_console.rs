//! `kumiki console`: the engine's page in the browser.

use clap::Args;

use super::engine::EngineMode;
use super::live_run::EngineToStartArgs;
use super::order::EngineFolderArgs;

/// What the long help says after the flags.
pub(crate) const CONSOLE_HELP: &str = "\
The page is served on this machine only, at 127.0.0.1 and the console's port. Its address is good once and for 60 s. The page then has a key of its own, which ends with the engine, by Sign out, or after 12 hours without a page. At most 8 such pages are signed in.

Without --mode an engine has to run. With --mode one of that kind is started where none runs; its log is engine.log in the cache folder. It goes on when the page is closed; `kumiki live stop --engine` ends it. A replay needs the folder of its data, --data.

KUMIKI_BROWSER names the program that opens the page; it gets a file that leads to the page. Default: the system's browser. A browser that may not read the system's folder for temporary files, as those of snap packages, finds no file: open what --print prints then.

Exit codes:
  0  the page was opened, or its address was printed
  1  no engine runs or starts, it has no room for a page, or no browser could be started
  2  wrong arguments";

#[derive(Debug, Args)]
pub(crate) struct ConsoleArgs {
    /// Start an engine of this kind if none runs.
    #[arg(long, value_enum)]
    pub(crate) mode: Option<EngineMode>,

    /// Open a page that can only look.
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Print the address as JSON and open no browser.
    ///
    /// Like {"url":"http://127.0.0.1:19875/#...","expires_ms":1767225600000}.
    #[arg(long)]
    pub(crate) print: bool,

    #[command(flatten)]
    pub(crate) folder: EngineFolderArgs,

    #[command(flatten)]
    pub(crate) engine: EngineToStartArgs,
}
