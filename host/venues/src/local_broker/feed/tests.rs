//! Frames, one rule after the other, and random streams of them.

use std::sync::{Arc, Mutex};

use domain::JstDate;
use domain::market_update::Level;
use domain::time::{NANOS_PER_DAY, NANOS_PER_SECOND};
use proptest::prelude::*;

use super::*;

const YEN: i64 = 10_000;
const SHARE: i64 = 10_000;

fn date() -> JstDate {
    JstDate::from_ymd_opt(2026, 11, 24).unwrap()
}

/// Seconds after 09:00 in Japan.
fn at(seconds: u64) -> TsNanos {
    TsNanos::from_jst(date(), (9 * 3_600 + seconds) * NANOS_PER_SECOND).unwrap()
}

/// A board of 7203 with a quote of 100 to 102 yen.
fn board(price: Option<i64>, volume: Option<i64>) -> GatewayBoard {
    quoted(price, volume, Some(102), Some(100))
}

fn quoted(
    price: Option<i64>,
    volume: Option<i64>,
    ask: Option<i64>,
    bid: Option<i64>,
) -> GatewayBoard {
    let level = |price: i64| Level { price: price * YEN, quantity: 300 * SHARE };
    GatewayBoard {
        symbol: "7203".to_owned(),
        exchange: Some(1),
        last_price: price.map(|price| price * YEN),
        volume: volume.map(|volume| volume * SHARE),
        best_ask: ask.map(|price| price * YEN),
        best_bid: bid.map(|price| price * YEN),
        asks: ask.map(level).into_iter().collect(),
        bids: bid.map(level).into_iter().collect(),
        ..GatewayBoard::default()
    }
}

/// Price and shares of a trade with its side and rule.
type Seen = (i64, i64, AggressorSide, SideRule);

impl Feed {
    fn take(&mut self, board: &GatewayBoard, received: TsNanos) -> MarketUpdate {
        self.frame(board.clone(), received).unwrap()
    }

    fn read(&mut self, read: &GatewayBoard, received: TsNanos) -> Board {
        self.board(read.clone(), received).unwrap()
    }
}

fn seen(trade: Option<TradePrint>) -> Option<Seen> {
    let trade = trade?;
    assert_eq!(trade.after_gap, trade.side_rule == Some(SideRule::AfterGap));
    let (price, qty) = (trade.price / YEN, trade.quantity / SHARE);
    Some((price, qty, trade.side, trade.side_rule.unwrap()))
}

/// The trades of frames of price and volume, in one session.
fn trades(frames: &[(Option<i64>, Option<i64>)]) -> Vec<Option<Seen>> {
    let mut feed = Feed::default();
    let take = |(price, volume): &(Option<i64>, Option<i64>)| {
        seen(feed.take(&board(*price, *volume), at(0)).trade)
    };
    frames.iter().map(take).collect()
}

const BUY: (AggressorSide, SideRule) = (AggressorSide::Buy, SideRule::AtAsk);
const SELL: (AggressorSide, SideRule) = (AggressorSide::Sell, SideRule::AtBid);
const MISSED: (AggressorSide, SideRule) = (AggressorSide::Unknown, SideRule::AfterGap);
const AUCTION: (AggressorSide, SideRule) = (AggressorSide::Unknown, SideRule::Auction);

fn trade(price: i64, qty: i64, (side, rule): (AggressorSide, SideRule)) -> Option<Seen> {
    Some((price, qty, side, rule))
}

#[test]
fn p53_a_snapshot_has_every_field() {
    let mut feed = Feed::default();
    feed.begin_session(at(0));
    let mut board = quoted(Some(101), Some(500), Some(102), Some(100));
    board.time_ms = Some(1_795_478_400_000);
    // An unordered book is passed on as it came.
    board.bids.push(Level { price: 1_005_000, quantity: 0 });
    let out = feed.take(&board, TsNanos::from_nanos(at(1).nanos() + 2_999_999));
    let level = |price, shares| Level { price, quantity: shares * SHARE };
    assert_eq!(
        out.board,
        Board {
            symbol: Symbol::new("7203").unwrap(),
            stream_session_id: "20261124-1795478400000".into(),
            sequence_id: 1,
            received: TsNanos::from_nanos(1_795_478_401_002_000_000),
            timestamp_ms: 1_795_478_400_000,
            timestamp_source: TimeSource::Venue,
            last_price: Some(101 * YEN),
            bids: vec![level(1_000_000, 300), level(1_005_000, 0)],
            asks: vec![level(1_020_000, 300)],
        }
    );
}

