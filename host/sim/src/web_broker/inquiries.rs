//! Lists and balances.

use domain::{Money, Price};
use serde_json::Value;

use super::answers::{Answer, add, rows, yen};
use super::broker::Broker;
use super::ledger::{Position, value};
use super::limits::HISTORY_ROWS_MAX;
use super::notices::four;
use super::order::{FIRST_NUMBER, Order};
use super::refusal::Refusal;
use super::request::Request;
use super::times;

/// Average of so many shares that cost so much, cut off.
fn average(cost: Money, shares: u64) -> Price {
    // Shares are far below 2^63.
    Price::from_units(cost.units() / (shares.max(1) as i64))
}

/// A share of a value, in percent with two decimals.
fn percent(part: Money, whole: Money) -> String {
    if whole == Money::ZERO {
        return "0.00".to_owned();
    }
    let hundredths = i128::from(part.units()) * 10_000 / i128::from(whole.units());
    let (sign, hundredths) = (if hundredths < 0 { "-" } else { "" }, hundredths.abs());
    format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
}

fn four_signed(price: Price) -> String {
    let sign = if price.units() < 0 { "-" } else { "" };
    format!("{sign}{}", four(Price::from_units(price.units().abs())))
}

impl Broker {
    /// The requests that only ask.
    pub(crate) fn inquire(
        &self,
        request: &Request,
        id: &str,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let update = times::second(self.clock())[..12].to_owned();
        let echo = |answer: &mut Answer, names: &[&str]| {
            for name in names {
                add(answer, &[(name, request.text(name))]);
            }
        };
        match id {
            "CLMOrderList" => {
                echo(answer, &["sIssueCode", "sSikkouDay", "sOrderSyoukaiStatus"]);
                let list = self.order_list(request)?;
                answer.insert("aOrderList".to_owned(), list);
            }
            "CLMOrderListDetail" => self.order_detail(request, answer)?,
            "CLMZanKaiKanougaku" => {
                echo(answer, &["sIssueCode", "sSizyouC"]);
                let free = self.free_cash();
                let short = if free < Money::ZERO { "1" } else { "0" };
                add(
                    answer,
                    &[
                        ("sSummaryUpdate", &update),
                        ("sSummaryGenkabuKaituke", &yen(free.max(Money::ZERO))),
                        ("sSummaryNseityouTousiKanougaku", "0"),
                        ("sHusokukinHasseiFlg", short),
                    ],
                );
            }
            "CLMZanShinkiKanoIjiritu" => {
                echo(answer, &["sIssueCode", "sSizyouC"]);
                let (used, free) = (self.ledger.margin_used(), self.free_margin());
                let rate = percent(self.ledger.cash, used);
                add(
                    answer,
                    &[
                        ("sSummaryUpdate", &update),
                        ("sSummarySinyouSinkidate", &yen(free.max(Money::ZERO))),
                        ("sItakuhosyoukin", &rate),
                        ("sOisyouKakuteiFlg", "0"),
                    ],
                );
            }
            "CLMZanUriKanousuu" => {
                echo(answer, &["sIssueCode"]);
                let issue = self.issue_index(request.needed("sIssueCode")?);
                let issue = issue.ok_or(super::refusal::NO_ISSUE)?;
                let sellable = |tax| {
                    let held = self.ledger.held(issue, tax);
                    held.saturating_sub(self.being_sold(issue, tax)).to_string()
                };
                add(
                    answer,
                    &[
                        ("sSummaryUpdate", &update),
                        ("sZanKabuSuryouUriKanouIppan", &sellable('3')),
                        ("sZanKabuSuryouUriKanouTokutei", &sellable('1')),
                        ("sZanKabuSuryouUriKanouNisa", &sellable('5')),
                        ("sZanKabuSuryouUriKanouNseityou", &sellable('6')),
                    ],
                );
            }
            "CLMGenbutuKabuList" => {
                echo(answer, &["sIssueCode"]);
                self.holdings(request.text("sIssueCode"), answer);
            }
            "CLMShinyouTategyokuList" => {
                echo(answer, &["sIssueCode"]);
                self.margin_positions(request.text("sIssueCode"), answer);
            }
            _ => return Err(Refusal::Parameter("sCLMID is not served here".to_owned())),
        }
        Ok(())
    }

