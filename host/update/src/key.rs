//! The keys of the sources.

use keys::Key;

/// The market-data vendor's API key; the vendor's own tools have the second name.
pub const VENDOR_KEY: Key =
    Key::new("KUMIKI_JQUANTS_API_KEY", "jquants-api-key").or_variable("JQUANTS_API_KEY");
/// The public source's key, where it wants one.
pub const PUBLIC_KEY: Key = Key::new("KUMIKI_PUBLIC_API_KEY", "public-api-key");
/// All of them.
pub const KEYS: [Key; 2] = [VENDOR_KEY, PUBLIC_KEY];