#[test]
fn p53_the_time_of_receipt_stands_in_for_a_missing_time() {
    let mut feed = Feed::default();
    let mut next = board(Some(102), Some(100));
    feed.take(&board(Some(101), Some(0)), at(0));
    let out = feed.take(&next, at(3));
    assert_eq!(out.board.timestamp_source, TimeSource::Received);
    assert_eq!(out.board.timestamp_ms, at(3).millis());
    let trade = out.trade.unwrap();
    assert_eq!((trade.timestamp_ms, trade.received), (at(3).millis(), at(3)));
    next.volume = Some(200 * SHARE);
    next.time_ms = Some(at(4).millis());
    let out = feed.take(&next, at(5));
    assert_eq!((out.board.timestamp_ms, out.board.received), (at(4).millis(), at(5)));
    let trade = out.trade.unwrap();
    assert_eq!((trade.timestamp_ms, trade.received), (at(4).millis(), at(5)));
}

#[test]
fn p53_p56_snapshots_and_trades_share_the_numbers_of_a_symbol() {
    let mut feed = Feed::default();
    let mut numbers = Vec::new();
    for volume in [0, 100, 100, 200] {
        let board = board(Some(102), Some(volume));
        let out = feed.take(&board, at(0));
        numbers.push(out.board.sequence_id);
        numbers.extend(out.trade.map(|trade| trade.sequence_id));
    }
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let other = GatewayBoard { symbol: "130A".to_owned(), ..board(Some(102), Some(0)) };
    assert_eq!(feed.take(&other, at(0)).board.sequence_id, 1);
    // A board that is read takes no number: a client that follows the stream misses none.
    assert_eq!(feed.read(&other, at(0)).sequence_id, 1);
    assert_eq!(feed.take(&other, at(0)).board.sequence_id, 2);
    assert_eq!(feed.take(&board(None, None), at(0)).board.sequence_id, 7);
}

#[test]
fn p54_the_quote_before_decides_not_that_of_the_same_frame() {
    let mut feed = Feed::default();
    feed.take(&quoted(Some(101), Some(100), Some(102), Some(100)), at(0));
    assert_eq!(
        seen(feed.take(&quoted(Some(102), Some(200), Some(104), Some(102)), at(0)).trade),
        trade(102, 100, BUY)
    );
    assert_eq!(
        seen(feed.take(&quoted(Some(102), Some(300), Some(102), Some(100)), at(0)).trade),
        trade(102, 100, SELL)
    );
}

#[test]
fn p54_without_any_quote_before_there_is_no_trade_and_no_share_is_lost() {
    let mut feed = Feed::default();
    feed.take(&quoted(Some(101), Some(100), None, None), at(0));
    assert_eq!(feed.take(&board(Some(102), Some(200)), at(0)).trade, None);
    assert_eq!(seen(feed.take(&board(Some(102), Some(400)), at(0)).trade), trade(102, 300, BUY));
}

#[test]
fn p54_one_side_and_the_midpoint() {
    let mut feed = Feed::default();
    feed.take(&quoted(Some(101), Some(100), Some(102), None), at(0));
    assert_eq!(
        seen(feed.take(&board(Some(101), Some(200)), at(0)).trade),
        trade(101, 100, (AggressorSide::Unknown, SideRule::OneSided))
    );
    assert_eq!(
        seen(feed.take(&board(Some(101), Some(300)), at(0)).trade),
        trade(101, 100, (AggressorSide::Buy, SideRule::Midpoint))
    );
}

