//! Batches for a strict replay. A strategy that gets one trade with each call spends more time on the way
//! in and out than on the trade. So a module of the host's, inside the engine, keeps a batch of trades in a memory of
//! its own and calls the strategy for each of them: the strategy sees the same calls with the same
//! arguments, and none of the trades before its turn. That module also answers what strategies ask with every trade
//! and what cannot change in between: their position. And it tells them what happened to their orders: the memory for
//! such a list is asked of the strategy in as many calls as it has texts.
//!
//! All of a batch has the fuel of one event, and what goes wrong in one is not looked at closely: whoever
//! runs batches makes a run that failed again without them.

use std::sync::OnceLock;

use domain::OrderEvent;
use domain::limits::INSTRUMENTS_MAX;
use domain::market::TradeColumns;
use wasmtime::{
    AsContextMut, Engine, Extern, Func, Instance, Linker, Memory, Module, Ref, Result, Store,
    Table, TypedFunc,
};

use crate::abi::{self, OrderEventWords, Words};
use crate::cache::CompileCache;
use crate::exports::Exports;
use crate::imports;
use crate::proof::{HostImport, Plan};
use crate::state::{Ours, State};

/// Trades of a batch at most, as many as the module has room for.
pub(crate) const BATCH_ROWS_MAX: usize = 2_048;

/// The module, and the one that stands for it while the strategy is made.
const FEEDER: &[u8] = include_bytes!("feeder/feeder.wasm");
const QUESTIONS: &[u8] = include_bytes!("feeder/questions.wasm");

/// Bytes of the module's memory, from 0: whether the host has to be told, how many positions are known, and
/// whether the strategy was asked for all memory that it is told of its orders in.
const CONTROL: usize = 0;
const KNOWN: usize = 4;
const TOLD: usize = 8;
const POSITIONS: usize = 64;
/// Where its columns begin: times, prices, shares, instruments.
const TIMES: usize = 1_024;
const PRICES: usize = TIMES + 8 * BATCH_ROWS_MAX;
const SHARES: usize = PRICES + 8 * BATCH_ROWS_MAX;
const INSTRUMENTS: usize = SHARES + 8 * BATCH_ROWS_MAX;

/// Where it takes what happened to orders: a block for each text, then the list, then the texts.
const MAIL: usize = INSTRUMENTS + 2 * BATCH_ROWS_MAX;
const MAIL_END: usize = 65_536;
/// A block: where the pointer of a text goes, where the text is, and its bytes.
type Block = [u32; 3];
/// Texts of an event at most: of a rejected order its ids, the reason's code, and the reason.
const EVENT_TEXTS_MAX: usize = 4;

// What the modules' text says, too.
const _: () = assert!(POSITIONS + size_of::<Words>() * INSTRUMENTS_MAX <= TIMES);
const _: () = assert!(MAIL == 54_272 && MAIL.is_multiple_of(size_of::<u64>()));

/// The question that is answered without the host.
const GET_POSITION: &str = "get-position";

/// The compiled modules of an engine, made when a strategy needs them first.
pub(crate) struct FeederModules {
    modules: OnceLock<(Module, Module)>,
    cache: Option<CompileCache>,
}

impl FeederModules {
    /// Modules whose code is kept in `cache`, where there is one.
    pub(crate) const fn new(cache: Option<CompileCache>) -> Self {
        Self { modules: OnceLock::new(), cache }
    }

    /// The feeder and its stand-in.
    fn get(&self, engine: &Engine) -> Result<&(Module, Module)> {
        if let Some(modules) = self.modules.get() {
            return Ok(modules);
        }
        let make = |text: &[u8]| match &self.cache {
            Some(cache) => cache.module(engine, text),
            None => Module::new(engine, text),
        };
        let modules = (make(FEEDER)?, make(QUESTIONS)?);
        Ok(self.modules.get_or_init(|| modules))
    }
}

/// The feeder of one running strategy.
pub(crate) struct Feeder {
    batch: Memory,
    feed: TypedFunc<(u32, u32), u32>,
    deliver: TypedFunc<(u32, u32, u32), ()>,
}

