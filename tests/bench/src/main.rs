//! Benchmarks. Each figure is one JSON line on standard output: what was measured, the median and
//! the best of the repetitions, and where it makes sense a ratio to a baseline of the same run.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints figures")]

mod baselines;
mod data;
mod ipc_bench;
mod ipc_client;
mod ipc_engine;
mod ipc_feed;
mod ipc_pace;
mod languages_bench;
mod live_bench;
mod live_memory;
mod measure;
mod memory;
mod orders_bench;
mod push_bench;
mod push_engine;
mod push_frames;
mod push_venue;
mod rank_bench;
mod rank_kernel;
mod rank_memory;
mod rank_python;
mod replay_bench;
mod serve_bench;
mod serve_mixed;
mod serve_stalled;
mod sweep_bench;
mod update_bench;
mod update_day;

use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        "ipc" => ipc_bench::run(),
        "languages" => languages_bench::run(),
        "live" => live_bench::run(),
        "orders" => orders_bench::run(),
        "push" => push_bench::run(),
        "rank" => rank_bench::run(&tests::built::release_folder().join("../bench-data")),
        "replay" => replay_bench::run(),
        "serve" => serve_bench::run(),
        "sweep" => sweep_bench::run(),
        "update" => update_bench::run(),
        // The memory of one piece of work is measured in a process of its own.
        "memory-of" => memory::child(),
        live_memory::TASK => live_memory::child(),
        rank_memory::TASK => rank_memory::child(),
        serve_mixed::TASK => serve_mixed::child(),
        other => {
            eprintln!(
                "there is no benchmark `{other}`; there are: ipc, languages, live, orders, push, rank, \
                 replay, serve, sweep, update"
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
