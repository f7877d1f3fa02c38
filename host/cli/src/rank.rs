//! `kumiki rank`: a ranking, shown or written to a file.

mod formulas;
mod open_files;
mod serve;
mod show;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use atomic_file::{AtomicFile, folder_of};
use domain::JstDate;
use domain::clock::wall_now;
use pricestore::DataDir;
use pricestore::generation::publish_generation_of;
use ranking::{
    CancelToken, EngineOptions, Explanation, ListedInfo, RankEngine, RankError, RankQuery, Ranking,
    SnapshotInfo, SortBy, export,
};

use crate::args::{PublishArgs, QueryArgs, RankCommand, RowFormat};
use crate::interrupt::Interrupt;
use crate::output;
use crate::terminal::{grouped, terminal_width};
use crate::{Ending, wrong_arguments};

pub(crate) use serve::service_sdl;

/// Runs the command.
pub(crate) fn run(command: &RankCommand) -> Result<Ending> {
    match command {
        RankCommand::Query(query) => self::query(query),
        RankCommand::Serve(serve) => serve::run(serve),
        RankCommand::Publish(publish) => self::publish(publish),
        RankCommand::Formulas(formulas) => formulas::run(formulas),
    }
}

/// Makes a snapshot.
fn publish(args: &PublishArgs) -> Result<Ending> {
    let data = DataDir::new(&args.data.prices);
    data.refuse_replica()?;
    let published = pricestore::publish(&data)?;
    publish_generation_of(&data, &published)?;
    println!(
        "snapshot {}: {} issues, {} business days, {} to {}",
        published.number,
        grouped(&published.codes.to_string()),
        grouped(&published.days.to_string()),
        published.range.0,
        published.range.1
    );
    Ok(Ending::Done)
}

fn query(args: &QueryArgs) -> Result<Ending> {
    let format = format(args)?;
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        return Err(wrong_arguments(format!(
            "--from {from} is after --to {to}; give an earlier --from"
        )));
    }
    let cancel = CancelToken::new();
    let token = cancel.clone();
    let _interrupt = Interrupt::listen_and(move || token.cancel())?;
    let threads = args.jobs.unwrap_or_else(cores);
    let options = EngineOptions { threads, timeout: args.timeout, ..EngineOptions::single_query() };
    let engine = open(&args.data.prices, options)?;
    let to = args.to.unwrap_or(engine.snapshot().last);
    let sort_by = match sort_by(args, &cancel) {
        Err(error) if matches!(error.downcast_ref(), Some(RankError::Cancelled)) => {
            return Ok(interrupted());
        }
        found => found?,
    };
    let query = RankQuery {
        from: args.from.unwrap_or(to),
        to,
        sort_by,
        order: args.order,
        limit: args.limit,
        codes: (!args.codes.is_empty()).then(|| args.codes.clone()),
        adjusted: args.adjusted,
    };
    if query.from > query.to {
        bail!(
            "--from {} is after the last day of the data, {}; give an earlier day",
            query.from,
            query.to
        );
    }
    let done = match &query.sort_by {
        SortBy::Module(bound) if args.explain => engine
            .timed(&query, &cancel)
            .map(|(ranking, elapsed)| formulas::explain(&ranking, elapsed, bound, query.adjusted)),
        SortBy::Formula(_) if args.explain => {
            engine.explain(&query, &cancel).map(|found| explain(&found))
        }
        _ => {
            let ranking = engine.rank(&query, &cancel);
            ranking.map(|ranking| {
                let answer = Answer { ranking, listed: engine.listed(), query: &query };
                write(&answer, format, args.out.as_deref())
            })
        }
    };
    match done {
        Ok(written) => {
            let read =
                Read { from: engine.first_day_read(&query), asked: query.from, to: query.to };
            read.tell_empty_days(&engine);
            if args.to.is_none_or(|to| to > engine.snapshot().last) {
                tell_days_behind(&engine);
            }
            read.tell_doubts(&engine);
            written
        }
        Err(RankError::Cancelled) => Ok(interrupted()),
        Err(error) => Err(for_operator(error)),
    }
}

