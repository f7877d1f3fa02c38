//! `commands.jsonl`: what clients did to a run, written while it goes on and read to do the same again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use domain::{InstrumentId, InstrumentIx, OrderCommand, ReasonCode, Rejection, ShortText};
use ipc::{CommandLine, CommandPosition, LoggedCommand, OrderNames};

use super::cells::Names;
use super::files::ReadError;
use super::whole_lines::{HeldLines, WholeLines};
use crate::sink::Record;

/// Bytes of a line, its end included.
const LINE_BYTES_MAX: u64 = 65_536;
/// Commands of a run.
pub const COMMANDS_MAX: usize = 4_000_000;

/// Writes the file; it is made with the first command, so most runs have none.
#[derive(Debug)]
pub(crate) struct CommandLog {
    path: PathBuf,
    lines: Option<HeldLines<WholeLines>>,
}

impl CommandLog {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path, lines: None }
    }

    /// The same for a run in which people can do something: its file is there also when they do not.
    pub(crate) fn begin(self) -> Self {
        let lines = File::create(&self.path).map(|file| HeldLines::at_once(WholeLines::new(file)));
        // Where it cannot be made, the first command tells why.
        Self { lines: lines.ok(), ..self }
    }

    /// Writes the line of a record, if it has one.
    pub(crate) fn take(&mut self, record: Record<'_>, names: &Names) -> io::Result<()> {
        let Record::ClientCommand(command) = record else { return Ok(()) };
        let lines = match &mut self.lines {
            Some(lines) => lines,
            none => none.insert(HeldLines::at_once(WholeLines::new(File::create(&self.path)?))),
        };
        // What people did is there also when this process is killed.
        lines.json(&CommandLine {
            rows_done: command.rows_done,
            at: match command.is_before_row {
                true => CommandPosition::Row,
                false => CommandPosition::DayEnd,
            },
            ts_event_ms: command.ts_event.millis(),
            command: LoggedCommand::new(command.command, |instrument| names.of(instrument)),
        })
    }

    /// The last command has come to nothing.
    pub(crate) fn take_back(&mut self) {
        if let Some(lines) = &mut self.lines {
            lines.out.take_back();
        }
    }
}

/// A command that was read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCommand {
    /// Rows (trades or bars) that the strategy had seen.
    pub rows_done: u64,
    /// Whether a row came next; else it was the end of a day.
    pub is_before_row: bool,
    /// What was done; none when the run was ended.
    pub command: Option<OrderCommand>,
}

/// Reads the commands of a run over `instruments`.
///
/// # Errors
/// [`ReadError`] with the first line that is no command, or names an instrument that is not traded.
pub fn read(path: &Path, instruments: &[InstrumentId]) -> Result<Vec<RecordedCommand>, ReadError> {
    let unreadable = |source| ReadError::Read { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let names = Instruments(instruments.iter().map(ToString::to_string).collect());
    let mut commands = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut file).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(unreadable)? == 0 {
            break;
        }
        let wrong = |expected: String| ReadError::Content {
            path: path.to_owned(),
            line: number,
            expected,
            found: String::from_utf8_lossy(&line).chars().take(80).collect(),
        };
        if commands.len() == COMMANDS_MAX {
            return Err(wrong(format!("at most {COMMANDS_MAX} commands")));
        }
        let read: CommandLine = serde_json::from_slice(&line)
            .map_err(|why| wrong(format!("a command of at most {LINE_BYTES_MAX} bytes ({why})")))?;
        let command = read.command.order_command(&names);
        commands.push(RecordedCommand {
            rows_done: read.rows_done,
            is_before_row: read.at == CommandPosition::Row,
            command: command.map_err(|why| wrong(format!("an order of this run ({why})")))?,
        });
    }
    Ok(commands)
}

/// The instruments of a run by their ids.
struct Instruments(Vec<String>);

impl OrderNames for Instruments {
    fn instrument(&self, instrument_id: &str) -> Option<InstrumentIx> {
        let index = self.0.iter().position(|known| known == instrument_id)?;
        // A run has at most 4 instruments.
        Some(InstrumentIx(index as u16))
    }

    fn client_order_id(&self, _: &str) -> Result<ShortText, Rejection> {
        let text = "VENUE_ORDER_ID: recorded commands name orders by the caller's id";
        Err(Rejection::new(ReasonCode::ValidationError, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_command_is_told_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("commands.jsonl");
        let instruments = ["7203.TSE".parse().unwrap()];
        let told = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path, &instruments).unwrap_err().to_string()
        };
        let stop = r#"{"rows_done":3,"at":"row","ts_event_ms":1,"command":{"op":"StopEngine"}}"#;
        assert!(told(&format!("{stop}\nnothing\n")).contains("line 2"), "{}", told("x"));
        let other = r#"{"rows_done":3,"at":"row","ts_event_ms":1,"command":{"op":"CancelAllOrders","instrument_id":"9984.TSE","order_side":null}}"#;
        assert!(told(other).contains("`9984.TSE` is unknown here"), "{}", told(other));
        let long = " ".repeat(LINE_BYTES_MAX as usize) + stop;
        assert!(told(&long).contains("at most 65536 bytes"));
        std::fs::write(&path, stop).unwrap();
        let stop = RecordedCommand { rows_done: 3, is_before_row: true, command: None };
        assert_eq!(read(&path, &instruments).unwrap(), [stop]);
    }
}
