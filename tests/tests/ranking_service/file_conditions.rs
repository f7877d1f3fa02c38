//! What clients say about what they have, and which part they want.

use tests::http::Reply;

use crate::common::Served;
use crate::files::{DataFolder, get, head};

const PATH: &str = "/jp/stocks_daily/mother.db";
const CHANGED: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
const BEFORE: &str = "Tue, 14 Nov 2023 22:13:19 GMT";

/// A service with one file of a thousand bytes and two letters, and its entity tag.
struct One {
    served: Served,
    tag: String,
    _data: DataFolder,
}

impl One {
    fn new() -> Self {
        let data = DataFolder::filled();
        data.put("jp/stocks_daily/mother.db", &content());
        let served = data.serve();
        let tag = head(&served, PATH, &[]).header("etag").unwrap().to_owned();
        Self { served, tag, _data: data }
    }

    fn get(&self, headers: &[(&str, &str)]) -> Reply {
        get(&self.served, PATH, headers)
    }

    fn status(&self, headers: &[(&str, &str)]) -> u16 {
        self.get(headers).status
    }
}

fn content() -> Vec<u8> {
    (0..1_002_u32).map(|at| (at * 7) as u8).collect()
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let one = One::new();
    let reply = one.get(&[("If-None-Match", &one.tag)]);
    assert_eq!((reply.status, reply.body.len()), (304, 0));
    for (name, value) in [
        ("etag", Some(one.tag.as_str())),
        ("last-modified", Some(CHANGED)),
        ("cache-control", Some("no-cache")),
        ("vary", Some("accept-encoding")),
        ("content-length", None),
        ("content-type", None),
        ("transfer-encoding", None),
    ] {
        assert_eq!(reply.header(name), value, "{name}");
    }
    let weak = format!("\"other\", W/{}", one.tag);
    assert_eq!(one.status(&[("If-None-Match", &weak)]), 304);
    assert_eq!(one.status(&[("If-None-Match", "*")]), 304);
    assert_eq!(one.status(&[("If-None-Match", "\"other\"")]), 200);
    assert_eq!(head(&one.served, PATH, &[("If-None-Match", &one.tag)]).status, 304);
    // The connection goes on after an answer without a body.
    let known = one.tag.clone();
    let mut connection = tests::http::Connection::open(one.served.address).unwrap();
    for _ in 0..3 {
        connection.send(&format!("GET {PATH}"), &[("If-None-Match", &known)], &[]).unwrap();
        assert_eq!(connection.receive().unwrap().status, 304);
    }
}

#[test]
fn the_packed_file_is_known_by_the_same_tag() {
    let one = One::new();
    let status = |accepted: &str, tag: &str| {
        one.status(&[("Accept-Encoding", accepted), ("If-None-Match", tag)])
    };
    let big = content().repeat(20);
    one._data.put("jp/stocks_daily/mother.db", &big);
    let tag = head(&one.served, PATH, &[]).header("etag").unwrap().to_owned();
    let weak = format!("W/{tag}");
    for known in [&tag, &weak] {
        let headers = [("Accept-Encoding", "gzip"), ("If-None-Match", known.as_str())];
        let reply = one.get(&headers);
        assert_eq!((reply.status, reply.header("etag")), (304, Some(known.as_str())));
        assert_eq!((reply.header("content-encoding"), reply.body.len()), (None, 0));
    }
    assert_eq!((status("zstd", &weak), status("identity", &weak)), (304, 304));
    assert_eq!(status("gzip", &one.tag), 200, "the tag of the file before");
}

#[test]
fn dates_count_where_there_is_no_tag() {
    let one = One::new();
    assert_eq!(one.status(&[("If-Modified-Since", CHANGED)]), 304);
    assert_eq!(one.status(&[("If-Modified-Since", "Wed, 15 Nov 2023 00:00:00 GMT")]), 304);
    assert_eq!(one.status(&[("If-Modified-Since", BEFORE)]), 200);
    assert_eq!(one.status(&[("If-Modified-Since", "2023-11-14")]), 200);
    let both = [("If-None-Match", "\"other\""), ("If-Modified-Since", CHANGED)];
    assert_eq!(one.status(&both), 200);
}

