//! What the machine has left: memory and disk, where the system tells it.

use std::env::consts::OS;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process;

/// What Windows is asked; it answers in kilobytes.
const WINDOWS_QUESTION: &str = "(Get-CimInstance Win32_OperatingSystem).FreePhysicalMemory";

/// Bytes of memory that programs may still take; none where the system does not tell. macOS tells what
/// there is in all, because it keeps next to nothing free.
pub(crate) fn free_memory() -> Option<u64> {
    let answer = |command: &mut Command| {
        let answer = process::ask(command);
        answer.ok.then_some(answer.out)
    };
    match OS {
        "linux" => available(&fs::read_to_string("/proc/meminfo").ok()?),
        "macos" => answer(Command::new("sysctl").args(["-n", "hw.memsize"]))?.trim().parse().ok(),
        "windows" => {
            let mut shell = Command::new("powershell");
            let told = answer(shell.args(["-NoProfile", "-Command", WINDOWS_QUESTION]))?;
            told.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
        }
        _ => None,
    }
}

/// Bytes that may still be written below a folder, which need not be there yet; none where the system
/// does not tell.
pub(crate) fn free_disk(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.is_dir())?;
    fs4::available_space(there).ok()
}

/// The available memory of `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_what_the_system_tells() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   12000000 kB\n";
        assert_eq!(available(text), Some(12_288_000_000));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(available("MemAvailable: much\n"), None);
        if OS == "linux" {
            assert!(free_memory().is_some_and(|bytes| bytes > 0));
        }
    }

    #[test]
    fn the_disk_of_a_folder_that_is_not_there_yet_is_that_of_the_one_above() {
        let folder = tempfile::tempdir().expect("a folder");
        let free = free_disk(&folder.path().join("not").join("there")).expect("it is told");
        assert!(free > 0);
    }
}
