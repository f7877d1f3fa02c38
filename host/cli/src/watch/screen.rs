//! The picture: one ticker's board in the middle, its trades beside it, and where the venue stands. A number is shown
//! whole or not at all, for a part of it is another number: what has no room is left out.

use domain::TsNanos;
use domain::text::on_one_line;
use domain::time::{NANOS_PER_MINUTE, NANOS_PER_SECOND};
use ipc::{BookLevel, Decimal, SideRule, TradeRow, TradeSide, VenueLifecycle};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::Watch;
use super::book::Book;
use super::note::{NOTE_LINES_MAX, columns, wrapped};
use super::tabs;
use crate::terminal::grouped;

/// What stands above the board.
const HEADINGS: [&str; 3] = ["sell", "price", "buy"];
/// Columns of a terminal that each column of the board has where there is room.
const COLUMN_WIDTH: usize = 12;
/// The same of the prices and the quantities of trades, and of who bought or sold, and why that is known.
const TRADE_PRICE_WIDTH: usize = 10;
const TRADE_QTY_WIDTH: usize = 9;
const SIDE_WIDTH: usize = 4;
const WHY_WIDTH: usize = 9;
/// A time of day with the space after it.
const TIME_WIDTH: usize = 10;
/// Between the columns.
const GAP: usize = 2;
/// Levels of a side (specification 1, "DepthSnapshot mapping").
const LEVELS: usize = 10;

/// Those who sell, and those who buy, in the colours of boards in Japan.
const SELL: Color = Color::Cyan;
const BUY: Color = Color::LightRed;

/// Draws the picture.
pub(super) fn draw(watch: &Watch, frame: &mut Frame<'_>) {
    render(watch, frame.area(), frame.buffer_mut());
}

/// The board alone, as lines of text without colours.
pub(super) fn board(watch: &Watch) -> String {
    let book = watch.selected();
    let mut all = vec![head(watch, book, true, usize::MAX)];
    if let Ok(columns) = Columns::of(book, usize::MAX) {
        all.extend(board_lines(book, &columns, 2 * LEVELS + 1));
    }
    let mut text = String::new();
    for line in all {
        text.push_str(line.to_string().trim_end());
        text.push('\n');
    }
    text
}

/// The columns of a board, and what is between them.
struct Columns {
    widths: [usize; 3],
    gap: usize,
}

impl Columns {
    /// Those of a book in so much room: all alike where that is possible, else as wide as what stands in them.
    ///
    /// # Errors
    /// Columns of a terminal that are needed.
    fn of(book: &Book, room: usize) -> Result<Self, usize> {
        let mut needed = HEADINGS.map(str::len);
        if let Some(depth) = &book.depth {
            for (levels, column) in [(&depth.asks, 0), (&depth.bids, 2)] {
                for level in levels.iter().take(LEVELS) {
                    needed[column] = needed[column].max(number(&level.qty).len());
                    needed[1] = needed[1].max(number(&level.price).len());
                }
            }
        }
        let widest = needed.into_iter().max().unwrap_or_default();
        let alike = (room.saturating_sub(2 * GAP) / 3).min(COLUMN_WIDTH).max(widest);
        let own = needed.map(|width| width.max(COLUMN_WIDTH));
        let all = [(own, GAP), ([alike; 3], GAP), (needed, 1)];
        let mut all = all.into_iter().map(|(widths, gap)| Self { widths, gap });
        all.find(|columns| columns.width() <= room).ok_or(Self { widths: needed, gap: 1 }.width())
    }

    fn width(&self) -> usize {
        self.widths.iter().sum::<usize>() + 2 * self.gap
    }

    /// Texts in them: one that sells, the price, and one that buys.
    fn cells(&self, texts: [&str; 3]) -> [String; 3] {
        let ([sell, price, buy], gap) = (self.widths, " ".repeat(self.gap));
        [
            format!("{:>sell$}{gap}", texts[0]),
            format!("{:>price$}", texts[1]),
            format!("{gap}{:>buy$}", texts[2]),
        ]
    }
}

