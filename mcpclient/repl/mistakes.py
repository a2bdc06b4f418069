"""What a person at a prompt types wrong: found here, before anything is sent.

Each is also the exception that Python itself would raise, so that code which expects that one
works; a prompt shows them in one line.
"""

from __future__ import annotations


class Mistake(Exception):
    """Something was typed that cannot be meant; the text says what could be. Nothing was sent."""


class WrongCall(Mistake, TypeError):
    """The arguments are not those that the server asks for."""


class NoSuchName(Mistake, AttributeError):
    """There is nothing of this name behind the dot."""


class NoSuchKey(Mistake, KeyError):
    """There is nothing of this name in the brackets."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else "no such name"  # a KeyError would quote it
