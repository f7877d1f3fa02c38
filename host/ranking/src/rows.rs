//! Writes the rows of a ranking as text: JSON for GraphQL with the fields that were asked for, under
//! the names that were asked for; whole rows as JSON, JSON lines and CSV. A ten-year answer has
//! 49,000 rows; written here it takes a tenth of the time that resolving it field by field takes.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::io::{self, Write};

use domain::JstDate;
use domain::csv_cell::guarded;
use pricestore::limits::CODE_BYTES_MAX;
use serde_json::{Map, Value, json};

use crate::blocks::Blocks;
use crate::listed::IssueOnDates;
use crate::{ListedField, ListedInfo, RankRow, Ranking};

/// A field of DailyRankingItem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemField {
    Date,
    Code,
    Close,
    PrevClose,
    SortValue,
    Volume,
    Rank,
    SpansSplit,
    /// What the list of issues says.
    Listed(ListedField),
    TypeName,
}

impl ItemField {
    /// The field with this name in the schema.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Date,
            "code" => Self::Code,
            "close" => Self::Close,
            "prevClose" => Self::PrevClose,
            "sortValue" => Self::SortValue,
            "volume" => Self::Volume,
            "rank" => Self::Rank,
            "spansSplit" => Self::SpansSplit,
            "__typename" => Self::TypeName,
            other => {
                let mut listed = ListedField::ALL.into_iter();
                Self::Listed(listed.find(|field| field.name() == other)?)
            }
        })
    }

    /// Bytes that a value takes at most, where that does not depend on the data as with names. Longest
    /// are doubles like -1.2345678901234567e-308.
    pub(crate) const fn bytes_max(self) -> u64 {
        match self {
            Self::Date => "\"2024-01-04\"".len() as u64,
            Self::Code => CODE_BYTES_MAX as u64 + 2,
            Self::Close | Self::SortValue | Self::Volume => DOUBLE_BYTES_MAX,
            Self::PrevClose => "null".len() as u64,
            Self::Rank => 10,
            Self::SpansSplit => "false".len() as u64,
            Self::Listed(_) => 0,
            Self::TypeName => "\"DailyRankingItem\"".len() as u64,
        }
    }

    /// What its values are, in the words of JSON schema.
    fn schema(self) -> Value {
        match self {
            Self::Date => json!({
                "type": "string",
                "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
                "description": "Trading day, Japan.",
            }),
            Self::Code => json!({ "type": "string", "description": "Issue code." }),
            Self::Close => {
                json!({ "type": "number", "description": "Closing price in yen, as stored." })
            }
            Self::PrevClose => json!({ "type": "null", "description": "Always null." }),
            Self::SortValue => json!({
                "type": ["number", "null"],
                "description": "Result of the formula or module, not rounded.",
            }),
            Self::Volume => {
                json!({ "type": ["number", "null"], "description": "Volume in shares." })
            }
            Self::Rank => json!({
                "type": "integer",
                "minimum": 1,
                "description": "1 to the limit within each day.",
            }),
            Self::SpansSplit => json!({
                "type": ["boolean", "null"],
                "description": "Whether a lag reaches across a split of the issue. Null if the data has no \
                                splits, or if none is known but one may be missing.",
            }),
            Self::Listed(field) => {
                let what = match field {
                    ListedField::Name => "Name in Japanese",
                    ListedField::NameEn => "Name in English",
                    ListedField::Market => "Market, in Japanese",
                    ListedField::Sector33 => "Sector of 33, in Japanese",
                };
                let by = "by the last list of issues up to the day; null if unknown";
                json!({ "type": ["string", "null"], "description": format!("{what}, {by}.") })
            }
            Self::TypeName => json!({ "const": "DailyRankingItem" }),
        }
    }
}

/// The fields to write, each with the name it has in the answer.
pub(crate) type Selection = Vec<(String, ItemField)>;

/// Bytes of the longest double.
const DOUBLE_BYTES_MAX: u64 = 24;

/// All fields: those of the specification in its order, then whether a lag reaches across a split, and
/// what the list of issues says.
const ALL_FIELDS: [(&str, ItemField); 12] = [
    ("date", ItemField::Date),
    ("code", ItemField::Code),
    ("close", ItemField::Close),
    ("prevClose", ItemField::PrevClose),
    ("sortValue", ItemField::SortValue),
    ("volume", ItemField::Volume),
    ("rank", ItemField::Rank),
    ("spansSplit", ItemField::SpansSplit),
    ("name", ItemField::Listed(ListedField::Name)),
    ("nameEn", ItemField::Listed(ListedField::NameEn)),
    ("market", ItemField::Listed(ListedField::Market)),
    ("sector33", ItemField::Listed(ListedField::Sector33)),
];

