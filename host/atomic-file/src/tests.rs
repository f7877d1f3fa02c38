//! Whole files or none, over a real folder.

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_written_file_takes_the_place_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("er").join("a.json");
    write(&path, b"old, and longer").unwrap();
    let mut reader = File::open(&path).unwrap();
    write(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(io::read_to_string(&mut reader).unwrap(), "old, and longer");
    assert_eq!(names(folder_of(&path)), ["a.json"]);
}

#[test]
fn what_is_not_committed_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut file = AtomicFile::create_in(folder.path()).unwrap();
    file.write_all(b"half").unwrap();
    assert!(names(folder.path())[0].starts_with(UNFINISHED_PREFIX));
    assert!(!path.exists());
    drop(file);
    assert_eq!(names(folder.path()), [""; 0]);
    // A file cannot take the place of a folder; nothing is left beside.
    fs::create_dir(&path).unwrap();
    fs::write(path.join("b"), "b").unwrap();
    write(&path, b"new").unwrap_err();
    assert_eq!(
        (names(folder.path()), fs::read(path.join("b")).unwrap()),
        (vec!["a".into()], b"b".into())
    );
}

#[test]
fn a_file_can_be_written_by_its_other_name() {
    let folder = tempfile::tempdir().unwrap();
    for unsynced in [false, true] {
        let path = folder.path().join(format!("a-{unsynced}"));
        let file = AtomicFile::create_in(folder.path()).unwrap();
        fs::remove_file(file.unfinished_path()).unwrap();
        fs::write(file.unfinished_path(), "by name").unwrap();
        if unsynced {
            file.commit_unsynced(&path).unwrap();
        } else {
            file.close().commit(&path).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"by name");
    }
}

#[test]
fn a_new_file_does_not_replace_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let make = |text: &str| {
        let mut file = AtomicFile::create_in(folder.path()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.commit_new(&path)
    };
    make("first").unwrap();
    let Err(CommitNewError::Exists(second)) = make("second") else { panic!("it was replaced") };
    assert_eq!(fs::read(second.unfinished_path()).unwrap(), b"second");
    drop(second);
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn a_finished_file_replaces_another() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("a"), folder.path().join("a.new"));
    fs::write(&old, "old").unwrap();
    fs::write(&new, "new").unwrap();
    replace(&new, &old).unwrap();
    sync_folder(folder.path()).unwrap();
    assert_eq!((fs::read(&old).unwrap(), new.exists()), (b"new".to_vec(), false));
    replace(&new, &old).unwrap_err();
    assert_eq!(fs::read(&old).unwrap(), b"new");
    remove_if_there(&old).unwrap();
    remove_if_there(&old).unwrap();
    remove_if_there(folder.path()).unwrap_err();
}

#[test]
fn names_that_windows_refuses() {
    let wrong = folder::wrong_name;
    for name in [
        "CON", "nul", "Aux.txt", "com1", "LPT9.log", "CON .x", "run.", "run ", "a:b", "a?",
        "x\u{7}",
    ] {
        let what = wrong(name).unwrap_or_else(|| panic!("{name}"));
        for path in [format!("runs/{name}"), format!("runs/{name}/run")] {
            assert_eq!(must_be_a_name(path.as_ref()).is_err(), cfg!(windows), "{what}");
        }
    }
    for name in ["run", "CONSOLE", "com", "com0", "com10", "nul-1", ".kumiki-x", "トヨタ", "a.b"]
    {
        assert_eq!(wrong(name), None, "{name}");
        must_be_a_name(Path::new(name)).unwrap();
    }
}

#[test]
fn paths_may_be_longer_than_the_usual_limit_of_windows() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(100);
    let path = folder.path().join(&long).join(&long).join(&long).join("run");
    write(&path.with_extension("json"), b"old").unwrap();
    write_private(&path.with_extension("json"), b"new").unwrap();
    let file = AtomicFile::create_in(folder_of(&path)).unwrap();
    file.commit_new(&path.with_extension("first")).unwrap();
    let whole = AtomicFolder::create_beside(&path).unwrap();
    fs::write(whole.unfinished_path().join("a"), "a").unwrap();
    whole.commit(anything).unwrap();
    assert_eq!(names(folder_of(&path)), ["run", "run.first", "run.json"]);
}

