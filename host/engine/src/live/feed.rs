//! The events and market data of the local broker's venue on their way to clients: who subscribes which symbol, and
//! each snapshot and trade (specification 1, "Events"; specification 4, P51, P53, P56).

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::InstrumentIx;
use domain::market_update::{Board, MarketUpdate, Symbol};
use live::feed::{MarketClock, MinuteBars, TakenIntoBar, whole_trade};
use marketdata::MadeBar;
use venues::Recipient;
use venues::local_broker::{VENUE, VenueEvent};

use crate::hub::ClientId;
use crate::limits::STREAM_HEADS_MAX;
use crate::outbox::TradesHead;
use crate::present::market::{EXCHANGE, depth_event, live_bar, live_trade, made_bar};
use crate::session::{Core, Shared};

/// What the trades of each symbol have in common, so that they are made once.
#[derive(Debug, Default)]
pub(super) struct Feed {
    heads: BTreeMap<String, Arc<TradesHead>>,
    /// The minute that grows, of each symbol that a client wants (specification 4, P90).
    bars: BTreeMap<Symbol, MinuteBars>,
    clock: MarketClock,
    /// The stream session of the last trade.
    session: Option<Arc<str>>,
}

impl Feed {
    /// Queues an update for the subscribers of its symbol, without waiting for any of them. The next
    /// [`Hub::wake_writers`] sends it.
    pub(super) fn market(&mut self, shared: &Shared, update: &MarketUpdate) {
        let symbol = update.board.symbol.as_str();
        // Only this thread changes who wants what, but for clients that leave.
        if !shared.lock().wants(symbol) {
            self.bars.remove(&update.board.symbol);
            return;
        }
        let text = crate::hub::depth_text(&depth_event(&update.board));
        let trade =
            update.trade.as_ref().map(|trade| (self.head(&update.board), live_trade(trade)));
        let trade = trade.as_ref().map(|(head, row)| (head, row));
        let now = shared.started.elapsed();
        {
            let mut core = shared.lock();
            if let Some((head, row)) = trade {
                core.live_past.trade(update.board.symbol, &head.stream_session_id, row);
            }
            core.hub.publish_market(symbol, &text, trade, now);
        }
        // What a gap left out was traded in no known minute.
        if let Some(print) = update.trade.as_ref().filter(|print| !print.after_gap)
            && let Some(trade) = whole_trade(print, InstrumentIx(0))
        {
            // After a login the gateway may be a simulated one that plays an earlier time.
            if self.session.as_ref() != Some(&print.stream_session_id) {
                self.session = Some(Arc::clone(&print.stream_session_id));
                self.clock = MarketClock::default();
            }
            self.clock.see(print);
            let bars = self.bars.entry(update.board.symbol).or_default();
            if let TakenIntoBar::Growing(Some(made)) = bars.take(&trade) {
                send_bar(shared, update.board.symbol, &made);
            }
        }
    }

    /// Time goes on: minutes end without a trade after them.
    pub(super) fn tick(&mut self, shared: &Shared) {
        let now = self.clock.at(domain::clock::wall_now());
        for (symbol, bars) in &mut self.bars {
            if let Some(made) = bars.clock(now) {
                send_bar(shared, *symbol, &made);
            }
        }
    }

    fn head(&mut self, board: &Board) -> Arc<TradesHead> {
        let symbol = board.symbol.as_str();
        if let Some(head) = self.heads.get(symbol)
            && *head.stream_session_id == *board.stream_session_id
        {
            return Arc::clone(head);
        }
        if self.heads.len() >= STREAM_HEADS_MAX {
            self.heads.clear();
        }
        let head = Arc::new(TradesHead {
            venue: VENUE.to_owned(),
            exchange: EXCHANGE.to_owned(),
            ticker: symbol.to_owned(),
            instrument_id: None,
            stream_session_id: board.stream_session_id.to_string(),
        });
        self.heads.insert(symbol.to_owned(), Arc::clone(&head));
        head
    }
}

/// Sends a minute bar that is final.
fn send_bar(shared: &Shared, symbol: Symbol, made: &MadeBar) {
    let (ticker, kline) = (symbol.as_str(), made_bar(made, true));
    let instrument_id = format!("{ticker}.TSE");
    let mut core = shared.lock();
    core.live_past.bar(symbol, kline.clone());
    core.hub.publish(ticker, &live_bar(ticker, &instrument_id, kline), None);
}

