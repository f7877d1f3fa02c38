//! The update job (specification 3, "Update job"): which days are wanted, where they come from, and
//! what happens with them.
//!
//! Days come whole where a source can give them so; what is left is fetched issue by issue from the
//! first source that succeeds. Rows of two sources are never mixed in one answer. What was fetched is
//! stored after every few days or issues, so that a run that ends early is gone on with by the next.

mod corrections;
mod days;
mod doubts;
mod files;
mod finish;
mod first_days;
mod issues;
mod judge;
mod listing;
mod lists;
mod odd_days;
mod oddity;
mod plan;
mod refusal;
mod report;
/// Which days must be there, when one is complete, and which are published. A row without prices is a
/// row: the vendor tells so that nothing was traded.
///
/// | Rule | A weekday | is |
/// |---|---|---|
/// | D1 | after the last date that is wanted (`--as-of`) | not due |
/// | D2 | closed in the vendor's calendar; half days are open, holidays with trading of derivatives closed; of a day that it does not have, the law's calendar tells ([`domain::holidays`]) | not due |
/// | D3 | today before 16:30 in Japan | not due |
/// | D4 | outside of the dates that the vendor says a subscription covers | not due; nobody is asked for it, which is told as a doubt where it is after the last complete day |
/// | D5 | any other | due |
/// | D6 | of which all sources that can be asked have nothing, before all days that are published and more than a week old, and which the vendor's calendar does not have | not due |
/// | D7 | due, and its better source failed while the others had nothing, or not all issues | failed, until a source has it; complete by the others (C1 to C6) it is published, and the run ends as incomplete all the same, as those after it do until the better source has answered |
/// | D8 | with rows, and closed by a calendar that comes later | open as before, and told as a doubt, until `--accept` names it: then it is closed, and published no more. Of a published day the whole calendar is not used until then |
/// | D9 | closed in the vendor's calendar and open by the law's, from the first that is published or looked at on, without rows | asked for, where it is of the last 20 weekdays: with rows that make it complete it is open, as D8; else closed, and told as a doubt by each run, until `--accept` names it: then it is closed for good |
/// | D10 | as D9, three or more of them in a row | as D9, and the run ends as incomplete; `--accept` of one counts for the row |
/// | D11 | open in the vendor's calendar and closed by the law's, up to the last published day, without rows, and closed by the calendar before or known to have none | closed, and told as a doubt, until `--accept` names it |
/// | D12 | due and open by the law, of which all sources that can be asked have nothing, once `--accept` names it | closed, until `--accept` names it again: then it is asked for as before |
/// | D13 | of a calendar that cannot be one, as with a Saturday open or against the law's on over a quarter of its weekdays | as if the vendor had given none, and told as a doubt |
/// | C1 | with rows of 99 % of the issues that the vendor lists for its date, where that list is believed | complete |
/// | C2 | without such a list, with as many rows as 99 % of those of the last complete day before it and with rows of 99 % of its issues, less by 1 % a month between; and with those of 99 % of the issues of the nearest believed list, less by 1 % a month between; where none of the last 20 days has 99 % of that one's rows, it is left out of account. A run over 60 days asks for the lists of the first day of each week only, and for that of any other day which would not be complete without | complete |
/// | C3 | without a list and a complete day beside it, with what came in one piece | complete |
/// | C4 | fetched with `--codes` | complete only if it was before; the program takes no `--publish-incomplete` beside it |
/// | C5 | that was complete | complete, whatever comes later |
/// | C6 | without a list and a complete day before it, with 99 % of the most rows of the nearest five complete days after it, else of the issues of the nearest list; less by 1 % a month between; what is 300 days away tells nothing | complete |
/// | C7 | as C3, but the list could not be had | not complete |
/// | C8 | with rows, of which none has a volume, unless `--accept` names it; but for 2020-10-01, when the exchange's system failed | not complete |
/// | C9 | one of the first five without a complete day before them but each other, by C2, C3 or C6 | complete once none of the five complete days after it has over 1 % more rows |
/// | C10 | after one that is published though it is not complete | not held against that one. Only where that one has 90 % of what it should have, and a believed list of its date has not told so, days without a list are held against it and those after it, not those before; and the days after it alone once it is complete itself. With no complete day before it its list was never met: later lists are held against it too then |
/// | C11 | published though it is not complete, of which five complete days after it have no more rows, to 1 % | complete |
/// | C12 | that was complete, of which a whole answer comes again that has too few rows by C1, C2 or C6 and not 99 % of the issues that are stored, or none at all where over 1 % of them are the vendor's, or all, and `--accept` has not named the day since it had some | the answer is refused: the day stays as it was, the report says so as a doubt, and the run ends as incomplete. What rows may take away at all is R8 of [`SourceKind`] |
/// | E1 `unlisted` | new, or had again, with rows of issues that its believed list does not have, of over 1 % of the list and at least three; without a list, new and not complete by C2, of issues that the day of C2 does not have, or had again, of issues that neither it nor the days beside it nor the nearest list have | odd: its answer is not taken, and it waits like P2 (one that is published stays as it was) until the vendor gives another or `--accept` names it. Fewer such rows are named as a doubt; they go by R6 of [`SourceKind`] |
/// | E2 `one yen` | with over half of its priced issues, at least 30, at a close of 1 yen | odd, as above |
/// | E3 `repeated` | with over a tenth of its traded issues, at least 30, with the prices and the volume, or with four prices that moved, of one of the ten complete days before it or of the one after it; or with the closes, or the volumes, of over 40 % of them, at least 30, of the complete day up to 92 days before it; or new, or published with other prices for over a tenth of its issues before, with over a tenth of its traded issues, at least 30, as any other complete day that has the four prices of three of 50 issues all over the market. Of new days a run over 60 days does not look for the last | odd, as above |
/// | E4 `no volume` | with prices of at least 30 issues, of which under 90 % have a volume | odd, as above |
/// | E5 `splits` | with factors other than 1 of over 20 % of its issues, at least 30 | odd, as above |
/// | E6 `impossible` | published, and given other prices for over 1 % of its issues and at least three, which are beyond the daily limits around the published close as well as around that of the complete business day before it, its factor counted in, or volumes 100 times or more away from the published ones as well as from those of the complete day before it, or a factor with which its prices fit no longer | odd, as above: it stays as it was |
/// | E7 | published, with rows that come otherwise than as a whole, of over 1 % of its issues and at least three | E2 to E6, E8 to E12 and E16 to E21 hold for the day as it would be with all of them: none of them is stored where it is odd |
/// | E8 `priceless` | of whose rows a smaller share has a price than half of that share on the complete day up to 92 days before it, so that at least 30 prices are missing; but for 2020-10-01 | odd, as above |
/// | E9 `jump` | with prices of over 20 % of its issues, at least 30, beyond the daily limits around the closes of the complete day up to 92 days before it, factors counted in; after missing business days beyond those of twice the width. Prices that a source has adjusted itself are held against its own, and on days of the last week against all | odd, as above |
/// | E10 `volumes` | with volumes of over 20 % of its traded issues, at least 30, that are 100 times or more away from those of the complete day up to 92 days before it, or of over half of them 10 times or more | odd, as above |
/// | E11 `far` | with rows of over 1 %, at least three, that have a price over ten times away from the last close of the ten complete days before it and over 60 yen, factors counted in; fewer of them are left out up to 1 % (Q5 of [`SourceKind`]) | odd, as above |
/// | E12 `turnovers` | with turnovers of over 20 % of its traded issues, at least 30, that are under four fifths of low times volume or over five quarters of high times volume | odd, as above |
/// | E13 | odd by E1 to E5, E8 to E12 or E16 to E21, and `--accept` names it | taken by this run, whatever is odd about it. Other days are not held against it until the last five complete ones before them were all accepted so |
/// | E14 | complete, and odd by E1 to E5, E8 to E12 or E16 to E21 as it is, because the user accepted it or an earlier version took it | an answer is taken of which all that is odd is so by the same rules and of no more issues; any other odd one is not, as above |
/// | E15 | complete, of which a whole answer comes again with rows of over 1 % of its issues, at least three, that it does not have, and without as many of those that it has | refused, as C12: both would stay |
/// | E16 `alike` | with the four prices and the volume of another of its issues, in over 20 % of its traded issues, at least 30 | odd, as above |
/// | E17 `off tick` | with prices of over 20 % of its priced issues, at least 30, that are on no tick of the exchange, by its finest table for shares; but for prices that a source has adjusted itself | odd, as above |
/// | E18 `flat` | of whose traded issues a smaller share has more than one price than half of that share on the one of the ten complete days up to 92 days before it on which it was greatest, so that at least 30 are missing | odd, as above |
/// | E19 `no turnover` | as E18, with a turnover, among rows of the vendor and its files | odd, as above |
/// | E20 `replaced` | without rows of over 10 %, at least 30, of the issues of the complete day up to 92 days before it, and with as many others, whatever its list says | odd, as above |
/// | E21 `columns` | with the close at the open, at the high or at the low for over 60 % of the issues that moved, at least 30, and for twice the share of the complete day up to 92 days before it | odd, as above |
/// | Z1 `priceless` | complete, of whose rows a smaller share has a price than 95 % of that share on the one of the ten complete days up to 92 days before it on which it was greatest, so that at least 30 prices are missing; but for 2020-10-01 | published, and told as a doubt when it is had and for 20 weekdays, until `--accept` names it |
/// | Z2 `jump` | complete, with a close over one and a half times the width of the daily limits away from that of the complete business day before it, splits counted in; or with prices of over 1 % of its issues, at least three, beyond the daily limits around those closes | as Z1. Prices that a source has adjusted itself are compared with its own, and with others on days of the last week only, and those of other rows that tell no factor not at all |
/// | Z3 `volumes` | complete, with volumes as in E10 of over 5 % of its traded issues, at least 30 | as Z1 |
/// | Z4 | complete, of the last 20 weekdays, of which an earlier run refused an answer, and none was taken since | told as a doubt by each run, until `--accept` names it |
/// | Z5 | complete or due, of the last 20 weekdays, of which odd rows were left out (Q1 and Q5 of [`SourceKind`]) | told as a doubt by each run until a source has it without one (B2) |
/// | Z6 `no volume` | complete, with prices of over 1 % of its priced issues, at least three, without a volume | as Z1 |
/// | Z7 `rewritten` | complete, of which runs of 20 weekdays take other prices, volumes or turnovers than those stored for over 20 % of its issues together, at least 30, from a source of the same rank (R2 of [`SourceKind`]) | taken, with old and new values in the report, and told as a doubt by that run and for 20 weekdays, until `--accept` names it: then what is stored is right, and an answer of that run is held against all rules |
/// | Z8 `market` | complete, with half of its closes over 8 % away, all up or all down, from those of the complete business day before it, as Z2 counts splits; or over 20 % from those of the complete day up to 92 days before it | as Z1 |
/// | Z9 `replaced` | complete, without rows of over 2 % of the issues of the complete day up to 92 days before it, at least three, and with as many others | as Z1 |
/// | L1 | with a list of issues, and no list and no complete day before it | list believed |
/// | L2 | whose list has as many issues as the last one that is believed, else as the last complete day has rows, to 1 %; or fewer by 1 % more for each month between, up to 5 % | list believed |
/// | L3 | whose list shrank by more | list believed if it has at most 5 % less and its own day's rows meet it to 99 % both ways, or another run is given the list of a later date with as many, to 1 %; with over 5 % less, whatever comes later, only once `--accept` names the date, and a doubt until then; else told and not used, and the day is judged with it then |
/// | L4 | whose list grew by more than 1 % | list believed if its own day's rows meet it to 99 % both ways; else told and used for its own day only, which is not complete without 99 % of it (C1) until `--accept` names it, or an earlier day that was accepted has a list with as many, to 1 %; no later list is held against it |
/// | L5 | as L4, and a run before was given one of an earlier date with as many | as L4, and used for names |
/// | P1 | complete | published |
/// | P2 | due and not complete | kept in `work/`, not published, asked for again, named in report, health and GraphQL |
/// | P3 | as P2, with `--publish-incomplete`, which may name the days | published, asked for again and named all the same |
/// | G1 | business day (D2) between published ones that is not published | a gap, which readers are told |
/// | G2 | a gap, and due | an ending and an exit code of its own |
/// | S1 | complete, with over 1 % fewer rows than one of the five complete days after it, and than one of the five before it or with none before it but such | told as a doubt by each run until `--accept` names it, as S2 |
/// | S2 | complete, of the last 20 weekdays, with over 1 % fewer rows than one of the five complete days before it, and not than those after it | told as a doubt; of days in a row the first |
/// | S3 | the last complete one, with under 95 % of the most rows of the last 20 complete days | told as a doubt, which a slow sinking never is by S2 |
/// | K1 | asked of a vendor that refuses the key | the run fails, whatever other sources gave; what came is stored and published |
/// | K2 | wanted without a key of the vendor | the run fails where it would not end well; else the vendor is left out |
/// | B1 | complete and due, of the last 20 weekdays, with a row of a lesser source, and not had from the vendor in one piece | asked of it once a run, all issues at once, where it answers; otherwise it stays as it is, which is told. Days of lesser sources come first; two that fail one after the other end it |
/// | B2 | complete and due, of the last 20 weekdays, of which an odd row was left out (Q1 of [`SourceKind`]) | as B1, until the vendor has it without one; it is named in the report for as long |
/// | B3 | complete and due, of the last 20 weekdays, with a row of the vendor or its files that tells no factor | as B1, until all are told |
/// | B4 | complete and due, one of the last three of those that the run has not asked for otherwise (`--recheck`) | as B1, whatever is known of it: the vendor corrects factors and prices a day or two later. It costs a question for each |
/// | B5 | complete and due, of the last 20 weekdays, of which an answer was refused (Z4) or that was rewritten (Z7) | as B1, until one is taken or the doubt ends; one that is refused again is told as Z4, and the run may end well |
/// | W1 | any, in a published file with other bytes than the job wrote, by the digest that it noted then, or else that of the generation before | published again: the file is made again, and named in the report |
/// | W2 | as W1, where the file holds something that the job does not have | left as it is: the run fails and names the file |
/// | W3 | any, in a published file that only has another time | left as it is |
/// | W4 | any, in a published file that is gone | published again: the file is made again, and named in the report where the manifest of the last generation names it |
/// | F1 | of the vendor's files, closed (D2) | left out by name; the calendar is that of the files' folder |
/// | F2 | of a file of one day, whose month has a file with usable rows of it | taken from the month's; the other file is named |
/// | F3 | of a file of one day, whose month has a file without | taken from the file of the day |
/// | F4 | of the days that `--days` names, due, and in no file | as one of which all sources have nothing; without `--days` a run wants what the files have, and what was found missing before |
mod rules;
mod seen;
mod silent;
mod slots;
mod taken_back;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use domain::clock::Stopwatch;
use domain::{JstDate, TsNanos};
use http_client::CancellationToken;
use pricestore::DataDir;
use pricestore::listed::ListedHistory;

