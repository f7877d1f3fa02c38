//! What is published together, found again, and told from anything else.

use std::fs;
use std::fs::File;

use marketdata::sample::daily::DailySample;

use super::*;
use crate::sample::make_daily_sample;

fn sample() -> (tempfile::TempDir, DataDir) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    make_daily_sample(&data, &DailySample { codes: 3, days: 5, ..DailySample::default() }).unwrap();
    (folder, data)
}

fn codes(codes: &[&str]) -> Vec<String> {
    codes.iter().map(|code| (*code).to_owned()).collect()
}

#[test]
fn a_sample_is_a_generation_and_the_same_content_has_the_same_name() {
    let (_folder, data) = sample();
    let first = Generation::load(&data).unwrap().unwrap();
    first.check_files(&data).unwrap();
    let paths: Vec<&str> = first.all_files().map(|file| file.path.as_str()).collect();
    assert_eq!(paths.first().copied(), paths.iter().min().copied());
    for path in ["jp/stocks_daily/mother.db", "rank/rank-1.grid"] {
        assert!(paths.contains(&path), "{paths:?}");
    }
    let bytes = fs::read(data.generation_file()).unwrap();
    let modified = |data: &DataDir| modified_us(&fs::metadata(data.generation_file()).unwrap());
    let written = modified(&data);
    assert_eq!(publish_generation(&data, Issues::AsBefore, &[]).unwrap(), first);
    assert_eq!((fs::read(data.generation_file()).unwrap(), modified(&data)), (bytes, written));
    // Another content, another name; and back.
    let daily = data.jp_folder().join("stocks_daily");
    fs::write(daily.join("1301.db"), "one").unwrap();
    let with = publish_generation(&data, Issues::Of(&codes(&["1301"])), &[]).unwrap();
    assert_eq!((with.issues.count, with.generation == first.generation), (1, false));
    assert_eq!(Generation::load(&data).unwrap().unwrap(), with);
    // While the rows are the same, the issues' files stay with them.
    assert_eq!(publish_generation(&data, Issues::AsBefore, &[]).unwrap(), with);
    let without = publish_generation(&data, Issues::Of(&[]), &[]).unwrap();
    assert_eq!(without.generation, first.generation);
}

#[test]
fn a_file_is_taken_over_with_the_bytes_that_it_had_and_no_others() {
    let (_folder, data) = sample();
    let daily = data.jp_folder().join("stocks_daily");
    for code in ["1301", "1302"] {
        fs::write(daily.join(format!("{code}.db")), code).unwrap();
    }
    let both = codes(&["1301", "1302"]);
    let issues = Issues::Of(&both);
    let first = publish_generation(&data, issues, &[]).unwrap();
    let path = daily.join("1302.db");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    // With another time, and with the same.
    for keeps_time in [false, true] {
        fs::write(&path, "1303").unwrap();
        if keeps_time {
            File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        }
        let error = publish_generation(&data, issues, &[]).unwrap_err();
        assert!(matches!(&error, GenerationError::Differs { .. }), "{error}");
        let (text, digest) = (error.to_string(), digest_of(&path).unwrap().1);
        let expected = &first.file("jp/stocks_daily/1302.db").unwrap().xxh128;
        assert!(text.starts_with("jp/stocks_daily/1302.db has 4 bytes"), "{text}");
        assert!(text.contains(&digest) && text.contains(expected), "{text}");
        assert_eq!(Generation::load(&data).unwrap().unwrap(), first);
    }
    // Whoever has written it says so.
    let name = GenerationFileName::issue("1302").unwrap();
    let written = PublishedFile::read(&path, &name).unwrap();
    let next = publish_generation(&data, issues, std::slice::from_ref(&written)).unwrap();
    assert_eq!(next.file("jp/stocks_daily/1302.db"), Some(&written));
    // What it says is held against the file too.
    fs::write(&path, "1304").unwrap();
    let error = publish_generation(&data, issues, std::slice::from_ref(&written)).unwrap_err();
    assert!(matches!(&error, GenerationError::Differs { .. }), "{error}");
    let error = next.check_files(&data).unwrap_err().to_string();
    assert!(error.contains("1302.db is not of generation"), "{error}");
    // Only touched: noted anew.
    fs::write(&path, "1303").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let touched = publish_generation(&data, issues, &[]).unwrap();
    assert_eq!(touched.generation, next.generation);
    touched.check_files(&data).unwrap();
}

