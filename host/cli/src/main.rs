//! The `kumiki` program.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A run keeps its orders to the end of their day, which fragments the memory of the systems' own allocators: each
/// new order then costs a search. DuckDB and the memory of guests are not in it.
#[global_allocator]
static MEMORY: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