    fn order_list(&self, request: &Request) -> Result<Value, Refusal> {
        let (symbol, day) = (request.text("sIssueCode"), request.text("sSikkouDay"));
        let status = request.text("sOrderSyoukaiStatus");
        let is_meant = |order: &&Order| {
            let (filled, open) = (order.filled > 0, !order.state.is_final());
            let of_status = match status {
                "1" => open && !filled,
                "2" => !open && filled,
                "3" => open && filled,
                "4" | "5" => open,
                _ => true,
            };
            of_status
                && (symbol.is_empty() || self.issues[order.terms.issue].symbol == symbol)
                && (day.is_empty() || times::day(order.day) == day)
                // What is over is told on its own day only.
                && (open || order.day == self.day)
        };
        if !matches!(status, "" | "0" | "1" | "2" | "3" | "4" | "5") {
            return Err(Refusal::Parameter("sOrderSyoukaiStatus is not 0 to 5".to_owned()));
        }
        let all = self.orders.iter().filter(is_meant);
        Ok(rows(all.map(|order| self.order_row(order)).collect()))
    }

    /// A row of the list of orders.
    pub(crate) fn order_row(&self, order: &Order) -> Answer {
        let (terms, mut row) = (&order.terms, Answer::new());
        let (code, status) = order.status();
        let stop_waits = order.is_waiting_stop();
        let is_stop = terms.trigger.is_some();
        let price = |price: Option<Price>| four(price.unwrap_or_default());
        let shown_price = if is_stop && !order.is_triggered { None } else { terms.price };
        let kind = match (stop_waits, terms.price.is_some()) {
            (true, _) => " ",
            (false, true) => "2",
            (false, false) => "1",
        };
        let stop_kind = match (is_stop, terms.price.is_some()) {
            (false, _) => " ",
            (true, true) => "1",
            (true, false) => "0",
        };
        let fired = if is_stop && order.is_triggered { "1" } else { "0" };
        let can_change = if order.state.is_final() { "1" } else { "0" };
        let filled_at = average(order.filled_value, order.filled);
        let filled_at = if order.filled == 0 { Price::default() } else { filled_at };
        add(
            &mut row,
            &[
                ("sOrderWarningCode", "0"),
                ("sOrderWarningText", ""),
                ("sOrderOrderNumber", &order.number.to_string()),
                ("sOrderIssueCode", &self.issues[terms.issue].symbol),
                ("sOrderSizyouC", "00"),
                ("sOrderZyoutoekiKazeiC", &terms.tax.to_string()),
                ("sGenkinSinyouKubun", &terms.credit.to_string()),
                ("sOrderBensaiKubun", terms.repayment()),
                ("sOrderBaibaiKubun", &terms.side.to_string()),
                ("sOrderOrderSuryou", &terms.quantity.to_string()),
                ("sOrderCurrentSuryou", &order.leaves().to_string()),
                ("sOrderOrderPrice", &price(shown_price)),
                ("sOrderCondition", &terms.condition.to_string()),
                ("sOrderOrderPriceKubun", kind),
                ("sOrderGyakusasiOrderType", if is_stop { "1" } else { "0" }),
                ("sOrderGyakusasiZyouken", &price(terms.trigger)),
                ("sOrderGyakusasiKubun", stop_kind),
                ("sOrderGyakusasiPrice", &price(terms.price.filter(|_| is_stop))),
                ("sOrderTriggerType", fired),
                ("sOrderTatebiType", if terms.closes.is_empty() { " " } else { "1" }),
                ("sOrderZougen", ""),
                ("sOrderYakuzyouSuryo", &order.filled.to_string()),
                ("sOrderYakuzyouPrice", &four(filled_at)),
                ("sOrderUtidekiKbn", if order.fills.len() > 1 { "2" } else { " " }),
                ("sOrderSikkouDay", &times::day(order.day)),
                ("sOrderStatusCode", code),
                ("sOrderStatus", status),
                ("sOrderYakuzyouStatus", order.fill_status()),
                ("sOrderOrderDateTime", &order.placed_at),
                ("sOrderOrderExpireDay", &terms.expires.map_or("00000000".to_owned(), times::day)),
                ("sOrderKurikosiOrderFlg", if order.is_carried { "1" } else { "0" }),
                ("sOrderCorrectCancelKahiFlg", can_change),
                ("sGaisanDaikin", &yen(self.estimate(order))),
            ],
        );
        row
    }

