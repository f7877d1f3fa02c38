//! The set against a small gateway, and against a model of it.

use proptest::prelude::*;

use super::*;

fn symbol(number: usize) -> String {
    format!("{:04}", 1_000 + number)
}

fn list(symbols: &[&str]) -> Vec<(String, i64)> {
    symbols.iter().map(|symbol| ((*symbol).to_owned(), TOKYO)).collect()
}

#[test]
fn p51_a_symbol_is_wanted_until_its_last_client_gives_it_up() {
    let mut set = RegisterSet::default();
    assert_eq!(set.register(1, "7203"), Registration::New);
    assert_eq!(set.register(2, "7203"), Registration::Known);
    assert_eq!(set.register(2, "7203"), Registration::Known);
    set.sent(["7203"]);
    assert!(!set.release(1, "7203"));
    assert!(!set.release(1, "7203"), "client 1 has nothing to give up any more");
    assert!(!set.release(2, "130A"));
    assert!(set.release(2, "7203"));
    assert_eq!(set.unwanted(), ["7203"]);
    assert_eq!(set.taken(), 0);
}

#[test]
fn p51_a_client_that_leaves_releases_all_it_had() {
    let mut set = RegisterSet::default();
    for (client, symbol) in [(1, "7203"), (1, "130A"), (2, "130A"), (1, "9984")] {
        set.register(client, symbol);
    }
    set.sent(["7203", "130A"]);
    assert_eq!(set.client_left(1), ["7203", "9984"]);
    // No request for the last one was sent.
    assert_eq!(set.unwanted(), ["7203"]);
    assert_eq!(set.client_left(1), [""; 0]);
    assert_eq!(set.batches(), [["130A"]]);
}

#[test]
fn p51_a_board_read_takes_a_place_but_subscribes_no_client() {
    let mut set = RegisterSet::default();
    assert_eq!(set.read_board(1, "7203"), Registration::New);
    assert!(!set.is_subscribed("7203"));
    assert_eq!(set.register(1, "7203"), Registration::Known);
    assert!(set.is_subscribed("7203"));
    assert_eq!(set.read_board(1, "7203"), Registration::Known);
    assert!(set.is_subscribed("7203"));
    set.register(2, "130A");
    set.read_board(1, "7203");
    assert_eq!(set.evict_lru().unwrap(), "130A");
    assert_eq!(set.evict_lru().unwrap(), "7203");
    assert_eq!(set.evict_lru(), None);
}

#[test]
fn what_a_strategy_trades_is_not_evicted() {
    let mut set = RegisterSet::default();
    set.register(STRATEGY, "7203");
    set.register(1, "7203");
    set.register(1, "9984");
    assert_eq!(set.evict_lru().unwrap(), "9984", "used last");
    assert_eq!(set.evict_lru(), None);
    assert_eq!(set.client_left(STRATEGY), [""; 0]);
    assert_eq!(set.evict_lru().unwrap(), "7203");
}

#[test]
fn the_set_is_full_at_fifty_and_nothing_is_evicted_by_itself() {
    let mut set = RegisterSet::default();
    for number in 0..REGISTER_MAX {
        assert_eq!(set.register(1, &symbol(number)), Registration::New);
    }
    assert_eq!(set.register(1, "7203"), Registration::Full);
    assert_eq!(set.read_board(1, "7203"), Registration::Full);
    assert_eq!(set.register(2, &symbol(0)), Registration::Known);
    assert_eq!(set.taken(), REGISTER_MAX);
    assert!(!set.is_subscribed("7203"));
    // The second is the least recently used one, because the first was just used.
    assert_eq!(set.evict_lru().unwrap(), symbol(1));
    assert_eq!(set.register(1, "7203"), Registration::New);
    assert_eq!(set.batches().concat()[..2], ["7203".to_owned(), symbol(0)]);
    assert!(set.batches().iter().all(|batch| batch.len() <= REGISTER_BATCH_MAX));
}

