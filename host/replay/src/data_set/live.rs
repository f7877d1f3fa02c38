//! What a data folder tells of a run whose rows come from the live market: lots, price steps, the last close.

use std::collections::BTreeMap;

use domain::{ExchangeCalendar, InstrumentId, JstDate, VendorCode};
use marketdata::calendar_file::read_calendar;
use marketdata::{InstrumentTable, TradeStore};

use super::before::{Before, Search};
use super::{DataRequest, DataSet, Loader, Series, before_first, day_end, day_start, settings};
use crate::error::RequestError;
use crate::observer::RunObserver;
use crate::options::check_instruments;
use crate::series::MarketSeries;

/// So many days after its first one a live run takes changes from the instrument table; a later one goes on with what
/// it has.
const LIVE_DAYS_MAX: usize = 366;

impl DataRequest {
    /// Reads what the folder tells of a run on the live market that begins on `first`; its rows are none of the
    /// folder's. An empty path is no folder: nothing is known then.
    ///
    /// # Errors
    /// [`RequestError`] as [`Self::load`], but for missing rows.
    pub fn load_for_live(
        &self,
        first: JstDate,
        observer: &mut dyn RunObserver,
    ) -> Result<DataSet, RequestError> {
        check_instruments(&self.instruments)?;
        let codes: Vec<VendorCode> =
            self.instruments.iter().map(InstrumentId::vendor_code).collect::<Result<_, _>>()?;
        let last = first.iter_days().nth(LIVE_DAYS_MAX).unwrap_or(first);
        let has_folder = !self.folder.as_os_str().is_empty();
        let mut loader = Loader {
            store: TradeStore::new(self.cache.join("trades")),
            codes: &codes,
            range: (day_start(first), day_end(last)),
            series: Series::Trades(Vec::new()),
            has_rows: vec![false; codes.len()],
            inputs: Vec::new(),
            factor_inputs: Vec::new(),
            split_dates_known: vec![Vec::new(); codes.len()],
            not_read: Vec::new(),
        };
        let mut before = vec![Before::default(); codes.len()];
        let mut calendar = ExchangeCalendar::default();
        let mut table = None;
        let mut ex_rights = Vec::new();
        let mut files = Vec::new();
        if has_folder {
            calendar = read_calendar(&self.folder)?;
            table = InstrumentTable::read(&self.folder)?;
            files = settings::files(&self.folder)?;
            let search = Search { store: &loader.store, codes: &codes, first, read: &[] };
            (before, loader.inputs) = self.before(&search, &calendar, observer)?;
            let closes = before.iter().filter_map(Before::close).map(|(date, _)| date);
            let splits_from = closes.min().map_or(first, |date| date.min(first));
            ex_rights = loader.ex_rights(&self.folder, (splits_from, last), observer)?;
            for input in loader.factor_inputs {
                if loader.inputs.iter().all(|known| known.file != input.file) {
                    loader.inputs.push(input);
                }
            }
        }
        let mut data = DataSet {
            series: MarketSeries::of_trades(Vec::new()),
            inputs: loader.inputs,
            settings: files,
            instruments: Vec::new(),
            unit_changes: Vec::new(),
            base_prices: before_first(&before, &ex_rights, first),
            split_dates_known: loader.split_dates_known,
            ex_rights,
            calendar,
            names: BTreeMap::new(),
            notes: Vec::new(),
            days: Vec::new(),
            range: (first, last),
            total: 0,
            bars_from: self.granularity.bars().map(|_| "live"),
        };
        self.find_instruments((&codes, table.as_ref()), &before, &loader.not_read, &mut data)?;
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write as _;
    use std::path::{Path, PathBuf};

    use domain::{Price, Quantity, TickTable};
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::data_set::Granularity;
    use crate::instruments::InstrumentChoices;

    struct Nobody;

    impl RunObserver for Nobody {}

    fn load(folder: &Path, cache: &Path) -> DataSet {
        let request = DataRequest {
            folder: folder.to_owned(),
            cache: cache.to_owned(),
            instruments: vec!["7203.TSE".parse().unwrap()],
            start: None,
            end: None,
            granularity: Granularity::Trade,
            choices: InstrumentChoices::default(),
        };
        request.load_for_live("2025-01-07".parse().unwrap(), &mut Nobody).unwrap()
    }

    /// P119: lot and ticks as in a replay, base price the last close there, else none.
    #[test]
    fn p119_a_paper_run_knows_of_its_instruments_what_a_replay_would() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let data = load(&PathBuf::new(), &cache);
        assert_eq!(data.base_prices, [None]);
        let usual = &data.instruments[0];
        assert_eq!((usual.lot, usual.ticks), (Quantity::new(100), TickTable::Normal));
        let data = load(folder.path(), &cache);
        assert_eq!((data.base_prices[0], data.inputs.len()), (None, 0));

        let table = "code,name,market,lot,ticks,from,to\n7203,T,0111,1000,topix500,,2025-01-31\n\
                     7203,T,0111,100,topix500,2025-02-01,\n";
        fs::write(folder.path().join("instruments.csv"), table).unwrap();
        let trades = folder.path().join("equities_trades_20250106.csv.gz");
        let rows = "Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId\n\
                    2025-01-06,72030,09:00:00.000001,01,2800,100,000000000001\n\
                    2025-01-06,72030,15:30:00.000002,02,2811.5,100,000000000002\n";
        let mut out = GzEncoder::new(File::create(trades).unwrap(), Compression::fast());
        out.write_all(rows.as_bytes()).unwrap();
        out.finish().unwrap();
        let data = load(folder.path(), &cache);
        let found = &data.instruments[0];
        assert_eq!((found.lot, found.ticks), (Quantity::new(1_000), TickTable::Topix500));
        assert_eq!(data.base_prices, [Some("2811.5".parse::<Price>().unwrap())]);
        assert_eq!(data.unit_changes.len(), 1);
        assert_eq!(data.inputs.len(), 1);
    }
}
