//! Faults that can be switched on: of the next requests, or of the broker as long as they stand.

use std::collections::VecDeque;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::{DELAY_MAX, FAULTS_MAX};

/// The `sCLMID`s of the requests that are served, in all releases.
const REQUESTS: [&str; 20] = [
    "CLMAuthLoginRequest",
    "CLMAuthLogoutRequest",
    "CLMEventDownload",
    "CLMGenbutuKabuList",
    "CLMKabuCancelOrder",
    "CLMKabuCancelOrderAll",
    "CLMKabuCorrectOrder",
    "CLMKabuNewOrder",
    "CLMMfdsGetMarketPriceHistory",
    "CLMMfdsGetMasterData",
    "CLMOrderList",
    "CLMOrderListDetail",
    "CLMShinyouTategyokuList",
    "CLMStkGetDateZyouhou",
    "CLMStkGetIssueMstKabu",
    "CLMStkGetIssueSizyouMstKabu",
    "CLMStkGetYobine",
    "CLMZanKaiKanougaku",
    "CLMZanShinkiKanoIjiritu",
    "CLMZanUriKanousuu",
];

/// What may go wrong. Those in the first part happen to requests and are used up; the others stand until
/// they are cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The request waits so many milliseconds before anything is looked at, its `p_no` included.
    DelayRequest,
    /// It is done, notices go out, and the answer waits so many milliseconds.
    DelayAnswer,
    /// The connection is closed and nothing was done.
    DropBefore,
    /// It is done, and the connection is closed without an answer.
    DropAnswer,
    /// It is done, and the answer breaks off in the middle.
    HalfAnswer,
    /// It is done, and the answer is bytes that mean nothing.
    Garbage,
    /// It is done, and the answer is as long as nobody expects: 64 MiB of blanks.
    HugeAnswer,
    /// Nothing is done; the answer has this `p_errno`.
    Errno,
    /// It is done; the answer has this `p_errno`.
    ErrnoAfter,
    /// Nothing is done; the answer has this `sResultCode`.
    Result,
    /// Nothing is done; the answer has this HTTP status and no JSON.
    HttpStatus,
    /// Notices of it go out before its answer.
    NoticesFirst,
    /// Each of the next notices of orders is sent twice.
    DuplicateNotices,
    /// The next notices of orders wait for the one that follows, and go out after it.
    ReorderNotices,
    /// The next orders are taken, and the exchange then refuses them: a notice tells.
    RefuseLater,

    /// Logins are refused with this `sResultCode`.
    RefuseLogin,
    /// The login answer has no addresses, because documents are unread.
    UnreadDocuments,
    /// The login answer has addresses of the production host.
    ProductionHost,
    /// Every request is answered with `p_errno` 9, as at night.
    Offline,
    /// Orders are refused, and a frame tells this phase: `300`, `900`.
    VenueClosed,
    /// Notices of orders are kept back until `release-notices`.
    HoldNotices,
    /// Lists of orders, their details, holdings and positions are those of so many milliseconds ago.
    LateLists,
    /// Changes and cancels are accepted and not done until `release-changes`.
    HoldChanges,
    /// No keep-alives.
    Silent,
    /// The stream of events cannot be opened.
    RefuseEvents,
    /// The master ends in the middle of a record.
    TruncatedMaster,
    /// The master has no dates.
    NoDateMaster,
    /// Answers are packed with gzip where the client takes that.
    Gzip,
    /// Every notice of an order ends with a separator.
    TrailingSeparator,
}

impl FaultKind {
    const ALL: [Self; 29] = [
        Self::DelayRequest,
        Self::DelayAnswer,
        Self::DropBefore,
        Self::DropAnswer,
        Self::HalfAnswer,
        Self::Garbage,
        Self::HugeAnswer,
        Self::Errno,
        Self::ErrnoAfter,
        Self::Result,
        Self::HttpStatus,
        Self::NoticesFirst,
        Self::DuplicateNotices,
        Self::ReorderNotices,
        Self::RefuseLater,
        Self::RefuseLogin,
        Self::UnreadDocuments,
        Self::ProductionHost,
        Self::Offline,
        Self::VenueClosed,
        Self::HoldNotices,
        Self::LateLists,
        Self::HoldChanges,
        Self::Silent,
        Self::RefuseEvents,
        Self::TruncatedMaster,
        Self::NoDateMaster,
        Self::Gzip,
        Self::TrailingSeparator,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Whether it stands until it is cleared.
    fn stands(self) -> bool {
        // The order of the enum: what is used up comes first.
        self as usize >= Self::RefuseLogin as usize
    }

    fn is_of_notices(self) -> bool {
        matches!(self, Self::DuplicateNotices | Self::ReorderNotices | Self::RefuseLater)
    }

    /// Its value where none is given; none where one must be.
    fn default_value(self) -> Option<i64> {
        match self {
            Self::DelayRequest | Self::DelayAnswer | Self::LateLists => None,
            Self::Errno | Self::ErrnoAfter | Self::Result | Self::HttpStatus => None,
            Self::RefuseLogin => Some(10_031),
            Self::VenueClosed => Some(900),
            _ => Some(1),
        }
    }
}

/// A fault, and what it hits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultSetting {
    /// What happens.
    pub name: FaultKind,
    /// Milliseconds, a code, a phase.
    pub value: i64,
    /// Only requests of this `sCLMID`.
    pub request: Option<String>,
    /// How many more requests or notices; none: all.
    pub times: Option<u32>,
}

