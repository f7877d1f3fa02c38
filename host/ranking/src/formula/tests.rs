//! Accepted and refused formulas, printing, SQL, and thousands of mutations.

use domain::Random;
use proptest::prelude::*;

use super::*;
use crate::limits::{
    FORMULA_CHARS_MAX, FORMULA_LAGS_MAX, FORMULA_NESTING_MAX, FORMULA_TOKENS_MAX, LAG_MAX,
};

#[track_caller]
fn prints(text: &str, canonical: &str) {
    let formula = Formula::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(formula.to_string(), canonical, "{text}");
}

#[track_caller]
fn refused(text: &str, position: usize, message: &str) {
    let error = Formula::parse(text).expect_err(text);
    assert_eq!((error.position, error.message.as_str()), (position, message), "{text}");
}

#[test]
fn the_examples_of_the_contract_are_accepted() {
    for text in [
        FORMULA_DEFAULT,
        "(Close - Close[-20]) / Close[-20] * 100",
        "Volume",
        "(High - Low) / Close * 100",
        "Close * Volume",
        "High - Low",
        "Close / High[-3] * 100",
        "Volume / Volume[-1]",
    ] {
        prints(text, text);
    }
}

#[test]
fn spelling_is_free_where_the_contract_leaves_it_free() {
    prints("  Close\t[ -\n 007 ]*.5 ", "Close[-7] * 0.5");
    prints("+Close", "Close");
    prints("--Close - -1", "--Close - -1");
    prints("((Open))", "Open");
    prints("(Close+Open)+High", "Close + Open + High");
    prints("Close+(Open+High)", "Close + (Open + High)");
    prints("Close/(Open*High)", "Close / (Open * High)");
    prints("-(Close*2)", "-(Close * 2)");
    prints("-Close*2", "-Close * 2");
    prints("12.50 * 0012", "12.5 * 12");
    prints("Close[-2600]", "Close[-2600]");
    prints("\u{3000}Close", "Close");
}

#[test]
fn lags_are_listed_once() {
    let formula = Formula::parse("Close[-5] + Open[-5] * High[-1] - Close").unwrap();
    assert_eq!(formula.lags(), [1, 5]);
}

#[test]
fn the_tree_is_drawn_with_one_node_a_line() {
    let formula = Formula::parse("-(Close - Open[-5]) / 2").unwrap();
    let drawn = "/\n  negate\n    -\n      Close\n      Open, 5 business days earlier\n  2\n";
    assert_eq!(formula.tree(), drawn);
}

#[test]
fn refusals_name_the_place_and_the_remedy() {
    refused("(Close - Open)  ;", 17, "unexpected `;` at character 17");
    refused("Turnover", 1, "`Turnover` is not a column; use Close, Open, High, Low or Volume");
    refused("1 + PrevClose", 5, "`PrevClose` was removed; write Close[-1]");
    refused("Close[-0]", 8, "lag must be at least 1");
    refused("Close[-000]", 8, "lag must be at least 1");
    refused("Close[-2601]", 8, "lag must be at most 2600");
    refused("Close[-999999999999]", 8, "lag must be at most 2600");
    refused("Close[5]", 7, "a lag needs a minus sign; write Close[-N]");
    refused("Close[-1.5]", 9, "lag must be a whole number");
    refused("Close[-x]", 8, "unexpected `x` at character 8");
    refused("Close[-1", 9, "unexpected end of the formula at character 9; a `]` is missing");
    refused("Close[", 7, "unexpected end of the formula at character 7; a lag is written [-N]");
    refused("close", 1, "`close` is not a column; write Close");
    refused(
        "abs(Close)",
        1,
        "`abs` is a function; a formula has only columns, numbers and + - * / ( )",
    );
    refused("(Close", 7, "unexpected end of the formula at character 7; a `)` is missing");
    refused("(Close))", 8, "unexpected `)` at character 8");
    refused("Close Open", 7, "unexpected `Open` at character 7");
    refused("Close * * 2", 9, "unexpected `*` at character 9");
    refused("12.", 3, "unexpected `.` at character 3");
    refused("1e5", 2, "unexpected `e5` at character 2");
    refused("'a'", 1, "unexpected `'` at character 1");
    refused("Close\u{202e}", 6, "unexpected `U+202E` at character 6");
    refused("Close\0", 6, "unexpected `U+0000` at character 6");
    refused("終値 - 1", 1, "`終値` is not a column; use Close, Open, High, Low or Volume");
    refused("Close＋1", 6, "unexpected `＋` at character 6");
    let end = "unexpected end of the formula at character";
    let hint = "a column, a number or `(` should follow";
    refused("", 1, &format!("{end} 1; {hint}"));
    refused("Close +  ", 10, &format!("{end} 10; {hint}"));
    refused("()", 2, "unexpected `)` at character 2");
}

