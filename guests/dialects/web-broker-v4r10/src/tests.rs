//! What is told of the release; how orders are written and read is tested with release 8.

use kumiki_dialect_sdk::prelude::*;
use kumiki_dialect_sdk::testing::{fields, order, shown};

use super::*;

/// P1: the hosts of its logins; that of prices gets no login.
#[test]
fn it_is_made_for_the_vendors_hosts_and_knows_the_fills_of_an_order() {
    let scope = WebBrokerV4r10::scope();
    assert_eq!(scope.hosts, ["demo-kabuka.e-shiten.jp", "kabuka.e-shiten.jp"]);
    assert_eq!(scope.fill_rows.as_deref(), Some("aYakuzyouSikkouList"));
    let made = WebBrokerV4r10::list_fills("11000021", Some("20260511")).unwrap();
    assert_eq!(shown(&made), "sOrderNumber=11000021 sEigyouDay=20260511");
    let row = fields(&[("sYakuzyouSuryou", "100"), ("sYakuzyouPrice", "2300.0000")]);
    assert_eq!(WebBrokerV4r10::read_fill(&row).unwrap().price, "2300");
}

#[test]
fn it_is_release_10_and_writes_orders_as_the_samples_do() {
    let told = WebBrokerV4r10::describe();
    assert_eq!(told.name, "web-broker-v4r10");
    assert!(told.summary.ends_with("release 10") && !told.decodes_answers, "{told:?}");
    let market = order(Side::Sell, OrderType::Market, &[]);
    let made = WebBrokerV4r10::new_order(&market, "1", &[]).unwrap();
    assert_eq!(
        shown(&made),
        "sZyoutoekiKazeiC=1 sIssueCode=7203 sSizyouC=00 sBaibaiKubun=1 sCondition=0 sOrderPrice=0 \
         sOrderSuryou=100 sGenkinShinyouKubun=0 sOrderExpireDay=0 sGyakusasiOrderType=0 \
         sGyakusasiZyouken=0 sGyakusasiPrice=* sTatebiType=* sTategyokuZyoutoekiKazeiC=*"
    );
}