fn render(watch: &Watch, area: Rect, buffer: &mut Buffer) {
    let book = watch.selected();
    let width = usize::from(area.width);
    let footer = footer(watch, book, area);
    let [title, tabs, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(u16::try_from(footer.len()).unwrap_or(u16::MAX)),
    ])
    .areas(area);
    head(watch, book, watch.is_live(), width).render(title, buffer);
    names(watch, width).render(tabs, buffer);
    let columns = Columns::of(book, width);
    let board_width = columns.as_ref().map_or(width, Columns::width);
    // A layout with a space takes that from the board where there is no room for both.
    let board_columns = u16::try_from(board_width).unwrap_or(u16::MAX);
    let board = Rect { width: board_columns.min(body.width), ..body };
    let beside = board.width.saturating_add(2).min(body.width);
    let side = Rect { x: body.x + beside, width: body.width - beside, ..body };
    let of_board = match (&book.depth, columns) {
        (None, _) => words(no_board(watch, book), board_width),
        (Some(_), Ok(columns)) => board_lines(book, &columns, usize::from(board.height)),
        (Some(_), Err(needed)) => words(&format!("the board needs {needed} columns"), width),
    };
    lines(&of_board, board, buffer);
    lines(&trade_lines(book, usize::from(side.width), usize::from(side.height)), side, buffer);
    if !watch.is_live() {
        buffer.set_style(body, Style::new().fg(Color::Reset).add_modifier(Modifier::DIM));
    }
    lines(&footer, foot, buffer);
}

/// The pieces of a line that have room, each whole: those with the lowest numbers come first, and after the first one
/// that has none no other does.
fn fitting(pieces: Vec<(u8, Span<'static>)>, room: usize) -> Line<'static> {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|index| pieces[*index].0);
    let (mut left, mut is_shown) = (room, vec![false; pieces.len()]);
    for index in order {
        let width = pieces[index].1.width();
        if width > left {
            break;
        }
        left -= width;
        is_shown[index] = true;
    }
    let pieces = pieces.into_iter().zip(is_shown);
    Line::from_iter(pieces.filter_map(|((_, span), is_shown)| is_shown.then_some(span)))
}

/// A text in lines that says why there is no board.
fn words(text: &str, width: usize) -> Vec<Line<'static>> {
    let lines = wrapped(text, width, NOTE_LINES_MAX);
    lines.into_iter().map(|line| Line::from(dim(line))).collect()
}

/// Why there is no board.
fn no_board(watch: &Watch, book: &Book) -> &'static str {
    if book.is_evicted {
        "not subscribed any more: it had to make room for another ticker; run `kumiki watch` again to subscribe it"
    } else if watch.is_of_forced_logout() {
        "no board comes until the forced logout of the gateway ends"
    } else {
        "waiting for the first board ..."
    }
}

fn lines(lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    for (line, row) in lines.iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

/// A text of the engine's, on one line.
fn safe(text: &str) -> String {
    on_one_line(text).into_owned()
}

/// A number as people read it.
fn number(number: &Decimal) -> String {
    grouped(&number.to_string())
}

/// The time of day in Japan.
fn time(millis: u64) -> String {
    let time = TsNanos::from_nanos(millis.saturating_mul(1_000_000));
    let nanos = time.jst_nanos_of_day();
    let part = |unit: u64, most: u64| nanos / unit % most;
    format!(
        "{:02}:{:02}:{:02}",
        part(60 * NANOS_PER_MINUTE, 24),
        part(NANOS_PER_MINUTE, 60),
        part(NANOS_PER_SECOND, 60)
    )
}

fn bold(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().add_modifier(Modifier::BOLD))
}

fn dim(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().add_modifier(Modifier::DIM))
}

