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

/// Where a row came from. The first source that succeeds is used, and rows are never merged (specification 3,
/// "Source order"); the rules `better`, `factor`, `taken_back` and `adjusted` of [`crate::RULES`] follow from it.
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

    /// How far its rows are trusted, 1 to 3 (rule `better`). The vendor's files are the vendor's rows,
    /// and rows that do not tell their source count as such.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Vendor | Self::Files => 3,
            Self::WebBroker => 2,
            Self::Public => 1,
        }
    }

    /// Whether the source has adjusted its prices for splits itself (rule `adjusted`).
    #[must_use]
    pub const fn is_adjusted(self) -> bool {
        matches!(self, Self::Public)
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
