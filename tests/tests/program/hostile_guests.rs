//! Guests that are made to harm, through the real program: too much to compile, failing while they are
//! made, and speaking to the terminal.

#![allow(clippy::print_stderr, reason = "figures of an attack, and what is skipped")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use domain::GuestLimit;
use tests::user_folder::{Said, UserFolder};
use tests::{built, wat};
use wit_component::StringEncoding;

use crate::output_limits::watched;

/// The strategy failed.
const STRATEGY_FAILED: i32 = 3;
/// The user stopped it.
const INTERRUPTED: i32 = 130;
/// Most memory that compiling a guest within the limits may take.
const MEMORY_BYTES_MAX: u64 = 700_000_000;
/// Most memory that refusing one may take.
const MEMORY_BYTES_REFUSED_MAX: u64 = 100_000_000;
/// Most memory that refusing one of 20 MB may take.
const MEMORY_BYTES_READ_MAX: u64 = 200_000_000;

/// Writes a component around a module's text as `<name>.wasm`; gives its path and the begin of its hash.
fn guest(user: &UserFolder, name: &str, module: &str) -> (PathBuf, String) {
    let bytes = wat::component(module, StringEncoding::UTF8);
    let path = user.path(&format!("{name}.wasm"));
    fs::write(&path, &bytes).unwrap();
    (path, sandbox::sha256(&bytes)[..12].to_owned())
}

fn run_of(path: &Path, more: &str) -> String {
    format!(
        "replay run {} --data data --instrument 7203.TSE --quiet --out run {more}",
        path.display()
    )
}

fn holds(peak: Option<u64>, most: u64) {
    match peak {
        Some(peak) => assert!(peak < most, "{peak} bytes of memory"),
        None => eprintln!("skipped: this system does not tell the memory of a process"),
    }
}

/// Loops with locals that cost so many hundredths of what one function may.
fn loops_of(percent: u64) -> String {
    let allowed = GuestLimit::Function.default_value() * percent / 100;
    // Each loop merges each local twice, coming in and going round, and that costs eight units each.
    let side = usize::try_from((allowed / 16).isqrt()).unwrap();
    wat::with_loops(side, side)
}

#[test]
fn a_function_that_costs_too_much_is_not_compiled() {
    let user = UserFolder::compiling().sampled(1, 200);
    let (path, hash) = guest(&user, "deep-loops", &loops_of(110));
    eprintln!("{} bytes", fs::metadata(&path).unwrap().len());
    let (code, errors, peak) = watched(&user, &run_of(&path, ""));
    assert_eq!(code, STRATEGY_FAILED, "{errors}");
    let allowed = GuestLimit::Function.default_value();
    for expected in [
        format!("error: strategy `deep-loops` ({hash}), in `compile`, has a function (number "),
        format!(" units to compile; {allowed} are allowed; "),
        GuestLimit::Function.advice(allowed),
    ] {
        assert!(errors.contains(&expected), "{expected} is missing in {errors}");
    }
    assert!(!user.path("run").exists(), "nothing was run");
    holds(peak, MEMORY_BYTES_REFUSED_MAX);
    // Every command that loads it says the same.
    let said = user.said(&format!("strategy check {}", path.display()));
    assert!(said.code == STRATEGY_FAILED && said.errors == errors, "{said:?}");
    let sweep = run_of(&path, "--grid a=1,2").replace("replay run", "replay sweep");
    let said = user.said(&sweep);
    assert!(said.code == STRATEGY_FAILED && said.errors == errors, "{said:?}");
}

/// What was compiled before is refused all the same.
#[test]
fn what_a_function_may_cost_does_not_depend_on_what_was_compiled_before() {
    let user = UserFolder::compiling().sampled(1, 200);
    let (path, _) = guest(&user, "loops", &wat::with_loops(20, 20));
    let built_in = "replay run sma-cross --data data --instrument 7203.TSE --quiet";
    for (run, cost) in [(run_of(&path, ""), 1_000), (built_in.to_owned(), 100)] {
        user.good(&run);
        let (code, errors) = user.bad(&format!("{run} --guest-limit function={cost}"));
        assert!(code == STRATEGY_FAILED && errors.contains(" units to compile; "), "{errors}");
        user.good(&run);
    }
    let (path, _) = guest(&user, "deep-loops", &loops_of(110));
    let most = GuestLimit::Function.default_value() * 2;
    for _ in 0..2 {
        user.good(&run_of(&path, &format!("--guest-limit function={most}")));
        let (code, errors) = user.bad(&run_of(&path, ""));
        assert!(code == STRATEGY_FAILED && errors.contains(" units to compile; "), "{errors}");
    }
}

