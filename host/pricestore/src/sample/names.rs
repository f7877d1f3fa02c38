//! Made-up names, markets and sectors. What a name says fits its sector, some issues are renamed and some
//! move to another market, as in life.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::JstDate;

use crate::listed::{IssueField, IssueInfo, ListedError, ListedHistory};

/// First words of names, in Japanese and English.
const FIRST: [(&str, &str); 36] = [
    ("青葉", "Aoba"),
    ("明石", "Akashi"),
    ("朝霧", "Asagiri"),
    ("石狩", "Ishikari"),
    ("泉", "Izumi"),
    ("磐城", "Iwaki"),
    ("雲井", "Kumoi"),
    ("越前", "Echizen"),
    ("奥羽", "Ou"),
    ("小倉", "Kokura"),
    ("甲斐", "Kai"),
    ("霞", "Kasumi"),
    ("紀州", "Kishu"),
    ("桐生", "Kiryu"),
    ("玄海", "Genkai"),
    ("駒形", "Komagata"),
    ("相模", "Sagami"),
    ("薩摩", "Satsuma"),
    ("信濃", "Shinano"),
    ("須磨", "Suma"),
    ("瀬戸", "Seto"),
    ("高砂", "Takasago"),
    ("秩父", "Chichibu"),
    ("筑紫", "Tsukushi"),
    ("天竜", "Tenryu"),
    ("土佐", "Tosa"),
    ("那須", "Nasu"),
    ("能登", "Noto"),
    ("白山", "Hakusan"),
    ("備前", "Bizen"),
    ("富士見", "Fujimi"),
    ("北斗", "Hokuto"),
    ("松島", "Matsushima"),
    ("武蔵", "Musashi"),
    ("吉野", "Yoshino"),
    ("若狭", "Wakasa"),
];