/// Opens the engine over a data folder.
fn open(data_dir: &Path, options: EngineOptions) -> Result<RankEngine> {
    RankEngine::open(data_dir, options).map_err(|error| {
        let folder = data_dir.display();
        let place = match error {
            RankError::Internal { .. } => Some(format!("{folder} cannot be used")),
            RankError::NoData(_) if !data_dir.is_dir() => {
                Some(format!("there is no folder {folder}"))
            }
            RankError::NoData(_) => Some(folder.to_string()),
            _ => None,
        };
        let error = for_operator(error);
        match place {
            Some(place) => error.context(place),
            None => error,
        }
    })
}

/// An error for the terminal of the one who runs the program: with its cause, which clients of a service
/// are not told.
pub(crate) fn for_operator(error: RankError) -> anyhow::Error {
    let text = error.for_operator();
    match error {
        RankError::Internal { source, .. } => anyhow!(source).context(text),
        other => other.into(),
    }
}

/// The first of some days, for people.
fn named(days: &[String]) -> String {
    const NAMED_MAX: usize = 5;
    let more = if days.len() > NAMED_MAX { ", ..." } else { "" };
    format!("{}{more}", days[..days.len().min(NAMED_MAX)].join(", "))
}

/// Says how many business days are missing after the last one, where an update job made the data: who asks
/// for the newest ranking must know that it is an old one.
fn tell_days_behind(engine: &RankEngine) {
    let last = engine.snapshot().last;
    let today = wall_now().jst_date();
    let behind = engine.dataset().map_or(0, |dataset| dataset.days_behind(last, today));
    if behind > 0 {
        eprintln!(
            "note: {} business day(s) are missing after the last one, {last}; `kumiki data update` gets them",
            grouped(&behind.to_string())
        );
    }
}

/// The days that an answer was made from.
struct Read {
    /// The first one that a lag reads.
    from: JstDate,
    /// The first one that was asked for.
    asked: JstDate,
    to: JstDate,
}

impl Read {
    fn has(&self, date: &str) -> bool {
        (self.from.to_string().as_str()..=self.to.to_string().as_str()).contains(&date)
    }

    /// Writes a note on days, if there are any, made of how many, of which period, and the first of them.
    fn tell(&self, days: &[String], note: impl FnOnce(&str, &str, &str) -> String) {
        if days.is_empty() {
            return;
        }
        let read = self.from < self.asked;
        let of = if read { "of this period or read by its lags" } else { "of this period" };
        eprintln!("note: {}", note(&grouped(&days.len().to_string()), of, &named(days)));
    }

    /// Says of which business days there is nothing: an answer has no rows of them, and lags count them.
    fn tell_empty_days(&self, engine: &RankEngine) {
        let days: Vec<String> =
            engine.empty_days(self.from, self.to).iter().map(ToString::to_string).collect();
        self.tell(&days, |count, of, named| {
            format!("no prices are stored of {count} business day(s) {of}: {named}")
        });
    }

    /// Names the days that the update job says need a look.
    fn tell_doubts(&self, engine: &RankEngine) {
        let doubts = engine.dataset().map(|dataset| dataset.doubts).unwrap_or_default();
        let mut days: Vec<String> = doubts.into_iter().map(|doubt| doubt.date).collect();
        days.retain(|date| self.has(date));
        days.sort_unstable();
        days.dedup();
        self.tell(&days, |count, of, named| {
            format!(
                "{count} day(s) {of} need a look: {named}; the last report of `kumiki data update` says why"
            )
        });
    }
}

fn interrupted() -> Ending {
    eprintln!("interrupted; nothing was written");
    Ending::Interrupted
}

/// The formula, or the module with its parameters.
fn sort_by(args: &QueryArgs, cancel: &CancelToken) -> Result<SortBy> {
    match &args.formula {
        None => Ok(args.sort_by.clone().into()),
        Some(name) => {
            let registry =
                formulas::registry(&args.registry, args.limits.of_formula()?, &args.data.prices)?;
            let registry = registry.with_cancel(cancel.clone());
            Ok(registry.bind(name, &args.params)?.into())
        }
    }
}

/// What a snapshot holds, for people.
pub(crate) fn snapshot_line(snapshot: &SnapshotInfo) -> String {
    format!(
        "snapshot {} of rankings: {} issues, {} business days, {} to {}",
        snapshot.number,
        grouped(&snapshot.codes.to_string()),
        grouped(&snapshot.days.to_string()),
        snapshot.first,
        snapshot.last
    )
}

