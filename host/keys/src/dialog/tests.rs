//! Passwords asked for by scripts that speak, hang, or say something else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;

const QUESTION: Question = Question {
    title: "Kumiki",
    description: "API password of the local broker's gateway",
    prompt: "password",
};
/// Long enough for a script on a machine that is busy.
const LONG: Duration = Duration::from_secs(60);
/// Too short for anybody, long enough for a script to begin.
const SHORT: Duration = Duration::from_millis(200);
const SECRET: &str = "marker 100% 4711";

/// A pinentry program that answers GETPIN so.
fn fake(folder: &Path, getpin: &str) -> OsString {
    let path = folder.join("fake-pinentry");
    let script = format!(
        "#!/bin/sh\necho 'OK Pleased to meet you'\nwhile read -r line; do\n  echo \"$line\" >> \"{}\"\n\
         case \"$line\" in\n  GETPIN) {getpin};;\n  BYE) echo 'OK closing'; exit 0;;\n  *) echo OK;;\n  esac\ndone\n",
        folder.join("heard").display()
    );
    write_program(&path, &script);
    path.into()
}

fn write_program(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
}

fn asked(getpin: &str) -> (Answer, String) {
    let folder = tempfile::tempdir().unwrap();
    let dialog = Dialog::new(Some(fake(folder.path(), getpin)), false, LONG);
    let answered = dialog.ask(QUESTION);
    let heard = fs::read_to_string(folder.path().join("heard")).unwrap();
    (answered, heard)
}

#[test]
fn a_password_is_asked_for_in_a_window() {
    let (answered, heard) = asked("echo 'D marker 100%25 4711'; echo OK");
    assert_eq!(answered.unwrap().expose_secret(), SECRET);
    let description = format!("SETDESC {}", QUESTION.description);
    for line in ["SETTITLE Kumiki", &description, "SETPROMPT password", "SETTIMEOUT 60"] {
        assert!(heard.contains(line), "{line}: {heard}");
    }
}

#[test]
fn who_does_not_want_to_gives_none() {
    for getpin in ["echo 'ERR 83886179 Operation cancelled <Pinentry>'", "echo OK"] {
        assert_eq!(asked(getpin).0.unwrap_err(), NoAnswer::Cancelled, "{getpin}");
    }
    let (answered, _) = asked("echo 'ERR 83886142 Timeout <Pinentry>'");
    assert_eq!(answered.unwrap_err(), NoAnswer::Late(LONG));
}

#[test]
fn a_program_that_is_none_is_told_without_what_it_said() {
    let told = |getpin: &str| asked(getpin).0.unwrap_err().to_string();
    let text = told("echo 'D marker 4711 is no line of the protocol'; echo 'marker'");
    let words = "fake-pinentry\" that KUMIKI_PINENTRY names does not speak the protocol";
    assert!(text.contains(words) && !text.contains("marker"), "{text}");
    let text = told("echo 'ERR 83886254 no display for marker'");
    let words = "refused with code 174 of libgpg-error";
    assert!(text.contains(words) && !text.contains("marker"), "{text}");
    let text = told(&format!("echo 'D {}'; echo OK", "x".repeat(KEY_BYTES_MAX + 1)));
    assert!(text.contains("more than 2048 bytes"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let ends = folder.path().join("ends");
    write_program(&ends, "#!/bin/sh\nexit 0\n");
    for (program, why) in [
        (ends.into_os_string(), "ended before it had an answer"),
        ("/nowhere/pinentry".into(), "\"/nowhere/pinentry\" that KUMIKI_PINENTRY names cannot"),
    ] {
        let text = Dialog::new(Some(program), false, LONG).ask(QUESTION).unwrap_err().to_string();
        assert!(text.contains(why), "{text}");
        for words in ["this command does not ask on the terminal", "name one with KUMIKI_PINENTRY"]
        {
            assert!(text.contains(words), "{text}");
        }
    }
}

#[test]
fn a_program_that_hangs_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let hangs = fake(folder.path(), &hang(folder.path(), "exec sleep 600"));
    let dialog = Dialog::new(Some(hangs), false, SHORT);
    for number in 0..2 * DIALOGS_LEFT_MAX {
        while dialog.0.open.load(Ordering::SeqCst) > 0 {
            thread::sleep(LOOK);
        }
        assert_eq!(dialog.ask(QUESTION).unwrap_err(), NoAnswer::Late(SHORT), "{number}");
    }
    assert!(dialog.0.waiting().is_empty(), "nobody waits any more");
    assert_eq!(alive(folder.path()), 0);
}

#[test]
fn a_program_that_asks_not_to_be_ended_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let getpin = hang(folder.path(), "trap '' TERM; while :; do sleep 0.05; done");
    let dialog = Dialog::new(Some(fake(folder.path(), &getpin)), false, LONG);
    closed_while_it_asks(&dialog, folder.path());
    assert_eq!(alive(folder.path()), 0);
}

