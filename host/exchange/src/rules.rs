//! The rules of the exchange in words. Every result prints them with the run's parameters.

use crate::model::ExecutionModel;

/// What the exchange and the account leave out, as every result says.
pub const NOT_MODELLED: &str = "\
     MARKET_IF_TOUCHED, LIMIT_IF_TOUCHED, GTC, IOC, FOK, post_only and stops with an auction are \
     rejected with VENUE_UNSUPPORTED. The data do not tell an auction after a special quote inside \
     a session from other trades. Our own orders do not move the market. Dividends and rights to \
     buy are not paid. Closing special quotes are not in the data: the last trade of a day with one \
     is the base price of the next day. At the day's limit price it is unknown which waiting orders \
     get shares (hirei haibun): orders fill there as elsewhere. Shares that are less than a lot, as \
     splits leave them, cannot be sold.";

/// The rules, by their names. [`ExecutionModel::rules`] adds the parameters.
pub const RULES: [(&str, &str); 18] = [
    (
        "F1",
        "An order can match only trades that are strictly later than the event the strategy was \
         handling when it sent the order. They are also not earlier than its arrival (sending + \
         latency). Trades of the same instant are one sweep and never match.",
    ),
    (
        "F2",
        "A market order fills from the first such trade on, at the trade's price plus the slippage \
         (minus for a sell). Slippage counts in steps of the tick table. The price never leaves the \
         day's price limits and is never better than the trade. In an auction the order fills at \
         the auction's price. The results name fills of market prices that the tick table does not \
         have, or on a bar with one (TICKS).",
    ),
    (
        "F3",
        "All our orders together take at most the participation of each trade's shares, in whole \
         lots. Orders that take liquidity come first, in the order of their arrival. Then come \
         resting buys from the highest price, then resting sells from the lowest, the older first. \
         In an auction market orders come first, then limits in the same way. The rest waits for \
         the next trade. No share is used twice.",
    ),
    (
        "F4",
        "A limit order that is marketable when it arrives fills like a market order, never past \
         its limit, until the price leaves it. From then on it rests. A resting order fills at its \
         own price, never more than the trade's shares allow (F3). It fills when a trade goes \
         through that price. At a touch it fills once the queue ahead of it has traded at that \
         price since its arrival. Where the market jumps over a limit inside a session, the order \
         fills at its limit and no better, even if no trade had that price. In an auction it fills \
         at the auction's price. A change of price or trigger, or more shares, loses the place in \
         time. Fewer shares or another date keep it. A refused change ends the strategy's order \
         (F7).",
    ),
    (
        "F5",
        "A trade at or past the trigger of a stop triggers it, whatever its size. The order is \
         then a new market or limit order that arrives at that trade's time. So it fills on a later \
         trade at a price that was traded, gaps included. If the last price has already reached the \
         trigger when a stop arrives, the stop is rejected with VENUE_REJECTED, as Tokyo brokers \
         do. After that trade the trigger price takes no change. Such a change is refused and ends \
         the strategy's order (F7).",
    ),
    (
        "F6",
        "Every business day of the exchange is a day of the run, from its first to its last date, \
         and so is every date with rows. Sessions open and close, and orders end, although nothing \
         trades. Sessions are 09:00-11:30 and 12:30-15:30 JST, with the closing auction at 15:30 \
         (before 2024-11-05 at 15:00). Once a day's trades went on long after 15:00, the days after \
         it have the longer hours. A DAY order ends at the close, or with its instrument's last \
         trade of the day if that is later. A GTD order ends likewise on its date in Japan. Both \
         end at that time and not at the next trade. GTD reaches at most 10 business days ahead, by the exchange's \
         calendar of the data folder. Without one, Japan's public holidays and the exchange's \
         closures from 31 December to 3 January count. An order sent at or after the close belongs \
         to the next trading day. One that comes after 11:30 is too late for the morning's closing \
         auction.",
    ),
    (
        "F6-AUCTION",
        "The auctions are the first trade of each session, the first trade from 11:30 on and the \
         first trade from the close on. AT_THE_OPEN and AT_THE_CLOSE wait for the next opening or \
         closing auction that they can still reach by the clock. That is before 09:00 or 12:30 for \
         an open, and before 11:30 or the close for a close. They take part in it only. What is \
         left of them expires right after it, or 5 minutes after the morning's end if there was \
         none. Every working order that could match a trade then takes part too (Itayose). Market \
         orders and limits better than the auction's price fill at that price, without slippage and \
         not at their own. A limit equal to it fills from what the queue ahead leaves of the \
         volume, else it rests. With `close_strategy=funari` a limit order works until its closing \
         auction and is a market order in it.",
    ),
    (
        "F7",
        "An order is checked when it is sent, and a change when it arrives. The checks are shape, \
         tags, lot, price limits of the day, cash at the worst possible price and fee, and no short \
         sale. A refused change ends the strategy's order: it is REJECTED. A person's change is \
         checked before it is sent: if it is refused then, the order stays as it is. The limits lie \
         around the last close before the day, across days without trades. The upper one is rounded \
         down to a tick and the lower one up. Where no such close is known there are no limits: \
         cash is reserved at the usual range around the last trade seen. A market order sent before \
         any trade is then rejected (NO_REFERENCE_PRICE). A trade outside the limits widens them to \
         four times on that side, from that trade on. One outside of those too shows that the close \
         was no base, and the day goes on without limits. Whenever the worst price of open orders \
         changes, their cash is checked again, F11 with it. Limit prices off the tick grid are \
         rounded to it, away from the market, and triggers likewise. Lot and price steps are those \
         of the day. When the lot changes, open orders of the issue expire before the open \
         (LOT_CHANGE). When the steps change, open orders whose price is off the new steps expire \
         (TICK_CHANGE). The strategy knows the lot and steps of the first day. On each further day \
         orders are checked again. An order with a price outside the new day's limits expires \
         (PRICE_LIMIT), one without the cash is rejected.",
    ),
    (
        "F8",
        "The data ends with the last day. Open orders then expire with END_OF_DATA, at the end of \
         their instrument's day (F6). An open position is valued at the last price, not closed.",
    ),
    (
        "F9",
        "Prices and money are integers of 1/10,000 yen. No wall clock, no random numbers, no \
         unordered collections.",
    ),
    (
        "F10",
        "Bars: an order takes part in the first bar that begins at or after its arrival. So what \
         is decided on a bar fills from the next bar's open. All fills have the bar's end as their \
         time and stay inside the bar's traded range. Only resting orders whose limit the bar opens \
         beyond fill outside of it, at their limit (F4). Our orders share the participation of the \
         whole bar's volume, in an auction too: a bar does not say how much of it the auction \
         traded. Fills come in this order. First comes the auction at the open, where the bar is \
         the first of a session or begins with its close (F6-AUCTION). Otherwise orders that take \
         liquidity fill at the open plus slippage. Then the bar's other prices have traded and \
         widen the day's range (F7). Then stops fill at the worse of trigger and open plus \
         slippage, and resting orders at their price. On a day's bar the closing auction at the \
         close comes last.",
    ),
    (
        "F10-PATH",
        "The path of prices inside a bar is unknown, so the worse one is taken. A stop comes \
         before a resting order (the loss before the profit). A touch fills only with an empty \
         queue ahead. A stop-limit whose limit is not reached at its trigger, or after an open \
         beyond it, works from the next bar on. A cancel or change acts on whole bars.",
    ),
    (
        "F11",
        "Same-day round trips (sa-kin-kessai), by trading day in Japan and issue. What a sale of \
         shares bought today brings does not pay for the same issue on that day. Shares bought with \
         the money of today's sale of the same issue are not sold on that day. Such an order is \
         rejected with VENUE_REJECTED (SAKIN_KESSAI). Shares held from before count as sold first, \
         and other money pays first (for other issues too). Other issues are free: what they cost \
         of such proceeds is spent, and what their sales bring is other money.",
    ),
    (
        "F12",
        "Splits: where the folder has the vendor's daily files, their AdjFactor is read as the \
         nearest fraction with terms up to 1,000. On an ex-date, before the open, open orders of \
         the issue expire (EX_RIGHTS). The position becomes as many shares, and the rest of a share \
         is paid in cash. The last price changes with it, to the nearest tick where it is the base \
         of the day's price limits. What is held is worth the same. The strategy gets an account \
         event.",
    ),
    (
        "TAGS",
        "cash_margin=cash and account_type are taken and have no effect. NISA buys (closed in \
         2024), the NISA growth account and every margin tag are rejected, because this account has \
         cash only. Tags outside the registry are ignored with a warning.",
    ),
    ("NOT MODELLED", NOT_MODELLED),
    (
        "FEE",
        "The commission is a function of the value of all fills of an order. Each fill is charged \
         what it adds. A rate is cut off at whole yen, before its minimum and maximum.",
    ),
    (
        "LIMITS",
        "10,000 orders may work at the same time. More are rejected. A run that sends more orders \
         than its limit ends with a fault.",
    ),
];

