//! Answers of `kumiki sql`: every type is shown, and no answer takes the machine's memory or cannot be
//! stopped.

#[cfg(unix)]
use std::io::Read;
#[cfg(unix)]
use std::process::{Command, Stdio};

use tests::user_folder::{Said, UserFolder};
#[cfg(unix)]
use tests::{built, signals};

/// A user with some daily prices.
fn user() -> UserFolder {
    let user = UserFolder::empty();
    user.good("data sample --daily --issues 3 --days 2 --prices data");
    user
}

fn said(user: &UserFolder, flags: &str, sql: &str) -> Said {
    let mut command = user.command(&format!("sql --prices data {flags}"));
    let output = command.arg(sql).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        errors: text(output.stderr),
    }
}

#[test]
fn every_type_is_shown() {
    let user = user();
    // A value, its text, and whether that is a number in JSON.
    let values = [
        ("TIMESTAMPTZ '2025-01-06 09:00:00+09'", "2025-01-06 00:00:00+00", false),
        ("TIMESTAMP '2025-01-06 09:00:00.5'", "2025-01-06 09:00:00.5", false),
        ("TIMESTAMP_NS '2025-01-06 09:00:00.123456789'", "2025-01-06 09:00:00.123456789", false),
        ("DATE '2025-01-06'", "2025-01-06", false),
        ("TIME '09:00:00'", "09:00:00", false),
        ("TIMETZ '09:00:00+09'", "09:00:00+09", false),
        ("INTERVAL 3 DAY + INTERVAL 1 HOUR", "3 days 01:00:00", false),
        ("[1, NULL, 3]", "[1, NULL, 3]", false),
        ("[TIMESTAMPTZ '2025-01-06 00:00:00+00']", "['2025-01-06 00:00:00+00']", false),
        ("{'a': 1, 'b': 'x'}", "{'a': 1, 'b': x}", false),
        ("MAP {'a': 1}", "{a=1}", false),
        ("[1, 2]::INTEGER[2]", "[1, 2]", false),
        ("1.50::DECIMAL(10, 2)", "1.50", true),
        (
            "12345678901234567890123456.7891::DECIMAL(38, 4)",
            "12345678901234567890123456.7891",
            true,
        ),
        (
            "170141183460469231731687303715884105727::HUGEINT",
            "170141183460469231731687303715884105727",
            true,
        ),
        ("18446744073709551615::UBIGINT", "18446744073709551615", true),
        ("-5::TINYINT", "-5", true),
        ("0.1::DOUBLE", "0.1", true),
        ("2501::DOUBLE", "2501.0", true),
        ("true", "true", false),
        (
            "UUID '6f2a2c1e-0000-4000-8000-000000000001'",
            "6f2a2c1e-0000-4000-8000-000000000001",
            false,
        ),
        ("'\\x00ab'::BLOB", "\\x00ab", false),
        ("'up'::ENUM ('up', 'down')", "up", false),
        ("'0101'::BIT", "0101", false),
        ("union_value(n := 2)", "2", false),
        ("'{\"a\": 1}'::JSON", "{\"a\": 1}", false),
        ("'日本'", "日本", false),
        ("''", "", false),
    ];
    let columns: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(index, (value, ..))| format!("{value} AS v{index}"))
        .collect();
    let sql = format!("SELECT {}", columns.join(", "));
    let table = said(&user, "", &sql);
    assert_eq!(table.code, 0, "{}", table.errors);
    let row = table.out.lines().nth(2).unwrap();
    for (value, text, _) in values {
        assert!(row.contains(text), "{value}: {text} is not in {row}");
    }
    let quoted = |text: &str| match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let csv: Vec<String> = values.iter().map(|(_, text, _)| quoted(text)).collect();
    let found = said(&user, "--format csv", &sql).out;
    assert_eq!(found.lines().nth(1), Some(csv.join(",").as_str()));
    // A number has all of its digits.
    let json = values.iter().enumerate().map(|(index, (_, text, is_number))| {
        let text =
            if *is_number { (*text).to_owned() } else { serde_json::json!(text).to_string() };
        format!("\"v{index}\":{text}")
    });
    let json = format!("{{{}}}\n", json.collect::<Vec<_>>().join(","));
    assert_eq!(said(&user, "--format jsonl", &sql).out, json);
    let now = said(&user, "--format csv", "SELECT now() AS now, NULL AS nothing");
    assert!(now.code == 0 && now.out.starts_with("now,nothing\n20"), "{}{}", now.out, now.errors);
}

