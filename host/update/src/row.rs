//! One row of daily prices, as every source gives it and the databases keep it.

use std::fmt;
use std::str::FromStr;

use domain::instrument::InstrumentError;
use domain::{JstDate, Money, Price, VendorCode};

/// An issue's code as it is stored: four places, or five where the last one is not 0
/// (`7203`, `130A`, `25935`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IssueCode(VendorCode);

impl IssueCode {
    /// The vendor's five places.
    #[must_use]
    pub const fn vendor_code(&self) -> &VendorCode {
        &self.0
    }

    /// The stored text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let text = self.0.as_str();
        text.strip_suffix('0').unwrap_or(text)
    }
}

impl From<VendorCode> for IssueCode {
    fn from(code: VendorCode) -> Self {
        Self(code)
    }
}

/// Four or five digits or letters; small letters count as capital ones.
impl FromStr for IssueCode {
    type Err = InstrumentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let upper = text.to_ascii_uppercase();
        let five = if upper.len() == 4 { format!("{upper}0") } else { upper };
        let code = VendorCode::new(&five).map_err(|_| InstrumentError::BadCode(text.to_owned()))?;
        Ok(Self(code))
    }
}

impl fmt::Display for IssueCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a row came from. The first source that succeeds is used, and rows are never merged
/// (specification 3, "Source order"). What follows from it:
///
/// | Rule | What comes | What becomes of it |
/// |---|---|---|
/// | R1 | a row (code, date) that nobody has given | stored, whatever its source |
/// | R2 | other values, from a source of the same or a higher [rank](Self::rank) | they replace the row as a whole, within R8; the report names both sources and each value, old and new |
/// | R3 | the same values, from a source of a higher rank | the row is of that source from now on |
/// | R4 | other values, from a source of a lower rank | the row stays as it is; none of its columns is filled |
/// | R5 | a row that tells no factor, from any source, where one is known | the factor stays; the other values go by R2 to R4, and the report counts rows that tell none |
/// | R6 | a whole day of the vendor, no row of it odd, with 99 % of the issues that it lists for the date, without issues that have a row of the vendor or its files and are not listed, at most 1 % of these rows or two of them, or of a day that is not published however many | it took those rows back: they are removed, and the report names their values |
/// | R7 | as R6, but the issues are listed, or there is no list of the date, or they are more | it proves nothing: the rows stay, which is told |
/// | R8 | of a published day, rows without a price, the volume or the turnover that is stored (0 is none), of over 1 % of its issues and at least three in a run | they take nothing away: an answer of the whole day is refused, of what came otherwise these rows; the day stays as it was, which the report says as a doubt, and the run ends as incomplete |
/// | R9 | a whole answer for a day that the user accepts by its date | R6 to R8 and C12 of the job do not hold, nor E1 to E21 of the job: what it takes away is taken away and named in the report |
/// | A1 | a row of the public source, whose prices it has adjusted itself | published with `adjusted` true, all others with false |
/// | A2 | such a row in the view `adjusted` | it gives no factor, and nobody knows for which splits it was adjusted: where rows follow, its prices and all before it are null; where none does, it stays as it is |
/// | A3 | the web broker's columns pSPUO, pSPUC and pSPUK | of the day of a split its factor, pSPUO / pSPUC; where they are not set, 1 |
/// | A4 | a row that tells no factor, which is not the same as 1, in the view `adjusted` | prices of the issue before it are null: nobody knows what compares |
/// | A5 | a published business day without a row of any issue, or a day of which others have rows and this issue of the vendor or its files has none, between two rows of an issue, in the view `adjusted` | prices of the issue before it are null: a split on that day would be in the row that is missing. Rankings do the same (U2 and U3 of the snapshot) |
/// | Q1 | rows of a whole day that cannot be used, at most 1 % | left out and named in the report with source, values and reason; the other rows are used, and nothing is asked for issue by issue |
/// | Q2 | more of them, or an answer that cannot be read | the day is refused and named as failed with the first of them: the source is none that is down, and the day is not asked for issue by issue but as a whole again |
/// | Q3 | such rows in the history of one issue, how many there are | left out and named like those of Q1; where nothing else came, the next source is asked |
/// | Q4 | rows of a list of issues that cannot be used | as Q1: up to 1 % are left out and told, with more the list is refused; of two rows of an issue the first is taken |
/// | Q5 | raw rows of a whole day that a source gave over the network, at most 1 % of them, with a price over ten times away from the last close of the ten complete days before it and over 60 yen, factors counted in | as Q1, until the vendor gives another or `--accept` names the day; more of them are taken, and told (Z2 of the job), or from three on odd (E11) |
/// | Q6 | days of a calendar with a HolDiv that is not 0, 1, 2 or 3 | as Q1: up to 1 % are left out and told, and what was known of them, else the law, tells; with more the calendar is refused |
/// | H1 | the server says that requests are too many (HTTP 429) | the time between two requests doubles, up to a minute |
/// | H2 | 20 answers in a row after that | it gets 10 % shorter, down to what was set |
/// | W1 | the setting `web_broker.daily_history` is not on, or user or password of the web broker are missing | it is not asked |
/// | W2 | it is asked | the run logs in once, at the first question, and out at its end; the report says that a login ends other sessions of the user |
/// | W3 | an engine, or another run, holds the lock of the account, which is in the config folder | it is skipped for the whole run, nothing is sent, and the report says so |
/// | W4 | the login fails, or the session ends during the run (`p_errno` 2), as by another login | it is given up for the run: it never logs in a second time |
/// | W5 | `p_errno` -2 or -3: it is busy | asked three times in all, with pauses |
/// | W6 | no clear answer, or one of another issue, or of none | not asked again; the next source is asked |
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// The market-data vendor.
    Vendor,
    /// The web broker's daily history.
    WebBroker,
    /// The third public source.
    Public,
    /// The vendor's files on disk.
    Files,
}