impl Feeder {
    /// Makes a program with its feeder; without one where the program frees its answers in a way of its own.
    pub(crate) fn make(
        modules: &FeederModules,
        (linker, program, plan): (&Linker<State>, &Module, &Plan),
        store: &mut Store<State>,
    ) -> Result<(Exports, Option<Self>)> {
        let (feeder, questions) = modules.get(program.engine())?;
        let ask = Func::wrap(&mut *store, imports::get_position);
        let stand_in = StandIn::make(questions, ask, store)?;
        let mut linker = linker.clone();
        for HostImport { module, name, interface, function } in &plan.imports {
            if (interface.as_str(), function.as_str()) == ("portfolio", GET_POSITION) {
                linker.define(&mut *store, module, name, stand_in.get_position)?;
            }
        }
        let instance = linker.instantiate(&mut *store, program)?;
        let exports = Exports::find(store, instance, plan)?;
        let Some([advance, tell]) = exports.plain() else { return Ok((exports, None)) };
        let (memory, allocate) = exports.memory();
        let imports = [memory.into(), advance.into(), allocate.into(), tell.into(), ask.into()];
        let ours = Ours { instances: 1, memories: 1, ..Ours::default() };
        let instance = made(store, feeder, &imports, ours)?;
        let batch = found(instance.get_memory(&mut *store, "batch"))?;
        let feed = instance.get_typed_func(&mut *store, "feed")?;
        let deliver = instance.get_typed_func(&mut *store, "deliver")?;
        let get_position = found(instance.get_func(&mut *store, GET_POSITION))?;
        stand_in.answers.set(&mut *store, 0, Ref::Func(Some(get_position)))?;
        store.data_mut().batch = Some(batch);
        Ok((exports, Some(Self { batch, feed, deliver })))
    }

    /// Takes a batch: at most [`BATCH_ROWS_MAX`] trades.
    pub(crate) fn fill(&self, store: &mut Store<State>, columns: TradeColumns<'_>) {
        let memory = self.batch.data_mut(store);
        let TradeColumns { ts_event, instrument, price, quantity } = columns;
        put(memory, TIMES, bytemuck::cast_slice(ts_event));
        put(memory, PRICES, bytemuck::cast_slice(price));
        put(memory, SHARES, bytemuck::cast_slice(quantity));
        put(memory, INSTRUMENTS, bytemuck::cast_slice(instrument));
    }

    /// Takes the answers of the host, and hands over the trades of the batch from `row` up to `limit`, and stops after one at which the strategy has
    /// written into its log or asked for something with `act`. Tells how many rows of the batch are handled; none when the
    /// strategy says something that is no number of rows.
    pub(crate) fn feed(
        &self,
        store: &mut Store<State>,
        row: u32,
        limit: u32,
    ) -> Result<Option<u32>> {
        let (memory, state) = self.batch.data_and_store_mut(&mut *store);
        let positions = &state.portfolio.positions;
        for (index, position) in positions.iter().enumerate() {
            let words: Words = abi::position(position).map(u64::to_le);
            put(memory, POSITIONS + size_of_val(&words) * index, bytemuck::bytes_of(&words));
        }
        put(memory, CONTROL, &0_u32.to_le_bytes());
        // There are at most 4 instruments.
        put(memory, KNOWN, &(positions.len() as u32).to_le_bytes());
        let reached = self.feed.call(&mut *store, (row, limit))?;
        put(self.batch.data_mut(store), KNOWN, &0_u32.to_le_bytes());
        Ok((reached != u32::MAX).then_some(reached))
    }

    /// Tells the strategy what happened to its orders. Tells whether it was told; not where it is too much.
    pub(crate) fn deliver(&self, store: &mut Store<State>, events: &[OrderEvent]) -> Result<bool> {
        let memory = self.batch.data_mut(&mut *store);
        let Some((list, count, end)) = write_mail(memory, events) else { return Ok(false) };
        // From inside its allocator it calls nothing of the host's; afterwards it may, which `takes_leave` sees.
        store.data_mut().may_leave = false;
        self.deliver.call(&mut *store, (list, count, end))?;
        store.data_mut().may_leave = true;
        put(self.batch.data_mut(&mut *store), TOLD, &0_u32.to_le_bytes());
        Ok(true)
    }
}

/// Lays out what happened to orders. Tells where the list is, how long it is, and where the blocks of its
/// texts end; nothing where there is no room.
fn write_mail(memory: &mut [u8], events: &[OrderEvent]) -> Option<(u32, u32, u32)> {
    let blocks_bytes = events.len().checked_mul(EVENT_TEXTS_MAX * size_of::<Block>())?;
    let list = MAIL.checked_add(blocks_bytes)?;
    let mut free = list.checked_add(events.len().checked_mul(size_of::<OrderEventWords>())?)?;
    let mut block = MAIL;
    let memory = memory.get_mut(..MAIL_END)?;
    for (index, event) in events.iter().enumerate() {
        let at = list + size_of::<OrderEventWords>() * index;
        let record = abi::order_event_words(event, |place, text| {
            let room = memory.get_mut(free..free + text.len());
            room.ok_or_else(no_room)?.copy_from_slice(text.as_bytes());
            // All of them are places in 64 KiB.
            let words: Block = [at + place, free, text.len()].map(|word| (word as u32).to_le());
            let place = memory.get_mut(block..block + size_of::<Block>());
            place.ok_or_else(no_room)?.copy_from_slice(bytemuck::bytes_of(&words));
            block += size_of::<Block>();
            free += text.len();
            Ok(0)
        });
        let place = memory.get_mut(at..at + size_of::<OrderEventWords>())?;
        place.copy_from_slice(bytemuck::bytes_of(&record.ok()?.map(u64::to_le)));
    }
    Some((list as u32, events.len() as u32, block as u32))
}

