//! The tickers in one line: all of them, or those around the selected one where there is no room for all.

use ratatui::text::Span;

/// Stands where there are more tickers.
pub(super) const MORE: &str = "…";

/// Which of the names are shown in so many columns, each with one more on both sides: as many as one line takes, line
/// after line, and of these lines the one with the selected name. That one is shown whatever the width.
pub(super) fn shown(names: &[String], selected: usize, width: usize) -> std::ops::Range<usize> {
    let columns = |name: &String| Span::raw(name).width() + 2;
    if names.iter().map(columns).sum::<usize>() <= width {
        return 0..names.len();
    }
    let room = width.saturating_sub(2 * Span::raw(MORE).width());
    let (mut first, mut taken) = (0, 0);
    for (index, name) in names.iter().enumerate() {
        if index > first && taken + columns(name) > room {
            if index > selected {
                return first..index;
            }
            (first, taken) = (index, 0);
        }
        taken += columns(name);
    }
    first..names.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_name_is_among_those_that_are_shown() {
        let names: Vec<String> = (7_201..=7_212).map(|one: u32| one.to_string()).collect();
        assert_eq!(shown(&names, 11, 72), 0..12);
        // One column less: 11 of 6 columns would fit, but for what says that there are more.
        for (selected, range) in [(0, 0..11), (10, 0..11), (11, 11..12)] {
            assert_eq!(shown(&names, selected, 71), range, "{selected}");
        }
        for (selected, range) in [(0, 0..5), (4, 0..5), (5, 5..10), (9, 5..10), (10, 10..12)] {
            assert_eq!(shown(&names, selected, 32), range, "{selected}");
        }
        for width in [0, 5, 13] {
            assert_eq!(shown(&names, 7, width), 7..8, "{width}");
        }
        assert_eq!(shown(&names[..1], 0, 0), 0..1);
    }
}
