//! Request numbers of a process that is killed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use venues::web_broker::RequestNumbers;

const FILE: &str = "KUMIKI_TEST_NUMBERS";

/// The killed process; it does nothing without a file.
#[test]
fn takes_numbers_until_it_is_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let mut numbers = RequestNumbers::open(Path::new(&file)).unwrap();
    loop {
        println!("took {}", numbers.take().unwrap());
    }
}

#[test]
fn p6_numbers_rise_across_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for wanted in [1, 2, 50, 3, 101] {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "numbers::takes_numbers_until_it_is_killed", "--nocapture"])
            .env(FILE, folder.path().join("numbers"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut taken = 0;
        while let Some(Ok(line)) = lines.next() {
            let Some((_, number)) = line.split_once("took ") else { continue };
            // The last line may be cut: its number was used all the same, and no later one is lower.
            let Ok(number) = number.parse::<u64>() else { continue };
            if number < 1_000_000_000 {
                continue;
            }
            assert!(number > last, "{number} after {last}");
            (last, taken) = (number, taken + 1);
            if taken == wanted {
                process.kill().unwrap();
            }
        }
        process.wait().unwrap();
        assert!(taken >= wanted, "{taken} of {wanted}");
    }
}
