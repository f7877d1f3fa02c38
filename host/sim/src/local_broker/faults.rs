//! Faults that can be switched on: of the next calls, of the next frames, or of the gateway as long as they
//! stand.

use std::collections::VecDeque;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::{DELAY_MAX, FAULTS_MAX, GIANT_FRAME_BYTES_MAX};

/// What may go wrong. Those of calls and of frames are used up one by one; the others stand until they are
/// cleared. "An extra frame" tells nothing that the frame after it does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The call waits so many milliseconds before its answer.
    DelayAnswer,
    /// The connection is closed and nothing was done.
    DropBefore,
    /// It is done, and the connection is closed without an answer.
    DropAnswer,
    /// It is done, and the answer breaks off in the middle.
    HalfAnswer,
    /// It is done, and the answer is a page, no JSON.
    Garbage,
    /// It is done, and the answer has no body.
    EmptyAnswer,
    /// Nothing is done; status 401 with this code, or the dialect's for a dead token.
    Unauthorized,
    /// Nothing is done; status 429 with this code, or the dialect's.
    TooMany,
    /// Nothing is done; this status, or 500, and a page.
    ServerError,
    /// Nothing is done; status 400 with this code.
    BadRequest,
    /// A registration or board read is answered as if all slots were taken.
    RegisterFull,
    /// The answered list of registrations lacks its last entries, so many, though they are registered.
    MissingEntries,

    /// The next frames are sent twice.
    DuplicateFrames,
    /// The next frames are lost.
    LostFrames,
    /// An extra frame of bytes that are no UTF-8 before each.
    WrongUtf8,
    /// An extra frame before each, which is binary.
    BinaryFrames,
    /// An extra frame before each that is no complete JSON.
    MalformedFrames,
    /// An extra frame before each, of this many bytes of valid JSON.
    GiantFrames,
    /// An extra frame before each, of a symbol that is not registered.
    UnregisteredFrames,
    /// An extra frame before each, of the same symbol on this other exchange.
    ForeignExchangeFrames,
    /// The best price of those who buy is above that of those who sell.
    CrossedBook,
    /// Nobody sells.
    OneSidedBook,
    /// Some levels change places, and a price appears twice.
    UnorderedLevels,
    /// Every level is null, or has null for its price.
    NullLevels,

    /// Pings are answered with an empty pong, as the vendor does.
    EmptyPong,
    /// A second client of the push freezes the first instead of taking its place.
    SecondFreezes,
    /// Nothing is pushed.
    SilentPush,
    /// Every call is answered as after the forced logout, `/token` too; the push goes on.
    LoggedOut,
}

/// What a fault happens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hits {
    Calls,
    Frames,
    /// It stands until it is cleared.
    Gateway,
}

impl FaultKind {
    const ALL: [Self; 28] = [
        Self::DelayAnswer,
        Self::DropBefore,
        Self::DropAnswer,
        Self::HalfAnswer,
        Self::Garbage,
        Self::EmptyAnswer,
        Self::Unauthorized,
        Self::TooMany,
        Self::ServerError,
        Self::BadRequest,
        Self::RegisterFull,
        Self::MissingEntries,
        Self::DuplicateFrames,
        Self::LostFrames,
        Self::WrongUtf8,
        Self::BinaryFrames,
        Self::MalformedFrames,
        Self::GiantFrames,
        Self::UnregisteredFrames,
        Self::ForeignExchangeFrames,
        Self::CrossedBook,
        Self::OneSidedBook,
        Self::UnorderedLevels,
        Self::NullLevels,
        Self::EmptyPong,
        Self::SecondFreezes,
        Self::SilentPush,
        Self::LoggedOut,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }

    fn hits(self) -> Hits {
        // The order of the enum.
        match self as usize {
            place if place < Self::DuplicateFrames as usize => Hits::Calls,
            place if place < Self::EmptyPong as usize => Hits::Frames,
            _ => Hits::Gateway,
        }
    }

    /// Whether it can happen to a call.
    fn concerns(self, call: &str) -> bool {
        match self {
            Self::RegisterFull => matches!(call, "register" | "board"),
            Self::MissingEntries => matches!(call, "register" | "unregister" | "unregister/all"),
            _ => true,
        }
    }

    /// Its value where none is given; none where one must be. 0 is the dialect's own code.
    fn default_value(self) -> Option<i64> {
        match self {
            Self::DelayAnswer | Self::BadRequest => None,
            Self::Unauthorized | Self::TooMany => Some(0),
            Self::ServerError => Some(500),
            Self::GiantFrames => Some(70_000),
            Self::ForeignExchangeFrames => Some(3),
            _ => Some(1),
        }
    }
}

