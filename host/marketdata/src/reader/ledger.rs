//! What is remembered of each code: its last moment and the transaction ids of the running day.
//! Order and uniqueness are rules between rows, all others are rules of one row.

use std::collections::{BTreeSet, HashMap};

use domain::{TsNanos, VendorCode};

use crate::error::CellProblem;
use crate::limits::{FILE_CODES_MAX, REMEMBERED_IDS_MAX};

use super::header::Column;

/// One code's past.
#[derive(Debug)]
struct Past {
    code: VendorCode,
    midnight: u64,
    last: u64,
    /// Highest id of the day; valid once the day has a row.
    highest: u64,
    day_has_rows: bool,
    /// Ids of the day that were above all before them, so in rising order.
    rising: Vec<u64>,
    /// The other ids of the day.
    late: BTreeSet<u64>,
    /// Whether ids of the day were dropped for want of room.
    forgotten: bool,
}

/// A rule between rows that a row breaks.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) column: Column,
    pub(super) problem: CellProblem,
}

/// The past of all codes in use.
#[derive(Debug)]
pub(super) struct Ledger {
    pasts: Vec<Past>,
    /// Looked up only, never walked, so its order is not seen.
    places: HashMap<[u8; 5], usize>,
    remembered: usize,
    remembered_max: usize,
}

impl Ledger {
    /// Knows `codes`, at the places they have in the list.
    pub(super) fn new(codes: &[VendorCode]) -> Self {
        Self::with_memory(codes, REMEMBERED_IDS_MAX)
    }

    fn with_memory(codes: &[VendorCode], remembered_max: usize) -> Self {
        let mut ledger =
            Self { pasts: Vec::new(), places: HashMap::new(), remembered: 0, remembered_max };
        for &code in codes {
            ledger.add(code);
        }
        ledger
    }

    fn add(&mut self, code: VendorCode) -> usize {
        let place = self.pasts.len();
        self.pasts.push(Past {
            code,
            midnight: 0,
            last: 0,
            highest: 0,
            day_has_rows: false,
            rising: Vec::new(),
            late: BTreeSet::new(),
            forgotten: false,
        });
        self.places.insert(*code.as_bytes(), place);
        place
    }

    /// The place of the code written as `bytes`, if it is known.
    pub(super) fn find(&self, bytes: [u8; 5]) -> Option<usize> {
        self.places.get(&bytes).copied()
    }

    /// The place of the code written as `bytes`, which is added if it is new.
    pub(super) fn find_or_add(&mut self, bytes: [u8; 5]) -> Result<usize, CellProblem> {
        if let Some(place) = self.find(bytes) {
            return Ok(place);
        }
        let code = std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| VendorCode::new(text).ok())
            .ok_or(CellProblem::Code)?;
        if self.pasts.len() >= FILE_CODES_MAX {
            return Err(CellProblem::TooManyCodes);
        }
        Ok(self.add(code))
    }

    /// How many codes are known.
    pub(super) fn code_count(&self) -> usize {
        self.pasts.len()
    }

    /// The code at `place`.
    #[inline(always)]
    pub(super) fn code(&self, place: usize) -> VendorCode {
        self.pasts[place].code
    }

    /// Takes a row of the code at `place`: its date's midnight and its moment, in nanoseconds of
    /// UTC, and its id.
    #[inline(always)]
    pub(super) fn accept(
        &mut self,
        place: usize,
        midnight: u64,
        moment: u64,
        id: u64,
    ) -> Result<(), Broken> {
        let past = &mut self.pasts[place];
        if midnight != past.midnight {
            if moment < past.last {
                return Err(past.out_of_order(Column::Date));
            }
            self.remembered -= past.start_day(midnight);
        } else if moment < past.last {
            return Err(past.out_of_order(Column::Time));
        }
        if id > past.highest || !past.day_has_rows {
            past.rising.push(id);
            past.highest = id;
            past.day_has_rows = true;
        } else {
            past.take_late(id)?;
        }
        past.last = moment;
        self.remembered += 1;
        if self.remembered > self.remembered_max {
            self.make_room(place);
        }
        Ok(())
    }

    /// Takes the end of a bar: later than the one before of the same code.
    pub(super) fn accept_bar(&mut self, place: usize, moment: u64) -> Result<(), CellProblem> {
        let past = &mut self.pasts[place];
        if moment <= past.last {
            let (code, previous) = (past.code, TsNanos::from_nanos(past.last));
            return Err(if moment == past.last {
                CellProblem::BarTwice { code, previous }
            } else {
                CellProblem::BarOrder { code, previous }
            });
        }
        past.last = moment;
        Ok(())
    }

    /// Drops the ids of all other codes, which have no more rows on that day when rows are grouped
    /// by code, and the ids of this one too if it alone is too large.
    #[cold]
    fn make_room(&mut self, place: usize) {
        for (index, past) in self.pasts.iter_mut().enumerate() {
            if index != place && past.day_has_rows {
                past.forget();
            }
        }
        let kept = self.pasts[place].remembered();
        self.remembered = if kept > self.remembered_max {
            self.pasts[place].forget();
            0
        } else {
            kept
        };
    }
}

impl Past {
    fn remembered(&self) -> usize {
        self.rising.len() + self.late.len()
    }

