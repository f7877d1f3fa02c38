//! The stored files, from a folder to a client: whole, packed, replaced, slow, too many.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use pricestore::DataDir;
use ranking::service::{BearerToken, ServiceLimits, ServiceOptions};
use tests::http::{self, Connection, Reply};

use crate::common::{Served, Steady};

/// More than all sockets between a client and a service hold.
const GIGABYTE: u64 = 1 << 30;
/// The time that files of these tests were last changed: Tue, 14 Nov 2023 22:13:20 GMT and a bit.
const CHANGED: Duration = Duration::new(1_700_000_000, 5_000_000);

/// A data folder for a test.
pub(crate) struct DataFolder {
    folder: tempfile::TempDir,
}

impl DataFolder {
    pub(crate) fn new() -> Self {
        let data = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["jp/stocks_daily", "jp/stocks_board", "rank"] {
            fs::create_dir_all(data.path(folder)).unwrap();
        }
        data
    }

    /// A folder with every kind of file of the layout; each holds its own path.
    pub(crate) fn filled() -> Self {
        let data = Self::new();
        for path in KINDS {
            data.put(path, path.as_bytes());
        }
        data
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    /// Writes aside and renames, as the update job does.
    pub(crate) fn put(&self, inside: &str, content: &[u8]) {
        let path = self.path(inside);
        let aside = path.with_extension("new");
        fs::write(&aside, content).unwrap();
        let file = File::options().write(true).open(&aside).unwrap();
        file.set_modified(UNIX_EPOCH + CHANGED).unwrap();
        fs::rename(aside, path).unwrap();
    }

    /// A file of zeros that takes no room on disk.
    fn put_sparse(&self, inside: &str, length: u64) {
        File::create(self.path(inside)).unwrap().set_len(length).unwrap();
    }

    pub(crate) fn options(&self) -> ServiceOptions {
        ServiceOptions {
            files: Some(DataDir::new(self.folder.path())),
            ..ServiceOptions::default()
        }
    }

    pub(crate) fn serve(&self) -> Served {
        Served::start(Steady, self.options())
    }

    fn serve_limited(&self, change: impl FnOnce(&mut ServiceLimits)) -> Served {
        let mut options = self.options();
        change(&mut options.limits);
        Served::start(Steady, options)
    }
}

const KINDS: [&str; 6] = [
    "jp/stocks_daily/mother.db",
    "jp/stocks_daily/7203.db",
    "jp/stocks_daily/130A.db",
    "jp/stocks_daily/25935.db",
    "jp/stocks_board/7203.db",
    "jp/listed_info.db",
];

pub(crate) fn get(served: &Served, path: &str, headers: &[(&str, &str)]) -> Reply {
    http::request(served.address, &format!("GET {path}"), headers, &[])
}

pub(crate) fn head(served: &Served, path: &str, headers: &[(&str, &str)]) -> Reply {
    http::request(served.address, &format!("HEAD {path}"), headers, &[])
}

/// Bytes that pack, but not to nothing.
fn content(length: u32, seed: u32) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(at ^ seed) >> 9) as u8).collect()
}

