//! Strategies in C, by zig's compiler, with bindings of the crate wit-bindgen-c.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

use super::{CONTRACT, Problem, TOOLS};
use crate::component;
use crate::environment::told;
use crate::project::Project;

/// Makes a component of `sma_cross.c`.
pub(super) fn build(project: &Project, out: &Path) -> Result<(), Problem> {
    let python = TOOLS.python(project).map_err(Problem::NoTools)?;
    let folder = project.target.join("languages/c");
    bindings(&project.root.join(CONTRACT), &folder)?;
    let module = folder.join("sma_cross.wasm");
    let mut command = Command::new(python);
    command.current_dir(&folder);
    // A reactor has no main; what it does not use of the C library imports nothing.
    command.args(["-m", "ziglang", "cc", "--target=wasm32-wasi", "-mexec-model=reactor"]);
    command.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wl,--strip-debug", "-I."]);
    command.args(["strategy.c", "strategy_component_type.o"]);
    command.arg(project.root.join("guests/languages/c/sma_cross.c"));
    command.arg("-o").arg(&module);
    let cache = project.target.join("languages/zig-cache");
    command.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache);
    told("zig cc", &mut command).map_err(|error| anyhow!(error))?;
    let module = fs::read(&module).with_context(|| format!("cannot read {}", module.display()));
    let component = component::from_module(&module?)?;
    fs::write(out, component).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(())
}

/// Writes the bindings of the contract: `strategy.h`, `strategy.c` and an object file with its type.
fn bindings(contract: &Path, folder: &Path) -> Result<()> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(contract)?;
    let world = resolve.select_world(&[package], Some("strategy"))?;
    let mut files = Files::default();
    let mut generator = wit_bindgen_c::Opts::default().build();
    generator.generate(&mut resolve, world, &mut files)?;
    fs::create_dir_all(folder)?;
    for (name, content) in files.iter() {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
