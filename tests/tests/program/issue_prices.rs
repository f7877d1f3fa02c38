//! One issue's daily prices over HTTP, as charts ask for them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::http;
use tests::serving::Serving;
use tests::user_folder::UserFolder;

/// The field with its arguments.
fn prices(code: &str, from: &str, to: &str) -> String {
    let fields = "date open high low close volume";
    format!(
        "{{ dailyPrices(code: \"{code}\", fromDate: \"{from}\", toDate: \"{to}\") {{ {fields} }} }}"
    )
}

/// The code and the message of the answer's only error.
fn error(serving: &Serving, query: &str) -> (String, String) {
    let answer = serving.ask(query);
    assert!(answer["data"].is_null(), "{answer}");
    let error = &answer["errors"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&error["extensions"]["code"]), text(&error["message"]))
}

/// A column of all codes and days, as `kumiki rank` prints it.
fn column(user: &UserFolder, name: &str) -> BTreeMap<(String, String), Value> {
    let mut command =
        user.command("rank query --prices data --from 2000-01-01 --to 2029-12-31 --limit 500");
    let output = command.args(["--format", "json", "--sort-by", name]).output().unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| ((text(&row["code"]), text(&row["date"])), row["sortValue"].clone()))
        .collect()
}

#[test]
fn prices_are_those_of_the_rankings() {
    let user = UserFolder::empty();
    user.good("data sample --daily --issues 4 --days 50 --seed 5 --prices data");
    let columns = ["Open", "High", "Low", "Close", "Volume"].map(|name| column(&user, name));
    let code = columns[3].keys().next().unwrap().0.clone();
    let serving = Serving::start(&user.path("data"), &[]);
    let answer = serving.ask(&prices(&code, "2000-01-01", "2029-12-31"));
    let rows = answer["data"]["dailyPrices"].as_array().unwrap();
    assert!(rows.len() > 40, "{} rows", rows.len());
    // A day without a close is not ranked; a chart is told of it.
    let closed: Vec<&Value> = rows.iter().filter(|row| !row["close"].is_null()).collect();
    assert_eq!(closed.len(), columns[3].keys().filter(|(of, _)| *of == code).count());
    for row in closed {
        let key = (code.clone(), row["date"].as_str().unwrap().to_owned());
        for (column, name) in columns.iter().zip(["open", "high", "low", "close", "volume"]) {
            assert_eq!(row[name].as_f64(), column[&key].as_f64(), "{name} of {key:?}");
        }
    }
    assert!(rows.is_sorted_by_key(|row| row["date"].as_str().unwrap().to_owned()));
    let last = rows.last().unwrap()["date"].as_str().unwrap();
    let one = serving.ask(&prices(&code, last, last));
    assert_eq!(one["data"]["dailyPrices"], json!([rows.last().unwrap()]));
    assert_eq!(serving.ask(&prices(&code, last, "2000-01-01"))["data"]["dailyPrices"], json!([]));
    // With a ranking beside it, of the same snapshot.
    let both = format!(
        "{{ dataset {{ lastDate }} p: dailyPrices(code: \"{code}\", fromDate: \"{last}\", toDate: \
         \"{last}\") {{ close }} stockRankingRange(fromDate: \"{last}\", toDate: \"{last}\") {{ rank }} }}"
    );
    let both = serving.ask(&both);
    assert_eq!(both["data"]["p"][0]["close"], rows.last().unwrap()["close"]);
    assert_eq!(both["data"]["stockRankingRange"][0]["rank"], 1);
}

#[test]
fn wrong_questions_are_told_what_is_wrong() {
    let user = UserFolder::empty();
    user.good("data sample --daily --issues 2 --days 2700 --seed 5 --prices data");
    let serving = Serving::start(&user.path("data"), &[]);
    let known = column(&user, "Close").keys().next().unwrap().0.clone();
    let (code, message) = error(&serving, &prices("9999X", "2024-01-01", "2024-01-05"));
    assert_eq!(code, "CODES_INVALID");
    assert!(message.contains("code `9999X` is not in the data; write codes as in the data"));
    let hostile = "../x' OR 1=1 --".repeat(20);
    assert_eq!(error(&serving, &prices(&hostile, "2024-01-01", "2024-01-05")).0, "CODES_INVALID");
    for wrong in ["2024-1-5", "2024-02-30", "", "today"] {
        let (code, message) = error(&serving, &prices(&known, "2024-01-01", wrong));
        assert_eq!(code, "DATE_INVALID", "{wrong}");
        assert!(message.contains("toDate is `") && message.contains("YYYY-MM-DD"), "{message}");
    }
    let (code, message) = error(&serving, &prices(&known, "2000-01-01", "2029-12-31"));
    assert_eq!(code, "RANGE_INVALID");
    assert!(message.contains("has 2700 business days and an answer may have 2600"), "{message}");
    // Five in one request are one too many, whatever they are.
    let one = prices(&known, "2024-01-01", "2024-01-05");
    let one = one.strip_prefix('{').and_then(|field| field.strip_suffix('}')).unwrap();
    let five: String = (0..5).map(|alias| format!("p{alias}: {one}")).collect();
    assert_eq!(error(&serving, &format!("{{ {five} }}")).0, "ALIASES_EXCEEDED");
    // Like everything else it is for those with the token, at the service's own name.
    let body = json!({ "query": prices(&known, "2024-01-01", "2024-01-05") }).to_string();
    let named = [("Host", "evil.example"), http::JSON];
    let reply = http::request(serving.address, "POST /graphql", &named, body.as_bytes());
    assert_eq!(reply.status, 421, "{}", reply.text());
    let mut command = Serving::command(&user.path("data"), &[]);
    command.env("KUMIKI_RANK_TOKEN", "a-secret-for-tests-only-1234");
    let closed = Serving::of(command);
    let reply = http::graphql(closed.address, &body);
    assert_eq!(reply.status, 401, "{}", reply.text());
}

#[test]
fn the_page_and_its_parts_come_from_the_service_with_a_strict_policy() {
    let user = UserFolder::empty();
    user.good("data sample --daily --issues 2 --days 5 --seed 5 --prices data");
    let serving = Serving::start(&user.path("data"), &[]);
    let get = |path: &str| http::request(serving.address, &format!("GET {path}"), &[], &[]);
    let page = get("/");
    let policy = page.header("content-security-policy").unwrap().to_owned();
    assert!(policy.contains("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
    assert!(!policy.contains("unsafe") && !page.text().contains("://"), "{policy}");
    assert!(page.text().contains("lang=\"en\"") && page.text().contains("銘柄ランキング"));
    for (path, kind) in [
        ("ranking.js", "text/javascript"),
        ("uplot.js", "text/javascript"),
        ("ranking.css", "text/css"),
    ] {
        let reply = get(&format!("/page/{path}"));
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.header("content-type").unwrap().starts_with(kind), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert!(!reply.body.is_empty());
    }
    for path in ["/page/", "/page/none.js", "/page/..%2Fmod.rs", "/page/a/b"] {
        assert_eq!(get(path).status, 404, "{path}");
    }
}
