//! One issue's daily prices, for charts.

use std::sync::Arc;

use async_graphql::{Context, SimpleObject};

use super::context::{QueryContext, blocking};
use super::failure::Failure;
use super::memory::Reservation;
use super::metrics::GaugeGuard;
use super::resolve::date;
use crate::{CancelToken, DailyPrice, PriceQuery};

/// An issue on one business day.
#[derive(Debug, Clone, SimpleObject)]
#[graphql(name = "DailyPrice")]
pub(super) struct PriceOfDay {
    /// Trading day, YYYY-MM-DD.
    date: String,
    /// First price in yen, as stored.
    open: Option<f64>,
    /// Highest price in yen, as stored.
    high: Option<f64>,
    /// Lowest price in yen, as stored.
    low: Option<f64>,
    /// Closing price in yen, as stored.
    close: Option<f64>,
    /// Volume in shares.
    volume: Option<f64>,
}

impl From<DailyPrice> for PriceOfDay {
    fn from(price: DailyPrice) -> Self {
        let DailyPrice { date, open, high, low, close, volume } = price;
        Self { date: date.to_string(), open, high, low, close, volume }
    }
}

impl QueryContext {
    /// Reads prices in a thread that may block. Who drops the future ends the reading.
    pub(super) async fn prices(
        self: &Arc<Self>,
        ctx: &Context<'_>,
        code: String,
        from_date: &str,
        to_date: &str,
    ) -> Result<Vec<PriceOfDay>, Failure> {
        let (from, to) = (date("fromDate", from_date)?, date("toDate", to_date)?);
        let query = PriceQuery { code, from, to };
        let cancel = CancelToken::new();
        let _guard = cancel.cancel_on_drop();
        let (context, data) = (Arc::clone(self), self.data(ctx));
        // The work goes on for a moment when its client goes away, and so long it holds its memory.
        let memory = ctx.data_opt::<Arc<Reservation>>().cloned();
        blocking(move || {
            let _memory = memory;
            let _active = GaugeGuard::new(&context.metrics.active);
            let prices = data.prices(&query, &cancel).map_err(Failure::report)?;
            Ok(prices.into_iter().map(PriceOfDay::from).collect())
        })
        .await
    }
}
