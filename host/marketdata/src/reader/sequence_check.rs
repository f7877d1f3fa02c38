//! Order and uniqueness of rows: of each code the last timestamp and the transaction ids of the
//! running day are remembered. These are the rules between rows; all others are rules of one row.

use std::collections::{BTreeSet, HashMap};

use domain::{TsNanos, VendorCode};

use crate::error::CellProblem;
use crate::limits::{FILE_CODES_MAX, REMEMBERED_IDS_MAX};

use super::header::Column;

/// One code's rows so far.
#[derive(Debug)]
struct CodeSequence {
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
    /// Whether ids of the day were dropped for want of memory.
    forgotten: bool,
}

/// A rule between rows that a row breaks.
#[derive(Debug)]
pub(super) struct SequenceError {
    pub(super) column: Column,
    pub(super) problem: CellProblem,
}

/// Checks the rows of all codes in use, one after the other.
#[derive(Debug)]
pub(super) struct SequenceCheck {
    sequences: Vec<CodeSequence>,
    /// Looked up only, never walked, so its order is not seen.
    indexes: HashMap<[u8; 5], usize>,
    remembered: usize,
    remembered_max: usize,
}

impl SequenceCheck {
    /// Knows `codes`, by their indexes in the list.
    pub(super) fn new(codes: &[VendorCode]) -> Self {
        Self::with_memory(codes, REMEMBERED_IDS_MAX)
    }

    fn with_memory(codes: &[VendorCode], remembered_max: usize) -> Self {
        let mut check =
            Self { sequences: Vec::new(), indexes: HashMap::new(), remembered: 0, remembered_max };
        for &code in codes {
            check.add(code);
        }
        check
    }

    fn add(&mut self, code: VendorCode) -> usize {
        let index = self.sequences.len();
        self.sequences.push(CodeSequence {
            code,
            midnight: 0,
            last: 0,
            highest: 0,
            day_has_rows: false,
            rising: Vec::new(),
            late: BTreeSet::new(),
            forgotten: false,
        });
        self.indexes.insert(*code.as_bytes(), index);
        index
    }

    /// The index of the code written as `bytes`, if it is known.
    pub(super) fn find(&self, bytes: [u8; 5]) -> Option<usize> {
        self.indexes.get(&bytes).copied()
    }

    /// The index of the code written as `bytes`, which is added if it is new.
    pub(super) fn find_or_add(&mut self, bytes: [u8; 5]) -> Result<usize, CellProblem> {
        if let Some(index) = self.find(bytes) {
            return Ok(index);
        }
        let code = std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| VendorCode::new(text).ok())
            .ok_or(CellProblem::Code)?;
        if self.sequences.len() >= FILE_CODES_MAX {
            return Err(CellProblem::TooManyCodes);
        }
        Ok(self.add(code))
    }

    /// How many codes are known.
    pub(super) fn code_count(&self) -> usize {
        self.sequences.len()
    }

    /// The code at `index`.
    #[inline(always)]
    pub(super) fn code(&self, index: usize) -> VendorCode {
        self.sequences[index].code
    }

    /// Takes a row of the code at `index`: its date's midnight and its timestamp, both in nanoseconds
    /// since 1970 in UTC, and its transaction id.
    #[inline(always)]
    pub(super) fn accept(
        &mut self,
        index: usize,
        midnight: u64,
        timestamp: u64,
        id: u64,
    ) -> Result<(), SequenceError> {
        let sequence = &mut self.sequences[index];
        if midnight != sequence.midnight {
            if timestamp < sequence.last {
                return Err(sequence.out_of_order(Column::Date));
            }
            self.remembered -= sequence.start_day(midnight);
        } else if timestamp < sequence.last {
            return Err(sequence.out_of_order(Column::Time));
        }
        if id > sequence.highest || !sequence.day_has_rows {
            sequence.rising.push(id);
            sequence.highest = id;
            sequence.day_has_rows = true;
        } else {
            sequence.accept_late(id)?;
        }
        sequence.last = timestamp;
        self.remembered += 1;
        if self.remembered > self.remembered_max {
            self.evict_ids(index);
        }
        Ok(())
    }

    /// Takes the end of a bar: later than the one before of the same code.
    pub(super) fn accept_bar(&mut self, index: usize, timestamp: u64) -> Result<(), CellProblem> {
        let sequence = &mut self.sequences[index];
        if timestamp <= sequence.last {
            let (code, previous) = (sequence.code, TsNanos::from_nanos(sequence.last));
            return Err(if timestamp == sequence.last {
                CellProblem::BarTwice { code, previous }
            } else {
                CellProblem::BarOrder { code, previous }
            });
        }
        sequence.last = timestamp;
        Ok(())
    }

    /// Drops the ids of all other codes, which have no more rows on that day when rows are grouped
    /// by code, and the ids of this one too if it alone is too large.
    #[cold]
    fn evict_ids(&mut self, index: usize) {
        for (other, sequence) in self.sequences.iter_mut().enumerate() {
            if other != index && sequence.day_has_rows {
                sequence.forget();
            }
        }
        let kept = self.sequences[index].remembered();
        self.remembered = if kept > self.remembered_max {
            self.sequences[index].forget();
            0
        } else {
            kept
        };
    }
}

