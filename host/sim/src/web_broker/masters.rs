//! Masters: the stream of records, and single kinds of them.

use domain::{Price, TickTable};
use serde_json::json;

use super::answers::{Answer, add, rows};
use super::broker::Broker;
use super::days::{day_before, next_day};
use super::faults::FaultKind;
use super::refusal::Refusal;
use super::request::Request;
use super::times;

/// Numbers of the vendor's tables of price steps.
fn table_number(ticks: TickTable) -> &'static str {
    match ticks {
        TickTable::Normal => "101",
        TickTable::Etf => "102",
        TickTable::Topix500 => "103",
        TickTable::Fixed(_) => "901",
    }
}

/// Bands that a record of price steps holds.
const BANDS: usize = 20;
/// The end of the last band.
const LAST_BAND: &str = "999999999.000000";

fn six(price: Price) -> String {
    super::notices::six(price)
}

impl Broker {
    /// Every record of the master, in the order of the stream, the last one included.
    pub(crate) fn master_records(&self) -> Vec<Answer> {
        let mut records = vec![self.system_status()];
        if !self.faults.has(FaultKind::NoDateMaster) {
            records.push(self.date_record("001", self.day));
            records.push(self.date_record("002", next_day(&self.calendar, self.day)));
        }
        let mut tables: Vec<TickTable> = TickTable::OFFICIAL.to_vec();
        for issue in &self.issues {
            if !tables.iter().any(|known| table_number(*known) == table_number(issue.ticks)) {
                tables.push(issue.ticks);
            }
        }
        records.extend(tables.into_iter().map(tick_record));
        for index in 0..self.issues.len() {
            records.push(self.issue_record(index));
            records.push(self.market_record(index));
        }
        let mut last = Answer::new();
        add(&mut last, &[("sCLMID", "CLMEventDownloadComplete")]);
        records.push(last);
        records
    }

    fn system_status(&self) -> Answer {
        let mut record = Answer::new();
        let open = if self.is_closed() { "0" } else { "1" };
        add(&mut record, &[("sCLMID", "CLMSystemStatus"), ("sSystemStatusKey", "001")]);
        add(&mut record, &[("sLoginKyokaKubun", "1"), ("sSystemStatus", open)]);
        record
    }

    fn date_record(&self, key: &str, day: domain::JstDate) -> Answer {
        let mut record = Answer::new();
        add(&mut record, &[("sCLMID", "CLMDateZyouhou"), ("sDayKey", key)]);
        let mut before = day;
        for number in 1..=3 {
            before = day_before(&self.calendar, before);
            add(&mut record, &[(&format!("sMaeEigyouDay_{number}"), &times::day(before))]);
        }
        add(&mut record, &[("sTheDay", &times::day(day))]);
        let mut after = Vec::new();
        let mut next = day;
        for number in 1..=10 {
            next = next_day(&self.calendar, next);
            after.push(times::day(next));
            add(&mut record, &[(&format!("sYokuEigyouDay_{number}"), &times::day(next))]);
        }
        add(
            &mut record,
            &[
                ("sKabuUkewatasiDay", &after[1]),
                ("sKabuKariUkewatasiDay", &after[2]),
                ("sBondUkewatasiDay", &after[1]),
            ],
        );
        record
    }

    fn issue_record(&self, index: usize) -> Answer {
        let issue = &self.issues[index];
        let lot = issue.lot.to_string();
        let mut record = Answer::new();
        add(
            &mut record,
            &[
                ("sCLMID", "CLMIssueMstKabu"),
                ("sIssueCode", &issue.symbol),
                ("sIssueName", &issue.name),
                ("sIssueNameRyaku", &issue.name),
                ("sIssueNameKana", ""),
                ("sIssueNameEizi", ""),
                ("sTokuteiF", "1"),
                ("sHikazeiC", "1"),
                ("sBaibaiTani", &lot),
                ("sBaibaiTaniYoku", &lot),
                ("sBaibaiTeisiC", ""),
                ("sYusenSizyou", "00"),
                ("sGyousyuCode", "3700"),
                ("sGyousyuName", "輸送用機器"),
            ],
        );
        record
    }