/// The issue, its last price and when that was.
fn head(watch: &Watch, book: &Book, is_live: bool, width: usize) -> Line<'static> {
    let mark = Style::new().fg(Color::Black).bg(Color::Yellow);
    let mut pieces = vec![(0, bold(safe(&book.ticker)))];
    if let Some(name) = &book.name {
        pieces.push((5, Span::raw(format!(" {} ", safe(name)))));
    }
    if book.is_evicted {
        pieces.push((1, Span::raw(" ")));
        pieces.push((1, Span::styled("not subscribed", mark)));
    }
    if let Some(depth) = &book.depth {
        let price = depth.last_price.as_ref().map_or_else(|| "-".to_owned(), number);
        pieces.push((2, bold(format!(" {price}"))));
        pieces.push((2, Span::raw(" yen")));
        if !is_live {
            pieces.push((1, Span::raw("  ")));
            pieces.push((1, Span::styled("stale", mark)));
        }
        let of = if is_live { "  " } else { ", of " };
        pieces.push((4, Span::raw(format!("{of}{}", time(depth.timestamp_ms)))));
        pieces.push((6, Span::raw(" in Japan")));
    }
    if watch.is_production {
        pieces.push((3, Span::raw("  ")));
        pieces.push((3, Span::styled(" the real market ", mark)));
    }
    fitting(pieces, width)
}

/// The colour of where the venue stands.
fn colour(watch: &Watch) -> Color {
    use VenueLifecycle::{AppDown, Disconnected, TokenExpired};
    match watch.state {
        _ if watch.is_silent => Color::Magenta,
        Some(AppDown | TokenExpired | Disconnected) => Color::Red,
        _ if watch.is_live() => Color::Green,
        _ => Color::Yellow,
    }
}

/// The tickers, and where the venue stands in as many words as there is room for.
fn names(watch: &Watch, width: usize) -> Line<'static> {
    let names: Vec<String> = watch.books.iter().map(|book| safe(&book.ticker)).collect();
    // The selected one, and what says that there are more on both sides.
    let more = if names.len() > 1 { 2 * columns(tabs::MORE) } else { 0 };
    let selected = columns(&names[watch.shown]) + 2 + more;
    let all = watch.standing().map(|words| safe(&words));
    let standing = |room: usize| all.iter().find(|words| columns(words) <= room);
    let words = standing(width.saturating_sub(selected + 2)).map(|words| format!("  {words}"));
    let has_names = selected <= width && (words.is_some() || standing(width).is_none());
    let words = words.or_else(|| standing(width).cloned()).unwrap_or_default();
    let mut spans = Vec::new();
    if has_names {
        let shown = tabs::shown(&names, watch.shown, width - columns(&words));
        let more = |is_more: bool| is_more.then(|| dim(tabs::MORE));
        spans.extend(more(shown.start > 0));
        spans.extend(shown.clone().map(|index| tab(watch, index, &names[index])));
        spans.extend(more(shown.end < names.len()));
    }
    spans.push(Span::styled(words, Style::new().fg(colour(watch))));
    Line::from(spans)
}

/// The name of a ticker among the others.
fn tab(watch: &Watch, index: usize, name: &str) -> Span<'static> {
    let of_evicted = match watch.books[index].is_evicted {
        true => Modifier::CROSSED_OUT,
        false => Modifier::empty(),
    };
    if index == watch.shown {
        let style = Style::new().add_modifier(Modifier::REVERSED | of_evicted);
        Span::styled(format!("[{name}]"), style)
    } else {
        let style = Style::new().add_modifier(Modifier::DIM | of_evicted);
        Span::styled(format!(" {name} "), style)
    }
}

/// The levels, the best ones in the middle; as many as there is room for.
fn board_lines(book: &Book, columns: &Columns, height: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(dim(columns.cells(HEADINGS).concat()))];
    let Some(depth) = &book.depth else { return lines };
    let levels = (height.saturating_sub(1) / 2).min(LEVELS);
    let side = |level: Option<&BookLevel>, is_sell: bool| {
        let Some(level) = level else {
            return Line::from(dim(columns.cells(["", "-", ""]).concat()));
        };
        let (qty, price) = (number(&level.qty), number(&level.price));
        let mut style = Style::new().fg(if is_sell { SELL } else { BUY });
        if Some(level.price) == depth.last_price {
            style = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        }
        let (sell, buy) = if is_sell { (qty.as_str(), "") } else { ("", qty.as_str()) };
        let [sell, price, buy] = columns.cells([sell, &price, buy]);
        Line::from(vec![Span::raw(sell), Span::styled(price, style), Span::raw(buy)])
    };
    lines.extend((0..levels).rev().map(|index| side(depth.asks.get(index), true)));
    lines.extend((0..levels).map(|index| side(depth.bids.get(index), false)));
    lines
}