impl CodeSequence {
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
    fn accept_late(&mut self, id: u64) -> Result<(), SequenceError> {
        let code = self.code;
        let error = |problem| SequenceError { column: Column::TransactionId, problem };
        if id == self.highest || self.rising.binary_search(&id).is_ok() || self.late.contains(&id) {
            return Err(error(CellProblem::DuplicateId { code }));
        }
        if self.forgotten {
            let highest = self.highest;
            return Err(error(CellProblem::FallingId { code, highest }));
        }
        self.late.insert(id);
        Ok(())
    }

    #[cold]
    fn out_of_order(&self, column: Column) -> SequenceError {
        let code = self.code;
        let previous = TsNanos::from_nanos(self.last);
        SequenceError {
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

    /// Feeds ids of one code on one day, all at one time.
    fn feed(check: &mut SequenceCheck, index: usize, ids: &[u64]) -> Result<(), CellProblem> {
        ids.iter().try_for_each(|&id| check.accept(index, 1, 1, id)).map_err(|error| error.problem)
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
            let mut check = SequenceCheck::new(&[code("13010")]);
            assert_eq!(feed(&mut check, 0, &ids), expected, "{ids:?}");
        }
    }

    #[test]
    fn ids_repeat_on_another_day_or_code() {
        let mut check = SequenceCheck::new(&[code("13010"), code("130A0")]);
        feed(&mut check, 0, &[1, 2]).unwrap();
        feed(&mut check, 1, &[1, 2]).unwrap();
        check.accept(0, 2, 2, 1).unwrap();
        assert_eq!(check.remembered, 3);
    }

    #[test]
    fn without_memory_falling_ids_are_refused() {
        let mut check = SequenceCheck::with_memory(&[code("13010"), code("130A0")], 4);
        feed(&mut check, 0, &[10, 20, 30]).unwrap();
        feed(&mut check, 1, &[10, 20]).unwrap();
        assert_eq!(check.remembered, 2);
        feed(&mut check, 1, &[15]).unwrap();
        feed(&mut check, 0, &[40]).unwrap();
        let falling = CellProblem::FallingId { code: code("13010"), highest: 40 };
        assert_eq!(feed(&mut check, 0, &[35]), Err(falling));
        check.accept(0, 2, 2, 7).unwrap();
        check.accept(0, 2, 2, 5).unwrap();
    }

    #[test]
    fn one_code_alone_can_exceed_the_memory() {
        let mut check = SequenceCheck::with_memory(&[code("13010")], 2);
        feed(&mut check, 0, &[1, 2, 3, 4]).unwrap();
        assert!(feed(&mut check, 0, &[2]).is_err());
    }

    #[test]
    fn timestamps_never_go_back() {
        let mut check = SequenceCheck::new(&[code("13010")]);
        check.accept(0, 10, 15, 1).unwrap();
        check.accept(0, 10, 15, 2).unwrap();
        assert_eq!(check.accept(0, 10, 14, 3).unwrap_err().column, Column::Time);
        assert_eq!(check.accept(0, 5, 9, 3).unwrap_err().column, Column::Date);
    }

    #[test]
    fn the_number_of_codes_is_limited() {
        let mut check = SequenceCheck::new(&[]);
        for number in 0..FILE_CODES_MAX {
            let bytes = *format!("{number:05}").as_bytes().first_chunk().unwrap();
            assert_eq!(check.find_or_add(bytes), Ok(number));
        }
        let one_more = check.find_or_add(*b"99999");
        assert_eq!(one_more, Err(CellProblem::TooManyCodes));
        assert_eq!(check.find_or_add(*b"00007"), Ok(7));
        assert_eq!(check.find_or_add(*b"ABCDE"), Err(CellProblem::Code));
        assert_eq!(check.find_or_add(*b"13\xff10"), Err(CellProblem::Code));
    }
}