use crate::fetch_state::FetchState;
use crate::limits::{BATCH_ISSUES, BATCH_ROWS};
use crate::price_store::{Applied, Known, OpenDays, Part, PriceStore};
use crate::row::{DailyRow, IssueCode, SourceKind};
use crate::source::IssueList;
use crate::store::StoreError;

use corrections::Held;
use oddity::Oddity;
use report::Reason;
use seen::SeenDays;
use silent::SilentRows;
use slots::{KeyTrouble, Slots};

pub use plan::last_weekdays;
pub use report::{
    CorrectedValue, CorrectionReport, DayOutcome, DayReport, DoubtKind, DoubtReport, Ending,
    IssueReport, ListedReport, OddRowReport, PublishedReport, Reason as FailureReason, Report,
    ShortDayReport, SourceReport, SourceState, SplitReport, report_schema,
};
pub use slots::SourceSlot;

/// What a run shall do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOptions {
    /// The data directory.
    pub data: DataDir,
    /// The time, which says what today is; days before today are complete.
    pub now: TsNanos,
    /// The run begins here at the latest, and earlier where days before are not complete. Without it,
    /// the run begins after the last complete day; with local files, where they do.
    pub from: Option<JstDate>,
    /// Last date that is wanted.
    pub to: JstDate,
    /// The issues; all where none is named.
    pub codes: Vec<IssueCode>,
    /// Whether days are fetched again that earlier runs have fetched.
    pub refetch: bool,
    /// Whether days are published that are not complete: none, all where none is named, or these.
    pub publish_incomplete: Option<Vec<JstDate>>,
    /// Complete days before those that are wanted of which the vendor is asked again (rule B4).
    pub recheck: usize,
    /// Days of which an answer is taken, and a list of issues or a calendar believed, whatever speaks against it
    /// (rules C2, C8, C12, D8 to D12, E1 to E21, L3, L4, Q5, R6 and R8); the report names those against which nothing does.
    /// The run begins with the first of them.
    pub accept: Vec<JstDate>,
}

