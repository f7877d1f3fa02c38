//! No request leaves the folder of the stored files.

use std::fs;

use tests::http::Connection;

use crate::common::Served;
use crate::files::{DataFolder, get};
use crate::hostile::Seeded;

/// What stands outside of the folder, or in it without being handed out. No answer may hold it.
const SECRET: &str = "must-not-be-sent";

/// A folder with files all around those that are handed out.
fn surrounded() -> DataFolder {
    let data = DataFolder::filled();
    for folder in ["jp/stocks_minute", "jp/stocks_daily/deep", "other"] {
        fs::create_dir_all(data.path(folder)).unwrap();
    }
    for path in [
        "secret.db",
        "7203.db",
        "rank/CURRENT",
        "rank/7203.db",
        "other/7203.db",
        "jp/secret.db",
        "jp/7203.db",
        "jp/mother.db",
        "jp/stocks_minute/7203.db",
        "jp/stocks_daily/mother.db.wal",
        "jp/stocks_daily/mother.db.new",
        "jp/stocks_daily/secret.db",
        "jp/stocks_daily/deep/7203.db",
        "jp/stocks_board/mother.db",
        "jp/stocks_board/listed_info.db",
    ] {
        fs::write(data.path(path), SECRET).unwrap();
    }
    data
}

#[track_caller]
fn is_missing(served: &Served, path: &str) {
    let reply = get(served, path, &[]);
    assert_eq!((reply.status, reply.text().as_str()), (404, "Not Found"), "{path}");
    for name in ["etag", "last-modified", "accept-ranges"] {
        assert_eq!(reply.header(name), None, "{path}");
    }
}

#[test]
fn what_is_not_of_the_layout_is_missing_whether_it_is_there_or_not() {
    let data = surrounded();
    let served = data.serve();
    for path in [
        "/jp",
        "/jp/",
        "/jp//",
        "/jp/stocks_daily",
        "/jp/stocks_daily/",
        "/jp/stocks_daily/7204.db",
        "/jp/stocks_board/130A.db",
        "/jp/secret.db",
        "/jp/7203.db",
        "/jp/stocks_minute/7203.db",
        "/jp/stocks_daily/mother.db.wal",
        "/jp/stocks_daily/mother.db.new",
        "/jp/stocks_daily/secret.db",
        "/jp/stocks_daily/deep/7203.db",
        "/jp/stocks_board/mother.db",
        "/jp/../secret.db",
        "/jp/../rank/CURRENT",
        "/jp/stocks_daily/../7203.db",
        "/jp/stocks_daily/../../secret.db",
        "/jp/stocks_daily/..%2F7203.db",
        "/jp/%2e%2e/7203.db",
        "/jp/%2e%2e%2frank%2fCURRENT",
        "/jp/..%5Crank%5CCURRENT",
        "/jp/%252e%252e/7203.db",
        "/jp/%c0%ae%c0%ae/7203.db",
        "/jp/stocks_daily/7203.db%00.db",
        "/jp/stocks_daily/7203%2Edb%20",
        "/jp/stocks_daily/7203.db;x",
        "/jp/stocks_daily/7203.db:stream",
        "/jp/stocks_daily/AUX.db",
        "/jp/stocks_daily/COM1.db",
        "/jp/C:/7203.db",
        "/jp//etc/passwd",
        "/jp/STOCKS_DAILY/7203.db",
    ] {
        is_missing(&served, path);
    }
    is_missing(&served, &format!("/jp/stocks_daily/{}", "a".repeat(8_000)));
    assert_eq!(get(&served, "/jp/stocks_daily/%37203.db", &[]).text(), "jp/stocks_daily/7203.db");
}

#[cfg(unix)]
#[test]
fn links_are_missing_at_every_level() {
    use std::os::unix::fs::symlink;
    let data = surrounded();
    symlink(data.path("secret.db"), data.path("jp/stocks_daily/1111.db")).unwrap();
    symlink("7203.db", data.path("jp/stocks_daily/2222.db")).unwrap();
    symlink(data.path("none"), data.path("jp/stocks_daily/3333.db")).unwrap();
    fs::create_dir(data.path("jp/stocks_daily/4444.db")).unwrap();
    fs::remove_file(data.path("jp/listed_info.db")).unwrap();
    symlink(data.path("secret.db"), data.path("jp/listed_info.db")).unwrap();
    fs::rename(data.path("jp/stocks_board"), data.path("boards")).unwrap();
    symlink(data.path("boards"), data.path("jp/stocks_board")).unwrap();
    let served = data.serve();
    for path in [
        "/jp/stocks_daily/1111.db",
        "/jp/stocks_daily/2222.db",
        "/jp/stocks_daily/3333.db",
        "/jp/stocks_daily/4444.db",
        "/jp/listed_info.db",
        "/jp/stocks_board/7203.db",
    ] {
        is_missing(&served, path);
    }
    // The operator is told why; a file beside is not affected.
    let log = served.log().join("\n");
    assert_eq!(log.matches("it is a link").count(), 6, "{log}");
    assert_eq!(get(&served, "/jp/stocks_daily/7203.db", &[]).status, 200);
}

fn mutated(path: &str, seeded: &mut Seeded) -> Vec<u8> {
    const PIECES: [&str; 20] = [
        "..", "../", "/..", "%2e%2e", "%2f", "%5c", "\\", "//", "%00", "%", "%25", ".db", "secret",
        "CURRENT", "rank/", "7203", "130a", ":", "?", "#",
    ];
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..=seeded.below(3) {
        let at = seeded.below(bytes.len() + 1);
        let end = (at + seeded.below(8)).min(bytes.len());
        match seeded.below(4) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..at, PIECES[seeded.below(PIECES.len())].bytes())),
            2 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = u8::try_from(33 + seeded.below(94)).unwrap();
                }
            }
        }
    }
    bytes
}

#[test]
fn two_thousand_mutated_paths_never_leave_the_folder() {
    const SEEDS: [&str; 6] = [
        "stocks_daily/mother.db",
        "stocks_daily/130A.db",
        "stocks_board/7203.db",
        "listed_info.db",
        "stocks_daily/../../secret.db",
        "%2e%2e/rank/CURRENT",
    ];
    let data = surrounded();
    let served = data.serve();
    let mut seeded = Seeded(20_261_121);
    let mut connection = Connection::open(served.address).unwrap();
    let (mut sent, mut missing) = (0, 0);
    for round in 0..2_000 {
        let path = mutated(SEEDS[round % SEEDS.len()], &mut seeded);
        let path = String::from_utf8(path).unwrap();
        connection.send(&format!("GET /jp/{path}"), &[], &[]).unwrap();
        let reply = connection.receive().unwrap_or_else(|error| panic!("{round}: {path}: {error}"));
        let text = reply.text();
        match reply.status {
            // A file of the layout holds its own path.
            200 => {
                assert!(
                    text.starts_with("jp/") && text.ends_with(".db"),
                    "{round}: {path}: {text}"
                );
                sent += 1;
            }
            404 => {
                assert_eq!(text, "Not Found", "{round}: {path}");
                missing += 1;
            }
            // What is no path of HTTP ends the connection.
            400 => connection = Connection::open(served.address).unwrap(),
            status => panic!("{round}: {path}: {status} {text}"),
        }
        assert!(!text.contains(SECRET), "{round}: {path}");
    }
    assert!(sent > 20 && missing > 1_500, "{sent} sent, {missing} missing");
}
