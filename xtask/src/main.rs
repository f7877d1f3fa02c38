//! The project's automation: `cargo xtask demo`, `cargo xtask test`, `cargo xtask bench`, ...
//!
//! It speaks on stderr, as cargo does; stdout belongs to what was asked for: the demo's table, a
//! bench's JSON lines, the doctor's list, the verdict of the tests.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod apt;
mod bench;
mod browser;
mod cache;
mod cases;
mod component;
mod demo;
mod dist;
mod docs;
mod doctor;
mod duckdb;
mod environment;
mod failures;
mod graphql_audit;
mod guests;
mod host;
mod languages;
mod npm;
mod other_systems;
mod page_guests;
mod paths;
mod process;
mod production_port;
mod project;
mod python;
mod schemas;
mod skips;
mod soak;
mod steps;
mod test;
mod toolchain;
mod windows;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::dist::{Product, System};
use crate::project::Project;

/// Builds, tests and shows Kumiki.
///
/// Start with `cargo xtask demo`: it builds what replays, replays a strategy over sample data and
/// opens the report. The first build takes minutes, because it compiles the WebAssembly engine; later ones
/// take seconds. When something is missing, `cargo xtask doctor` says what to do.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build what replays, and replay the built-in strategy `sma-cross` over sample data.
    ///
    /// That is the strategies and a `kumiki` without DuckDB; where the whole program was compiled before,
    /// that. Writes runs/demo/data and runs/demo/report, prints the summary and opens the report in a
    /// browser where there is a desktop.
    Demo {
        /// Print the path of the report, but do not open it. Setting CI does the same.
        #[arg(long)]
        no_open: bool,
    },

    /// Put DuckDB's library into .duckdb/, where `cargo build --release -p cli` finds it.
    ///
    /// It is fetched with npm once per machine, into your cache folder. `test`, `bench`, `dist`, `soak` and
    /// `schemas` do this by themselves. To take another one, name its folder in DUCKDB_LIB_DIR.
    Setup,

    /// Check everything: format, guests, lints, documentation, tests, schemas, pages in a browser.
    ///
    /// Stops at the first step that fails. Its last lines name the step, the command that repeats it
    /// and the tests that failed, each with the last that it wrote.
    Test {
        /// Leave out the format check, clippy and the documentation.
        #[arg(long)]
        no_lint: bool,
    },

    /// Build the guests and turn them into components.
    ///
    /// Strategies go to `<target>/release/strategies`, where the `kumiki` program finds them by
    /// name; formula modules go to `<target>/release/formulas`, from where `kumiki rank formulas --add`
    /// takes them; dialects go to `<target>/release/dialects`, the guests of the tests to
    /// `<target>/release/test-guests`.
    ///
    /// A compiler for wasm32-unknown-unknown is used as it is, or added with rustup, or unpacked
    /// from Debian's packages into your cache folder; nothing is installed.
    Guests {
        /// Build the strategies in Python, JavaScript and C instead.
        ///
        /// Their toolchains are installed into your cache folder, which needs Python, Node.js and the
        /// network once. They go to `<target>/release/languages`.
        #[arg(long)]
        languages: bool,
    },

    /// Measure: build the guests, then run a benchmark of tests/bench, or `console`, which is a script in Python.
    ///
    /// Its stdout is passed on untouched: one JSON object per line.
    Bench {
        /// Which benchmark.
        name: String,
        /// Passed on to it.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },

    /// Make what users install without a compiler: an archive, a Debian package, a Python wheel.
    ///
    /// They go into dist/, with SHA256SUMS; what an earlier run has made there is removed. Their program is
    /// compiled in a target folder of its own, so that it names no folder of this machine, which is looked
    /// for. What cannot be made or tried here is skipped, with the reason.
    Dist {
        /// Only this; may be given many times.
        #[arg(long, value_name = "PRODUCT")]
        only: Vec<Product>,
        /// For another system than this machine's.
        #[arg(long, value_name = "SYSTEM")]
        target: Option<System>,
        /// Make each twice, which must give the same bytes, and try it.
        ///
        /// Archive and wheel are tried here, and all in a small Debian, which debootstrap makes (as root, with
        /// the network): install, sample data, a replay of `sma-cross`, a ranking.
        #[arg(long)]
        check: bool,
    },

    /// Write the generated schemas and pages anew into schemas/ and docs/reference/.
    Schemas,

    /// Check the links of the pages in docs/, compile the strategies that they show, and make a book of HTML.
    ///
    /// The book goes to `<target>/book`. `mdbook` makes it where it is installed; the pages can be read
    /// without it.
    Docs,

    /// Run the seeded tests with all their seeds, of which `test` takes a part, keep a console open for eight
    /// market hours at sixty times the speed, and try all packages.
    ///
    /// A failure names the seed that it came with. The variables that it names set other numbers of seeds,
    /// like KUMIKI_SOAK_SESSIONS=5.
    Soak,

    /// Build the Windows program with mingw-w64, and try it under Wine with the tests of the other one.
    ///
    /// On Debian and its like it installs both as root.
    Windows,

    /// Say what is there, what is missing and what to do about it.
    Doctor,
}

