//! Files of a generation are the same behind every server that has it: the entity tag that a client keeps
//! counts at the primary and at each replica, after a restart too, for parts and packed files as well.

use tests::http::{self, Reply};
use tests::serving::Serving;

use crate::daily_market::generation_of;
use crate::replicas::{Primary, wait_for_error, wait_for_generation};

const MOTHER: &str = "/jp/stocks_daily/mother.db";
const ISSUE: &str = "/jp/stocks_daily/1300.db";

fn get(serving: &Serving, path: &str, headers: &[(&str, &str)]) -> Reply {
    http::request(serving.address, &format!("GET {path}"), headers, &[])
}

/// The entity tag of a file as it is.
fn tag(serving: &Serving, path: &str) -> String {
    let head = http::request(serving.address, &format!("HEAD {path}"), &[], &[]);
    assert_eq!(head.status, 200, "{path}");
    head.header("etag").unwrap().to_owned()
}

/// A client that has a file of one server asks another about it.
fn is_the_same_file(one: &Serving, other: &Serving, path: &str) {
    let kept = tag(one, path);
    let status = |headers: &[(&str, &str)]| get(other, path, headers).status;
    assert_eq!(status(&[("If-None-Match", &kept)]), 304, "{path}");
    assert_eq!(status(&[("If-Match", &kept)]), 200, "{path}");
    assert_eq!(status(&[("If-Match", "\"another\"")]), 412, "{path}");
    // A download that began there goes on here.
    let whole = get(one, path, &[]).body;
    let half = whole.len() / 2;
    let range = format!("bytes={half}-");
    let rest = get(other, path, &[("Range", &range), ("If-Range", &kept)]);
    assert_eq!(rest.status, 206, "{path}");
    assert!([&whole[..half], &rest.body].concat() == whole, "{path}");
    let packing = ("Accept-Encoding", "zstd");
    let packed = get(one, path, &[packing]).header("etag").unwrap().to_owned();
    assert_eq!(packed, format!("W/{kept}"));
    assert_eq!(status(&[packing, ("If-None-Match", &packed)]), 304, "{path}");
    assert_eq!(status(&[("If-None-Match", &packed)]), 304, "{path}");
}

#[test]
fn a_tag_counts_at_every_server_of_a_generation_and_after_a_restart() {
    let mut primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    let mut one = primary.replica("one", &[]);
    let two = primary.replica("two", &["--follow-issues"]);
    for replica in [&one, &two] {
        wait_for_generation(replica, &first);
    }
    for file in &first.files {
        let path = format!("/{}", file.path);
        let wanted = format!("\"{}\"", file.xxh128);
        let tags = [&primary.serving, &one, &two].map(|server| tag(server, &path));
        assert!(tags.iter().all(|tag| *tag == wanted), "{path}: {tags:?}, not {wanted}");
    }
    is_the_same_file(&primary.serving, &one, MOTHER);
    is_the_same_file(&one, &two, MOTHER);
    is_the_same_file(&two, &primary.serving, ISSUE);
    // What names the files tells their times on this disk, so it is another one everywhere.
    let names = [&primary.serving, &one].map(|server| get(server, "/jp/generation.json", &[]));
    assert!(names[0].body != names[1].body && names[0].header("etag") != names[1].header("etag"));

    let before = tag(&primary.serving, MOTHER);
    primary.kill_and_start();
    drop(one);
    one = primary.replica("one", &[]);
    wait_for_generation(&one, &first);
    assert_eq!([&primary.serving, &one].map(|server| tag(server, MOTHER)), [&*before, &*before]);

    let next = primary.publish(6);
    for replica in [&one, &two] {
        wait_for_generation(replica, &next);
        assert_ne!(tag(replica, MOTHER), before);
        let rest = get(replica, MOTHER, &[("Range", "bytes=100-"), ("If-Range", &before)]);
        assert_eq!(rest.status, 200, "the rest of another file was sent");
    }
    is_the_same_file(&primary.serving, &one, MOTHER);
}

#[test]
fn a_replica_says_why_it_has_no_database_of_an_issue() {
    let primary = Primary::start(5);
    let first = generation_of(primary.serving.address);
    let told = |server: &Serving, path: &str| {
        let reply = get(server, path, &[]);
        assert_eq!(reply.status, 404, "{path}");
        reply.text()
    };
    let one = primary.replica("one", &[]);
    let two = primary.replica("two", &["--follow-issues"]);
    for replica in [&one, &two] {
        wait_for_generation(replica, &first);
    }
    let board = "/jp/stocks_board/1300.db";
    // There at the primary or not: this one has none.
    for path in [ISSUE, "/jp/stocks_daily/9999.db"] {
        let text = told(&one, path);
        assert!(text.contains("runs without --follow-issues"), "{text}");
    }
    for replica in [&one, &two] {
        let text = told(replica, board);
        assert!(text.contains("replicas copy no board data"), "{text}");
        assert_eq!(told(replica, "/jp/stocks_daily/nothing.db"), "Not Found");
    }
    assert_eq!(told(&two, "/jp/stocks_daily/9999.db"), "Not Found");
    assert_eq!(told(&primary.serving, "/jp/stocks_daily/9999.db"), "Not Found");
    assert_eq!(told(&primary.serving, board), "Not Found");
    // Before the first copy too.
    primary.proxy.tamper(|_| tests::proxy::Tamper::Refuse);
    let three = primary.replica("three", &[]);
    wait_for_error(&three, "the primary:");
    assert!(told(&three, ISSUE).contains("--follow-issues"));
}