    /// Forgets the day before; gives how many ids that were.
    fn start_day(&mut self, midnight: u64) -> usize {
        let dropped = self.remembered();
        self.rising.clear();
        self.late.clear();
        self.midnight = midnight;
        self.forgotten = false;
        self.day_has_rows = false;
        dropped
    }

    fn forget(&mut self) {
        self.rising = Vec::new();
        self.late.clear();
        self.forgotten = true;
    }

    #[cold]
    fn take_late(&mut self, id: u64) -> Result<(), Broken> {
        let code = self.code;
        let broken = |problem| Broken { column: Column::TransactionId, problem };
        if id == self.highest || self.rising.binary_search(&id).is_ok() || self.late.contains(&id) {
            return Err(broken(CellProblem::DuplicateId { code }));
        }
        if self.forgotten {
            let highest = self.highest;
            return Err(broken(CellProblem::FallingId { code, highest }));
        }
        self.late.insert(id);
        Ok(())
    }

    #[cold]
    fn out_of_order(&self, column: Column) -> Broken {
        let code = self.code;
        let previous = TsNanos::from_nanos(self.last);
        Broken {
            column,
            problem: match column {
                Column::Date => CellProblem::DateOrder { code, previous },
                _ => CellProblem::TimeOrder { code, previous },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> VendorCode {
        VendorCode::new(text).unwrap()
    }

    /// Feeds ids of one code on one day, all at one moment.
    fn feed(ledger: &mut Ledger, place: usize, ids: &[u64]) -> Result<(), CellProblem> {
        ids.iter()
            .try_for_each(|&id| ledger.accept(place, 1, 1, id))
            .map_err(|broken| broken.problem)
    }

    #[test]
    fn ids_in_any_order_are_checked() {
        let duplicate = CellProblem::DuplicateId { code: code("13010") };
        for (ids, expected) in [
            (vec![1, 2, 9], Ok(())),
            (vec![0, 1], Ok(())),
            (vec![0, 0], Err(duplicate.clone())),
            (vec![5, 3, 9, 4, 10], Ok(())),
            (vec![5, 3, 9, 5], Err(duplicate.clone())),
            (vec![5, 3, 9, 3], Err(duplicate.clone())),
            (vec![5, 5], Err(duplicate)),
        ] {
            let mut ledger = Ledger::new(&[code("13010")]);
            assert_eq!(feed(&mut ledger, 0, &ids), expected, "{ids:?}");
        }
    }

    #[test]
    fn ids_repeat_on_another_day_or_code() {
        let mut ledger = Ledger::new(&[code("13010"), code("130A0")]);
        feed(&mut ledger, 0, &[1, 2]).unwrap();
        feed(&mut ledger, 1, &[1, 2]).unwrap();
        ledger.accept(0, 2, 2, 1).unwrap();
        assert_eq!(ledger.remembered, 3);
    }

    #[test]
    fn without_room_falling_ids_are_refused() {
        let mut ledger = Ledger::with_memory(&[code("13010"), code("130A0")], 4);
        feed(&mut ledger, 0, &[10, 20, 30]).unwrap();
        feed(&mut ledger, 1, &[10, 20]).unwrap();
        assert_eq!(ledger.remembered, 2);
        feed(&mut ledger, 1, &[15]).unwrap();
        feed(&mut ledger, 0, &[40]).unwrap();
        let falling = CellProblem::FallingId { code: code("13010"), highest: 40 };
        assert_eq!(feed(&mut ledger, 0, &[35]), Err(falling));
        ledger.accept(0, 2, 2, 7).unwrap();
        ledger.accept(0, 2, 2, 5).unwrap();
    }

    #[test]
    fn one_code_alone_can_exceed_the_room() {
        let mut ledger = Ledger::with_memory(&[code("13010")], 2);
        feed(&mut ledger, 0, &[1, 2, 3, 4]).unwrap();
        assert!(feed(&mut ledger, 0, &[2]).is_err());
    }

    #[test]
    fn moments_never_go_back() {
        let mut ledger = Ledger::new(&[code("13010")]);
        ledger.accept(0, 10, 15, 1).unwrap();
        ledger.accept(0, 10, 15, 2).unwrap();
        assert_eq!(ledger.accept(0, 10, 14, 3).unwrap_err().column, Column::Time);
        assert_eq!(ledger.accept(0, 5, 9, 3).unwrap_err().column, Column::Date);
    }

    #[test]
    fn the_number_of_codes_is_limited() {
        let mut ledger = Ledger::new(&[]);
        for number in 0..FILE_CODES_MAX {
            let bytes = *format!("{number:05}").as_bytes().first_chunk().unwrap();
            assert_eq!(ledger.find_or_add(bytes), Ok(number));
        }
        let one_more = ledger.find_or_add(*b"99999");
        assert_eq!(one_more, Err(CellProblem::TooManyCodes));
        assert_eq!(ledger.find_or_add(*b"00007"), Ok(7));
        assert_eq!(ledger.find_or_add(*b"ABCDE"), Err(CellProblem::Code));
        assert_eq!(ledger.find_or_add(*b"13\xff10"), Err(CellProblem::Code));
    }
}
