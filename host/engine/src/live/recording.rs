//! Boards and trades of the local broker on their way to the recorder. Nobody waits for the disk: what the
//! recorder cannot take is counted, and told by it to the log and to clients.

use std::path::Path;
use std::sync::{Arc, Weak};

use domain::TsNanos;
use domain::text::with_causes;
use ipc::{
    BookLevel, DepthSnapshot, EngineError, Text, TimestampSource, TradeRow, TradeSide, error_code,
};
use marketdata::board::{
    BoardRow, DepthRow, Level, Recorder, RecorderEvent, Side, SideRule, Symbol, TimeSource,
    TradePrint,
};
use venues::local_broker::MarketData;

use crate::session::Shared;
use crate::startup::StartError;

/// Nanoseconds of a millisecond.
const NANOS: u64 = 1_000_000;

/// The recorder, and what it is told of the session. When it is dropped, what it has taken is on the disk.
#[derive(Debug)]
pub(super) struct Recording {
    recorder: Recorder,
    session: Arc<str>,
}

impl Recording {
    /// Starts to record into a folder, which is made where it is missing. Clients are told when it has to
    /// stop, also those that connect after that.
    pub(super) fn start(folder: &Path, clients: Weak<Shared>) -> Result<Self, StartError> {
        let recorder = Recorder::start(folder, move |event| {
            let Some((code, message)) = error_of(&event) else { return };
            let Some(shared) = clients.upgrade() else { return };
            let message = Text::Owned(message);
            let code = code.into();
            let error = EngineError { request_id: None, code, message, strategy_id: None };
            match event {
                // What comes after them is kept.
                RecorderEvent::Dropped { .. } => shared.lock().tell_error(error),
                _ => shared.lock().tell_lasting(error),
            }
        });
        let recorder = recorder.map_err(|error| StartError::Recorder {
            folder: folder.to_owned(),
            why: with_causes(&error),
        })?;
        Ok(Self { recorder, session: Arc::from("") })
    }

    /// Records what came of a frame, in the order in which it is told.
    pub(super) fn record(&mut self, market: &MarketData<'_>) {
        // A symbol that is none is none that a file could have.
        let Some(symbol) = Symbol::new(market.symbol) else { return };
        if *self.session != *market.depth.stream_session_id {
            self.session = Arc::from(&*market.depth.stream_session_id);
        }
        // What was not taken is counted there, and told.
        let _ = self.recorder.try_record(depth_row(symbol, &self.session, market.depth));
        if let Some(trade) = market.trade {
            let received_ms = trade.received_ms.unwrap_or(market.depth.received_ms);
            let _ = self.recorder.try_record(trade_row(symbol, &self.session, trade, received_ms));
        }
    }
}

/// What clients are told of an event of the recorder, as a code and in words.
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

fn nanos(millis: u64) -> TsNanos {
    TsNanos::from_nanos(millis.saturating_mul(NANOS))
}

fn depth_row(symbol: Symbol, session: &Arc<str>, depth: &DepthSnapshot<'_>) -> BoardRow {
    let levels = |levels: &[BookLevel]| {
        let level =
            |level: &BookLevel| Level { price: level.price.units(), quantity: level.qty.units() };
        levels.iter().map(level).collect()
    };
    BoardRow::Depth(DepthRow {
        symbol,
        stream_session_id: Arc::clone(session),
        sequence_id: depth.sequence_id,
        received: nanos(depth.received_ms),
        timestamp_ms: depth.timestamp_ms,
        timestamp_source: match depth.timestamp_source {
            TimestampSource::Venue => TimeSource::Venue,
            TimestampSource::Received => TimeSource::Received,
        },
        last_price: depth.last_price.map(ipc::Decimal::units),
        bids: levels(&depth.bids),
        asks: levels(&depth.asks),
    })
}

fn trade_row(symbol: Symbol, session: &Arc<str>, trade: &TradeRow, received_ms: u64) -> BoardRow {
    BoardRow::Trade(TradePrint {
        symbol,
        stream_session_id: Arc::clone(session),
        sequence_id: trade.sequence_id,
        received: nanos(received_ms),
        timestamp_ms: trade.ts_ms,
        price: trade.price.units(),
        quantity: trade.qty.units(),
        side: match trade.side {
            TradeSide::Buy => Side::Buy,
            TradeSide::Sell => Side::Sell,
            TradeSide::Unknown => Side::Unknown,
        },
        side_rule: trade.side_rule.map(|rule| match rule {
            ipc::SideRule::AtAsk => SideRule::AtAsk,
            ipc::SideRule::AtBid => SideRule::AtBid,
            ipc::SideRule::Midpoint => SideRule::Midpoint,
            ipc::SideRule::InsideNearer => SideRule::InsideNearer,
            ipc::SideRule::Crossed => SideRule::Crossed,
            ipc::SideRule::OneSided => SideRule::OneSided,
            ipc::SideRule::AfterGap => SideRule::AfterGap,
            ipc::SideRule::Auction => SideRule::Auction,
        }),
        after_gap: trade.after_gap.unwrap_or(false),
    })
}

#[cfg(test)]
mod tests {
    use ipc::{ClientConnected, Event};
    use marketdata::board::BoardFolder;

    use super::*;
    use crate::limits::LASTING_ERRORS_MAX;
    use crate::live::feed::tests::{depth, trade};
    use crate::live::tests::{shared, told};
    use crate::outbox::Outbox;