impl SourceKind {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 4] = [Self::Vendor, Self::WebBroker, Self::Public, Self::Files];

    /// How far its rows are trusted, 1 to 3 (rules R2 to R4). The vendor's files are the vendor's rows,
    /// and rows that do not tell their source count as such.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Vendor | Self::Files => 3,
            Self::WebBroker => 2,
            Self::Public => 1,
        }
    }

    /// Whether the source has adjusted its prices for splits itself (rules A1 and A2).
    #[must_use]
    pub const fn is_adjusted(self) -> bool {
        matches!(self, Self::Public)
    }

    /// Whether the source tells what was turned over with each row that was traded.
    #[must_use]
    pub const fn tells_turnover(self) -> bool {
        matches!(self, Self::Vendor | Self::Files)
    }

    /// The word that is stored with each row.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vendor => "vendor",
            Self::WebBroker => "web_broker",
            Self::Public => "public",
            Self::Files => "files",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What happened to one issue on one business day. Prices are raw: nothing is adjusted for splits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DailyRow {
    /// Trading date (JST).
    pub date: JstDate,
    /// The issue's code as it is stored.
    pub code: IssueCode,
    /// First price of the day; no price is there when nothing was traded.
    pub open: Option<Price>,
    /// Highest price of the day, in yen, raw.
    pub high: Option<Price>,
    /// Lowest price of the day, in yen, raw.
    pub low: Option<Price>,
    /// Last price of the day, in yen, raw.
    pub close: Option<Price>,
    /// Shares traded on the day; 0 is a day without a trade.
    pub volume: Option<u64>,
    /// Value traded, in yen.
    pub turnover: Option<Money>,
    /// Factor of a split or reverse split that takes effect on this day, as the source gives it:
    /// earlier prices times the factor compare with later ones. 1 on all other days; none where the
    /// source does not tell, which never means that there was no split.
    pub adjustment_factor: Option<f64>,
    /// Where the row came from.
    pub source: SourceKind,
}

impl DailyRow {
    /// Open, high, low and close.
    #[must_use]
    pub const fn prices(&self) -> [Option<Price>; 4] {
        [self.open, self.high, self.low, self.close]
    }

    /// Whether it tells each price, the volume and the turnover: 0 tells no more than nothing.
    #[must_use]
    pub fn is_full(&self) -> bool {
        fn tells<T: Default + PartialEq>(value: Option<T>) -> bool {
            value.is_some_and(|value| value != T::default())
        }
        self.prices().into_iter().all(tells) && tells(self.volume) && tells(self.turnover)
    }

    /// Its values, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let price =
            |price: Option<Price>| price.map_or("none".to_owned(), |price| price.to_string());
        let number = |number: Option<String>| number.unwrap_or_else(|| "none".to_owned());
        format!(
            "open {}, high {}, low {}, close {}, volume {}, turnover {}, factor {}",
            price(self.open),
            price(self.high),
            price(self.low),
            price(self.close),
            number(self.volume.map(|volume| volume.to_string())),
            number(self.turnover.map(|turnover| turnover.to_string())),
            number(self.adjustment_factor.map(|factor| factor.to_string())),
        )
    }

    /// A row that says nothing but its date and code.
    #[must_use]
    pub const fn bare(date: JstDate, code: IssueCode, source: SourceKind) -> Self {
        Self {
            date,
            code,
            open: None,
            high: None,
            low: None,
            close: None,
            volume: None,
            turnover: None,
            adjustment_factor: None,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_and_databases_name_sources_alike() {
        for kind in SourceKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn codes_lose_a_trailing_place_only_if_it_is_0() {
        for (text, stored, vendor) in [
            ("7203", "7203", "72030"),
            ("72030", "7203", "72030"),
            ("130A", "130A", "130A0"),
            ("130a0", "130A", "130A0"),
            ("25935", "25935", "25935"),
        ] {
            let code: IssueCode = text.parse().unwrap();
            assert_eq!((code.as_str(), code.vendor_code().as_str()), (stored, vendor));
        }
        // Codes have the order of their stored texts.
        let ordered = ["1301", "130A", "2593", "25931", "25935", "2594"];
        assert!(
            ordered.is_sorted()
                && ordered
                    .map(|text| text.parse::<IssueCode>())
                    .is_sorted_by(|one, next| one.as_ref().unwrap() < next.as_ref().unwrap())
        );
        for wrong in ["", "720", "720300", "72-3", "７２０３"] {
            assert!(wrong.parse::<IssueCode>().is_err(), "{wrong}");
        }
    }
}