/// Sends an event, after it has changed who subscribes which symbol.
pub(super) fn send(core: &mut Core, to: Recipient, event: &VenueEvent) {
    let hub = &mut core.hub;
    let tickers = match to {
        Recipient::Client(number) => hub.tickers(ClientId::of(number)),
        Recipient::All => None,
    };
    match event {
        VenueEvent::Subscribed { symbol, .. } => {
            tickers.map(|tickers| tickers.insert(symbol.clone()));
        }
        VenueEvent::Unsubscribed { symbol, .. } => {
            tickers.map(|tickers| tickers.remove(symbol));
        }
        VenueEvent::Evicted { symbol, .. } => hub.forget_ticker(symbol),
        VenueEvent::LoginStarted { .. }
        | VenueEvent::LoginCancelled { .. }
        | VenueEvent::Ready { .. }
        | VenueEvent::Unusable { .. }
        | VenueEvent::State { .. }
        | VenueEvent::Error { .. }
        | VenueEvent::Board { .. }
        | VenueEvent::BuyingPower { .. }
        | VenueEvent::Orders { .. }
        | VenueEvent::Positions { .. }
        | VenueEvent::UnreadableOrder { .. } => {}
    }
    hub.send_to(to, &crate::present::local_broker::event(event));
    if matches!(event, VenueEvent::Unsubscribed { .. } | VenueEvent::Evicted { .. }) {
        core.forget_past();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use domain::TsNanos;
    use domain::market_update::{AggressorSide, Level, SideRule, Symbol, TimeSource, TradePrint};

    use super::*;
    use crate::limits::BEHIND_FRAMES;
    use crate::live::tests::shared;
    use crate::outbox::{Outbox, Taken};

    pub(in crate::live) fn update(
        symbol: &str,
        session: &str,
        sequence_id: u64,
        has_trade: bool,
    ) -> MarketUpdate {
        let level = |price| Level { price, quantity: 10_000 };
        let (symbol, received) = (Symbol::new(symbol).unwrap(), TsNanos::from_nanos(5_000_000));
        let board = Board {
            symbol,
            stream_session_id: session.into(),
            sequence_id,
            received,
            timestamp_ms: 4,
            timestamp_source: TimeSource::Venue,
            last_price: Some(28_500_000),
            bids: vec![level(28_490_000)],
            asks: vec![level(28_510_000)],
        };
        let trade = has_trade.then(|| TradePrint {
            symbol,
            stream_session_id: session.into(),
            sequence_id: sequence_id + 1,
            received,
            timestamp_ms: 4,
            price: 28_500_000,
            quantity: 1_000_000,
            side: AggressorSide::Buy,
            side_rule: Some(SideRule::AtAsk),
            after_gap: false,
        });
        MarketUpdate { board, trade, gap: false }
    }

    fn subscribed(symbol: &str) -> VenueEvent {
        VenueEvent::Subscribed { request_id: "r".into(), symbol: symbol.into(), name: None }
    }

    /// What waits for a client, as (event, numbers of its rows or its own).
    fn sent(outbox: &Outbox) -> Vec<(String, Vec<u64>)> {
        let mut all = Vec::new();
        while let Taken::Messages(messages) = outbox.take() {
            for message in messages {
                let event: serde_json::Value = serde_json::from_str(&message.into_text()).unwrap();
                let number = |value: &serde_json::Value| value["sequence_id"].as_u64().unwrap_or(0);
                let numbers = match event["trades"].as_array() {
                    Some(rows) => rows.iter().map(number).collect(),
                    None => vec![number(&event)],
                };
                all.push((event["event"].as_str().unwrap().to_owned(), numbers));
            }
        }
        all
    }

    struct World {
        shared: Arc<Shared>,
        feed: Feed,
    }

    impl World {
        fn new() -> Self {
            Self { shared: shared(), feed: Feed::default() }
        }

        fn client(&self) -> (ClientId, Arc<Outbox>) {
            let outbox = Arc::new(Outbox::default());
            (self.shared.lock().hub.join(Arc::clone(&outbox), None), outbox)
        }

        fn event(&self, to: Recipient, event: &VenueEvent) {
            send(&mut self.shared.lock(), to, event);
        }

        fn frame(&mut self, symbol: &str, session: &str, sequence_id: u64, has_trade: bool) {
            self.feed.market(&self.shared, &update(symbol, session, sequence_id, has_trade));
        }
    }

    /// P51, P56: who subscribed gets the snapshot, then the trade; after its end nothing.
    #[test]
    fn p51_who_subscribes_gets_the_snapshot_before_the_trade() {
        let mut world = World::new();
        let ((first, first_box), (second, second_box)) = (world.client(), world.client());
        let to = |client: ClientId| Recipient::Client(client.number());
        world.frame("7203", "s", 1, true);
        world.event(to(first), &subscribed("7203"));
        world.event(to(second), &subscribed("9984"));
        world.frame("7203", "s", 3, true);
        world.frame("9984", "s", 1, false);
        let events = |sent: Vec<(String, Vec<u64>)>| -> Vec<String> {
            sent.into_iter().map(|(event, numbers)| format!("{event} {numbers:?}")).collect()
        };
        assert_eq!(events(sent(&first_box)), ["Subscribed [0]", "DepthSnapshot [3]", "Trades [4]"]);
        assert_eq!(events(sent(&second_box)), ["Subscribed [0]", "DepthSnapshot [1]"]);
        let request_id = || "r".to_owned();
        let unsubscribed =
            VenueEvent::Unsubscribed { request_id: request_id(), symbol: "7203".into() };
        world.event(to(first), &unsubscribed);
        let evicted = VenueEvent::Evicted { request_id: request_id(), symbol: "9984".into() };
        world.event(Recipient::All, &evicted);
        world.frame("7203", "s", 5, false);
        world.frame("9984", "s", 2, false);
        assert_eq!(events(sent(&first_box)), ["Unsubscribed [0]", "SubscriptionEvicted [0]"]);
        assert_eq!(events(sent(&second_box)), ["SubscriptionEvicted [0]"]);
    }

    /// P53: trades of two sessions are never in one message.
    #[test]
    fn p53_trades_have_the_session_that_numbers_them() {
        let mut world = World::new();
        let (client, outbox) = world.client();
        world.event(Recipient::Client(client.number()), &subscribed("7203"));
        drop(sent(&outbox));
        for (session, number) in [("one", 1), ("two", 1)] {
            world.frame("7203", session, number, true);
            let Taken::Messages(messages) = outbox.take() else { panic!("nothing was sent") };
            let texts: Vec<_> = messages.into_iter().map(|message| message.into_text()).collect();
            assert_eq!(texts.len(), 2);
            let session = format!("\"stream_session_id\":\"{session}\"");
            assert!(texts.iter().all(|text| text.contains(&session)), "{texts:?}");
            assert!(texts[1].contains("\"exchange\":\"LocalBrokerStock\""), "{texts:?}");
            assert!(!texts[1].contains("instrument_id"), "{texts:?}");
        }
        for number in 0..2 * STREAM_HEADS_MAX {
            let symbol = format!("{}", 1_000 + number);
            world.feed.head(&update(&symbol, "s", 1, false).board);
            assert!(world.feed.heads.len() <= STREAM_HEADS_MAX);
        }
    }

    /// A client that reads nothing delays no other, which gets every frame at once. When the first reads again, it gets
    /// every trade in rising numbers, and gaps show what was left out.
    #[test]
    fn p56_a_stopped_client_loses_boards_and_no_trade_and_delays_no_other() {
        let mut world = World::new();
        let ((stopped, stopped_box), (reads, reads_box)) = (world.client(), world.client());
        let symbols = ["7203", "9984", "130A"];
        for client in [stopped, reads] {
            for symbol in symbols {
                world.event(Recipient::Client(client.number()), &subscribed(symbol));
            }
        }
        drop((sent(&stopped_box), sent(&reads_box)));
        let frames = 20 * BEHIND_FRAMES as u64;
        let mut trades = Vec::new();
        for frame in 0..frames {
            // One sequence for all symbols keeps the test short; a venue has one for each.
            let number = 2 * frame + 1;
            let symbol = symbols[frame as usize % symbols.len()];
            let made = (frame % 7 == 0).then_some(number + 1);
            trades.extend(made);
            world.frame(symbol, "s", number, made.is_some());
            let mut expected = vec![("DepthSnapshot".to_owned(), vec![number])];
            expected.extend(made.map(|number| ("Trades".to_owned(), vec![number])));
            assert_eq!(sent(&reads_box), expected, "at once, whatever the other does");
        }
        let late = sent(&stopped_box);
        let numbers: Vec<u64> = late.iter().flat_map(|(_, numbers)| numbers.clone()).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "in the order of the stream");
        let of = |name: &str| -> Vec<u64> {
            let those = late.iter().filter(|(event, _)| event == name);
            those.flat_map(|(_, numbers)| numbers.clone()).collect()
        };
        assert_eq!(of("Trades"), trades, "every trade is there");
        let boards = of("DepthSnapshot");
        assert!(boards.len() <= BEHIND_FRAMES + symbols.len(), "{}", boards.len());
        let newest: Vec<u64> = (frames - 3..frames).map(|frame| 2 * frame + 1).collect();
        assert_eq!(boards[boards.len() - 3..], newest, "the newest of each symbol");
    }
}