/// A strategy that makes an instance of a component that makes two of another one, and so on: its sections with
/// those of a component of that kind behind them.
fn doubled_instances(levels: usize) -> Vec<u8> {
    // In the place of the one component that there is in the strategy already.
    let mut components = "(component) (component $c0)".to_owned();
    for level in 1..levels {
        components += &format!(
            "(component $c{level} (alias outer 1 $c{} (component $below))
               (instance (instantiate $below)) (instance (instantiate $below)))",
            level - 1
        );
    }
    let text = format!("(component {components} (instance (instantiate $c{})))", levels - 1);
    const HEADER: usize = 8;
    let more = wat::binary(&text);
    // The header, and the section of an empty component.
    let empty = HEADER + 2 + HEADER;
    let mut bytes = wat::component(&wat::with_functions(0), StringEncoding::UTF8);
    bytes.extend_from_slice(&more[empty..]);
    bytes
}

/// Ten kilobytes that stand for a million instances, and functions that each cost a thousand times their bytes: both
/// are counted, and nothing of them is put together or compiled.
#[test]
fn what_stands_for_too_much_is_not_compiled() {
    let user = UserFolder::compiling().sampled(1, 200);
    let doubled = user.path("doubled.wasm");
    fs::write(&doubled, doubled_instances(20)).unwrap();
    let functions = usize::try_from(domain::limits::COMPONENT_ITEMS_MAX).unwrap();
    let (many, _) = guest(&user, "many", &wat::with_functions(functions));
    for (path, told) in [
        (doubled, " or more instances of modules and components; 1024 are allowed"),
        (many, " or more functions, types, imports, exports and the like; 65536 are allowed"),
    ] {
        for command in [run_of(&path, ""), format!("strategy check {}", path.display())] {
            let (code, errors, peak) = watched(&user, &command);
            assert_eq!(code, STRATEGY_FAILED, "{errors}");
            assert!(errors.contains(", in `compile`, ") && errors.contains(told), "{errors}");
            holds(peak, MEMORY_BYTES_REFUSED_MAX);
        }
        assert!(!user.path("run").exists(), "nothing was run");
    }
}

/// The strategy with further sections of a component's outermost level.
fn with_sections(text: &str) -> Vec<u8> {
    const HEADER: usize = 8;
    let mut bytes = wat::component(&wat::with_functions(0), StringEncoding::UTF8);
    bytes.extend_from_slice(&wat::binary(&format!("(component {text})"))[HEADER..]);
    bytes
}

/// A command that is refused because of too many parts, with at most so much memory.
fn has_too_many_parts(user: &UserFolder, command: &str, name: &str, memory: u64) {
    let (code, errors, peak) = watched(user, command);
    let told = " or more functions, types, imports, exports and the like; 65536 are allowed";
    assert_eq!(code, STRATEGY_FAILED, "{name}: {errors}");
    assert!(errors.contains(", in `compile`, ") && errors.contains(told), "{name}: {errors}");
    holds(peak, memory);
}

