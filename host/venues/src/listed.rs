//! A list of a broker's that stays readable when single rows are not.

use std::collections::{BTreeMap, BTreeSet};

use domain::text::on_one_line;

/// Rows that were left out of one list and get a line each; the rest is a count.
pub const LEFT_OUT_LINES_MAX: usize = 20;
/// Characters of the longest id of a row that is shown. A longer id is not shown: a secret that is cut would no
/// longer be redacted.
const ID_CHARS_MAX: usize = 40;

/// The rows of a list that can be read, and the errors of the others. A list with an unreadable row proves no
/// absence (specification 4, P129).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// The readable rows, in order.
    pub rows: Vec<T>,
    /// The unreadable rows.
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
    /// Reads rows one by one; `id` finds the id of an unreadable row.
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

    /// All rows, or the error of an unreadable one, for callers that need the whole list.
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

/// Lines about unreadable rows: one for each of the first, and a count of the rest.
pub fn left_out_lines(left_out: &[LeftOut]) -> impl Iterator<Item = String> {
    let more = left_out.len().saturating_sub(LEFT_OUT_LINES_MAX);
    let first = left_out.iter().take(LEFT_OUT_LINES_MAX);
    let first =
        first.map(|odd| format!("{}; the engine leaves it out and shows the rest", odd.why));
    first.chain(
        (more > 0).then(|| format!("the engine cannot read {more} more rows and leaves them out")),
    )
}

/// The unreadable rows that each client has a report of. A row is reported once, as long as each answer lacks
/// it.
#[derive(Debug, Default)]
pub struct ReportedOnce(BTreeMap<(u64, &'static str), BTreeSet<String>>);

impl ReportedOnce {
    /// The unreadable rows that the client's last answer of that kind did not have.
    pub fn news(
        &mut self,
        client: u64,
        kind: &'static str,
        left_out: impl IntoIterator<Item = LeftOut>,
    ) -> Vec<LeftOut> {
        let left_out: Vec<LeftOut> = left_out.into_iter().collect();
        let all: BTreeSet<String> = left_out.iter().map(|odd| odd.why.clone()).collect();
        let before = match all.is_empty() {
            true => self.0.remove(&(client, kind)),
            false => self.0.insert((client, kind), all),
        };
        let is_new =
            |odd: &LeftOut| before.as_ref().is_none_or(|reported| !reported.contains(&odd.why));
        left_out.into_iter().filter(is_new).collect()
    }

    /// Discards the record of a client that has left.
    pub fn client_left(&mut self, client: u64) {
        self.0.retain(|(of, _), _| *of != client);
    }
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
    fn each_client_gets_one_report_as_long_as_a_row_stays_unreadable() {
        let mut known = ReportedOnce::default();
        let mut news = |client, kind, rows: &[&str]| {
            let odd = known.news(client, kind, listed(rows).left_out);
            odd.into_iter().filter_map(|odd| odd.id).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(news(1, "positions", &["a=x", "b=2"]), "a");
        assert_eq!(news(1, "positions", &["a=x", "b=x"]), "b");
        assert_eq!(
            (news(2, "positions", &["a=x"]), news(1, "amounts", &["a=x"])),
            ("a".into(), "a".into())
        );
        assert_eq!(news(1, "positions", &["a=1"]), "");
        assert_eq!(news(1, "positions", &["a=x"]), "a", "it was right between");
        known.client_left(1);
        let odd = || listed(&["a=x"]).left_out;
        assert_eq!(known.news(1, "positions", odd()).len(), 1, "another client of that number");
        assert_eq!(known.news(2, "positions", odd()).len(), 0);
    }

    #[test]
    fn rows_past_the_first_ones_are_reported_as_a_count() {
        let odd = vec!["d"; LEFT_OUT_LINES_MAX + 3];
        let reported: Vec<String> = left_out_lines(&listed(&odd).left_out).collect();
        assert_eq!(reported.len(), LEFT_OUT_LINES_MAX + 1);
        assert!(reported[LEFT_OUT_LINES_MAX].contains(" 3 more rows "), "{reported:?}");
    }
}