#[test]
fn a_file_that_is_not_the_expected_one_is_not_sent() {
    let one = One::new();
    assert_eq!(one.status(&[("If-Match", &one.tag)]), 200);
    assert_eq!(one.status(&[("If-Unmodified-Since", CHANGED)]), 200);
    for header in [("If-Match", "\"other\""), ("If-Unmodified-Since", BEFORE)] {
        let reply = one.get(&[header]);
        assert_eq!((reply.status, reply.text().as_str()), (412, "Precondition Failed"));
    }
}

#[test]
fn parts_are_sent_with_their_place() {
    let one = One::new();
    let content = content();
    for (asked, place, part) in [
        ("bytes=0-0", "bytes 0-0/1002", &content[..1]),
        ("bytes=100-199", "bytes 100-199/1002", &content[100..200]),
        ("bytes=1000-", "bytes 1000-1001/1002", &content[1_000..]),
        ("bytes=990-5000", "bytes 990-1001/1002", &content[990..]),
        ("bytes=-2", "bytes 1000-1001/1002", &content[1_000..]),
        ("bytes=0-", "bytes 0-1001/1002", &content[..]),
    ] {
        let reply = one.get(&[("Range", asked), ("Accept-Encoding", "zstd")]);
        assert_eq!((reply.status, reply.header("content-range")), (206, Some(place)), "{asked}");
        assert_eq!(reply.header("content-length"), Some(&*part.len().to_string()));
        assert_eq!(reply.header("etag"), Some(one.tag.as_str()));
        assert!(reply.body == part, "{asked}");
    }
    for asked in ["bytes=1002-", "bytes=-0", "bytes=9999999999999999999-"] {
        let reply = one.get(&[("Range", asked)]);
        assert_eq!((reply.status, reply.header("content-range")), (416, Some("bytes */1002")));
        assert_eq!(reply.text(), "Range Not Satisfiable");
    }
    for asked in ["bytes=0-1,5-6", "bytes=9-1", "bytes=-9999", "lines=0-1", "bytes=a-b", "0-1"] {
        let reply = one.get(&[("Range", asked)]);
        assert_eq!((reply.status, reply.header("content-range")), (200, None), "{asked}");
        assert!(reply.body == content, "{asked}");
    }
    let count = |status| {
        let name = format!("kumiki_ranking_file_requests_total{{status=\"{status}\"}}");
        one.served.metric(&name)
    };
    assert_eq!((count(206), count(416)), ("6".to_owned(), "3".to_owned()));
}

#[test]
fn a_part_of_another_state_is_the_whole() {
    let one = One::new();
    let part = ("Range", "bytes=500-");
    for (condition, status) in [
        (one.tag.as_str(), 206),
        (CHANGED, 200),
        ("\"other\"", 200),
        (&*format!("W/{}", one.tag), 200),
        (BEFORE, 200),
        ("nonsense", 200),
    ] {
        let reply = one.get(&[part, ("If-Range", condition)]);
        let length = if status == 206 { 502 } else { 1_002 };
        assert_eq!((reply.status, reply.body.len()), (status, length), "{condition}");
    }
    // A download that broke off in the middle of a publication starts again from the beginning.
    one._data.put("jp/stocks_daily/mother.db", &vec![b'x'; 2_000]);
    let reply = one.get(&[part, ("If-Range", &one.tag)]);
    assert_eq!((reply.status, reply.text()), (200, "x".repeat(2_000)));
}

#[test]
fn an_empty_file_has_no_parts() {
    let one = One::new();
    one._data.put("jp/stocks_daily/mother.db", b"");
    let status = |range: &str| one.status(&[("Range", range)]);
    assert_eq!((status("bytes=0-"), status("bytes=-5"), status("bytes=-0")), (416, 200, 416));
    let reply = one.get(&[("Accept-Encoding", "gzip")]);
    assert_eq!((reply.status, reply.header("content-length")), (200, Some("0")));
}