    fn order_detail(&self, request: &Request, answer: &mut Answer) -> Result<(), Refusal> {
        let number: Option<u64> = request.needed("sOrderNumber")?.parse().ok();
        let index = number.and_then(|number| number.checked_sub(FIRST_NUMBER));
        let order = index.and_then(|index| self.orders.get(usize::try_from(index).ok()?));
        let day = request.needed("sEigyouDay")?;
        let of_day =
            |order: &&Order| times::day(order.day) == day || times::day(order.placed_on) == day;
        let order = order.filter(of_day).ok_or(super::refusal::NO_ORDER)?;
        add(answer, &[("sOrderNumber", &order.number.to_string()), ("sEigyouDay", day)]);
        let mut row = self.order_row(order);
        let from_list = [
            ("sIssueCode", "sOrderIssueCode"),
            ("sOrderSizyouC", "sOrderSizyouC"),
            ("sOrderBaibaiKubun", "sOrderBaibaiKubun"),
            ("sGenkinSinyouKubun", "sGenkinSinyouKubun"),
            ("sOrderBensaiKubun", "sOrderBensaiKubun"),
            ("sOrderCondition", "sOrderCondition"),
            ("sOrderOrderPriceKubun", "sOrderOrderPriceKubun"),
            ("sOrderOrderPrice", "sOrderOrderPrice"),
            // Without `sOrder`, unlike the list's.
            ("sGyakusasiOrderType", "sOrderGyakusasiOrderType"),
            ("sGyakusasiZyouken", "sOrderGyakusasiZyouken"),
            ("sGyakusasiKubun", "sOrderGyakusasiKubun"),
            ("sGyakusasiPrice", "sOrderGyakusasiPrice"),
            ("sTriggerType", "sOrderTriggerType"),
            ("sTatebiType", "sOrderTatebiType"),
            ("sZougen", "sOrderZougen"),
            ("sUtidekiKubun", "sOrderUtidekiKbn"),
            ("sGaisanDaikin", "sGaisanDaikin"),
            ("sOrderOrderSuryou", "sOrderOrderSuryou"),
            ("sOrderCurrentSuryou", "sOrderCurrentSuryou"),
            ("sOrderStatusCode", "sOrderStatusCode"),
            ("sOrderStatus", "sOrderStatus"),
            ("sOrderOrderDateTime", "sOrderOrderDateTime"),
            ("sOrderOrderExpireDay", "sOrderOrderExpireDay"),
        ];
        for (name, of_row) in from_list {
            if let Some(value) = row.remove(of_row) {
                answer.insert(name.to_owned(), value);
            }
        }
        let is_cash = order.terms.credit == '0';
        let tax = order.terms.tax.to_string();
        let (of_cash, of_margin) = if is_cash { (tax.as_str(), "") } else { ("", tax.as_str()) };
        let price = average(order.filled_value, order.filled);
        add(
            answer,
            &[
                ("sChannel", if order.is_foreign() { "1" } else { "F" }),
                ("sTriggerTime", ""),
                ("sGenbutuZyoutoekiKazeiC", of_cash),
                ("sSinyouZyoutoekiKazeiC", of_margin),
                ("sYakuzyouPrice", &four(price)),
                ("sYakuzyouSuryou", &order.filled.to_string()),
                ("sBaiBaiDaikin", &yen(order.filled_value)),
                ("sBaiBaiTesuryo", "0"),
                ("sShouhizei", "0"),
                ("sSizyouErrorCode", ""),
                ("sOrderAcceptTime", &order.placed_at),
                ("sOrderExpireDayLimit", &order.terms.expires.map_or(String::new(), times::day)),
            ],
        );
        let fills = order.fills.iter().map(|fill| {
            let mut row = Answer::new();
            add(
                &mut row,
                &[
                    ("sYakuzyouWarningCode", "0"),
                    ("sYakuzyouWarningText", ""),
                    ("sYakuzyouSuryou", &fill.quantity.to_string()),
                    ("sYakuzyouPrice", &four(fill.price)),
                    ("sYakuzyouDate", &fill.time),
                ],
            );
            row
        });
        answer.insert("aYakuzyouSikkouList".to_owned(), rows(fills.collect()));
        let closes = order.terms.closes.iter().zip(1_u32..).map(|((_, shares), rank)| {
            let mut row = Answer::new();
            add(
                &mut row,
                &[
                    ("sKessaiWarningCode", "0"),
                    ("sKessaiWarningText", ""),
                    ("sKessaiTatebiZyuni", &rank.to_string()),
                    ("sKessaiOrderSuryo", &shares.to_string()),
                ],
            );
            row
        });
        answer.insert("aKessaiOrderTategyokuList".to_owned(), rows(closes.collect()));
        Ok(())
    }

