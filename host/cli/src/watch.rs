//! `kumiki watch`: the live board of the local broker's gateway in a terminal, or its events for a script,
//! through the engine that runs (specification 1, "Events"; specification 4, P45, P51, P53).

mod book;
mod screen;

use std::io::{IsTerminal, stdin, stdout};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use domain::clock::Stopwatch;
use engine::client::Received;
use ipc::{
    Command, Event, GetBoard, GetVenueState, RequestVenueLogin, Subscribe, VenueLifecycle,
    VenueState,
};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self as keys, KeyCode, KeyEventKind, KeyModifiers};

use crate::args::{Format, WatchArgs};
use crate::interrupt::Interrupt;
use crate::order::asked::{Answer, Desk};
use crate::{Ending, order, output};

use book::Book;

/// The venue whose boards are watched.
const VENUE: &str = "local_broker";
/// How long an event is waited for before keys are looked at.
const LOOK: Duration = Duration::from_millis(40);
/// Events that are taken before the next picture.
const EVENTS_AT_ONCE: usize = 2_000;
/// How often a picture is drawn at most.
const DRAW_EVERY: Duration = Duration::from_millis(50);
/// How often it is asked where the venue stands.
const STATE_EVERY: Duration = Duration::from_secs(2);

/// What is shown.
#[derive(Debug)]
struct Watch {
    books: Vec<Book>,
    /// Which of them, by its place.
    shown: usize,
    state: Option<VenueLifecycle>,
    /// Where the stream of market data stands.
    push: Option<String>,
    /// What was told last that the user has to know.
    note: Option<String>,
    is_production: bool,
}

impl Watch {
    fn new(tickers: impl Iterator<Item = String>, is_production: bool) -> Self {
        let books = tickers.map(|ticker| Book::new(&ticker)).collect();
        Self { books, shown: 0, state: None, push: None, note: None, is_production }
    }

    fn selected(&self) -> &Book {
        &self.books[self.shown]
    }

    fn select(&mut self, by: usize) {
        self.shown = (self.shown + by) % self.books.len();
    }

    /// Where the venue stands, in words.
    fn standing(&self) -> String {
        let state =
            self.state.map_or("is asked where it stands".to_owned(), |state| format!("{state:?}"));
        match &self.push {
            Some(push) => format!("{VENUE} {state}, push {push}"),
            None => format!("{VENUE} {state}"),
        }
    }

    fn book(&mut self, ticker: &str) -> Option<&mut Book> {
        self.books.iter_mut().find(|book| book.ticker == ticker)
    }

