//! Installs programs with apt-get, on Debian and its like, as root.

use std::path::Path;
use std::process::Command;

use crate::environment::told;
use crate::process;

/// Whether we are root.
pub(crate) fn is_root() -> bool {
    process::ask(Command::new("id").arg("-u")).out.trim() == "0"
}

/// Installs packages.
///
/// # Errors
/// Why they cannot be installed.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let names = packages.join(" ");
    if !Path::new("/etc/debian_version").is_file() {
        return Err(format!("{names} is installed by itself on Debian and its like only"));
    }
    if !is_root() {
        return Err(format!("only root can install it: `apt-get install {names}`"));
    }
    eprintln!("installing {names}");
    // The lists of a fresh machine are empty or old.
    told("`apt-get update` failed", &mut apt_get(&["update"]))?;
    let mut install = apt_get(&["install", "--no-install-recommends"]);
    told(&format!("`apt-get install {names}` failed"), install.args(packages))
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(["--quiet", "--yes"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}
