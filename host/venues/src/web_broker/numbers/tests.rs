//! Numbers rise, whatever happens to the process, the clock and the file (specification 4, P6).

use super::*;

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/p_no");
    (folder, path)
}

#[test]
fn p6_numbers_rise_across_restarts_and_clocks_that_step_back() {
    let (_folder, path) = file();
    let mut last = 0;
    for now in [1_000, 1_000, 1_000, 5_000, 10, 0, 5_001, 4_000] {
        // Nothing runs at the end: as after kill -9.
        let mut numbers = RequestNumbers::open(&path).unwrap();
        for _ in 0..3 {
            let number = numbers.take_at(now).unwrap();
            assert!(number > last && number >= now, "{number} after {last}");
            last = number;
            // It is written down before it is used.
            assert!(fs::read_to_string(&path).unwrap().contains(&format!("{number:010}")));
        }
    }
    let mut numbers = RequestNumbers::open(&path).unwrap();
    assert!(numbers.take().unwrap() > 1_700_000_000);
}

#[test]
fn p6_a_damaged_file_never_gives_a_lower_number() {
    for numbers_before in 1..4 {
        let (_folder, path) = file();
        let mut numbers = RequestNumbers::open(&path).unwrap();
        let last = (0..numbers_before).map(|_| numbers.take_at(1_000).unwrap()).last().unwrap();
        drop(numbers);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let flipped = [&whole[..at], &[whole[at] ^ 1], &whole[at + 1..]].concat();
            for damaged in [whole[..at].to_vec(), flipped] {
                fs::write(&path, &damaged).unwrap();
                match RequestNumbers::open(&path) {
                    Ok(mut numbers) => {
                        let next = numbers.take_at(1).unwrap();
                        assert!(next > last, "{next} after {last}, damaged at {at}");
                    }
                    Err(error) => {
                        assert!(matches!(error, NumbersError::Damaged(_)), "{error}");
                        assert_eq!(fs::read(&path).unwrap(), damaged, "it is left alone");
                    }
                }
            }
        }
    }
}

#[test]
fn p6_one_process_has_the_file() {
    let (_folder, path) = file();
    let numbers = RequestNumbers::open(&path).unwrap();
    assert!(matches!(RequestNumbers::open(&path), Err(NumbersError::Taken(_))));
    drop(numbers);
    assert!(RequestNumbers::open(&path).is_ok());
}

#[test]
fn p6_a_file_of_something_else_is_refused() {
    let (_folder, path) = file();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "1760000001\n").unwrap();
    assert!(matches!(RequestNumbers::open(&path), Err(NumbersError::Damaged(_))));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(RequestNumbers::open(&path), Err(NumbersError::File { .. })));
}

#[cfg(unix)]
#[test]
fn p6_a_link_is_refused() {
    let (folder, path) = file();
    let other = folder.path().join("other");
    fs::write(&other, "x").unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    assert!(matches!(RequestNumbers::open(&path), Err(NumbersError::File { .. })));
    assert_eq!(fs::read_to_string(&other).unwrap(), "x");
}

#[cfg(unix)]
#[test]
fn p6_another_users_file_is_refused() {
    let (_folder, path) = file();
    drop(RequestNumbers::open(&path).unwrap());
    if std::os::unix::fs::chown(&path, Some(12_345), None).is_err() {
        return; // Only the system's own user may give files away.
    }
    assert!(matches!(RequestNumbers::open(&path), Err(NumbersError::NotOwn(_))));
}

#[test]
fn the_broker_takes_ten_digits() {
    let (_folder, path) = file();
    let mut numbers = RequestNumbers::open(&path).unwrap();
    assert_eq!(numbers.take_at(REQUEST_NUMBER_MAX).unwrap(), REQUEST_NUMBER_MAX);
    assert!(matches!(numbers.take_at(1), Err(NumbersError::NoMore)));
}
