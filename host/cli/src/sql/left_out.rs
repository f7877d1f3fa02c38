//! What the views of `kumiki sql` leave out: told on standard error, one line for each reason.

/// Names that a line has; more are counted.
const NAMED_MAX: usize = 3;

/// What is left out, by the reason for it, in the order in which it was found.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Vec<Reason>);

#[derive(Debug)]
struct Reason {
    why: String,
    named: Vec<String>,
    count: usize,
}

impl LeftOut {
    /// Notes that `what` is left out because of `why`.
    pub(super) fn add(&mut self, why: impl Into<String>, what: impl Into<String>) {
        let why = why.into();
        let place = self.0.iter().position(|reason| reason.why == why).unwrap_or_else(|| {
            self.0.push(Reason { why, named: Vec::new(), count: 0 });
            self.0.len() - 1
        });
        if let Some(reason) = self.0.get_mut(place) {
            reason.count += 1;
            if reason.named.len() < NAMED_MAX {
                reason.named.push(what.into());
            }
        }
    }

    /// Tells all of it.
    pub(super) fn tell(&self) {
        for line in self.lines() {
            eprintln!("note: {line}");
        }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|Reason { why, named, count }| {
            let more = match count - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("left out, because {why}: {}{more}", named.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_one_line_and_few_names() {
        let mut left_out = LeftOut::default();
        for name in ["a", "b", "c", "d", "e"] {
            left_out.add("it is a link", name);
        }
        left_out.add("it is damaged", "f");
        left_out.add("it is a link", "g");
        let lines: Vec<String> = left_out.lines().collect();
        assert_eq!(
            lines,
            [
                "left out, because it is a link: a, b, c and 3 more",
                "left out, because it is damaged: f",
            ]
        );
    }
}