#[test]
fn every_kind_of_file_is_sent() {
    let data = DataFolder::filled();
    let served = data.serve();
    for kind in KINDS {
        let reply = get(&served, &format!("/{kind}"), &[]);
        assert_eq!((reply.status, reply.text()), (200, kind.to_owned()));
        for (name, value) in [
            ("content-type", "application/octet-stream"),
            ("content-length", &kind.len().to_string()),
            ("accept-ranges", "bytes"),
            ("cache-control", "no-cache"),
            ("vary", "accept-encoding"),
            ("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{kind}: {name}");
        }
        let tag = reply.header("etag").unwrap();
        assert!(tag.len() == 34 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    }
    assert_eq!(served.metric("kumiki_ranking_file_requests_total{status=\"200\"}"), "6");
    let sent: usize = KINDS.iter().map(|kind| kind.len()).sum();
    assert_eq!(served.metric("kumiki_ranking_file_bytes_total"), sent.to_string());
    assert_eq!(served.metric("kumiki_ranking_downloads"), "0");
}

#[test]
fn codes_have_letters_of_either_case() {
    let data = DataFolder::filled();
    data.put("jp/stocks_board/9a9a.db", b"small");
    let served = data.serve();
    for path in ["/jp/stocks_daily/130a.db", "/jp/stocks_daily/130A.db"] {
        assert_eq!(get(&served, path, &[]).text(), "jp/stocks_daily/130A.db");
    }
    for path in ["/jp/stocks_board/9a9a.db", "/jp/stocks_board/9A9A.db?a=b"] {
        assert_eq!(get(&served, path, &[]).text(), "small");
    }
}

#[test]
fn head_tells_the_same_and_sends_nothing() {
    let data = DataFolder::filled();
    data.put("jp/stocks_daily/7203.db", &content(100_000, 1));
    data.put("jp/stocks_daily/7204.db", b"");
    let served = data.serve();
    for (path, accepted) in [
        ("/jp/stocks_daily/7203.db", "identity"),
        ("/jp/stocks_daily/7203.db", "gzip"),
        ("/jp/stocks_daily/7204.db", "zstd"),
        ("/jp/stocks_daily/7205.db", "zstd"),
    ] {
        let accept = [("Accept-Encoding", accepted)];
        let mut connection = Connection::open(served.address).unwrap();
        connection.send(&format!("HEAD {path}"), &accept, &[]).unwrap();
        let told = connection.receive_head().unwrap();
        // The next answer follows at once: no body stands between.
        connection.send(&format!("GET {path}"), &accept, &[]).unwrap();
        let sent = connection.receive().unwrap();
        let without = |reply: &Reply| -> Vec<(String, String)> {
            let skipped = ["date", "transfer-encoding"];
            let mut headers = reply.headers.clone();
            headers.retain(|(name, _)| !skipped.contains(&name.as_str()));
            headers.sort();
            headers
        };
        assert_eq!((told.status, without(&told)), (sent.status, without(&sent)), "{path}");
    }
    // A range is of GET only.
    let reply = head(&served, "/jp/stocks_daily/7203.db", &[("Range", "bytes=0-1")]);
    assert_eq!((reply.status, reply.header("content-length")), (200, Some("100000")));
}

#[test]
fn files_are_packed_when_asked() {
    let data = DataFolder::filled();
    let content = content(3_000_000, 2);
    data.put("jp/stocks_daily/mother.db", &content);
    let served = data.serve();
    let path = "/jp/stocks_daily/mother.db";
    let plain = get(&served, path, &[]);
    assert!(plain.body == content);
    let tag = plain.header("etag").unwrap().trim_matches('"').to_owned();
    for (accepted, packing) in
        [("gzip;q=0.9, br;q=0.5", "gzip"), ("gzip, deflate, br, zstd", "zstd")]
    {
        let reply = get(&served, path, &[("Accept-Encoding", accepted)]);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-encoding"), Some(packing));
        assert_eq!(reply.header("content-length"), None);
        assert_eq!(reply.header("transfer-encoding"), Some("chunked"));
        assert_eq!(reply.header("accept-ranges"), None);
        assert_eq!(reply.header("vary"), Some("accept-encoding"));
        assert_eq!(reply.header("etag"), Some(&*format!("W/\"{tag}\"")));
        let mut unpacked = Vec::new();
        if packing == "gzip" {
            flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut unpacked).unwrap();
        } else {
            unpacked = zstd::decode_all(&reply.body[..]).unwrap();
        }
        assert!(unpacked == content && reply.body.len() < content.len(), "{packing}");
    }
    // Neither a small file nor a part is packed.
    let small = get(&served, "/jp/listed_info.db", &[("Accept-Encoding", "zstd")]);
    assert_eq!(small.header("content-encoding"), None);
    let part = get(&served, path, &[("Accept-Encoding", "zstd"), ("Range", "bytes=5-6")]);
    assert_eq!((part.status, part.header("content-encoding")), (206, None));
    let brotli = get(&served, path, &[("Accept-Encoding", "br")]);
    assert_eq!(brotli.header("content-encoding"), Some("br"));
}

#[test]
fn a_file_that_is_replaced_goes_on_as_it_was() {
    let data = DataFolder::filled();
    let (old, new) = (content(40_000_000, 3), content(1_000, 4));
    data.put("jp/stocks_daily/mother.db", &old);
    let served = data.serve();
    let path = "/jp/stocks_daily/mother.db";
    let mut connection = Connection::open(served.address).unwrap();
    connection.send(&format!("GET {path}"), &[], &[]).unwrap();
    let first = connection.receive_head().unwrap();
    let mut bytes = vec![0; old.len()];
    let mut got = connection.read(&mut bytes).unwrap();
    data.put("jp/stocks_daily/mother.db", &new);
    let second = get(&served, path, &[]);
    assert!(second.body == new && second.header("etag") != first.header("etag"));
    while got < old.len() {
        let count = connection.read(&mut bytes[got..]).unwrap();
        assert!(count > 0, "the download ended after {got} bytes");
        got += count;
    }
    assert!(bytes == old, "the old file did not go on");
}

