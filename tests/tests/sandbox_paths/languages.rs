//! Damaged components of componentize-py and componentize-js. Their interpreters take half a minute to
//! compile, so most damage is done to hollow ones: the component with all its wiring, whose large
//! modules have only their types, imports and exports. Some is done anywhere in the whole file.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::Random;
use sandbox::{Limits, Sandbox, SandboxConfig};
use tests::{built, hollow, wat};

use crate::mutations::{Ending, MUTATIONS_ENV, flip, live_within};

/// Of each language; the soak takes twenty times as many.
const WIRING_MUTATIONS: u64 = 50;
const WHOLE_MUTATIONS: u64 = 1;
const SOAK_FACTOR: u64 = 20;
/// Sections of types, canonical functions, imports and exports.
const WIRING: [u8; 4] = [7, 8, 10, 11];

fn mutations(in_test: u64) -> u64 {
    let soaks = std::env::var_os(MUTATIONS_ENV).is_some();
    if soaks { in_test * SOAK_FACTOR } else { in_test }
}

/// Damages a component once for each seed, runs what is left, and counts how that ended: refused,
/// failed, ran.
fn survive(what: &str, whole: &[u8], parts: &[Range<usize>], mutations: u64) -> [u32; 3] {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let mut counts = [0; 3];
    for seed in 0..mutations {
        let mut random = Random::new(&[seed, 12]);
        let mut bytes = whole.to_vec();
        let part = &parts[random.place(parts.len())];
        match random.below(3) {
            0 => flip(&mut bytes, part, &mut random),
            // What lies beside: another index, option or type that may well be there.
            way => {
                let byte = &mut bytes[part.start + random.place(part.len())];
                *byte = if way == 1 { byte.wrapping_add(1) } else { byte.wrapping_sub(1) };
            }
        }
        let lived =
            catch_unwind(AssertUnwindSafe(|| live_within(&sandbox, &bytes, Limits::default())));
        match lived {
            Ok(Ending::Refused) => counts[0] += 1,
            Ok(Ending::Failed(_)) => counts[1] += 1,
            Ok(Ending::Ran(_)) => counts[2] += 1,
            Err(_) => panic!("{what}: the host panicked at seed {seed}"),
        }
    }
    let [refused, failed, ran] = counts;
    println!("{what}: {mutations} mutations: {refused} refused, {failed} failed, {ran} ran");
    counts
}

fn harms_nobody(name: &str) {
    let path = match built::in_language(name) {
        Ok(path) => path,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let whole = std::fs::read(path).unwrap();
    let hollow = hollow::component(&whole).unwrap();
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let unharmed = live_within(&sandbox, &hollow, Limits::default());
    assert!(unharmed != Ending::Refused, "the hollow component is one");
    let sections = wat::sections(&hollow);
    let wiring = sections.into_iter().filter(|(id, _)| WIRING.contains(id));
    let wiring: Vec<Range<usize>> = wiring.map(|(_, range)| range).collect();
    let [refused, ..] = survive(name, &hollow, &wiring, mutations(WIRING_MUTATIONS));
    assert!(refused > 0, "some damage is damage");
    let anywhere = 0..whole.len();
    survive(name, &whole, &[anywhere], mutations(WHOLE_MUTATIONS));
}

#[test]
fn damaged_components_of_python_harm_nobody() {
    harms_nobody("sma-cross-python");
}

#[test]
fn damaged_components_of_javascript_harm_nobody() {
    harms_nobody("sma-cross-javascript");
}
