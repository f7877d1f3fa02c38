//! The public audit suite of GraphQL over HTTP, where Node.js is.

#![allow(clippy::print_stdout, reason = "what is skipped is told and counted")]

use std::process::Command;

use ranking::service::ServiceOptions;
use serde_json::Value;
use tests::{built, workspace_root};

use crate::common::{Served, Steady};

#[test]
fn the_public_audit_has_nothing_to_say() {
    let tools = match built::graphql_audit() {
        Ok(tools) => tools,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let served = Served::start(Steady, ServiceOptions::default());
    let mut command = Command::new("node");
    command.arg(workspace_root().join("tests/graphql-http/audit.mjs")).arg(tools);
    // The name of this machine, as a browser would send it.
    command.arg(format!("http://localhost:{}/graphql", served.address.port()));
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found.len() > 30, "{} audits", found.len());
    let told: Vec<String> = found
        .iter()
        .filter(|audit| audit["status"] != "ok")
        .map(|audit| {
            format!("{} {} {}: {}", audit["status"], audit["id"], audit["name"], audit["reason"])
        })
        .collect();
    println!("{} audits, {} not ok", found.len(), told.len());
    assert!(told.is_empty(), "{}", told.join("\n"));
}
