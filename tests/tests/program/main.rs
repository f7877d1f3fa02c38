//! The program itself, as its users start it: one test program, which links in one step.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod advice;
mod command_line;
mod csv_cells;
mod daily_market;
mod data_tools;
mod day_files;
mod determinism;
#[cfg(unix)]
mod docs_blocks;
mod empty_days;
mod golden_runs;
mod hostile_guests;
mod instrument_table;
mod issue_prices;
mod keys;
mod languages;
mod markets;
mod not_modelled;
mod output_limits;
#[cfg(unix)]
mod pages_data;
mod parameters;
mod rank_folder;
mod ranking_program;
mod ranking_splits;
mod replica_files;
mod replica_health;
mod replica_trials;
mod replicas;
mod run_folders;
mod service_data;
mod slow_clients;
mod splits;
mod sql_answers;
#[cfg(unix)]
mod sql_folders;
mod sql_views;
mod strategy_compile;
mod sweep;
mod sweep_parts;
mod update_appends;
mod update_board;
mod update_crash;
mod update_damage;
mod update_fixture;
mod update_foreign;
mod update_kills;
mod update_listed;
mod update_program;
mod update_sources;
mod verify;
mod worth;