/// As a virus scanner holds each new file for a moment.
#[cfg(windows)]
#[test]
fn a_file_that_another_program_holds_is_waited_for() {
    use std::os::windows::fs::OpenOptionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "old").unwrap();
    let held = || File::options().read(true).share_mode(0).open(&path).unwrap();
    let scanner = held();
    let lets_go = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(scanner);
    });
    write(&path, b"new").unwrap();
    lets_go.join().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    // It does not wait for ever, and nothing has changed then.
    let scanner = held();
    let told = write(&path, b"newer").unwrap_err().to_string();
    assert!(told.contains("another program may have it open: close that, and try again"), "{told}");
    drop(scanner);
    assert_eq!(
        (fs::read(&path).unwrap(), names(folder.path())),
        (b"new".to_vec(), vec!["a".into()])
    );
}

#[cfg(unix)]
#[test]
fn a_private_file_is_for_its_user() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let mode = |file: AtomicFile, name: &str| {
        let path = folder.path().join(name);
        file.commit(&path).unwrap();
        path.metadata().unwrap().permissions().mode() & 0o777
    };
    let usual = folder.path().join("usual");
    fs::write(&usual, "").unwrap();
    let usual = usual.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(AtomicFile::create_in(folder.path()).unwrap(), "a"), usual);
    assert_eq!(mode(AtomicFile::create_private_in(folder.path()).unwrap(), "b"), 0o600);
    let key = folder.path().join("new").join("key");
    write_private(&key, b"key").unwrap();
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read(&key).unwrap(), b"key");
}

fn anything(_: &Path) -> io::Result<()> {
    Ok(())
}

#[test]
fn a_folder_is_whole_or_not_there() {
    let around = tempfile::tempdir().unwrap();
    let path = around.path().join("runs").join("a");
    for text in ["old", "new"] {
        let folder = AtomicFolder::create_beside(&path).unwrap();
        fs::write(folder.unfinished_path().join(text), text).unwrap();
        folder.commit(anything).unwrap();
        assert_eq!((names(&path), names(folder_of(&path))), (vec![text.into()], vec!["a".into()]));
    }
    let folder = AtomicFolder::create_beside(&path).unwrap();
    fs::write(folder.unfinished_path().join("half"), "half").unwrap();
    assert_eq!(names(&around.path().join("runs")).len(), 2);
    drop(folder);
    assert_eq!(
        (names(&around.path().join("runs")), names(&path)),
        (vec!["a".into()], vec!["new".into()])
    );
}

#[test]
fn a_folder_that_may_not_be_removed_keeps_its_name() {
    let around = tempfile::tempdir().unwrap();
    let path = around.path().join("run");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("old"), "old").unwrap();
    let folder = AtomicFolder::create_beside(&path).unwrap();
    fs::write(folder.unfinished_path().join("new"), "new").unwrap();
    let complete = folder.unfinished_path().to_owned();
    let no = |old: &Path| Err(io::Error::other(format!("{:?} is there", names(old))));
    let error = folder.commit(no).unwrap_err().to_string();
    let wanted = format!("[\"old\"] is there; the complete files are in {}", complete.display());
    assert_eq!(error, wanted);
    assert_eq!((names(&path), names(&complete)), (vec!["old".into()], vec!["new".into()]));
    // Nor does the next folder of this name remove what is complete.
    AtomicFolder::create_beside(&path).unwrap().commit(anything).unwrap();
    assert_eq!((names(&path), names(&complete)), (vec![], vec!["new".into()]));
}