/// As many threads as the machine has cores.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// What was asked for, else what the file's ending says.
fn format(args: &QueryArgs) -> Result<RowFormat> {
    let ending = args.out.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
    let format = match (args.format, ending) {
        (Some(format), _) => format,
        (None, Some("csv")) => RowFormat::Csv,
        (None, Some("json")) => RowFormat::Json,
        (None, Some("jsonl" | "ndjson")) => RowFormat::Jsonl,
        (None, Some("parquet")) => RowFormat::Parquet,
        (None, Some("arrow" | "arrows")) => RowFormat::Arrow,
        (None, Some("txt") | None) => RowFormat::Table,
        (None, Some(other)) => {
            let text = format!("--out ends with .{other}; say what it is with --format");
            return Err(wrong_arguments(text));
        }
    };
    let to_terminal = args.out.is_none() && io::stdout().is_terminal();
    match format {
        RowFormat::Parquet if args.out.is_none() => {
            Err(wrong_arguments("Parquet is a file; give one with --out"))
        }
        RowFormat::Arrow if to_terminal => {
            Err(wrong_arguments("Arrow is not for terminals; give --out FILE"))
        }
        _ => Ok(format),
    }
}

fn explain(found: &Explanation) -> Result<Ending> {
    let adjusted = if found.adjusted { "\n  earlier values adjusted for splits" } else { "" };
    println!("formula\n  {}{adjusted}\n\ntree", found.formula);
    for line in found.tree.lines() {
        println!("  {line}");
    }
    println!("\nstatement of reference\n{}\n\nplan\n{}", found.sql, found.plan.trim_end());
    println!(
        "\nrows  {}\ntime  {:.3} ms by the kernel, which answers queries\n      {:.3} ms by the statement",
        grouped(&found.rows.to_string()),
        found.elapsed.as_secs_f64() * 1e3,
        found.elapsed_sql.as_secs_f64() * 1e3
    );
    if found.agrees {
        println!("same  both gave the same rows, bit for bit");
        return Ok(Ending::Done);
    }
    output::failure(
        "the kernel and the statement gave different rows; please report the formula and the data",
    );
    Ok(Ending::Problems)
}

/// What was found, and what was asked.
struct Answer<'a> {
    ranking: Ranking,
    listed: Arc<ListedInfo>,
    query: &'a RankQuery,
}

fn write(answer: &Answer<'_>, format: RowFormat, out: Option<&Path>) -> Result<Ending> {
    let ranking = &answer.ranking;
    let Some(path) = out else {
        let mut out = BufWriter::new(io::stdout().lock());
        let width = terminal_width();
        let written = write_to(answer, format, width, &mut out);
        return match written.and_then(|()| Ok(out.flush()?)) {
            Err(error) if is_broken_pipe(&error) => Ok(Ending::Done),
            other => other.map(|()| Ending::Done),
        };
    };
    // The file is whole or not there.
    let unwritable = || format!("cannot write {}", path.display());
    let file = AtomicFile::create_in(folder_of(path)).with_context(unwritable)?;
    if format == RowFormat::Parquet {
        let file = file.close();
        export::write_parquet(ranking, &answer.listed, file.unfinished_path())?;
        file.commit(path).with_context(unwritable)?;
    } else {
        let mut out = BufWriter::new(file);
        write_to(answer, format, None, &mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.commit(path).with_context(unwritable)?;
    }
    eprintln!("{} rows in {}", grouped(&ranking.rows.len().to_string()), path.display());
    Ok(Ending::Done)
}

fn write_to(
    answer: &Answer<'_>,
    format: RowFormat,
    width: Option<usize>,
    out: &mut impl Write,
) -> Result<()> {
    let Answer { ranking, listed, query } = answer;
    match format {
        RowFormat::Table => show::table(ranking, listed, query, width, out)?,
        RowFormat::Csv => export::write_csv(ranking, listed, out)?,
        RowFormat::Json => export::write_json(ranking, listed, out)?,
        RowFormat::Jsonl => export::write_jsonl(ranking, listed, out)?,
        RowFormat::Arrow => export::write_arrow(ranking, listed, out)?,
        RowFormat::Parquet => bail!("Parquet is a file; give one with --out"),
    }
    Ok(())
}

/// Whether the reader of our output went away, as `head` does.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
