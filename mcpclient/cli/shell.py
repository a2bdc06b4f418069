"""Completion in bash, zsh and fish: the scripts, and what they are answered.

Starts no server: servers are read from the configuration, their tools, prompts and resources from
what :mod:`mcpclient.cli.names` kept. What servers chose is quoted: completing must run nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    split_arg_string,
)

from mcpclient.cli import names, safe
from mcpclient.cli.options import state_of

Item = CompletionItem[str]
Completer = Callable[[click.Context, click.Parameter, str], list[Any]]
_LISTS = {"tool": "tools", "prompt": "prompts", "resource": "resources", "template": "templates"}


def completing(*kinds: str) -> Completer:
    """Return what completes the words of a command.

    Args:
        kinds: What each word is: ``server``, ``tool``, ``prompt``, ``resource``; of a tool or
            prompt before it: ``arguments``, which may repeat, or ``argument``, its name alone;
            ``reference``, a prompt or template; ``servers`` may repeat.
    """

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
        words = tuple(context.params.get(parameter.name or "") or ())
        place = len(words)
        kind = kinds[place] if place < len(kinds) else kinds[-1]
        if place >= len(kinds) and kind not in ("arguments", "servers"):
            return []
        try:
            offered = list(_offered(context, kind, kinds, words, begun))
        except Exception:  # the outer edge: a shell's prompt must not be spoilt, whatever it is
            return []
        return [one for one in offered if one.value.startswith(begun) and one.value.isprintable()]

    return complete


def _offered(
    context: click.Context, kind: str, kinds: tuple[str, ...], words: tuple[str, ...], begun: str
) -> Iterator[Item]:
    entries = _entries(context)
    if kind in ("server", "servers"):
        yield from (CompletionItem(name) for name in entries if name not in words)
        return
    known = names.load(words[0], entries[words[0]], os.environ)
    if kind == "reference":
        for one in (*known.get("prompts", ()), *known.get("templates", ())):
            yield CompletionItem(one["name"], help=one.get("help"))
    elif kind in _LISTS:
        shown = known.get(_LISTS[kind], [])
        if kind == "resource":
            shown = [*shown, *known.get("templates", ())]
        for one in shown:
            yield CompletionItem(one["name"], help=one.get("help"))
    else:
        # What has the arguments is the word before them; a prompt's where it may be either.
        tables = ("tools",) if kinds[1] == "tool" else ("prompts",)
        for table in tables:
            for one in known.get(table, ()):
                if one["name"] == words[1]:
                    yield from _keys(one["arguments"], kind, words[2:], begun)


def _keys(listed: list[Any], kind: str, words: tuple[str, ...], begun: str) -> Iterator[Item]:
    taken = {re.split(":?=", word, maxsplit=1)[0] for word in words}
    for one in listed:
        name, sign = one["name"], one.get("sign", "=")
        if kind == "argument":
            yield CompletionItem(name, help=one.get("help"))
        elif begun.startswith(f"{name}="):
            for value in one.get("values", ()):
                yield CompletionItem(f"{name}={value}")
        elif one.get("many") or name not in taken:
            yield CompletionItem(f"{name}{sign}", help=one.get("help"), open=True)


def _entries(context: click.Context) -> dict[str, Any]:
    from mcpclient.cli import sources
    from mcpclient.manager import config

    path, _, _ = sources.find(state_of(context).config, os.environ)
    return dict(config.entries_of(config.read(path))[1])


# -- the shells ----------------------------------------------------------------------------


class _Shell(ShellComplete):
    """What the three have in common: the line up to the cursor comes as COMP_WORDS."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the whole words before the cursor, and the one that is begun."""
        line = os.environ.get("COMP_WORDS", "")
        # One more letter shows whether the last word has ended.
        words = split_arg_string(f"{line}\0")
        begun = words.pop().removesuffix("\0") if words else ""
        return words[1:], begun


_BASH = """\
_mcpclient() {
    local kind value
    COMPREPLY=()
    while IFS=$'\\t' read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            open) COMPREPLY+=("$value"); compopt -o nospace 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            dir) compopt -o dirnames 2>/dev/null ;;
        esac
    done < <(COMP_WORDS="${COMP_LINE:0:COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" \\
        _MCPCLIENT_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _mcpclient mcpclient 2>/dev/null || complete -F _mcpclient mcpclient
"""


class Bash(_Shell):
    """bash takes words apart at some letters, and puts what it is given into the line as it is."""

    name = "bash"
    source_template = _BASH

    def complete(self) -> str:
        """Return the answer to the script."""
        line = os.environ.get("COMP_WORDS", "")
        args, begun = self.get_completion_args()
        breaks = "".join(set(os.environ.get("COMP_BREAKS", "=:")) - set(" \t\n\"'"))
        # What stands before the last of these is in the line already.
        kept = max((begun.rfind(letter) + 1 for letter in breaks), default=0)
        quoted = _open_quote(line)
        answers = []
        for item in self.get_completions(args, begun):
            value = str(item.value)[kept:]
            special = re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)
            if quoted and special != value:
                continue  # how to go on inside of quotes is not ours to guess
            kind = "open" if item.open else item.type
            answers.append(f"{kind}\t{special}")
        return "\n".join(answers)


_ZSH = """\
#compdef mcpclient
_mcpclient() {
    local kind value help
    local -a plain plain_shown open open_shown
    while IFS=$'\\t' read -r kind value help; do
        case $kind in
            plain) plain+=("$value"); plain_shown+=("$value${help:+  -- $help}") ;;
            open) open+=("$value"); open_shown+=("$value${help:+  -- $help}") ;;
            file) _files ;;
            dir) _files -/ ;;
        esac
    done < <(COMP_WORDS="${(j: :)words[1,CURRENT]}" _MCPCLIENT_COMPLETE=zsh_complete \\
        "${words[1]}" 2>/dev/null)
    (( $#plain )) && compadd -l -d plain_shown -a plain
    (( $#open )) && compadd -S '' -l -d open_shown -a open
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _mcpclient "$@"
else
    compdef _mcpclient mcpclient
fi
"""


class Zsh(_Shell):
    """zsh quotes what it is given by itself."""

    name = "zsh"
    source_template = _ZSH

    def format_completion(self, item: Item) -> str:
        """Return the line about one completion."""
        kind = "open" if item.open else item.type
        return f"{kind}\t{item.value}\t{safe.brief(item.help or '', 80)}"


_FISH = """\
function __mcpclient_complete
    set -lx COMP_WORDS (commandline -cp | string collect)
    set -lx _MCPCLIENT_COMPLETE fish_complete
    set -l tokens (commandline -opc)
    for line in ($tokens[1] 2>/dev/null)
        set -l parts (string split \\t -- $line)
        switch $parts[1]
            case file
                __fish_complete_path (commandline -ct)
            case dir
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $parts[2]\\t$parts[3]
        end
    end
end
complete -c mcpclient -f -a '(__mcpclient_complete)'
"""


class Fish(Zsh):
    """fish quotes by itself too, and knows that nothing follows a ``=`` but the value."""

    name = "fish"
    source_template = _FISH


SHELLS: dict[str, type[_Shell]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def register() -> None:
    """Have click answer our scripts instead of its own."""
    for name, shell in SHELLS.items():
        add_completion_class(shell, name)


def _open_quote(line: str) -> bool:
    """Return whether a line ends inside of quotes."""
    quote = ""
    letters = iter(line)
    for letter in letters:
        if letter == "\\" and quote != "'":
            next(letters, None)
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
    return bool(quote)
