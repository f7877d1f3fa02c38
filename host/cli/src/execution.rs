//! Options that say how the exchange fills orders.

use std::time::Duration;

use clap::Args;
use domain::Quantity;
use exchange::ExecutionModel;
use exchange::{Commission, Preset, SameDayRoundTrips};
use ipc::ExecutionConfig;
use replay::instruments::TickChoice;

/// How the exchange fills orders: a named set of parameters, and single ones in place of its own.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Execution")]
pub(crate) struct ExecutionArgs {
    /// Model of fills: strict, realistic or optimistic.
    ///
    /// strict has no latency and no fees. realistic fills a tenth of each trade, after 100 ms, with a
    /// broker's fees. optimistic says so in every result. The options below replace single values;
    /// `kumiki help replay run` has a table of all.
    #[arg(long, value_name = "MODEL", default_value_t = Preset::Strict)]
    execution: Preset,

    /// Time of an order to the exchange.
    #[arg(long, value_name = "DURATION", value_parser = parse_latency)]
    latency: Option<u64>,

    /// Ticks that orders pay when they take liquidity.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole)]
    slippage_ticks: Option<u32>,

    /// Percent of a trade's volume that our orders may take.
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = parse_whole)]
    participation: Option<u32>,

    /// Shares ahead of a resting order, or endless.
    ///
    /// So many shares trade at the order's price before a touch fills it. With endless only a trade through
    /// the price fills it.
    #[arg(long, value_name = "SHARES", value_parser = parse_queue)]
    queue_ahead: Option<Queue>,

    /// Fees of the broker, like none or 450ppm,min=50,max=1000.
    ///
    /// none, 450ppm,min=50,max=1000 (of the value), order:100 (yen), or
    /// tiers:50000=55,100000=99,1070 (value up to = fee, then the fee above).
    #[arg(long, value_name = "FEES")]
    commission: Option<Commission>,

    /// Buy, sell and buy again in a day: allow or refuse.
    ///
    /// Brokers refuse it for a cash account, where the same money would go into the same issue twice.
    #[arg(long, value_name = "WHETHER")]
    same_day_round_trips: Option<SameDayRoundTrips>,
}

/// Shares ahead, or none that would be enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Queue(Option<u64>);

fn parse_queue(text: &str) -> Result<Queue, String> {
    match text {
        "endless" => Ok(Queue(None)),
        shares => shares
            .parse()
            .map(|shares| Queue(Some(shares)))
            .map_err(|_| format!("`{text}` is no number of shares; write one, or `endless`")),
    }
}

fn parse_whole(text: &str) -> Result<u32, String> {
    let most = u32::MAX;
    text.parse().map_err(|_| format!("`{text}` is no whole number; write one from 0 to {most}"))
}

fn parse_latency(text: &str) -> Result<u64, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a duration like 0ms, 250us or 1s"))?;
    let one_day = Duration::from_secs(86_400);
    if duration > one_day {
        return Err(format!("`{text}` is more than one day; write a shorter time, like 100ms"));
    }
    u64::try_from(duration.as_nanos()).map_err(|error| error.to_string())
}

impl ExecutionArgs {
    /// The parameters asked for.
    pub(crate) fn model(&self) -> ExecutionModel {
        let preset = self.execution.model();
        ExecutionModel {
            latency_ns: self.latency.unwrap_or(preset.latency_ns),
            slippage_ticks: self.slippage_ticks.unwrap_or(preset.slippage_ticks),
            participation_percent: self.participation.unwrap_or(preset.participation_percent),
            queue_ahead: self.queue_ahead.map_or(preset.queue_ahead, |queue| queue.0),
            commission: self.commission.unwrap_or(preset.commission),
            same_day_round_trips: self.same_day_round_trips.unwrap_or(preset.same_day_round_trips),
            orders_max: preset.orders_max,
        }
    }
}

/// What an engine is asked for, with a lot and price steps of all instruments.
pub(crate) fn on_the_wire(
    args: &ExecutionArgs,
    lot: Option<Quantity>,
    ticks: Option<TickChoice>,
) -> ExecutionConfig {
    let model = args.model();
    // The engine takes no word for an endless queue, so a model that has it is the base.
    let is_endless = model.queue_ahead.is_none();
    let base = match args.execution.model().queue_ahead {
        Some(_) if is_endless => Preset::Strict,
        _ => args.execution,
    };
    ExecutionConfig {
        model: base.as_str().to_owned(),
        latency_ns: Some(model.latency_ns),
        slippage_ticks: Some(model.slippage_ticks),
        participation_percent: Some(model.participation_percent),
        queue_ahead: model.queue_ahead,
        commission: Some(model.commission.to_string()),
        lot: lot.map(Quantity::shares),
        ticks: ticks.map(|ticks| ticks.to_string()),
        same_day_round_trips: Some(model.same_day_round_trips == SameDayRoundTrips::Allow),
    }
}