    fn holdings(&self, symbol: &str, answer: &mut Answer) {
        let mut list = Vec::new();
        let mut worth = [Money::ZERO; 3];
        let mut profit = [Money::ZERO; 3];
        for ((issue, tax), holding) in &self.ledger.holdings {
            let known = &self.issues[*issue];
            if !symbol.is_empty() && known.symbol != symbol {
                continue;
            }
            let now = value(self.last[*issue], holding.quantity);
            let place = match tax {
                '1' => 0,
                '3' => 1,
                _ => 2,
            };
            worth[place] += now;
            profit[place] += now - holding.cost;
            let sellable = holding.quantity.saturating_sub(self.being_sold(*issue, *tax));
            let change = Price::from_units(self.last[*issue].units() - known.base.units());
            let mut row = Answer::new();
            add(
                &mut row,
                &[
                    ("sUriOrderWarningCode", "0"),
                    ("sUriOrderWarningText", ""),
                    ("sUriOrderIssueCode", &known.symbol),
                    ("sUriOrderZyoutoekiKazeiC", &tax.to_string()),
                    ("sUriOrderZanKabuSuryou", &holding.quantity.to_string()),
                    ("sUriOrderUritukeKanouSuryou", &sellable.to_string()),
                    ("sUriOrderGaisanBokaTanka", &four(average(holding.cost, holding.quantity))),
                    ("sUriOrderHyoukaTanka", &four(self.last[*issue])),
                    ("sUriOrderGaisanHyoukagaku", &yen(now)),
                    ("sUriOrderGaisanHyoukaSoneki", &yen(now - holding.cost)),
                    ("sUriOrderGaisanHyoukaSonekiRitu", &percent(now - holding.cost, holding.cost)),
                    ("sSyuzituOwarine", &four(known.base)),
                    ("sZenzituHi", &four_signed(change)),
                    ("sZenzituHiPer", "0.00"),
                    ("sUpDownFlag", "06"),
                    ("sNissyoukinKasikabuZan", "0"),
                ],
            );
            list.push(row);
        }
        let sum = |all: &[Money]| yen(all.iter().copied().sum());
        add(
            answer,
            &[
                ("sTokuteiGaisanHyoukagakuGoukei", &yen(worth[0])),
                ("sIppanGaisanHyoukagakuGoukei", &yen(worth[1])),
                ("sNisaGaisanHyoukagakuGoukei", &yen(worth[2])),
                ("sTotalGaisanHyoukagakuGoukei", &sum(&worth)),
                ("sTokuteiGaisanHyoukaSonekiGoukei", &yen(profit[0])),
                ("sIppanGaisanHyoukaSonekiGoukei", &yen(profit[1])),
                ("sNisaGaisanHyoukaSonekiGoukei", &yen(profit[2])),
                ("sTotalGaisanHyoukaSonekiGoukei", &sum(&profit)),
            ],
        );
        answer.insert("aGenbutuKabuList".to_owned(), rows(list));
    }

    fn profit_of(&self, position: &Position) -> Money {
        let now = value(self.last[position.issue], position.open());
        let then = value(position.price, position.open());
        if position.side == '3' { now - then } else { then - now }
    }

    fn margin_positions(&self, symbol: &str, answer: &mut Answer) {
        let is_meant = |position: &&Position| {
            let known = &self.issues[position.issue].symbol;
            position.open() > 0 && (symbol.is_empty() || known == symbol)
        };
        let open: Vec<&Position> = self.ledger.positions.iter().filter(is_meant).collect();
        let total = |of: &dyn Fn(&Position) -> Money, keep: &dyn Fn(&Position) -> bool| {
            yen(open.iter().filter(|position| keep(position)).map(|position| of(position)).sum())
        };
        let cost = |position: &Position| value(position.price, position.open());
        let profit = |position: &Position| self.profit_of(position);
        let (sold, bought) = (|p: &Position| p.side == '1', |p: &Position| p.side == '3');
        add(
            answer,
            &[
                ("sUritateDaikin", &total(&cost, &sold)),
                ("sKaitateDaikin", &total(&cost, &bought)),
                ("sTotalDaikin", &total(&cost, &|_| true)),
                ("sHyoukaSonekiGoukeiUridate", &total(&profit, &sold)),
                ("sHyoukaSonekiGoukeiKaidate", &total(&profit, &bought)),
                ("sTotalHyoukaSonekiGoukei", &total(&profit, &|_| true)),
                ("sTokuteiHyoukaSonekiGoukei", &total(&profit, &|p| p.tax == '1')),
                ("sIppanHyoukaSonekiGoukei", &total(&profit, &|p| p.tax == '3')),
            ],
        );
        let list = open.iter().map(|position| self.margin_row(position)).collect();
        answer.insert("aShinyouTategyokuList".to_owned(), rows(list));
    }

