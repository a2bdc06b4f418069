"""What of a configuration must not be shown: values that are secrets, wherever they stand.

A value is one if its name says so, or its own look. Too much is masked rather than too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_NAME = re.compile(
    r"token|secret|passw|pwd|api.?key|_key\b|^key$|auth|cookie|credential|private|session|\bpat\b",
    re.IGNORECASE,
)
# Tokens that are known by how they begin, and web tokens.
_LOOK = re.compile(
    r"^(?:gh[a-z]_|github_pat_|glpat-|sk-|pk-|xox[a-z]-|AKIA|AIza|ya29\.|hf_|npm_|pypi-|eyJ)"
)
_USER = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(r"([?&][^=&\s]*=)([^&\s]+)")
# What has a name on a command line: --token=…, TOKEN=…, Authorization: ….
_NAMED = re.compile(r"([\w.-]+)(=|:\s+)(.+)", re.DOTALL)
# A shorter value would be found in the middle of words.
_SHORT = 6
MASK = "•••"


def is_secret(name: str, value: str) -> bool:
    """Return whether a value must not be shown."""
    return bool(_NAME.search(name) or _LOOK.match(value) or _USER.search(value))


def masked(name: str, value: str) -> str:
    """Return a value as it may be shown: of a secret only how long it is."""
    if not value:
        return "(empty)"
    if is_secret(name, value):
        return f"{MASK} ({len(value)} characters)"
    return address(value)


def address(url: str) -> str:
    """Return a URL, or any text, without the credentials in it."""
    url = _USER.sub(f"{MASK}@", url)
    return _QUERY.sub(
        lambda found: f"{found[1]}{MASK}" if _NAME.search(found[1]) else found[0], url
    )


def command(argv: Sequence[str], hidden: Iterable[str] = ()) -> str:
    """Return a command as it is typed, the values of its secret options masked."""
    import shlex

    shown, before = [], ""
    for word in argv:
        named = _NAMED.fullmatch(word)
        if named is not None and is_secret(named[1], named[3]):
            shown.append(named[1] + named[2] + MASK)
        elif (before.startswith("-") and is_secret(before, word)) or _LOOK.match(word):
            shown.append(MASK)
        else:
            shown.append(shlex.quote(address(word)))
        before = "" if "=" in word else word
    return redacted(" ".join(shown), hidden)


def secrets_of(values: Mapping[str, str], *, all_of_them: bool = False) -> set[str]:
    """Return the values that must not be found in any text, and the parts of those of headers."""
    found = set()
    for name, value in values.items():
        if all_of_them or is_secret(name, value):
            found |= {value, *value.split()}  # "Bearer", and what follows it
            found |= {part.strip("@") for part in _USER.findall(value)}
    return {value for value in found if len(value) >= _SHORT and value.lower() != "bearer"}


def redacted(text: str, hidden: Iterable[str]) -> str:
    """Return a text without some secrets."""
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text