/// The parameters in a line.
pub(crate) fn in_words(model: &ExecutionModel) -> String {
    let queue = model.queue_ahead.map_or("endless".to_owned(), |shares| shares.to_string());
    format!(
        "{}: latency {}, slippage {} {}, participation {} %, queue ahead {queue}, commission {}, \
         same-day round trips {}",
        model.preset().map_or("own", Preset::as_str),
        humantime::format_duration(Duration::from_nanos(model.latency_ns)),
        model.slippage_ticks,
        if model.slippage_ticks == 1 { "tick" } else { "ticks" },
        model.participation_percent,
        model.commission,
        model.same_day_round_trips
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::RUN_HELP;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        execution: ExecutionArgs,
    }

    fn model(line: &[&str]) -> ExecutionModel {
        let words = ["kumiki"].iter().chain(line);
        Line::try_parse_from(words).unwrap().execution.model()
    }

    /// The table of the help and of the page on fills says what the presets are.
    #[test]
    fn the_table_of_presets_is_what_they_are() {
        let page = include_str!("../../../docs/concepts/fills.md");
        let cells = |line: &str| -> Vec<String> {
            let words = line.trim_matches('|').split('|');
            words.map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
        };
        for (place, preset) in Preset::ALL.into_iter().enumerate() {
            let mut found = ExecutionModel { commission: preset.model().commission, ..model(&[]) };
            let rows = page.lines().skip_while(|line| !line.starts_with("| option | strict "));
            let rows: Vec<_> = rows.take_while(|line| line.starts_with('|')).map(cells).collect();
            assert_eq!(rows.len(), 8, "a head, a rule and six options");
            assert!(rows[0][1 + place].starts_with(preset.as_str()));
            for row in &rows[2..] {
                let (option, value) = (&row[0], &row[1 + place]);
                // The same in the help, which has spaces in place of lines.
                let help = RUN_HELP.lines().find(|line| line.trim_start().starts_with(option));
                let help: Vec<_> =
                    help.unwrap().split("  ").filter(|cell| !cell.is_empty()).collect();
                assert_eq!(help[1 + place].trim(), value, "{option}");
                let told = if option == "--commission" { "none" } else { value };
                let given = model(&[&format!("{option}={told}")]);
                match option.as_str() {
                    "--latency" => found.latency_ns = given.latency_ns,
                    "--slippage-ticks" => found.slippage_ticks = given.slippage_ticks,
                    "--participation" => {
                        found.participation_percent = given.participation_percent;
                    }
                    "--queue-ahead" => found.queue_ahead = given.queue_ahead,
                    "--same-day-round-trips" => {
                        found.same_day_round_trips = given.same_day_round_trips;
                    }
                    other => {
                        assert_eq!(other, "--commission");
                        let is_none = preset.model().commission == Commission::None;
                        assert_eq!(value == "none", is_none);
                    }
                }
            }
            assert_eq!(found, preset.model());
        }
    }

    #[test]
    fn a_preset_can_be_changed_in_single_parameters() {
        assert_eq!(model(&[]), Preset::Strict.model());
        assert_eq!(model(&["--execution", "optimistic"]), Preset::Optimistic.model());
        let changed = model(&["--execution=realistic", "--commission=none", "--queue-ahead=500"]);
        let wanted = ExecutionModel {
            commission: Commission::None,
            queue_ahead: Some(500),
            ..Preset::Realistic.model()
        };
        assert_eq!(changed, wanted);
        assert_eq!(model(&["--execution=optimistic", "--queue-ahead=endless"]).queue_ahead, None);
        let trips = |line: &[&str]| model(line).same_day_round_trips;
        assert_eq!(trips(&["--same-day-round-trips=allow"]), SameDayRoundTrips::Allow);
        assert_eq!(trips(&["--execution=optimistic"]), SameDayRoundTrips::Allow);
        assert_eq!(trips(&["--execution=realistic"]), SameDayRoundTrips::Refuse);
        assert_eq!(
            in_words(&changed),
            "own: latency 100ms, slippage 1 tick, participation 10 %, queue ahead 500, commission none, \
             same-day round trips refuse"
        );
    }

    #[test]
    fn an_engine_is_asked_for_the_same_values() {
        let wire = |line: &[&str]| {
            let words = ["kumiki"].iter().chain(line);
            let args = Line::try_parse_from(words).unwrap().execution;
            on_the_wire(&args, Some(Quantity::new(10)), Some(TickChoice::Auto))
        };
        let realistic = wire(&["--execution=realistic", "--queue-ahead=500"]);
        assert_eq!(realistic.model, "realistic");
        assert_eq!(realistic.latency_ns, Some(100_000_000));
        assert_eq!(realistic.queue_ahead, Some(500));
        assert_eq!(realistic.same_day_round_trips, Some(false));
        assert_eq!((realistic.lot, realistic.ticks.as_deref()), (Some(10), Some("auto")));
        let fees: Commission = realistic.commission.unwrap().parse().unwrap();
        assert_eq!(fees, Preset::Realistic.model().commission);
        // No number of shares is endless; of the models only optimistic is not.
        let endless = wire(&["--execution=optimistic", "--queue-ahead=endless"]);
        assert_eq!((endless.model.as_str(), endless.queue_ahead), ("strict", None));
        assert_eq!((endless.slippage_ticks, endless.same_day_round_trips), (Some(0), Some(true)));
        assert_eq!(wire(&["--execution=optimistic"]).model, "optimistic");
    }

    #[test]
    fn nonsense_says_what_to_write() {
        let error = |word: &str| Line::try_parse_from(["kumiki", word]).unwrap_err().to_string();
        assert!(error("--execution=cheat").contains("take strict, realistic or optimistic"));
        assert!(
            error("--participation=10%").contains("`10%` is no whole number; write one from 0")
        );
        assert!(error("--slippage-ticks=-1").contains("`-1` is no whole number"));
        assert!(error("--same-day-round-trips=yes").contains("write allow or refuse"));
        assert!(error("--queue-ahead=few").contains("write one, or `endless`"));
        assert!(error("--commission=0.1%").contains("write `none`, `450ppm`"));
    }

    #[test]
    fn latencies_are_durations() {
        assert_eq!(parse_latency("250us"), Ok(250_000));
        assert!(parse_latency("5").unwrap_err().contains("write a duration like"));
        assert_eq!(
            parse_latency("2days"),
            Err("`2days` is more than one day; write a shorter time, like 100ms".to_owned())
        );
    }
}