impl ExecutionModel {
    /// The rules with these parameters, by their names.
    #[must_use]
    pub fn rules(&self) -> Vec<(&'static str, String)> {
        let parameter =
            |name: &str| match name {
                "F1" => Some(format!("Latency: {} ns.", self.latency_ns)),
                "F2" => Some(format!("Slippage: {} ticks.", self.slippage_ticks)),
                "F3" => Some(format!("Participation: {} %.", self.participation_percent)),
                "F4" => Some(self.queue_ahead.map_or(
                    "Queue ahead: endless, so a touch never fills.".to_owned(),
                    |shares| format!("Queue ahead: {shares} shares."),
                )),
                "F11" => Some(format!("Same-day round trips: {}.", self.same_day_round_trips)),
                "FEE" => Some(format!("Commission: {}.", self.commission)),
                "LIMITS" => Some(format!("Limit: {} orders.", self.orders_max)),
                _ => None,
            };
        let stated = |(name, text): &(&'static str, &str)| match parameter(name) {
            Some(parameter) => (*name, format!("{text} {parameter}")),
            None => (*name, (*text).to_owned()),
        };
        let mut rules: Vec<_> = RULES.iter().map(stated).collect();
        rules.extend(self.warning().map(|warning| ("WARNING", warning)));
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Preset;

    #[test]
    fn the_rules_name_every_parameter() {
        let text = |preset: Preset| {
            let rules = preset.model().rules();
            rules.iter().map(|(name, text)| format!("{name}: {text}\n")).collect::<String>()
        };
        let strict = text(Preset::Strict);
        for stated in [
            "Latency: 0 ns.",
            "Slippage: 1 ticks.",
            "Participation: 100 %.",
            "a touch never fills.",
            "Same-day round trips: refuse.",
            "Commission: none.",
            "Limit: 1800000 orders.",
        ] {
            assert!(strict.contains(stated), "{stated} is missing in {strict}");
        }
        assert!(!strict.contains("WARNING"));
        assert!(text(Preset::Realistic).contains("Commission: tiers:50000=55,"));
        assert!(text(Preset::Optimistic).contains("WARNING: OPTIMISTIC EXECUTION"));
    }
}
