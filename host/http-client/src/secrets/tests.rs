//! Spellings of secrets, and what is none.

use super::*;

fn secrets(texts: &[&str]) -> Secrets {
    let mut secrets = Secrets::default();
    texts.iter().for_each(|text| secrets.hide(&SecretString::from((*text).to_owned())));
    secrets
}

#[test]
fn every_spelling_of_a_secret_is_hidden() {
    let secrets = secrets(&[r#"a+b/c"d\e%41=&"#]);
    for spelling in [
        r#"a+b/c"d\e%41=&"#,
        "a%2Bb%2Fc%22d%5Ce%2541%3D%26",
        "a%2bb/c%22d%5ce%2541=%26",
        "%61%2B%62%2F%63%22%64%5C%65%25%34%31%3D%26",
        r#"a+b/c\"d\\e%41=&"#,
        r#"a+b\/c\"d\\e%41=&"#,
        r"a\u002bb\u002Fc\u0022d\u005ce\u002541\u003d\u0026",
        r#"a+b/c&quot;d\e%41=&amp;"#,
        "&#x61;&#43;b&sol;c&#34;d&bsol;e&percnt;41&equals;&#38;",
        "&#X61&#0000043;b/c&#x22;d\\e%41=&amp;amp;",
        "&amp;#x61;+b/c&amp;quot;d\\e%41=&",
    ] {
        let text = format!("日本 key={spelling}; 語");
        assert_eq!(secrets.redacted(&text), "日本 key=***; 語", "{spelling}");
    }
    for other in ["a+b/c", "a%2Bb%2Fc%22d%5Ce", "%", r"\u00", "%2", "日本", ""] {
        assert_eq!(secrets.redacted(other), other);
    }
}

#[test]
fn a_secret_in_base64_is_hidden_wherever_it_begins() {
    let secrets = secrets(&["program-vendor-key-5711\u{fb}\u{ff}"]);
    // With none, one, two and five bytes before it, and what stands behind it.
    for text in [
        "cHJvZ3JhbS12ZW5kb3Ita2V5LTU3MTHDu8O/",
        "eHByb2dyYW0tdmVuZG9yLWtleS01NzExw7vDvw==",
        "dTpwcm9ncmFtLXZlbmRvci1rZXktNTcxMcO7w78=",
        "dXNlcjpwcm9ncmFtLXZlbmRvci1rZXktNTcxMcO7w787bW9yZQ==",
        "cHJvZ3JhbS12ZW5kb3Ita2V5LTU3MTHDu8O_",
    ] {
        let hidden = secrets.redacted(text);
        assert!(hidden.contains("***") && hidden.len() < 24, "{text}: {hidden}");
    }
    // Nothing of a short one: its digits stand in many a word.
    assert_eq!(self::secrets(&["ab"]).redacted("YWI="), "YWI=");
    let of_six = self::secrets(&["Pass01"]);
    for text in ["UGFzczAx", "dTpQYXNzMDE=", "dXU6UGFzczAxOg=="] {
        assert!(of_six.redacted(text).contains("***"), "{text}");
    }
}

#[test]
fn a_secret_in_hexadecimal_digits_is_hidden() {
    let secrets = secrets(&["Key\u{fb}7", "abc", " \u{e9}1"]);
    for text in ["4b6579c3bb37", "4B6579C3BB37", "4b 65 79 C3 bb 37", r"\x4b\x65\x79\xc3\xbb\x37"] {
        assert_eq!(secrets.redacted(&format!("0x{text}!")), "0x***!", "{text}");
    }
    assert_eq!(secrets.redacted("4b6579c3bb3 616263"), "4b6579c3bb3 616263");
    assert_eq!(secrets.redacted("20c3a931"), "***");
}

#[test]
fn what_two_secrets_have_a_part_in_is_hidden_whole() {
    let secrets = secrets(&["abcdef", "defghi", "bc"]);
    for text in ["abcdefghi", "ABC def\u{200b}ghi", "%61bcdefghi"] {
        assert_eq!(secrets.redacted(&format!("<{text}>")), "<***>", "{text}");
    }
    assert_eq!(secrets.redacted("xbcx defgh abcdefdefghi"), "x***x defgh ******");
}

#[test]
fn letters_that_are_no_ascii_are_found_in_every_spelling() {
    let secrets = secrets(&["é鍵\u{1f511}x"]);
    for text in [
        "é鍵\u{1f511}x",
        r"\u00e9\u9375\ud83d\uDD11x",
        r"\u00E9鍵\ud83d\udd11\u0078",
        r"é\u{9375}\u{1f511}X",
        "%C3%A9%e9%8d%b5%F0%9F%94%91x",
        r"é\n鍵\u{200b}\u200b🔑\tx",
        "w6npjbXwn5SReA==",
    ] {
        let hidden = secrets.redacted(text);
        assert!(hidden.contains("***") && hidden.len() < 8, "{text}: {hidden}");
    }
    for other in [r"\u00e9\u9375", "é鍵", r"\u{", r"\u{}", r"\u{1234567}", r"\x4", r"\", "鍵"] {
        assert_eq!(secrets.redacted(other), other);
    }
}

#[test]
fn a_text_that_holds_a_secret_is_known() {
    let secrets = secrets(&["canary-1", ""]);
    for (text, holds) in
        [("a canary-1", true), ("CANARY%2d1", true), ("canary-", false), ("", false)]
    {
        assert_eq!(secrets.stand_in(text), holds, "{text}");
    }
    assert!(!Secrets::default().stand_in("canary-1"));
}

#[test]
fn secrets_within_secrets_are_hidden_whole() {
    let secrets = secrets(&["key", "", "key-and-more"]);
    assert_eq!(secrets.redacted("key key-and-more keykey"), "*** *** ******");
}

#[test]
fn what_looks_encoded_may_be_the_secret_itself() {
    assert_eq!(secrets(&["%25%41"]).redacted("<%25%41> <%2525%2541>"), "<***> <***>");
}

#[test]
fn a_secret_in_other_letters_or_torn_is_hidden() {
    let secrets = secrets(&["Ab3/x y", "パス9"]);
    for spelling in [
        "AB3/X Y",
        "ab3/xy",
        "a b 3 / x y",
        "A\u{1}b\u{7f}3/\u{200b}x\u{3000}y",
        "a\nb3/x\ty",
        "%41%62%01%33%2f%78+y",
        r"a\u0000b3\/x\u200by",
        "aB3/x%20y",
        "パ ス\u{feff}9",
    ] {
        assert_eq!(secrets.redacted(&format!("<{spelling}>")), "<***>", "{spelling}");
    }
    for other in ["Ab3-x y", "Ab3/x", "ab4/xy", "%zz", r"\u00", "パ", " ", ""] {
        assert_eq!(secrets.redacted(other), other);
    }
    assert_eq!(self::secrets(&[" ", "\t"]).redacted("a b"), "a***b", "a blank is one, and no more");
}

#[test]
fn a_long_row_of_blanks_is_read_once() {
    let blanks = " ".repeat(1 << 20);
    assert_eq!(secrets(&[" Ab 3"]).redacted(&blanks), blanks);
    assert_eq!(secrets(&[" Ab 3"]).redacted("  AB3"), "  ***");
    let many: Vec<String> = (0..20).map(|number| format!("{number}canary")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for sign in ["%", "\\", "%41", "\\u00e9", "+"] {
        let signs = sign.repeat(1 << 13);
        assert_eq!(secrets(&many).redacted(&signs), signs);
    }
}

#[test]
fn a_code_is_no_secret_because_of_two_equal_digits() {
    let secrets = secrets(&["13", "Canary-1"]);
    for (code, is_secret) in
        [("13", true), ("11304", false), ("xcanary-1", true), ("CANARY-1", true), ("canary", false)]
    {
        assert_eq!(secrets.stands_in(code), is_secret, "{code}");
    }
}

#[test]
fn a_part_of_a_secret_is_hidden_as_servers_cut_what_they_repeat() {
    let address = "https://price-kabuka.example.jp/e_api_v4r10/request/ND=tokenOfASession/";
    let secrets =
        secrets(&["AUTHidABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", address, "\u{e9}23456789012"]);
    for (text, hidden) in [
        ("id AUTHidABCDEFGHIJKLMNOPQ unknown", "id *** unknown"),
        ("authidabcdef", "***"),
        ("AUTHidABCDE", "AUTHidABCDE"),
        ("\u{65e5}UVWXYZ0123456789\u{672c}", "\u{65e5}***\u{672c}"),
        ("AUTHidABCDEFGH...UVWXYZ0123456789", "***...***"),
        (
            "https://price-kabuka.example.jp/e_api_v4r10/request/",
            "https://price-kabuka.example.jp/e_api_v4r10/request/",
        ),
        ("at /ND=tokenOfASes", "at /***"),
        ("\u{e9}2345678901", "\u{e9}2345678901"),
    ] {
        assert_eq!(secrets.redacted(text), hidden);
        assert_eq!(secrets.stand_in(text), text != hidden, "{text}");
    }
    assert!(secrets.stands_in("HIJKLMNOPQRS") && !secrets.stands_in("HIJKLMNOPQR"));
    let long = "AUTHidABCDE".repeat(1 << 15);
    assert_eq!(secrets.redacted(&long), long);
}