impl Task {
    /// Whether engines and simulated brokers run, of which one with a wrong setting could reach a real gateway.
    /// `test` holds the port of that by itself, around its steps.
    fn may_reach_a_gateway(&self) -> bool {
        matches!(self, Self::Bench { .. } | Self::Soak | Self::Windows)
    }

    /// Whether it builds what is linked with DuckDB.
    fn needs_database(&self) -> bool {
        !matches!(self, Self::Demo { .. } | Self::Guests { .. } | Self::Docs | Self::Doctor)
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut project = Project::find()?;
    if !matches!(arguments.task, Task::Doctor) {
        doctor::require(&project, matches!(arguments.task, Task::Test { no_lint: false }))?;
    }
    if !matches!(arguments.task, Task::Doctor | Task::Docs | Task::Setup | Task::Guests { .. }) {
        host::announce(&project);
    }
    if arguments.task.needs_database() {
        duckdb::set_up(&mut project)?;
    }
    if arguments.task.may_reach_a_gateway() {
        return production_port::held(|| perform(&project, arguments.task));
    }
    perform(&project, arguments.task)
}

fn perform(project: &Project, task: Task) -> anyhow::Result<()> {
    match task {
        Task::Demo { no_open } => demo::run(project, no_open),
        // That is done for others too, before this.
        Task::Setup => Ok(()),
        Task::Test { no_lint } => test::run(project, no_lint),
        Task::Guests { languages: true } => languages::build(project),
        Task::Guests { languages: false } => guests::build(project),
        Task::Bench { name, arguments } => bench::run(project, &name, &arguments),
        Task::Dist { only, target, check } => dist::run(project, &only, target, check),
        Task::Schemas => schemas::write(project),
        Task::Docs => docs::run(project),
        Task::Soak => soak::run(project),
        Task::Windows => windows::run(project),
        Task::Doctor => doctor::run(project),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_may_reach_a_gateway_holds_its_port() {
        for (line, may) in [("soak", true), ("bench ipc", true), ("schemas", false)] {
            let words = std::iter::once("xtask").chain(line.split(' '));
            let Ok(parsed) = Arguments::try_parse_from(words) else { panic!("{line}") };
            assert_eq!(parsed.task.may_reach_a_gateway(), may, "{line}");
        }
    }

    #[test]
    fn a_bench_takes_options_of_its_own() {
        let parsed = Arguments::try_parse_from(["xtask", "bench", "replay", "--days", "3"]);
        let Ok(Arguments { task: Task::Bench { name, arguments }, .. }) = parsed else {
            panic!("not a bench");
        };
        assert_eq!((name.as_str(), arguments.len()), ("replay", 2));
    }
}