/// The rows as a JSON list. Names in `selection` are GraphQL names, which need no escapes.
pub(crate) fn json(
    ranking: &Ranking,
    listed: &ListedInfo,
    selection: &[(String, ItemField)],
) -> Blocks {
    let columns = Columns::new(ranking, listed, selection);
    let mut out = Blocks::default();
    out.piece(|out| out.push(b'['));
    for (index, row) in ranking.rows.iter().enumerate() {
        out.piece(|out| {
            if index > 0 {
                out.push(b',');
            }
            columns.row(row, out);
        });
    }
    out.piece(|out| out.push(b']'));
    out
}

/// Writes each row as a JSON object on a line of its own, with the field names of GraphQL.
///
/// # Errors
/// What `out` says.
pub fn write_jsonl(ranking: &Ranking, listed: &ListedInfo, out: &mut impl Write) -> io::Result<()> {
    write_lines(ranking, listed, out, b"", b"\n")
}

/// Writes the rows as one JSON list, a row on a line.
///
/// # Errors
/// What `out` says.
pub fn write_json(ranking: &Ranking, listed: &ListedInfo, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"[")?;
    write_lines(ranking, listed, out, b"\n", b",")?;
    out.write_all(if ranking.rows.is_empty() { b"]\n" } else { b"\n]\n" })
}

/// The JSON schema (2020-12) of a line that [`write_jsonl`] writes, made from the fields of a row.
#[must_use]
pub fn row_schema() -> Value {
    let mut schema = row_object();
    schema["$schema"] = DRAFT.into();
    schema["title"] = "A row of a ranking".into();
    schema
}

/// The JSON schema (2020-12) of what [`write_json`] writes.
#[must_use]
pub fn rows_schema() -> Value {
    json!({ "$schema": DRAFT, "title": "A ranking", "type": "array", "items": row_object() })
}

/// The draft of JSON schema that is written.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

fn row_object() -> Value {
    let named = |(name, field): (&str, ItemField)| (name.to_owned(), field.schema());
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": ALL_FIELDS.into_iter().map(named).collect::<Map<_, _>>(),
        "required": ALL_FIELDS.map(|(name, _)| name),
    })
}

/// Writes rows with something before each, and something after each (the last one only has it where
/// it ends a line).
fn write_lines(
    ranking: &Ranking,
    listed: &ListedInfo,
    out: &mut impl Write,
    before: &[u8],
    after: &[u8],
) -> io::Result<()> {
    let all = ALL_FIELDS.map(|(name, field)| (name.to_owned(), field));
    let columns = Columns::new(ranking, listed, &all);
    let mut line = Vec::new();
    for (index, row) in ranking.rows.iter().enumerate() {
        line.clear();
        line.extend_from_slice(before);
        columns.row(row, &mut line);
        if after == b"\n" || index + 1 < ranking.rows.len() {
            line.extend_from_slice(after);
        }
        out.write_all(&line)?;
    }
    Ok(())
}

/// Writes the rows as CSV with a header; null is empty.
///
/// # Errors
/// What `out` says.
pub fn write_csv(ranking: &Ranking, listed: &ListedInfo, out: &mut impl Write) -> io::Result<()> {
    out.write_all(
        b"date,code,close,sortValue,volume,rank,spansSplit,name,nameEn,market,sector33\n",
    )?;
    let names = Names::new(ranking, listed);
    let days: Vec<String> = ranking.days.iter().map(ToString::to_string).collect();
    let codes: Vec<Cow<'_, str>> = ranking.codes.iter().map(|code| csv_cell(code)).collect();
    let mut line = Vec::new();
    for row in &ranking.rows {
        line.clear();
        line.extend_from_slice(days[row.day as usize].as_bytes());
        line.push(b',');
        line.extend_from_slice(codes[row.code as usize].as_bytes());
        for value in [Some(row.close), row.sort_value, row.volume] {
            line.push(b',');
            if let Some(value) = value {
                number(value, &mut line);
            }
        }
        line.push(b',');
        line.extend_from_slice(itoa::Buffer::new().format(row.rank).as_bytes());
        line.push(b',');
        if let Some(spans) = ranking.spans_split(row) {
            line.extend_from_slice(truth(spans));
        }
        let (issue, day) = names.of(row);
        for field in ListedField::ALL {
            line.push(b',');
            let text = csv_cell(issue.text(day, field).unwrap_or_default());
            line.extend_from_slice(text.as_bytes());
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    out.flush()
}

/// A text as a cell of CSV (RFC 4180). Most of a row are numbers, so a library's writer, which looks at
/// every byte for quotes, would be half of the work.
fn csv_cell(text: &str) -> Cow<'_, str> {
    let text = guarded(text);
    if text.contains(['"', ',', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        text
    }
}

/// What the lists say of the issues of rows; an issue is looked up at its first row.
struct Names<'a> {
    ranking: &'a Ranking,
    listed: &'a ListedInfo,
    issues: Vec<OnceCell<IssueOnDates<'a>>>,
}

impl<'a> Names<'a> {
    fn new(ranking: &'a Ranking, listed: &'a ListedInfo) -> Self {
        Self { ranking, listed, issues: vec![OnceCell::new(); ranking.codes.len()] }
    }

    fn of(&self, row: &RankRow) -> (IssueOnDates<'a>, JstDate) {
        let code = row.code as usize;
        let issue = self.issues[code].get_or_init(|| self.listed.issue(&self.ranking.codes[code]));
        (*issue, self.ranking.days[row.day as usize])
    }
}

/// What is the same in many rows, ready to be copied.
struct Columns<'a> {
    ranking: &'a Ranking,
    keys: Vec<(String, ItemField)>,
    days: Vec<String>,
    codes: Vec<String>,
    /// Only where one of them is asked for.
    names: Option<Names<'a>>,
}