/// What a run is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Fetching whole days.
    Days,
    /// Fetching issue by issue.
    Issues,
    /// Reading local files; counted in bytes.
    Files,
    /// Publishing the combined database.
    Publish,
    /// Writing the per-issue databases.
    Split,
}

/// Is told how a run goes on. What is worth knowing besides is an event of [`tracing`].
pub trait JobWatch {
    /// So much is done of a phase, and a word on where.
    fn progress(&mut self, phase: Phase, done: u64, of: u64, what: &str);
}

/// Why a run could not do its work. What was stored and published before stays as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The databases could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of the job itself.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The folder with local files cannot be used.
    #[error("{0}")]
    Files(String),
}

/// Runs the job with the sources of the network.
///
/// # Errors
/// [`UpdateError`] when the databases cannot be written. That sources fail is no error but part of
/// the report.
pub fn update_from_sources(
    store: &mut dyn PriceStore,
    sources: Vec<SourceSlot>,
    options: &JobOptions,
    cancel: &CancellationToken,
    watch: &mut dyn JobWatch,
) -> Result<Report, UpdateError> {
    run(store, options, cancel, watch, |job| {
        let mut slots = Slots::new(sources);
        let fetched = job.fetch(&mut slots).and_then(|()| {
            job.flush()?;
            job.release_held()?;
            job.judge_stored(Some(&mut slots))
        });
        job.report.notes.extend(slots.take_notes());
        slots.report(&mut job.report);
        job.key_trouble = slots.key_trouble();
        job.tell_nothing_asked();
        fetched
    })
}

