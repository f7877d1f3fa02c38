//! The picture: one ticker's board in the middle, its trades beside it, and where the venue stands.

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
use super::note::{NOTE_LINES_MAX, wrapped};
use super::tabs;
use crate::terminal::grouped;

/// Columns of the board: quantity, price, quantity.
const BOARD_WIDTH: u16 = 40;
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
    let mut text = String::new();
    for line in std::iter::once(head(watch, book)).chain(board_lines(book, 2 * LEVELS + 1)) {
        text.push_str(line.to_string().trim_end());
        text.push('\n');
    }
    text
}

fn render(watch: &Watch, area: Rect, buffer: &mut Buffer) {
    let book = watch.selected();
    let footer = footer(watch, book, area);
    let [title, tabs, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(u16::try_from(footer.len()).unwrap_or(u16::MAX)),
    ])
    .areas(area);
    head(watch, book).render(title, buffer);
    names(watch, usize::from(tabs.width)).render(tabs, buffer);
    let [board, _, side] = Layout::horizontal([
        Constraint::Length(BOARD_WIDTH),
        Constraint::Length(2),
        Constraint::Min(0),
    ])
    .areas(body);
    lines(&board_lines(book, usize::from(board.height)), board, buffer);
    lines(&trade_lines(book, usize::from(side.height)), side, buffer);
    lines(&footer, foot, buffer);
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

fn yen(price: Option<Decimal>) -> String {
    price.map_or_else(|| "-".to_owned(), |price| grouped(&price.to_string()))
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
fn head(watch: &Watch, book: &Book) -> Line<'static> {
    let mut spans = vec![bold(safe(&book.ticker)), Span::raw(" ")];
    if let Some(name) = &book.name {
        spans.push(Span::raw(format!("{}  ", safe(name))));
    }
    if let Some(depth) = &book.depth {
        spans.push(bold(yen(depth.last_price)));
        spans.push(Span::raw(format!(" yen  {} in Japan", time(depth.timestamp_ms))));
    }
    if watch.is_production {
        let style = Style::new().fg(Color::Black).bg(Color::Yellow);
        spans.push(Span::raw("  "));
        spans.push(Span::styled(" the real market ", style));
    }
    Line::from(spans)
}

/// The tickers, and where the venue stands.
fn names(watch: &Watch, width: usize) -> Line<'static> {
    let style = match watch.state {
        Some(VenueLifecycle::Ready) => Style::new().fg(Color::Green),
        _ => Style::new().fg(Color::Yellow),
    };
    let standing = [Span::raw("  "), Span::styled(safe(&watch.standing()), style)];
    let names: Vec<String> = watch.books.iter().map(|book| safe(&book.ticker)).collect();
    let room = width.saturating_sub(standing.iter().map(Span::width).sum());
    let shown = tabs::shown(&names, watch.shown, room);
    let more = |is_more: bool| is_more.then(|| dim(tabs::MORE));
    let mut spans = Vec::from_iter(more(shown.start > 0));
    for index in shown.clone() {
        let name = &names[index];
        if index == watch.shown {
            let style = Style::new().add_modifier(Modifier::REVERSED);
            spans.push(Span::styled(format!("[{name}]"), style));
        } else {
            spans.push(dim(format!(" {name} ")));
        }
    }
    spans.extend(more(shown.end < names.len()));
    spans.extend(standing);
    Line::from(spans)
}

/// The levels, the best ones in the middle; as many as there is room for.
fn board_lines(book: &Book, height: usize) -> Vec<Line<'static>> {
    let heading = format!("{:>12}  {:>12}  {:>12}", "sell", "price", "buy");
    let mut lines = vec![Line::from(dim(heading))];
    let Some(depth) = &book.depth else {
        lines.push(Line::from(dim("  waiting for the first board ...")));
        return lines;
    };
    let levels = (height.saturating_sub(1) / 2).min(LEVELS);
    let side = |level: Option<&BookLevel>, is_sell: bool| {
        let Some(level) = level else {
            return Line::from(dim(format!("{:>12}  {:>12}", "", "-")));
        };
        let (qty, price) = (grouped(&level.qty.to_string()), grouped(&level.price.to_string()));
        let mut style = Style::new().fg(if is_sell { SELL } else { BUY });
        if Some(level.price) == depth.last_price {
            style = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        }
        let (sell, buy) = if is_sell { (qty, String::new()) } else { (String::new(), qty) };
        Line::from(vec![
            Span::raw(format!("{sell:>12}  ")),
            Span::styled(format!("{price:>12}"), style),
            Span::raw(format!("  {buy:>12}")),
        ])
    };
    lines.extend((0..levels).rev().map(|index| side(depth.asks.get(index), true)));
    lines.extend((0..levels).map(|index| side(depth.bids.get(index), false)));
    lines
}

/// The last trades, the newest first.
fn trade_lines(book: &Book, height: usize) -> Vec<Line<'static>> {
    let heading = format!("{:8}  {:>10}  {:>9}  {}", "time", "price", "shares", "who");
    let mut lines = vec![Line::from(dim(heading))];
    lines.extend(book.trades.iter().take(height.saturating_sub(1)).map(trade_line));
    lines
}

fn trade_line(trade: &TradeRow) -> Line<'static> {
    let (who, style) = match trade.side {
        TradeSide::Buy => ("buy", Style::new().fg(BUY)),
        TradeSide::Sell => ("sell", Style::new().fg(SELL)),
        TradeSide::Unknown => ("?", Style::new()),
    };
    let why = match trade.side_rule {
        Some(SideRule::Midpoint) => " mid",
        Some(SideRule::InsideNearer) => " inside",
        Some(SideRule::Crossed) => " crossed",
        Some(SideRule::OneSided) => " one side",
        Some(SideRule::AfterGap) => " gap",
        Some(SideRule::AtAsk | SideRule::AtBid) | None => "",
    };
    let (price, qty) = (grouped(&trade.price.to_string()), grouped(&trade.qty.to_string()));
    Line::from(vec![
        Span::raw(format!("{:8}  ", time(trade.ts_ms))),
        Span::styled(format!("{price:>10}"), style),
        Span::raw(format!("  {qty:>9}  ")),
        Span::styled(who, style),
        dim(why),
    ])
}

/// What keys do, and what the stream left out; or what was told last.
fn footer(watch: &Watch, book: &Book, area: Rect) -> Vec<Line<'static>> {
    if let Some(note) = &watch.note {
        let most = usize::from(area.height / 2).clamp(1, NOTE_LINES_MAX);
        let lines = wrapped(&safe(note), usize::from(area.width), most);
        let style = Style::new().fg(Color::Yellow);
        return lines.into_iter().map(|line| Line::from(Span::styled(line, style))).collect();
    }
    let keys = if watch.books.len() > 1 { "q quit  Tab next ticker" } else { "q quit" };
    let login = match watch.state {
        Some(VenueLifecycle::Ready) => "",
        _ => "  l log in",
    };
    let counted = format!("   {} told, {} left out", book.told, book.left_out);
    vec![Line::from(vec![dim(format!("{keys}{login}")), dim(counted)])]
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::book::tests::{depth, trades};
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
}
