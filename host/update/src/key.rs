//! The keys and secret addresses of the sources.

use keys::Key;

/// The market-data vendor's API key; the vendor's own tools have the second name.
pub const VENDOR_KEY: Key =
    Key::new("KUMIKI_JQUANTS_API_KEY", "jquants-api-key").or_variable("JQUANTS_API_KEY");
/// The web broker's virtual address for prices, which a login gives for one day.
pub const WEB_BROKER_PRICE_URL: Key =
    Key::new("KUMIKI_WEB_BROKER_PRICE_URL", "web-broker-price-url");
/// The public source's key, where it wants one.
pub const PUBLIC_KEY: Key = Key::new("KUMIKI_PUBLIC_API_KEY", "public-api-key");
/// All of them.
pub const KEYS: [Key; 3] = [VENDOR_KEY, WEB_BROKER_PRICE_URL, PUBLIC_KEY];