/// The program in a shell that limits its memory, in KiB.
#[cfg(unix)]
fn limited(user: &UserFolder, kibibytes: u64, flags: &str, sql: &str) -> Command {
    let program = built::kumiki().display().to_string();
    let line = format!("ulimit -v {kibibytes}; exec '{program}' sql --prices data {flags} \"$0\"");
    let mut command = Command::new("sh");
    command.args(["-c", &line, sql]).current_dir(user.folder()).stdin(Stdio::null());
    command.env_remove("KUMIKI_LOG").env_remove("KUMIKI_LOG_FORMAT").env_remove("DATA_DIR");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A value of a gigabyte is not copied from one form into the next.
#[cfg(unix)]
#[test]
fn a_value_that_is_too_large_is_an_error() {
    let user = user();
    for flags in ["", "--format csv --memory 100", "--format jsonl --memory 100"] {
        let sql = "SELECT repeat(repeat('x', 100000), 10000) AS v";
        let output = limited(&user, 5_000_000, flags, sql).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags}: {errors}");
        assert!(errors.starts_with("error: ") && output.stdout.len() < 100, "{errors}");
        let too_much = "the statement needs more memory than the ";
        let too_long = "row 1 has 1000000000 bytes of values, at most 16777216 can be shown";
        assert!(errors.contains(too_much) || errors.contains(too_long), "{errors}");
        // The engine counts no values that it works on; the process has a limit of its own.
        assert!(errors.contains(too_much) || !cfg!(target_os = "linux"), "{errors}");
    }
    let just = said(&user, "--format csv", "SELECT repeat('x', 16777216) AS v");
    assert_eq!((just.code, just.out.len()), (0, 2 + 16_777_216 + 1), "{}", just.errors);
    let more = said(&user, "--format csv", "SELECT 'a' UNION ALL SELECT repeat('x', 16777217)");
    assert_eq!(more.code, 1);
    assert!(more.errors.contains("row 2 has 16777217 bytes of values"), "{}", more.errors);
}

/// Lines for programs are written as they come; a table is held, up to its limit.
#[cfg(unix)]
#[test]
fn answers_take_no_more_memory_than_they_may() {
    let user = user();
    let sql = "SELECT repeat('x', 10000) AS v FROM range(100000)";
    // The columns in which the engine hands 2,048 rows over count as its memory.
    let flags = "--limit 100000 --memory 300 --jobs 1";
    let mut child =
        limited(&user, 1_500_000, &format!("--format csv {flags}"), sql).spawn().unwrap();
    let (mut out, mut bytes) = (child.stdout.take().unwrap(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match out.read(&mut buffer).unwrap() {
            0 => break,
            count => bytes += count,
        }
    }
    let ended = child.wait_with_output().unwrap();
    let errors = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success() && errors.is_empty(), "{errors}");
    assert_eq!(bytes, 2 + 100_000 * 10_001);
    let output = limited(&user, 2_500_000, flags, sql).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("a table cannot hold them; --format csv"), "{errors}");
}

/// Lines for programs are all there; a table is cut, and says so.
#[test]
fn every_row_is_written_to_programs() {
    let user = user();
    let sql = "SELECT range AS n FROM range(1200000)";
    let csv = said(&user, "--format csv", sql);
    assert_eq!((csv.code, csv.errors.as_str()), (0, ""));
    assert_eq!((csv.out.lines().count(), csv.out.lines().last()), (1_200_001, Some("1199999")));
    let json = said(&user, "--format jsonl", sql);
    assert_eq!((json.code, json.errors.as_str()), (0, ""));
    let last = Some("{\"n\":1199999}");
    assert_eq!((json.out.lines().count(), json.out.lines().last()), (1_200_000, last));
    let table = said(&user, "", sql);
    let note =
        "note: there are more than these 10000 rows; --limit N shows more, --format csv or jsonl";
    assert!(table.code == 0 && table.errors.contains(note), "{}", table.errors);
    assert_eq!(table.out.lines().count(), 10_002);
    // Who wants fewer says so.
    let some = said(&user, "--format csv --limit 7", sql);
    assert_eq!(some.out.lines().count(), 8);
    assert!(some.errors.contains("more than these 7 rows"), "{}", some.errors);
}

