//! Dialects of brokers in the sandbox: one that misbehaves in every way, and both dialects of the web broker
//! against the vendor's samples.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(
    clippy::print_stdout,
    reason = "a skipped test says so, and a measurement tells what it found"
)]

#[path = "dialects/operations.rs"]
mod operations;

use std::path::PathBuf;

use domain::JstDate;
use domain::clock::Stopwatch;
use domain::fault::FaultKind;
use domain::limits::{
    DIALECT_CALLS_PER_INSTANCE, DIALECT_FIELDS_MAX, DIALECT_FUEL_PER_CALL, DIALECT_MEMORY_BYTES,
    DIALECT_REQUEST_FIELDS_MAX, DIALECT_REQUEST_LISTS_MAX, DIALECT_REQUEST_ROWS_MAX,
    DIALECT_RESULT_BYTES, DIALECT_ROWS_PER_CALL, DIALECT_TAGS_MAX, DIALECT_TEXT_BYTES_MAX,
};
use domain::order::{OrderSide, OrderStatus, OrderType, ReasonCode, TimeInForce};
use domain::order_mapping::{
    BrokerAnswer, BrokerChange, BrokerFrame, BrokerOrder, Field, NoticeKind, OrderMapping,
    VenuePhase, Verdict,
};
use domain::price::{Price, Quantity};
use proptest::prelude::*;
use sandbox::{DialectInstance, Sandbox, SandboxConfig, SandboxError};
use serde_json::Value;

const ALL: [&str; 3] = ["web-broker-spec", "web-broker-v4r8", "web-broker-v4r10"];

/// A component that xtask has built.
fn file(folder: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().find(|path| path.ends_with("release") || path.ends_with("debug"));
    let path = target.unwrap().parent().unwrap().join("release").join(folder);
    let path = path.join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing; run `cargo xtask guests`", path.display());
    path
}

fn load(folder: &str, name: &str) -> DialectInstance {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    sandbox.load_dialect(&file(folder, name)).unwrap().instantiate().unwrap()
}

fn turns() -> DialectInstance {
    load("test-guests", "dialect-turns")
}

fn order(tags: &[&str]) -> BrokerOrder {
    BrokerOrder {
        symbol: "7203".into(),
        side: OrderSide::Buy,
        order_type: OrderType::Limit,
        quantity: Quantity::new(100),
        price: Some(Price::from_yen(2_440)),
        trigger_price: None,
        time_in_force: TimeInForce::Day,
        expire_date: None,
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
    }
}

fn fields(pairs: &[(&str, &str)]) -> Vec<Field> {
    pairs.iter().map(|(name, value)| Field::new(*name, *value)).collect()
}

fn is_well(dialect: &mut DialectInstance) {
    let request = dialect.new_order(&order(&[]), "1", &[]).unwrap().unwrap();
    assert_eq!(request.fields, fields(&[("sSymbol", "7203")]));
}