impl<'a> Columns<'a> {
    fn new(
        ranking: &'a Ranking,
        listed: &'a ListedInfo,
        selection: &[(String, ItemField)],
    ) -> Self {
        let has_names = selection.iter().any(|(_, field)| matches!(field, ItemField::Listed(_)));
        let keys = selection.iter().enumerate().map(|(index, (name, field))| {
            let open = if index == 0 { '{' } else { ',' };
            (format!("{open}\"{name}\":"), *field)
        });
        Self {
            ranking,
            keys: keys.collect(),
            days: ranking.days.iter().map(|day| format!("\"{day}\"")).collect(),
            codes: ranking.codes.iter().map(|code| quoted(code.as_ref())).collect(),
            names: has_names.then(|| Names::new(ranking, listed)),
        }
    }

    fn row(&self, row: &RankRow, out: &mut Vec<u8>) {
        for (key, field) in &self.keys {
            out.extend_from_slice(key.as_bytes());
            match field {
                ItemField::Date => out.extend_from_slice(self.days[row.day as usize].as_bytes()),
                ItemField::Code => out.extend_from_slice(self.codes[row.code as usize].as_bytes()),
                ItemField::Close => number(row.close, out),
                ItemField::PrevClose => out.extend_from_slice(b"null"),
                ItemField::SortValue => optional(row.sort_value, out),
                ItemField::Volume => optional(row.volume, out),
                ItemField::Rank => {
                    out.extend_from_slice(itoa::Buffer::new().format(row.rank).as_bytes());
                }
                ItemField::SpansSplit => {
                    let spans = self.ranking.spans_split(row);
                    out.extend_from_slice(spans.map_or(&b"null"[..], truth));
                }
                ItemField::Listed(field) => {
                    let names = self.names.as_ref().map(|names| names.of(row));
                    let text = names.and_then(|(issue, day)| issue.json(day, *field));
                    out.extend_from_slice(text.unwrap_or("null").as_bytes());
                }
                ItemField::TypeName => out.extend_from_slice(b"\"DailyRankingItem\""),
            }
        }
        // An empty selection is not GraphQL; the brackets still match.
        out.extend_from_slice(if self.keys.is_empty() { b"{}" } else { b"}" });
    }
}

fn truth(value: bool) -> &'static [u8] {
    if value { b"true" } else { b"false" }
}

