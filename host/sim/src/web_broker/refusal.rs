//! Result codes: the few that the simulated broker gives, and its words for them.

/// Why a request is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A business refusal: `sResultCode` and `sResultText`.
    Business(u32, &'static str),
    /// The request itself is wrong: `p_errno` -1. The text names fields, never values.
    Parameter(String),
    /// `p_errno` and `p_err`.
    Session(i32, &'static str),
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::Parameter(why)
    }
}

/// Which request is refused: codes of a family differ in their first digits only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    New,
    Correct,
    Cancel,
}

impl Family {
    /// A code of the family of new orders, as this family's.
    pub(crate) fn code(self, of_new: u32) -> u32 {
        match (self, of_new) {
            (Self::New, code) => code,
            (Self::Correct, 11_102) => 12_122,
            (Self::Cancel, 11_102) => 13_122,
            (Self::Correct, 11_030) => 12_023,
            (Self::Cancel, 11_030) => 13_023,
            (Self::Correct, code) => code + 1_000,
            (Self::Cancel, code) => code + 2_000,
        }
    }

    pub(crate) fn closed(self) -> Refusal {
        Refusal::Business(self.code(11_102), "只今の時間帯は受付できません")
    }

    pub(crate) fn wrong_password(self) -> Refusal {
        Refusal::Business(self.code(11_304), "第二暗証番号が誤っています")
    }

    pub(crate) fn malformed_password(self) -> Refusal {
        Refusal::Business(self.code(11_030), "第二暗証番号の形式が誤っています")
    }

    pub(crate) fn no_cash(self) -> Refusal {
        Refusal::Business(self.code(11_420), "買付可能額が不足しています")
    }

    /// The order's state: `tail` of 290 to 298.
    pub(crate) fn state(self, tail: u32) -> Refusal {
        let text = match tail {
            290 => "注文処理中です",
            291 => "訂正中です",
            292 => "取消中です",
            293 => "失効済みです",
            294 => "約定済みです",
            295 => "取消済みです",
            296 => "逆指値条件が成立済みです",
            _ => "訂正数量が誤っています",
        };
        Refusal::Business(self.code(11_000 + tail), text)
    }
}

pub(crate) const NO_ISSUE: Refusal = Refusal::Business(11_104, "銘柄がありません");
pub(crate) const NO_ORDER: Refusal = Refusal::Business(991_005, "該当する注文がありません");
pub(crate) const LOT: Refusal = Refusal::Business(11_112, "売買単位の整数倍ではありません");
pub(crate) const PRICE_LIMIT: Refusal = Refusal::Business(11_113, "値幅制限を超えています");
pub(crate) const TICK: Refusal = Refusal::Business(11_118, "呼値の単位が誤っています");
pub(crate) const EXPIRY: Refusal = Refusal::Business(11_120, "注文期日が誤っています");
pub(crate) const STOP_LIMIT: Refusal = Refusal::Business(11_121, "逆指値が値幅制限を超えています");
pub(crate) const STOP_TICK: Refusal = Refusal::Business(11_123, "逆指値の呼値が誤っています");
pub(crate) const FUNARI_MARKET: Refusal = Refusal::Business(11_032, "不成に成行は指定できません");
pub(crate) const EXPIRY_CONDITION: Refusal =
    Refusal::Business(11_033, "期日指定と執行条件は同時に指定できません");
pub(crate) const STOP_CONDITION: Refusal =
    Refusal::Business(11_034, "逆指値に執行条件は指定できません");
pub(crate) const STOP_REFUSED: Refusal = Refusal::Business(11_341, "逆指値注文を受付できません");
pub(crate) const STOP_REACHED: Refusal = Refusal::Business(11_349, "逆指値条件が成立しています");
pub(crate) const TOO_MUCH: Refusal = Refusal::Business(11_352, "上限を超えています");
pub(crate) const NO_SHARES: Refusal = Refusal::Business(11_482, "売付可能株数が不足しています");
pub(crate) const NO_POSITION: Refusal = Refusal::Business(11_421, "返済可能数量が不足しています");
pub(crate) const NO_CAPACITY: Refusal = Refusal::Business(11_429, "新規建余力が不足しています");
pub(crate) const NO_CASH_TO_TAKE: Refusal = Refusal::Business(11_423, "現引可能額が不足しています");
pub(crate) const INCREASE: Refusal = Refusal::Business(12_170, "数量の増加はできません");
pub(crate) const CONDITION_STAYS: Refusal = Refusal::Business(12_034, "執行条件の訂正はできません");
