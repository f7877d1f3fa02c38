//! The schedule of a paced run over a clock that tests turn.

use std::sync::mpsc::{Sender, channel};

use domain::time::{NANOS_PER_MINUTE, NANOS_PER_SECOND};

use super::*;

/// A clock that stands still until somebody waits; commands come at set times.
#[derive(Default)]
struct TestClock {
    now: Duration,
    /// Later ones first.
    commands: Vec<(Duration, RunCommand)>,
    waits: Vec<Duration>,
}

impl WallClock for TestClock {
    fn elapsed(&mut self) -> Duration {
        self.now
    }

    fn wait(&mut self, _: &Receiver<RunCommand>, deadline: Duration) -> Option<RunCommand> {
        let next = self.commands.pop_if(|(time, _)| *time < deadline);
        let until = next.as_ref().map_or(deadline, |(time, _)| *time);
        self.waits.push(until - self.now);
        self.now = until;
        next.map(|(_, command)| command)
    }
}

fn times(text: &str) -> Multiplier {
    text.parse().unwrap()
}

fn at(day: u64, hour: u64, minute: u64, nanos: u64) -> u64 {
    let monday = TsNanos::from_jst("2025-01-06".parse().unwrap(), 0).unwrap().nanos();
    monday + (day * 1_440 + hour * 60 + minute) * NANOS_PER_MINUTE + nanos
}

fn before_row(rows_done: u64, row: u64) -> RunPosition {
    let next_row = Some(TsNanos::from_nanos(row));
    RunPosition { rows_done, days_done: 0, now: TsNanos::default(), next_row }
}

/// Polls until the row may be handed over; the commands on the way, buying power left out.
fn pass(paced: &mut Paced<'_>, rows_done: u64, row: u64) -> Vec<RunCommand> {
    let polls = std::iter::from_fn(|| paced.poll(before_row(rows_done, row)));
    polls.filter(|command| *command != RunCommand::ReportBuyingPower).collect()
}

/// What each row waits, in order.
fn waits(multiplier: &str, rows: &[u64]) -> Vec<u128> {
    let mut clock = TestClock::default();
    let (_sender, commands) = channel();
    let mut paced = Paced::new(times(multiplier), commands, &mut clock);
    let mut ends = Vec::new();
    for (row, ts) in rows.iter().enumerate() {
        assert!(pass(&mut paced, row as u64, *ts).is_empty());
        ends.push(paced.now.as_millis());
    }
    let before = std::iter::once(0).chain(ends.iter().copied());
    ends.iter().zip(before).map(|(end, before)| end - before).collect()
}

#[test]
fn sleeps_follow_the_specification() {
    let sleep = |dt, multiplier| sleep_nanos(dt, times(multiplier));
    assert_eq!(sleep(NANOS_PER_SECOND / 10, "1"), 100_000_000);
    assert_eq!(sleep(NANOS_PER_SECOND / 10, "60"), 1_666_666);
    assert_eq!(sleep(0, "1"), 1_000_000, "rows of one instant are 1 ms apart");
    assert_eq!(sleep(999_999, "10"), 100_000);
    assert_eq!(sleep(NANOS_PER_SECOND, "1"), 200_000_000, "the cap");
    assert_eq!(sleep(NANOS_PER_SECOND, "4.999"), 200_000_000);
    assert_eq!(sleep(NANOS_PER_SECOND, "5.001"), 199_960_007);
    assert_eq!(sleep(0, "0.001"), 200_000_000);
    assert_eq!(sleep(0, "1000000"), 1);
    assert_eq!(sleep(NANOS_PER_SECOND, "max"), 0, "without pace");
    assert_eq!(sleep(u64::MAX, "0.001"), 200_000_000);
}

