"""Validators of JSON Schema compared: right, quick, and bounded whatever a stranger wrote?

    python bench/schemas.py [--suite DIR] [--only NAME …]

Measures what is installed of jsonschema, jsonschema-rs and fastjsonschema, and mcpclient's own
check on top of the first. DIR is a checkout of github.com/json-schema-org/JSON-Schema-Test-Suite.
Every measurement is a process of its own, so that one that hangs or dies tells so. The figures of
the first table are CPU time.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).absolute().parent.parent
NEWEST = "https://json-schema.org/draft/2020-12/schema"
DRAFTS = {
    "draft2020-12": NEWEST,
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft4": "http://json-schema.org/draft-04/schema#",
}
MODULES = {
    "mcpclient": "mcpclient.features.schemacheck",
    "jsonschema": "jsonschema",
    "jsonschema-rs": "jsonschema_rs",
    "fastjsonschema": "fastjsonschema",
}
PATIENCE = 20.0

Check = Callable[[Any], bool]
ROW = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string", "maxLength": 100},
        "tags": {"type": "array", "items": {"type": "string"}},
        "state": {"enum": ["open", "closed"]},
        "size": {"type": ["number", "null"], "minimum": 0},
    },
    "required": ["id", "name"],
    "additionalProperties": False,
}
FITS = {"id": 7, "name": "seven", "tags": ["a", "b"], "state": "open", "size": 1.5}


def reader(name: str) -> Callable[[Any], Check]:
    """Return how a candidate makes a check of a schema, as safely as it can be told to."""
    module: Any = importlib.import_module(MODULES[name])
    if name == "mcpclient":

        def bounded(schema: Any) -> Check:
            made = module.Schema(schema, 2.0)
            return lambda value: bool(made.fits(value, 2.0))

        return bounded
    if name == "jsonschema-rs":
        patterns = module.FancyRegexOptions(backtrack_limit=10_000, size_limit=100_000)

        def native(schema: Any) -> Check:
            made = module.validator_for(
                schema, offline=True, pattern_options=patterns, validate_formats=False
            )
            # Not is_valid: whoever checks wants to know what is wrong.
            return lambda value: next(iter(made.iter_errors(value)), None) is None

        return native
    if name == "jsonschema":
        registry: Any = importlib.import_module("referencing").Registry()

        def plain(schema: Any) -> Check:
            kind = module.validators.validator_for(schema, default=module.Draft202012Validator)
            kind.check_schema(schema)
            return kind(schema, registry=registry).is_valid  # type: ignore[no-any-return]

        return plain

    def generated(schema: Any) -> Check:
        # It fetches unless each scheme has a handler; a KeyError stands for "not there".
        check = module.compile(schema, handlers=dict.fromkeys(("http", "https"), {}.__getitem__))

        def fits(value: Any) -> bool:
            try:
                check(value)
            except module.JsonSchemaValueException:
                return False
            return True

        return fits

    return generated


def suite(name: str, folder: str) -> str:
    """Count the tests of the official suite that need no other file and no dialect of their own."""
    make = reader(name)
    right = total = 0
    for draft, uri in DRAFTS.items():
        for path in sorted(Path(folder, "tests", draft).glob("*.json")):
            for case in json.loads(path.read_text(encoding="utf-8")):
                schema = case["schema"]
                if "localhost:1234" in json.dumps(schema):
                    continue
                if isinstance(schema, dict):
                    schema.setdefault("$schema", uri)
                total += len(case["tests"])
                try:
                    check = make(schema)
                except Exception:  # whatever a candidate raises is a failure of it
                    continue
                for test in case["tests"]:
                    try:
                        right += check(test["data"]) == test["valid"]
                    except Exception:  # as above
                        continue
    return f"{right} of {total}"


def speed(name: str, _: str) -> str:
    """Time reading a schema, a small value and a large one."""
    make = reader(name)
    make(ROW)
    read = _median(lambda: make(ROW), 200)
    check = make(ROW)
    small = _median(lambda: check(FITS), 2000)
    many = make({"type": "array", "items": ROW})
    rows = [FITS] * 20_000
    large = _median(lambda: many(rows), 3)
    return f"{read * 1e6:.0f} | {small * 1e6:.1f} | {large * 1e3:.0f}"


def _median(work: Callable[[], object], times: int) -> float:
    spans = []
    for _ in range(times):
        begun = time.process_time()
        work()
        spans.append(time.process_time() - begun)
    return statistics.median(spans)


def _doubling(levels: int, **more: Any) -> Any:
    parts = {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2, **more} for n in range(levels)}
    return {"$ref": "#/$defs/0", "$defs": {**parts, str(levels): {"type": "null"}}}


def _chain(count: int, last: Any) -> Any:
    parts: dict[str, Any] = {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(count)}
    return {"$ref": "#/$defs/0", "$defs": {**parts, str(count): last}}


def _deep(levels: int, name: str) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {name: value}
    return value


HOSTILE: dict[str, tuple[Any, Any]] = {
    "2 kB that double 40 times": (_doubling(40), 1),
    "and unevaluatedProperties": (_doubling(20, unevaluatedProperties=False), {"a": 1}),
    "60 000 references in a row": (_chain(60_000, {"type": "integer"}), 1),
    "a value 900 deep": ({"additionalProperties": {"$ref": "#"}}, _deep(900, "a")),
    "and 100 references a level": (
        _chain(100, {"properties": {"a": {"$ref": "#"}}}),
        _deep(900, "a"),
    ),
    "a schema 900 deep": (_deep(900, "not"), 1),
    "a reference to itself": ({"$ref": "#/$defs/X", "$defs": {"X": {"$ref": "#/$defs/X"}}}, 1),
    "pattern ^(a+)+$": ({"pattern": "^(a+)+$"}, "a" * 50 + "!"),
    "pattern (?=a*c)b, 300 kB": ({"pattern": "(?=a*c)b"}, "a" * 300_000),
    "pattern 1[01]{600}2, 1 MB": ({"pattern": "1[01]{600}2"}, "10" * 500_000),
    "5 000 objects, uniqueItems": ({"uniqueItems": True}, [{"a": n} for n in range(5000)]),
    "19.99, multipleOf 0.01": ({"multipleOf": 0.01}, 19.99),
    "pattern with look-around": ({"pattern": "^(?!foo)bar"}, "bar"),
    "$ref to http": ({"$ref": "http://127.0.0.1:9/x.json"}, 1),
    "$schema unknown": ({"$schema": "https://example.com/mine", "type": "integer"}, "x"),
}


def hostile(name: str, case: str) -> str:
    """Tell how one case ends."""
    schema, value = HOSTILE[case]
    make = reader(name)
    begun = time.perf_counter()
    try:
        said = {True: "fits", False: "does not fit"}[make(schema)(value)]
    except BaseException as problem:
        said = getattr(problem, "reason", None) or type(problem).__name__
    return f"{said}, {(time.perf_counter() - begun) * 1e3:.0f} ms"


def alone(work: str, name: str, fact: str) -> str:
    """Do one measurement in a process of its own."""
    argv = [sys.executable, __file__, "--one", work, name, fact]
    limit = PATIENCE if work == "hostile" else 300.0
    try:
        ran = subprocess.run(
            argv, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"**hangs** (over {limit:.0f} s)"
    if ran.returncode < 0:
        return f"**kills the process** (signal {-ran.returncode})"
    last = ran.stderr.strip().splitlines()
    return ran.stdout.strip() or f"fails: {last[-1] if last else ran.returncode}"


def importing(module: str) -> str:
    """Time what an import adds to an interpreter that has mcpclient."""
    codes = ("import mcpclient", f"import mcpclient, {module}")
    spans: dict[str, list[float]] = {code: [] for code in codes}
    for _ in range(9):
        for code, found in spans.items():
            begun = os.times()
            subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
            ended = os.times()
            found.append(sum(ended[2:4]) - sum(begun[2:4]))
    bare, whole = (statistics.median(found) for found in spans.values())
    return f"{(whole - bare) * 1e3:.0f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--suite", help="a checkout of JSON-Schema-Test-Suite")
    parser.add_argument("--only", nargs="+", choices=MODULES, default=list(MODULES))
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        work, name, fact = options.one
        print({"suite": suite, "speed": speed, "hostile": hostile}[work](name, fact))
        return
    found = [name for name in options.only if _installed(name)]
    print("| | official suite | import, ms | read, µs | small, µs | 20 000 rows, ms |")
    print("|---|---|---|---|---|---|")
    for name in found:
        counted = alone("suite", name, options.suite) if options.suite else "–"
        print(f"| {name} | {counted} | {importing(MODULES[name])} | {alone('speed', name, '')} |")
    print(f"\n| | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
    for case in HOSTILE:
        ends = (alone("hostile", name, case) for name in found)
        print(f"| {case} | {' | '.join(ends)} |", flush=True)


def _installed(name: str) -> bool:
    try:
        importlib.import_module(MODULES[name])
    except ImportError:
        print(f"{name} is not installed", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
