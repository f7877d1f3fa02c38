//! Frames as the gateway pushes them: every official field of a stock, about 2.3 kB, the same in every run.

use std::fmt::Write as _;

use domain::Random;

/// Issues that are pushed: all that can be registered.
pub(crate) const SYMBOLS: usize = venues::local_broker::REGISTER_MAX;
/// Frames that tell of a trade, of a thousand.
const TRADES_PERMILLE: u64 = 600;
/// Levels of one side.
const LEVELS: i64 = 10;
/// Seconds since midnight of the first frame, and of the last one at most.
const OPEN: u64 = 9 * 3_600;
const DAY_SECONDS: u64 = 5 * 3_600;

/// An issue: its price in yen, and its day's volume in shares.
struct Issue {
    price: i64,
    volume: u64,
}

/// Frames of all issues in turn, beginning with one of each without a trade.
pub(crate) struct Frames {
    pub(crate) texts: Vec<String>,
    /// Which of them tell of a trade, and how many.
    pub(crate) has_trade: Vec<bool>,
    pub(crate) trades: u64,
}

/// The code of an issue.
pub(crate) fn symbol(number: usize) -> String {
    format!("{}", 1_301 + number)
}

impl Frames {
    /// So many of them.
    pub(crate) fn new(count: usize) -> Self {
        let mut random = Random::of_seed(16);
        let mut issues: Vec<Issue> = (0..SYMBOLS)
            .map(|_| Issue { price: 800 + random.below(4_000) as i64, volume: 100 })
            .collect();
        let mut has_trade = Vec::with_capacity(count);
        let texts = (0..count)
            .map(|number| {
                let issue = &mut issues[number % SYMBOLS];
                has_trade.push(number >= SYMBOLS && random.permille(TRADES_PERMILLE));
                if has_trade[number] {
                    issue.price = (issue.price + random.below(5) as i64 - 2).max(400);
                    issue.volume += 100 * (1 + random.below(20));
                }
                let second = OPEN + number as u64 * DAY_SECONDS / count as u64;
                text(&mut random, &symbol(number % SYMBOLS), issue, second)
            })
            .collect();
        let trades = has_trade.iter().filter(|has_trade| **has_trade).count() as u64;
        Self { texts, has_trade, trades }
    }

    /// Bytes of a frame on average.
    pub(crate) fn bytes(&self) -> f64 {
        let all: usize = self.texts.iter().map(String::len).sum();
        all as f64 / self.texts.len() as f64
    }
}

fn text(random: &mut Random, symbol: &str, issue: &Issue, second: u64) -> String {
    let Issue { price, volume } = issue;
    let at = |second: u64| {
        let (hour, minute) = (second / 3_600, second / 60 % 60);
        format!("\"2026-11-24T{hour:02}:{minute:02}:{:02}+09:00\"", second % 60)
    };
    let (now, open) = (at(second), at(OPEN));
    let mut text = format!(
        "{{\"Symbol\":\"{symbol}\",\"SymbolName\":\"見本の銘柄\",\"Exchange\":1,\"ExchangeName\":\"東証プ\",\
         \"CurrentPrice\":{price}.5,\"CurrentPriceTime\":{now},\"CurrentPriceChangeStatus\":\"0057\",\
         \"CurrentPriceStatus\":1,\"CalcPrice\":{price}.5,\"PreviousClose\":{price}.0,\
         \"PreviousCloseTime\":\"2026-11-20T00:00:00+09:00\",\"ChangePreviousClose\":0.5,\
         \"ChangePreviousClosePer\":0.02,\"OpeningPrice\":{price}.0,\"OpeningPriceTime\":{open},\
         \"HighPrice\":{price}.5,\"HighPriceTime\":{now},\"LowPrice\":{price}.0,\"LowPriceTime\":{open},\
         \"TradingVolume\":{volume}.0,\"TradingVolumeTime\":{now},\"VWAP\":{price}.1234,\
         \"TradingValue\":{}.5",
        *volume as i64 * price
    );
    // The vendor calls the best price of those who sell `BidPrice`.
    for (best, side, sign) in [("Bid", "Sell", 1), ("Ask", "Buy", -1)] {
        let best_price = price + i64::from(sign > 0);
        write!(
            text,
            ",\"{best}Qty\":{}00.0,\"{best}Price\":{best_price}.0,\"{best}Time\":{now},\
             \"{best}Sign\":\"0101\",\"MarketOrder{side}Qty\":0.0",
            1 + random.below(90)
        )
        .ok();
        for level in 0..LEVELS {
            let extra = if level == 0 {
                format!("\"Time\":{now},\"Sign\":\"0101\",")
            } else {
                String::new()
            };
            write!(
                text,
                ",\"{side}{}\":{{{extra}\"Price\":{}.0,\"Qty\":{}00.0}}",
                level + 1,
                best_price + sign * level,
                1 + random.below(90)
            )
            .ok();
        }
    }
    text.push_str(
        ",\"OverSellQty\":974900.0,\"UnderBuyQty\":756000.0,\"TotalMarketValue\":3266254659361.4,\
         \"ClearingPrice\":null,\"IV\":null,\"Gamma\":null,\"Theta\":null,\"Vega\":null,\"Delta\":null,\
         \"SecurityType\":1}",
    );
    // Written with spaces, as the vendor's samples are.
    text.replace(",\"", ", \"").replace("\":", "\": ")
}