    fn market_record(&self, index: usize) -> Answer {
        let (issue, limits) = (&self.issues[index], self.limits[index]);
        let number = table_number(issue.ticks);
        let mut record = Answer::new();
        add(
            &mut record,
            &[
                ("sCLMID", "CLMIssueSizyouMstKabu"),
                ("sIssueCode", &issue.symbol),
                ("sZyouzyouSizyou", "00"),
                ("sNehabaMin", &super::notices::four(limits.low)),
                ("sNehabaMax", &super::notices::four(limits.high)),
                ("sSinyouC", "1"),
                ("sZenzituOwarine", &super::notices::four(self.last[index])),
                ("sSizyoubetuBaibaiTani", &issue.lot.to_string()),
                ("sYobineTaniNumber", number),
                ("sYobineTaniNumberYoku", number),
            ],
        );
        record
    }

    /// `CLMStkGet...`: one master, under the name of its records. Trading units in it are wrong, as the vendor
    /// says of its own.
    pub(crate) fn single_master(&self, id: &str, answer: &mut Answer) -> Result<(), Refusal> {
        let known = ["DateZyouhou", "IssueMstKabu", "IssueSizyouMstKabu", "Yobine"];
        let name = id.strip_prefix("CLMStkGet").filter(|name| known.contains(name));
        let name =
            name.ok_or_else(|| Refusal::Parameter("sCLMID is not served here".to_owned()))?;
        let kind = json!(format!("CLM{name}"));
        let of_kind = |record: &Answer| record.get("sCLMID") == Some(&kind);
        let list = self.master_records().into_iter().filter(of_kind).map(|mut record| {
            record.shift_remove("sCLMID");
            if let Some(lot) = record.get_mut("sBaibaiTani") {
                *lot = json!("0");
            }
            record
        });
        answer.insert(format!("aCLMStk{name}"), rows(list.collect()));
        Ok(())
    }

    /// `CLMMfdsGetMasterData`: the kinds and columns that are asked for. Price steps cannot be had so.
    pub(crate) fn direct_masters(
        &self,
        request: &Request,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let kinds: Vec<&str> = request.text("sTargetCLMID").split(',').collect();
        let columns: Vec<&str> = request.text("sTargetColumn").split(',').collect();
        let known = ["CLMIssueMstKabu", "CLMIssueSizyouMstKabu", "CLMDateZyouhou"];
        if kinds.iter().any(|kind| !kind.is_empty() && !known.contains(kind)) {
            return Err(Refusal::Parameter("sTargetCLMID is not served".to_owned()));
        }
        for kind in known {
            if !kinds.contains(&kind) && kinds != [""] {
                continue;
            }
            let of_kind = |record: &Answer| record.get("sCLMID") == Some(&json!(kind));
            let chosen = |record: Answer| {
                let is_chosen = |name: &str| columns == [""] || columns.contains(&name);
                let fields = record.into_iter().filter(|(name, _)| name != "sCLMID");
                fields.filter(|(name, _)| is_chosen(name)).collect::<Answer>()
            };
            let list = self.master_records().into_iter().filter(of_kind).map(chosen).collect();
            answer.insert(kind.to_owned(), rows(list));
        }
        Ok(())
    }
}

/// A record of price steps.
fn tick_record(ticks: TickTable) -> Answer {
    let mut record = Answer::new();
    add(
        &mut record,
        &[
            ("sCLMID", "CLMYobine"),
            ("sYobineTaniNumber", table_number(ticks)),
            ("sTekiyouDay", "20140101"),
        ],
    );
    let bands: Vec<(Price, Price)> = ticks.bands().take(BANDS).collect();
    let of = |band: usize, text: &dyn Fn(usize) -> String, none: &str| {
        if band < bands.len() { text(band) } else { none.to_owned() }
    };
    let edge = |band: usize| {
        if band + 1 == bands.len() { LAST_BAND.to_owned() } else { six(bands[band].0) }
    };
    let decimals = |band: usize| {
        let tick = bands[band].1.units();
        let digits = [10_000, 1_000, 100, 10].iter().position(|unit| tick % unit == 0);
        digits.unwrap_or(4).to_string()
    };
    for band in 0..BANDS {
        let name = format!("sKizunPrice_{}", band + 1);
        add(&mut record, &[(&name, &of(band, &edge, "0.000000"))]);
    }
    for band in 0..BANDS {
        let name = format!("sYobineTanka_{}", band + 1);
        add(&mut record, &[(&name, &of(band, &|band| six(bands[band].1), "0.000000"))]);
    }
    for band in 0..BANDS {
        add(&mut record, &[(&format!("sDecimal_{}", band + 1), &of(band, &decimals, "0"))]);
    }
    add(&mut record, &[("sCreateDate", ""), ("sUpdateDate", "")]);
    record
}
