//! A list of a broker's, of which one odd row does not hide the others.

use domain::text::on_one_line;

/// Rows that were left out of one list and are told one by one; the rest is told as a count.
pub const LEFT_OUT_TOLD_MAX: usize = 20;
/// Characters of the longest id of a row that is told. A longer one is not told at all: of a secret in one that
/// is cut, a part is left that nobody finds again.
const ID_CHARS_MAX: usize = 40;

/// The rows of a list that can be read, and why others cannot. A list of which a row was left out proves no
/// absence (specification 4, P129).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// What can be read, in its order.
    pub rows: Vec<T>,
    /// What cannot.
    pub left_out: Vec<LeftOut>,
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The broker's id of it, where it has one.
    pub id: Option<String>,
    /// Which row it is, and what is wrong with which of its fields.
    pub why: String,
}

impl<T> Listed<T> {
    /// Reads rows, each by itself; `id` finds what a row that cannot be read is called.
    pub(crate) fn read<R>(
        rows: &[R],
        id: impl Fn(&R) -> Option<String>,
        read: impl Fn(&R) -> Result<T, String>,
    ) -> Self {
        let mut listed = Self { rows: Vec::with_capacity(rows.len()), left_out: Vec::new() };
        for (index, row) in rows.iter().enumerate() {
            match read(row) {
                Ok(row) => listed.rows.push(row),
                Err(what) => {
                    let id = id(row).filter(|id| id.chars().nth(ID_CHARS_MAX).is_none());
                    let why = match &id {
                        Some(id) => format!("{}: {what}", on_one_line(id)),
                        None => format!("row {} of {}: {what}", index + 1, rows.len()),
                    };
                    listed.left_out.push(LeftOut { id, why });
                }
            }
        }
        listed
    }

    /// All rows, or why one of them cannot be read: for what must not go on without it.
    ///
    /// # Errors
    /// Why.
    pub fn whole(self) -> Result<Vec<T>, String> {
        match self.left_out.into_iter().next() {
            None => Ok(self.rows),
            Some(odd) => Err(odd.why),
        }
    }
}

/// What is told of rows that were left out: of the first ones each, and how many more there were.
pub fn told(left_out: &[LeftOut]) -> impl Iterator<Item = String> {
    let more = left_out.len().saturating_sub(LEFT_OUT_TOLD_MAX);
    let first = left_out.iter().take(LEFT_OUT_TOLD_MAX);
    let first = first.map(|odd| format!("{}; it is left out, and the rest is shown", odd.why));
    first.chain((more > 0).then(|| format!("{more} more rows cannot be read, and are left out")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(rows: &[&str]) -> Listed<u64> {
        let id = |row: &&str| row.split_once('=').map(|(id, _)| id.to_owned());
        Listed::read(rows, id, |row| {
            let (_, number) = row.split_once('=').ok_or("it has no number")?;
            number.parse().map_err(|_| format!("number `{number}` is none"))
        })
    }

    #[test]
    fn an_odd_row_is_left_out_by_its_id_and_the_others_stay() {
        let read = listed(&["a=1", "b=x", "c=3", "d"]);
        assert_eq!(read.rows, [1, 3]);
        let why: Vec<&str> = read.left_out.iter().map(|odd| odd.why.as_str()).collect();
        assert_eq!(why, ["b: number `x` is none", "row 4 of 4: it has no number"]);
        assert_eq!(read.left_out[0].id.as_deref(), Some("b"));
        assert_eq!(read.whole(), Err("b: number `x` is none".to_owned()));
        assert_eq!(listed(&["a=1"]).whole(), Ok(vec![1]));
        let long = format!("{}=x", "a".repeat(ID_CHARS_MAX + 1));
        assert_eq!(listed(&[&long]).left_out[0].why, "row 1 of 1: number `x` is none");
    }

    #[test]
    fn rows_past_the_first_ones_are_told_as_a_count() {
        let odd = vec!["d"; LEFT_OUT_TOLD_MAX + 3];
        let told: Vec<String> = told(&listed(&odd).left_out).collect();
        assert_eq!(told.len(), LEFT_OUT_TOLD_MAX + 1);
        assert!(told[LEFT_OUT_TOLD_MAX].starts_with("3 more rows"), "{told:?}");
    }
}
