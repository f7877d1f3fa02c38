"""Looks for secrets in all that an engine leaves behind: as they are, percent-encoded, as base64 or in UTF-16."""

import base64
import json
import urllib.parse
import zlib

import pytest


def forms(secret):
    """A secret in every form in which it might be found."""
    texts = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1],
             urllib.parse.quote(secret), urllib.parse.quote_plus(secret), repr(secret)[1:-1]}
    found = set()
    for encoding in ("utf-8", "cp932"):
        for text in texts:
            found.add(text.encode(encoding))
        bare = secret.encode(encoding)
        every = "".join(f"%{byte:02X}" for byte in bare)
        some = urllib.parse.quote_from_bytes(bare, safe="-_.")
        found |= {every.encode(), every.lower().encode(), some.encode(), some.lower().encode()}
        for shift in range(3):
            # What all base64 texts that hold it have in common, wherever it begins in them.
            whole = base64.b64encode(b"\0" * shift + bare)
            common = whole[-(-shift * 8 // 6):].rstrip(b"=")[: (len(bare) * 8 - 10) // 6]
            found |= {common, common.replace(b"+", b"-").replace(b"/", b"_")}
    found |= {secret.encode("utf-16-le"), secret.encode("utf-16-be"), secret.encode().hex().encode()}
    return {form for form in found if len(form) >= 8}


def texts_of(folder):
    """The bytes of every file, and of what is packed in it; of the log of orders without the field of numbers."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        if path.name == "web_broker_orders.jsonl":
            lines = [json.loads(line) for line in data.splitlines()]
            without = [{name: value for name, value in line.items() if name != "p_no"} for line in lines]
            yield path.name, json.dumps(without, ensure_ascii=False).encode() + data.replace(b'"p_no"', b"")
            yield path.name + " without numbers", json.dumps(without).encode()
            continue
        yield path.name, data
        if data[:2] == b"\x1f\x8b":
            # A file that is still being written has no end yet.
            yield path.name + " unpacked", zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data)
        if data[:4] == b"PAR1":
            parquet = pytest.importorskip("pyarrow.parquet", reason="it reads what is packed in Parquet files")
            yield path.name + " unpacked", str(parquet.read_table(path).to_pydict()).encode()


def found_in(places, known):
    """Where a secret stands: names of places, and what is around it there."""
    return {(name, excerpt(data, form)) for name, data in places for each in known.values() for form in each
            if form in data}


def excerpt(data, form):
    """Where it was found."""
    at = data.index(form)
    return data[max(0, at - 60):at + len(form) + 20]
