//! Components of other shapes than the SDK's: other encodings, other versions, other wiring.

use domain::strategy::{LogLevel, StrategyRuntime};
use domain::{OrderEvent, TsNanos};
use sandbox::{Artefact, CallPath, Limits, Sandbox, SandboxConfig, StrategyModule};
use tests::wat;
use wit_component::StringEncoding;

use crate::common::{instrument, one, prepared, split};

/// Makes it and drives it through its life; what it wrote into the log.
fn lived(module: &StrategyModule) -> Vec<String> {
    let mut instance = module.instantiate(Limits::default()).unwrap();
    instance.init("{}", &[instrument()]).unwrap();
    instance.start(TsNanos::from_nanos(1)).unwrap();
    for number in 1..4 {
        assert_eq!(one(&mut instance, number).unwrap().reached, 1);
    }
    instance.stop(TsNanos::from_nanos(2)).unwrap();
    let log = instance.take_log();
    assert!(log.iter().all(|line| line.level == LogLevel::Info));
    log.into_iter().map(|line| line.message).collect()
}

fn forced(bytes: &[u8], call_path: CallPath) -> Result<StrategyModule, sandbox::SandboxError> {
    let config = SandboxConfig { call_path: Some(call_path), ..SandboxConfig::default() };
    Sandbox::new(config).unwrap().prepare(Artefact::from_bytes("guest", bytes.to_vec()).unwrap())
}

const SAID: &str = "かぶ";

#[test]
fn texts_are_read_in_the_encoding_that_the_component_says() {
    let units: Vec<u16> = SAID.encode_utf16().collect();
    let wide: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    // In the compact encoding the highest bit of the count says that it is UTF-16.
    let compact = units.len() | 1 << 31;
    let cases = [
        (StringEncoding::UTF8, SAID.as_bytes(), SAID.len(), CallPath::Direct, "one program"),
        (StringEncoding::UTF16, &wide, units.len(), CallPath::General, "its texts are UTF-16"),
        (
            StringEncoding::CompactUTF16,
            &wide,
            compact,
            CallPath::General,
            "its texts are Latin-1 or UTF-16",
        ),
    ];
    for (encoding, bytes, count, path, reason) in cases {
        let component = wat::component(&wat::speaking(bytes, count), encoding);
        let module = prepared("speaks", component.clone()).unwrap();
        assert_eq!(module.call_path(), path, "{encoding:?}");
        assert!(module.call_path_reason().starts_with(reason), "{}", module.call_path_reason());
        assert_eq!(lived(&module), [SAID], "{encoding:?}");
        assert_eq!(lived(&forced(&component, CallPath::General).unwrap()), [SAID]);
        let direct = forced(&component, CallPath::Direct);
        match path {
            CallPath::Direct => assert_eq!(lived(&direct.unwrap()), [SAID]),
            CallPath::General => {
                let error = direct.map(drop).unwrap_err().to_string();
                assert_eq!(error, format!("guest cannot be called directly: {reason}"));
            }
        }
    }
}

#[test]
fn latin_1_is_read_too() {
    let latin = b"\xa5en";
    let text = wat::speaking(latin, latin.len());
    let component = wat::component(&text, StringEncoding::CompactUTF16);
    assert_eq!(lived(&prepared("speaks", component).unwrap()), ["¥en"]);
}

#[test]
fn every_post_return_is_called() {
    let component = wat::component(&wat::whole("post-returns"), StringEncoding::UTF8);
    for path in [CallPath::Direct, CallPath::General] {
        let module = forced(&component, path).unwrap();
        assert!(lived(&module).is_empty());
        let mut instance = module.instantiate(Limits::default()).unwrap();
        instance.init("{}", &[instrument()]).unwrap();
        let event = OrderEvent {
            ts_event: TsNanos::from_nanos(1),
            client_order_id: "O-1".into(),
            venue_order_id: None,
            instrument: domain::InstrumentIx(0),
            side: domain::OrderSide::Buy,
            status: domain::OrderStatus::Accepted,
            kind: domain::OrderEventKind::Accepted,
            origin: domain::Origin::Strategy,
        };
        for _ in 0..3 {
            instance.on_order_events(std::slice::from_ref(&event)).unwrap();
            instance.on_account_events(&[split()]).unwrap();
        }
    }
}

#[test]
fn a_guest_of_a_later_minor_version_runs() {
    let text = wat::whole("post-returns").replace("@1.0.0", "@1.0.1");
    let component = wat::component_of_version(&text, "1.0.1");
    for path in [CallPath::Direct, CallPath::General] {
        assert!(lived(&forced(&component, path).unwrap()).is_empty());
    }
    let speaking = wat::speaking(SAID.as_bytes(), SAID.len()).replace("@1.0.0", "@1.4.2");
    let component = wat::component_of_version(&speaking, "1.4.2");
    for path in [CallPath::Direct, CallPath::General] {
        assert_eq!(lived(&forced(&component, path).unwrap()), [SAID]);
    }
}

#[test]
fn a_guest_of_another_major_version_is_refused_by_name() {
    let text = wat::whole("post-returns").replace("@1.0.0", "@2.0.0");
    let component = wat::component_of_version(&text, "2.0.0");
    let error = prepared("late", component).map(drop).unwrap_err().to_string();
    assert_eq!(
        error,
        "late is built for `kumiki:strategy/types@2.0.0`; this Kumiki runs strategies of every \
         version 1.x. Build it for that, or take a newer Kumiki"
    );
}

#[test]
fn names_of_the_program_do_not_matter() {
    let component = wat::component(&wat::whole("post-returns"), StringEncoding::UTF8);
    // Export and alias of the function and of its post-return.
    let renamed = wat::replaced(&component, "#advance", "#renamed");
    for path in [CallPath::Direct, CallPath::General] {
        assert!(lived(&forced(&renamed, path).unwrap()).is_empty());
    }
}

#[test]
fn a_composed_component_runs_on_the_general_path() {
    let inner = wat::component(&wat::speaking(b"from inside", 11), StringEncoding::UTF8);
    let imports = Artefact::from_bytes("inner", inner.clone()).unwrap().imports().to_vec();
    let module =
        prepared("composed", wat::composed(&inner, &imports, "kumiki:strategy/guest@1.0.0"))
            .unwrap();
    assert_eq!(module.call_path(), CallPath::General, "{}", module.call_path_reason());
    assert_eq!(lived(&module), ["from inside"]);
}
