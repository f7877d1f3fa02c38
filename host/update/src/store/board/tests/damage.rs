//! Segments and files that are damaged, or somebody else's.

use super::*;
use crate::store::limits::BOARD_WHY_CHARS_MAX;

/// The files of a segment.
fn segment(world: &World, day: &str, number: u32) -> [PathBuf; 2] {
    let day = BoardFolder::new(&world.recordings).day(date(day));
    [day.depth(number), day.trades(number)]
}

fn flip(path: &Path, place: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[place] ^= 0x55;
    fs::write(path, bytes).unwrap();
}

/// Ways in which a file is no recording any more.
fn spoil(path: &Path, how: &str) {
    let length = usize::try_from(fs::metadata(path).unwrap().len()).unwrap();
    match how {
        "damaged at its begin" => {
            let mut bytes = fs::read(path).unwrap();
            bytes[4..36].fill(0xff);
            fs::write(path, bytes).unwrap();
        }
        "flipped at its end" => flip(path, length - 2),
        "flipped before its end" => flip(path, length - 6),
        "cut" => fs::write(path, &fs::read(path).unwrap()[..length / 2]).unwrap(),
        "foreign" => fs::write(path, "theirs").unwrap(),
        _ => {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }
    }
}

#[test]
fn a_damaged_segment_is_left_out_and_named_and_the_rest_is_published() {
    let whole = World::new();
    whole.publish().unwrap();
    let all = whole.rows().len();
    let ways = [
        ("damaged at its begin", 0),
        ("damaged at its begin", 1),
        ("flipped at its end", 0),
        ("flipped before its end", 1),
        ("cut", 0),
        ("foreign", 1),
        ("a folder", 0),
    ];
    for (how, file) in ways {
        let world = World::new();
        let path = segment(&world, "2026-01-05", 1)[file].clone();
        let bytes = fs::read(&path).unwrap();
        spoil(&path, how);
        for round in 0..2 {
            let report = world.publish().unwrap();
            let [found] = &report.damaged[..] else { panic!("{how} {round}: {report:?}") };
            assert_eq!((found.date, found.segment), (date("2026-01-05"), 1), "{how}");
            assert_eq!(found.file, path.display().to_string(), "{how}");
            assert!(!found.why.is_empty() && !found.why.contains('\n'), "{how}: {}", found.why);
            assert!(found.why.chars().count() <= BOARD_WHY_CHARS_MAX);
            let counts = (report.new_segments, report.written);
            assert_eq!(counts, if round == 0 { (2, 3) } else { (0, 0) }, "{how}");
            // 60 rows, and what is noted of the segment in three files.
            assert_eq!(world.rows().len(), all - 63, "{how}");
        }
        // Put back, its rows come, once.
        if path.is_dir() {
            fs::remove_dir(&path).unwrap();
        }
        fs::write(&path, bytes).unwrap();
        let report = world.publish().unwrap();
        assert_eq!((report.damaged.len(), report.new_segments, report.written), (0, 1, 3), "{how}");
        let (mut found, mut expected) = (world.rows(), whole.rows());
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{how}");
        assert_eq!(world.publish().unwrap().written, 0, "{how}");
    }
}

#[test]
fn a_damaged_segment_that_is_moved_away_is_named_no_more() {
    let world = World::new();
    let files = segment(&world, "2026-01-06", 1);
    spoil(&files[1], "cut");
    assert_eq!(world.publish().unwrap().damaged.len(), 1);
    for file in &files {
        fs::remove_file(file).unwrap();
    }
    let report = world.publish().unwrap();
    assert_eq!((report.damaged.len(), report.new_segments), (0, 0));
    // The number is free, and what is recorded under it is new.
    record(&world.recordings, date("2026-01-06"), 0..40);
    let report = world.publish().unwrap();
    assert_eq!((report.damaged.len(), report.new_segments, report.written), (0, 1, 3));
}