#[test]
fn each_misbehaviour_is_a_fault_and_the_next_call_works() {
    let mut dialect = turns();
    let mut fault = |tag: &str| {
        let fault = dialect.new_order(&order(&[tag]), "1", &[]).unwrap_err();
        assert_eq!((fault.component.as_str(), fault.sha256.len()), ("dialect-turns", 64));
        let shown = fault.to_string();
        assert!(!shown.contains(char::is_control) && shown.contains("in `new-order`"), "{shown:?}");
        is_well(&mut dialect);
        fault.kind
    };
    assert!(matches!(fault("traps"), FaultKind::Panic(_) | FaultKind::Trap(_)));
    let looped = fault("loops");
    assert!(matches!(looped, FaultKind::Fuel { budget: DIALECT_FUEL_PER_CALL, .. }), "{looped}");
    assert!(
        matches!(fault("grows"), FaultKind::Memory { allowed, .. } if allowed == DIALECT_MEMORY_BYTES)
    );
    let limit = |kind: FaultKind| match kind {
        FaultKind::Limit { allowed, .. } => usize::try_from(allowed).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(fault("answers-long")), DIALECT_TEXT_BYTES_MAX);
    assert_eq!(limit(fault("many-fields")), DIALECT_REQUEST_FIELDS_MAX);
    assert_eq!(limit(fault("many-lists")), DIALECT_REQUEST_LISTS_MAX);
    assert_eq!(limit(fault("many-rows")), DIALECT_REQUEST_ROWS_MAX);
    let much = fault("answers-much");
    assert!(much.to_string().contains(&DIALECT_RESULT_BYTES.to_string()), "{much}");
    for (tag, words) in [
        ("control-in-value", "has control characters"),
        ("control-in-name", "is not 1 to 64 letters"),
        ("session-field", "`p_no` of a request belongs to the host"),
        ("twice", "two fields `a`"),
        ("own-password", "`a` of a request belongs to the host"),
        ("control-in-reason", "has control characters"),
        ("reason-without-code", "does not begin with capitals"),
        ("small-reason", "does not begin with capitals"),
        ("other-request", "`CLMKabuCancelOrderAll`; expected `CLMKabuNewOrder`"),
    ] {
        let kind = fault(tag);
        assert!(kind.to_string().contains(words), "{tag}: {kind}");
    }
}

#[test]
fn rows_that_are_none_are_faults_and_words_steer_nothing() {
    let mut dialect = turns();
    for (pair, words) in [
        (("price", "2440.0"), "is no price"),
        (("price", "-1"), "is no price"),
        (("price", "1e3"), "is no price"),
        (("date", "20260230"), "is no date"),
        (("time", "20260511246000"), "is no time"),
        (("symbol", "a b"), "the issue `a b` is not"),
        (("filled", "1"), "1 shares filled and 100 open of an order for 100"),
        (("leaves", "18446744073709551615"), "open of an order for 100"),
    ] {
        let fault = dialect.read_orders(&[fields(&[pair])]).unwrap_err();
        assert!(fault.to_string().contains(words), "{pair:?}: {fault}");
    }
    let fault = dialect.read_frame(&fields(&[("kind", "fill-without-shares")])).unwrap_err();
    assert!(fault.to_string().contains("a notice of a fill needs a fill"), "{fault}");
    let words = dialect.read_frame(&fields(&[("kind", "words")])).unwrap();
    assert_eq!(words, Err("\\u202ewords".to_owned()));
    let unknown = dialect.judge(&BrokerAnswer::default()).unwrap();
    assert_eq!(unknown.verdict, Verdict::Unknown("one\\u001b[2Jline".to_owned()));
    let fault = dialect.judge(&BrokerAnswer { errno: "day".to_owned(), ..BrokerAnswer::default() });
    assert!(fault.unwrap_err().to_string().contains("`20261332` is no date"));
}

#[test]
fn long_lists_are_read_in_several_calls_and_what_is_too_large_is_told() {
    let mut dialect = turns();
    let mut rows: Vec<_> =
        (0..2 * DIALECT_ROWS_PER_CALL + 1).map(|id| fields(&[("id", &id.to_string())])).collect();
    rows[3] = vec![Field::new("a", "b"); DIALECT_FIELDS_MAX + 1];
    rows[5] = fields(&[("a", &"x".repeat(DIALECT_TEXT_BYTES_MAX + 1))]);
    let read = dialect.read_orders(&rows).unwrap();
    assert_eq!(read.len(), rows.len());
    for (index, row) in read.iter().enumerate() {
        match index {
            3 => assert!(row.as_ref().unwrap_err().contains("256 are allowed")),
            5 => assert!(row.as_ref().unwrap_err().contains("4096 bytes")),
            _ => assert_eq!(*row.as_ref().unwrap().venue_order_id, *index.to_string()),
        }
    }
    let frame = vec![Field::new("a", "b"); DIALECT_FIELDS_MAX + 1];
    assert!(dialect.read_frame(&frame).unwrap().is_err());
    let answer = BrokerAnswer { fields: frame, ..BrokerAnswer::default() };
    let Verdict::Unknown(text) = dialect.judge(&answer).unwrap().verdict else { panic!() };
    assert!(text.starts_with("ANSWER: "), "{text}");
    let tags = vec!["a=b"; DIALECT_TAGS_MAX + 1];
    let refused = dialect.new_order(&order(&tags), "1", &[]).unwrap().unwrap_err();
    assert_eq!(refused.code, ReasonCode::ValidationError);
    let refused = dialect.new_order(&order(&["a=\u{1b}[2J"]), "1", &[]).unwrap().unwrap_err();
    assert!(refused.text.starts_with("TAGS: "), "{refused}");
    let touched = BrokerOrder { order_type: OrderType::MarketIfTouched, ..order(&[]) };
    let refused = dialect.new_order(&touched, "1", &[]).unwrap().unwrap_err();
    assert_eq!(refused.code, ReasonCode::VenueUnsupported);
}

