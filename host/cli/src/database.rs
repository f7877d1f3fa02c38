//! The commands that stand on DuckDB: rankings, SQL, the daily job, the vendor's lists. A program
//! without it (feature `database`) has `no_database.rs` in this file's place.

use std::error::Error;

use anyhow::Result;
use domain::clock::Stopwatch;
use keys::Key;
use marketdata::sample::daily::DailySample;
use pricestore::DataDir;
use pricestore::sample::make_daily_sample;
use ranking::RankError;

use crate::args::{DatabaseCommand, ListingsCommand, RankCommand, SampleArgs};
use crate::logging::LogDefault;
use crate::terminal::grouped;
use crate::{Ending, data_listings, rank, schemas, sql};

pub(crate) use crate::data_info_prices::Prices;

/// What a command logs when nobody says otherwise.
pub(crate) const fn default_log(command: &DatabaseCommand) -> LogDefault {
    match command {
        DatabaseCommand::Rank(RankCommand::Serve(_)) => LogDefault::Service,
        _ => LogDefault::Command,
    }
}

/// What a command of `kumiki data` logs when nobody says otherwise.
pub(crate) const fn listings_log(command: &ListingsCommand) -> LogDefault {
    match command {
        ListingsCommand::Update(_) | ListingsCommand::Boards(_) => LogDefault::Job,
        _ => LogDefault::Command,
    }
}

/// Whether an error of these commands is of the command line alone.
pub(crate) fn is_wrong_arguments(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<RankError>().is_some_and(RankError::is_wrong_arguments)
}

/// The keys that these commands look for.
pub(crate) fn keys() -> impl Iterator<Item = Key> {
    ::update::KEYS.into_iter()
}

/// Runs a command.
pub(crate) fn run(command: &DatabaseCommand) -> Result<Ending> {
    match command {
        DatabaseCommand::Rank(rank) => rank::run(rank),
        DatabaseCommand::Sql(sql) => sql::run(sql),
        DatabaseCommand::Schemas(schemas) => schemas::run(schemas),
    }
}

/// Runs a command of `kumiki data`.
pub(crate) fn listings(command: &ListingsCommand) -> Result<Ending> {
    match command {
        ListingsCommand::Instruments(args) => data_listings::instruments(args),
        ListingsCommand::Calendar(args) => data_listings::calendar(args),
        ListingsCommand::Update(args) => crate::update::run(args),
        ListingsCommand::Boards(args) => crate::update::board::run(args),
    }
}

/// Makes a combined database of daily prices and the snapshot that rankings read.
pub(crate) fn sample(args: &SampleArgs) -> Result<Ending> {
    let watch = Stopwatch::start();
    let usual = DailySample::default();
    let sample = DailySample {
        codes: args.issues.unwrap_or(usual.codes),
        days: args.days.map_or(Ok(usual.days), usize::try_from)?,
        seed: args.seed,
        first: args.from.unwrap_or(usual.first),
    };
    let made = make_daily_sample(&DataDir::new(&args.prices), &sample)?;
    println!(
        "{} rows of {} issues on {} business days, {} to {}, in {} ({:.1} s)",
        grouped(&made.rows.to_string()),
        grouped(&made.published.codes.to_string()),
        grouped(&made.published.days.to_string()),
        made.published.range.0,
        made.published.range.1,
        args.prices.display(),
        watch.elapsed().as_secs_f64()
    );
    Ok(Ending::Done)
}