#[test]
fn an_owners_file_is_taken_as_it_is_where_its_time_is_another() {
    let (_folder, data) = sample();
    let path = data.listed_info();
    let name = GenerationFileName::Listed;
    assert_eq!(changed_by_owner(&data, &name).unwrap(), None);
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(modified + std::time::Duration::from_secs(1)).unwrap();
    let found = changed_by_owner(&data, &name).unwrap().unwrap();
    assert_eq!((found.bytes, found.xxh128), digest_of(&path).unwrap());
    file.set_modified(modified).unwrap();
    assert_eq!(changed_by_owner(&data, &name).unwrap(), None, "a disk has lost it");
    let error = publish_generation(&data, Issues::AsBefore, &[]).unwrap_err().to_string();
    assert!(error.starts_with("jp/listed_info.db has "), "{error}");
    fs::remove_file(&path).unwrap();
    assert_eq!(changed_by_owner(&data, &name).unwrap(), None);
}

#[test]
fn what_no_publication_wrote_is_not_a_generation() {
    let (_folder, data) = sample();
    let text = fs::read_to_string(data.generation_file()).unwrap();
    let good: Generation = serde_json::from_str(&text).unwrap();
    let changed = |change: &dyn Fn(&mut Generation)| {
        let mut changed = good.clone();
        change(&mut changed);
        changed.generation = changed.name();
        Generation::from_bytes(&serde_json::to_vec(&changed).unwrap()).unwrap_err()
    };
    let file = |path: &str| PublishedFile { path: path.to_owned(), ..good.files[0].clone() };
    for path in [
        "../jp/stocks_daily/mother.db",
        "/etc/passwd",
        "jp/../../x.db",
        "jp/stocks_daily/../x.db",
        "jp\\listed_info.db",
        "jp/stocks_daily/COM1.db",
        "jp/stocks_daily/7203.db",
        "rank/rank-01.grid",
        "rank/rank-1.db",
        "rank/rank-1.exe",
        "rank/rank-2.grid",
        "rank/CURRENT",
        "work/mother.db",
        "",
    ] {
        let what = changed(&|one| {
            one.files.push(file(path));
            one.files.sort_by(|a, b| a.path.cmp(&b.path));
        });
        assert!(what.contains("is no file of a generation"), "{path}: {what}");
    }
    assert!(changed(&|one| one.files.push(file("a"))).contains("not in order"));
    assert!(changed(&|one| one.files.extend(one.files.last().cloned())).contains("there twice"));
    assert!(
        changed(&|one| one.files.retain(|one| !one.path.ends_with("mother.db")))
            .contains("is not in it")
    );
    assert!(changed(&|one| one.files[0].xxh128 = "0x".into()).contains("no file of"));
    assert!(changed(&|one| one.files[0].bytes = 0).contains("no file of"));
    assert!(changed(&|one| one.version = 2).contains("version 2"));
    assert!(changed(&|one| one.issues.count = 7).contains("digest of the issues"));
    let renamed = text.replace(&good.generation, "0123456789abcdef0123456789abcdef");
    let error = Generation::from_bytes(renamed.as_bytes()).unwrap_err();
    assert!(error.contains("not that of its content"), "{error}");
    assert!(Generation::from_bytes(&text.as_bytes()[..20]).unwrap_err().contains("EOF"));
    let long = vec![b' '; usize::try_from(GENERATION_BYTES_MAX).unwrap() + 1];
    assert!(Generation::from_bytes(&long).unwrap_err().contains("more than"));
}

#[test]
fn a_reader_takes_up_the_next_one() {
    let (_folder, data) = sample();
    let reader = GenerationReader::new(data.clone());
    let first = reader.current().unwrap();
    assert!(std::sync::Arc::ptr_eq(&reader.current().unwrap().generation, &first.generation));
    fs::write(data.jp_folder().join("stocks_daily").join("1301.db"), "one").unwrap();
    let next = publish_generation(&data, Issues::Of(&codes(&["1301"])), &[]).unwrap();
    assert_eq!(*reader.current().unwrap().generation, next);
    fs::write(data.generation_file(), "{}").unwrap();
    assert!(reader.current().is_none());
    fs::remove_file(data.generation_file()).unwrap();
    assert!(reader.current().is_none());
}

#[test]
fn paths_have_one_spelling() {
    for path in [
        "jp/stocks_daily/mother.db",
        "jp/listed_info.db",
        "rank/rank-7.grid",
        "rank/rank-18446744073709551615.grid",
        "jp/stocks_daily/130A.db",
        "jp/stocks_daily/25935.db",
    ] {
        let name = GenerationFileName::parse(path).unwrap();
        assert_eq!(name.path(), path);
        let data = DataDir::new("data");
        assert_eq!(name.on_disk(&data), data.path().join(path));
    }
    for path in ["rank/rank-+7.grid", "rank/rank-7", "jp/stocks_daily/130a.db", "jp/x.db"] {
        assert_eq!(GenerationFileName::parse(path), None, "{path}");
    }
}