    /// Takes an event.
    fn take(&mut self, event: Event<'static>) {
        match event {
            Event::DepthSnapshot(depth) if depth.venue == VENUE => {
                if let Some(book) = self.book(&depth.ticker) {
                    book.take_depth(depth);
                }
            }
            Event::Trades(trades) if trades.venue == VENUE => {
                if let Some(book) = self.book(&trades.ticker) {
                    book.take_trades(&trades);
                }
            }
            Event::Subscribed(subscribed) if subscribed.venue == VENUE => {
                if let Some(book) = self.book(&subscribed.ticker) {
                    book.name =
                        subscribed.ticker_info.display_name_ja.map(|name| name.into_owned());
                }
            }
            Event::SubscriptionEvicted(evicted) if self.book(&evicted.symbol).is_some() => {
                let symbol = evicted.symbol;
                self.note =
                    Some(format!("{symbol} had to make room; no boards of it come any more"));
            }
            Event::VenueState(VenueState { venue, state, push, .. }) if venue == VENUE => {
                self.state = Some(state);
                self.push = push.map(|push| push.into_owned());
            }
            Event::VenueReady(ready) if ready.venue == VENUE => {
                self.state = Some(VenueLifecycle::Ready);
                self.note = None;
            }
            Event::VenueLoginStarted(login) if login.venue == VENUE => {
                self.state = Some(VenueLifecycle::LoggingIn);
                self.note =
                    Some("a login is under way; the engine may ask for the password".to_owned());
            }
            Event::VenueLoginCancelled(login) if login.venue == VENUE => {
                self.note = Some("the login was given up".to_owned());
            }
            Event::VenueError(error) if error.venue == VENUE => {
                self.note = Some(error.message.into_owned());
            }
            Event::Error(error) => self.note = Some(error.message.into_owned()),
            Event::EngineError(error) => self.note = Some(error.message.into_owned()),
            Event::EngineBusy(busy) => self.note = Some(busy.reason.into_owned()),
            _ => {}
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &WatchArgs) -> Result<Ending> {
    let interrupt = Interrupt::listen()?;
    let mut desk =
        order::attach_to(&args.attach, VENUE).map_err(|error| match replays(&error) {
            true => error.context(
                "kumiki watch needs an engine with --mode live; this one replays past data",
            ),
            false => error,
        })?;
    let tickers: Vec<String> =
        args.tickers.iter().map(|ticker| symbol(ticker).to_owned()).collect();
    let capabilities = desk.client.ready().venue_capabilities.get(VENUE);
    let is_production = capabilities.is_some_and(|venue| venue.is_production);
    if let Some(ending) = make_ready(&mut desk, args.login)? {
        return Ok(ending);
    }
    let mut watch = Watch::new(tickers.into_iter(), is_production);
    if args.once {
        return once(&mut desk, &mut watch);
    }
    if let Some(ending) = subscribe(&mut desk, &mut watch)? {
        return Ok(ending);
    }
    let is_for_people =
        desk.format == Format::Table && stdout().is_terminal() && stdin().is_terminal();
    if is_for_people {
        in_terminal(&mut desk, &mut watch, &interrupt)
    } else {
        as_lines(&mut desk, &interrupt)
    }
}

/// Whether the engine has refused because it is of the other mode.
fn replays(error: &anyhow::Error) -> bool {
    error.downcast_ref::<engine::client::ClientError>().is_some_and(|error| {
        matches!(error, engine::client::ClientError::Refused { code, .. } if code == ipc::error_code::MODE_MISMATCH)
    })
}

/// The symbol of `7203` and of `7203.TSE`.
fn symbol(ticker: &str) -> &str {
    ticker.strip_suffix(".TSE").unwrap_or(ticker)
}

/// Logs in where that is asked for. None: the venue can be used.
fn make_ready(desk: &mut Desk, login: bool) -> Result<Option<Ending>> {
    let state = desk.venue_state()?;
    match state {
        VenueLifecycle::Ready => Ok(None),
        _ if login => {
            eprintln!("logging in at {VENUE}; the engine may ask for the password");
            match desk.login()? {
                Answer::Done(_) => Ok(None),
                other => order::ended(desk, other, |_| String::new()).map(Some),
            }
        }
        VenueLifecycle::Disconnected => bail!(
            "nobody has logged in at {VENUE}; give --login, or start the engine with --local-broker login_at_start=true"
        ),
        VenueLifecycle::LoggingIn => {
            bail!("a login at {VENUE} is under way; give --login to wait for its end")
        }
        VenueLifecycle::TokenExpired => {
            bail!("the gateway has ended the session at {VENUE}; give --login to log in again")
        }
        VenueLifecycle::AppDown => bail!(
            "the gateway of {VENUE} cannot be reached; start its program, and give --login to log in again"
        ),
    }
}

/// Asks for the market data of all tickers.
fn subscribe(desk: &mut Desk, watch: &mut Watch) -> Result<Option<Ending>> {
    let tickers: Vec<String> = watch.books.iter().map(|book| book.ticker.clone()).collect();
    for ticker in tickers {
        let request_id = desk.client.request_id()?;
        let command = Command::Subscribe(Subscribe { request_id, venue: VENUE.to_owned(), ticker });
        let is_json = desk.format == Format::Json;
        let answer = desk.ask(&command, |event, is_ours| {
            let is_answer = is_ours && matches!(event, Event::Subscribed(_));
            // Of those that are subscribed already, boards come before the answer for the next.
            if !is_json || is_answer {
                watch.take(event.clone());
            }
            is_answer
        })?;
        if !matches!(answer, Answer::Done(_)) {
            return order::ended(desk, answer, |_| String::new()).map(Some);
        }
    }
    Ok(None)
}

/// Reads the board of each ticker once.
fn once(desk: &mut Desk, watch: &mut Watch) -> Result<Ending> {
    for index in 0..watch.books.len() {
        let request_id = desk.client.request_id()?;
        let (venue, ticker) = (VENUE.to_owned(), watch.books[index].ticker.clone());
        let command = Command::GetBoard(GetBoard { request_id, venue, ticker });
        let answer = desk
            .ask(&command, |event, is_ours| is_ours && matches!(event, Event::DepthSnapshot(_)))?;
        let Answer::Done(received) = answer else {
            return order::ended(desk, answer, |_| String::new());
        };
        if desk.format == Format::Json {
            println!("{}", received.text);
            continue;
        }
        watch.state = Some(VenueLifecycle::Ready);
        watch.shown = index;
        watch.take(received.event);
        print!("{}", screen::board(watch));
    }
    Ok(Ending::Done)
}

/// Whether a script that follows boards wants an event.
const fn is_of_boards(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::DepthSnapshot(_)
            | Event::Trades(_)
            | Event::Subscribed(_)
            | Event::SubscriptionEvicted(_)
            | Event::VenueReady(_)
            | Event::VenueError(_)
            | Event::VenueLoginStarted(_)
            | Event::VenueLoginCancelled(_)
            | Event::EngineError(_)
    )
}

/// Prints events, one in a line, until Ctrl-C or until nobody reads them any more.
fn as_lines(desk: &mut Desk, interrupt: &Interrupt) -> Result<Ending> {
    while !interrupt.is_wanted() && !output::is_unread() {
        if let Some(Received { event, text }) = desk.client.next(LOOK)?
            && is_of_boards(&event)
        {
            println!("{text}");
        }
    }
    Ok(Ending::Done)
}

/// The terminal while it shows the board; however that ends, it is as it was.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Result<Self> {
        // It is given back when the program panics, too.
        Ok(Self(
            ratatui::try_init()
                .context("the terminal cannot show the board; give --format json")?,
        ))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Quit,
    Next,
    Previous,
    LogIn,
}

