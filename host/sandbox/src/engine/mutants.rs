//! Damaged components of componentize-py and componentize-js, on every path that they have. Damaged is
//! what puts them together: types, canonical functions, imports and exports; their programs are whole,
//! run as they are, and are compiled once, because an interpreter takes half a minute.

mod light;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use domain::account::{PortfolioView, Position};
use domain::adjustment::Adjustment;
use domain::fault::Fault;
use domain::market::{Trade, Window};
use domain::strategy::{Action, LogLine, StrategyRuntime};
use domain::{
    AccountEvent, AccountEventKind, Instrument, InstrumentIx, Money, OrderEvent, OrderEventKind,
    OrderStatus, Price, Quantity, Random, Split, TickTable, TsNanos,
};
use wasmtime::component::Component;

use super::*;
use crate::cache::Code;
use crate::compiler;
use light::Program;

/// Mutations of the soak in all; `xtask` sets it. A tenth of them is for each language here.
const MUTATIONS_ENV: &str = "KUMIKI_SOAK_MUTATIONS";
/// Of each language in an ordinary test.
const MUTATIONS: u64 = 50;
/// Sections of types, canonical functions, imports and exports.
const WIRING: [u8; 4] = [7, 8, 10, 11];

/// How far a damaged component came.
#[derive(Debug, PartialEq)]
enum Ending {
    /// It was refused.
    Refused,
    /// The path that was asked for is not its.
    OtherPath,
    /// It failed as a guest does.
    Failed(String),
    /// It ran to the end.
    Ran(Vec<Action>, Vec<LogLine>),
}

/// One way of calling components that are made of the same programs.
struct Way<'p> {
    sandbox: Sandbox,
    programs: &'p [Program],
}

impl<'p> Way<'p> {
    fn new(sandbox: &Sandbox, path: CallPath, programs: &'p [Program]) -> Self {
        let engine = sandbox.engine.clone();
        let mut strategies = StrategyLinker::new(&engine).unwrap();
        for (place, program) in programs.iter().enumerate() {
            strategies.module(&Program::name(place), &program.module).unwrap();
        }
        let watchdogs = Arc::new(Watchdogs::of(engine.weak()));
        let config = SandboxConfig { call_path: Some(path), ..SandboxConfig::default() };
        let sandbox = Sandbox {
            engine,
            strategies,
            watchdogs,
            feeders: Arc::new(FeederModules::new(None)),
            config,
            cache: None,
            shipped: None,
            formula_cache: None,
            dialect_cache: None,
            gateway_cache: None,
        };
        Self { sandbox, programs }
    }

    /// What [`Sandbox::prepare`] does, with programs that are compiled already.
    fn prepare(&self, bytes: &[u8]) -> Result<StrategyModule, SandboxError> {
        let artefact = Artefact::from_bytes("mutant", bytes.to_vec())?;
        let proof = self.sandbox.prove(&contract::STRATEGY, &artefact);
        let code = match &proof {
            Err(reason) if self.sandbox.config.call_path == Some(CallPath::Direct) => {
                let (name, reason) = (artefact.name().to_owned(), reason.clone());
                return Err(SandboxError::NotDirect { name, reason });
            }
            proof => self.code(&artefact, proof)?,
        };
        let (cache_outcome, reason) = (CacheOutcome::NoCache, String::new());
        let compiled = Compiled { code, plan: proof.ok(), reason, cache_outcome };
        StrategyModule::new(&self.sandbox.strategies, compiled, self.sandbox.origin(artefact))
    }

    fn code(
        &self,
        artefact: &Artefact,
        proof: &Result<Plan, String>,
    ) -> Result<Code, SandboxError> {
        compiler::check(&contract::STRATEGY, artefact)?;
        let component = artefact.component();
        let ready = match proof {
            Ok(plan) => {
                let bytes = component.get(plan.program.clone()).unwrap_or(&[]);
                let known = self.programs.iter().find(|program| program.bytes == bytes);
                known.map(|program| Ok(Code::Program(program.module.clone())))
            }
            Err(_) => light::component(component, self.programs)
                .map(|light| Component::new(&self.sandbox.engine, light).map(Code::Component)),
        };
        // Whatever cannot be taken apart is compiled as it is.
        ready
            .unwrap_or_else(|| {
                let program = proof.as_ref().ok().map(|plan| &plan.program);
                compiler::code(&self.sandbox.engine, component, program)
            })
            .map_err(|error| compiler::not_compiled(artefact, format!("{error:#}")))
    }

    fn live(&self, bytes: &[u8]) -> Ending {
        let module = match self.prepare(bytes) {
            Ok(module) => module,
            Err(SandboxError::NotDirect { .. }) => return Ending::OtherPath,
            Err(_) => return Ending::Refused,
        };
        let Ok(mut instance) = module.instantiate(Limits::default()) else {
            return Ending::Refused;
        };
        match life(&mut instance) {
            Ok(actions) => Ending::Ran(actions, instance.take_log()),
            Err(fault) => Ending::Failed(fault.kind.to_string()),
        }
    }
}

