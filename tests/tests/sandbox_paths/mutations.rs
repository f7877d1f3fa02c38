//! Components of Rust and C that are damaged at random: whatever is left of them is refused, or runs
//! within its limits, or fails as a fault of the guest. The host neither crashes nor hangs, on either
//! path. What one path refuses the other refuses, and where the program itself is whole both end alike;
//! a damaged program may see the order in which its allocator is called, which is each path's own.
//! `cargo xtask soak` takes ten times as many.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::strategy::{Action, LogLine, StrategyRuntime};
use domain::{InstrumentIx, OrderEvent, OrderEventKind, OrderStatus, Origin, Random, TsNanos};
use sandbox::{Artefact, CallPath, Limits, Sandbox, SandboxConfig, SandboxError};
use tests::{built, wat};
use wit_component::StringEncoding;

use crate::common::{instrument, one, split};

/// Mutations of one run; the soak takes more.
pub(crate) const MUTATIONS_ENV: &str = "KUMIKI_SOAK_MUTATIONS";
const MUTATIONS: u64 = 1_000;

/// What a guest did in its short life.
type Life = (Vec<Action>, Vec<LogLine>);

/// How far a damaged component came.
#[derive(Debug, PartialEq)]
pub(crate) enum Ending {
    /// It was refused.
    Refused,
    /// It failed as a guest does.
    Failed(String),
    /// It ran to the end.
    Ran(Life),
    /// The path that was asked for is not its.
    OtherPath,
}

impl Ending {
    /// Where it is counted.
    pub(crate) fn place(&self) -> usize {
        match self {
            Self::Refused => 0,
            Self::Failed(_) => 1,
            Self::Ran(_) => 2,
            Self::OtherPath => 3,
        }
    }
}

/// A sandbox that calls guests one way only.
pub(crate) fn sandbox(call_path: CallPath) -> Sandbox {
    let config = SandboxConfig { call_path: Some(call_path), ..SandboxConfig::default() };
    Sandbox::new(config).unwrap()
}

/// Little of everything, so that each is over soon.
fn limits() -> Limits {
    Limits {
        // A program in C begins with 16 MiB.
        memory_bytes: 32 << 20,
        fuel_per_event: 200_000,
        fuel_per_lifecycle_call: 2_000_000,
        result_bytes: 1 << 20,
        ..Limits::default()
    }
}

/// Sections with code or with words for people; the others say how it is put together.
const BULK: [u8; 2] = [0, 1];

/// Damages a component, as a seed says: in its wiring, or somewhere in it.
fn damaged(component: &[u8], random: &mut Random) -> Vec<u8> {
    let sections = wat::sections(component);
    let wiring: Vec<_> = sections.iter().filter(|(id, _)| !BULK.contains(id)).collect();
    let (_, chosen) = wiring[random.place(wiring.len())];
    let inside =
        |range: &Range<usize>, random: &mut Random| range.start + random.place(range.len());
    let mut bytes = component.to_vec();
    match random.below(10) {
        0 => bytes.truncate(random.place(component.len())),
        1 => {
            let (_, other) = &sections[random.place(sections.len())];
            let (first, second) =
                if chosen.start < other.start { (chosen, other) } else { (other, chosen) };
            if first != second {
                bytes = [
                    &component[..first.start],
                    &component[second.clone()],
                    &component[first.end..second.start],
                    &component[first.clone()],
                    &component[second.end..],
                ]
                .concat();
            }
        }
        2 => drop(bytes.drain(chosen.clone())),
        3 => {
            let again = component[chosen.clone()].to_vec();
            bytes.splice(chosen.end..chosen.end, again);
        }
        4..=6 => {
            let at = inside(&(0..component.len()), random);
            bytes[at] ^= 1 << random.below(8);
        }
        7 => bytes[inside(chosen, random)] = random.below(256) as u8,
        _ => flip(&mut bytes, chosen, random),
    }
    bytes
}

/// Turns one or two bits somewhere in a part of a component.
pub(crate) fn flip(bytes: &mut [u8], part: &Range<usize>, random: &mut Random) {
    for _ in 0..=random.below(2) {
        bytes[part.start + random.place(part.len())] ^= 1 << random.below(8);
    }
}

/// Whether the modules of a component are still in what became of it, byte for byte.
fn has_programs_of(whole: &[u8], bytes: &[u8]) -> bool {
    let mut modules = wat::sections(whole).into_iter().filter(|(id, _)| *id == 1);
    modules.all(|(_, range)| {
        let module = &whole[range];
        bytes.windows(module.len()).any(|window| window == module)
    })
}

fn accepted() -> OrderEvent {
    OrderEvent {
        ts_event: TsNanos::from_nanos(1_736_121_601_000_000_000),
        origin: Origin::Strategy,
        client_order_id: "O-1".into(),
        venue_order_id: Some("1".into()),
        instrument: InstrumentIx(0),
        side: domain::OrderSide::Buy,
        status: OrderStatus::Accepted,
        kind: OrderEventKind::Accepted,
    }
}

