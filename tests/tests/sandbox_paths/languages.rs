//! Components of componentize-py and componentize-js that are damaged anywhere, on every path that they
//! have. Damage to how they are put together is done by the thousand in the sandbox's own tests, where
//! their programs are compiled once; here half a minute goes into compiling what is left of each.

use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::Random;
use sandbox::{CallPath, Limits};
use tests::built;

use crate::mutations::{MUTATIONS_ENV, flip, live_within, sandbox};

/// Of each language; the soak takes 20.
const MUTATIONS: u64 = 1;
/// Of all mutations of a soak.
const SHARE: u64 = 500;

fn harms_nobody(name: &str) {
    let path = match built::in_language(name) {
        Ok(path) => path,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let whole = std::fs::read(path).unwrap();
    let asked = std::env::var(MUTATIONS_ENV).ok();
    let mutations = asked.map_or(MUTATIONS, |text| text.parse::<u64>().unwrap() / SHARE);
    let (direct, general) = (sandbox(CallPath::Direct), sandbox(CallPath::General));
    let mut counts = [0_u32; 4];
    for seed in 0..mutations {
        let mut bytes = whole.clone();
        flip(&mut bytes, &(0..whole.len()), &mut Random::new(&[seed, 12]));
        let live = |sandbox| live_within(sandbox, &bytes, Limits::default());
        let lives = catch_unwind(AssertUnwindSafe(|| [live(&direct), live(&general)]));
        let lives = lives.unwrap_or_else(|_| panic!("{name}: the host panicked at seed {seed}"));
        for ending in &lives {
            counts[ending.place()] += 1;
        }
    }
    let [refused, failed, ran, other] = counts;
    println!(
        "{name}: {mutations} mutations anywhere, on both paths: {refused} refused, {failed} failed, \
         {ran} ran, {other} have only the other path"
    );
}

#[test]
fn damaged_components_of_python_harm_nobody() {
    harms_nobody("sma-cross-python");
}

#[test]
fn damaged_components_of_javascript_harm_nobody() {
    harms_nobody("sma-cross-javascript");
}