/// A sector of 33 with its code, its sector of 17 with the code, and the word of its names.
struct Sector(&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

const SECTORS: [Sector; 33] = [
    Sector("0050", "水産・農林業", "1", "食品", "水産", "Fisheries"),
    Sector("1050", "鉱業", "2", "エネルギー資源", "鉱業", "Mining"),
    Sector("2050", "建設業", "3", "建設・資材", "建設", "Construction"),
    Sector("3050", "食料品", "1", "食品", "製菓", "Foods"),
    Sector("3100", "繊維製品", "4", "素材・化学", "紡績", "Textile"),
    Sector("3150", "パルプ・紙", "4", "素材・化学", "製紙", "Paper"),
    Sector("3200", "化学", "4", "素材・化学", "化学", "Chemical"),
    Sector("3250", "医薬品", "5", "医薬品", "製薬", "Pharmaceutical"),
    Sector("3300", "石油・石炭製品", "2", "エネルギー資源", "石油", "Oil"),
    Sector("3350", "ゴム製品", "6", "自動車・輸送機", "ゴム", "Rubber"),
    Sector("3400", "ガラス・土石製品", "3", "建設・資材", "硝子", "Glass"),
    Sector("3450", "鉄鋼", "7", "鉄鋼・非鉄", "製鋼", "Steel"),
    Sector("3500", "非鉄金属", "7", "鉄鋼・非鉄", "金属", "Metals"),
    Sector("3550", "金属製品", "3", "建設・資材", "工具", "Tools"),
    Sector("3600", "機械", "8", "機械", "機械", "Machinery"),
    Sector("3650", "電気機器", "9", "電機・精密", "電機", "Electric"),
    Sector("3700", "輸送用機器", "6", "自動車・輸送機", "自動車", "Motor"),
    Sector("3750", "精密機器", "9", "電機・精密", "精機", "Instruments"),
    Sector("3800", "その他製品", "10", "情報通信・サービスその他", "玩具", "Toys"),
    Sector("4050", "電気・ガス業", "11", "電力・ガス", "ガス", "Gas"),
    Sector("5050", "陸運業", "12", "運輸・物流", "鉄道", "Railway"),
    Sector("5100", "海運業", "12", "運輸・物流", "海運", "Shipping"),
    Sector("5150", "空運業", "12", "運輸・物流", "航空", "Airlines"),
    Sector("5200", "倉庫・運輸関連業", "12", "運輸・物流", "倉庫", "Warehouse"),
    Sector("5250", "情報・通信業", "10", "情報通信・サービスその他", "システム", "Systems"),
    Sector("6050", "卸売業", "13", "商社・卸売", "商事", "Trading"),
    Sector("6100", "小売業", "14", "小売", "百貨店", "Stores"),
    Sector("7050", "銀行業", "15", "銀行", "銀行", "Bank"),
    Sector("7100", "証券、商品先物取引業", "16", "金融（除く銀行）", "証券", "Securities"),
    Sector("7150", "保険業", "16", "金融（除く銀行）", "保険", "Insurance"),
    Sector("7200", "その他金融業", "16", "金融（除く銀行）", "リース", "Leasing"),
    Sector("8050", "不動産業", "17", "不動産", "不動産", "Realty"),
    Sector("9050", "サービス業", "10", "情報通信・サービスその他", "サービス", "Services"),
];

/// Last words of names.
const LAST: [(&str, &str); 8] = [
    ("", ""),
    ("ホールディングス", " Holdings"),
    ("グループ", " Group"),
    ("ジャパン", " Japan"),
    ("東京", " Tokyo"),
    ("大阪", " Osaka"),
    ("名古屋", " Nagoya"),
    ("福岡", " Fukuoka"),
];

const MARKETS: [(&str, &str); 3] =
    [("0111", "プライム"), ("0112", "スタンダード"), ("0113", "グロース")];

/// The lists of all dates, for issues with a first and a last one.
pub(super) fn lists(
    dates: &[JstDate],
    issues: &[(String, JstDate, JstDate)],
) -> Result<ListedHistory, ListedError> {
    let mut counts: BTreeMap<JstDate, u64> = dates.iter().map(|date| (*date, 0)).collect();
    for (_, first, last) in issues {
        counts.range_mut(first..=last).for_each(|(_, count)| *count += 1);
    }
    let mut spans = Vec::new();
    for (place, (code, first, last)) in issues.iter().enumerate() {
        let life = &dates[dates.partition_point(|date| date < first)..];
        let life = &life[..life.partition_point(|date| date <= last)];
        // Whoever is there at the end is there still.
        let end = dates.get(dates.partition_point(|date| date <= last));
        let end = end.and_then(JstDate::pred_opt);
        let infos = [info(place, false), info(place, true)].map(Arc::new);
        let change = life.get(life.len() / 2).filter(|date| *date > first);
        match change.filter(|_| infos[0] != infos[1]) {
            None => spans.push((code.as_str(), *first, end, Arc::clone(&infos[0]))),
            Some(date) => {
                let [before, after] = infos;
                spans.push((code.as_str(), *first, date.pred_opt(), before));
                spans.push((code.as_str(), *date, end, after));
            }
        }
    }
    ListedHistory::from_spans(counts, spans)
}

/// What a list says of the issue at this place, early and late.
fn info(place: usize, is_late: bool) -> IssueInfo {
    let renamed = usize::from(is_late && place % 50 == 7);
    let moved = is_late && place % 50 == 13;
    let (first, first_en) = FIRST[place % FIRST.len()];
    let Sector(code33, sector33, code17, sector17, word, word_en) =
        SECTORS[place / FIRST.len() % SECTORS.len()];
    let (last, last_en) = LAST[(place / (FIRST.len() * SECTORS.len()) + renamed) % LAST.len()];
    let (market_code, market) = MARKETS[if moved { 0 } else { [0, 0, 1, 1, 2][place % 5] }];
    let size = match place % 20 {
        0 => "TOPIX Core30",
        1 => "TOPIX Mid400",
        5 | 6 => "TOPIX Small 1",
        _ => "-",
    };
    [
        (IssueField::Name, format!("{first}{word}{last}").as_str()),
        (IssueField::NameEn, &format!("{first_en} {word_en}{last_en}")),
        (IssueField::MarketCode, market_code),
        (IssueField::Market, market),
        (IssueField::Sector33Code, code33),
        (IssueField::Sector33, sector33),
        (IssueField::Sector17Code, code17),
        (IssueField::Sector17, sector17),
        (IssueField::Size, size),
    ]
    .into_iter()
    .fold(IssueInfo::default(), |info, (field, text)| info.with(field, text))
}