#[test]
fn readers_see_one_state_or_the_next_while_files_are_replaced() {
    let data = DataFolder::filled();
    let path = "jp/stocks_daily/mother.db";
    let state = |letter: u8| vec![letter; 400_000 + usize::from(letter)];
    data.put(path, &state(b'a'));
    let served = data.serve();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = Connection::open(served.address).unwrap();
                    let mut seen = 0;
                    while !over.load(Ordering::Relaxed) || seen == 0 {
                        connection.send(&format!("GET /{path}"), &[], &[]).unwrap();
                        let reply = connection.receive().unwrap();
                        assert_eq!(reply.status, 200);
                        assert!(reply.body == state(reply.body[0]), "a mixture was sent");
                        seen += 1;
                    }
                })
            })
            .collect();
        for round in 0..200_u8 {
            data.put(path, &state(b'a' + round % 26));
        }
        over.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert!(served.log().is_empty(), "{:?}", served.log());
}

#[test]
fn a_client_that_does_not_read_its_file_is_dropped() {
    let data = DataFolder::filled();
    data.put_sparse("jp/stocks_board/9999.db", GIGABYTE);
    let served = data.serve_limited(|limits| limits.write_timeout = Duration::from_millis(100));
    let mut lazy = Connection::open(served.address).unwrap();
    lazy.send("GET /jp/stocks_board/9999.db", &[], &[]).unwrap();
    served.wait_for("kumiki_ranking_clients_slow_total", "1");
    served.wait_for("kumiki_ranking_downloads", "0");
    assert_eq!(lazy.receive_head().unwrap().header("content-length"), Some("1073741824"));
    assert!(rest(&mut lazy) < GIGABYTE);
}

/// How many bytes still come.
fn rest(connection: &mut Connection) -> u64 {
    let mut bytes = vec![0; 64 * 1024];
    let mut got = 0;
    while let Ok(count @ 1..) = connection.read(&mut bytes) {
        got += count as u64;
    }
    got
}

#[test]
fn a_download_that_takes_too_long_is_ended() {
    let data = DataFolder::filled();
    data.put_sparse("jp/stocks_board/9999.db", GIGABYTE);
    let served = data.serve_limited(|limits| limits.download_timeout = Duration::ZERO);
    let mut connection = Connection::open(served.address).unwrap();
    connection.send("GET /jp/stocks_board/9999.db", &[], &[]).unwrap();
    // The head may go down with the connection; the file never comes.
    if connection.receive_head().is_ok() {
        assert!(rest(&mut connection) < GIGABYTE);
    }
    let log = served.log().join("\n");
    assert!(log.contains("did not take it within 0 seconds"), "{log}");
}

#[test]
fn downloads_have_a_limit() {
    let data = DataFolder::filled();
    data.put_sparse("jp/stocks_board/9999.db", GIGABYTE);
    let served = data.serve_limited(|limits| limits.downloads = 1);
    let mut first = Connection::open(served.address).unwrap();
    first.send("GET /jp/stocks_board/9999.db", &[], &[]).unwrap();
    let tag = first.receive_head().unwrap().header("etag").unwrap().to_owned();
    assert_eq!(served.metric("kumiki_ranking_downloads"), "1");
    let busy = get(&served, "/jp/stocks_board/9999.db", &[("Range", "bytes=0-2097152")]);
    assert_eq!((busy.status, busy.header("retry-after")), (503, Some("10")));
    // A small file, or part of one, waits for no large one.
    assert_eq!(get(&served, "/jp/listed_info.db", &[]).status, 200);
    let part = get(&served, "/jp/stocks_board/9999.db", &[("Range", "bytes=0-2097151")]);
    assert_eq!((part.status, part.body.len()), (206, 2 << 20));
    // What sends no bytes takes no place.
    assert_eq!(head(&served, "/jp/listed_info.db", &[]).status, 200);
    let known = [("If-None-Match", tag.as_str())];
    assert_eq!(get(&served, "/jp/stocks_board/9999.db", &known).status, 304);
    assert_eq!(get(&served, "/jp/stocks_board/9998.db", &[]).status, 404);
    drop(first);
    served.wait_for("kumiki_ranking_downloads", "0");
    assert_eq!(get(&served, "/jp/listed_info.db", &[]).status, 200);
}