#[test]
fn nothing_is_kept_for_ever() {
    let mut dialect = turns();
    let mut asked = || dialect.new_order(&order(&["counts"]), "1", &[]).unwrap().unwrap().fields;
    let first = asked();
    for _ in 1..DIALECT_CALLS_PER_INSTANCE {
        assert_ne!(asked(), first);
    }
    assert_eq!(asked(), first, "it was made anew");
}

#[test]
fn a_dialect_imports_nothing_and_is_no_formula() {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let wants = r#"(component (import "wasi:clocks/wall-clock@0.2.0" (instance)))"#;
    let error = sandbox.dialect_from_bytes("wants", wat::parse_str(wants).unwrap()).unwrap_err();
    let shown = error.to_string();
    assert!(matches!(error, SandboxError::ForeignImport { .. }), "{shown}");
    assert!(shown.contains("wasi:clocks/wall-clock@0.2.0") && shown.contains("nothing"), "{shown}");
    let empty = wat::parse_str("(component)").unwrap();
    let error = sandbox.dialect_from_bytes("empty", empty).unwrap_err().to_string();
    assert!(error.contains("it is no Kumiki dialect of version 1"), "{error}");
    assert!(sandbox.load_formula(&file("dialects", ALL[0])).is_err());
}

#[test]
fn what_is_compiled_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache_folder = Some(folder.path().to_owned());
    let sandbox = Sandbox::new(SandboxConfig { cache_folder, ..SandboxConfig::default() }).unwrap();
    for _ in 0..2 {
        let module = sandbox.load_dialect(&file("dialects", ALL[0])).unwrap();
        assert_eq!(module.description().name, ALL[0]);
        assert_eq!(module.artefact().sha256().len(), 64);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}

/// The vendor's samples, where they are.
fn samples(name: &str) -> Option<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("KUMIKI_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| root.join("../shared"));
    let text = std::fs::read_to_string(shared.join("assets/tachibana").join(name)).ok();
    if text.is_none() {
        println!("skipped: the samples of the web broker are not here");
    }
    text
}

fn record(value: &Value) -> Vec<Field> {
    let texts = value.as_object().unwrap().iter();
    texts.filter_map(|(name, text)| Some(Field::new(name, text.as_str()?))).collect()
}

/// An answer as the transport hands it over.
fn answer(sample: &Value) -> BrokerAnswer {
    let text = |name: &str| sample[name].as_str().unwrap_or_default().to_owned();
    let (id, error_text) = (text("sCLMID"), text("p_err"));
    let errno = if text("p_errno") == "0" { String::new() } else { text("p_errno") };
    let session = ["p_no", "p_sd_date", "p_rv_date", "p_errno", "p_err"];
    let mut fields = record(sample);
    fields.retain(|field| !session.contains(&field.name.as_str()));
    BrokerAnswer { id, errno, error_text, fields }
}

