//! `kumiki watch`: the live board of the local broker's gateway in a terminal, or its events for a script,
//! through the engine that runs (specification 1, "Events"; specification 4, P45, P51, P53).

mod book;
mod keys;
mod note;
mod picture;
mod screen;
mod tabs;

use std::io::{IsTerminal, stdin, stdout};

use anyhow::{Result, bail};
use engine::client::{Client, ClientError, Received};
use ipc::{Command, Event, GetBoard, Subscribe, VenueLifecycle, VenueState};

use crate::args::{Format, WATCH_TICKERS_MAX, WatchArgs};
use crate::interrupt::Interrupt;
use crate::order::asked::{ANSWER_TIME, Answer, Attendant, Desk, LOOK};
use crate::{Ending, order, output, wrong_arguments};

use book::Book;
use picture::Picture;

/// The venue whose boards are watched.
const VENUE: &str = "local_broker";

/// What users of this command can do about a register set that is full; the engine tells what commands of clients do.
const OF_FULL: &str = "each ticker takes one of the gateway's places: end another `kumiki watch`, or watch fewer tickers";

/// What stands in [`VenueState`] while the gateway logs everybody out and pushes nothing that counts.
const FORCED_LOGOUT: &str = "forced_logout";
/// What the stream of market data does where boards come.
const STREAMING: &str = "Streaming";

/// What users of this command can do where nobody is at the other end of the connection any more.
const GONE: &str = "the engine ended the connection; start `kumiki serve --mode live` if it no \
                    longer runs, and run `kumiki watch` again";

/// What is shown.
#[derive(Debug)]
struct Watch {
    books: Vec<Book>,
    /// Which of them, by its place.
    shown: usize,
    state: Option<VenueLifecycle>,
    /// Where the stream of market data stands.
    push: Option<String>,
    /// The code of what is wrong there.
    code: Option<String>,
    /// The engine does not answer: nothing of this is known any more.
    is_silent: bool,
    /// What was told last that the user has to know.
    note: Option<String>,
    is_production: bool,
}

impl Watch {
    fn new(tickers: impl Iterator<Item = String>, is_production: bool) -> Self {
        let books = tickers.map(|ticker| Book::new(&ticker)).collect();
        Self {
            books,
            shown: 0,
            state: None,
            push: None,
            code: None,
            is_silent: false,
            note: None,
            is_production,
        }
    }

    fn selected(&self) -> &Book {
        &self.books[self.shown]
    }

    fn select(&mut self, by: usize) {
        self.shown = (self.shown + by) % self.books.len();
    }

    /// Whether the gateway pushes boards, as far as is known.
    fn is_live(&self) -> bool {
        self.state == Some(VenueLifecycle::Ready)
            && self.push.as_deref() == Some(STREAMING)
            && !self.is_silent
            && !self.is_of_forced_logout()
    }

    fn is_of_forced_logout(&self) -> bool {
        self.state == Some(VenueLifecycle::Ready) && self.code.as_deref() == Some(FORCED_LOGOUT)
    }