#[test]
fn sixty_clients_at_once_get_their_files_and_answers() {
    let data = DataFolder::filled();
    let content = content(2_000_000, 5);
    data.put("jp/stocks_daily/mother.db", &content);
    let served = data.serve();
    std::thread::scope(|scope| {
        for client in 0..60 {
            let (served, content) = (&served, &content);
            scope.spawn(move || {
                let accepted = ["identity", "gzip", "zstd"][client % 3];
                let path = "/jp/stocks_daily/mother.db";
                for _ in 0..3 {
                    let reply = get(served, path, &[("Accept-Encoding", accepted)]);
                    let body = match accepted {
                        "zstd" => zstd::decode_all(&reply.body[..]).unwrap(),
                        "gzip" => {
                            let mut body = Vec::new();
                            let mut unpack = flate2::read::GzDecoder::new(&reply.body[..]);
                            unpack.read_to_end(&mut body).unwrap();
                            body
                        }
                        _ => reply.body,
                    };
                    assert!(body == *content, "{accepted}");
                    let answer = served.ask("{ schemaVersion }");
                    assert_eq!(answer["data"]["schemaVersion"], "1.0");
                }
            });
        }
    });
    assert_eq!(served.metric("kumiki_ranking_file_requests_total{status=\"200\"}"), "180");
    assert_eq!(served.metric("kumiki_ranking_downloads"), "0");
}

#[test]
fn a_token_is_asked_for_before_anything_is_told() {
    let data = DataFolder::filled();
    let secret = "a-secret-for-tests-only";
    let token = Some(BearerToken::new(secret).unwrap());
    let served = Served::start(Steady, ServiceOptions { token, ..data.options() });
    for path in ["/jp/listed_info.db", "/jp/none.db", "/jp/", "/jp"] {
        let refused = get(&served, path, &[("Authorization", "Bearer a-secret-for-tests-onlx")]);
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
        assert_eq!((refused.header("etag"), head(&served, path, &[]).status), (None, 401));
    }
    let bearer = format!("Bearer {secret}");
    let good = [("Authorization", bearer.as_str())];
    assert_eq!(get(&served, "/jp/listed_info.db", &good).text(), "jp/listed_info.db");
    assert_eq!(get(&served, "/jp/none.db", &good).status, 404);
}

#[test]
fn files_are_read_only_and_only_where_there_is_a_folder() {
    let data = DataFolder::filled();
    let served = data.serve();
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let head = format!("{method} /jp/listed_info.db");
        let refused = http::request(served.address, &head, &[], b"new");
        assert_eq!((refused.status, refused.header("allow")), (405, Some("GET,HEAD,OPTIONS")));
    }
    assert_eq!(fs::read(data.path("jp/listed_info.db")).unwrap(), b"jp/listed_info.db");
    let without = Served::start(Steady, ServiceOptions::default());
    let reply = get(&without, "/jp/listed_info.db", &[]);
    assert_eq!((reply.status, reply.text().as_str()), (404, "Not Found"));
}

#[test]
fn pages_of_named_origins_may_load_parts() {
    let data = DataFolder::filled();
    let origins = vec!["https://ours.example".to_owned()];
    let served = Served::start(Steady, ServiceOptions { origins, ..data.options() });
    let ours = [("Origin", "https://ours.example")];
    let asked = http::request(served.address, "OPTIONS /jp/listed_info.db", &ours, &[]);
    let methods = asked.header("access-control-allow-methods").unwrap();
    assert_eq!(methods.split(',').map(str::trim).collect::<Vec<_>>(), ["GET", "HEAD"]);
    assert!(asked.header("access-control-allow-headers").unwrap().contains("if-range"));
    let reply = get(&served, "/jp/listed_info.db", &ours);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://ours.example"));
    assert!(reply.header("access-control-expose-headers").unwrap().contains("etag"));
}

/// A file that cannot be read is no missing file: the operator is told, the client is not.
#[cfg(unix)]
#[test]
fn what_cannot_be_read_is_told_to_the_operator() {
    // No system opens a name that is this long.
    let files = Some(DataDir::new("unreadable".repeat(100)));
    let served = Served::start(Steady, ServiceOptions { files, ..ServiceOptions::default() });
    let reply = get(&served, "/jp/stocks_daily/7203.db", &[]);
    assert_eq!((reply.status, reply.text().contains("cannot be read")), (500, true));
    assert!(!reply.text().contains("7203") && !reply.text().contains("unreadable"));
    let log = served.log().join("\n");
    assert!(log.contains("Daily(\"7203\")") && log.contains("too long"), "{log}");
    assert!(log.contains("method=\"GET\" route=\"/jp/{*path}\""), "{log}");
    assert!(!log.contains("stocks_daily") && !log.contains("unreadable"), "{log}");
}
