//! Trading days of a gateway that fails at random, in simulated time: the venue against a model of known state.
//!
//! A failure shows its seed. `KUMIKI_SOAK_GATEWAY_SEEDS` sets the number of seeds, and `KUMIKI_GATEWAY_SEED`
//! plays one alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test ends at the first surprise, and tells its seed"
)]

mod dialect;
mod model;
mod oracle;
mod world;

use std::collections::BTreeMap;

use world::World;

/// Seeds of the usual tests: a twentieth of `cargo xtask soak`.
const SEEDS: u64 = 20;

#[test]
fn no_outage_loses_doubles_or_leaks() {
    let count = std::env::var("KUMIKI_SOAK_GATEWAY_SEEDS").ok();
    let count = count.map_or(SEEDS, |text| text.parse().expect("a number of seeds"));
    let only = std::env::var("KUMIKI_GATEWAY_SEED").ok().map(|text| text.parse().unwrap());
    let seeds = only.map_or(0..count, |seed: u64| seed..seed + 1);
    let mut reached: BTreeMap<String, u64> = BTreeMap::new();
    for seed in seeds.clone() {
        let played = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            world.play();
            world.reached
        });
        match played {
            Ok(of_seed) => {
                for (what, times) in of_seed {
                    *reached.entry(what).or_default() += times;
                }
            }
            Err(why) => {
                eprintln!("seed {seed}: KUMIKI_GATEWAY_SEED={seed} plays it alone");
                std::panic::resume_unwind(why);
            }
        }
    }
    println!("{} seeds: {reached:?}", seeds.end - seeds.start);
    if seeds.end - seeds.start >= SEEDS {
        check_reach(&reached);
    }
}

/// Cases that the seeds must have reached; else they show nothing.
fn check_reach(reached: &BTreeMap<String, u64>) {
    for what in [
        "fault Down",
        "fault Restart",
        "fault EndToken",
        "fault DropPush",
        "fault HalfOpen",
        "fault Answers",
        "fault Deaf",
        "fault LogOut",
        "fault Foreign",
        "fault VolumeReset",
        "shown",
        "trade",
        "after_gap",
        "auction",
        "not shown",
        "Subscribed",
        "Unsubscribed",
        "DepthSnapshot",
        "SubscriptionEvicted",
        "VenueReady",
        "VenueLoginCancelled",
        "Error register_full",
        "Error gateway_error",
        "Error local_app_down",
        "Error token_expired",
        "Error rate_limited",
        "Error validation_error",
        "VenueError local_app_down",
        "VenueError token_expired",
        "VenueError login_failed",
        "state AppDown",
        "state TokenExpired",
    ] {
        assert!(reached.contains_key(what), "no seed came to `{what}`: {reached:?}");
    }
}
