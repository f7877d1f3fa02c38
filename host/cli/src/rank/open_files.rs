//! How many files the system lets the ranking service have open.

use ranking::service::{FILES_RESERVED, ServiceLimits};

/// Raises how many files may be open to what these limits ask for, as far as the system allows it. Where that is
/// less, the service has fewer connections, which is told, and keeps the files that it needs itself.
pub(super) fn within(limits: ServiceLimits) -> ServiceLimits {
    let Some(files) = raise(limits.open_files()) else { return limits };
    let connections = limits.connections_within(files);
    if connections < limits.connections {
        tracing::warn!(
            "the system allows {files} open files, and the service needs {FILES_RESERVED} of them itself; it takes at \
             most {connections} connections, not the {} of --max-connections; raise the limit of open files \
             (ulimit -n) to {}",
            limits.connections,
            limits.open_files()
        );
    }
    ServiceLimits { connections, ..limits }
}

/// Raises how many files this process may have open to so many, as far as the system allows it; how many it may
/// have then, none where there is no limit.
#[cfg(unix)]
fn raise(wanted: u64) -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let raised = maximum.map_or(wanted, |most| most.min(wanted));
    if raised <= current {
        return Some(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => Some(raised),
        Err(_) => Some(current),
    }
}

/// Windows has no such limit.
#[cfg(not(unix))]
const fn raise(_: u64) -> Option<u64> {
    None
}