#[test]
fn breaks_are_jumped_over() {
    let rows = [
        (at(0, 9, 0, 0), 0, "nothing comes before the first row"),
        (at(0, 9, 0, 50_000_000), 50, "the time between two rows"),
        (at(0, 11, 30, 0), 200, "the cap"),
        (at(0, 12, 30, 0), 0, "lunch"),
        (at(0, 15, 24, 0), 200, "the cap"),
        (at(0, 15, 30, 0), 200, "the closing call is no break"),
        (at(0, 15, 35, 1), 0, "after the close"),
        (at(0, 15, 36, 0), 0, "after the close"),
        (at(1, 9, 0, 0), 0, "the next business day"),
        (at(1, 9, 0, 3_000_000), 3, "the time between two rows"),
        (at(4, 9, 0, 0), 0, "a weekend"),
    ];
    let found = waits("1", &rows.map(|row| row.0));
    for (found, (_, expected, why)) in found.iter().zip(rows) {
        assert_eq!(*found, expected, "{why}");
    }
}

#[test]
fn short_sleeps_are_saved_up_and_none_is_lost() {
    let mut clock = TestClock::default();
    let (_sender, commands) = channel();
    let rows = 100_000_u64;
    let mut paced = Paced::new(times("10"), commands, &mut clock);
    for row in 0..=rows {
        pass(&mut paced, row, at(0, 9, 0, 0) + row * 10_000);
    }
    // 10 us between rows count as 1 ms, a tenth of it is slept; less than 1 ms may be owed still.
    let asked = Duration::from_micros(100) * u32::try_from(rows).unwrap();
    let slept: Duration = clock.waits.iter().sum();
    assert!(slept <= asked && asked - slept < SHORTEST_SLEEP, "{slept:?} of {asked:?}");
    assert!(clock.waits.iter().all(|wait| *wait >= SHORTEST_SLEEP));
}

#[test]
fn a_command_ends_a_sleep_at_once_and_the_sleep_goes_on_after_it() {
    let mut clock = TestClock::default();
    clock.commands.push((Duration::from_millis(50), RunCommand::ReportBuyingPower));
    let (_sender, commands) = channel();
    let mut paced = Paced::new(Multiplier::REAL_TIME, commands, &mut clock);
    pass(&mut paced, 0, at(0, 9, 0, 0));
    let row = before_row(1, at(0, 9, 1, 0));
    assert_eq!(paced.poll(row), Some(RunCommand::ReportBuyingPower));
    assert_eq!(paced.now.as_millis(), 50, "in the middle of the sleep");
    assert_eq!(paced.poll(row), None);
    assert_eq!(clock.waits, [50, 150].map(Duration::from_millis));
}

#[test]
fn a_new_speed_recomputes_what_is_left_of_a_sleep() {
    for (multiplier, whole) in [("4", 50), ("1.25", 160), ("max", 40), ("0.5", 200)] {
        let mut clock = TestClock::default();
        let faster = RunCommand::SetSpeed(times(multiplier));
        clock.commands.push((Duration::from_millis(40), faster.clone()));
        let (_sender, commands) = channel();
        let mut paced = Paced::new(Multiplier::REAL_TIME, commands, &mut clock);
        pass(&mut paced, 0, at(0, 9, 0, 0));
        assert_eq!(pass(&mut paced, 1, at(0, 9, 0, 200_000_000)), [faster]);
        assert_eq!(paced.now.as_millis(), whole, "{multiplier}");
    }
}

#[test]
fn what_a_row_takes_too_long_is_made_good_up_to_a_limit() {
    let slow = |row_takes: u64| {
        let mut clock = SlowRows { now: Duration::ZERO, each: Duration::from_millis(row_takes) };
        let (_sender, commands) = channel();
        let mut paced = Paced::new(Multiplier::REAL_TIME, commands, &mut clock);
        for row in 0..=20 {
            pass(&mut paced, row, at(0, 9, 0, row * 100_000_000));
        }
        paced.now.as_millis()
    };
    // Each reading of the clock stands for work, two of them before the first row; the schedule of 20
    // rows takes 2 s all the same.
    assert_eq!(slow(0), 2_000);
    assert!((2_000..2_090).contains(&slow(20)), "{}", slow(20));
}

/// A clock that goes on with each reading.
struct SlowRows {
    now: Duration,
    each: Duration,
}

impl WallClock for SlowRows {
    fn elapsed(&mut self) -> Duration {
        self.now += self.each;
        self.now
    }

    fn wait(&mut self, _: &Receiver<RunCommand>, deadline: Duration) -> Option<RunCommand> {
        self.now = self.now.max(deadline);
        None
    }
}