impl Job<'_> {
    /// Says that some issues were named and nothing was asked for.
    fn tell_nothing_asked(&mut self) {
        let is_not_asked = |day: &DayState| day.outcome == Some(DayOutcome::NotDue);
        let asks = self.options.refetch || !self.options.accept.is_empty();
        if !self.options.codes.is_empty() && !asks && self.days.values().all(is_not_asked) {
            self.note(
                "nothing was asked for the issues that are named: each day that is wanted was had before or is not \
                 due; --refetch asks again for those that are there"
                    .to_owned(),
            );
        }
    }
}

/// Runs the job with the vendor's files in a folder, and no network.
///
/// # Errors
/// As [`update_from_sources`], and when the folder has no such file.
pub fn update_from_files(
    store: &mut dyn PriceStore,
    folder: &Path,
    options: &JobOptions,
    cancel: &CancellationToken,
    watch: &mut dyn JobWatch,
) -> Result<Report, UpdateError> {
    run(store, options, cancel, watch, |job| {
        job.read_files(folder)?;
        job.release_held()?;
        job.judge_stored(None)
    })
}

/// The folder of the job's own files.
fn own_folder(data: &DataDir) -> PathBuf {
    data.update_folder()
}

fn run(
    store: &mut dyn PriceStore,
    options: &JobOptions,
    cancel: &CancellationToken,
    watch: &mut dyn JobWatch,
    fetch: impl FnOnce(&mut Job<'_>) -> Result<(), UpdateError>,
) -> Result<Report, UpdateError> {
    let clock = Stopwatch::start();
    let (from, to, codes) = (options.from, options.to, options.codes.len());
    let from = from.map(tracing::field::display);
    let span = tracing::info_span!("update", from, %to, codes);
    let _entered = span.enter();
    let mut job = Job::new(store, options, cancel, watch);
    let done = job.prepare().and_then(|()| {
        fetch(&mut job)?;
        job.finish()
    });
    let mut report = job.into_report();
    if let Err(error) = &done {
        report.ending = Ending::Failed;
        report.error = Some(error.to_string());
    }
    report.seconds = clock.elapsed().as_secs_f64();
    let folder = own_folder(&options.data);
    let stored = report.store(&folder);
    let (number, seconds, fetched) = (report.number, report.seconds, report.rows_fetched());
    tracing::info!(number, ending = ?report.ending, fetched, seconds, "the run has ended");
    done?;
    stored.map_err(|source| UpdateError::Io { path: folder, source })?;
    Ok(report)
}

/// A run at work.
struct Job<'a> {
    store: &'a mut dyn PriceStore,
    options: &'a JobOptions,
    cancel: &'a CancellationToken,
    watch: &'a mut dyn JobWatch,
    /// What earlier runs and this one have fetched.
    state: FetchState,
    known: Known,
    report: Report,
    /// What happened to each day so far.
    days: BTreeMap<JstDate, DayState>,
    /// Every issue of which this run has seen a row.
    seen: BTreeSet<IssueCode>,
    batch: Batch,
    /// Rows that tell no factor.
    silent: SilentRows,
    /// The first date of those that readers may see which was unpublished before this run, or changed
    /// by it.
    changed_from: Option<JstDate>,
    /// The exchange's calendar, as far as it is known.
    calendar: OpenDays,
    /// The calendar has other business days between published ones than it had.
    calendar_is_new: bool,
    /// First and last date that the vendor says the subscription covers.
    covered: Option<(JstDate, JstDate)>,
    /// The rows of each complete day, and of each that is published all the same where the standard begins
    /// anew (rule C10).
    complete_rows: BTreeMap<JstDate, u64>,
    /// The issues of the day that was looked up last.
    issues: Option<(JstDate, BTreeSet<IssueCode>)>,
    /// Days that were judged by a whole answer.
    whole_days: BTreeSet<JstDate>,
    /// Rewritten days that the user accepts as they are stored.
    confirmed: BTreeSet<JstDate>,
    /// Published days that this run rewrites: the issues that get other values, and all (rule Z7).
    rewritten: BTreeMap<JstDate, (u64, u64)>,
    /// Rows of published days that came otherwise, and issues that are done with them.
    held: Held,
    /// Days for which the user's word has counted.
    accepted: BTreeSet<JstDate>,
    /// The vendor's calendar alone closes days in a row (rule D10).
    is_closed_in_a_row: bool,
    /// Rule D7, of days that lesser sources have made complete.
    has_open_outage: bool,
    /// What complete days had, as far as others were held against them.
    seen_days: SeenDays,
    /// The issues that were listed on a date.
    listed: BTreeMap<JstDate, BTreeSet<IssueCode>>,
    /// Dates whose list of issues may still be asked for.
    list_days: BTreeSet<JstDate>,
    /// Dates whose list was asked for, whatever came.
    lists_asked: BTreeSet<JstDate>,
    /// Lists are asked for no more.
    are_lists_out: bool,
    /// A list could not be had, though there may be one.
    lists_failed: bool,
    /// Lists of this run that are not believed.
    doubted: BTreeMap<JstDate, IssueList>,
    /// Those of runs before, and how many issues they had.
    doubted_before: BTreeMap<JstDate, u64>,
    /// The first days of all, which wait for those after them; and once their rows are on their way,
    /// whether they have each row that the source gave.
    first_days: BTreeMap<JstDate, Option<bool>>,
    /// Those of them that turned out to be short.
    short_first_days: Vec<JstDate>,
    /// Why days are not complete, by all rows that are stored.
    whys: BTreeMap<JstDate, String>,
    /// All lists that are stored, with those of this run.
    lists: ListedHistory,
    /// Some of them are not stored yet.
    lists_are_new: bool,
    /// The user's wish to end left something undone that no day tells.
    cut_short: bool,
    /// The day that was found complete last, with its rows: those of a file are stored only after all of them
    /// are judged.
    judged: Option<(JstDate, Vec<DailyRow>)>,
    /// Days of this run that are odd.
    odd_days: BTreeMap<JstDate, Oddity>,
    /// The issues of each published day that have lost values in this run, or would have (rule R8).
    lost: BTreeMap<JstDate, BTreeSet<IssueCode>>,
    /// What is wrong with the vendor's key.
    key_trouble: Option<KeyTrouble>,
}

