//! The columns of a snapshot in memory, for kernels that are written by hand.

use std::error::Error;
use std::path::Path;

use pricestore::DataDir;
use pricestore::grid::Grid;
use ranking::formula::Column;

/// Every column as one matrix in memory, day by day: the least that any engine must read.
#[derive(Debug)]
pub(crate) struct Matrices {
    /// Business days.
    pub(crate) days: usize,
    /// Issues; a column's value of code `c` on day `d` is at `d * codes + c`.
    pub(crate) codes: usize,
    /// Open, High, Low, Close and Volume; "not a number" for null and 0.
    pub(crate) columns: [Vec<f64>; Column::ALL.len()],
}

impl Matrices {
    /// Copies the current snapshot of a data directory into memory.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, Box<dyn Error>> {
        let data = DataDir::new(data_dir);
        let number = data.current()?.ok_or("nothing is published")?;
        let grid = Grid::open(&data.rank_grid(number), number)?;
        let days = grid.days().len();
        let matrix = |column| (0..days).flat_map(|day| grid.stripe(day, column)).copied().collect();
        Ok(Self { days, codes: grid.codes().len(), columns: Column::ALL.map(matrix) })
    }
}