#[test]
fn buying_power_is_reported_every_second_of_the_wall_clock() {
    let mut clock = TestClock::default();
    let (_sender, commands) = channel();
    let mut paced = Paced::new(Multiplier::REAL_TIME, commands, &mut clock);
    let mut reports = 0;
    for row in 0..=50 {
        while let Some(command) = paced.poll(before_row(row, at(0, 9, 0, row * 100_000_000))) {
            assert_eq!(command, RunCommand::ReportBuyingPower);
            reports += 1;
        }
    }
    assert_eq!(reports, 5, "in 5 s");
}

#[test]
fn commands_of_a_channel_come_in_order_and_a_closed_one_is_no_end() {
    let mut clock = TestClock::default();
    let (sender, commands): (Sender<RunCommand>, _) = channel();
    let mut paced = Paced::new(Multiplier::REAL_TIME, commands, &mut clock);
    sender.send(RunCommand::SetSpeed(times("2"))).unwrap();
    sender.send(RunCommand::Stop).unwrap();
    drop(sender);
    let both = [RunCommand::SetSpeed(times("2")), RunCommand::Stop];
    assert_eq!(pass(&mut paced, 0, at(0, 9, 0, 0)), both);
    assert!(pass(&mut paced, 1, at(0, 9, 1, 0)).is_empty());
    assert_eq!(paced.now.as_millis(), 200);
}

#[test]
fn the_system_s_clock_hears_a_command_in_the_middle_of_a_wait() {
    let (sender, commands) = channel();
    let sent = std::thread::spawn(move || sender.send(RunCommand::Stop).unwrap());
    let mut clock = SystemClock::default();
    let long = Duration::from_secs(600);
    assert_eq!(clock.wait(&commands, long), Some(RunCommand::Stop));
    sent.join().unwrap();
    assert!(clock.elapsed() < long);
    let soon = clock.elapsed() + Duration::from_millis(2);
    assert_eq!(clock.wait(&commands, soon), None, "nobody is left to send");
    assert!(clock.elapsed() >= soon);
}

#[test]
fn a_flood_of_commands_does_not_put_the_schedule_off() {
    let mut clock = TestClock::default();
    let (sender, commands) = channel();
    let mut paced = Paced::new(Multiplier::REAL_TIME, commands, &mut clock);
    for row in 0..100 {
        // The run goes on with the next row while commands are left.
        sender.send(RunCommand::ReportBuyingPower).unwrap();
        assert!(paced.poll(before_row(row, at(0, 9, 0, 0) + row * NANOS_PER_SECOND)).is_some());
    }
    while let Ok(_command) = paced.commands.try_recv() {}
    pass(&mut paced, 100, at(0, 9, 0, 0) + 100 * NANOS_PER_SECOND);
    assert!(paced.now <= 2 * SLEEP_CAP, "{:?}", paced.now);
}

/// Without pace rows are taken many at a time, and nothing is waited for; a pace that is set in the middle begins
/// with the row that comes next.
#[test]
fn a_run_without_pace_takes_many_rows_at_a_time_and_can_get_a_pace() {
    let mut clock = TestClock::default();
    let (sender, commands) = channel();
    let mut paced = Paced::new(times("max"), commands, &mut clock);
    let row = |seconds: u64| at(0, 9, 0, seconds * NANOS_PER_SECOND);
    assert!(pass(&mut paced, 0, row(0)).is_empty());
    let position = |rows_done, before, next| RunPosition {
        now: TsNanos::from_nanos(row(before)),
        ..before_row(rows_done, row(next))
    };
    assert_eq!(paced.rows_until_poll(position(0, 0, 0)), ROWS_WITHOUT_PACE);
    assert_eq!(paced.poll(position(256, 500, 501)), None);
    sender.send(RunCommand::SetSpeed(times("100"))).unwrap();
    assert_eq!(paced.poll(position(512, 900, 901)), Some(RunCommand::SetSpeed(times("100"))));
    assert_eq!(paced.poll(position(512, 900, 901)), None);
    assert_eq!(paced.rows_until_poll(position(512, 900, 901)), 1);
    assert_eq!(paced.poll(position(513, 901, 903)), None);
    drop(paced);
    assert_eq!(clock.waits, [Duration::from_millis(10), Duration::from_millis(20)]);
}