#[cold]
fn no_room() -> wasmtime::Error {
    wasmtime::Error::msg("there is no room for so many events")
}

/// Whether a module is one of these: a strategy's program gives what its contract wants, and so is none.
pub(crate) fn is_part(module: &Module) -> bool {
    let names: Vec<&str> = module.exports().map(|export| export.name()).collect();
    names == ["batch", "feed", "deliver", GET_POSITION] || names == ["answers", GET_POSITION]
}

/// Ends the batch after the present trade: what the strategy did is the host's to see.
#[inline]
pub(crate) fn end_batch(store: impl AsContextMut<Data = State>) {
    set(store, CONTROL, 1);
}

/// The batch knows no answers any more: what asks now is to be answered by the host.
pub(crate) fn forget_answers(store: impl AsContextMut<Data = State>) {
    set(store, KNOWN, 0);
}

/// Whether a strategy that may not call the host, because it is asked for memory, is through with that and is told of
/// its orders: from then on the host itself says when it may.
#[cold]
pub(crate) fn takes_leave(mut store: impl AsContextMut<Data = State>) -> bool {
    let Some(batch) = store.as_context().data().batch else { return false };
    let is_told = batch.data(&store).get(TOLD).is_some_and(|told| *told != 0);
    if is_told {
        set(&mut store, TOLD, 0);
        store.as_context_mut().data_mut().may_leave = true;
    }
    is_told
}

/// Writes a number of the batch, where there is one.
#[inline]
fn set(mut store: impl AsContextMut<Data = State>, at: usize, value: u32) {
    if let Some(batch) = store.as_context().data().batch {
        put(batch.data_mut(&mut store), at, &value.to_le_bytes());
    }
}

#[inline(always)]
fn put(memory: &mut [u8], at: usize, bytes: &[u8]) {
    memory[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Stands for the feeder's answers while the strategy is made: the feeder needs the strategy's memory.
struct StandIn {
    answers: Table,
    get_position: Func,
}

impl StandIn {
    fn make(module: &Module, ask: Func, store: &mut Store<State>) -> Result<Self> {
        let ours = Ours { instances: 1, tables: 1, ..Ours::default() };
        let instance = made(store, module, &[], ours)?;
        let answers = found(instance.get_table(&mut *store, "answers"))?;
        answers.set(&mut *store, 0, Ref::Func(Some(ask)))?;
        let get_position = found(instance.get_func(&mut *store, GET_POSITION))?;
        Ok(Self { answers, get_position })
    }
}

/// Makes an instance of the host's own, which is none of the strategy's and takes nothing of its limits.
fn made(
    store: &mut Store<State>,
    module: &Module,
    imports: &[Extern],
    ours: Ours,
) -> Result<Instance> {
    store.data_mut().begin_ours(ours);
    // The limiter is asked for its numbers when it is set.
    store.limiter(|state| state);
    let instance = Instance::new(&mut *store, module, imports);
    store.data_mut().end_ours();
    instance
}

fn found<T>(part: Option<T>) -> Result<T> {
    part.ok_or_else(|| wasmtime::Error::msg("the feeder lacks a part"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_text_has_the_same_places() {
        let text = include_str!("feeder/feeder.wat");
        for place in [super::TIMES, super::PRICES, super::SHARES, super::INSTRUMENTS] {
            assert!(text.contains(&format!("$batch offset={place} ")), "{place}");
        }
        for word in 0..4 {
            let place = format!("(i64.load $batch offset={} ", super::POSITIONS + 8 * word);
            assert!(text.contains(&place), "{place}");
        }
        for control in [super::CONTROL, super::KNOWN] {
            assert!(
                text.contains(&format!("(i32.load $batch (i32.const {control}))")),
                "{control}"
            );
        }
        let told = format!("(i32.store $batch (i32.const {}) (i32.const 1))", super::TOLD);
        assert!(text.contains(&told), "{told}");
        assert!(text.contains(&format!("(local.set $block (i32.const {}))", super::MAIL)));
    }

    /// With `KUMIKI_WRITE_FEEDER` set it writes them.
    #[test]
    fn the_modules_are_those_of_their_texts() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/feeder");
        for (name, kept) in [("feeder", super::FEEDER), ("questions", super::QUESTIONS)] {
            let made = wat::parse_file(folder.join(format!("{name}.wat"))).unwrap();
            if std::env::var_os("KUMIKI_WRITE_FEEDER").is_some() {
                std::fs::write(folder.join(format!("{name}.wasm")), &made).unwrap();
            }
            assert_eq!(kept, made, "{name}.wasm; KUMIKI_WRITE_FEEDER=1 makes it anew");
        }
    }
}