#[test]
fn a_way_through_the_folder_itself_replaces_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    for (text, way) in [("one", path.clone()), ("two", path.join("..").join("run"))] {
        let whole = AtomicFolder::create_beside(&way).unwrap();
        fs::write(whole.unfinished_path().join("a"), text).unwrap();
        whole.commit(|_| Ok(())).unwrap();
        assert_eq!(fs::read_to_string(path.join("a")).unwrap(), text);
        assert_eq!(names(folder.path()), ["run"]);
    }
}

#[test]
fn what_has_no_name_cannot_be_replaced() {
    for path in [".", "..", "/", ""] {
        let error = AtomicFolder::create_beside(Path::new(path)).unwrap_err();
        assert!(error.to_string().contains("no name"), "{path}: {error}");
    }
    let around = tempfile::tempdir().unwrap();
    let folder = AtomicFolder::create_beside(&around.path().join("a/.")).unwrap();
    assert!(folder.unfinished_path().starts_with(around.path()));
    folder.commit(anything).unwrap();
    assert_eq!(names(around.path()), ["a"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_stays() {
    let around = tempfile::tempdir().unwrap();
    let (link, real) = (around.path().join("last"), around.path().join("a"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink("a", &link).unwrap();
    let folder = AtomicFolder::create_beside(&link).unwrap();
    fs::write(folder.unfinished_path().join("new"), "new").unwrap();
    folder.commit(anything).unwrap();
    assert!(link.is_symlink());
    assert_eq!(
        (names(&real), names(around.path())),
        (vec!["new".into()], vec!["a".into(), "last".into()])
    );
}

/// What a killed process leaves: the folder aside, and no lock.
fn leftover(path: &Path, owner: &str) -> std::path::PathBuf {
    let aside =
        Builder::new().prefix(UNFINISHED_PREFIX).tempdir_in(folder_of(path)).unwrap().keep();
    fs::write(aside.join("owner"), owner).unwrap();
    fs::create_dir(aside.join("new")).unwrap();
    fs::write(aside.join("new").join("half"), "half").unwrap();
    aside
}

#[test]
fn what_a_killed_process_left_is_removed_when_it_is_ours() {
    let around = tempfile::tempdir().unwrap();
    let path = around.path().join("a");
    fs::create_dir(&path).unwrap();
    let ours = leftover(&path, "a");
    let with_old = leftover(&path, "a");
    fs::create_dir(with_old.join("old")).unwrap();
    let of_another_name = leftover(&path, "b");
    let with_something_else = leftover(&path, "a");
    fs::write(with_something_else.join("thesis.txt"), "years of work").unwrap();
    let without_owner = leftover(&path, "a");
    fs::remove_file(without_owner.join("owner")).unwrap();
    let file = around.path().join(".kumiki-file");
    fs::write(&file, "a").unwrap();
    let in_use = AtomicFolder::create_beside(&path).unwrap();
    assert!(!ours.exists() && !with_old.exists());
    let second = AtomicFolder::create_beside(&path).unwrap();
    for kept in [&of_another_name, &with_something_else, &without_owner, &file, &path]
        .map(|path| path.exists())
    {
        assert!(kept);
    }
    assert!(in_use.unfinished_path().is_dir() && second.unfinished_path().is_dir());
}

/// Who is killed between making the folder aside and its owner leaves nothing that could tell whose it is.
#[cfg(unix)]
#[test]
fn only_what_is_empty_and_old_is_removed_without_an_owner() {
    use std::time::Duration;

    let around = tempfile::tempdir().unwrap();
    let now = around.path().metadata().unwrap().modified().unwrap();
    let make = |name: &str, inside: Option<&str>, age: u64| {
        let path = around.path().join(name);
        fs::create_dir(&path).unwrap();
        if let Some(inside) = inside {
            fs::write(path.join(inside), "").unwrap();
        }
        File::open(path).unwrap().set_modified(now - Duration::from_secs(age)).unwrap();
    };
    let (young, old) = (3_500, 3_700);
    make(".kumiki-aB3dE5", None, old);
    let others = [
        (".kumiki-youngX", None, young),
        (".kumiki-inUse1", Some("owner"), old),
        (".kumiki-inUse2", Some("thesis.txt"), old),
        (".kumiki-my_own", None, old),
        (".kumiki-longer1", None, old),
        ("folder", None, old),
    ];
    for (name, inside, age) in others {
        make(name, inside, age);
    }
    std::os::unix::fs::symlink("folder", around.path().join(".kumiki-linked")).unwrap();
    drop(AtomicFolder::create_beside(&around.path().join("a")).unwrap());
    let mut kept: Vec<&str> = others.iter().map(|(name, ..)| *name).collect();
    kept.push(".kumiki-linked");
    kept.sort_unstable();
    assert_eq!(names(around.path()), kept);
    assert_eq!(names(&around.path().join(".kumiki-inUse2")), ["thesis.txt"]);
}

/// A reader never finds the name without a folder.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[test]
fn a_folder_takes_the_place_of_another_in_one_step() {
    let around = tempfile::tempdir().unwrap();
    let path = around.path().join("a");
    fs::create_dir(&path).unwrap();
    for number in 0..20 {
        let folder = AtomicFolder::create_beside(&path).unwrap();
        fs::write(folder.unfinished_path().join(number.to_string()), "").unwrap();
        // Where a process is killed here, the one or the other has the name.
        folder.commit(|old| if path.is_dir() && old.is_dir() { Ok(()) } else { panic!() }).unwrap();
        assert_eq!(names(&path), vec![number.to_string()]);
    }
    assert_eq!(names(around.path()), ["a"]);
}

#[test]
fn a_folder_whose_successor_was_killed_gets_its_name_back() {
    for is_made_again in [false, true] {
        gets_its_name_back(is_made_again);
    }
}

/// Half of the old folder was removed, then the process was killed. The new one is moved away by its user: what is
/// left of the old one is not taken for a whole folder.
#[test]
fn half_a_removed_folder_never_comes_back() {
    let around = tempfile::tempdir().unwrap();
    let path = around.path().join("a");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("run"), "old").unwrap();
    let aside = leftover(&path, "a");
    whole_folder::replace_in_turn(&aside.join("new"), &path, &aside, anything).unwrap();
    assert_eq!(names(&path), ["half"]);
    fs::rename(&path, around.path().join("b")).unwrap();
    drop(AtomicFolder::create_beside(&path).unwrap());
    assert_eq!(names(around.path()), ["b"]);
}

/// As a spreadsheet holds a table.
#[cfg(windows)]
#[test]
fn a_folder_that_another_program_holds_is_replaced_or_told() {
    use std::os::windows::fs::OpenOptionsExt;
    let around = tempfile::tempdir().unwrap();
    let path = around.path().join("a");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("table"), "old").unwrap();
    let held = File::options().read(true).share_mode(0).open(path.join("table")).unwrap();
    let folder = AtomicFolder::create_beside(&path).unwrap();
    fs::write(folder.unfinished_path().join("table"), "new").unwrap();
    // Windows refuses the first step, to move the old one away; Wine does not.
    match folder.commit(anything) {
        Ok(()) => assert_eq!(fs::read(path.join("table")).unwrap(), b"new"),
        Err(error) => assert!(error.to_string().contains("the complete files are in"), "{error}"),
    }
    drop(held);
    let folder = AtomicFolder::create_beside(&path).unwrap();
    fs::write(folder.unfinished_path().join("table"), "newest").unwrap();
    folder.commit(anything).unwrap();
    assert_eq!(fs::read(path.join("table")).unwrap(), b"newest");
}

fn gets_its_name_back(is_made_again: bool) {
    let around = tempfile::tempdir().unwrap();
    let path = around.path().join("a");
    let aside = leftover(&path, "a");
    fs::create_dir(aside.join("old")).unwrap();
    fs::write(aside.join("old").join("run"), "whole").unwrap();
    if is_made_again {
        fs::create_dir(&path).unwrap();
    }
    drop(AtomicFolder::create_beside(&path).unwrap());
    assert_eq!((names(around.path()), names(&path)), (vec!["a".into()], vec!["run".into()]));
}
