//! Phase 1 sends no order: nothing in the venue or in its dialects names an endpoint for one.

use std::fs;
use std::path::Path;

/// Parts of the vendor's paths for orders, in small letters.
const ORDER_ENDPOINTS: [&str; 2] = ["sendorder", "cancelorder"];

/// Every source below a folder, or the file that it is.
fn sources(path: &Path, read: &mut Vec<(String, String)>) {
    if path.is_dir() {
        let mut entries: Vec<_> =
            fs::read_dir(path).unwrap().map(|one| one.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| sources(entry, read));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        read.push((path.display().to_string(), fs::read_to_string(path).unwrap().to_lowercase()));
    }
}

#[test]
fn no_source_names_an_endpoint_for_orders() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places = [
        "host/venues/src/local_broker.rs",
        "host/venues/src/local_broker",
        "guests/dialects/local-broker-spec",
        "guests/dialects/local-broker-kabusapi",
        "guests/dialect-sdk/src/gateway.rs",
        "guests/dialect-sdk/src/gateway",
    ];
    for place in places {
        let mut read = Vec::new();
        sources(&root.join(place), &mut read);
        assert!(!read.is_empty(), "there is nothing in {place}");
        for (path, text) in read {
            let found = ORDER_ENDPOINTS.iter().find(|name| text.contains(**name));
            assert_eq!(found, None, "{path}");
        }
    }
}

/// The scan above would find such a name: the simulated gateway has them.
#[test]
fn the_names_are_those_of_the_simulated_gateway() {
    let mut read = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/src/local_broker"), &mut read);
    for name in ORDER_ENDPOINTS {
        assert!(read.iter().any(|(_, text)| text.contains(name)), "{name}");
    }
}