    /// Where the venue stands: in many words, in fewer, and in as few as say it.
    fn standing(&self) -> [String; 3] {
        let (words, short) = match (self.state, &self.push) {
            _ if self.is_silent => ("unknown: the engine does not answer".to_owned(), "unknown"),
            (None, _) => ("is asked where it stands".to_owned(), "is asked"),
            _ if self.is_of_forced_logout() => {
                ("forced logout: no boards until it ends".to_owned(), "forced logout")
            }
            (Some(state), Some(push)) => {
                let short = if self.is_live() { "Ready" } else { push.as_str() };
                (format!("{state:?}, push {push}"), short)
            }
            (Some(state), None) => {
                let state = format!("{state:?}");
                return [format!("{VENUE} {state}"), state.clone(), state];
            }
        };
        [format!("{VENUE} {words}"), words, short.to_owned()]
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
                    book.take_info(subscribed.ticker_info);
                }
            }
            Event::SubscriptionEvicted(evicted) => {
                let symbol = evicted.symbol;
                if let Some(book) = self.book(&symbol) {
                    book.evict();
                    self.note =
                        Some(format!("{symbol} had to make room; no boards of it come any more"));
                }
            }
            Event::VenueState(VenueState { venue, state, push, code, .. }) if venue == VENUE => {
                self.state = Some(state);
                self.push = push.map(|push| push.into_owned());
                self.code = code.map(|code| code.into_owned());
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
                self.note =
                    Some("the login was given up; the log of the engine says why".to_owned());
            }
            Event::VenueError(error) if error.venue == VENUE => {
                self.note = Some(error.message.into_owned());
            }
            // Only its name was wanted.
            Event::Error(ipc::Error { request_id: Some(id), .. })
                if self.books.iter().any(|book| book.name_asked.as_deref() == Some(&*id)) => {}
            Event::Error(error) => {
                let advice = advice(&error).map(|advice| format!("; {advice}"));
                self.note = Some(error.message.into_owned() + &advice.unwrap_or_default());
            }
            Event::EngineError(error) => self.note = Some(error.message.into_owned()),
            Event::EngineBusy(busy) => self.note = Some(busy.reason.into_owned()),
            _ => {}
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &WatchArgs) -> Result<Ending> {
    watch(args).map_err(|error| match error.downcast_ref::<ClientError>() {
        Some(ClientError::Ended(_)) => error.context(GONE),
        _ => error,
    })
}

fn watch(args: &WatchArgs) -> Result<Ending> {
    let tickers = tickers(&args.tickers)?;
    let mut desk =
        order::attach_to(&args.attach, VENUE).map_err(|error| match replays(&error) {
            true => error.context(
                "kumiki watch needs an engine with --mode live; this one replays past data",
            ),
            false => error,
        })?;
    let interrupt = Interrupt::listen()?;
    let capabilities = desk.client.ready().venue_capabilities.get(VENUE);
    let is_production = capabilities.is_some_and(|venue| venue.is_production);
    let watch = Watch::new(tickers.into_iter(), is_production);
    if args.once {
        return once(&mut desk, watch, &interrupt, args.login);
    }
    let is_for_people =
        desk.format == Format::Table && stdout().is_terminal() && stdin().is_terminal();
    if !is_for_people {
        desk.format = Format::Json;
        let tickers: Vec<String> = watch.books.into_iter().map(|book| book.ticker).collect();
        let mut lines = Lines(&interrupt);
        let Some(state) = standing(&mut desk, &mut lines, args.login)? else {
            return Ok(unheard(&interrupt));
        };
        return match begin(&mut desk, &mut lines, state, &tickers)? {
            None => follow(&mut desk, &mut lines),
            Some(Answer::Interrupted) => Ok(unheard(&interrupt)),
            Some(answer) => unanswered(&mut desk, answer),
        };
    }
    let Some(state) = standing(&mut desk, &mut Quiet(&interrupt), args.login)? else {
        return Ok(Ending::Interrupted);
    };
    let tickers: Vec<String> = watch.books.iter().map(|book| book.ticker.clone()).collect();
    let mut picture = Picture::open(watch, &interrupt)?;
    let answer = match begin(&mut desk, &mut picture, state, &tickers)? {
        None => {
            let ending = follow(&mut desk, &mut picture)?;
            return Ok(if keys::has_terminal() { ending } else { Ending::Interrupted });
        }
        Some(answer) => answer,
    };
    // The terminal is as it was before anything is told.
    drop(picture);
    unanswered(&mut desk, answer)
}

