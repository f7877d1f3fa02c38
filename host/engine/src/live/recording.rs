//! Boards and trades of the local broker on their way to the recorder. Nothing waits for the disk: what the
//! recorder cannot take is counted, and reported to the log and to clients.

use std::path::Path;
use std::sync::Weak;

use domain::market_update::MarketUpdate;
use domain::text::with_causes;
use ipc::error_code;
use marketdata::board::{Recorder, RecorderEvent};

use crate::present::session::engine_error;
use crate::session::Shared;
use crate::startup::StartError;

/// The recorder. When it is dropped, what it has taken is on the disk.
#[derive(Debug)]
pub(super) struct Recording {
    recorder: Recorder,
}

impl Recording {
    /// Starts to record into a folder, which is made where it is missing. Clients get an error when it has to
    /// stop, also those that connect after that.
    pub(super) fn start(folder: &Path, clients: Weak<Shared>) -> Result<Self, StartError> {
        let recorder = Recorder::start(folder, move |event| {
            let Some((code, message)) = error_of(&event) else { return };
            let Some(shared) = clients.upgrade() else { return };
            let error = engine_error(None, code, message, None);
            match event {
                // Rows that come after them are recorded.
                RecorderEvent::Dropped { .. } => shared.lock().hub.broadcast(&error),
                _ => shared.lock().broadcast_lasting(error),
            }
        });
        let recorder = recorder.map_err(|error| StartError::Recorder {
            folder: folder.to_owned(),
            why: with_causes(&error),
        })?;
        Ok(Self { recorder })
    }

    /// Records what came of a frame; what was not taken is counted there, and reported.
    pub(super) fn record(&self, update: &MarketUpdate) {
        self.recorder.record(update);
    }
}

