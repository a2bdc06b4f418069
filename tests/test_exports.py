"""The public names are held to the truth, and importing them does and loads as good as nothing."""

from __future__ import annotations
import __future__

import inspect
import json
import pkgutil
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import mcpclient

# What an editor must not pay for when it imports the library.
HEAVY = (
    "anyio._backends",
    "asyncio",
    "concurrent.futures",
    "email",
    "http",
    "httpx",
    "httpx2",
    "multiprocessing",
    "outcome",
    "socket",
    "ssl",
    "subprocess",
    "trio",
    "urllib.request",
)

PUBLIC: list[Any] = [getattr(mcpclient, name, None) for name in mcpclient.__all__]


def in_a_fresh_interpreter(code: str) -> Any:
    """Run some code alone and return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_list_of_public_names_is_a_sorted_list_without_doubles() -> None:
    names = mcpclient.__all__
    assert type(names) is list
    assert names == sorted(set(names))


def test_every_public_name_is_there() -> None:
    assert [name for name in mcpclient.__all__ if not hasattr(mcpclient, name)] == []


def test_there_is_no_other_public_name() -> None:
    submodules = {found.name for found in pkgutil.iter_modules(mcpclient.__path__)}
    others = {
        name: value
        for name, value in vars(mcpclient).items()
        if not name.startswith(("_", "@"))  # pytest leaves an @ in what belongs to a plugin
        and name not in mcpclient.__all__
        # `from __future__ import annotations` leaves its name behind.
        and not isinstance(value, __future__._Feature)
    }
    for name, value in others.items():
        assert isinstance(value, ModuleType), name
        assert name in submodules


def test_the_names_of_the_contract_are_public() -> None:
    assert set(mcpclient.__all__) >= {
        "Limits",
        "Manager",
        "RestartPolicy",
        "Server",
        "ServerSpec",
        "Timeouts",
        "ToolError",
        "__version__",
    }
    assert isinstance(mcpclient.__version__, str)


@pytest.mark.parametrize(
    "public", [one for one in PUBLIC if inspect.isclass(one)], ids=lambda one: one.__name__
)
def test_every_public_class_and_method_says_what_it_is_for(public: type[Any]) -> None:
    assert public.__module__.startswith("mcpclient.")
    # Its own words, not those of a base.
    words = vars(public).get("__doc__")
    assert words
    assert words.strip()
    for name, member in vars(public).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            assert inspect.getdoc(getattr(public, name)), f"{public.__name__}.{name}"


def test_a_star_import_gives_just_the_public_names() -> None:
    found: dict[str, Any] = {}
    exec("from mcpclient import *", found)
    assert set(found) - {"__builtins__"} == set(mcpclient.__all__)


def test_importing_loads_no_event_loop_no_network_and_no_processes() -> None:
    loaded = in_a_fresh_interpreter(
        "import sys; before = set(sys.modules); import mcpclient, json; mcpclient.Manager;"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    assert "mcpclient.manager.manager" in loaded
    heavy = [
        module
        for module in loaded
        if any(module == name or module.startswith(f"{name}.") for name in HEAVY)
    ]
    assert heavy == []


def test_importing_sets_nothing_up() -> None:
    changed = in_a_fresh_interpreter(
        """
import atexit, json, logging, os, signal, sys, threading, warnings
def facts():
    return [
        len(logging.getLogger().handlers), logging.getLogger().level,
        len(logging.getLogger("mcpclient").handlers), logging.getLogger("mcpclient").level,
        logging.getLogger("mcpclient").propagate,
        [str(signal.getsignal(one)) for one in sorted(signal.valid_signals())],
        [one.name for one in threading.enumerate()], dict(os.environ), os.getcwd(),
        len(warnings.filters), sys.path, str(sys.excepthook), sorted(os.listdir("/proc/self/fd")),
    ]
before = facts()
import mcpclient
print(json.dumps([a == b for a, b in zip(before, facts(), strict=True)]))
"""
    )
    assert changed == [True] * 13


def test_every_module_can_be_imported_without_a_warning() -> None:
    names = [found.name for found in pkgutil.walk_packages(mcpclient.__path__, "mcpclient.")]
    assert len(names) > 40
    code = f"import importlib, json; [importlib.import_module(one) for one in {names!r}]; "
    assert in_a_fresh_interpreter(f"{code} print(json.dumps(True))") is True