/// The last trades, the newest first; none where there is no room for them. Of their columns why it is known who
/// bought is left out first, then the time.
fn trade_lines(book: &Book, width: usize, height: usize) -> Vec<Line<'static>> {
    let rows = || book.trades.iter().take(height.saturating_sub(1));
    let price = rows().map(|trade| number(&trade.price).len()).max().unwrap_or_default();
    let price = price.max(TRADE_PRICE_WIDTH);
    let qty = rows().map(|trade| number(&trade.qty).len()).max().unwrap_or_default();
    let qty = qty.max(TRADE_QTY_WIDTH);
    let least = price + GAP + qty + GAP + SIDE_WIDTH;
    if least > width {
        return Vec::new();
    }
    let has_time = TIME_WIDTH + least <= width;
    let has_why = TIME_WIDTH + least + WHY_WIDTH <= width;
    let time_of = |text: &str| match has_time {
        true => format!("{text:TIME_WIDTH$}"),
        false => String::new(),
    };
    let heading = format!("{}{:>price$}  {:>qty$}  side", time_of("time"), "price", "shares");
    let line = |trade: &TradeRow| {
        let (side, style) = match trade.side {
            TradeSide::Buy => ("buy", Style::new().fg(BUY)),
            TradeSide::Sell => ("sell", Style::new().fg(SELL)),
            TradeSide::Unknown => ("?", Style::new()),
        };
        Line::from(vec![
            Span::raw(time_of(&time(trade.ts_ms))),
            Span::styled(format!("{:>price$}", number(&trade.price)), style),
            Span::raw(format!("  {:>qty$}  ", number(&trade.qty))),
            Span::styled(side, style),
            dim(if has_why { why(trade) } else { "" }),
        ])
    };
    std::iter::once(Line::from(dim(heading))).chain(rows().map(line)).collect()
}

/// Why it is known who bought, where that is not plain.
const fn why(trade: &TradeRow) -> &'static str {
    match trade.side_rule {
        Some(SideRule::Midpoint) => " mid",
        Some(SideRule::InsideNearer) => " inside",
        Some(SideRule::Crossed) => " crossed",
        Some(SideRule::OneSided) => " one side",
        Some(SideRule::AfterGap) => " gap",
        Some(SideRule::Auction) => " auction",
        Some(SideRule::AtAsk | SideRule::AtBid) | None => "",
    }
}

