//! Why a call is refused: a status and a code, as each dialect has them.

use serde_json::json;

use super::config::Dialect;

/// Why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nobody is logged in at the gateway, or no token was issued.
    NotLoggedIn,
    /// The token is not the one that lives.
    DeadToken,
    /// The API password is wrong.
    WrongPassword,
    /// 50 symbols are registered.
    RegisterFull,
    /// More calls than the class has.
    TooMany,
    /// No issue has this code.
    UnknownSymbol,
    /// None of the symbols, or the body, can be registered.
    NotRegistered,
    /// Some of the symbols cannot be registered.
    PartlyRegistered,
    /// None of the symbols was registered.
    NotUnregistered,
    /// Some of the symbols were not registered.
    PartlyUnregistered,
    /// A parameter of the query is none.
    Query,
    /// The body is none.
    Body,
    /// There is no such address.
    UnknownPath,
    /// The address takes another method.
    Method,
    /// The body is too long.
    TooLong,
    /// The body is not `application/json`.
    MediaType,
    /// The call cannot be made: orders.
    Unavailable,
}

impl Refusal {
    /// Status, code and words.
    pub(crate) const fn told(self, dialect: Dialect) -> (u16, i64, &'static str) {
        let is_spec = matches!(dialect, Dialect::Spec);
        match self {
            Self::NotLoggedIn if is_spec => (401, 4_001_001, "ログインしていません"),
            Self::NotLoggedIn => (401, 4_001_007, "ログイン認証エラー"),
            Self::DeadToken if is_spec => (401, 4_001_005, "トークンの有効期限が切れました"),
            Self::DeadToken => (401, 4_001_009, "APIキー不一致"),
            Self::WrongPassword if is_spec => (401, 4_001_003, "APIパスワードが正しくありません"),
            Self::WrongPassword => (401, 4_001_013, "トークン取得失敗"),
            Self::RegisterFull if is_spec => (400, 4_002_001, "銘柄登録数が上限に達しています"),
            Self::RegisterFull => (400, 4_002_006, "レジスト数エラー"),
            Self::TooMany if is_spec => (429, 4_002_006, "流量制限を超えました"),
            Self::TooMany => (429, 4_001_006, "API実行回数エラー"),
            // 4002001 is another thing in the specification's table.
            Self::UnknownSymbol if is_spec => (400, 4_001_018, "銘柄が見つからない"),
            Self::UnknownSymbol => (400, 4_002_001, "銘柄が見つからない"),
            Self::NotRegistered => (400, 4_001_018, "銘柄が登録できませんでした"),
            Self::PartlyRegistered => (400, 4_001_019, "一部の銘柄が登録できませんでした"),
            Self::PartlyUnregistered => (400, 4_001_020, "一部の銘柄が解除できませんでした"),
            Self::NotUnregistered => (400, 4_001_021, "銘柄が解除できませんでした"),
            Self::Query => (400, 4_001_010, "クエリ文字列不正"),
            Self::Body => (400, 4_001_011, "リクエスト文字列不正"),
            Self::UnknownPath if is_spec => (404, 4_001_012, "リクエスト不正"),
            Self::UnknownPath => (400, 4_001_012, "リクエスト不正"),
            Self::Method => (405, 4_001_014, "許可されていないHTTPメソッドです"),
            Self::TooLong => (413, 4_001_015, "ContentLengthが上限を超えています"),
            Self::MediaType => (415, 4_001_016, "サポートされていないContent-Typeです"),
            Self::Unavailable => (403, 4_001_008, "API利用不可"),
        }
    }
}

/// The body of a refusal.
pub(crate) fn body(code: i64, message: &str) -> String {
    json!({ "Code": code, "Message": message }).to_string()
}