/// The short life of a strategy: every call of the contract once at least.
fn life(strategy: &mut dyn StrategyRuntime) -> Result<Vec<Action>, Box<Fault>> {
    let ts_event = TsNanos::from_nanos(1_736_121_600_000_000_000);
    let instrument = InstrumentIx(0);
    let listed = Instrument {
        id: "7203.TSE".parse().unwrap(),
        lot: Quantity::new(100),
        ticks: TickTable::Normal,
    };
    strategy.init(r#"{"fast": 2, "slow": 3}"#, &[listed])?;
    let positions = vec![Position::default()];
    strategy.set_portfolio(&PortfolioView { positions, ..PortfolioView::default() });
    let mut actions = strategy.start(ts_event)?;
    for price in [1_000, 1_001, 1_003, 1_009, 990, 980] {
        let (price, quantity) = (Price::from_yen(price), Quantity::new(100));
        let trade = Trade { ts_event, instrument, price, quantity };
        actions.extend(strategy.advance(Window::OneTrade(trade), 1)?.actions);
    }
    let accepted = OrderEvent {
        ts_event,
        origin: domain::Origin::Strategy,
        client_order_id: "O-1".into(),
        venue_order_id: Some("1".into()),
        instrument,
        side: domain::OrderSide::Buy,
        status: OrderStatus::Accepted,
        kind: OrderEventKind::Accepted,
    };
    actions.extend(strategy.on_order_events(&[accepted])?);
    let split = Split {
        adjustment: Adjustment::from_terms(3, 2).unwrap(),
        quantity: 150,
        cash_paid: Money::from_yen(5),
        last_price: Some(Price::from_yen(1_000)),
    };
    let event = AccountEvent { ts_event, instrument, kind: AccountEventKind::Split(split) };
    actions.extend(strategy.on_account_events(&[event])?);
    actions.extend(strategy.stop(ts_event)?);
    Ok(actions)
}

/// Damages a part: one or two bits, or a byte becomes its neighbour, which is another index, option or
/// type that may well be there.
fn damaged(whole: &[u8], parts: &[Range<usize>], seed: u64) -> Vec<u8> {
    let mut random = Random::new(&[seed, 12]);
    let mut bytes = whole.to_vec();
    let part = &parts[random.place(parts.len())];
    let way = random.below(3);
    for _ in 0..=(if way == 0 { random.below(2) } else { 0 }) {
        let byte = &mut bytes[part.start + random.place(part.len())];
        *byte = match way {
            0 => *byte ^ 1 << random.below(8),
            1 => byte.wrapping_add(1),
            _ => byte.wrapping_sub(1),
        };
    }
    bytes
}

/// The component that xtask has built of a language, or the reason why there is none.
fn built(name: &str) -> Result<Vec<u8>, String> {
    let test = std::env::current_exe().unwrap();
    let release = test.ancestors().find(|folder| folder.ends_with("release"));
    let path = release.unwrap_or(Path::new("")).join("languages").join(name);
    let reason = std::fs::read_to_string(path.with_extension("skipped"));
    let how = "run `cargo xtask guests --languages`";
    std::fs::read(path.with_extension("wasm"))
        .map_err(|_| reason.unwrap_or_else(|_| format!("{} is missing; {how}", path.display())))
}

fn harms_nobody(name: &str, paths: &[CallPath]) {
    let whole = match built(name) {
        Ok(whole) => whole,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let asked = std::env::var(MUTATIONS_ENV).ok().map(|text| text.parse::<u64>().unwrap() / 10);
    let mutations = asked.unwrap_or(MUTATIONS);
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let programs = Program::all_of(&whole, &sandbox.engine);
    assert!(!programs.is_empty() && light::component(&whole, &programs).is_some());
    let direct = Way::new(&sandbox, CallPath::Direct, &programs);
    let general = Way::new(&sandbox, CallPath::General, &programs);
    let unharmed = general.live(&whole);
    assert!(matches!(&unharmed, Ending::Ran(actions, _) if !actions.is_empty()), "{unharmed:?}");
    if paths.contains(&CallPath::Direct) {
        assert_eq!(direct.live(&whole), unharmed);
    }
    let sections = light::sections(&whole).unwrap().into_iter();
    let parts: Vec<Range<usize>> =
        sections.filter(|(id, _)| WIRING.contains(id)).map(|(_, range)| range).collect();
    // Refused, failed, ran; and how many of them went the direct path.
    let (mut counts, mut direct_ones) = ([0_u32; 3], 0);
    for seed in 0..mutations {
        let bytes = damaged(&whole, &parts, seed);
        let lives = catch_unwind(AssertUnwindSafe(|| (direct.live(&bytes), general.live(&bytes))));
        let (one, other) =
            lives.unwrap_or_else(|_| panic!("{name}: the host panicked at seed {seed}"));
        if one != Ending::OtherPath {
            direct_ones += u32::from(one != Ending::Refused);
            let kind = std::mem::discriminant;
            assert_eq!(kind(&one), kind(&other), "{name}, seed {seed}: {one:?}, {other:?}");
            assert!(!matches!(one, Ending::Ran(..)) || one == other, "{name}, seed {seed}");
        }
        counts[match other {
            Ending::Refused | Ending::OtherPath => 0,
            Ending::Failed(_) => 1,
            Ending::Ran(..) => 2,
        }] += 1;
    }
    let [refused, failed, ran] = counts;
    println!(
        "{name}: {mutations} mutations of how it is put together: {refused} refused, {failed} \
         failed, {ran} ran; {direct_ones} of them directly too"
    );
    assert!(refused > 0, "some damage is damage");
}

#[test]
fn damaged_components_of_python_harm_nobody() {
    harms_nobody("sma-cross-python", &[CallPath::General]);
}

#[test]
fn damaged_components_of_javascript_harm_nobody() {
    harms_nobody("sma-cross-javascript", &[CallPath::Direct, CallPath::General]);
}