#[test]
fn the_samples_of_answers_mean_what_their_documents_say() {
    let Some(text) = samples("samples/request_responses.own_values.json") else { return };
    let all: Value = serde_json::from_str(&text).unwrap();
    for name in ALL {
        let mut dialect = load("dialects", name);
        let is_vendors = name != "web-broker-spec";
        let mut verdict = |sample: &str| {
            let outcome = dialect.judge(&answer(&all[sample])).unwrap();
            assert!(!outcome.venue_closed, "{sample}");
            outcome.verdict
        };
        for (sample, number) in [
            ("new_order_ok", Some("11000021")),
            ("correct_order_ok", Some("11000021")),
            ("cancel_order_ok", Some("11000021")),
            ("cancel_all_ok", None),
            ("order_list_empty", None),
            ("order_list", None),
        ] {
            let Verdict::Accepted(accepted) = verdict(sample) else { panic!("{sample}") };
            assert_eq!(accepted.venue_order_id.as_deref(), number, "{sample}");
            assert_eq!(accepted.business_day.as_deref(), number.map(|_| "20260511"), "{sample}");
            assert_eq!(accepted.warning_code, None);
        }
        assert_eq!(verdict("session_inactive"), Verdict::SessionExpired);
        let password = verdict("new_order_bad_second_password");
        assert_eq!(matches!(password, Verdict::WrongPassword { counts: true, .. }), is_vendors);
        let funds =
            if is_vendors { ReasonCode::InsufficientFunds } else { ReasonCode::VenueRejected };
        for (sample, code, text) in [
            ("new_order_closed", ReasonCode::MarketClosed, "11102: 只今の時間帯は受付できません"),
            ("new_order_no_funds", funds, "11420: 買付可能額が不足しています"),
            (
                "p_no_not_advancing",
                ReasonCode::VenueRejected,
                "P_ERRNO_6: the broker refuses the request",
            ),
            (
                "correct_order_increase_refused",
                ReasonCode::VenueRejected,
                "12170: 数量の増加はできません",
            ),
            ("cancel_order_already_filled", ReasonCode::VenueRejected, "13294: 約定済みです"),
        ] {
            let Verdict::Refused(found) = verdict(sample) else { panic!("{sample}") };
            assert_eq!((found.code, found.text.as_str()), (code, text), "{sample}");
        }
    }
}

#[test]
fn the_sample_of_a_list_is_read() {
    let Some(text) = samples("samples/request_responses.own_values.json") else { return };
    let all: Value = serde_json::from_str(&text).unwrap();
    let rows = all["order_list"]["aOrderList"].as_array().unwrap();
    let rows: Vec<_> = rows.iter().map(record).collect();
    for name in ALL {
        let read = load("dialects", name).read_orders(&rows).unwrap();
        let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
        let told: Vec<_> = read
            .iter()
            .map(|row| (&*row.venue_order_id, &*row.symbol, row.order_type, row.status))
            .collect();
        let (limit, stop) = (OrderType::Limit, OrderType::StopLimit);
        let expected = [
            ("11000021", "7203", limit, OrderStatus::PartiallyFilled),
            ("11000022", "130A", stop, OrderStatus::Accepted),
            ("11000023", "7203", limit, OrderStatus::Canceled),
            ("08000009", "7203", limit, OrderStatus::Accepted),
        ];
        assert_eq!(told, expected, "{name}");
        assert_eq!((read[0].filled.shares(), read[0].leaves.shares()), (100, 100));
        assert_eq!(read[0].price.unwrap().to_string(), "2735.5");
        let prices = (read[1].price.unwrap(), read[1].trigger_price.unwrap());
        assert_eq!(prices, (Price::from_yen(1_265), Price::from_yen(1_260)));
        assert_eq!(
            (read[2].side, read[2].time_in_force),
            (OrderSide::Sell, TimeInForce::AtTheClose)
        );
        assert_eq!(read[2].tags, ["close_strategy=funari"]);
        assert_eq!(read[3].expire_date, JstDate::from_ymd_opt(2026, 5, 22));
        assert_eq!(read[0].time.to_string(), "2026-05-11 09:00:01.000000 JST");
        assert!(read.iter().all(|row| row.business_day.as_deref() == Some("20260511")));
    }
}

