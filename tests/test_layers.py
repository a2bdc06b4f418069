"""Imports point down only, and what is pure never reaches an event loop: every violation by name.

A name imported for annotations alone (under TYPE_CHECKING) counts for the order of the layers,
since it is knowledge; it does not count for purity, since it is never loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import mcpclient

PACKAGE = Path(mcpclient.__file__).parent

# The layers, lowest first. Where two packages share a number, neither imports the other, unless
# a pair below says so.
LAYERS = {
    "ground": 0,
    "protocol": 1,
    "loops": 2,
    "transports": 2,
    "serverkit": 2,
    "connection": 3,
    "supervision": 4,
    "features": 5,
    "manager": 6,
    # The faces, each one package of its own, and below them what they share.
    "engine": 7,
    "asking": 7,
    "blocking": 7,
    "handles": 7,
    "cli": 7,
    "repl": 7,
    "__main__": 8,  # the command line by another name
    "testing": 8,  # for users' tests; it alone may use the kit
}
ALLOWED = {
    ("transports", "loops"),
    # The kit waits as the client does; its shells read and write as the transports do.
    ("serverkit", "loops"),
    ("serverkit", "transports"),
    ("cli", "repl"),  # `mcpclient repl`
    ("repl", "blocking"),  # whose managers it explores
    ("repl", "handles"),
    *((face, "engine") for face in ("blocking", "handles", "cli", "repl")),
    *((face, "asking") for face in ("cli", "repl")),
}
FORBIDDEN = {
    ("features", "supervision"): "features and supervision know nothing of each other",
    ("supervision", "features"): "features and supervision know nothing of each other",
}

PURE = (
    "mcpclient.ground",
    "mcpclient.protocol",
    "mcpclient.supervision.policy",
    "mcpclient.supervision.phases",
    "mcpclient.supervision.incidents",
    "mcpclient.connection.inflight",
    "mcpclient.connection.caller",
)
IMPURE = {
    "anyio",
    "asyncio",
    "trio",
    "sniffio",
    "outcome",
    "selectors",
    "socket",
    "subprocess",
    "threading",
    "http",
    "urllib",
    "httpx",
    "httpx2",
    "httpcore",
    "requests",
    "aiohttp",
}


class Import(NamedTuple):
    """One import of one module.

    Attributes:
        module: Who imports.
        line: Where.
        target: What, as a full name.
        typing: Whether only for annotations.
    """

    module: str
    line: int
    target: str
    typing: bool


def named(path: Path, package: Path) -> str:
    """Return the full name of the module in a file."""
    parts = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(part for part in parts if part != "__init__")


def imports(source: str, module: str, *, is_package: bool = False) -> list[Import]:
    """Return what some code imports, wherever in it the statement stands."""
    return list(_imports(ast.parse(source), module, is_package, typing=False))


def _imports(tree: ast.AST, module: str, is_package: bool, *, typing: bool) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(module, node.lineno, alias.name, typing)
            case ast.ImportFrom(module=source, names=names, level=level):
                if level:
                    base = module.split(".")
                    base = base[: len(base) - level + is_package]
                    source = ".".join([*base, *([source] if source else [])])
                for alias in names:
                    yield Import(module, node.lineno, f"{source}.{alias.name}", typing)
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                for part in node.body:
                    yield from _imports(_wrapped(part), module, is_package, typing=True)
                for part in node.orelse:
                    yield from _imports(_wrapped(part), module, is_package, typing=typing)
            case _:
                yield from _imports(node, module, is_package, typing=typing)


def _wrapped(statement: ast.stmt) -> ast.AST:
    return ast.Module([statement], [])


@cache
def all_imports() -> tuple[Import, ...]:
    """Return every import in the package."""
    found: list[Import] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        is_package = path.name == "__init__.py"
        found += imports(path.read_text(), named(path, PACKAGE), is_package=is_package)
    return tuple(found)


def layer(module: str) -> str | None:
    """Return the layer that a module of ours belongs to; None for the package's front itself."""
    parts = module.split(".")
    return parts[1] if parts[0] == "mcpclient" and len(parts) > 1 else None


def violation(one: Import) -> str | None:
    """Return what is wrong with an import, or None."""
    here, there = layer(one.module), layer(one.target)
    if one.target.split(".")[0] != "mcpclient" or here is None or here == there:
        return None
    where = f"{one.module}:{one.line} imports {one.target}"
    if there not in LAYERS:
        # A module imports the package's front, or a name in it: that loads everything.
        return f"{where}: a layer that the list does not have"
    if here not in LAYERS:
        return f"{where}: from a layer that the list does not have"
    if (here, there) in FORBIDDEN:
        return f"{where}: {FORBIDDEN[here, there]}"
    if LAYERS[there] > LAYERS[here]:
        return f"{where}: layer {LAYERS[here]} from layer {LAYERS[there]} points up"
    if LAYERS[there] == LAYERS[here] and (here, there) not in ALLOWED:
        return f"{where}: beside each other in layer {LAYERS[here]}"
    return None


def modules() -> dict[str, list[Import]]:
    """Return every module of ours with the imports it makes when it runs."""
    found: dict[str, list[Import]] = {named(path, PACKAGE): [] for path in PACKAGE.rglob("*.py")}
    for one in all_imports():
        if not one.typing:
            found[one.module].append(one)
    return found


def reached(start: str, graph: Mapping[str, list[Import]]) -> dict[str, str]:
    """Return every foreign top-level package that a module reaches, and by which import."""
    found: dict[str, str] = {}
    todo, seen = [start], {start}
    while todo:
        for one in graph[todo.pop()]:
            ours = [
                name
                for name in (one.target, one.target.rpartition(".")[0])
                if name in graph and name != "mcpclient"
            ]
            for name in ours:
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
            if not one.target.startswith("mcpclient"):
                found.setdefault(one.target.split(".")[0], f"{one.module}:{one.line}")
    return found