    /// What is told is kept: when the venue ends, its boards and its trades are in the files of the day.
    #[test]
    fn boards_and_trades_are_on_the_disk_when_the_venue_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let mut recording = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap();
        let again = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap_err();
        assert_eq!(again.exit_code(), 21, "of two recorders one has the folder: {again}");
        for (session, symbol) in [("one", "7203"), ("one", "130A"), ("two", "7203"), ("two", "no")]
        {
            let (depth, trade) = (depth(symbol, session, 1), trade(2));
            recording.record(&MarketData { symbol, depth: &depth, trade: Some(&trade) });
        }
        // A symbol that is none cannot be kept.
        assert_eq!(recording.recorder.counts().taken, 6);
        drop(recording);
        let day = BoardFolder::new(folder.path()).day(nanos(5).jst_date());
        let finished = day.finished().unwrap();
        let kinds =
            finished.iter().map(|segment| (segment.depth.is_some(), segment.trades.is_some()));
        assert_eq!(kinds.collect::<Vec<_>>(), [(true, true)]);
    }

    /// A disk that takes no more, in the place of which stands a file where the day's folder is to be.
    #[test]
    fn that_nothing_is_recorded_any_more_is_told_also_to_those_who_come_later() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let join = || {
            let outbox = Arc::new(Outbox::default());
            let welcome = |_| Event::ClientConnected(ClientConnected { count: 0 });
            shared.join(&outbox, welcome).unwrap();
            outbox
        };
        let before = join();
        let mut recording = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap();
        let day = BoardFolder::new(folder.path()).day(nanos(5).jst_date());
        std::fs::write(day.path(), "in the way").unwrap();
        let depth = depth("7203", "one", 1);
        recording.record(&MarketData { symbol: "7203", depth: &depth, trade: None });
        // The recorder's thread has told when it has ended.
        drop(recording);
        let later = join();
        for (outbox, place) in [(&before, 2), (&later, 1)] {
            let told = told(outbox);
            let event = &told[place];
            assert_eq!(
                (&event["event"], &event["code"]),
                (&"EngineError".into(), &"recording_stopped".into()),
                "{told:?}"
            );
            let message = event["message"].as_str().unwrap();
            assert!(
                message.starts_with("the engine no longer records boards: cannot make "),
                "{message}"
            );
        }
    }

    #[test]
    fn a_damaged_segment_of_a_day_is_told_also_to_those_who_come_later() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let day = BoardFolder::new(folder.path()).day(nanos(5).jst_date());
        std::fs::create_dir_all(day.path()).unwrap();
        std::fs::write(day.trades(1), "no table").unwrap();
        let join = || {
            let outbox = Arc::new(Outbox::default());
            let welcome = |_| Event::ClientConnected(ClientConnected { count: 0 });
            shared.join(&outbox, welcome).unwrap();
            outbox
        };
        let before = join();
        let mut recording = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap();
        let (depth, trade) = (depth("7203", "one", 1), trade(2));
        recording.record(&MarketData { symbol: "7203", depth: &depth, trade: Some(&trade) });
        drop(recording);
        let later = join();
        for outbox in [&before, &later] {
            let told = told(outbox);
            let errors: Vec<_> =
                told.iter().filter(|event| event["event"] == "EngineError").collect();
            let [error, ..] = &*errors else { panic!("{told:?}") };
            assert_eq!(error["code"], "recording_incomplete");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("trades-000001.parquet"), "{message}");
        }
        for number in 0..=LASTING_ERRORS_MAX {
            shared.lock().tell_lasting(EngineError {
                request_id: None,
                code: error_code::RECORDING_INCOMPLETE.into(),
                message: number.to_string().into(),
                strategy_id: None,
            });
        }
        let told = told(&join());
        let messages: Vec<_> = told.iter().filter_map(|event| event["message"].as_str()).collect();
        assert_eq!((messages.len(), messages[0]), (LASTING_ERRORS_MAX, "1"));
    }

    #[test]
    fn rows_that_are_not_recorded_are_told_to_the_clients_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let join = || {
            let outbox = Arc::new(Outbox::default());
            let welcome = |_| Event::ClientConnected(ClientConnected { count: 0 });
            shared.join(&outbox, welcome).unwrap();
            outbox
        };
        let before = join();
        let mut recording = Recording::start(folder.path(), Arc::downgrade(&shared)).unwrap();
        // A number that no file holds is refused as a row is that finds the queue full.
        for _ in 0..3 {
            let depth = depth("7203", "one", u64::MAX);
            recording.record(&MarketData { symbol: "7203", depth: &depth, trade: None });
        }
        drop(recording);
        let errors = |outbox: &Arc<Outbox>| {
            let told = told(outbox).into_iter();
            told.filter(|event| event["event"] == "EngineError").collect::<Vec<_>>()
        };
        let told = errors(&before);
        assert!(told.iter().all(|error| error["code"] == "recording_incomplete"), "{told:?}");
        // The recorder may look between two of them: each is told once, whenever that is.
        let rows = told.iter().map(|error| {
            let message = error["message"].as_str().unwrap();
            let (count, _) =
                message.split_once(" rows of boards and trades are not recorded: ").unwrap();
            count.parse::<u64>().unwrap()
        });
        assert_eq!(rows.sum::<u64>(), 3, "{told:?}");
        assert!(errors(&join()).is_empty());
    }

    /// What has the name of a journal and is none stops nothing.
    #[test]
    fn a_folder_in_which_nothing_can_be_recorded_is_refused_and_a_bad_journal_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared();
        let day = BoardFolder::new(folder.path()).day(nanos(5).jst_date());
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
