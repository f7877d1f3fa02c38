//! The contracts of `wit/`: what each kind of component must export and may import.

/// One contract: everything that differs between the kinds of components.
#[derive(Debug)]
pub(crate) struct Contract {
    /// What a component of it is called.
    pub(crate) kind: &'static str,
    /// The files of the package, with their text.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The world that a component must fit.
    pub(crate) world: &'static str,
    /// The interface that every component of it exports.
    pub(crate) guest: &'static str,
    /// An export that only the program of such a component has.
    pub(crate) mark: &'static str,
    /// How the names of what it may import begin.
    pub(crate) package: &'static str,
    /// What it may import.
    pub(crate) imports: &'static [&'static str],
    /// The same, for people.
    pub(crate) imports_shown: &'static str,
    /// What the compile cache keeps of it: the program inside, checked against the contract before.
    pub(crate) cache_format: &'static str,
}

/// Strategies.
pub(crate) static STRATEGY: Contract = Contract {
    kind: "strategy",
    files: &[
        ("types.wit", include_str!("../../../wit/strategy/types.wit")),
        ("host.wit", include_str!("../../../wit/strategy/host.wit")),
        ("world.wit", include_str!("../../../wit/strategy/world.wit")),
    ],
    world: "strategy",
    guest: crate::exports::GUEST,
    mark: "kumiki:strategy/guest@1.0.0#advance",
    package: "kumiki:strategy/",
    imports: &[
        "kumiki:strategy/types@1.0.0",
        "kumiki:strategy/actions@1.0.0",
        "kumiki:strategy/log@1.0.0",
        "kumiki:strategy/portfolio@1.0.0",
        "kumiki:strategy/aggressor@1.0.0",
    ],
    imports_shown: "only kumiki:strategy/{actions, log, portfolio, aggressor}@1.0.0",
    cache_format: "program of kumiki:strategy@1.0.0",
};

/// Formula modules.
pub(crate) static FORMULA: Contract = Contract {
    kind: "formula",
    files: &[("formula.wit", include_str!("../../../wit/formula/formula.wit"))],
    world: "formula",
    guest: crate::formula::GUEST,
    mark: "kumiki:formula/guest@1.0.0#evaluate",
    package: "kumiki:formula/",
    imports: &[],
    imports_shown: "nothing",
    cache_format: "program of kumiki:formula@1.0.0",
};