/// The symbols of tickers, each once.
fn tickers(given: &[String]) -> Result<Vec<String>> {
    let mut tickers: Vec<String> = Vec::new();
    for ticker in given {
        let symbol = engine::symbol_of(ticker).map_err(|why| wrong_arguments(why.to_string()))?;
        if !tickers.iter().any(|known| known == symbol) {
            tickers.push(symbol.to_owned());
        }
    }
    match tickers.len() {
        0..=WATCH_TICKERS_MAX => Ok(tickers),
        many => Err(wrong_arguments(format!(
            "{many} tickers; the gateway pushes {WATCH_TICKERS_MAX} symbols at most, so watch \
             {WATCH_TICKERS_MAX} or fewer"
        ))),
    }
}

/// Whether the engine has refused because it is of the other mode.
fn replays(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(|error| {
        matches!(error, ClientError::Refused { code, .. } if code == ipc::error_code::MODE_MISMATCH)
    })
}

/// What users of this command can do about an error besides.
fn advice(error: &ipc::Error<'_>) -> Option<&'static str> {
    (error.code == ipc::error_code::REGISTER_FULL).then_some(OF_FULL)
}

/// What is told where no answer came in time.
fn no_answer() -> String {
    format!(
        "no answer within {} s: the gateway of {VENUE} hangs, or the engine does; see to the program of the gateway, \
         read the log of the engine, and run `kumiki watch` again",
        ANSWER_TIME.as_secs()
    )
}

/// Tells of an answer that is not the one that was hoped for.
fn unanswered(desk: &mut Desk, answer: Answer) -> Result<Ending> {
    if let Answer::Unknown(None) = answer {
        output::failure(&no_answer());
        return Ok(Ending::Unknown);
    }
    let advice = match &answer {
        Answer::Refused(received) => match &received.event {
            Event::Error(error) => advice(error),
            _ => None,
        },
        _ => None,
    };
    let ending = order::ended(desk, answer, |_| String::new())?;
    if let Some(advice) = advice {
        eprintln!("{advice}");
    }
    Ok(ending)
}

/// Where the venue stands, where it can be used or may be logged in at; none: the user does not wait for it.
fn standing(
    desk: &mut Desk,
    attendant: &mut impl Attendant,
    login: bool,
) -> Result<Option<VenueLifecycle>> {
    let Some(told) = desk.venue_state(attendant)? else { return Ok(None) };
    let state = told.state;
    match state {
        VenueLifecycle::Ready => Ok(Some(state)),
        _ if login => {
            eprintln!("logging in at {VENUE}; the engine may ask for the password");
            Ok(Some(state))
        }
        VenueLifecycle::Disconnected => bail!(
            "{VENUE} has no login; give --login, or start the engine with --local-broker login_at_start=true"
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

/// Logs in where nobody has, and asks for the market data of all tickers. None: all was done.
fn begin(
    desk: &mut Desk,
    attendant: &mut impl Attendant,
    state: VenueLifecycle,
    tickers: &[String],
) -> Result<Option<Answer>> {
    if state != VenueLifecycle::Ready {
        match desk.login(attendant)? {
            Answer::Done(_) => {}
            other => return Ok(Some(other)),
        }
    }
    for ticker in tickers {
        let request_id = desk.client.request_id()?;
        let (venue, ticker) = (VENUE.to_owned(), ticker.clone());
        let command = Command::Subscribe(Subscribe { request_id, venue, ticker });
        // Of those that are subscribed already, boards come before the answer for the next.
        let answer = desk.ask_before(attendant, &command, |event, is_ours| {
            is_ours && matches!(event, Event::Subscribed(_))
        })?;
        if !matches!(answer, Answer::Done(_)) {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// Takes what the engine tells until the attendant has enough.
fn follow(desk: &mut Desk, attendant: &mut impl Attendant) -> Result<Ending> {
    while attendant.goes_on(&mut desk.client)? {
        if let Some(received) = desk.client.next(LOOK)? {
            attendant.hear(&received);
        }
    }
    Ok(Ending::Done)
}

/// Reads the board of each ticker once.
fn once(desk: &mut Desk, mut watch: Watch, interrupt: &Interrupt, login: bool) -> Result<Ending> {
    let mut quiet = Quiet(interrupt);
    let Some(state) = standing(desk, &mut quiet, login)? else {
        return Ok(Ending::Interrupted);
    };
    if let Some(answer) = begin(desk, &mut quiet, state, &[])? {
        return unanswered(desk, answer);
    }
    for index in 0..watch.books.len() {
        let request_id = desk.client.request_id()?;
        let (venue, ticker) = (VENUE.to_owned(), watch.books[index].ticker.clone());
        let command = Command::GetBoard(GetBoard { request_id, venue, ticker });
        let answer = desk.ask_before(&mut quiet, &command, |event, is_ours| {
            is_ours && matches!(event, Event::DepthSnapshot(_))
        })?;
        let Answer::Done(received) = answer else {
            return unanswered(desk, answer);
        };
        if desk.format == Format::Json {
            println!("{}", received.text);
            continue;
        }
        watch.state = Some(VenueLifecycle::Ready);
        watch.shown = index;
        watch.take(received.event);
        print!("{}", screen::board(&watch));
    }
    Ok(Ending::Done)
}

/// Waits for answers alone, until Ctrl-C.
struct Quiet<'a>(&'a Interrupt);

impl Attendant for Quiet<'_> {
    fn hear(&mut self, _: &Received) {}

    fn goes_on(&mut self, _: &mut Client) -> Result<bool> {
        Ok(!self.0.is_wanted())
    }
}

/// Prints events, one in a line, until Ctrl-C or until nobody can read them any more.
struct Lines<'a>(&'a Interrupt);

impl Attendant for Lines<'_> {
    fn hear(&mut self, received: &Received) {
        if is_of_boards(&received.event) {
            println!("{}", received.text);
        }
    }

    fn goes_on(&mut self, _: &mut Client) -> Result<bool> {
        Ok(!self.0.is_wanted() && !output::is_over())
    }
}

/// How it ends before all are subscribed: by the user, or because nobody can read the lines.
fn unheard(interrupt: &Interrupt) -> Ending {
    if interrupt.is_wanted() { Ending::Interrupted } else { Ending::Done }
}

/// Whether a script that follows boards wants an event.
fn is_of_boards(event: &Event<'_>) -> bool {
    match event {
        Event::DepthSnapshot(depth) => depth.venue == VENUE,
        Event::Trades(trades) => trades.venue == VENUE,
        Event::Subscribed(subscribed) => subscribed.venue == VENUE,
        Event::VenueReady(ready) => ready.venue == VENUE,
        Event::VenueError(error) => error.venue == VENUE,
        Event::VenueLoginStarted(login) => login.venue == VENUE,
        Event::VenueLoginCancelled(login) => login.venue == VENUE,
        Event::SubscriptionEvicted(_) | Event::EngineError(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(texts: &[&str]) -> Result<Vec<String>> {
        tickers(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_ticker_is_watched_once() {
        let known = given(&["7203", "9984.TSE", "7203.TSE", "9984", "130A"]).unwrap();
        assert_eq!(known, ["7203", "9984", "130A"]);
    }

    #[test]
    fn what_names_no_issue_is_a_wrong_argument() {
        for wrong in ["abc", "7203.OSE", "", "7203@1", "1234567890", ".TSE"] {
            let told = given(&["7203", wrong]).unwrap_err();
            assert!(crate::is_wrong_arguments(&told), "{wrong}: {told}");
            assert!(told.to_string().contains("is not a ticker; write 4 to 9 digits"), "{told}");
        }
    }

    #[test]
    fn as_many_are_watched_as_the_gateway_pushes() {
        let many = |count: usize| (0..count).map(|one| (1_300 + one).to_string()).collect();
        let fifty: Vec<String> = many(WATCH_TICKERS_MAX);
        assert_eq!(tickers(&fifty).unwrap(), fifty);
        let twice = [fifty.clone(), vec!["1300.TSE".to_owned()]].concat();
        assert_eq!(tickers(&twice).unwrap(), fifty, "one of them twice");
        let told = tickers(&many(WATCH_TICKERS_MAX + 1)).unwrap_err();
        assert!(crate::is_wrong_arguments(&told));
        let told = told.to_string();
        assert!(told.starts_with("51 tickers; the gateway pushes 50 symbols at most"), "{told}");
    }

    fn state(
        state: VenueLifecycle,
        push: Option<&'static str>,
        code: Option<&'static str>,
    ) -> Event<'static> {
        Event::VenueState(VenueState {
            request_id: Some("id".into()),
            venue: VENUE.into(),
            state,
            push: push.map(Into::into),
            code: code.map(Into::into),
            since_ms: 1,
            second_password: None,
            locked_until_ms: None,
        })
    }

    fn watch_one() -> Watch {
        Watch::new(std::iter::once("7203".to_owned()), false)
    }

    #[test]
    fn boards_are_live_only_while_the_gateway_pushes_them() {
        let mut watch = watch_one();
        assert!(!watch.is_live(), "nobody knows yet");
        watch.take(state(VenueLifecycle::Ready, Some("Streaming"), None));
        assert!(watch.is_live());
        watch.is_silent = true;
        assert!(!watch.is_live());
        assert_eq!(watch.standing()[1], "unknown: the engine does not answer");
        watch.is_silent = false;
        for (told, words, short) in [
            (
                state(VenueLifecycle::Ready, Some("Connecting"), None),
                "Ready, push Connecting",
                "Connecting",
            ),
            (
                state(VenueLifecycle::Ready, Some("Reconnecting 3"), None),
                "Ready, push Reconnecting 3",
                "Reconnecting 3",
            ),
            (
                state(VenueLifecycle::Ready, Some("Streaming"), Some("forced_logout")),
                "forced logout: no boards until it ends",
                "forced logout",
            ),
            (state(VenueLifecycle::AppDown, None, Some("local_app_down")), "AppDown", "AppDown"),
            (state(VenueLifecycle::TokenExpired, None, None), "TokenExpired", "TokenExpired"),
            (state(VenueLifecycle::Disconnected, None, None), "Disconnected", "Disconnected"),
        ] {
            watch.take(told);
            assert!(!watch.is_live(), "{words}");
            assert_eq!(
                watch.standing(),
                [format!("local_broker {words}"), words.to_owned(), short.to_owned()]
            );
        }
    }

    #[test]
    fn a_ticker_that_had_to_make_room_has_no_board() {
        let mut watch = watch_one();
        watch.take(Event::DepthSnapshot(book::tests::depth("s", 1)));
        let evicted = |symbol: &'static str| {
            Event::SubscriptionEvicted(ipc::SubscriptionEvicted {
                request_id: None,
                symbol: symbol.into(),
            })
        };
        watch.take(evicted("9984"));
        assert!(watch.note.is_none() && watch.selected().depth.is_some(), "another client's");
        watch.take(evicted("7203"));
        assert!(watch.selected().depth.is_none());
        assert!(watch.note.is_some_and(|note| note.starts_with("7203 had to make room")));
    }

    #[test]
    fn a_name_that_cannot_be_told_is_no_news() {
        let mut watch = watch_one();
        let error = |id: &'static str| {
            Event::Error(ipc::Error {
                request_id: Some(id.into()),
                code: "local_app_down".into(),
                message: "it is away".into(),
                venue_order_id: None,
            })
        };
        watch.books[0].name_asked = Some("of the name".to_owned());
        watch.take(error("of the name"));
        assert_eq!(watch.note, None);
        watch.take(error("another"));
        assert_eq!(watch.note.as_deref(), Some("it is away"));
    }

    #[test]
    fn how_long_it_waited_is_told() {
        let told = no_answer();
        assert!(
            told.starts_with(&format!("no answer within {} s", ANSWER_TIME.as_secs())),
            "{told}"
        );
        assert!(told.contains("run `kumiki watch` again") && !told.contains("order"), "{told}");
    }
}
