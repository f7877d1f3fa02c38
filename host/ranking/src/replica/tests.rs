//! Whose folder it is, what is removed, and who is nobody to follow. The rest is tested with programs.

use std::fs;

use super::fetch::is_rest;
use super::*;

fn empty() -> (tempfile::TempDir, DataDir) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    (folder, data)
}

#[test]
fn a_folder_is_a_replicas_or_nobodys() {
    let refusal = |data: &DataDir| ReplicaFolder::take(data).unwrap_err().to_string();
    let (_job, data) = empty();
    fs::create_dir_all(data.work_folder()).unwrap();
    assert!(refusal(&data).contains("that of an update job"));
    assert!(!data.replica_folder().exists());
    for folder in ["jp", "rank"] {
        let (_others, data) = empty();
        fs::create_dir_all(data.path().join(folder)).unwrap();
        assert!(refusal(&data).contains("no replica has copied"));
    }
    let (_own, data) = empty();
    let first = ReplicaFolder::take(&data).unwrap();
    assert!(refusal(&data).contains("another replica"));
    drop(first);
    fs::create_dir_all(data.jp_folder()).unwrap();
    drop(ReplicaFolder::take(&data).unwrap());
    for notes in ["", "[", "[\"../x\"]", "[\"work/mother.db\"]", "{}"] {
        fs::write(data.replica_folder().join("placed.json"), notes).unwrap();
        assert!(refusal(&data).contains("placed.json"), "{notes}");
    }
    fs::write(data.replica_folder().join("placed.json"), "[\"jp/listed_info.db\"]").unwrap();
    drop(ReplicaFolder::take(&data).unwrap());
}

#[test]
fn a_server_is_not_its_own_primary() {
    let leads =
        |url: &str, address: &str| leads_to(&Url::parse(url).unwrap(), address.parse().unwrap());
    for (url, address) in [
        ("http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("http://localhost:8080/", "127.0.0.1:8080"),
        ("http://127.0.0.1:8080", "0.0.0.0:8080"),
        ("http://[::1]:8080/", "[::]:8080"),
        ("https://192.168.1.7", "192.168.1.7:443"),
    ] {
        assert!(leads(url, address), "{url} {address}");
    }
    for (url, address) in [
        ("http://127.0.0.1:8081", "127.0.0.1:8080"),
        ("http://127.0.0.2:8080", "127.0.0.1:8080"),
        ("https://rank.example:8080", "0.0.0.0:8080"),
    ] {
        assert!(!leads(url, address), "{url} {address}");
    }
    let other = "0123456789abcdef";
    let chain = servers(Some(other));
    assert!(matches!(checked_servers(&chain), Err(ReplicaError::Itself)));
    assert_eq!(checked_servers(other).unwrap(), other);
    assert_eq!(checked_servers("").unwrap(), "");
    let many = [other; SERVERS_MAX + 1].join(",");
    assert!(checked_servers(&many).unwrap_err().to_string().contains("too many servers"));
    checked_servers(&many[..16 * SERVERS_MAX + SERVERS_MAX - 1]).unwrap();
    assert!(checked_servers("<script>").is_err());
}

#[test]
fn only_the_rest_of_the_same_file_is_taken() {
    assert!(is_rest("bytes 5-9/10", 5, 10));
    for other in ["bytes 5-9/11", "bytes 4-9/10", "bytes 5-8/10", "bytes 5-9/*", "", "bytes */10"] {
        assert!(!is_rest(other, 5, 10), "{other}");
    }
}