/// A text that a log is written to.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn p54_the_log_is_warned_of_midpoints_once_a_minute() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        let mut feed = Feed::default();
        for (seconds, volume) in [(0, 50), (1, 100), (2, 200), (60, 300), (61, 400), (62, 500)] {
            feed.take(&board(Some(101), Some(volume)), at(seconds));
        }
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains("WARN") && lines[0].contains("count=1"), "{log}");
    assert!(lines[1].contains("WARN") && lines[1].contains("count=3"), "{log}");
}

#[test]
fn p55_the_first_frame_and_a_falling_volume_give_no_trade() {
    let found = trades(&[
        (Some(102), Some(500)),
        (Some(102), Some(700)),
        (Some(102), Some(300)),
        (Some(102), Some(400)),
    ]);
    assert_eq!(found, [None, trade(102, 200, BUY), None, trade(102, 100, BUY)]);
}

#[test]
fn p55_null_carries_the_last_volume_and_duplicates_give_nothing() {
    let found = trades(&[
        (Some(100), Some(500)),
        (Some(100), None),
        (Some(100), Some(500)),
        (Some(100), Some(500)),
        (Some(100), None),
        (Some(100), Some(600)),
        (Some(100), Some(600)),
    ]);
    assert_eq!(found, [None, None, None, None, None, trade(100, 100, SELL), None]);
}

#[test]
fn p55_the_first_number_after_frames_without_one_is_the_opening_auction() {
    for closed in [None, Some(0)] {
        let found = trades(&[
            (None, closed),
            (None, closed),
            (Some(102), Some(500)),
            (Some(102), Some(600)),
        ]);
        assert_eq!(found, [None, None, trade(102, 500, AUCTION), trade(102, 100, BUY)]);
        // No quote is needed, but a price is awaited.
        let mut feed = Feed::default();
        let mut take =
            |price, volume| seen(feed.take(&quoted(price, volume, None, None), at(0)).trade);
        assert_eq!(take(None, closed), None);
        assert_eq!(take(None, Some(500)), None);
        assert_eq!(take(Some(102), Some(600)), trade(102, 600, AUCTION));
    }
    // Both, one after the other.
    let found = trades(&[(None, None), (None, Some(0)), (None, None), (Some(99), Some(100))]);
    assert_eq!(found, [None, None, None, trade(99, 100, AUCTION)]);
    // A reset to 0 starts anew.
    let found = trades(&[(Some(99), Some(500)), (Some(99), Some(0)), (Some(99), Some(100))]);
    assert_eq!(found, [None, None, trade(99, 100, AUCTION)]);
}

#[test]
fn p55_after_a_gap_a_late_start_or_a_number_there_is_no_auction() {
    let take = |feed: &mut Feed, volume| seen(feed.take(&board(Some(102), volume), at(0)).trade);
    // The part of the opening that was pushed while the push was down is unknown.
    let mut feed = Feed::default();
    assert_eq!(take(&mut feed, None), None);
    feed.gap();
    assert_eq!(take(&mut feed, Some(500)), None);
    assert_eq!(take(&mut feed, Some(600)), trade(102, 100, BUY));
    let mut feed = Feed::default();
    assert_eq!(take(&mut feed, Some(0)), None);
    feed.gap();
    assert_eq!(take(&mut feed, Some(500)), trade(102, 500, MISSED));
    // A frame after the gap shows that nothing was missed.
    for closed in [None, Some(0)] {
        let mut feed = Feed::default();
        assert_eq!(take(&mut feed, None), None);
        feed.gap();
        assert_eq!(take(&mut feed, closed), None);
        assert_eq!(take(&mut feed, Some(500)), trade(102, 500, AUCTION));
    }
    // A volume came before, in the session of an earlier subscription: so null is not the opening.
    let mut feed = Feed::default();
    assert_eq!(take(&mut feed, Some(500)), None);
    feed.forget("7203");
    assert_eq!(take(&mut feed, None), None);
    assert_eq!(take(&mut feed, Some(900)), None);
    feed.begin_session(at(1));
    assert_eq!(take(&mut feed, None), None);
    assert_eq!(take(&mut feed, Some(900)), trade(102, 900, AUCTION));
}

#[test]
fn p55_volume_without_a_price_is_added_to_the_next_trade() {
    let found = trades(&[
        (Some(102), Some(100)),
        (None, Some(200)),
        (None, Some(400)),
        (Some(102), Some(400)),
        (Some(102), Some(400)),
    ]);
    assert_eq!(found, [None, None, None, trade(102, 300, BUY), None]);
}