fn wish(code: KeyCode, modifiers: KeyModifiers) -> Option<Wish> {
    Some(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Wish::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
        KeyCode::Tab | KeyCode::Right | KeyCode::Down | KeyCode::Char('n') => Wish::Next,
        KeyCode::BackTab | KeyCode::Left | KeyCode::Up | KeyCode::Char('p') => Wish::Previous,
        KeyCode::Char('l') => Wish::LogIn,
        _ => return None,
    })
}

/// Shows the board until q or Ctrl-C.
fn in_terminal(desk: &mut Desk, watch: &mut Watch, interrupt: &Interrupt) -> Result<Ending> {
    let mut screen = Screen::open()?;
    let clock = Stopwatch::start();
    let (mut drawn, mut asked) = (None, None);
    while !interrupt.is_wanted() {
        let now = clock.elapsed();
        let is_due = |last: Option<Duration>, every| last.is_none_or(|last| now - last >= every);
        if is_due(asked, STATE_EVERY) {
            let request_id = desk.client.request_id()?;
            let venue = Some(VENUE.to_owned());
            desk.client.send(&Command::GetVenueState(GetVenueState { request_id, venue }))?;
            asked = Some(now);
        }
        let mut wait = LOOK;
        for _ in 0..EVENTS_AT_ONCE {
            let Some(received) = desk.client.next(wait)? else { break };
            watch.take(received.event);
            wait = Duration::from_millis(1);
        }
        while keys::poll(Duration::ZERO)? {
            let keys::Event::Key(key) = keys::read()? else { continue };
            if key.kind != KeyEventKind::Press {
                continue;
            }
            watch.note = None;
            match wish(key.code, key.modifiers) {
                Some(Wish::Quit) => return Ok(Ending::Done),
                Some(Wish::Next) => watch.select(1),
                Some(Wish::Previous) => watch.select(watch.books.len() - 1),
                Some(Wish::LogIn) => {
                    let request_id = Some(desk.client.request_id()?);
                    let login = RequestVenueLogin { request_id, venue: VENUE.to_owned() };
                    desk.client.send(&Command::RequestVenueLogin(login))?;
                }
                None => {}
            }
        }
        if is_due(drawn, DRAW_EVERY) {
            screen.0.draw(|frame| screen::draw(watch, frame))?;
            drawn = Some(now);
        }
    }
    Ok(Ending::Done)
}