/// What happened to a day so far.
#[derive(Debug, Default)]
struct DayState {
    outcome: Option<DayOutcome>,
    rows: u64,
    /// Rows that it should have.
    expected: Option<u64>,
    /// Why it is not complete.
    why: Option<String>,
    complete: bool,
    /// It has rows, and none of them a trade; that was told.
    is_tradeless: bool,
    sources: BTreeSet<SourceKind>,
    reasons: Vec<Reason>,
}

/// Rows on their way to the store.
#[derive(Debug, Default)]
struct Batch {
    rows: BTreeMap<SourceKind, Vec<DailyRow>>,
    count: usize,
    /// Rows that the vendor took back.
    gone: Vec<(JstDate, IssueCode)>,
    /// Days that are complete once the rows are stored, and whether they have each row that the source
    /// gave. Those that do not are asked for again where a run looks back so far.
    days: Vec<(JstDate, bool)>,
    /// Issues that are complete once the rows are stored.
    issues: Vec<IssueCode>,
}

impl<'a> Job<'a> {
    fn new(
        store: &'a mut dyn PriceStore,
        options: &'a JobOptions,
        cancel: &'a CancellationToken,
        watch: &'a mut dyn JobWatch,
    ) -> Self {
        let mut report = Report::new(options.now.to_string());
        (report.from, report.to) = (options.from, Some(options.to));
        Self {
            store,
            options,
            cancel,
            watch,
            state: FetchState::default(),
            known: Known::default(),
            report,
            days: BTreeMap::new(),
            seen: BTreeSet::new(),
            batch: Batch::default(),
            silent: SilentRows::default(),
            changed_from: None,
            calendar: OpenDays::new(),
            calendar_is_new: false,
            covered: None,
            complete_rows: BTreeMap::new(),
            issues: None,
            whole_days: BTreeSet::new(),
            confirmed: BTreeSet::new(),
            rewritten: BTreeMap::new(),
            held: Held::default(),
            accepted: BTreeSet::new(),
            is_closed_in_a_row: false,
            has_open_outage: false,
            seen_days: SeenDays::default(),
            listed: BTreeMap::new(),
            list_days: BTreeSet::new(),
            lists_asked: BTreeSet::new(),
            are_lists_out: false,
            lists_failed: false,
            doubted: BTreeMap::new(),
            doubted_before: BTreeMap::new(),
            first_days: BTreeMap::new(),
            short_first_days: Vec::new(),
            whys: BTreeMap::new(),
            lists: ListedHistory::default(),
            lists_are_new: false,
            cut_short: false,
            judged: None,
            odd_days: BTreeMap::new(),
            lost: BTreeMap::new(),
            key_trouble: None,
        }
    }