#[test]
fn p52_what_others_registered_stays_and_counts() {
    let mut set = RegisterSet::default();
    set.register(1, "7203");
    set.sent(["7203"]);
    let mut entries = list(&["7203", "9984"]);
    entries.push(("7203".to_owned(), 3));
    let found = set.apply_list(&entries, &[]);
    assert_eq!(found, Reconciled { foreign: 2, ..Reconciled::default() });
    assert_eq!(set.taken(), 3);
    // A symbol that another program registered costs no place, and stays when no client wants it any more.
    assert_eq!(set.register(1, "9984"), Registration::New);
    set.sent(["9984"]);
    assert_eq!(set.taken(), 3);
    assert_eq!(set.ours(), ["7203"]);
    assert!(set.release(1, "9984"));
    set.apply_list(&entries, &[]);
    assert_eq!(set.unwanted(), [""; 0]);
    let others: Vec<_> = (0..REGISTER_MAX - 1).map(|number| (symbol(number), TOKYO)).collect();
    assert_eq!(set.apply_list(&others, &[]).missing, ["7203"]);
    assert_eq!(set.taken(), REGISTER_MAX);
    assert_eq!(set.register(1, "130A"), Registration::Full);
    assert_eq!(set.register(1, &symbol(5)), Registration::New);
    // Only our own symbols make room.
    assert_eq!(set.evict_lru().unwrap(), "7203");
    assert_eq!(set.evict_lru(), None);
}

#[test]
fn p52_what_we_registered_and_want_no_more_is_unregistered_until_it_is_gone() {
    let mut set = RegisterSet::default();
    set.register(1, "7203");
    set.sent(["7203"]);
    set.release(1, "7203");
    assert_eq!(set.ours(), ["7203"]);
    set.apply_list(&list(&["7203", "9984"]), &[]);
    assert_eq!(set.unwanted(), ["7203"]);
    // Wanted again before it was unregistered: it is still ours.
    assert_eq!(set.register(1, "7203"), Registration::New);
    set.apply_list(&list(&["7203", "9984"]), &[]);
    assert_eq!(set.unwanted(), [""; 0]);
    assert!(set.release(1, "7203"));
    assert_eq!(set.unwanted(), ["7203"]);
    // One list may be cut short.
    set.apply_list(&list(&["9984"]), &[]);
    assert_eq!(set.unwanted(), ["7203"]);
    set.apply_list(&list(&["7203", "9984"]), &[]);
    assert_eq!(set.unwanted(), ["7203"]);
    set.apply_list(&list(&["9984"]), &[]);
    let found = set.apply_list(&list(&["9984"]), &[]);
    assert_eq!(found, Reconciled { foreign: 1, ..Reconciled::default() });
    // A later entry belongs to another program.
    let found = set.apply_list(&list(&["7203"]), &[]);
    assert_eq!(found, Reconciled { foreign: 1, ..Reconciled::default() });
    assert_eq!(set.ours(), [""; 0]);
    // Subscribed and released before a request left: never ours.
    set.register(1, "130A");
    set.release(1, "130A");
    set.apply_list(&list(&["130A"]), &[]);
    assert_eq!(set.unwanted(), [""; 0]);
    // Released while the request was under way: ours, and to be unregistered.
    set.apply_list(&[], &[]);
    set.register(1, "130A");
    set.release(1, "130A");
    set.sent(["130A"]);
    set.apply_list(&list(&["130A"]), &[]);
    assert_eq!(set.unwanted(), ["130A"]);
    // A symbol that is known to be another program's does not become ours by a request.
    set.apply_list(&list(&["9984"]), &["130A".to_owned()]);
    set.sent(["9984"]);
    assert_eq!(set.unwanted(), [""; 0]);
}