/// Answers with many columns are there as a whole.
#[test]
fn an_answer_may_have_thousands_of_columns() {
    let user = user();
    // A statement has at most 100,000 bytes.
    let columns: Vec<String> = (0..8_000).map(|column| format!("{column} c{column}")).collect();
    let sql = format!("SELECT {}", columns.join(", "));
    let csv = said(&user, "--format csv", &sql);
    assert_eq!(csv.code, 0, "{}", csv.errors);
    for line in csv.out.lines() {
        assert_eq!(line.split(',').count(), 8_000);
        assert!(line.ends_with("7999"), "{}", csv.errors);
    }
    let table = said(&user, "", &sql);
    let row = table.out.lines().nth(2).unwrap();
    assert!(row.split_whitespace().map(str::to_owned).eq((0..8_000).map(|n: u32| n.to_string())));
}

/// Sends a signal to a statement that writes, to a reader that does not read, or that makes a table.
#[cfg(unix)]
#[test]
fn a_statement_ends_at_once_while_it_is_printed() {
    let user = user();
    let sql = "SELECT range AS a, range AS b, range AS c, repeat('x', 100) FROM range(1000000)";
    for (signal, flags) in
        [("TERM", "--format csv"), ("INT", "--format jsonl"), ("TERM", ""), ("HUP", "--format csv")]
    {
        let flags = format!("--limit 1000000 {flags}");
        let mut child = limited(&user, 4_000_000, &flags, sql).spawn().unwrap();
        if !flags.ends_with(' ') {
            // The first lines were written; the rest waits.
            child.stdout.as_mut().unwrap().read_exact(&mut [0; 1_000]).unwrap();
        } else {
            // In the middle of a table that takes seconds.
            signals::wait_for_handler(child.id(), signals::TERM);
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        let sent =
            Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        let ended = child.wait().unwrap();
        assert_eq!(
            (ended.code(), errors.as_str()),
            (Some(130), "interrupted\n"),
            "{signal} {flags}"
        );
    }
}

/// A signal to a prompt that waits ends it, and the terminal is as it was.
#[cfg(target_os = "linux")]
#[test]
fn a_prompt_ends_when_it_is_told_to() {
    use std::io::Write;

    use crate::keys::shown_until;
    if !Command::new("script").arg("--version").output().is_ok_and(|found| found.status.success()) {
        println!("skipped: there is no `script` to make a terminal with");
        return;
    }
    let user = user();
    let program = built::kumiki().display().to_string();
    let line = format!(
        "sh -c 'echo $$; exec \"{program}\" sql --prices data'; echo \"ended with $?\"; stty -a"
    );
    let mut command = Command::new("script");
    command.args(["--quiet", "--command", &line, "/dev/null"]).current_dir(user.folder());
    command.env("XDG_DATA_HOME", user.folder()).env("TERM", "xterm");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut shown, mut typed) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    // The prompt asks the terminal where the cursor is.
    let mut all = shown_until(&mut shown, "\u{1b}[6n");
    typed.write_all(b"\x1b[9;1R").unwrap();
    all += &shown_until(&mut shown, "> ");
    let process = all.lines().next().unwrap().trim();
    assert!(Command::new("kill").args(["-TERM", process]).status().unwrap().success(), "{all}");
    all += &shown_until(&mut shown, "no end");
    child.wait().unwrap();
    assert!(all.contains("ended with 130"), "{all}");
    assert!(
        all.contains(" echo ") && all.contains(" icanon ") && !all.contains("-icanon"),
        "{all}"
    );
}

#[test]
fn limits_that_cannot_be_are_refused() {
    let user = user();
    for flags in ["--memory 0", "--memory 15", "--limit 0", "--memory 99999999"] {
        let said = said(&user, flags, "SELECT 1");
        assert_eq!(said.code, 2, "{flags}");
        assert!(said.errors.contains("invalid value"), "{}", said.errors);
    }
    let least = said(&user, "--memory 16 --format csv", "SELECT count(*) FROM daily");
    assert_eq!((least.code, least.out.lines().nth(1)), (0, Some("5")), "{}", least.errors);
}
