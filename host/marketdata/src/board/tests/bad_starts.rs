//! What a recorder finds when it starts: journals that cannot be read, and folders that take nothing.

use super::*;
use crate::limits::SET_ASIDE_MAX;

/// A journal of 20 rows and its bytes.
fn journal(day: &DayFolder, segment: u32) -> Vec<u8> {
    fs::create_dir_all(day.path()).unwrap();
    let mut journal = Journal::create(day.journal(segment)).unwrap();
    for number in 1..=20 {
        journal.push(&row(number));
        journal.sync().unwrap();
    }
    fs::read(day.journal(segment)).unwrap()
}

/// Records a row behind what is there, and gives what was told of that.
fn record_behind(folder: &Path, number: u64) -> Vec<RecorderEvent> {
    let (events, told) = channel();
    let tell = move |event| drop(events.send(event));
    let recorder = Recorder::start_with(folder, SHORT, 64, tell).unwrap();
    recorder.try_record(row(number)).unwrap();
    let counts = recorder.stop();
    assert_eq!((counts.taken, counts.kept), (1, 1));
    told.iter().collect()
}

#[test]
fn a_journal_that_cannot_be_read_is_set_aside_and_the_recording_goes_on() {
    type Break = fn(&Path, &[u8]);
    let zeros: Break = |path, whole| {
        let mut bytes = whole.to_vec();
        let block = bytes.len().min(4_096);
        bytes[..block].fill(0);
        fs::write(path, bytes).unwrap();
    };
    let flipped: Break = |path, whole| {
        let mut bytes = whole.to_vec();
        bytes[3] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let foreign: Break = |path, _| fs::write(path, "notes of the user").unwrap();
    let is_folder: Break = |path, _| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
        fs::write(path.join("theirs"), "theirs").unwrap();
    };
    for (what, spoil) in
        [("zeros", zeros), ("flipped", flipped), ("foreign", foreign), ("folder", is_folder)]
    {
        let folder = tempfile::tempdir().unwrap();
        let day = BoardFolder::new(folder.path()).day(date());
        let whole = journal(&day, 3);
        journal(&day, 2);
        spoil(&day.journal(3), &whole);
        let spoilt = fs::read(day.journal(3)).ok();
        let told = record_behind(folder.path(), 30);
        let aside = day.path().join("000003.journal.unread");
        let expected = |event: &RecorderEvent| matches!(event, RecorderEvent::SetAside { aside: at, .. } if *at == aside);
        assert_eq!(told.iter().filter(|event| expected(event)).count(), 1, "{what}: {told:?}");
        assert_eq!(fs::read(&aside).ok(), spoilt, "{what}: it is as it was");
        assert_eq!(aside.join("theirs").exists(), what == "folder");
        // The other journal is finished, and what came is in a segment of its own.
        assert!(stored(folder.path()).contains_key(&30), "{what}");
        assert_eq!(stored(folder.path()).len(), 21, "{what}");
        let numbers = || {
            let finished = day.finished().unwrap().into_iter();
            finished.map(|one| one.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(), [2, 4], "{what}");
        // Once it can be read and has its name again, its rows are there too.
        fs::rename(&aside, folder.path().join("away")).unwrap();
        fs::write(day.journal(3), whole).unwrap();
        Writer::open(folder.path()).unwrap().recover(&mut |_| {}).unwrap();
        assert_eq!(numbers(), [2, 3, 4], "{what}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_or_a_link_to_nothing_is_no_journal_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let day = BoardFolder::new(folder.path()).day(date());
    fs::create_dir_all(day.path()).unwrap();
    assert!(Command::new("mkfifo").arg(day.journal(1)).status().unwrap().success());
    std::os::unix::fs::symlink(folder.path().join("gone"), day.journal(2)).unwrap();
    let told = record_behind(folder.path(), 1);
    let why: Vec<_> = told
        .iter()
        .filter_map(|event| match event {
            RecorderEvent::SetAside { why, .. } => Some(why.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(why.len(), 2, "{told:?}");
    assert!(why[0].contains("it is no file") && why[1].contains("cannot read"), "{why:?}");
    assert_eq!(stored(folder.path()).len(), 1);
}

/// A pipe would be waited for.
#[cfg(unix)]
#[test]
fn a_pipe_with_the_name_of_a_segment_is_a_damaged_one_and_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let day = BoardFolder::new(folder.path()).day(date());
    fs::create_dir_all(day.path()).unwrap();
    for path in [day.trades(1), day.depth(1)] {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    let told = record_behind(folder.path(), 30);
    let lacks = told.iter().find_map(|event| match event {
        RecorderEvent::TradesFile(report) => report.lacks(),
        _ => None,
    });
    assert!(lacks.as_ref().is_some_and(|lacks| lacks.contains("it is no file")), "{told:?}");
    let error = read_depth(&day.depth(1), |_| Ok::<(), ParquetError>(())).unwrap_err();
    assert!(matches!(error, ParquetError::Damaged { .. }), "{error}");
    assert_eq!(day.list().unwrap().last(), 2);
}

#[cfg(unix)]
#[test]
fn a_day_whose_folder_is_a_link_is_listed_and_finished() {
    let folder = tempfile::tempdir().unwrap();
    let day = BoardFolder::new(folder.path()).day(date());
    journal(&day, 1);
    let other = folder.path().join("another disk");
    fs::rename(day.path(), &other).unwrap();
    std::os::unix::fs::symlink(&other, day.path()).unwrap();
    let nowhere = folder.path().join("board/20260106");
    std::os::unix::fs::symlink(folder.path().join("gone"), nowhere).unwrap();
    Writer::open(folder.path()).unwrap().recover(&mut |_| {}).unwrap();
    assert_eq!(stored(folder.path()).len(), 20);
    assert!(BoardFolder::new(folder.path()).trades_file(date()).exists());
}

#[test]
fn a_journal_with_a_damaged_block_is_kept_beside_the_files_of_its_other_rows() {
    let folder = tempfile::tempdir().unwrap();
    let day = BoardFolder::new(folder.path()).day(date());
    let bytes = journal(&day, 1);
    let places = [bytes.len() / 2, bytes.len() - 1];
    for place in places {
        let folder = tempfile::tempdir().unwrap();
        let day = BoardFolder::new(folder.path()).day(date());
        let mut bytes = journal(&day, 1);
        bytes[place] ^= 1;
        fs::write(day.journal(1), &bytes).unwrap();
        let told = record_behind(folder.path(), 30);
        assert!(
            matches!(&told[0], RecorderEvent::Recovered(report) if report.journal.rows == 19),
            "{told:?}"
        );
        assert_eq!(stored(folder.path()).len(), 20);
        assert_eq!(fs::read(day.path().join("000001.journal.unread")).unwrap(), bytes);
    }
}

#[test]
fn names_of_what_is_set_aside_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let day = BoardFolder::new(folder.path()).day(date());
    fs::create_dir_all(day.path()).unwrap();
    for number in 1..=SET_ASIDE_MAX {
        fs::write(day.journal(1), number.to_string()).unwrap();
        Writer::open(folder.path()).unwrap().recover(&mut |_| {}).unwrap();
    }
    assert_eq!(fs::read(day.path().join("000001.journal.unread")).unwrap(), b"1");
    assert_eq!(fs::read(day.path().join("000001.journal.unread-99")).unwrap(), b"99");
    assert_eq!(day.list().unwrap().last(), 1);
    fs::write(day.journal(1), "one more").unwrap();
    let error = Recorder::start(folder.path(), no_events).unwrap_err().to_string();
    assert!(error.ends_with("99 files of this name are set aside; move them away"), "{error}");
    assert_eq!(fs::read(day.journal(1)).unwrap(), b"one more");
}

#[test]
fn a_folder_that_takes_nothing_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("board"), "in the way").unwrap();
    let error = Recorder::start(folder.path(), no_events).unwrap_err().to_string();
    assert!(error.contains("cannot make") && error.contains("board"), "{error}");
    fs::remove_file(folder.path().join("board")).unwrap();
    // What a recorder was writing to see whether there is room, when it was killed.
    fs::create_dir(folder.path().join("board")).unwrap();
    fs::write(folder.path().join("board/.kumiki-room"), "half").unwrap();
    record(folder.path(), [row(1)]);
    assert_eq!(files(&folder.path().join("board")), ["20260105"]);
}
