//! Which dialect a broker is spoken to in: a built-in one by its name, or a file.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::paths;

/// The ending of a dialect's file.
const ENDING: &str = "wasm";

/// Which dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A built-in one.
    BuiltIn(String),
    /// A file.
    File(PathBuf),
}

impl Dialect {
    /// A name is a built-in one; what looks like a path is one, relative to `folder`.
    pub(crate) fn of(text: &str, folder: &Path) -> Self {
        let path = Path::new(text);
        let looks_like_path = path.components().count() > 1
            || path.extension().is_some_and(|ending| ending == ENDING);
        if looks_like_path { Self::File(folder.join(path)) } else { Self::BuiltIn(text.to_owned()) }
    }

    /// Its name, as far as it can be told without reading it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::BuiltIn(name) => name,
            Self::File(path) => path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(),
        }
    }

    /// The dialect's file, be it there or not; `usual` where none is asked for. Built-in ones are in
    /// `dialects`, else beside the program.
    ///
    /// # Errors
    /// It cannot be found out where this program is.
    pub(crate) fn file(
        asked: Option<&Self>,
        usual: &str,
        dialects: Option<&Path>,
    ) -> Result<PathBuf> {
        let built_in = match asked {
            Some(Self::File(path)) => return Ok(path.clone()),
            Some(Self::BuiltIn(name)) => name,
            None => usual,
        };
        let folder = paths::dialects_folder(dialects)?;
        Ok(folder.join(format!("{built_in}.{ENDING}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_path_is_one() {
        let of = |text| Dialect::of(text, Path::new("/f"));
        assert_eq!(of("web-broker-v4r8"), Dialect::BuiltIn("web-broker-v4r8".to_owned()));
        assert_eq!(of("mine.wasm"), Dialect::File("/f/mine.wasm".into()));
        assert_eq!(of("d/mine"), Dialect::File("/f/d/mine".into()));
        let file =
            |asked: Option<&Dialect>| Dialect::file(asked, "usual", Some(Path::new("/d"))).unwrap();
        assert_eq!(file(None), Path::new("/d/usual.wasm"));
        assert_eq!(file(Some(&of("other"))), Path::new("/d/other.wasm"));
        assert_eq!(file(Some(&of("x.wasm"))), Path::new("/f/x.wasm"));
    }
}
