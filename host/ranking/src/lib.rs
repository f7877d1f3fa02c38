//! Ranks issues by a formula, day by day.