/// Makes a guest and drives it through a short life.
fn live(sandbox: &Sandbox, bytes: &[u8]) -> Ending {
    live_within(sandbox, bytes, limits())
}

/// The same, within other limits.
pub(crate) fn live_within(sandbox: &Sandbox, bytes: &[u8], limits: Limits) -> Ending {
    let module =
        Artefact::from_bytes("mutant", bytes.to_vec()).and_then(|one| sandbox.prepare(one));
    let module = match module {
        Ok(module) => module,
        Err(SandboxError::NotDirect { .. }) => return Ending::OtherPath,
        Err(_) => return Ending::Refused,
    };
    let Ok(mut instance) = module.instantiate(limits) else { return Ending::Refused };
    let mut run = || {
        instance.init(r#"{"fast": 2, "slow": 3}"#, &[instrument()])?;
        instance.set_portfolio(&domain::account::PortfolioView {
            positions: vec![domain::account::Position::default()],
            ..Default::default()
        });
        let mut actions = instance.start(TsNanos::from_nanos(1))?;
        for number in 1..=5 {
            actions.extend(one(&mut instance, number)?.actions);
        }
        actions.extend(instance.on_order_events(&[accepted()])?);
        actions.extend(instance.on_account_events(&[split(), split()])?);
        actions.extend(instance.stop(TsNanos::from_nanos(2))?);
        Ok::<_, Box<domain::fault::Fault>>((actions, instance.take_log()))
    };
    match run() {
        Ok(life) => Ending::Ran(life),
        Err(fault) => Ending::Failed(fault.kind.to_string()),
    }
}

/// Damages a component once for each seed and runs what is left on both paths, which `agree` where the
/// program inside has not changed.
fn survive(what: &str, agree: bool, mutations: u64, whole: impl Fn(&mut Random) -> Vec<u8>) {
    let (direct, general) = (sandbox(CallPath::Direct), sandbox(CallPath::General));
    // By the general path; and how many of them could be called directly.
    let (mut counts, mut direct_ones) = ([0_u32; 4], 0);
    for seed in 0..mutations {
        let mut random = Random::new(&[seed, 7]);
        let whole = whole(&mut random);
        let bytes = damaged(&whole, &mut random);
        let lives =
            catch_unwind(AssertUnwindSafe(|| (live(&direct, &bytes), live(&general, &bytes))));
        let (one, other) =
            lives.unwrap_or_else(|_| panic!("{what}: the host panicked at seed {seed}"));
        counts[other.place()] += 1;
        if one == Ending::OtherPath {
            continue;
        }
        let is_refused = |ending: &Ending| *ending == Ending::Refused;
        direct_ones += u32::from(!is_refused(&one));
        if !agree {
            continue;
        }
        assert_eq!(is_refused(&one), is_refused(&other), "{what}, seed {seed}: {one:?}, {other:?}");
        if has_programs_of(&whole, &bytes) {
            assert_eq!(one.place(), other.place(), "{what}, seed {seed}: {one:?}, {other:?}");
            assert!(!matches!(one, Ending::Ran(_)) || one == other, "{what}, seed {seed}");
        }
    }
    let [refused, failed, ran, _] = counts;
    println!(
        "{what}: {mutations} mutations: {refused} refused, {failed} failed, {ran} ran; \
         {direct_ones} of them directly too"
    );
    let met = counts[..3].iter().filter(|count| **count > 0).count();
    assert!(refused > 0 && (met == 3 || !agree), "{what}, {counts:?}: each ending is met");
    assert!(direct_ones > 0, "{what}: the direct path is met");
}

/// Mutations of each kind of component: half of all.
fn half() -> u64 {
    let asked = std::env::var(MUTATIONS_ENV).ok().map(|text| text.parse().unwrap());
    asked.unwrap_or(MUTATIONS) / 2
}

#[test]
fn damaged_components_of_rust_harm_nobody() {
    let read = |path| std::fs::read(path).unwrap();
    // The small ones are damaged more often: most time goes into compiling what is left.
    let small = wat::component(&wat::speaking(b"well", 4), StringEncoding::UTF8);
    let strategies =
        [read(built::test_guest("orders-every-tick")), read(built::test_guest("empty"))];
    survive("Rust", true, half(), |random| match random.below(2) {
        0 => strategies[random.place(2)].clone(),
        _ => small.clone(),
    });
}

#[test]
fn damaged_components_of_c_harm_nobody() {
    match built::in_language("sma-cross-c") {
        Ok(path) => {
            let whole = std::fs::read(path).unwrap();
            survive("C", false, half(), |_| whole.clone());
        }
        Err(reason) => println!("skipped: {reason}"),
    }
}