#[test]
fn p55_what_a_gap_missed_is_one_trade_at_the_first_price_after_it() {
    let mut feed = Feed::default();
    let mut take = |price, volume| seen(feed.take(&board(price, volume), at(0)).trade);
    assert_eq!(take(Some(102), Some(50)), None);
    assert_eq!(take(Some(102), Some(100)), trade(102, 50, BUY));
    feed.gap();
    let mut take = |price, volume| seen(feed.take(&board(price, volume), at(0)).trade);
    // Neither shows how much was missed at which price.
    assert_eq!(take(Some(102), None), None);
    assert_eq!(take(None, Some(400)), None);
    assert_eq!(take(Some(102), Some(450)), trade(102, 350, MISSED));
    assert_eq!(take(Some(102), Some(500)), trade(102, 50, BUY));
    feed.gap();
    let mut take = |price, volume| seen(feed.take(&board(price, volume), at(0)).trade);
    // Nothing was missed.
    assert_eq!(take(Some(102), Some(500)), None);
    assert_eq!(take(Some(102), Some(600)), trade(102, 100, BUY));
    feed.gap();
    // A reset in the gap is a first frame, and no gap any more.
    let mut take = |price, volume| seen(feed.take(&board(price, volume), at(0)).trade);
    assert_eq!(take(Some(102), Some(50)), None);
    assert_eq!(take(Some(102), Some(60)), trade(102, 10, BUY));
}

#[test]
fn p55_a_new_day_is_a_reset() {
    let mut feed = Feed::default();
    feed.begin_session(at(0));
    feed.take(&board(Some(102), Some(0)), at(0));
    let midnight = TsNanos::from_jst(date(), NANOS_PER_DAY).unwrap();
    let last = TsNanos::from_nanos(midnight.nanos() - 1);
    assert!(feed.take(&board(Some(102), Some(100)), last).trade.is_some());
    let later = board(Some(102), Some(900));
    let out = feed.take(&later, midnight.plus_nanos(5 * NANOS_PER_SECOND));
    assert_eq!(out.trade, None);
    assert_eq!(out.board.sequence_id, 1);
    let expected = format!("20261125-{}", midnight.millis());
    assert_eq!(*out.board.stream_session_id, *expected);
    // A clock that goes back a little over midnight stays in the session.
    let out = feed.take(&later, last);
    assert_eq!((out.board.sequence_id, out.trade), (2, None));
    assert_eq!(*out.board.stream_session_id, *expected);
}

#[test]
fn p54_a_login_is_a_session_and_a_gap_is_none() {
    let mut feed = Feed::default();
    feed.begin_session(at(0));
    let first = board(Some(102), Some(100));
    let session = |out: &MarketUpdate| out.board.stream_session_id.to_string();
    let one = session(&feed.take(&first, at(1)));
    assert_eq!(one, format!("20261124-{}", at(0).millis()));
    feed.gap();
    let out = feed.take(&first, at(2));
    assert_eq!((session(&out), out.board.sequence_id), (one.clone(), 2));
    // Two logins in one millisecond are two sessions.
    feed.begin_session(at(0));
    let next = board(Some(102), Some(500));
    let out = feed.take(&next, at(3));
    assert_ne!(session(&out), one);
    assert_eq!((out.board.sequence_id, out.trade), (1, None));
}

#[test]
fn p51_a_board_that_was_read_sets_no_quote_and_no_volume() {
    let mut feed = Feed::default();
    let read = quoted(Some(105), Some(900), Some(90), Some(80));
    assert_eq!(feed.read(&read, at(0)).sequence_id, 0);
    assert_eq!(feed.take(&board(Some(102), Some(50)), at(0)).trade, None);
    feed.read(&read, at(0));
    assert_eq!(seen(feed.take(&board(Some(100), Some(150)), at(0)).trade), trade(100, 100, SELL));
    let snapshot = feed.read(&read, at(1));
    assert_eq!((snapshot.sequence_id, snapshot.last_price), (3, Some(105 * YEN)));
}