/// What keys do, and what the stream left out; or what was told last.
fn footer(watch: &Watch, book: &Book, area: Rect) -> Vec<Line<'static>> {
    if let Some(note) = &watch.note {
        let most = usize::from(area.height / 2).clamp(1, NOTE_LINES_MAX);
        let lines = wrapped(&safe(note), usize::from(area.width), most);
        let style = Style::new().fg(Color::Yellow);
        return lines.into_iter().map(|line| Line::from(Span::styled(line, style))).collect();
    }
    let mut pieces = vec![(0, dim("q quit"))];
    if watch.books.len() > 1 {
        pieces.push((2, dim("  Tab next ticker")));
    }
    if watch.state != Some(VenueLifecycle::Ready) {
        pieces.push((1, dim("  l log in")));
    }
    pieces.push((3, dim(format!("   {} told, {} left out", book.told, book.left_out))));
    vec![fitting(pieces, usize::from(area.width))]
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::book::tests::{depth, info, trades};
    use super::*;

    fn watch(tickers: &[&str]) -> Watch {
        let mut watch = Watch::new(tickers.iter().map(|ticker| (*ticker).to_owned()), false);
        watch.state = Some(VenueLifecycle::Ready);
        watch.push = Some("Streaming".to_owned());
        watch
    }

    /// What stands in a picture.
    fn text_of(buffer: &Buffer) -> String {
        let mut text = String::new();
        for row in buffer.area.rows() {
            let mut line = String::new();
            let mut covered = 0;
            for place in row.positions() {
                let symbol = buffer[place].symbol();
                // A wide letter covers the cell after it.
                if covered == 0 {
                    line.push_str(symbol);
                    covered = Span::raw(symbol).width().saturating_sub(1);
                } else {
                    covered -= 1;
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn drawn(watch: &Watch, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(watch, frame)).unwrap();
        text_of(terminal.backend().buffer())
    }

    #[test]
    fn the_board_has_ten_levels_of_each_side_around_the_middle() {
        let mut one = watch(&["7203", "9984"]);
        one.books[0].name = Some("トヨタ自動車".to_owned());
        one.books[0].take_depth(depth("s", 1));
        one.books[0].take_trades(&trades("s", &[2, 5]));
        let text = drawn(&one, 84, 24);
        println!("{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 24);
        assert_eq!(lines[0], "7203 トヨタ自動車  2,850.5 yen  13:00:05 in Japan");
        assert_eq!(lines[1], "[7203] 9984   local_broker Ready, push Streaming");
        assert_eq!(&lines[2][..40], "        sell         price           buy");
        assert_eq!(
            lines[3].trim_end(),
            "       1,000         2,860                13:00:05       2,851        500  buy"
        );
        assert_eq!(lines[12].trim_end(), "         100         2,851");
        assert_eq!(lines[13].trim_end(), "                     2,850           100");
        assert_eq!(lines[22].trim_end(), "                     2,841         1,000");
        assert_eq!(lines[23], "q quit  Tab next ticker   3 told, 2 left out");
        let board = board(&one);
        let lines: Vec<&str> = board.lines().collect();
        assert_eq!(lines.len(), 22);
        assert_eq!(lines[0], "7203 トヨタ自動車  2,850.5 yen  13:00:05 in Japan");
        assert_eq!(lines[12], "                     2,850           100");
    }

    #[test]
    fn a_small_terminal_shows_the_levels_next_to_the_middle() {
        let mut one = watch(&["7203"]);
        one.books[0].take_depth(depth("s", 1));
        let text = drawn(&one, 40, 10);
        let prices: Vec<&str> =
            text.lines().skip(3).take(6).map(|line| line[14..].trim_start()).collect();
        assert!(prices[0].starts_with("2,853") && prices[5].starts_with("2,848"), "{text}");
        for (width, height) in [(1, 1), (5, 3), (300, 80)] {
            drawn(&one, width, height);
        }
    }

    #[test]
    fn what_is_missing_is_not_made_up() {
        let mut one = watch(&["7203"]);
        assert!(drawn(&one, 84, 24).contains("waiting for the first board"));
        let mut thin = depth("s", 1);
        thin.asks.clear();
        thin.bids.truncate(1);
        thin.last_price = None;
        one.books[0].take_depth(thin);
        let text = drawn(&one, 84, 24);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("7203 - yen"), "{text}");
        assert!(lines[12].trim() == "-" && lines[14].trim() == "-", "{text}");
        assert!(lines[13].contains("2,850"), "{text}");
    }

    #[test]
    fn where_the_venue_stands_is_seen() {
        let mut one = watch(&["7203"]);
        one.state = Some(VenueLifecycle::TokenExpired);
        one.push = None;
        let text = drawn(&one, 84, 24);
        assert!(text.contains("local_broker TokenExpired") && text.contains("l log in"), "{text}");
        one.note = Some("the gateway is away\u{1b}[2J\nnow".to_owned());
        one.is_production = true;
        let text = drawn(&one, 84, 24);
        assert!(text.contains("the gateway is away") && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains("the real market"), "{text}");
    }

    #[test]
    fn the_selected_ticker_and_the_venue_are_seen_among_many() {
        let tickers: Vec<String> = (1_301..=1_350).map(|one: u32| one.to_string()).collect();
        let mut many = watch(&tickers.iter().map(String::as_str).collect::<Vec<_>>());
        for (shown, ticker) in tickers.iter().enumerate() {
            assert_eq!(many.shown, shown);
            let text = drawn(&many, 80, 24);
            let line = text.lines().nth(1).unwrap_or_default();
            assert!(line.contains(&format!("[{ticker}]")), "{line}");
            assert!(line.ends_with("  local_broker Ready, push Streaming"), "{line}");
            assert_eq!(line.starts_with('…'), shown >= 7, "{line}");
            assert_eq!(line.contains("…  "), shown < 49, "{line}");
            many.select(1);
        }
    }

    #[test]
    fn what_to_do_is_seen_at_the_end_of_a_long_message() {
        let mut one = watch(&["7203"]);
        one.books[0].take_depth(depth("s", 1));
        let told = "the gateway cannot be reached (connection refused): start its program on this \
                    machine, log in there, and then press l to log in again";
        one.note = Some(told.to_owned());
        for (width, height) in [(80, 24), (40, 24), (40, 10)] {
            let text = drawn(&one, width, height);
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(told), "{width} x {height}: {text}");
            assert!(words.contains("2,850"), "the best prices stay: {text}");
        }
        one.note = Some("long ".repeat(1_000));
        for (height, lines) in [(24, NOTE_LINES_MAX), (6, 3), (1, 1)] {
            let text = drawn(&one, 80, height);
            let of_note = text.lines().filter(|line| line.starts_with("long long")).count();
            assert!(of_note <= lines && (height < 4 || of_note == lines), "{height}: {text}");
        }
        assert!(drawn(&one, 80, 24).trim_end().ends_with('…'));
    }

    /// The numbers of a text: what of it has digits.
    fn numbers(text: &str) -> Vec<String> {
        let is_of_number = |letter: char| letter.is_ascii_digit() || ".,:".contains(letter);
        let all = text.split(|letter| !is_of_number(letter));
        let all = all.map(|number| number.trim_matches(['.', ',', ':']).to_owned());
        all.filter(|number| !number.is_empty()).collect()
    }

    /// A market of large numbers, each of them another.
    fn large(unit: i64) -> Watch {
        let decimal = |whole: i64| Decimal::from_units(whole * 10_000);
        let mut one = watch(&["7203", "9984"]);
        one.books[0].take_info(info(Some("上場投信100口")));
        let mut board = depth("s", 1);
        for (levels, sign) in [(&mut board.asks, 1), (&mut board.bids, -1)] {
            for (index, level) in (0..).zip(levels) {
                level.price = decimal(12_850 + sign * (5 + 5 * index));
                level.qty = decimal(unit * (123 + index) + 7);
            }
        }
        board.last_price = Some(decimal(12_850));
        one.books[0].take_depth(board);
        let mut all = trades("s", &(2..30).collect::<Vec<_>>());
        for (index, trade) in (0..).zip(&mut all.trades) {
            trade.price = decimal(12_850 + index);
            trade.qty = decimal(unit * (45 + index) + 1);
            trade.side_rule = Some(SideRule::OneSided);
        }
        one.books[0].take_trades(&all);
        one.books[0].told = 123_456;
        one.books[0].left_out = 7_890;
        one
    }

    #[test]
    fn a_number_is_shown_whole_or_not_at_all() {
        for unit in [1, 100, 1_000, 1_000_000] {
            let mut one = large(unit);
            let note = "the gateway's 127.0.0.1:18080 is away (4001007): wait 30,000 ms";
            for (is_told, is_real, push) in [
                (false, false, "Streaming"),
                (true, false, "Streaming"),
                (false, true, "Reconnecting 12"),
                (false, false, "Reconnecting 12"),
            ] {
                one.note = is_told.then(|| note.to_owned());
                one.is_production = is_real;
                one.push = Some(push.to_owned());
                let mut known = numbers(&drawn(&one, 300, 60));
                known.extend(["7203", "9984", "12", "123456", "7890"].map(str::to_owned));
                let board = Columns::of(&one.books[0], 0).err().unwrap_or_default();
                known.push(board.to_string());
                for width in 1..=120 {
                    for height in [1, 3, 10, 24, 30] {
                        let text = drawn(&one, width, height);
                        for number in numbers(&text) {
                            assert!(
                                known.contains(&number),
                                "{number} at {width} x {height}: {text}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_has_no_room_is_left_out_as_a_whole() {
        let one = large(100);
        let has = |width: u16, text: &str| drawn(&one, width, 24).contains(text);
        // The columns of the trades go, then the trades, and at last the board.
        assert!(has(88, "buy one side") && !has(87, "one side"));
        assert!(has(79, "13:00:05      12,877") && !has(78, "13:00:05      12,877"));
        assert!(has(69, "12,877      7,201  buy") && !has(68, "12,877"));
        for width in [20, 21, 22, 39, 40, 68] {
            assert!(has(width, "12,855") && has(width, "13,207"), "{}", drawn(&one, width, 24));
        }
        let text = drawn(&one, 19, 24);
        assert!(text.contains("the board needs 20") && !text.contains("12,855"), "{text}");
        let text = drawn(&one, 40, 24);
        assert!(text.starts_with("7203 上場投信100口  12,850 yen  13:00:05\n"), "{text}");
        assert!(drawn(&one, 24, 24).starts_with("7203 12,850 yen\n"));
        let text = drawn(&one, 25, 24);
        assert!(text.starts_with("7203 12,850 yen  13:00:05\n[7203] 9984   Ready\n"), "{text}");
        assert!(text.ends_with("q quit  Tab next ticker\n"), "{text}");
    }

    /// The picture of what cannot be seen in its text.
    fn painted(watch: &Watch) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(84, 24)).unwrap();
        terminal.draw(|frame| draw(watch, frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    #[test]
    fn what_is_not_live_is_dim_and_has_another_colour() {
        let mut one = watch(&["7203"]);
        one.books[0].take_depth(depth("s", 1));
        one.books[0].take_trades(&trades("s", &[2]));
        let look = |one: &Watch| {
            let picture = painted(one);
            let is_dim = |x, y| picture[(x, y)].modifier.contains(Modifier::DIM);
            // The best price of each side, a trade, and where the venue stands.
            let dim = [is_dim(22, 12), is_dim(22, 13), is_dim(55, 3)];
            (dim, picture[(10, 1)].fg, text_of(&picture).contains("stale, of 13:00:05 in Japan"))
        };
        assert_eq!(look(&one), ([false; 3], Color::Green, false));
        for (state, push, code, colour) in [
            (VenueLifecycle::Ready, Some("Connecting"), None, Color::Yellow),
            (VenueLifecycle::Ready, Some("Reconnecting 2"), None, Color::Yellow),
            (VenueLifecycle::Ready, Some("Streaming"), Some("forced_logout"), Color::Yellow),
            (VenueLifecycle::LoggingIn, None, None, Color::Yellow),
            (VenueLifecycle::AppDown, None, None, Color::Red),
            (VenueLifecycle::TokenExpired, None, None, Color::Red),
            (VenueLifecycle::Disconnected, None, None, Color::Red),
        ] {
            one.state = Some(state);
            one.push = push.map(str::to_owned);
            one.code = code.map(str::to_owned);
            assert_eq!(look(&one), ([true; 3], colour, true), "{state:?} {push:?} {code:?}");
        }
        one = watch(&["7203"]);
        one.books[0].take_depth(depth("s", 1));
        one.books[0].take_trades(&trades("s", &[2]));
        one.is_silent = true;
        assert_eq!(look(&one), ([true; 3], Color::Magenta, true));
        assert!(drawn(&one, 84, 24).contains("local_broker unknown: the engine does not answer"));
    }

    #[test]
    fn a_ticker_without_boards_says_why() {
        let mut one = watch(&["7203", "9984"]);
        one.books[0].take_depth(depth("s", 1));
        one.books[0].take_trades(&trades("s", &[2]));
        one.books[0].evict();
        let text = drawn(&one, 84, 24);
        assert!(text.starts_with("7203 not subscribed\n"), "{text}");
        assert!(text.contains("not subscribed any more: it had to make"), "{text}");
        assert!(!text.contains("2,85"), "{text}");
        let crossed = |x| painted(&one)[(x, 1)].modifier.contains(Modifier::CROSSED_OUT);
        assert!(crossed(1) && !crossed(7));
        let mut one = watch(&["7203"]);
        one.code = Some("forced_logout".to_owned());
        let text = drawn(&one, 84, 24);
        assert!(text.contains("no board comes until the forced logout"), "{text}");
        assert!(text.contains("forced logout: no boards until it ends"), "{text}");
    }
}
