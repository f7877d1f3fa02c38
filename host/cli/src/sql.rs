//! `kumiki sql`: one statement, or a prompt.

mod folders;
mod left_out;
mod prompt;
mod stored;

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use domain::csv_cell::guarded;
use pricestore::DataDir;
use ranking::CancelToken;
use ranking::console::{Console, ConsoleError, ConsoleOptions, SQL_BYTES_MAX, Table as Answer};

use crate::Ending;
use crate::args::{SqlArgs, SqlFormat};
use crate::interrupt::Interrupt;
use crate::rank::{cores, is_broken_pipe};
use crate::table::{Align, Column, Table};
use left_out::LeftOut;

/// Runs the command.
pub(crate) fn run(args: &SqlArgs) -> Result<Ending> {
    let mut left_out = LeftOut::default();
    let stored = stored::views(args, &mut left_out);
    // Where nothing is left, that says why.
    left_out.tell();
    let options = ConsoleOptions {
        threads: args.threads.unwrap_or_else(cores),
        memory_bytes: args.memory.saturating_mul(1 << 20),
        rows: usize::try_from(args.rows)?,
        stored: stored?,
    };
    let console = Console::open(&DataDir::new(&args.data.data_dir), &options)?;
    let sql = match &args.sql {
        Some(sql) => sql.clone(),
        None if io::stdin().is_terminal() => return prompt::run(&console, args.format),
        None => from_stdin()?,
    };
    let running = Running::default();
    let stop = running.clone();
    let _interrupt = Interrupt::listen_and(move || stop.cancel())?;
    match console.query(&sql, &running.next()) {
        Ok(answer) => match show(&answer, args.format) {
            Err(error) if is_broken_pipe(&error) => Ok(Ending::Done),
            other => other.map(|()| Ending::Done),
        },
        Err(ConsoleError::Cancelled) => {
            eprintln!("interrupted");
            Ok(Ending::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}

/// The token of the statement that runs now; Ctrl-C takes it from another thread.
#[derive(Debug, Clone, Default)]
struct Running(Arc<Mutex<CancelToken>>);

impl Running {
    /// A fresh token, for the next statement.
    fn next(&self) -> CancelToken {
        let token = CancelToken::new();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        token
    }

    fn cancel(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }
}

fn from_stdin() -> Result<String> {
    let mut sql = String::new();
    let most = u64::try_from(SQL_BYTES_MAX)? + 1;
    io::stdin().lock().take(most).read_to_string(&mut sql).context("cannot read standard input")?;
    if sql.len() > SQL_BYTES_MAX {
        bail!("standard input holds more than {SQL_BYTES_MAX} bytes");
    }
    Ok(sql)
}

/// Prints an answer.
fn show(answer: &Answer, format: SqlFormat) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format {
        SqlFormat::Table => show_table(answer, &mut out)?,
        SqlFormat::Csv => show_csv(answer, &mut out)?,
        SqlFormat::Jsonl => show_json_lines(answer, &mut out)?,
    }
    out.flush()?;
    if answer.cut {
        let rows = answer.rows.len();
        eprintln!("note: there are more than these {rows} rows; --rows N shows more");
    }
    Ok(())
}

fn show_table(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let columns = answer.columns.iter().map(|column| {
        let align = if column.numeric { Align::Right } else { Align::Left };
        Column::new(column.name.clone(), align)
    });
    let is_plan = answer.columns.iter().any(|column| column.name == "explain_value");
    if is_plan {
        // A plan is a drawing of many lines.
        let mut lines = answer.rows.iter().filter_map(|row| row.last().cloned().flatten());
        return lines.try_for_each(|text| writeln!(out, "{text}"));
    }
    let mut table = Table::new(columns.collect());
    for row in &answer.rows {
        table.row(row.iter().map(|cell| cell.clone().unwrap_or_else(|| "-".to_owned())).collect());
    }
    table.write(crate::rank::terminal_width(), out)
}

fn show_csv(answer: &Answer, out: &mut impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(answer.columns.iter().map(|column| column.name.as_str()))?;
    for row in &answer.rows {
        let cells = row.iter().zip(&answer.columns).map(|(cell, column)| {
            let text = cell.as_deref().unwrap_or_default();
            if column.numeric { text.into() } else { guarded(text) }
        });
        writer.write_record(cells.map(Cow::into_owned))?;
    }
    writer.flush()?;
    Ok(())
}

fn show_json_lines(answer: &Answer, out: &mut impl Write) -> Result<()> {
    for row in &answer.rows {
        let cells = row.iter().zip(&answer.columns).map(|(cell, column)| {
            let value = match cell {
                None => serde_json::Value::Null,
                // A number keeps its digits; what JSON cannot hold stays text.
                Some(text) if column.numeric => {
                    serde_json::from_str(text).unwrap_or_else(|_| text.clone().into())
                }
                Some(text) => text.clone().into(),
            };
            (column.name.clone(), value)
        });
        serde_json::to_writer(&mut *out, &cells.collect::<serde_json::Map<_, _>>())?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