#[test]
fn a_symbol_that_is_subscribed_again_begins_anew_with_higher_numbers() {
    let mut feed = Feed::default();
    feed.take(&board(Some(102), Some(100)), at(0));
    feed.forget("7203");
    feed.forget("9999");
    let next = board(Some(102), Some(900));
    let out = feed.take(&next, at(0));
    assert_eq!((out.board.sequence_id, out.trade), (2, None));
}

#[test]
fn no_more_than_the_limit_of_streams_is_stored() {
    let mut feed = Feed::default();
    let symbol = |n: usize| GatewayBoard { symbol: format!("{n:04}"), ..board(Some(102), None) };
    // A symbol that is pushed stays; boards that were read are removed, the oldest first.
    feed.take(&GatewayBoard { volume: Some(0), ..symbol(0) }, at(0));
    for n in 1..STREAMS_MAX {
        feed.take(&symbol(n), at(0));
        feed.take(&symbol(n), at(0));
        feed.forget(&symbol(n).symbol);
    }
    feed.read(&symbol(1), at(0));
    assert_eq!(feed.streams.len(), STREAMS_MAX);
    assert_eq!(feed.take(&symbol(STREAMS_MAX), at(0)).board.sequence_id, 3);
    assert_eq!(feed.streams.len(), STREAMS_MAX);
    assert!(feed.place("0002").is_err());
    // No number of a session comes twice.
    assert_eq!(feed.take(&symbol(2), at(0)).board.sequence_id, 3);
    assert_eq!(
        seen(feed.take(&GatewayBoard { volume: Some(100 * SHARE), ..symbol(0) }, at(0)).trade),
        trade(102, 100, AUCTION)
    );
    for n in 0..2 * STREAMS_MAX {
        feed.take(&symbol(n), at(0));
    }
    assert_eq!(feed.streams.len(), STREAMS_MAX);
}

#[test]
fn p55_what_waited_before_a_gap_waits_for_the_volume_after_it() {
    let mut feed = Feed::default();
    let take = |feed: &mut Feed, price, volume| seen(feed.take(&board(price, volume), at(0)).trade);
    take(&mut feed, Some(102), Some(0));
    assert_eq!(take(&mut feed, None, Some(100)), None);
    feed.gap();
    assert_eq!(take(&mut feed, Some(102), None), None);
    assert_eq!(take(&mut feed, Some(102), Some(250)), trade(102, 250, MISSED));
}

#[test]
fn the_first_message_after_an_interruption_says_so() {
    let mut feed = Feed::default();
    let gaps = |feed: &mut Feed| feed.take(&board(Some(102), Some(100)), at(0)).gap;
    assert!(!gaps(&mut feed));
    feed.gap();
    feed.read(&board(None, None), at(0));
    assert_eq!((gaps(&mut feed), gaps(&mut feed)), (true, false));
    feed.gap_of("7203");
    assert!(gaps(&mut feed));
    feed.gap();
    feed.forget("7203");
    assert!(!gaps(&mut feed));
    feed.gap();
    feed.begin_session(at(1));
    assert!(!gaps(&mut feed));
}

/// One event of a stream.
#[derive(Debug, Clone)]
enum Step {
    Frame { price: Option<i64>, volume: Option<i64>, ask: Option<i64>, bid: Option<i64> },
    Again,
    Gap,
    Read,
    Forget,
    Login,
    NextDay,
}

fn step() -> impl Strategy<Value = Step> {
    let price = || proptest::option::weighted(0.8, 98_i64..104);
    let frame = (price(), proptest::option::weighted(0.8, 0_i64..400), price(), price());
    let frame =
        frame.prop_map(|(price, volume, ask, bid)| Step::Frame { price, volume, ask, bid }).boxed();
    prop_oneof![
        20 => frame,
        3 => Just(Step::Again),
        2 => Just(Step::Gap),
        1 => Just(Step::Read),
        1 => Just(Step::Forget),
        1 => Just(Step::Login),
        1 => Just(Step::NextDay),
    ]
}