/// A fault, and what it hits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultSetting {
    /// What happens.
    pub name: FaultKind,
    /// Milliseconds, a code, a status, bytes, a number of entries, an exchange.
    pub value: i64,
    /// Only calls of this name, like `wallet/cash`.
    pub call: Option<String>,
    /// How many more calls or frames; none: all.
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
        call: Option<String>,
        times: Option<u32>,
    ) -> Result<Self, String> {
        let shown = name.name();
        let value = value
            .or(name.default_value())
            .ok_or_else(|| format!("{shown} needs a value, as in {shown}=1000"))?;
        let (least, most, unit) = match name {
            FaultKind::DelayAnswer => (0, i64::try_from(DELAY_MAX.as_millis()).unwrap_or(0), " ms"),
            FaultKind::ServerError => (400, 599, ""),
            FaultKind::GiantFrames => {
                (4_096, i64::try_from(GIANT_FRAME_BYTES_MAX).unwrap_or(0), " bytes")
            }
            FaultKind::Unauthorized | FaultKind::TooMany | FaultKind::BadRequest => {
                (0, 99_999_999, "")
            }
            _ => (0, 1_000_000, ""),
        };
        if !(least..=most).contains(&value) {
            return Err(format!("{shown}={value}: must be {least} to {most}{unit}"));
        }
        if let Some(call) = &call {
            if name.hits() != Hits::Calls {
                return Err(format!("{shown}: it is not a fault of calls; leave @{call} out"));
            }
            if !super::rest::Call::names().any(|known| known == call) {
                let known: Vec<_> = super::rest::Call::names().collect();
                return Err(format!("`{call}` is not a call; write one of {}", known.join(", ")));
            }
        }
        if name.hits() == Hits::Gateway && times.is_some() {
            return Err(format!("{shown}: it stays until you clear it; leave * out"));
        }
        if times == Some(0) {
            return Err(format!("{shown}*0: a fault happens at least once"));
        }
        Ok(Self { name, value, call, times })
    }

    /// Its value as a time.
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.value).unwrap_or_default())
    }
}

/// Reads `name`, `name=value`, `name@call=value*times`.
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
        let (name, call) = match rest.split_once('@') {
            None => (rest, None),
            Some((name, call)) => (name, Some(call.to_owned())),
        };
        let found = FaultKind::ALL.into_iter().find(|kind| kind.name() == name);
        let known = || FaultKind::ALL.map(FaultKind::name).join(", ");
        let name =
            found.ok_or_else(|| format!("`{name}` is not a fault; write one of {}", known()))?;
        Self::new(name, value, call, times)
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
        if fault.name.hits() == Hits::Gateway {
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

    /// The faults of one call, the first of each name; each is used up by one.
    pub(crate) fn of_call(&mut self, call: &str) -> Vec<FaultSetting> {
        self.take(Hits::Calls, |fault| {
            fault.name.concerns(call) && fault.call.as_deref().is_none_or(|only| only == call)
        })
    }

    /// The faults of one frame, likewise.
    pub(crate) fn of_frame(&mut self) -> Vec<FaultSetting> {
        if self.all.is_empty() { Vec::new() } else { self.take(Hits::Frames, |_| true) }
    }

    fn take(&mut self, hits: Hits, is_meant: impl Fn(&FaultSetting) -> bool) -> Vec<FaultSetting> {
        let mut taken: Vec<FaultSetting> = Vec::new();
        for fault in &mut self.all {
            let is_next = fault.name.hits() == hits
                && is_meant(fault)
                && taken.iter().all(|other| other.name != fault.name);
            if is_next {
                fault.times = fault.times.map(|times| times.saturating_sub(1));
                taken.push(fault.clone());
            }
        }
        self.all.retain(|fault| fault.times != Some(0));
        taken
    }

    /// Whether a fault that stands is on.
    pub(crate) fn has(&self, name: FaultKind) -> bool {
        self.all.iter().any(|fault| fault.name == name)
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
        faults.add(read("unauthorized@wallet/cash=4001007*2").unwrap()).unwrap();
        faults.add(read("too-many*1").unwrap()).unwrap();
        faults.add(read("register-full*1").unwrap()).unwrap();
        assert_eq!(faults.of_call("wallet/cash").len(), 2);
        assert!(faults.of_call("orders").is_empty());
        assert_eq!(faults.of_call("wallet/cash")[0].value, 4_001_007);
        assert!(faults.of_call("wallet/cash").is_empty());
        assert_eq!(faults.of_call("board").len(), 1);
        faults.add(read("duplicate-frames*1").unwrap()).unwrap();
        faults.add(read("empty-pong").unwrap()).unwrap();
        assert_eq!(faults.of_frame().len(), 1);
        assert!(faults.of_frame().is_empty() && faults.has(FaultKind::EmptyPong));
        for wrong in [
            "nothing",
            "delay-answer",
            "delay-answer=-1",
            "empty-pong*2",
            "logged-out@orders",
            "too-many@balance",
            "giant-frames=99999999999",
            "server-error=200",
            "garbage@token=1*0",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for kind in FaultKind::ALL {
            let text = format!("{}=500", kind.name());
            let value = if kind == FaultKind::GiantFrames { "giant-frames" } else { &text };
            assert_eq!(read(value).unwrap().name, kind);
        }
    }

    #[test]
    fn there_is_room_for_so_many_only() {
        let mut faults = Faults::default();
        let one: FaultSetting = "too-many*1".parse().unwrap();
        for _ in 0..FAULTS_MAX {
            faults.add(one.clone()).unwrap();
        }
        assert!(faults.add(one).unwrap_err().contains("FAULTS_MAX"));
    }
}