/// Each part of a type counts as one thing: few types can stand for as much as many.
#[test]
fn parts_of_types_count() {
    let user = UserFolder::compiling().sampled(1, 200);
    let listed =
        |count: usize, of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<String>();
    let allowed = usize::try_from(domain::limits::COMPONENT_ITEMS_MAX).unwrap();
    // How many parts a type may have differs; the type itself counts too.
    for (kind, parts, of_one) in [
        ("enum", 5_000, format!("(type (enum {}))", listed(5_000, &|n| format!("\"e{n}\" ")))),
        (
            "variant",
            5_000,
            format!("(type (variant {}))", listed(5_000, &|n| format!("(case \"c{n}\")"))),
        ),
        ("flags", 32, format!("(type (flags {}))", listed(32, &|n| format!("\"f{n}\" ")))),
        ("tuple", 5_000, format!("(type (tuple {}))", "u8 ".repeat(5_000))),
        (
            "record",
            5_000,
            format!("(type (record {}))", listed(5_000, &|n| format!("(field \"r{n}\" u8)"))),
        ),
        (
            "parameters",
            900,
            format!("(type (func {}))", listed(900, &|n| format!("(param \"p{n}\" u8)"))),
        ),
        ("module", 5_000, format!("(core type (module {}))", "(type (func))".repeat(5_000))),
    ] {
        let path = user.path("parts.wasm");
        let check = format!("strategy check {}", path.display());
        fs::write(&path, with_sections(&of_one)).unwrap();
        let said = user.said(&check);
        assert_eq!(said.code, 0, "{kind}: {said:?}");
        // What there is to the strategy besides is less than one type of each kind.
        let most = allowed / (parts + 1) + 1;
        fs::write(&path, with_sections(&of_one.repeat(most))).unwrap();
        for command in [check, run_of(&path, "")] {
            has_too_many_parts(&user, &command, kind, MEMORY_BYTES_REFUSED_MAX);
        }
        assert!(!user.path("run").exists(), "{kind}: nothing was run");
    }
}

/// A section with so many things of these bytes, behind what stands before sections.
fn with_many(before: &[u8], id: u8, count: u32, of: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let mut inside = leb(count as usize);
    (0..count).for_each(|number| inside.extend(of(number)));
    let mut bytes = before.to_vec();
    bytes.push(id);
    bytes.extend(leb(inside.len()));
    bytes.extend(inside);
    bytes
}