proptest! {
    /// Volumes add up: between two first frames, the volume in trades and the volume that waits for a price
    /// equal the last volume less the first.
    #[test]
    fn p55_trades_add_up_to_the_volume(steps in proptest::collection::vec(step(), 1..120), rising: bool) {
        let mut feed = Feed::default();
        let mut now = at(0);
        let (mut first, mut last, mut sum) = (None::<i64>, None::<i64>, 0_i64);
        let mut before = board(None, None);
        let mut numbers = (String::new(), 0_u64);
        let (mut is_missed, mut is_unopened, mut was_open) = (false, false, false);
        for step in steps {
            now = now.plus_nanos(1_000_000);
            let frame = match step {
                Step::Frame { price, volume, ask, bid } => {
                    // Either a market whose volume grows, or one with resets all the time.
                    let grown = |volume: i64| if rising { last.unwrap_or(0) / SHARE + volume / 2 } else { volume };
                    quoted(price, volume.map(grown), ask, bid)
                }
                Step::Again => before.clone(),
                Step::Gap => { feed.gap(); (is_missed, is_unopened) = (true, false); continue }
                Step::Read => {
                    let read = feed.read(&before, now);
                    numbers = (read.stream_session_id.to_string(), read.sequence_id);
                    continue;
                }
                Step::Forget | Step::Login | Step::NextDay => {
                    match step {
                        Step::Forget => feed.forget("7203"),
                        Step::Login => feed.begin_session(now),
                        _ => now = now.plus_nanos(NANOS_PER_DAY),
                    }
                    was_open = matches!(step, Step::Forget) && (was_open || last.is_some_and(|last| last > 0));
                    (first, last, sum, is_unopened) = (None, None, 0, false);
                    continue;
                }
            };
            // Only frames without a volume since the session began or the push was open: the first volume is
            // the opening auction.
            let is_auction = is_unopened && last.is_none() && frame.volume.is_some();
            if let Some(volume) = frame.volume {
                if is_auction {
                    (first, sum) = (Some(0), 0);
                } else if last.is_none_or(|last| volume < last) {
                    was_open = was_open && last.is_none();
                    (first, sum) = (Some(volume), 0);
                    is_missed = false;
                }
                last = Some(volume);
            } else {
                is_unopened = last.is_none() && !was_open;
            }
            let out = feed.take(&frame, now);
            let session = out.board.stream_session_id.to_string();
            let mut seen = vec![out.board.sequence_id];
            if let Some(trade) = &out.trade {
                seen.push(trade.sequence_id);
                sum += trade.quantity;
                prop_assert!(trade.quantity > 0);
                prop_assert_eq!(Some(trade.price), frame.last_price);
                prop_assert!(is_missed || !trade.after_gap);
                is_missed = false;
            }
            // Each number of a session comes once, without gaps.
            let next = if numbers.0 == session { numbers.1 + 1 } else { 1 };
            let expected: Vec<u64> = (next..).take(seen.len()).collect();
            prop_assert_eq!(&seen, &expected);
            numbers = (session, seen[seen.len() - 1]);
            let untraded = feed.streams[feed.place("7203").unwrap()].market.untraded;
            prop_assert_eq!(sum + untraded, last.unwrap_or(0) - first.unwrap_or(0));
            // Nothing waits if a price, a volume and an earlier quote were there.
            let has_quote = before.best_ask.is_some() || before.best_bid.is_some();
            if frame.last_price.is_some() && frame.volume.is_some() && has_quote {
                prop_assert_eq!(untraded, 0);
            }
            before = frame;
        }
    }

    /// Any numbers: nothing overflows and nothing panics.
    #[test]
    fn any_number_is_taken(numbers: Vec<(Option<i64>, Option<i64>, Option<i64>, Option<i64>, Option<u64>)>) {
        let mut feed = Feed::default();
        for (price, volume, ask, bid, time) in numbers {
            let board = GatewayBoard {
                last_price: price,
                volume,
                best_ask: ask,
                best_bid: bid,
                time_ms: time,
                ..board(None, None)
            };
            let received = TsNanos::from_nanos(time.unwrap_or_default());
            let out = feed.take(&board, received);
            prop_assert!(out.trade.is_none_or(|trade| trade.quantity > 0));
        }
    }
}