/// A program that was ended may have started another one, which holds its output.
#[test]
fn dialogs_that_do_not_end_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let starts = format!("sleep 600 & echo $! >> \"{}\"; wait", numbers(folder.path()).display());
    let dialog = Dialog::new(Some(fake(folder.path(), &starts)), false, SHORT);
    // One whose script was not so far yet does end.
    let told = (0..20 * DIALOGS_LEFT_MAX).map(|_| dialog.ask(QUESTION).unwrap_err());
    let told: Vec<NoAnswer> = told.take_while(|why| *why == NoAnswer::Late(SHORT)).collect();
    assert!(told.len() >= DIALOGS_LEFT_MAX, "{told:?}");
    assert_eq!(dialog.ask(QUESTION).unwrap_err(), NoAnswer::TooMany);
    for number in fs::read_to_string(numbers(folder.path())).unwrap().lines() {
        assert!(Command::new("kill").arg(number).status().unwrap().success());
    }
}

#[test]
fn the_end_of_the_program_waits_for_no_dialog() {
    let folder = tempfile::tempdir().unwrap();
    let hangs = fake(folder.path(), &hang(folder.path(), "exec sleep 600"));
    let dialog = Dialog::new(Some(hangs), false, LONG);
    closed_while_it_asks(&dialog, folder.path());
    assert_eq!(alive(folder.path()), 0, "no program is left");
    let again = dialog.ask(QUESTION).unwrap_err();
    assert_eq!(again, NoAnswer::Closed, "and nobody is asked again");
}

#[test]
fn a_program_that_stays_after_its_answer_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let stays = hang(folder.path(), "echo 'D marker'; echo OK; exec sleep 600");
    let dialog = Dialog::new(Some(fake(folder.path(), &stays)), false, LONG);
    assert_eq!(dialog.ask(QUESTION).unwrap().expose_secret(), "marker");
    assert_eq!(alive(folder.path()), 0);
}

/// Closes the dialog once its program hangs.
fn closed_while_it_asks(dialog: &Dialog, folder: &Path) {
    let asking = dialog.clone();
    let asked = thread::spawn(move || asking.ask(QUESTION));
    while !fs::read_to_string(numbers(folder)).unwrap_or_default().ends_with('\n') {
        thread::sleep(Duration::from_millis(5));
    }
    dialog.close();
    assert_eq!(asked.join().unwrap().unwrap_err(), NoAnswer::Closed);
}

/// What a script does that tells its process number before.
fn hang(folder: &Path, and: &str) -> String {
    format!("echo $$ >> \"{}\"; {and}", numbers(folder).display())
}

fn numbers(folder: &Path) -> std::path::PathBuf {
    folder.join("numbers")
}

/// How many of the scripts that told their process number have not ended.
fn alive(folder: &Path) -> usize {
    let numbers = fs::read_to_string(numbers(folder)).unwrap_or_default();
    let lives = |number: &&str| {
        let asked = Command::new("kill").args(["-0", *number]).stderr(Stdio::null()).status();
        asked.unwrap().success()
    };
    numbers.lines().filter(lives).count()
}

#[test]
fn an_error_and_an_answer_show_no_password() {
    let (answered, _) = asked("echo 'D marker'; echo OK");
    assert!(!format!("{answered:?}").contains("marker"), "{answered:?}");
}
