//! A third world on the general path: its text, a value of [`Contract`], generated bindings and the host's
//! side of its import. Nothing of its layout is written by hand, and it has the limits of all others.

use std::time::Duration;

use domain::GuestLimit;
use domain::fault::{Fault, FaultKind};
use wasmtime::component::{HasSelf, Linker};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, SourceMap};

use super::*;
use crate::cache::Code;
use crate::running::Running;
use crate::state::State;

mod bindings {
    wasmtime::component::bindgen!({
        path: "src/engine/third_world",
        world: "third",
        imports: { default: trappable },
    });
}

use bindings::kumiki::third::venue::{Host, Wire};

const TEXT: &str = include_str!("third_world/third.wit");

static THIRD: Contract = Contract {
    kind: "third",
    files: &[("third.wit", TEXT)],
    package: "kumiki:third",
    version: "1.0.0",
    world: "third",
    guest: "guest",
    guest_name: "kumiki:third/guest@1.0.0",
    imports: &["venue"],
    imports_shown: "only kumiki:third/venue@1.0.0",
    refuses_quotes: false,
    is_called_directly: true,
    fault_of: |identity, export, kind| {
        SandboxError::Fault(Box::new(Fault {
            component: identity.component,
            sha256: identity.sha256,
            export,
            ts_event: None,
            kind,
            backtrace: Vec::new(),
        }))
    },
};

/// The host's side: it takes even numbers of shares.
impl Host for State {
    fn send(&mut self, order: Wire) -> wasmtime::Result<Result<u32, String>> {
        Ok(match order.quantity % 2 {
            0 => Ok(u32::try_from(order.tag.len()).unwrap()),
            _ => Err(format!("{} is odd, {}", order.quantity, order.tag)),
        })
    }
}

/// The guest as a component, whose texts have an encoding.
fn component(text: &str, encoding: StringEncoding) -> Vec<u8> {
    let mut sources = SourceMap::default();
    sources.push_str("third.wit", TEXT);
    let mut resolve = Resolve::default();
    let package = resolve.push_group(sources.parse().map_err(|(_, error)| error).unwrap()).unwrap();
    let world = resolve.select_world(&[package], Some("third")).unwrap();
    let mut module = wat::parse_str(text).unwrap();
    embed_component_metadata(&mut module, &resolve, world, encoding).unwrap();
    let encoder = ComponentEncoder::default();
    encoder.validate(true).module(&module).and_then(|mut encoder| encoder.encode()).unwrap()
}

/// The guest, instantiated under limits.
fn running(limits: Limits, encoding: StringEncoding) -> Running<bindings::Third> {
    let config = SandboxConfig { call_path: Some(CallPath::General), ..SandboxConfig::default() };
    let sandbox = Sandbox::new(config).unwrap();
    let bytes = component(include_str!("third_world/third.wat"), encoding);
    let artefact = Artefact::from_bytes_as(&THIRD, "dialect", bytes).unwrap();
    let origin = sandbox.origin(artefact);
    let (cache, shipped) = (None, None);
    let task = Task { contract: &THIRD, limits, cache, shipped, stopped: &|| false };
    let Code::Component(code) = sandbox.compile(&origin.artefact, &task).unwrap().code else {
        panic!("the general path was asked for");
    };
    let mut linker = Linker::new(&sandbox.engine);
    bindings::Third::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state).unwrap();
    let ready = bindings::ThirdPre::new(linker.instantiate_pre(&code).unwrap()).unwrap();
    Running::make(&origin, limits, |store| ready.instantiate(store)).unwrap()
}

/// Sends an order through the guest.
fn order(
    guest: &mut Running<bindings::Third>,
    tag: &str,
    quantity: u64,
) -> Result<Result<u32, String>, FaultKind> {
    let fuel = 1_000_000;
    let called = guest
        .call(fuel, |third, store| third.kumiki_third_guest().call_order(store, tag, quantity));
    called.map_err(|failure| failure.kind)
}

#[test]
fn a_guest_of_a_third_world_is_called_by_its_generated_bindings_alone() {
    for encoding in [StringEncoding::UTF8, StringEncoding::UTF16, StringEncoding::CompactUTF16] {
        let mut guest = running(Limits::default(), encoding);
        assert_eq!(order(&mut guest, "買い", 100), Ok(Ok(6)), "{encoding:?}");
        assert_eq!(order(&mut guest, "売り", 7), Ok(Err("7 is odd, 売り".to_owned())));
    }
}

#[test]
fn it_has_the_limits_of_all_guests() {
    let utf8 = StringEncoding::UTF8;
    let mut guest = running(Limits::default(), utf8);
    let spin = |guest: &mut Running<bindings::Third>, fuel| {
        let called = guest.call(fuel, |third, store| third.kumiki_third_guest().call_spin(store));
        called.unwrap_err().kind
    };
    let per_event = GuestLimit::Fuel.default_value();
    assert_eq!(spin(&mut guest, 9_999), FaultKind::Fuel { budget: 9_999, per_event });
    let again = order(&mut guest, "a", 2).unwrap_err();
    assert!(again.to_string().contains("called after it had failed"), "{again}");

    let live = Limits { watchdog: Some(Duration::from_millis(30)), ..Limits::live() };
    let mut guest = running(live, utf8);
    assert_eq!(spin(&mut guest, u64::MAX), FaultKind::Watchdog { allowed_ms: 30 });

    let mut guest = running(Limits::default(), utf8);
    let grown =
        guest.call(1_000_000, |third, store| third.kumiki_third_guest().call_grow(store, 2_000));
    let allowed = Limits::default().memory_bytes;
    let asked = 2_001 << 16;
    assert_eq!(grown.unwrap_err().kind, FaultKind::Memory { asked, allowed });
}

#[test]
fn it_is_held_against_its_own_contract() {
    let strategy = r#"(component (import "kumiki:strategy/log@1.0.0" (instance)))"#;
    let bytes = wat::parse_str(strategy).unwrap();
    let error = Artefact::from_bytes_as(&THIRD, "other", bytes).unwrap_err().to_string();
    assert!(error.contains("a third may import only kumiki:third/venue@1.0.0"), "{error}");
    let bytes = component(include_str!("third_world/third.wat"), StringEncoding::UTF8);
    let error = Artefact::from_bytes("dialect", bytes).unwrap_err().to_string();
    assert!(error.contains("imports `kumiki:third/venue@1.0.0`"), "{error}");
}
