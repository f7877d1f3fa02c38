//! What error texts and pages advise is done: each row has a command that fails, what its text says to do, and commands
//! that do it.

use std::fs;

use tests::user_folder::UserFolder;

const PAGE: &str = include_str!("../../../docs/howto/own-data.md");
const RUN: &str = "replay run buy-and-hold --quiet --data data --instrument";
const FILE: &str = "data/equities_trades_202501.csv.gz";

#[test]
fn whoever_follows_the_advice_of_an_error_gets_on() {
    let user = UserFolder::with_sample(2, 300);
    fs::create_dir(user.path("empty")).unwrap();
    fs::write(user.path("table.parquet"), "mine").unwrap();
    let cases: Vec<(String, &str, Vec<String>)> = vec![
        (
            format!("data convert {FILE} table.parquet"),
            "choose another name, or replace it with --force",
            vec![
                format!("data convert {FILE} other.parquet"),
                format!("data convert {FILE} table.parquet --force"),
            ],
        ),
        (
            format!("data convert {FILE} table.csv"),
            "one of the two ends in .csv.gz, the other in .parquet",
            vec![format!("data convert {FILE} third.parquet")],
        ),
        (
            format!("data convert {FILE} fourth.parquet --instrument 7203"),
            "five places, like 13060",
            vec![
                format!("data convert {FILE} fourth.parquet --instrument 72030"),
                format!("data convert {FILE} fifth.parquet --instrument 7203.TSE"),
            ],
        ),
        (
            "data check empty".to_owned(),
            "name the folder that holds the vendor's files",
            vec!["data check data".to_owned()],
        ),
        (
            format!("{RUN} 7203.TSE --ticks fine"),
            "write auto, normal, topix500, etf, or a step in yen like 0.1",
            ["auto", "normal", "topix500", "etf", "0.1"]
                .map(|ticks| format!("{RUN} 7203.TSE --ticks {ticks}"))
                .to_vec(),
        ),
        (
            format!("{RUN} 7203.TSE --lot 0"),
            "write a number of shares above 0, like 10 or 1306=10",
            vec![format!("{RUN} 7203.TSE --lot 10"), format!("{RUN} 7203.TSE --lot 7203=10")],
        ),
        (
            format!("{RUN} 7203.TSE --lot 9984=10"),
            "which is not among the instruments of this run (7203.TSE)",
            vec![format!("{RUN} 7203.TSE --lot 7203.TSE=10")],
        ),
        (
            "data instruments empty --offline".to_owned(),
            "empty has no list of issues; leave out --offline to fetch some",
            // The test of the lists does that, with a vendor.
            Vec::new(),
        ),
        (
            "data update --prices prices --from-files nowhere".to_owned(),
            "there is no folder nowhere; give the one with the vendor's files",
            vec!["data update --prices prices --from-files files --to 2025-01-07".to_owned()],
        ),
    ];
    user.good("data sample --out files --bars --days 2 --trades-per-day 50 --instrument 7203.TSE");
    for (wrong, advice, followed) in cases {
        let said = user.said(&wrong);
        let text = format!("{}{}", said.out, said.errors);
        assert!(said.code != 0 && text.contains(advice), "{wrong}: {text}");
        for command in followed {
            user.good(&command);
        }
    }
    // What `data info` says at its end is done too.
    let told = user.good("data info data");
    assert!(!told.contains("--scan") || user.good("data info data --scan").contains("72030"));
}

/// The lot and the steps of the page on own data belong to one kind of fund, and are taken.
#[test]
fn the_lot_and_the_ticks_of_the_page_are_a_pair() {
    let flags = ["--lot 1306=10", "--ticks 1306=topix500"];
    assert!(flags.iter().all(|flag| PAGE.contains(flag)) && !PAGE.contains("1306=etf"));
    let user = UserFolder::empty();
    user.good("data sample --out data --days 1 --trades-per-day 100 --instrument 1306.TSE");
    let table = "code,name,market,lot,ticks,from,to\n13060,Fund,0109,,,,\n";
    fs::write(user.path("data/instruments.csv"), table).unwrap();
    let said = user.said(&format!("{RUN} 1306.TSE"));
    assert!(
        said.code == 1 && said.errors.contains("1306.TSE has no lot and tick table"),
        "{said:?}"
    );
    user.good(&format!("{RUN} 1306.TSE {}", flags.join(" ")));
}