    fn margin_row(&self, position: &Position) -> Answer {
        let known = &self.issues[position.issue];
        let (open, busy) = (position.open(), self.being_closed(position.number));
        let (cost, profit) = (value(position.price, open), self.profit_of(position));
        let last = self.last[position.issue];
        let change = Price::from_units(last.units() - known.base.units());
        let mut row = Answer::new();
        add(
            &mut row,
            &[
                ("sOrderWarningCode", "0"),
                ("sOrderWarningText", ""),
                ("sOrderTategyokuNumber", &position.number.to_string()),
                ("sOrderIssueCode", &known.symbol),
                ("sOrderSizyouC", "00"),
                ("sOrderBaibaiKubun", &position.side.to_string()),
                ("sOrderBensaiKubun", position.repayment),
                ("sOrderZyoutoekiKazeiC", &position.tax.to_string()),
                ("sOrderTategyokuSuryou", &open.to_string()),
                ("sOrderTategyokuTanka", &four(position.price)),
                ("sOrderHyoukaTanka", &four(last)),
                ("sOrderGaisanHyoukaSoneki", &yen(profit)),
                ("sOrderGaisanHyoukaSonekiRitu", &percent(profit, cost)),
                ("sTategyokuDaikin", &yen(cost)),
                ("sOrderTateTesuryou", "0"),
                ("sOrderZyunHibu", "0"),
                ("sOrderGyakuhibu", "0"),
                ("sOrderKakikaeryou", "0"),
                ("sOrderKanrihi", "0"),
                ("sOrderKasikaburyou", "0"),
                ("sOrderSonota", "0"),
                ("sOrderTategyokuDay", &times::day(position.opened)),
                ("sOrderTategyokuKizituDay", "00000000"),
                ("sTategyokuSuryou", &position.quantity.to_string()),
                ("sOrderYakuzyouHensaiKabusu", &position.closed.to_string()),
                ("sOrderGenbikiGenwatasiKabusu", &position.settled.to_string()),
                ("sOrderOrderSuryou", &busy.to_string()),
                ("sOrderHensaiKanouSuryou", &open.saturating_sub(busy).to_string()),
                ("sSyuzituOwarine", &four(known.base)),
                ("sZenzituHi", &four_signed(change)),
                ("sZenzituHiPer", "0.00"),
                ("sUpDownFlag", "06"),
            ],
        );
        row
    }

    /// `CLMMfdsGetMarketPriceHistory`: the days that were traded here.
    pub(crate) fn price_history(
        &self,
        request: &Request,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let issue = self.issue_index(request.needed("sIssueCode")?);
        let issue = issue.ok_or(Refusal::Session(1, "no data."))?;
        add(answer, &[("sIssueCode", &self.issues[issue].symbol), ("sSizyouC", "00")]);
        let days = &self.history[issue];
        let list = days.iter().rev().take(HISTORY_ROWS_MAX).rev().map(|day| {
            let mut row = Answer::new();
            let prices = [four(day.open), four(day.high), four(day.low), four(day.close)];
            let volume = day.volume.to_string();
            add(&mut row, &[("sDate", &times::day(day.date))]);
            for (name, price) in ["pDOP", "pDHP", "pDLP", "pDPP"].iter().zip(&prices) {
                add(&mut row, &[(name, price)]);
            }
            add(&mut row, &[("pDV", &volume)]);
            for (name, price) in ["pDOPxK", "pDHPxK", "pDLPxK", "pDPPxK"].iter().zip(&prices) {
                add(&mut row, &[(name, price)]);
            }
            add(&mut row, &[("pDVxK", &volume), ("pSPUO", ""), ("pSPUC", ""), ("pSPUK", "")]);
            row
        });
        answer.insert("aCLMMfdsMarketPriceHistory".to_owned(), rows(list.collect()));
        Ok(())
    }
}