#[test]
fn a_restarted_gateway_misses_everything_newest_first() {
    let mut set = RegisterSet::default();
    for symbol in ["7203", "130A", "9984"] {
        set.register(1, symbol);
        set.sent([symbol]);
    }
    set.apply_list(&list(&["7203", "130A", "9984", "8306"]), &[]);
    set.read_board(1, "7203");
    let found = set.apply_list(&[], &[]);
    assert_eq!(found.missing, ["7203", "9984", "130A"]);
    assert_eq!((set.unwanted().len(), found.foreign), (0, 0));
    assert_eq!(set.batches(), [["7203", "9984", "130A"]]);
    assert_eq!(RegisterSet::default().batches(), [[""; 0]; 0]);
}

#[test]
fn no_more_than_the_limits_are_remembered() {
    let mut set = RegisterSet::default();
    for number in 0..RELEASED_MAX + 5 {
        set.register(1, &symbol(number));
        set.sent([symbol(number).as_str()]);
        set.release(1, &symbol(number));
    }
    assert_eq!(set.ours().len(), RELEASED_MAX);
    let long: Vec<_> = (0..LISTED_MAX + 5).map(|number| (symbol(number), 3)).collect();
    assert_eq!(set.apply_list(&long, &[]).foreign, LISTED_MAX);
}

/// One event of clients, other programs and the gateway.
#[derive(Debug, Clone)]
enum Step {
    Register(u64, usize),
    Read(u64, usize),
    Release(u64, usize),
    Leave(u64),
    Evict,
    /// Another program registers a symbol in Tokyo, or elsewhere.
    Foreign(usize, bool),
    Restart,
    /// All due requests are sent and answered.
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let client = || 0_u64..4;
    let number = || 0_usize..70;
    prop_oneof![
        30 => (client(), number()).prop_map(|(client, number)| Step::Register(client, number)),
        3 => (client(), number()).prop_map(|(client, number)| Step::Read(client, number)),
        8 => (client(), number()).prop_map(|(client, number)| Step::Release(client, number)),
        1 => client().prop_map(Step::Leave),
        2 => Just(Step::Evict),
        2 => (number(), any::<bool>()).prop_map(|(number, elsewhere)| Step::Foreign(number, elsewhere)),
        1 => Just(Step::Restart),
        6 => Just(Step::Settle),
    ]
}

/// The simplest right model: the clients of each symbol, in the order of use, and the owner of each
/// registration.
#[derive(Default)]
struct Model {
    /// The least recently used one first, with its clients.
    wanted: Vec<(String, BTreeSet<u64>)>,
    registered: BTreeSet<(String, i64)>,
    /// Registered before our request, as far as lists have shown.
    of_others: BTreeSet<(String, i64)>,
    /// Registered by other programs, whether a list has shown it or not.
    truly_of_others: BTreeSet<(String, i64)>,
}

impl Model {
    fn at(&self, symbol: &str) -> Option<usize> {
        self.wanted.iter().position(|(one, _)| one == symbol)
    }

    fn used(&mut self, at: usize) {
        let entry = self.wanted.remove(at);
        self.wanted.push(entry);
    }

    fn is_of_others(&self, symbol: &str) -> bool {
        self.of_others.contains(&(symbol.to_owned(), TOKYO))
    }

    fn hold(&mut self, client: u64, symbol: &str) -> Registration {
        if let Some(at) = self.at(symbol) {
            self.wanted[at].1.insert(client);
            self.used(at);
            return Registration::Known;
        }
        let mut places = self.of_others.clone();
        places.extend(self.wanted.iter().map(|(symbol, _)| (symbol.clone(), TOKYO)));
        if places.len() >= REGISTER_MAX && !self.is_of_others(symbol) {
            return Registration::Full;
        }
        self.wanted.push((symbol.to_owned(), BTreeSet::from([client])));
        Registration::New
    }

    fn release(&mut self, client: u64, symbol: &str) -> bool {
        let Some(at) = self.at(symbol) else { return false };
        let is_last = self.wanted[at].1.remove(&client) && self.wanted[at].1.is_empty();
        if is_last {
            self.wanted.remove(at);
        }
        is_last
    }
}

