//! Trade files as a simulated market: what is read of them, and the issues that they describe.

use std::path::PathBuf;

use domain::{InstrumentId, JstDate, Price};
use replay::data_set::{DataRequest, DataSet, Granularity};
use replay::instruments::InstrumentChoices;
use replay::{MarketDay, RunObserver};

use crate::web_broker::Issue;

/// Which files and dates.
pub(crate) struct Wanted {
    pub(crate) folder: PathBuf,
    pub(crate) cache: PathBuf,
    /// First and last date, the last one included; none: the first, the last there is.
    pub(crate) range: (Option<JstDate>, Option<JstDate>),
}

/// Why they are not read.
pub(crate) enum FilesError {
    /// An issue's code is none.
    Issue(String),
    Data(Box<replay::RequestError>),
}

struct Nobody;

impl RunObserver for Nobody {}

/// Reads the trades of issues. Lots, price steps, names and base prices of the files take the place of
/// those given.
pub(crate) fn load(issues: &[Issue], wanted: Wanted) -> Result<(DataSet, Vec<Issue>), FilesError> {
    let ids = issues.iter().map(|issue| format!("{}.TSE", issue.symbol).parse());
    let instruments: Vec<InstrumentId> =
        ids.collect::<Result<_, _>>().map_err(|error| FilesError::Issue(format!("{error}")))?;
    let request = DataRequest {
        folder: wanted.folder,
        cache: wanted.cache,
        instruments,
        start: wanted.range.0,
        end: wanted.range.1,
        granularity: Granularity::Trade,
        choices: InstrumentChoices::default(),
    };
    let data = request.load(&mut Nobody).map_err(|error| FilesError::Data(Box::new(error)))?;
    let first = first_prices(&data);
    let issues = (data.instruments.iter().zip(&data.base_prices).zip(first))
        .map(|((instrument, base), first)| {
            let name = data.names.get(instrument.id.as_str()).cloned();
            Issue {
                symbol: instrument.id.symbol().to_owned(),
                name: name.unwrap_or_else(|| instrument.id.symbol().to_owned()),
                lot: instrument.lot,
                ticks: instrument.ticks,
                // The price range needs a close before; the first trade is the nearest to it.
                base: instrument.ticks.floor(base.or(first).unwrap_or(Price::from_yen(1_000))),
            }
        })
        .collect();
    Ok((data, issues))
}

fn first_prices(data: &DataSet) -> Vec<Option<Price>> {
    let mut first = vec![None; data.instruments.len()];
    for day in data.series.days() {
        let MarketDay::Trades(parts) = day else { break };
        for (first, part) in first.iter_mut().zip(&parts) {
            if first.is_none() && !part.is_empty() {
                *first = Some(part.price_at(0));
            }
        }
        if first.iter().all(Option::is_some) {
            break;
        }
    }
    first
}