impl FaultSetting {
    /// A fault with its value checked.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(
        name: FaultKind,
        value: Option<i64>,
        request: Option<String>,
        times: Option<u32>,
    ) -> Result<Self, String> {
        let shown = name.name();
        let value = value
            .or(name.default_value())
            .ok_or_else(|| format!("{shown} needs a value, as in {shown}=2"))?;
        let delays =
            matches!(name, FaultKind::DelayRequest | FaultKind::DelayAnswer | FaultKind::LateLists);
        let most = DELAY_MAX.as_millis();
        if delays && !u128::try_from(value).is_ok_and(|millis| millis <= most) {
            return Err(format!("{shown}={value}: must be 0 to {most} ms"));
        }
        if name == FaultKind::HttpStatus && !(100..=999).contains(&value) {
            return Err(format!("{shown}={value}: a status has three digits"));
        }
        if name == FaultKind::VenueClosed && !(0..=999).contains(&value) {
            return Err(format!("{shown}={value}: a phase has three digits"));
        }
        if (name.stands() || name.is_of_notices()) && request.is_some() {
            return Err(format!("{shown}: it is not a fault of one request; leave @ out"));
        }
        if let Some(request) = request.as_deref().filter(|name| !REQUESTS.contains(name)) {
            let known = REQUESTS.join(", ");
            return Err(format!("`{request}` is not a request; write one of {known}"));
        }
        if name.stands() && times.is_some() {
            return Err(format!("{shown}: it stays until you clear it; leave * out"));
        }
        Ok(Self { name, value, request, times })
    }

    /// Its value as a time.
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.value).unwrap_or_default())
    }
}

/// Reads `name`, `name=value`, `name@sCLMID=value*times`.
impl FromStr for FaultSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |what: &str| format!("`{text}`: {what} is not a number");
        let (rest, times) = match text.split_once('*') {
            None => (text, None),
            Some((rest, times)) => {
                (rest, Some(times.parse().map_err(|_| number("the part after *"))?))
            }
        };
        let (rest, value) = match rest.split_once('=') {
            None => (rest, None),
            Some((rest, value)) => (
                rest,
                Some(value.parse().map_err(|_| number("the part after = (ms for a delay)"))?),
            ),
        };
        let (name, request) = match rest.split_once('@') {
            None => (rest, None),
            Some((name, request)) => (name, Some(request.to_owned())),
        };
        let found = FaultKind::ALL.into_iter().find(|kind| kind.name() == name);
        let known = || FaultKind::ALL.map(FaultKind::name).join(", ");
        let name =
            found.ok_or_else(|| format!("`{name}` is not a fault; write one of {}", known()))?;
        Self::new(name, value, request, times)
    }
}

/// The faults that wait or stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    all: VecDeque<FaultSetting>,
}

impl Faults {
    /// Adds a fault; one that stands takes the place of the one before.
    pub(crate) fn add(&mut self, fault: FaultSetting) -> Result<(), String> {
        if fault.name.stands() {
            self.clear(Some(fault.name));
        }
        if self.all.len() >= FAULTS_MAX {
            return Err("more faults than FAULTS_MAX".to_owned());
        }
        self.all.push_back(fault);
        Ok(())
    }

    /// Takes faults away: those of a name, or all.
    pub(crate) fn clear(&mut self, name: Option<FaultKind>) {
        self.all.retain(|fault| name.is_some_and(|name| name != fault.name));
    }

    /// The faults of one request, the first of each name; each is used up by one.
    pub(crate) fn of_request(&mut self, id: &str) -> Vec<FaultSetting> {
        let mut taken: Vec<FaultSetting> = Vec::new();
        for fault in &mut self.all {
            let is_meant = !fault.name.stands()
                && !fault.name.is_of_notices()
                && fault.request.as_deref().is_none_or(|only| only == id)
                && taken.iter().all(|other| other.name != fault.name);
            if is_meant {
                fault.times = fault.times.map(|times| times.saturating_sub(1));
                taken.push(fault.clone());
            }
        }
        self.all.retain(|fault| fault.times != Some(0));
        taken
    }

    /// Whether the next notice is hit by a fault of notices, which is used up by one.
    pub(crate) fn of_notice(&mut self, name: FaultKind) -> bool {
        let Some(fault) = self.all.iter_mut().find(|fault| fault.name == name) else {
            return false;
        };
        fault.times = fault.times.map(|times| times.saturating_sub(1));
        self.all.retain(|fault| fault.times != Some(0));
        true
    }

    /// The value of a fault that stands.
    pub(crate) fn standing(&self, name: FaultKind) -> Option<i64> {
        self.all.iter().find(|fault| fault.name == name).map(|fault| fault.value)
    }

    pub(crate) fn has(&self, name: FaultKind) -> bool {
        self.standing(name).is_some()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &FaultSetting> {
        self.all.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_and_used_up() {
        let read = |text: &str| text.parse::<FaultSetting>();
        let mut faults = Faults::default();
        faults.add(read("delay-answer@CLMOrderList=5*2").unwrap()).unwrap();
        faults.add(read("drop-answer*1").unwrap()).unwrap();
        assert_eq!(faults.of_request("CLMOrderList").len(), 2);
        assert!(faults.of_request("CLMKabuNewOrder").is_empty());
        assert_eq!(faults.of_request("CLMOrderList").len(), 1);
        assert!(faults.of_request("CLMOrderList").is_empty());
        faults.add(read("venue-closed=300").unwrap()).unwrap();
        faults.add(read("venue-closed").unwrap()).unwrap();
        assert_eq!(faults.standing(FaultKind::VenueClosed), Some(900));
        faults.clear(Some(FaultKind::VenueClosed));
        assert_eq!(faults.all().count(), 0);
        for wrong in [
            "nothing",
            "errno",
            "delay-answer=-1",
            "gzip*2",
            "offline@CLMOrderList",
            "a=b",
            "drop-answer@CLMOrderLst",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