#[test]
fn limits_hold_exactly() {
    let padded = |length: usize| format!("Close{}", " ".repeat(length - 5));
    assert!(Formula::parse(&padded(FORMULA_CHARS_MAX)).is_ok());
    refused(
        &padded(FORMULA_CHARS_MAX + 1),
        FORMULA_CHARS_MAX + 1,
        "the formula has 1001 characters; at most 1000 are allowed",
    );
    let sum = |terms: usize| vec!["1"; terms].join("+");
    assert!(Formula::parse(&sum(FORMULA_TOKENS_MAX / 2)).is_ok());
    refused(&sum(101), 1, "the formula has 201 tokens; at most 200 are allowed");
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Formula::parse(&nested(FORMULA_NESTING_MAX)).is_ok());
    refused(&nested(65), 65, "parentheses and signs are nested more than 64 deep");
    assert!(Formula::parse(&format!("{}1", "-".repeat(FORMULA_NESTING_MAX))).is_ok());
    refused(&"-".repeat(900), 65, "parentheses and signs are nested more than 64 deep");
    let lagged = |lags: usize| {
        let terms: Vec<String> = (1..=lags).map(|lag| format!("Close[-{lag}]")).collect();
        terms.join("+")
    };
    assert!(Formula::parse(&lagged(FORMULA_LAGS_MAX)).is_ok());
    refused(&lagged(33), 1, "the formula has 33 different lags; at most 32 are allowed");
    assert!(Formula::parse(&"9".repeat(309)).is_err());
    refused(
        &format!("1 + {}", "9".repeat(309)),
        5,
        "the number is too large for a 64-bit floating point number",
    );
    assert_eq!(LAG_MAX, 2_600);
}

#[test]
fn sql_is_written_from_the_tree() {
    let sql = |text: &str| value_sql(Formula::parse(text).unwrap().root());
    assert_eq!(sql("(Close-Close[-5])/Close[-5]*100"), "(((c - c_5) / c_5) * (100.0::DOUBLE))");
    assert_eq!(sql("--Volume"), "(-(-v))");
    assert_eq!(sql("1/(High-Low)"), "((1.0::DOUBLE) / nullif((h - l), 0.0::DOUBLE))");
    assert_eq!(sql("Open/0"), "(o / nullif((0.0::DOUBLE), 0.0::DOUBLE))");
    assert_eq!(sql("Open/2"), "(o / (2.0::DOUBLE))");
    assert_eq!(sql("0.12345678901234568"), "(1.2345678901234568e-1::DOUBLE)");
}

/// Trees of any shape, as the parser can make them.
fn trees() -> impl Strategy<Value = Node> {
    let number = prop_oneof![
        (0_u32..2_000).prop_map(f64::from),
        (0_u32..100_000).prop_map(|thousandths| f64::from(thousandths) / 1_000.0),
        (0_u64..=f64::MAX.to_bits())
            .prop_map(f64::from_bits)
            .prop_filter("finite", |n| n.is_finite()),
    ];
    let lag = prop_oneof![Just(0_u32), 1_u32..8, 1_u32..=LAG_MAX];
    let value = (0_usize..5, lag)
        .prop_map(|(column, lag)| Node::Value { column: Column::ALL[column], lag });
    let leaf = prop_oneof![number.prop_map(Node::Number), value];
    leaf.prop_recursive(6, 24, 2, |inner| {
        let operator = prop::sample::select(vec![
            Operator::Add,
            Operator::Subtract,
            Operator::Multiply,
            Operator::Divide,
        ]);
        prop_oneof![
            inner.clone().prop_map(|node| Node::Negate(Box::new(node))),
            (operator, inner.clone(), inner).prop_map(|(operator, left, right)| Node::Binary {
                operator,
                left: Box::new(left),
                right: Box::new(right),
            }),
        ]
    })
}

