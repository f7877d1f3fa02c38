//! The part about daily prices: the snapshot of rankings, and the views of `kumiki sql`.

use std::path::Path;

use anyhow::Result;
use pricestore::DataDir;
use ranking::console::{Console, ConsoleError, ConsoleOptions, View};
use ranking::{CancelToken, EngineOptions, RankEngine, RankError, SnapshotInfo};
use serde_json::{Value, json};

use crate::rank::{for_operator, snapshot_line};
use crate::terminal::{grouped, pairs};

/// What a folder holds for rankings and `kumiki sql`.
pub(crate) struct Prices {
    snapshot: Option<SnapshotInfo>,
    /// Each view with its number of rows.
    views: Vec<(View, u64)>,
}

impl Prices {
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let data = DataDir::new(folder);
        let snapshot = match RankEngine::open(folder, EngineOptions::single_query()) {
            Ok(engine) => Some(engine.snapshot()),
            Err(RankError::NoData(_)) => None,
            Err(error) => return Err(for_operator(error)),
        };
        let mut views = Vec::new();
        let console = match Console::open(&data, &ConsoleOptions::default()) {
            Err(ConsoleError::NoData(_)) => return Ok(Self { snapshot, views }),
            other => other?,
        };
        for view in console.views() {
            let sql = format!("SELECT count(*) FROM \"{}\"", view.name);
            let counted = console.query(&sql, &CancelToken::new())?;
            let rows = counted.rows.into_iter().flatten().flatten().next().unwrap_or_default();
            views.push((view.clone(), rows.parse()?));
        }
        Ok(Self { snapshot, views })
    }

    /// Prints the part; nothing where there is neither a snapshot nor a view.
    pub(crate) fn print(&self) {
        match &self.snapshot {
            Some(found) => println!("\n{}", snapshot_line(found)),
            None if self.views.iter().any(|(view, _)| view.name == "daily") => {
                println!("\nno snapshot of rankings yet; `kumiki rank publish` makes one");
            }
            None => {}
        }
        if self.views.is_empty() {
            return;
        }
        println!("\nviews of `kumiki sql`");
        let lines = self.views.iter().map(|(view, rows)| {
            let columns: Vec<&str> = view.columns.iter().map(|(name, _)| name.as_str()).collect();
            let rows = grouped(&rows.to_string());
            (view.name.as_str(), format!("{rows} rows: {}", columns.join(", ")))
        });
        print!("{}", pairs(&lines.collect::<Vec<_>>()));
    }

    pub(crate) fn snapshot_json(&self) -> Value {
        self.snapshot.as_ref().map_or(Value::Null, |found| {
            json!({
                "number": found.number, "issues": found.codes, "business_days": found.days,
                "first": found.first.to_string(), "last": found.last.to_string(),
            })
        })
    }

    pub(crate) fn views_json(&self) -> Vec<Value> {
        let view = |(view, rows): &(View, u64)| {
            let columns =
                view.columns.iter().map(|(name, kind)| json!({ "name": name, "type": kind }));
            json!({ "name": view.name, "rows": rows, "columns": columns.collect::<Vec<_>>() })
        };
        self.views.iter().map(view).collect()
    }
}