#[test]
fn nothing_is_made_again_without_a_segment_that_was_published() {
    let world = World::new();
    world.publish().unwrap();
    let expected = world.rows();
    let path = segment(&world, "2026-01-05", 2)[1].clone();
    let bytes = fs::read(&path).unwrap();
    spoil(&path, "damaged at its begin");
    // It is not looked at while nothing is missing.
    assert_eq!(world.publish().unwrap().damaged, []);
    fs::remove_file(world.file("7203")).unwrap();
    let error = world.publish().unwrap_err().to_string();
    let start = format!("7203 cannot be made again, because {}, whose rows", path.display());
    assert!(error.contains(&start), "{error}");
    assert!(!world.file("7203").exists());
    fs::write(&path, &bytes).unwrap();
    assert_eq!(world.publish().unwrap().made_again, ["7203"]);
    assert_eq!(world.rows(), expected);
    // Of another size it may be another recording: it is named, and nothing is published.
    spoil(&path, "cut");
    record(&world.recordings, date("2026-01-07"), 0..50);
    let error = world.publish().unwrap_err().to_string();
    let named = format!("{}, whose rows are published, cannot be read: ", path.display());
    assert!(error.contains(&named) && error.ends_with("put a copy of it back"), "{error}");
    assert_eq!(world.rows(), expected);
    fs::write(&path, bytes).unwrap();
    assert_eq!(world.publish().unwrap().new_segments, 1);
}

#[test]
fn somebody_else_s_file_in_the_place_of_one_of_the_job_s_is_not_touched() {
    let sqlite: &[u8] = b"SQLite format 3\0\x10\0\x01\x01\0 theirs and a good deal more of it";
    for kind in ["sqlite", "text", "database", "folder"] {
        let world = World::new();
        world.publish().unwrap();
        let path = world.file("7203");
        fs::remove_file(&path).unwrap();
        match kind {
            "sqlite" => fs::write(&path, sqlite).unwrap(),
            "text" => fs::write(&path, "notes").unwrap(),
            "folder" => fs::create_dir(&path).unwrap(),
            _ => {
                let theirs = Connection::open(&path).unwrap();
                theirs.execute_batch("CREATE TABLE theirs AS SELECT 1 AS one").unwrap();
                theirs.close().unwrap();
            }
        }
        let theirs = fs::read(&path).ok();
        let others = ["130A", "25935"].map(|code| fs::read(world.file(code)).unwrap());
        record(&world.recordings, date("2026-01-07"), 0..50);
        let error = world.publish().unwrap_err().to_string();
        let text = "7203.db in it were not written by this job; the job left them unchanged";
        assert!(error.contains(text) && error.contains("Move them away"), "{kind}: {error}");
        assert_eq!(fs::read(&path).ok(), theirs, "{kind}");
        assert_eq!(["130A", "25935"].map(|code| fs::read(world.file(code)).unwrap()), others);
        // Moved away, the job's own is made again.
        fs::rename(&path, world.data.path().join("theirs")).unwrap();
        assert_eq!(world.publish().unwrap().made_again, ["7203"], "{kind}");
    }
}

#[test]
fn what_is_left_of_a_file_of_the_job_is_made_again() {
    for kind in ["empty", "zeros", "cut", "without its head"] {
        let world = World::new();
        world.publish().unwrap();
        let expected = world.rows();
        let path = world.file("7203");
        let mut bytes = fs::read(&path).unwrap();
        match kind {
            "empty" => bytes.clear(),
            "zeros" => bytes.fill(0),
            "cut" => bytes.truncate(5_000),
            _ => bytes[12..9_000].fill(0xff),
        }
        fs::write(&path, bytes).unwrap();
        assert_eq!(world.publish().unwrap().made_again, ["7203"], "{kind}");
        assert_eq!(world.rows(), expected, "{kind}");
    }
}

#[test]
fn the_report_has_the_form_of_its_schema() {
    let world = World::new();
    spoil(&segment(&world, "2026-01-06", 1)[0], "cut");
    let report = serde_json::to_value(world.publish().unwrap()).unwrap();
    let schema = board_report_schema();
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&report), names(&schema["properties"]));
    let damaged = &schema["$defs"]["DamagedSegment"]["properties"];
    assert_eq!(names(&report["damaged"][0]), names(damaged));
    assert_eq!(report["damaged"][0]["date"], "2026-01-06");
}
