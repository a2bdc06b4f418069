"""A Neovim for each test, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.editors.editor import Editor, lacking


@pytest.fixture
def editor() -> Iterator[Editor]:
    """A fresh Neovim with the plugin; after the test nothing of it is left."""
    if reason := lacking():
        pytest.skip(reason)
    editor = Editor()
    try:
        yield editor
    finally:
        editor.close()
