//! A dialect that reads the official names with a library, so that nothing of ours judges itself.

use domain::fault::Identity;
use domain::gateway_mapping::{
    GatewayBoard, GatewayDescription, GatewayErrorKind, GatewayMapping, GatewayRefusal,
};
use domain::market_update::Level;
use domain::order_mapping::Mapped;
use serde_json::Value;

/// Units of a price or a quantity in 1.
pub(crate) const UNITS: i64 = 10_000;

pub(crate) struct Dialect(pub(crate) GatewayDescription);

impl GatewayMapping for Dialect {
    fn identity(&self) -> Identity {
        Identity { component: "of the soak".to_owned(), sha256: "0".repeat(64) }
    }

    fn description(&self) -> &GatewayDescription {
        &self.0
    }

    fn classify(&mut self, status: u16, body: &str) -> Mapped<GatewayRefusal> {
        let read: Value = serde_json::from_str(body).unwrap_or_default();
        let code = read["Code"].as_i64();
        let kind = match (code, status) {
            (Some(4_001_001 | 4_001_005), _) => GatewayErrorKind::TokenExpired,
            (Some(4_002_001), _) => GatewayErrorKind::RegisterFull,
            (Some(4_002_006), _) | (None, 429) => GatewayErrorKind::RateLimited,
            _ => GatewayErrorKind::Other,
        };
        let message = read["Message"].as_str().unwrap_or_default().to_owned();
        Ok(GatewayRefusal { kind, code, message })
    }

    fn read_board(&mut self, message: &str) -> Mapped<Result<GatewayBoard, String>> {
        let Ok(read) = serde_json::from_str::<Value>(message) else {
            return Ok(Err("it is no JSON".to_owned()));
        };
        let Some(symbol) = read["Symbol"].as_str() else {
            return Ok(Err("Symbol: it is missing".to_owned()));
        };
        // Exact as far as anything here goes: prices have one decimal at most.
        let units = |value: &Value| value.as_f64().map(|number| (number * UNITS as f64) as i64);
        let level = |name: &str| {
            let price = units(&read[name]["Price"])?;
            Some(Level { price, quantity: units(&read[name]["Qty"]).unwrap_or(0) })
        };
        let (ask, bid) = (level("Sell1"), level("Buy1"));
        Ok(Ok(GatewayBoard {
            symbol: symbol.to_owned(),
            exchange: read["Exchange"].as_i64(),
            name: read["SymbolName"].as_str().map(str::to_owned),
            last_price: units(&read["CurrentPrice"]),
            time_ms: None,
            volume: units(&read["TradingVolume"]),
            best_ask: ask.map(|level| level.price),
            best_bid: bid.map(|level| level.price),
            asks: ask.into_iter().collect(),
            bids: bid.into_iter().collect(),
        }))
    }
}