def impurities(graph: Mapping[str, list[Import]]) -> list[str]:
    """Return how what is pure reaches what is not."""
    return [
        f"{module} reaches {foreign} ({by})"
        for module in sorted(graph)
        if any(module == pure or module.startswith(f"{pure}.") for pure in PURE)
        for foreign, by in sorted(reached(module, graph).items())
        if foreign in IMPURE
    ]


# -- the package ---------------------------------------------------------------------------


def test_every_import_points_down() -> None:
    assert [wrong for one in all_imports() if (wrong := violation(one))] == []


def test_what_is_pure_reaches_no_event_loop_and_no_network() -> None:
    assert impurities(modules()) == []


def test_every_folder_and_every_module_belongs_to_a_layer() -> None:
    found = {layer(module) for module in modules()} - {None}
    assert found <= set(LAYERS)
    assert found >= set(LAYERS) - {"blocking", "handles", "cli", "repl"}


def test_the_server_kit_stands_on_the_protocol_and_only_its_shells_on_transports() -> None:
    below = {"ground", "protocol", "loops", "serverkit"}
    mine = [one for one in all_imports() if layer(one.module) == "serverkit"]
    beside = {
        one.module
        for one in mine
        if one.target.startswith("mcpclient") and layer(one.target) not in below
    }
    assert beside <= {"mcpclient.serverkit.stdio"}
    assert {one.target for one in mine if one.module in beside} >= {
        "mcpclient.transports.outbox.Outbox"
    }


def test_nothing_of_the_client_but_its_testing_knows_the_server_kit() -> None:
    users = {one.module for one in all_imports() if layer(one.target) == "serverkit"}
    assert {layer(user) for user in users} <= {"serverkit", "testing"}


def test_every_pure_module_exists() -> None:
    for pure in PURE:
        assert pure in modules()


# -- the means themselves ------------------------------------------------------------------


def found_in(module: str, source: str) -> list[str]:
    """Return the violations that some code would be, as that module."""
    return [wrong for one in imports(source, module) if (wrong := violation(one))]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mcpclient.ground.text", "from mcpclient.protocol import ids"),
        ("mcpclient.ground.text", "import mcpclient.manager.manager"),
        ("mcpclient.protocol.session", "from mcpclient.transports.base import Sink"),
        ("mcpclient.protocol.session", "from mcpclient import loops"),
        ("mcpclient.loops.base", "from mcpclient.transports import stdio"),
        ("mcpclient.transports.stdio", "from mcpclient.connection import inflight"),
        ("mcpclient.connection.opening", "from mcpclient.supervision import policy"),
        ("mcpclient.supervision.policy", "from mcpclient.features import tools"),
        ("mcpclient.features.tools", "from mcpclient.supervision import policy"),
        ("mcpclient.features.tools", "def f():\n    from mcpclient.manager import verbs"),
        ("mcpclient.features.tools", "try:\n    import mcpclient.manager\nfinally:\n    pass"),
        (
            "mcpclient.ground.text",
            "if TYPE_CHECKING:\n    from mcpclient.protocol import ids",
        ),
        ("mcpclient.ground.text", "if typing.TYPE_CHECKING:\n    import mcpclient.protocol"),
        ("mcpclient.ground.text", "from ..protocol import ids"),
        ("mcpclient.ground.text", "from .. import protocol"),
        ("mcpclient.ground.text", "from mcpclient import Manager"),
        ("mcpclient.ground.text", "import mcpclient"),
        ("mcpclient.ground.text", "import mcpclient.news.feed"),
        ("mcpclient.blocking.manager", "from mcpclient.handles import Handle"),
    ],
)
def test_a_violation_would_be_found(module: str, source: str) -> None:
    [wrong] = found_in(module, source)
    assert wrong.startswith(f"{module}:")


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mcpclient.transports.stdio", "from mcpclient.loops.base import Loop"),
        ("mcpclient.manager.manager", "from mcpclient import loops\nimport mcpclient.features"),
        ("mcpclient.features.tools", "from mcpclient.connection.caller import Caller"),
        ("mcpclient.protocol.session", "from .ids import meant\nfrom ..ground import text"),
        ("mcpclient.ground.text", "import re, json.decoder\nfrom os import path"),
        ("mcpclient", "from mcpclient.manager.manager import Manager"),
    ],
)
def test_what_points_down_is_allowed(module: str, source: str) -> None:
    assert found_in(module, source) == []


def test_an_impurity_would_be_found_however_far_away() -> None:
    graph = {
        "mcpclient": imports("import anyio", "mcpclient"),
        "mcpclient.ground": [],
        "mcpclient.ground.text": imports(
            "from mcpclient.ground import far", "mcpclient.ground.text"
        ),
        "mcpclient.ground.far": imports(
            "def f():\n    import asyncio.events", "mcpclient.ground.far"
        ),
        "mcpclient.protocol": [],
        "mcpclient.protocol.ids": imports(
            "if TYPE_CHECKING:\n    import anyio\nfrom mcpclient.ground import text as t",
            "mcpclient.protocol.ids",
        )[1:],
    }
    assert impurities(graph) == [
        "mcpclient.ground.far reaches asyncio (mcpclient.ground.far:2)",
        "mcpclient.ground.text reaches asyncio (mcpclient.ground.far:2)",
        "mcpclient.protocol.ids reaches asyncio (mcpclient.ground.far:2)",
    ]
    assert [one.typing for one in imports("if TYPE_CHECKING:\n    import a\nimport b", "m")] == [
        True,
        False,
    ]
