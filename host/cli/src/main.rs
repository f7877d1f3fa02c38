//! The `kumiki` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
