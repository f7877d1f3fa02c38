//! `docs/reference/limits.md`: the limits of guests from their table, and the fixed ones from the comments beside
//! their constants.

use domain::GuestLimit;
use sandbox::Limits;

use super::cell;
use crate::terminal::grouped;

const START: &str = "\
# Limits

Everything that Kumiki takes has a limit. Limits of the ranking service: \
[configuration](configuration.md#settings-of-kumiki-rank-serve).

## Limits of strategies

A strategy may use so much. `--guest-limit NAME=VALUE` of a run changes a limit up to the value in the third column. \
`kumiki strategy limits` prints this table.

| name | default | at most | unit | why |
|---|---|---|---|---|
";

/// The fixed limits: a title and the source that has them.
const FIXED: [(&str, &str); 12] = [
    ("Runs, strategies and formula modules", include_str!("../../../domain/src/limits.rs")),
    ("Market data and recordings", include_str!("../../../marketdata/src/limits.rs")),
    ("Statistics of a sweep", include_str!("../../../sweep/src/limits.rs")),
    ("Rankings", include_str!("../../../ranking/src/limits.rs")),
    ("Stored daily prices", include_str!("../../../pricestore/src/limits.rs")),
    ("The update job", include_str!("../../../update/src/limits.rs")),
    ("Databases of the update job", include_str!("../../../update/src/store/limits.rs")),
    ("The engine and its clients", include_str!("../../../engine/src/limits.rs")),
    ("Orders", include_str!("../../../orders/src/limits.rs")),
    ("The web broker", include_str!("../../../venues/src/web_broker/limits.rs")),
    ("The local gateway", include_str!("../../../venues/src/local_broker/limits.rs")),
    ("Requests to servers", include_str!("../../../http-client/src/limits.rs")),
];

/// The page.
pub(super) fn page() -> String {
    let mut text = String::from(START);
    for &limit in GuestLimit::ALL {
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            limit.name(),
            limit.show(limit.default_value()),
            limit.show(limit.most()),
            limit.unit().as_str(),
            cell(limit.reason())
        ));
    }
    text.push_str(
        "\n## Limits of other guests\n\nFormula modules and dialects have other defaults where this table has \
         them. Those of dialects are fixed.\n\n\
         | name | formula module | dialect of a broker | dialect of a local gateway |\n|---|---|---|---|\n",
    );
    let others = [Limits::formula(), Limits::dialect(), Limits::gateway()];
    for &limit in GuestLimit::ALL {
        let usual = limit.default_value();
        if others.iter().all(|limits| limits.get(limit) == usual) {
            continue;
        }
        let own = others.iter().map(|limits| match limits.get(limit) {
            same if same == usual => "as a strategy".to_owned(),
            own => limit.show(own),
        });
        text.push_str(&format!(
            "| `{}` | {} |\n",
            limit.name(),
            own.collect::<Vec<_>>().join(" | ")
        ));
    }
    text.push_str(
        "\n## Fixed limits\n\nThese are constants of the program. Where a flag or setting exists, the number is \
         its default or its highest value. The names are those of the source code.\n",
    );
    for (title, source) in FIXED {
        text.push_str(&format!(
            "\n### {title}\n\n| name | value | what it limits |\n|---|---|---|\n"
        ));
        for Constant { name, value, comment } in constants(source) {
            let value = shown(&value, &comment);
            text.push_str(&format!("| `{name}` | {value} | {} |\n", cell(&comment)));
        }
    }
    text
}

/// A constant of a source, with the comment before it.
#[derive(Debug, PartialEq, Eq)]
struct Constant {
    name: String,
    value: String,
    comment: String,
}

