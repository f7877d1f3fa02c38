//! Frames of boards on the push, good ones and those that faults make, and what they told.

use tokio::sync::mpsc::error::TrySendError;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::board::{Book, Level, Stretch};
use super::faults::FaultKind;
use super::gateway::Gateway;
use super::limits::STRETCHES_KEPT_MAX;

impl Gateway {
    /// Puts a message on the push, in turn.
    pub(crate) fn enqueue(&mut self, message: Message) -> bool {
        if self.push.is_some() {
            self.due.push_back(message);
        }
        self.push.is_some()
    }

    /// Hands over what is due, as far as there is room. Tells whether nothing is left.
    pub(crate) fn hand_over(&mut self) -> bool {
        let Some(push) = &self.push else {
            self.due.clear();
            return true;
        };
        while let Some(message) = self.due.pop_front() {
            match push.sender.try_send(message) {
                Ok(()) => {}
                Err(TrySendError::Full(message)) => {
                    self.due.push_front(message);
                    return false;
                }
                Err(TrySendError::Closed(_)) => {
                    self.due.clear();
                    self.push = None;
                    return true;
                }
            }
        }
        true
    }

    /// Frames of an issue's board, to every exchange that it is registered on.
    pub(crate) fn announce(&mut self, place: usize, is_trade: bool) {
        let symbol = self.boards[place].issue.symbol.clone();
        let exchanges: Vec<i64> = self
            .registered
            .iter()
            .filter(|entry| entry.pushes && entry.listed.symbol == symbol)
            .map(|entry| entry.listed.exchange)
            .collect();
        for exchange in exchanges {
            let is_heard = self.push.is_some() && !self.faults.has(FaultKind::SilentPush);
            if is_heard {
                self.announce_on(place, &symbol, exchange, is_trade);
            } else {
                self.counts.lost_frames += 1;
            }
        }
    }

    fn announce_on(&mut self, place: usize, symbol: &str, exchange: i64, is_trade: bool) {
        let faults = self.faults.of_frame();
        let names = self.config.quote_names;
        let board = &self.boards[place];
        let mut book = board.book;
        let (mut is_lost, mut is_twice, mut extra) = (false, false, Vec::new());
        let text = |book: &Book| board.text(symbol, exchange, book, names);
        for fault in &faults {
            match fault.name {
                FaultKind::LostFrames => is_lost = true,
                FaultKind::DuplicateFrames => is_twice = true,
                FaultKind::CrossedBook
                | FaultKind::OneSidedBook
                | FaultKind::UnorderedLevels
                | FaultKind::NullLevels => bend(&mut book, fault.name),
                FaultKind::WrongUtf8 => extra.push(broken_text(text(&board.book))),
                FaultKind::BinaryFrames => {
                    extra.push(Message::binary(text(&board.book).into_bytes()));
                }
                FaultKind::MalformedFrames => {
                    let half: String = text(&board.book).chars().take(500).collect();
                    extra.push(Message::text(half));
                }
                FaultKind::GiantFrames => {
                    let bytes = usize::try_from(fault.value).unwrap_or_default();
                    extra.push(Message::text(padded(text(&board.book), bytes)));
                }
                FaultKind::UnregisteredFrames => {
                    let other = ["9999", "9998"].into_iter().find(|other| *other != symbol);
                    let text = board.text(other.unwrap_or("9999"), exchange, &board.book, names);
                    extra.push(Message::text(text));
                }
                FaultKind::ForeignExchangeFrames => {
                    extra.push(Message::text(board.text(symbol, fault.value, &board.book, names)));
                }
                _ => {}
            }
        }
        let frame = Message::text(text(&book));
        self.counts.extra_frames += u64::try_from(extra.len()).unwrap_or_default();
        self.due.extend(extra);
        if is_lost {
            self.counts.lost_frames += 1;
            return;
        }
        if is_twice {
            self.counts.extra_frames += 1;
            self.due.push_back(frame.clone());
        }
        self.due.push_back(frame);
        self.counts.frames += 1;
        self.note(place, is_trade);
    }

    /// Puts down what a frame told.
    fn note(&mut self, place: usize, is_trade: bool) {
        let date = self.day;
        let board = &mut self.boards[place];
        board.truth.frames += 1;
        board.truth.pushed_trades += u64::from(is_trade);
        let Some(volume) = board.volume else {
            board.told_unopened = true;
            return;
        };
        if board.begins_stretch || board.truth.stretches.is_empty() {
            board.begins_stretch = false;
            if board.truth.stretches.len() == STRETCHES_KEPT_MAX {
                let old = board.truth.stretches.remove(0);
                board.truth.older += old.last - old.first;
            }
            let first = if board.told_unopened { 0 } else { volume };
            board.told_unopened = false;
            board.truth.stretches.push(Stretch { date, first, last: volume });
        } else if let Some(stretch) = board.truth.stretches.last_mut() {
            stretch.last = volume;
        }
    }
}

/// Makes a book one that should not be and yet is.
fn bend(book: &mut Book, how: FaultKind) {
    match how {
        FaultKind::CrossedBook => {
            let (sell, buy) = (book.sells[0], book.buys[0]);
            (book.sells[0], book.buys[0]) = (buy, sell);
        }
        FaultKind::OneSidedBook => book.sells.fill(None),
        FaultKind::UnorderedLevels => {
            book.buys.swap(7, 8);
            book.buys[9] = book.buys[7];
            book.sells.swap(1, 2);
        }
        _ => {
            for (level, place) in book.sells.iter_mut().chain(&mut book.buys).zip(0..) {
                let place: usize = place;
                *level = place.is_multiple_of(2).then_some(Level { price: None, shares: 0 });
            }
        }
    }
}

/// A text message whose bytes are no UTF-8.
fn broken_text(text: String) -> Message {
    let mut bytes = text.into_bytes();
    let middle = bytes.len() / 2;
    bytes[middle] = 0xff;
    Message::Frame(Frame::message(bytes, OpCode::Data(Data::Text), true))
}

/// The same frame with so many bytes.
fn padded(mut text: String, bytes: usize) -> String {
    text.pop();
    let rest = bytes.saturating_sub(text.len() + 14);
    format!("{text},\"Padding\":\"{}\"}}", " ".repeat(rest))
}