    fn prepare(&mut self) -> Result<(), UpdateError> {
        // Without a place for the report nothing is begun.
        let folder = own_folder(&self.options.data);
        fs::create_dir_all(&folder).map_err(|source| UpdateError::Io { path: folder, source })?;
        self.known = self.store.rows().known()?;
        let (state, note) = self.store.rows().fetch_state()?;
        self.changed_from = state.unpublished_from;
        self.state = state;
        let named = self.options.accept.iter().copied();
        self.confirmed = named
            .filter(|date| {
                self.state.rewritten.contains(date) && !self.state.refused.contains(date)
            })
            .collect();
        note.into_iter().for_each(|note| self.note(note));
        // What was fetched is there only as long as the store has it.
        let (stored, state) = (&self.known.dates, &mut self.state);
        for days in [
            &mut state.fetched,
            &mut state.left_out,
            &mut state.complete,
            &mut state.forced,
            &mut state.begins,
        ] {
            days.retain(|date| stored.contains_key(date));
        }
        let is_standard =
            |date: &JstDate| state.complete.contains(date) || state.begins.contains(date);
        let complete = stored.iter().filter(|(date, _)| is_standard(date));
        self.doubted_before = state.doubted.clone();
        self.complete_rows = complete.map(|(date, rows)| (*date, *rows)).collect();
        self.calendar = self.store.rows().open_days()?;
        self.lists = self.store.rows().listed()?;
        Ok(())
    }

