"""The texts that describe messages and files, which this package brought along."""

from __future__ import annotations

import os
import pathlib

from kumiki import _arguments

__all__ = ["schema", "schemas"]

_PACKAGE = pathlib.Path(__file__).resolve().parent


def schemas() -> list[str]:
    """The names of all texts that `schema()` gives."""
    folder = _folder()
    return sorted(path.name for path in folder.iterdir() if path.suffix in (".json", ".md", ".graphql"))


def schema(name: str) -> str:
    """A text that describes messages or files, by its name:

    - `replay-run.json`: the tables of a run's folder, and every column of them;
    - `statistics.md`: how each number of `RunResult.summary()` is worked out;
    - `replay-sweep.json`: the columns of a sweep's table;
    - `ipc.md`: how programs drive the engine, its events, and the codes of what goes wrong;
    - `ipc.schema.json`: the form of every message, as JSON Schema;
    - and those of other files that kumiki writes; `schemas()` names all.

        columns = json.loads(kumiki.schema("replay-run.json"))["tables"]["fills"]["columns"]

    Raises ValidationError where there is none of that name.
    """
    known = schemas()
    if _arguments.text("name", name, "a name like statistics.md") not in known:
        raise _arguments.wrong("name", name, f"one of {', '.join(known)}")
    return (_folder() / name).read_text(encoding="utf-8")


def _folder() -> pathlib.Path:
    """In the installed package; in a source tree it is that of the project."""
    inside = _PACKAGE / "schemas"
    return inside if os.path.isdir(inside) else _PACKAGE.parents[3] / "schemas"
