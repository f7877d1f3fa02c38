//! What strategies hold at the broker, and a person's correction of it (specification 4, P125).

use anyhow::Result;
use domain::Quantity;
use ipc::{
    AdjustStrategyPosition, Command, Decimal, Event, GetStrategyPositions, ShareCount,
    StrategyPosition, StrategyPositions,
};

use crate::args::{LiveAdjustArgs, LivePositionsArgs};
use crate::order::asked::{Answer, Desk};
use crate::order::{self, WRITE_IT, ended, is_wanted};
use crate::table::{Align, Column, Table};
use crate::terminal::grouped;
use crate::{Ending, wrong_arguments};

/// Asks the engine what strategies hold; gives the answer in place of it where there is another one.
pub(super) fn ask(desk: &mut Desk) -> Result<Result<StrategyPositions<'static>, Answer>> {
    let answer = asked(desk)?;
    Ok(match answer {
        Answer::Done(received) => match received.event {
            Event::StrategyPositions(held) => Ok(held),
            _ => Err(Answer::Done(received)),
        },
        other => Err(other),
    })
}

fn asked(desk: &mut Desk) -> Result<Answer> {
    let request_id = desk.client.request_id()?;
    let command = Command::GetStrategyPositions(GetStrategyPositions { request_id });
    desk.ask(&command, |event, is_ours| is_ours && matches!(event, Event::StrategyPositions(_)))
}

/// What one strategy holds.
pub(super) fn of_strategy(
    held: StrategyPositions<'static>,
    strategy_id: &str,
) -> Vec<StrategyPosition<'static>> {
    held.positions.into_iter().filter(|row| row.strategy_id == strategy_id).collect()
}

/// Holdings on a line.
pub(super) fn in_words(held: &[StrategyPosition<'_>]) -> String {
    let rows: Vec<String> = held.iter().flat_map(row_in_words).collect();
    if rows.is_empty() { "no shares".to_owned() } else { rows.join(", ") }
}

fn row_in_words(row: &StrategyPosition<'_>) -> Vec<String> {
    let mut words = Vec::new();
    let shares = shares(row.quantity);
    if let Some(average) = row.average_price {
        words.push(format!("{} {shares} at {}", row.instrument_id, yen(average)));
    }
    if row.margin_quantity != 0 {
        let margin = grouped(&row.margin_quantity.to_string());
        words.push(format!("{} {margin} on margin", row.instrument_id));
    }
    words
}

fn shares(count: ShareCount) -> String {
    grouped(&Quantity::from(count).to_string())
}

fn yen(price: Decimal) -> String {
    grouped(&price.to_string())
}

/// `kumiki live positions`.
pub(super) fn show(args: &LivePositionsArgs) -> Result<Ending> {
    let mut desk = order::attach(&args.attach)?;
    let answer = asked(&mut desk)?;
    ended(&mut desk, answer, |event| match event {
        Event::StrategyPositions(held) if held.positions.is_empty() => {
            "no strategy holds shares".to_owned()
        }
        Event::StrategyPositions(held) => table(held),
        _ => String::new(),
    })
}

fn table(held: &StrategyPositions<'_>) -> String {
    let column = |name: &str, align| Column::new(name, align);
    let mut table = Table::new(vec![
        column("strategy", Align::Left),
        column("instrument", Align::Left),
        column("shares", Align::Right),
        column("average price", Align::Right),
        column("on margin", Align::Right),
    ]);
    for row in &held.positions {
        table.row(vec![
            row.strategy_id.to_string(),
            row.instrument_id.to_string(),
            shares(row.quantity),
            row.average_price.map_or_else(|| "-".to_owned(), yen),
            grouped(&row.margin_quantity.to_string()),
        ]);
    }
    let mut text = Vec::new();
    // Memory takes everything.
    let _ = table.write(None, &mut text);
    String::from_utf8_lossy(&text).trim_end().to_owned()
}

/// `kumiki live adjust`.
pub(super) fn adjust(args: &LiveAdjustArgs) -> Result<Ending> {
    let LiveAdjustArgs { strategy_id, instrument, quantity, average_price, why, .. } = args;
    let average_price = Decimal::from(*average_price);
    if *quantity > 0 && average_price <= Decimal::default() {
        return Err(wrong_arguments("AVG_PRICE is 0; write what one share cost in yen"));
    }
    let shares = ShareCount::from(Quantity::new(*quantity));
    let mut desk = order::attach(&args.attach)?;
    let before = match ask(&mut desk)? {
        Ok(held) => of_strategy(held, strategy_id),
        Err(answer) => return ended(&mut desk, answer, |_| String::new()),
    };
    let before: Vec<_> =
        before.into_iter().filter(|row| row.instrument_id == instrument.as_str()).collect();
    let wanted = StrategyPosition {
        strategy_id: strategy_id.into(),
        instrument_id: instrument.to_string().into(),
        quantity: shares,
        average_price: (*quantity > 0).then_some(average_price),
        margin_quantity: 0,
    };
    let text = format!(
        "{strategy_id} holds: {}\nfrom now on: {}\nwhy: {why}",
        in_words(&before),
        in_words(std::slice::from_ref(&wanted))
    );
    if !is_wanted(&desk, &args.confirm, &text, WRITE_IT)? {
        return Ok(Ending::Problems);
    }
    let command = Command::AdjustStrategyPosition(AdjustStrategyPosition {
        request_id: desk.client.request_id()?,
        strategy_id: strategy_id.clone(),
        instrument_id: instrument.to_string(),
        quantity: shares,
        average_price,
        why: why.clone(),
    });
    let answer = desk.ask(&command, |event, is_ours| {
        is_ours && matches!(event, Event::StrategyPositionAdjusted(_))
    })?;
    ended(&mut desk, answer, |event| match event {
        Event::StrategyPositionAdjusted(adjusted) => {
            format!("{strategy_id}: {}", in_words(std::slice::from_ref(&adjusted.position)))
        }
        _ => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held() -> StrategyPositions<'static> {
        let text = r#"{"event":"StrategyPositions","request_id":"r","positions":[
            {"strategy_id":"mine","instrument_id":"7203.TSE","quantity":"1200","average_price":"2850.5",
             "margin_quantity":"0"},
            {"strategy_id":"other","instrument_id":"9984.TSE","quantity":"0","average_price":null,
             "margin_quantity":"-300"}]}"#;
        match serde_json::from_str(text).unwrap() {
            Event::StrategyPositions(held) => held,
            other => panic!("{other:?}"),
        }
    }

    /// P125, P126: each strategy has its own shares, and who starts one sees them.
    #[test]
    fn p125_p126_what_a_strategy_holds_is_shown() {
        assert_eq!(in_words(&of_strategy(held(), "mine")), "7203.TSE 1,200 at 2,850.5");
        assert_eq!(in_words(&of_strategy(held(), "other")), "9984.TSE -300 on margin");
        assert_eq!(in_words(&of_strategy(held(), "nobody")), "no shares");
        let shown = table(&held());
        let lines: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            lines.iter().any(|line| *line == ["mine", "7203.TSE", "1,200", "2,850.5", "0"]),
            "{shown}"
        );
        assert!(
            lines.iter().any(|line| *line == ["other", "9984.TSE", "0", "-", "-300"]),
            "{shown}"
        );
    }
}
