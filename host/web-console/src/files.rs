//! The page's files, in the program.

/// The page itself.
pub(crate) const PAGE: &str = "index.html";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// All files of the page by their names.
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../assets/", $name)))),*];
    };
}

files![
    "banners.js",
    "board.js",
    "bus.js",
    "catalog.js",
    "chart.js",
    "chart_panes.js",
    "console.css",
    "decimal.js",
    "dialogs.js",
    "dom.js",
    "entry.js",
    "equity.js",
    "frames.js",
    "index.html",
    "instrument.js",
    "language.js",
    "live_layout.js",
    "live_store.js",
    "load.js",
    "main.js",
    "market.js",
    "marks.js",
    "notices.js",
    "order_list.js",
    "order_table.js",
    "orders.js",
    "panes.js",
    "password.js",
    "pending.js",
    "positions.js",
    "refusals.js",
    "replay_layout.js",
    "replay_page.js",
    "runs.js",
    "series.js",
    "session.js",
    "shell.js",
    "socket.js",
    "state.js",
    "strategy.js",
    "strategy_params.js",
    "strategy_words.js",
    "submit.js",
    "tape.js",
    "texts.json",
    "ticket.js",
    "toasts.js",
    "venues.js",
    "venues_state.js",
    "watch.js",
];

/// Files of the reports that the page uses as they are.
const SHARED: [&str; 3] = ["axis.js", "format.js", "markers.js"];

/// A file of the page: its kind, and its text.
pub(crate) fn find(name: &str) -> Option<(&'static str, &'static str)> {
    let (name, text) = FILES.iter().find(|(known, _)| *known == name)?;
    Some((kind(name), text))
}

/// A file that the page shares with reports.
pub(crate) fn find_shared(name: &str) -> Option<(&'static str, &'static str)> {
    let name = SHARED.into_iter().find(|known| *known == name)?;
    Some((kind(name), results::report::part(name)))
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        _ => "text/html; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of all files together.
    const BYTES_MAX: usize = 400_000;

    #[test]
    fn every_file_is_served_and_all_are_small() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let entries = std::fs::read_dir(folder).unwrap();
        let mut there: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        let mut named: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        named.sort();
        assert_eq!(named, there);
        let bytes: usize = FILES.iter().map(|(_, text)| text.len()).sum();
        let shared: usize = SHARED.iter().map(|name| find_shared(name).unwrap().1.len()).sum();
        assert!(bytes + shared <= BYTES_MAX, "{bytes} and {shared} bytes");
        assert!(SHARED.iter().all(|name| !find_shared(name).unwrap().1.is_empty()));
        assert!(find("../src/lib.rs").is_none() && find("").is_none());
    }
}