/// Sends the due requests to the gateway, and passes its answers to the set.
fn settle(set: &mut RegisterSet, model: &mut Model) {
    let answer = |model: &Model| model.registered.iter().cloned().collect::<Vec<_>>();
    let mut out = Vec::new();
    for _ in 0..3 {
        let due = set.apply_list(&answer(model), &out);
        model.of_others.clone_from(&model.truly_of_others);
        assert_eq!(due.foreign, model.of_others.len());
        out = set.unwanted();
        for symbol in &out {
            model.registered.remove(&(symbol.clone(), TOKYO));
        }
        for symbol in &due.missing {
            set.sent([symbol.as_str()]);
            if model.registered.len() < REGISTER_MAX {
                model.registered.insert((symbol.clone(), TOKYO));
            }
        }
    }
}

proptest! {
    #[test]
    fn the_set_is_what_the_model_says(steps in proptest::collection::vec(step(), 1..300)) {
        let mut set = RegisterSet::default();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Register(client, number) => {
                    let symbol = symbol(number);
                    prop_assert_eq!(set.register(client, &symbol), model.hold(client, &symbol));
                }
                Step::Read(client, number) => {
                    let symbol = symbol(number);
                    prop_assert_eq!(set.read_board(client, &symbol), model.hold(client, &symbol));
                }
                Step::Release(client, number) => {
                    let symbol = symbol(number);
                    let gone = set.release(client, &symbol);
                    prop_assert_eq!(gone, model.release(client, &symbol));
                    prop_assert!(!set.unwanted().contains(&symbol) || !model.is_of_others(&symbol));
                }
                Step::Leave(client) => {
                    let gone: BTreeSet<String> =
                        set.client_left(client).into_iter().collect();
                    let mut expected = BTreeSet::new();
                    for (symbol, _) in model.wanted.clone() {
                        if model.release(client, &symbol) {
                            expected.insert(symbol);
                        }
                    }
                    prop_assert_eq!(gone, expected);
                }
                Step::Evict => {
                    let oldest = model.wanted.iter().position(|(one, _)| !model.is_of_others(one));
                    let oldest = oldest.map(|at| model.wanted.remove(at).0);
                    prop_assert_eq!(set.evict_lru(), oldest);
                }
                Step::Foreign(number, elsewhere) => {
                    let entry = (symbol(number), if elsewhere { 3 } else { TOKYO });
                    // A symbol that we registered stays ours, even if another program registers it again.
                    if model.registered.len() < REGISTER_MAX && model.registered.insert(entry.clone()) {
                        model.truly_of_others.insert(entry);
                        settle(&mut set, &mut model);
                    }
                }
                Step::Restart => {
                    model.registered.clear();
                    model.truly_of_others.clear();
                    settle(&mut set, &mut model);
                }
                Step::Settle => settle(&mut set, &mut model),
            }
            let newest: Vec<String> = model.wanted.iter().rev().map(|(one, _)| one.clone()).collect();
            prop_assert_eq!(set.batches().concat(), newest);
            for (symbol, _) in &model.wanted {
                prop_assert!(set.contains(symbol));
            }
        }
        // In the end the gateway has the wanted symbols and those of other programs, and no others.
        settle(&mut set, &mut model);
        let mut expected = model.truly_of_others.clone();
        expected.extend(model.wanted.iter().map(|(symbol, _)| (symbol.clone(), TOKYO)));
        prop_assert!(model.registered.is_subset(&expected));
        prop_assert_eq!(model.registered.len(), expected.len().min(REGISTER_MAX));
        // After that nothing of ours is left.
        for symbol in set.ours() {
            model.registered.remove(&(symbol, TOKYO));
        }
        prop_assert_eq!(model.registered, model.truly_of_others);
    }
}