    fn today(&self) -> JstDate {
        self.options.now.jst_date()
    }

    /// Something worth knowing at once and later.
    fn note(&mut self, line: String) {
        tracing::warn!("{line}");
        self.report.notes.push(line);
    }

    /// Whether the user accepts what speaks against a day; asked where something does.
    fn accept(&mut self, date: JstDate) -> bool {
        let is_accepted = self.is_named(date);
        // Whoever confirms what is stored has not seen what comes now (rule Z7).
        is_accepted && !self.confirmed.contains(&date)
    }

    /// Whether the user names a day with `--accept`.
    fn is_named(&mut self, date: JstDate) -> bool {
        let is_named = self.options.accept.contains(&date);
        if is_named {
            self.accepted.insert(date);
        }
        is_named
    }

    /// The same, and of the last weeks also whether the user did so in an earlier run: who has looked at a day is not
    /// asked about it each evening.
    fn accept_for_good(&mut self, date: JstDate) -> bool {
        if self.is_named(date) {
            self.state.accepted.insert(date);
        }
        self.state.accepted.contains(&date)
    }

    fn day(&mut self, date: JstDate) -> &mut DayState {
        self.days.entry(date).or_default()
    }

    fn save_state(&mut self) -> Result<(), UpdateError> {
        self.store.rows().commit(&[], &self.state)?;
        Ok(())
    }