#[test]
fn the_sample_frames_decode_to_what_their_documents_say() {
    let Some(text) = samples("event_frames.txt") else { return };
    for name in ALL {
        let mut dialect = load("dialects", name);
        let mut seen = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (kind, frame) = line.split_once('\t').unwrap();
            let items = frame.split('\u{1}').filter(|item| !item.is_empty());
            let frame: Vec<_> = items
                .map(|item| item.split_once('\u{2}').unwrap_or((item, "")))
                .map(|(name, value)| Field::new(name, value))
                .collect();
            let told = match dialect.read_frame(&frame).unwrap().unwrap() {
                BrokerFrame::Order(notice) => {
                    assert_eq!((&*notice.venue_order_id, &*notice.symbol), ("20000123", "7203"));
                    assert_eq!(notice.quantity, Some(Quantity::new(300)));
                    let fill = notice
                        .fill
                        .map(|fill| format!("{} {} {}", fill.trade_id, fill.quantity, fill.price));
                    format!("{:?} {}", notice.kind, fill.unwrap_or_default())
                }
                other => format!("{other:?}"),
            };
            seen.push(format!("{kind}: {}", told.trim_end()));
        }
        assert_eq!(
            seen,
            [
                "ST: Ended(\"2\")".to_owned(),
                "KP: KeepAlive".to_owned(),
                format!("EC accepted: {:?}", NoticeKind::Accepted),
                "EC fill part: Filled 20261120-10507 100 2849.5".to_owned(),
                "EC fill rest: Filled 20261120-10519 200 2850".to_owned(),
                "EC cancel done: Canceled".to_owned(),
                "EC lapse: Expired".to_owned(),
                "EC resent: Filled 20261120-10507 100 2849.5".to_owned(),
                "SS: Other".to_owned(),
                format!("US: {:?}", BrokerFrame::Venue(VenuePhase::Open)),
            ]
        );
    }
}

/// Every code of the vendor's table, in all three columns.
#[test]
fn every_result_code_has_the_reason_of_the_table() {
    let Some(text) = samples("result_codes.tsv") else { return };
    let mut dialect = load("dialects", "web-broker-v4r8");
    let mut codes = 0;
    for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
        let cells: Vec<_> = line.split('\t').collect();
        let expected = cells[4];
        let of_columns = cells[..3].iter().flat_map(|cell| cell.split(['/', '.']));
        for code in of_columns.filter(|code| code.len() == 5) {
            codes += 1;
            let fields = fields(&[("sResultCode", code), ("sResultText", "理由")]);
            let answer = BrokerAnswer { fields, ..BrokerAnswer::default() };
            match dialect.judge(&answer).unwrap().verdict {
                Verdict::WrongPassword { counts, text } => {
                    assert!(expected.starts_with("SECOND_PASSWORD_INVALID"), "{line}");
                    assert_eq!(counts, !expected.contains("do not count"), "P42: {line}");
                    assert_eq!(text, format!("{code}: 理由"));
                }
                Verdict::Refused(found) => {
                    assert!(expected.starts_with(found.code.as_str()), "{line}: {found}");
                    assert_eq!(found.text, format!("{code}: 理由"));
                }
                other => panic!("{line}: {other:?}"),
            }
        }
    }
    assert!(codes > 60, "{codes}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// No text of anybody's makes a dialect fail: not of an order, an answer, a row or a frame.
    #[test]
    fn no_text_makes_a_dialect_fail(
        texts in prop::collection::vec("\\PC{0,12}|[0-9.*]{1,16}|p_cmd|EC|\\x00|[ -~]{0,20}", 48),
        quantity in 0_u64..3,
    ) {
        let names = [
            "p_cmd", "p_evt_cmd", "p_NT", "p_ON", "p_ED", "p_ENO", "p_IC", "p_EXPR", "p_EXSR", "p_EXDT",
            "p_eda_no", "p_EXRC", "p_UU", "p_US", "sOrderOrderNumber", "sOrderIssueCode",
            "sOrderBaibaiKubun", "sOrderOrderSuryou", "sOrderCurrentSuryou", "sOrderYakuzyouSuryo",
            "sOrderOrderPrice", "sOrderCondition", "sOrderOrderExpireDay", "sOrderOrderDateTime",
            "sResultCode", "sResultText", "sOrderNumber", "sEigyouDay", "sWarningCode", "sWarningText",
        ];
        let record: Vec<_> =
            names.iter().zip(&texts).map(|(name, text)| Field::new(*name, text)).collect();
        let mut notice = record.clone();
        (notice[0].value, notice[1].value, notice[2].value) =
            ("EC".to_owned(), "EC".to_owned(), "12".to_owned());
        for name in ALL {
            let mut dialect = dialect(name);
            let _ = dialect.read_frame(&record).unwrap();
            let _ = dialect.read_frame(&notice).unwrap();
            dialect.read_orders(std::slice::from_ref(&record)).unwrap();
            let (id, errno) = (texts[30].clone(), texts[31].clone());
            dialect.judge(&BrokerAnswer {
                id, errno, error_text: texts[32].clone(), fields: record.clone(),
            }).unwrap();
            let tags: Vec<_> = texts[33..40].iter().map(String::as_str).collect();
            let tags = BrokerOrder { quantity: Quantity::new(quantity), ..order(&tags) };
            let _ = dialect.plan(&tags).unwrap();
        }
    }
}