fn optional(value: Option<f64>, out: &mut Vec<u8>) {
    match value {
        Some(value) => number(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// The shortest text that reads back as the same number; whole numbers without a fraction.
pub(crate) fn number(value: f64, out: &mut Vec<u8>) {
    /// Below this every whole number has a text of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !value.is_finite() {
        // JSON has no other numbers; the engine never gives one.
        out.extend_from_slice(b"null");
    } else if value.abs() < EXACT && value.fract() == 0.0 {
        if value == 0.0 && value.is_sign_negative() {
            out.push(b'-');
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        let whole = value as i64;
        out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    } else {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    }
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::adjustment::Adjustment;
    use pricestore::grid::{Split, Splits};
    use pricestore::listed::{IssueField, IssueInfo, ListedHistory};
    use proptest::prelude::*;

    use super::*;
    use crate::SplitReach;

    fn text(value: f64) -> String {
        let mut out = Vec::new();
        number(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn whole_numbers_have_no_fraction() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1520.0, "1520"),
            (-3.0, "-3"),
            (0.1, "0.1"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (f64::NAN, "null"),
            (f64::NEG_INFINITY, "null"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    fn ranking(count: u32) -> Ranking {
        let row = |rank| RankRow {
            day: 0,
            code: rank % 2,
            close: 10.5,
            volume: (rank == 2).then_some(300.0),
            sort_value: (rank == 1).then_some(-0.25),
            rank,
        };
        let codes: Arc<[Box<str>]> = ["13,01", "7203"].map(Box::from).into();
        let days = vec![JstDate::from_ymd_opt(2024, 1, 4).unwrap()];
        let split = Split { day: 7, code: 1, adjustment: Adjustment::of_factor(0.5) };
        let splits = Splits::new(vec![split], Vec::new(), Vec::new()).unwrap();
        let splits = Some(SplitReach::new(Arc::new(splits), 7, 1));
        Ranking { days, codes, rows: (1..=count).map(row).collect(), snapshot: 1, splits }
    }

    /// A list of the day with one of the issues.
    fn listed() -> ListedInfo {
        let name = IssueInfo::default().with(IssueField::Name, "トヨタ \"自動車\"");
        let both = name.with(IssueField::NameEn, "a, b");
        let mut history = ListedHistory::default();
        history.insert(ranking(0).days[0], [(Box::from("7203"), both)].into()).unwrap();
        ListedInfo::new(&history)
    }

    #[test]
    fn rows_have_three_forms() {
        type Write = fn(&Ranking, &ListedInfo, &mut Vec<u8>) -> io::Result<()>;
        let written = |write: Write, count| {
            let mut out = Vec::new();
            write(&ranking(count), &listed(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let lines = [
            r#"{"date":"2024-01-04","code":"7203","close":10.5,"prevClose":null,"sortValue":-0.25,"volume":null,"rank":1,"spansSplit":true,"name":"トヨタ \"自動車\"","nameEn":"a, b","market":null,"sector33":null}"#,
            r#"{"date":"2024-01-04","code":"13,01","close":10.5,"prevClose":null,"sortValue":null,"volume":300,"rank":2,"spansSplit":false,"name":null,"nameEn":null,"market":null,"sector33":null}"#,
        ];
        assert_eq!(written(write_jsonl, 2), format!("{}\n{}\n", lines[0], lines[1]));
        assert_eq!(written(write_json, 2), format!("[\n{},\n{}\n]\n", lines[0], lines[1]));
        assert_eq!(written(write_json, 0), "[]\n");
        let csv = "date,code,close,sortValue,volume,rank,spansSplit,name,nameEn,market,sector33\n\
             2024-01-04,7203,10.5,-0.25,,1,true,\"トヨタ \"\"自動車\"\"\",\"a, b\",,\n\
             2024-01-04,\"13,01\",10.5,,300,2,false,,,,\n";
        assert_eq!(written(write_csv, 2), csv);
    }

    #[test]
    fn names_are_no_formulas_in_csv() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("＝A1", "'＝A1"),
            ("@x, y", "\"'@x, y\""),
            ("=\"a\"", "\"'=\"\"a\"\"\""),
            ("-5", "-5"),
            ("トヨタ", "トヨタ"),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }

    #[test]
    fn nothing_is_said_of_splits_where_the_data_does_not_tell() {
        let unknown = Ranking { splits: None, ..ranking(1) };
        let (mut line, mut csv) = (Vec::new(), Vec::new());
        write_jsonl(&unknown, &ListedInfo::default(), &mut line).unwrap();
        write_csv(&unknown, &ListedInfo::default(), &mut csv).unwrap();
        let rest = b"\"rank\":1,\"spansSplit\":null,\"name\":null,\"nameEn\":null,\"market\":null,\
                     \"sector33\":null}\n";
        assert!(line.ends_with(rest) && csv.ends_with(b",1,,,,,\n"));
    }

    #[test]
    fn no_value_is_longer_than_stated() {
        for value in [f64::MIN_POSITIVE, -f64::MAX, -1.234_567_890_123_456_7e-308, -0.1 / 3.0] {
            assert!(text(value).len() as u64 <= DOUBLE_BYTES_MAX, "{}", text(value));
        }
        let all = ALL_FIELDS.map(|(name, field)| (name.to_owned(), field));
        let one = json(&ranking(2), &listed(), &all);
        let keys: u64 = all.iter().map(|(name, _)| name.len() as u64 + 4).sum();
        let values: u64 = all.iter().map(|(_, field)| field.bytes_max()).sum();
        let values = values + listed().longest().iter().sum::<u64>();
        assert!(one.len() as u64 <= 2 * (keys + values + 2), "{} bytes", one.len());
    }

    proptest! {
        #[test]
        fn numbers_read_back_as_themselves(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            let text = text(value);
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
            if value.is_finite() {
                prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            }
        }

        #[test]
        fn strings_read_back_as_themselves(value in any::<String>()) {
            prop_assert_eq!(serde_json::from_str::<String>(&quoted(&value)).unwrap(), value);
        }
    }
}