/// The public constants of a source, in their order.
fn constants(source: &str) -> Vec<Constant> {
    let mut found = Vec::new();
    let mut comment = String::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if let Some(more) = line.strip_prefix("///") {
            comment.push_str(more);
            continue;
        }
        // An attribute stands between a comment and its constant.
        if line.starts_with("#[") {
            continue;
        }
        let mut code = line.to_owned();
        if is_constant(line) {
            while !code.trim_end().ends_with(';') {
                let Some(more) = lines.next() else { break };
                code.push(' ');
                code.push_str(more.trim());
            }
            found.extend(constant(&code, comment.trim()));
        }
        comment.clear();
    }
    found
}

fn is_constant(line: &str) -> bool {
    line.starts_with("pub") && line.contains("const ") && !line.contains(" fn ")
}

fn constant(code: &str, comment: &str) -> Option<Constant> {
    let (head, value) = code.trim_end().strip_suffix(';')?.split_once(" = ")?;
    let name = head.split_once("const ")?.1.split_once(':')?.0;
    Some(Constant { name: name.to_owned(), value: value.to_owned(), comment: comment.to_owned() })
}

/// A value for people; an expression that is no number stays as it is in the code.
fn shown(value: &str, comment: &str) -> String {
    let timed = [("from_secs", " s"), ("from_millis", " ms"), ("from_micros", " µs")];
    for (maker, unit) in timed {
        let inside = value.strip_prefix("Duration::").and_then(|rest| rest.strip_prefix(maker));
        let inside = inside.and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
        if let Some(number) = inside.and_then(number) {
            return format!("{}{unit}", grouped(&number.to_string()));
        }
    }
    match number(value) {
        Some(bytes) if comment.starts_with("Bytes") => size(bytes),
        Some(number) => grouped(&number.to_string()),
        None => format!("`{}`", value.replace('|', "\\|")),
    }
}

/// Bytes in the largest unit that has no fraction.
fn size(bytes: u128) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = |(_, power): &&(&str, u32)| bytes >= 1 << power && bytes.is_multiple_of(1 << power);
    match units.iter().find(fits) {
        Some((unit, power)) => format!("{} {unit}", bytes >> power),
        None => grouped(&bytes.to_string()),
    }
}

/// What a simple expression is: a number, a product, or a shift.
fn number(value: &str) -> Option<u128> {
    if let Some((number_of, power)) = value.split_once(" << ") {
        return number(number_of)?.checked_shl(power.trim().parse().ok()?);
    }
    if value.contains(" * ") {
        return value
            .split(" * ")
            .try_fold(1, |product: u128, part| product.checked_mul(number(part)?));
    }
    let digits = value.trim().replace('_', "");
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read_with_their_comments() {
        let source = "//! A file.\n\n/// Bytes of one\n/// thing.\n#[x]\npub(super) const ONE_MAX: usize = 4 << 10;\n\
                      /// Not one.\nfn a() {}\npub const TWO: Duration =\n    Duration::from_secs(15 * 60);\n";
        let found = constants(source);
        let one = ("ONE_MAX", "4 << 10", "Bytes of one thing.");
        let two = ("TWO", "Duration::from_secs(15 * 60)", "");
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_str(), one.value.as_str(), one.comment.as_str()))
            .collect();
        assert_eq!(found, [one, two]);
    }

    #[test]
    fn values_are_for_people() {
        assert_eq!(shown("4 << 10", "Bytes of a line"), "4 KiB");
        assert_eq!(shown("1_500", "Bytes of a line"), "1,500");
        assert_eq!(shown("1 << 17", "Rows"), "131,072");
        assert_eq!(shown("Duration::from_secs(15 * 60)", ""), "900 s");
        assert_eq!(shown("\"2GB\"", ""), "`\"2GB\"`");
    }

    #[test]
    fn every_source_has_limits_and_every_limit_a_reason() {
        for (title, source) in FIXED {
            let found = constants(source);
            assert!(!found.is_empty(), "{title}");
            let lines = source.lines().filter(|line| is_constant(line)).count();
            assert_eq!(found.len(), lines, "{title}");
            for Constant { name, comment, .. } in found {
                assert!(!comment.is_empty(), "{title}: {name}");
            }
        }
    }
}
