//! A strategy on the live market with real orders: the same session, guard, journal and folder as on paper, with the
//! order desk in the place of the simulated exchange (specification 4, P91 to P103).
//!
//! | module | what it does |
//! |---|---|
//! | `execution` | gives the strategy's commands to the desk, and takes what the desk reports |
//! | `run` | the loop: rows of the market and news of the broker, in the order in which they came |
//!
//! The engine brings the news: [`BrokerNews`] goes into the feed's queue beside the rows, so an event of an order comes
//! before each trade of a later frame (P98).

mod execution;
mod run;

use domain::Money;
use domain::fault::FaultKind;
use domain::{InstrumentId, InstrumentIx, OrderEvent, Price, Rejection, ShortText, TsNanos};
use orders::DeskCommand;
use orders::event::{OwnOrder, Standing};
use replay::RequestError;
use results::RunFolder;
use results::sink::{RunSink, Tee};

use crate::feed::FeedReceiver;
use crate::journal::Journaled;
use crate::paper::{PaperError, PaperOutcome, ReadyRun, remove_folder};

pub use execution::BrokerExecution;
use run::{RealLoop, Start};

/// What the broker's side tells a strategy's run.
#[derive(Debug)]
pub enum BrokerNews {
    /// What the strategy starts with; the first news of a run.
    Standing(Standing),
    /// An event of one of the strategy's orders, with its id on the wire and its place in the desk's table.
    Order(OrderEvent),
    /// The broker's cash to buy with (P103).
    Cash(Money),
    /// The orders of the strategy that still work, as its run ends (P86).
    Left(Vec<OwnOrder>),
    /// The run ends with this fault.
    Fail(FaultKind),
}

/// The broker as a strategy's thread reaches it. Nothing here waits.
pub trait Broker {
    /// The place of an instrument in the desk's table; none: the table is full.
    fn place(&self, instrument: &InstrumentId) -> Option<InstrumentIx>;

    /// The highest price that an instrument can have on this day; none where it is not known (P40).
    fn upper_limit(&self, instrument: &InstrumentId) -> Option<Price>;

    /// Gives the desk a command.
    ///
    /// # Errors
    /// Why it does not take it: too many commands wait, or it has ended.
    fn send(&mut self, command: DeskCommand) -> Result<(), Rejection>;

    /// Reports a command that was refused before it was sent, with the order's id on the wire.
    fn refused(&mut self, event: &OrderEvent);

    /// Cancels the strategy's orders as its run ends, or leaves them (P81). The answer, [`BrokerNews::Left`], comes
    /// after all news of them up to then. False: no answer will come.
    fn end_own(&mut self) -> bool;
}

/// What a run with real orders needs besides a paper run's parts.
#[derive(Debug)]
pub struct RealOrders<B> {
    /// The broker.
    pub broker: B,
    /// The strategy's id.
    pub strategy_id: ShortText,
    /// What its ids on the wire begin with: no other run has it (P92).
    pub run_id: String,
    /// The engine's clock, by which sent orders are counted (P96).
    pub clock: fn() -> TsNanos,
}

impl ReadyRun {
    /// Runs the strategy with real orders over what `source` gives until that ends it. `sink` takes every record after
    /// the folder has it.
    ///
    /// # Errors
    /// As [`ReadyRun::run`].
    pub fn run_real<B: Broker>(
        &self,
        source: &mut FeedReceiver,
        orders: RealOrders<B>,
        sink: &mut dyn RunSink,
    ) -> Result<PaperOutcome, PaperError> {
        let path = self.folder();
        let instance = self.instantiate()?;
        let begun = self.manifest(None);
        let mut folder =
            RunFolder::create_live(path, self.instruments(), &begun).map_err(RequestError::from)?;
        let journal = self.begin_journal().map_err(|source| {
            remove_folder(path);
            PaperError::Folder { folder: path.to_owned(), source }
        })?;
        let mut strategy = Journaled::new(instance, journal.clone());
        let mut both = Tee { first: &mut folder, second: sink };
        let start = Start {
            options: self.options(),
            limits: self.order_limits(),
            first: self.first(),
            journal: journal.clone(),
        };
        let totals = RealLoop::new(&mut strategy, orders, start, &mut both).run(source);
        Ok(self.end(folder, &strategy, totals, journal.finish()))
    }
}

#[cfg(test)]
mod tests;