/// The error that clients get for an event of the recorder, as a code and in words.
fn error_of(event: &RecorderEvent) -> Option<(&'static str, String)> {
    match event {
        RecorderEvent::Stopped { why, .. } => {
            let message = format!(
                "the engine no longer records boards: {why}; correct that and start the engine \
                 again"
            );
            Some((error_code::RECORDING_STOPPED, message))
        }
        RecorderEvent::TradesFile(report) => {
            report.lacks().map(|lacks| (error_code::RECORDING_INCOMPLETE, lacks))
        }
        RecorderEvent::TradesFileFailed { date, why } => {
            let message = format!(
                "cannot write the file with the trades of {date}: {why}; the next start tries again"
            );
            Some((error_code::RECORDING_INCOMPLETE, message))
        }
        RecorderEvent::Dropped { rows } => {
            let message = format!(
                "{rows} rows of boards and trades are not recorded: the disk of record_dir is too \
                 slow, or the rows are too large; see the log and check the disk"
            );
            Some((error_code::RECORDING_INCOMPLETE, message))
        }
        // Nothing is lost by them.
        RecorderEvent::Recovered(_)
        | RecorderEvent::SetAside { .. }
        | RecorderEvent::Sealed(_)
        | RecorderEvent::TradesFileLate { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::TsNanos;
    use ipc::{ClientConnected, Event};
    use marketdata::board::BoardFolder;

    use super::*;
    use crate::limits::LASTING_ERRORS_MAX;
    use crate::live::feed::tests::update;
    use crate::live::tests::{events, shared};
    use crate::outbox::Outbox;

    /// When the venue ends, all of its boards and trades are in the files of the day.
    #[test]
    fn boards_and_trades_are_on_the_disk_when_the_venue_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let recording = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap();
        let again = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap_err();
        assert_eq!(again.exit_code(), 21, "of two recorders one has the folder: {again}");
        for (session, symbol) in [("one", "7203"), ("one", "130A"), ("two", "7203")] {
            recording.record(&update(symbol, session, 1, true));
        }
        assert_eq!(recording.recorder.counts().taken, 6);
        drop(recording);
        let day = BoardFolder::new(folder.path()).day(TsNanos::from_nanos(5_000_000).jst_date());
        let finished = day.finished().unwrap();
        let kinds =
            finished.iter().map(|segment| (segment.depth.is_some(), segment.trades.is_some()));
        assert_eq!(kinds.collect::<Vec<_>>(), [(true, true)]);
    }

    /// A disk that takes no more, in the place of which stands a file where the day's folder is to be.
    #[test]
    fn the_end_of_recording_is_sent_also_to_clients_that_come_later() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let join = || {
            let outbox = Arc::new(Outbox::default());
            let welcome = |_| Event::ClientConnected(ClientConnected { count: 0 });
            shared.join(&outbox, None, welcome).unwrap();
            outbox
        };
        let before = join();
        let recording = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap();
        let day = BoardFolder::new(folder.path()).day(TsNanos::from_nanos(5_000_000).jst_date());
        std::fs::write(day.path(), "in the way").unwrap();
        recording.record(&update("7203", "one", 1, false));
        // The recorder's thread has sent its events when it has ended.
        drop(recording);
        let later = join();
        for (outbox, place) in [(&before, 2), (&later, 1)] {
            let events = events(outbox);
            let event = &events[place];
            assert_eq!(
                (&event["event"], &event["code"]),
                (&"EngineError".into(), &"recording_stopped".into()),
                "{events:?}"
            );
            let message = event["message"].as_str().unwrap();
            assert!(
                message.starts_with("the engine no longer records boards: cannot make "),
                "{message}"
            );
        }
    }

    #[test]
    fn a_damaged_segment_of_a_day_is_sent_also_to_clients_that_come_later() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let day = BoardFolder::new(folder.path()).day(TsNanos::from_nanos(5_000_000).jst_date());
        std::fs::create_dir_all(day.path()).unwrap();
        std::fs::write(day.trades(1), "no table").unwrap();
        let join = || {
            let outbox = Arc::new(Outbox::default());
            let welcome = |_| Event::ClientConnected(ClientConnected { count: 0 });
            shared.join(&outbox, None, welcome).unwrap();
            outbox
        };
        let before = join();
        let recording = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap();
        recording.record(&update("7203", "one", 1, true));
        drop(recording);
        let later = join();
        for outbox in [&before, &later] {
            let events = events(outbox);
            let errors: Vec<_> =
                events.iter().filter(|event| event["event"] == "EngineError").collect();
            let [error, ..] = &*errors else { panic!("{events:?}") };
            assert_eq!(error["code"], "recording_incomplete");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("trades-000001.parquet"), "{message}");
        }
        for number in 0..=LASTING_ERRORS_MAX {
            let code = error_code::RECORDING_INCOMPLETE;
            shared.lock().broadcast_lasting(engine_error(None, code, number.to_string(), None));
        }
        let events = events(&join());
        let messages: Vec<_> =
            events.iter().filter_map(|event| event["message"].as_str()).collect();
        assert_eq!((messages.len(), messages[0]), (LASTING_ERRORS_MAX, "1"));
    }

    #[test]
    fn lost_rows_are_sent_to_the_clients_that_are_connected() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let join = || {
            let outbox = Arc::new(Outbox::default());
            let welcome = |_| Event::ClientConnected(ClientConnected { count: 0 });
            shared.join(&outbox, None, welcome).unwrap();
            outbox
        };
        let before = join();
        let recording = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap();
        // A number that no file holds is refused as a row is that finds the queue full.
        for _ in 0..3 {
            recording.record(&update("7203", "one", u64::MAX, false));
        }
        drop(recording);
        let errors = |outbox: &Arc<Outbox>| {
            events(outbox)
                .into_iter()
                .filter(|event| event["event"] == "EngineError")
                .collect::<Vec<_>>()
        };
        let sent = errors(&before);
        assert!(sent.iter().all(|error| error["code"] == "recording_incomplete"), "{sent:?}");
        // The recorder may report between two of them: each counts once.
        let rows = sent.iter().map(|error| {
            let message = error["message"].as_str().unwrap();
            let (count, _) =
                message.split_once(" rows of boards and trades are not recorded: ").unwrap();
            count.parse::<u64>().unwrap()
        });
        assert_eq!(rows.sum::<u64>(), 3, "{sent:?}");
        assert!(errors(&join()).is_empty());
    }

    /// What has the name of a journal and is none stops nothing.
    #[test]
    fn a_folder_in_which_nothing_can_be_recorded_is_refused_and_a_bad_journal_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let day = BoardFolder::new(folder.path()).day(TsNanos::from_nanos(5_000_000).jst_date());
        std::fs::create_dir_all(day.journal(1)).unwrap();
        drop(Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap());
        std::fs::remove_dir_all(folder.path().join("board")).unwrap();
        std::fs::write(folder.path().join("board"), "in the way").unwrap();
        let error = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap_err();
        assert_eq!(error.exit_code(), 21);
        let (error, path) = (error.to_string(), folder.path().display().to_string());
        assert!(error.starts_with(&format!("cannot record boards in {path}: ")));
        assert!(error.contains("cannot make"), "{error}");
        assert!(error.contains("name another folder with record_dir"), "{error}");
    }
}