/// A number as WebAssembly writes one, seven bits a byte.
fn leb(mut left: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while left >= 0x80 {
        bytes.push((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    bytes
}

/// Core modules are counted before they are validated, alone and inside of a component, whatever they say of a
/// contract.
#[test]
fn core_modules_of_too_many_parts_are_not_even_validated() {
    const MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const TYPES: u8 = 1;
    const EXPORTS: u8 = 7;
    const CORE_MODULE: u8 = 1;
    let user = UserFolder::compiling().sampled(1, 200);
    // Sixteen numbers each, of another kind in each type.
    let types = with_many(MODULE, TYPES, 900_000, |number| {
        let mut of = vec![0x60_u8, 16];
        of.extend((0..16_u32).map(|place| 0x7f - ((number >> (2 * place)) & 3) as u8));
        of.push(0);
        of
    });
    let one_function = wat::binary(r#"(module (import "a" "b" (func)))"#);
    let exports = with_many(&one_function, EXPORTS, 900_000, |number| {
        let name = format!("e{number}");
        let mut of = leb(name.len());
        of.extend(name.as_bytes());
        of.extend([0_u8, 0]);
        of
    });
    let mut inside = wat::component(&wat::with_functions(0), StringEncoding::UTF8);
    inside.push(CORE_MODULE);
    inside.extend(leb(types.len()));
    inside.extend(&types);
    for (name, bytes) in [("types", types), ("exports", exports), ("inside", inside)] {
        let path = user.path(&format!("{name}.wasm"));
        fs::write(&path, &bytes).unwrap();
        for command in [run_of(&path, ""), format!("strategy check {}", path.display())] {
            has_too_many_parts(&user, &command, name, MEMORY_BYTES_READ_MAX);
        }
        assert!(!user.path("run").exists(), "{name}: nothing was run");
    }
}

/// One calculation so long that the compiler keeps every step of it, with another constant in each.
fn chain_of(steps: u64) -> String {
    let step = |number: u64| {
        // Spread over all bits: no two of them are put together to the same constant.
        let constant = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
        format!("i64.const {constant} i64.xor ")
    };
    let steps: String = (0..steps).map(step).collect();
    wat::with_fields(&format!("(func (param i64) (result i64) local.get 0 {steps})"))
}

/// Units of a step of such a chain: two instructions, and what putting two constants together costs.
const CHAIN_UNITS: u64 = 18;
/// Units of each way out of a `br_table`, at least.
const TARGET_UNITS: u64 = 40;

/// A function with so many ways out of `br_table`s, each to one of the blocks around.
fn tables_of(targets: u64, tables: u64, blocks: u64) -> String {
    let (begin, end) = (
        "block ".repeat(usize::try_from(blocks).unwrap()),
        "end ".repeat(usize::try_from(blocks).unwrap()),
    );
    // The last one is the default.
    let ways: String =
        (0..targets / tables).map(|number| format!("{} ", number % blocks + 1)).collect();
    let table = format!("block memory.size br_table {ways} end ");
    let tables = table.repeat(usize::try_from(tables).unwrap());
    wat::with_fields(&format!("(func {begin}{tables}{end})"))
}

#[test]
fn compiling_what_is_allowed_takes_bounded_memory() {
    let user = UserFolder::compiling().sampled(1, 200);
    let allowed = GuestLimit::Function.default_value();
    let chain = chain_of(allowed / CHAIN_UNITS - 10);
    let targets = allowed / TARGET_UNITS * 95 / 100;
    for (name, module) in [
        ("deep-loops", loops_of(90)),
        ("chain", chain),
        ("one-table", tables_of(targets, 1, 20)),
        ("tables", tables_of(targets, 10, 20)),
    ] {
        let (path, _) = guest(&user, name, &module);
        let (code, errors, peak) = watched(&user, &run_of(&path, ""));
        eprintln!("{name}: {peak:?} bytes of memory");
        assert_eq!(code, 0, "{errors}");
        holds(peak, MEMORY_BYTES_MAX);
    }
    let targets = allowed / TARGET_UNITS + 100;
    for (name, module) in [
        ("long-chain", chain_of(allowed / CHAIN_UNITS + 10)),
        ("long-table", tables_of(targets, 1, 1)),
        ("long-tables", tables_of(targets, 10, 20)),
        ("many-blocks", tables_of(targets, 10, 120)),
    ] {
        let (path, _) = guest(&user, name, &module);
        let (code, errors, peak) = watched(&user, &run_of(&path, ""));
        assert_eq!(code, STRATEGY_FAILED, "{name}: {errors}");
        assert!(errors.contains(" units to compile; "), "{name}: {errors}");
        holds(peak, MEMORY_BYTES_REFUSED_MAX);
    }
}

/// Functions that are allowed each, and too much together.
#[test]
fn functions_that_cost_too_much_together_are_not_compiled() {
    let user = UserFolder::compiling().sampled(1, 200);
    let (one, all) = (GuestLimit::Function, GuestLimit::Functions);
    let count = all.default_value() / (one.default_value() * 9 / 10) + 1;
    let side = usize::try_from((one.default_value() * 9 / 10 / 16).isqrt()).unwrap();
    let functions = wat::loops(side, side).repeat(usize::try_from(count).unwrap());
    let (path, hash) = guest(&user, "many-loops", &wat::with_fields(&functions));
    let (code, errors, peak) = watched(&user, &run_of(&path, ""));
    assert_eq!(code, STRATEGY_FAILED, "{errors}");
    let allowed = all.default_value();
    for expected in [
        format!(
            "error: strategy `many-loops` ({hash}), in `compile`, has functions that cost at least "
        ),
        format!(" units to compile together; {allowed} are allowed; "),
        all.advice(allowed),
    ] {
        assert!(errors.contains(&expected), "{expected} is missing in {errors}");
    }
    holds(peak, MEMORY_BYTES_REFUSED_MAX);
    // Also where it was compiled before, with a limit of the user.
    let built_in = "replay run sma-cross --data data --instrument 7203.TSE --quiet";
    user.good(built_in);
    let (code, errors) = user.bad(&format!("{built_in} --guest-limit functions=1000"));
    assert!(code == STRATEGY_FAILED && errors.contains("--guest-limit functions=2000"), "{errors}");
    user.good(&format!("{built_in} --guest-limit functions={}", allowed * 2));
}

/// A calculation outside of all functions, which the compiler keeps whole.
#[test]
fn constants_that_cost_too_much_are_not_compiled() {
    let user = UserFolder::compiling().sampled(1, 200);
    let global = |steps: usize| {
        let steps = "i32.const 1 i32.add ".repeat(steps);
        wat::with_fields(&format!("(global i32 i32.const 1 {steps})"))
    };
    let allowed = GuestLimit::Function.default_value();
    // Two operations a step, of two units each.
    let most = usize::try_from(allowed / 4).unwrap() - 10;
    let (path, _) = guest(&user, "constants", &global(most));
    let (code, errors, peak) = watched(&user, &run_of(&path, ""));
    assert_eq!(code, 0, "{errors}");
    holds(peak, MEMORY_BYTES_MAX);
    let (path, hash) = guest(&user, "more-constants", &global(most + 20));
    let (code, errors, peak) = watched(&user, &run_of(&path, ""));
    assert_eq!(code, STRATEGY_FAILED, "{errors}");
    let expected = format!(
        "strategy `more-constants` ({hash}), in `compile`, has constants in globals and elements that cost"
    );
    assert!(errors.contains(&expected), "{errors}");
    assert!(errors.contains(&GuestLimit::Function.advice(allowed)), "{errors}");
    holds(peak, MEMORY_BYTES_REFUSED_MAX);
}

/// Lists in lists, which would be half a megabyte each with a line for every value: a document's outer two levels
/// alone have lines.
#[test]
fn manifests_and_answers_have_no_more_than_the_reported_parameters_allow() {
    let user = UserFolder::compiling().sampled(1, 200);
    let (deep, count) = (110, GuestLimit::Parameters.default_value());
    let value = format!("{}0{}{}", "[".repeat(deep), ",0".repeat(1_900), "]".repeat(deep));
    // Names of two letters each, on one line: the text's comment names the place too.
    let reports = "(local $i i32)
        loop $more
          i32.const 512 local.get $i i32.const 16 i32.div_u i32.const 65 i32.add i32.store8
          i32.const 513 local.get $i i32.const 16 i32.rem_u i32.const 65 i32.add i32.store8
          call $tell
          local.get $i i32.const 1 i32.add local.tee $i i32.const COUNT i32.lt_u br_if $more
        end";
    let module = wat::whole("reports")
        .replace("N_BYTES", "2")
        .replace("V_BYTES", &value.len().to_string())
        .replace("VALUE", &value)
        .replace("INIT", &reports.replace("COUNT", &count.to_string()).replace('\n', " "))
        .replace("START", "");
    let (path, _) = guest(&user, "reports", &module);
    let printed = user.good(&run_of(&path, "--format json"));
    let manifest = fs::read_to_string(user.path("run/manifest.json")).unwrap();
    let verify = format!("replay verify run --quiet --strategy {}", path.display());
    let verified = user.good(&format!("{verify} --format json"));
    let other = user.bad(&format!("{verify} --guest-limit parameters=1 --format json")).0;
    assert_eq!(other, 4);
    let shown = user.good(&format!("strategy check {} --format json", path.display()));
    let sweep = run_of(&path, "--grid a=1,2 --format json");
    let sweep =
        user.good(&sweep.replace("replay run", "replay sweep").replace("--out run", "--out sweep"));
    let swept = fs::read_to_string(user.path("sweep/sweep.json")).unwrap();
    for (what, text, lines) in [
        ("manifest", &manifest, 200 + count),
        ("run", &printed, 200),
        ("verify", &verified, 40),
        ("check", &shown, 40 + 2 * count),
        ("sweep", &sweep, 100),
        ("sweep.json", &swept, 200),
    ] {
        let (bytes, found) = (text.len(), text.lines().count() as u64);
        // The check tells them twice: as they are, and by default.
        let most = if what == "check" { 4 << 20 } else { 2 << 20 };
        assert!(bytes < most && found < lines, "{what}: {bytes} bytes, {found} lines");
    }
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["parameters_effective"].as_object().unwrap().len() as u64, count);
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["manifest"], manifest);
    user.good("replay report run");
}

#[test]
fn compiling_ends_at_its_deadline() {
    let user = UserFolder::compiling().sampled(1, 200);
    let strategy = built::strategy("sma-cross");
    // The one that came with the program is compiled already.
    let path = user.path("mine.wasm");
    fs::copy(strategy, &path).unwrap();
    let strategies = user.path("none");
    fs::create_dir(&strategies).unwrap();
    let more = format!("--guest-limit compile=1 --strategies {}", strategies.display());
    let (code, errors) = user.bad(&run_of(&path, &more));
    assert_eq!(code, STRATEGY_FAILED, "{errors}");
    let hash = &sandbox::sha256(&fs::read(&path).unwrap())[..12];
    assert_eq!(
        errors,
        format!(
            "error: strategy `mine` ({hash}), in `compile`, was not compiled within 1 ms; `--guest-limit \
             compile=2` allows more\n"
        )
    );
    user.good(&run_of(&path, ""));
}

/// The interrupt is heard while the compiler works on what would take it minutes.
#[cfg(target_os = "linux")]
#[test]
fn compiling_hears_the_wish_for_an_end() {
    let user = UserFolder::compiling().sampled(1, 200);
    let (path, _) = guest(&user, "deep-loops", &loops_of(800));
    let most = GuestLimit::Function.most();
    let mut child = user
        .command(&run_of(&path, &format!("--guest-limit function={most}")))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The handler stands before the compiler begins.
    let compiles = || {
        let threads = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        threads.flatten().any(|thread| {
            fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name == "compile\n")
        })
    };
    while !compiles() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(sent.success());
    let status = child.wait().unwrap();
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
    assert_eq!(status.code(), Some(INTERRUPTED), "{errors}");
    assert_eq!(errors, "interrupted while the strategy was compiled; nothing was run\n");
    assert!(!user.path("run").exists());
}

/// Calls that leave the guest's code for the host's cost more fuel than an instruction, also where they do nothing.
#[test]
fn growing_and_operations_on_many_bytes_cost_fuel() {
    let user = UserFolder::compiling().sampled(1, 20);
    let nothing = "(i32.const 0) (i32.const 0) (i32.const 0)";
    let operations = [
        ("no-operation", String::new()),
        ("memory-grow", "(drop (memory.grow (i32.const 0)))".to_owned()),
        ("table-grow", "(drop (table.grow $t (ref.null func) (i32.const 0)))".to_owned()),
        ("memory-fill", format!("(memory.fill {nothing})")),
        ("memory-copy", format!("(memory.copy {nothing})")),
        ("memory-init", format!("(memory.init $d {nothing})")),
        ("table-fill", "(table.fill $t (i32.const 0) (ref.null func) (i32.const 0))".to_owned()),
        ("table-copy", format!("(table.copy $t $t {nothing})")),
        ("table-init", format!("(table.init $t $e {nothing})")),
    ];
    for (name, operation) in operations {
        // Some twelve units a turn without what the operation costs besides.
        let often = format!(
            "(table $t 1 funcref) (elem $e funcref (ref.null func)) (data $d \"x\")
             (func $often (local $turn i32)
               (loop $more
                 {operation}
                 (local.set $turn (i32.add (local.get $turn) (i32.const 1)))
                 (br_if $more (i32.lt_u (local.get $turn) (i32.const 40000)))))"
        );
        let answers = "\n    local.get 9)";
        let in_start = wat::with_fields(&format!("{often} (start $often)"));
        let in_event = wat::with_fields(&often);
        assert!(in_event.contains(answers));
        let in_event = in_event.replace(answers, &format!("\n    call $often{answers}"));
        for (module, place, limit) in
            [(in_start, "instantiation", "lifecycle-fuel"), (in_event, "advance", "fuel")]
        {
            let (path, hash) = guest(&user, name, &module);
            user.good(&run_of(&path, &format!("--guest-limit {limit}=10000000")));
            let said = user.said(&run_of(&path, &format!("--guest-limit {limit}=1000000")));
            if operation.is_empty() {
                assert_eq!(said.code, 0, "{said:?}");
                continue;
            }
            assert_eq!(said.code, STRATEGY_FAILED, "{name}, {place}: {said:?}");
            for told in [
                format!("error: strategy `{name}` ({hash}), in `{place}`"),
                "used up its fuel of 1000000 units".to_owned(),
                format!("`--guest-limit {limit}=2000000` allows more"),
            ] {
                assert!(said.errors.contains(&told), "{name}, {told}: {said:?}");
            }
        }
    }
}

#[test]
fn what_fails_while_it_is_made_is_told_by_name() {
    let user = UserFolder::compiling().sampled(1, 200);
    for (name, export, what, advice) in [
        (
            "start-loops",
            "instantiation",
            "used up its fuel of 1000000 units",
            "lifecycle-fuel=2000000",
        ),
        ("start-traps", "instantiation", "trapped: ", ""),
        (
            "start-grows",
            "instantiation",
            "used up its fuel of 1000000 units",
            "lifecycle-fuel=2000000",
        ),
        (
            "initialize-loops",
            "_initialize",
            "used up its fuel of 1000000 units",
            "lifecycle-fuel=2000000",
        ),
        ("initialize-traps", "_initialize", "trapped: ", ""),
        ("initialize-recurses", "_initialize", "used up its stack of 1048576 bytes", ""),
        (
            "many-memories",
            "instantiation",
            "bytes of memory; 67108864 are allowed",
            "memory=128MiB",
        ),
        ("large-table", "instantiation", "produced 20001 table entries", "table=40000"),
    ] {
        // Where growing comes to nothing, it can go on for as long as there is fuel.
        let memory = r#"(memory (export "memory") 1"#;
        let module = match name {
            "start-grows" => wat::module(name).replace(memory, &format!("{memory} 1")),
            _ => wat::module(name),
        };
        let (path, hash) = guest(&user, name, &module);
        let (code, errors) = user.bad(&run_of(&path, "--guest-limit lifecycle-fuel=1000000"));
        assert_eq!(code, STRATEGY_FAILED, "{name}: {errors}");
        let begin = format!("error: strategy `{name}` ({hash}), in `{export}`");
        assert!(errors.starts_with(&begin), "{begin}: {errors}");
        assert!(errors.contains(what), "{name}, {what}: {errors}");
        let flag = format!("`--guest-limit {advice}` allows more");
        assert!(advice.is_empty() || errors.contains(&flag), "{name}, {flag}: {errors}");
        assert!(!errors.contains("the WebAssembly engine does not start"), "{name}: {errors}");
        let manifest = fs::read_to_string(user.path("run/manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!((&manifest["status"], &manifest["partial"]), (&"failed".into(), &true.into()));
        let fault = manifest["fault"].as_str().unwrap();
        assert_eq!(format!("error: {fault}\n"), errors);
    }
}

/// Nothing of a guest steers what shows it, and no line of it looks like one of ours.
fn is_harmless(what: &str, said: &Said) {
    for text in [&said.out, &said.errors] {
        let steers = text.chars().find(|letter| *letter != '\n' && domain::text::steers(*letter));
        assert_eq!(steers, None, "{what}: {text}");
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{what}: {text}");
    }
}

#[test]
fn texts_of_a_guest_do_not_steer_the_terminal() {
    let user = UserFolder::compiling().sampled(1, 200);
    let guest = built::test_guest("steers-terminal");
    let panics = run_of(&guest, "");
    let refuses = run_of(&guest, "--param refuses=true");
    let sweep = run_of(&guest, "--grid at=2,1000").replace("--out run", "--out sweep");
    let check = format!("strategy check {} --param refuses=true", guest.display());
    for (command, code, shows) in [
        (panics.clone(), STRATEGY_FAILED, r"    \u001b[2J\u009b2J\u000d"),
        (format!("{panics} --log-format json"), STRATEGY_FAILED, r"    \\u001b[2J"),
        (format!("{panics} --format json"), STRATEGY_FAILED, r"\\u001b[2J"),
        (refuses, STRATEGY_FAILED, r"I refuse \u001b[2J\u009b2J"),
        (check.clone(), STRATEGY_FAILED, r"I refuse \u001b[2J"),
        (format!("{check} --format json"), STRATEGY_FAILED, r"I refuse \\u001b[2J"),
        ("replay narrative run".to_owned(), 0, r"\u001b[2J\u009b2J"),
        ("replay narrative run --format json".to_owned(), 0, r"\u001b[2J\u009b2J"),
        (sweep.replace("replay run", "replay sweep"), 0, "first failed run: 0 (at=2): "),
    ] {
        let said = user.said(&command);
        assert_eq!(said.code, code, "{command}: {}", said.errors);
        is_harmless(&command, &said);
        let all = format!("{}{}", said.out, said.errors);
        assert!(all.contains(shows), "{command}: {shows} is missing in {all}");
    }
    // What was written into the log is there as it was said.
    let log = fs::read_to_string(user.path("run/log.json")).unwrap();
    assert!(log.contains(r"\u001b[2J"), "{log}");
}
