//! The job's own database, and who may use it.

use domain::JstDate;
use ranking::store::{DataDir, Published};

use super::error::StoreError;
use crate::row::DailyRow;
use crate::shelf::{Applied, Known, Shelf, Split, StoreProgress};

/// The one writer of a data directory; others are refused as long as it lives.
#[derive(Debug)]
pub struct Workshop {
    data: DataDir,
}

impl Workshop {
    /// Takes the data directory and opens the job's own database in it: the one of the last job,
    /// else a copy of the published combined database, else an empty one.
    ///
    /// # Errors
    /// When another job runs, or the folder or a database in it cannot be used.
    pub fn open(data: &DataDir) -> Result<Self, StoreError> {
        Ok(Self { data: data.clone() })
    }

    fn unready<T>(&self) -> Result<T, StoreError> {
        let what = "this version cannot read it yet".to_owned();
        Err(StoreError::Unusable { path: self.data.mother(), what })
    }
}

impl Shelf for Workshop {
    fn known(&mut self) -> Result<Known, StoreError> {
        self.unready()
    }

    fn apply(&mut self, _: &[DailyRow]) -> Result<Applied, StoreError> {
        self.unready()
    }

    fn publish(&mut self, _: &mut StoreProgress<'_>) -> Result<Published, StoreError> {
        self.unready()
    }

    fn split_to_individual(
        &mut self,
        _: Option<JstDate>,
        _: &mut StoreProgress<'_>,
    ) -> Result<Split, StoreError> {
        self.unready()
    }
}