    /// Takes rows of one source.
    fn collect(&mut self, source: SourceKind, rows: Vec<DailyRow>) {
        self.report.source(source).fetched += rows.len() as u64;
        self.silent.look_at(source, &rows);
        for row in &rows {
            let day = self.days.entry(row.date).or_default();
            day.rows += 1;
            day.sources.insert(source);
            self.seen.insert(row.code);
        }
        self.batch.count += rows.len();
        self.batch.rows.entry(source).or_default().extend(rows);
    }

    /// Stores what was collected once it is enough.
    fn flush_if_full(&mut self) -> Result<(), UpdateError> {
        if self.batch.count >= BATCH_ROWS || self.batch.issues.len() >= BATCH_ISSUES {
            self.flush()?;
        }
        Ok(())
    }

    /// Stores what was collected and, in the same transaction, that it was.
    fn flush(&mut self) -> Result<(), UpdateError> {
        self.store_lists()?;
        let mut batch = std::mem::take(&mut self.batch);
        if batch.rows.is_empty() && batch.days.is_empty() && batch.issues.is_empty() {
            return Ok(());
        }
        self.refuse_losses(&mut batch)?;
        self.hold_back(&mut batch);
        self.store_batch(batch)?;
        if self.held.is_full() { self.release_held() } else { Ok(()) }
    }

    fn store_batch(&mut self, batch: Batch) -> Result<(), UpdateError> {
        for (date, has_all) in batch.days {
            if let Some(known) = self.first_days.get_mut(&date) {
                *known = Some(has_all);
                continue;
            }
            if !self.state.is_publishable(date) {
                self.release(date);
            }
            if has_all {
                self.state.fetched.insert(date);
                self.state.left_out.remove(&date);
            }
            self.state.complete.insert(date);
        }
        if self.are_first_days_known() {
            self.settle_first_days();
        }
        let dates = batch.rows.values().flatten().map(|row| row.date);
        let first = dates.filter(|date| self.state.is_publishable(*date)).min();
        let unpublished = [self.state.unpublished_from, first];
        self.state.unpublished_from = unpublished.into_iter().flatten().min();
        if let Some(pass) = &mut self.state.pass {
            pass.codes.extend(batch.issues);
        }
        let parts = batch.rows.iter().flat_map(|(source, rows)| {
            rows.chunks(BATCH_ROWS).map(move |rows| (*source, Part { rows, ..Part::default() }))
        });
        let gone = Part { gone: &batch.gone, ..Part::default() };
        let parts =
            parts.chain([(SourceKind::Vendor, gone)].into_iter().filter(|_| !gone.gone.is_empty()));
        let (sources, parts): (Vec<SourceKind>, Vec<Part<'_>>) = parts.unzip();
        let applied = self.store.rows().commit(&parts, &self.state)?;
        for (source, applied) in sources.into_iter().zip(applied) {
            let Applied { inserted, changed, unchanged, .. } = applied;
            tracing::debug!(%source, inserted, changed, unchanged, "rows are stored");
            self.report.source(source).add(&applied);
            let mut dates = applied.dates.iter().copied();
            let first = dates.find(|date| self.state.is_publishable(*date));
            self.changed_from = [self.changed_from, first].into_iter().flatten().min();
            self.report.corrected(source, applied.corrections);
        }
        Ok(())
    }

    /// The report, with the days in order.
    fn into_report(self) -> Report {
        let mut report = self.report;
        let days = self.days.into_iter().map(|(date, day)| DayReport {
            date,
            outcome: day.outcome.unwrap_or(DayOutcome::NotReached),
            rows: day.rows,
            expected: day.expected,
            complete: day.complete,
            sources: day.sources.into_iter().collect(),
            reasons: day.reasons,
        });
        report.days = days.collect();
        report
    }
}