/// One instance of each for all cases of the property.
fn dialect(name: &str) -> std::sync::MutexGuard<'static, DialectInstance> {
    static ALL_OF_THEM: [std::sync::OnceLock<std::sync::Mutex<DialectInstance>>; 3] =
        [const { std::sync::OnceLock::new() }; 3];
    let index = ALL.iter().position(|one| *one == name).unwrap();
    let made = || std::sync::Mutex::new(load("dialects", name));
    ALL_OF_THEM[index].get_or_init(made).lock().unwrap()
}

/// What a call costs; run it in release by hand with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn what_a_call_costs() {
    for name in ALL {
        let mut dialect = load("dialects", name);
        let order = order(&["cash_margin=cash", "account_type=specific"]);
        let mut pair = || {
            dialect.plan(&order).unwrap().unwrap();
            dialect.new_order(&order, "1", &[]).unwrap().unwrap()
        };
        let mut times: Vec<_> = (0..20_000)
            .map(|_| {
                let start = Stopwatch::start();
                std::hint::black_box(pair());
                start.elapsed().as_nanos()
            })
            .collect();
        times.sort_unstable();
        let (middle, late) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("{name}: plan and new-order p50 {middle} ns, p99 {late} ns");
    }
}

#[test]
fn changes_and_cancels_go_through() {
    let change = BrokerChange {
        venue_order_id: "11000021".into(),
        business_day: Some("20260511".into()),
        order_type: OrderType::Limit,
        quantity: Some(Quantity::new(100)),
        price: Some("2735.5".parse().unwrap()),
        trigger_price: None,
        expire_date: JstDate::from_ymd_opt(2026, 5, 22),
    };
    for name in ALL {
        let mut dialect = load("dialects", name);
        let request = dialect.modify_order(&change).unwrap().unwrap();
        let value = |name: &str| domain::order_mapping::field(&request.fields, name);
        assert_eq!((value("sOrderPrice"), value("sOrderSuryou")), (Some("2735.5"), Some("100")));
        assert_eq!(value("sOrderExpireDay"), Some("20260522"));
        assert_eq!(request.password_field.as_deref(), Some("sSecondPassword"));
        let is_vendors = name != "web-broker-spec";
        assert_eq!(value("sEigyouDay").is_some(), is_vendors);
        assert_eq!(dialect.cancel_order("11000021", None).unwrap().is_err(), is_vendors);
        assert_eq!(dialect.cancel_all().unwrap().id, "CLMKabuCancelOrderAll");
        assert_eq!(dialect.list_orders().unwrap().id, "CLMOrderList");
        assert_eq!(dialect.description().refused_change_rejects, !is_vendors);
    }
}