/// The words that SQL made from a formula may consist of.
fn is_own_sql(sql: &str) -> bool {
    let words = sql.split(|c: char| " ()+-*/,".contains(c)).filter(|word| !word.is_empty());
    let is_column = |word: &str| {
        let lag = word.strip_prefix(|c: char| "ohlcv".contains(c));
        let lag = lag.map(|lag| lag.strip_prefix('_').unwrap_or(lag));
        lag.is_some_and(|lag| lag.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_number = |word: &str| {
        word.trim_end_matches("::DOUBLE").parse::<f64>().is_ok()
        // The exponent's minus sign cuts a number in two.
        || word.strip_suffix('e').is_some_and(|word| word.parse::<f64>().is_ok())
    };
    words.into_iter().all(|word| is_column(word) || is_number(word) || word == "nullif")
}

/// Pieces that mutations are made of: the language's own and hostile ones.
const PIECES: [&str; 40] = [
    "Close",
    "Open",
    "High",
    "Low",
    "Volume",
    "[-1]",
    "[-250]",
    "[-0]",
    "[",
    "]",
    "(",
    ")",
    "+",
    "-",
    "*",
    "/",
    "--",
    "/*",
    "*/",
    ";",
    "'",
    "\"",
    "\\",
    "\0",
    "100",
    "0.5",
    ".5",
    "1e9",
    "..",
    " ",
    "\n",
    "PrevClose",
    "drop table daily",
    "union select",
    "nullif",
    "::DOUBLE",
    "終値",
    "\u{202e}",
    "read_csv('/etc/passwd')",
    "NaN",
];

fn mutate(stream: &mut Random, text: &str) -> String {
    let mut characters: Vec<String> = text.chars().map(String::from).collect();
    for _ in 0..=stream.place(4) {
        let at = stream.place(characters.len() + 1);
        match stream.place(4) {
            0 if at < characters.len() => drop(characters.remove(at)),
            1 if at < characters.len() => characters[at] = PIECES[stream.place(40)].to_owned(),
            2 if at < characters.len() => {
                let again = characters[at..].to_vec();
                characters.extend(again);
            }
            _ => characters.insert(at, PIECES[stream.place(40)].to_owned()),
        }
    }
    characters.concat()
}

#[test]
fn five_thousand_mutations_give_clean_answers() {
    let seeds = [FORMULA_DEFAULT, "Volume / Volume[-1]", "-(High - Low) / Close * 100 + .5", ""];
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..5_000_u64 {
        let stream = &mut Random::of_seed(seed);
        let seed_text = seeds[stream.place(seeds.len())];
        let text = mutate(stream, seed_text);
        match Formula::parse(&text) {
            Ok(formula) => {
                accepted += 1;
                assert!(is_own_sql(&value_sql(formula.root())), "seed {seed}: {text}");
                assert_eq!(Formula::parse(&formula.to_string()).as_ref(), Ok(&formula), "{seed}");
            }
            Err(error) => {
                refused += 1;
                assert!((1..=text.chars().count() + 1).contains(&error.position), "seed {seed}");
                let shown = error.to_string();
                assert!(shown.len() < 300 && !shown.contains(char::is_control), "{seed}: {shown}");
            }
        }
    }
    assert!(accepted > 200 && refused > 2_000, "{accepted} accepted, {refused} refused");
}

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(tree in trees()) {
        let text = print::canonical(&tree);
        match Formula::parse(&text) {
            Ok(formula) => {
                prop_assert_eq!(formula.root(), &tree);
                prop_assert_eq!(formula.to_string(), text);
                prop_assert!(is_own_sql(&value_sql(&tree)));
            }
            // Trees of the generator may be longer than any formula.
            Err(error) => prop_assert!(error.message.contains("at most"), "{}", error),
        }
    }

    #[test]
    fn any_text_is_answered_cleanly(text in "[ -~\\t\\nあ]{0,60}") {
        match Formula::parse(&text) {
            Ok(formula) => {
                let again = Formula::parse(&formula.to_string());
                prop_assert_eq!(again.as_ref(), Ok(&formula));
            }
            Err(error) => {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.position));
                prop_assert!(!error.message.contains(char::is_control));
            }
        }
    }
}
