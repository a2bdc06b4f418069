"""URI templates: every example of RFC 6570, what is no template, and values that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol.templates import expand, variables
from mcpclient.protocol.types import ResourceTemplate
from tests.protocol import quick
from tests.protocol.rfc6570 import EXAMPLES, VALUES


def examples() -> list[Any]:
    """Return the lines of the tables as parameters, named by section and template."""
    found = []
    for section, table in EXAMPLES.items():
        for line in table.strip().splitlines():
            template, uri = line.split()
            found.append(pytest.param(template, uri, id=f"{section} {template}"))
    return found


@pytest.mark.parametrize(("template", "uri"), examples())
def test_an_example_of_the_rfc_expands_as_it_says(template: str, uri: str) -> None:
    assert expand(template, VALUES) == uri


# -- values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "values", "uri"),
    [
        ("{a}", {"a": 42}, "42"),
        ("{a}{b}", {"a": True, "b": False}, "truefalse"),
        ("{?a}", {"a": -122.5}, "?a=-122.5"),
        ("{?a*}", {"a": [1, True, None, "x"]}, "?a=1&a=true&a=x"),
        ("{?a*}", {"a": {"n": 0, "gone": None, "b": False}}, "?n=0&b=false"),
        ("{a}", {"a": ("x", "y")}, "x,y"),
        ("{a*}", {"a": "text"}, "text"),
        # Undefined: absent, None, nothing in it, or nothing but None.
        ("x{?a,b,c,d,e}", {"b": None, "c": [], "d": {}, "e": [None]}, "x"),
        ("x{?a,b}", {"a": {"k": None}, "b": "1"}, "x?b=1"),
        # Empty is not undefined.
        ("x{?a,b*,c*}", {"a": "", "b": [""], "c": {"k": ""}}, "x?a=&b=&k="),
        ("x{;a,b*,c*}", {"a": "", "b": [""], "c": {"k": ""}}, "x;a;b;k"),
        ("x{/a,b*,c*}", {"a": "", "b": [""], "c": {"k": ""}}, "x///k="),
        # What is not ASCII is UTF-8; the prefix counts characters before that.
        ("{a}", {"a": "Zürich 😀"}, "Z%C3%BCrich%20%F0%9F%98%80"),
        ("{a:2}", {"a": "ü😀x"}, "%C3%BC%F0%9F%98%80"),
        ("{+a:2}", {"a": "ü😀x"}, "%C3%BC%F0%9F%98%80"),
        ("{a:9999}", {"a": "x" * 10_000}, "x" * 9999),
        # A triplet stands for itself where reserved characters do, and is never cut through.
        ("{a}", {"a": "a%2Fb"}, "a%252Fb"),
        ("{+a}", {"a": "a%2Fb%"}, "a%2Fb%25"),
        ("{+a:2}", {"a": "a%2Fb"}, "a%2F"),
        ("{+a:1}", {"a": "%C3%BCb"}, "%C3%BC"),
        ("{+a:2}", {"a": "%e2%82%ac%f0%9f%98%80b"}, "%e2%82%ac%f0%9f%98%80"),
        ("{+a:2}", {"a": "%FF%C3b"}, "%FF%C3"),
        ("{a:2}", {"a": "%2Fb"}, "%252"),
        ("{+a:3}", {"a": "a\nb\nc"}, "a%0Ab"),
        # A key cannot begin another parameter.
        ("{?a*}", {"a": {"x&y=1#": "&"}}, "?x%26y%3D1%23=%26"),
        # Names are as written, and more than the template asks for is no fault.
        ("{a.b}{?%C3%9F,_}", {"a.b": 1, "%C3%9F": 2, "_": 3, "z": 4}, "1?%C3%9F=2&_=3"),
    ],
)
def test_values_of_every_kind_expand(template: str, values: dict[str, Any], uri: str) -> None:
    assert expand(template, values) == uri


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("", ""),
        ("file:///a.txt", "file:///a.txt"),
        ("odd+scheme:a/b?c#d[e]@!$&'()*+,;=~", "odd+scheme:a/b?c#d[e]@!$&'()*+,;=~"),
        ('a b|c\\d"<>^`é\x00\n', "a%20b%7Cc%5Cd%22%3C%3E%5E%60%C3%A9%00%0A"),
        ("%20%zz%", "%20%25zz%25"),
    ],
)
def test_literals_are_copied_and_what_no_uri_may_hold_is_written_as_triplets(
    template: str, uri: str
) -> None:
    assert expand(template, {}) == uri


@pytest.mark.parametrize(
    ("value", "kind"),
    [(b"x", "bytes"), ({1, 2}, "set"), (object(), "object"), ([["x"]], "list"), ([{}], "dict")],
)
def test_a_value_that_no_template_can_hold_is_refused_by_name(value: object, kind: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        expand("{?thing*}", {"thing": value})
    assert str(caught.value) == (
        "the variable 'thing' must be text, a number, a boolean, or a list or mapping of these; "
        f"{kind} is none"
    )


@pytest.mark.parametrize(("value", "what"), [(["a"], "a list"), ({"a": "b"}, "a mapping")])
def test_a_cut_off_variable_cannot_be_composite(value: object, what: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        expand("{+keys:3}", {"keys": value})
    assert str(caught.value) == (
        f"the template cuts the variable 'keys' off after 3, so it cannot be {what}; "
        f"give it as text"
    )


def test_half_a_character_is_refused() -> None:
    for template, values in (("{a}", {"a": "x\ud83d"}), ("x\ud83d", {})):
        with pytest.raises(LocalProtocolError, match="half a character") as caught:
            expand(template, values)
        str(caught.value).encode()


# -- what is no template -------------------------------------------------------------------

WRONG = {
    "{/id*": 'a "{" has no partner',
    "/id*}": 'a "}" has no partner',
    "{{a}}": 'a "{" has no partner',
    "}{": 'a "{" has no partner',
    "/sparql{?query){&default*}": 'a "{" has no partner',
    "{}": "'' in {} is no name",
    "{?}": "'' in {?} is no name",
    "{a,}": "'' in {a,} is no name",
    "{/?id}": "'?id' in {/?id} is no name",
    "{??hello}": "'?hello' in {??hello} is no name",
    "{var:prefix}": "'var:prefix' in {var:prefix} is no name",
    "{var:0}": "'var:0' in {var:0} is no name",
    "{var:03}": "'var:03' in {var:03} is no name",
    "{var:10000}": "'var:10000' in {var:10000} is no name",
    "{var:٣}": "'var:٣' in {var:٣} is no name",
    "{var:2*}": "'var:2*' in {var:2*} is no name",
    "{var**}": "'var**' in {var**} is no name",
    "{*keys?}": "'*keys?' in {*keys?} is no name",
    "{?empty=default,var}": "'empty=default' in {?empty=default,var} is no name",
    "/h{#hello+}": "'hello+' in {#hello+} is no name",
    "/people/{~thing}": "'~thing' in {~thing} is no name",
    "{default-graph-uri}": "'default-graph-uri' in {default-graph-uri} is no name",
    "/resolution{?x, y}": "' y' in {?x, y} is no name",
    "{näme}": "'näme' in {näme} is no name",
    "{a..b}": "'a..b' in {a..b} is no name",
    "{.a.}": "'a.' in {.a.} is no name",
    "{%2}": "'%2' in {%2} is no name",
    "{$var}": "'$var' in {$var} is no name",
    "{=path}": "{=path} begins with a sign of no meaning yet",
    "{!hello}": "{!hello} begins with a sign of no meaning yet",
    "{|var*}": "{|var*} begins with a sign of no meaning yet",
    "{@var}": "{@var} begins with a sign of no meaning yet",
    "{,var}": "{,var} begins with a sign of no meaning yet",
}


@pytest.mark.parametrize(("template", "problem"), WRONG.items())
def test_a_wrong_template_is_refused_with_a_sentence(template: str, problem: str) -> None:
    for refused in (lambda: expand(template, {"var": "x"}), lambda: variables(template)):
        with pytest.raises(LocalProtocolError) as caught:
            refused()
        assert str(caught.value) == f"'{template}' is no URI template: {problem}"


def test_templates_cut_anywhere_expand_or_are_refused() -> None:
    for section, table in EXAMPLES.items():
        for template in table.split():
            for end in range(len(template)):
                part = template[:end]
                opened = part.count("{") != part.count("}")
                try:
                    found = expand(part, {})
                except LocalProtocolError:
                    assert opened, (section, part)
                else:
                    assert not opened, (section, part)
                    assert "{" not in found


@quick
@given(st.text("{}{}ab.,:*+#/;?&%2é\ud800=| "), st.text())
def test_rubbish_expands_or_is_refused(template: str, value: str) -> None:
    found: str | None
    try:
        names = variables(template)
        found = expand(template, dict.fromkeys(names, value))
    except LocalProtocolError as refused:
        problem, found = str(refused), None
    else:
        problem = ""
    if found is None:
        assert "is no URI template" in problem or "half a character" in problem
    else:
        assert found.isascii()
        assert not set(found) & set('{} "<>\\^`|\n')


def test_a_very_long_template_takes_no_time_and_its_error_is_short() -> None:
    assert expand("{?a*}" * 20_000, {}) == ""
    for template in ("{" * 200_000, "{" + "a" * 200_000, "{" + "a." * 100_000 + "}"):
        with pytest.raises(LocalProtocolError) as caught:
            expand(template, {})
        assert len(str(caught.value)) < 1000


# -- names, and the listed template ---------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("", []),
        ("test://a", []),
        ("test://{a}", ["a"]),
        ("{scheme}://{+path*}/{b:3}{?z,a*,b}{&c.d}", ["scheme", "path", "b", "z", "a", "c.d"]),
    ],
)
def test_the_variables_are_named_in_order_and_once(template: str, names: list[str]) -> None:
    assert variables(template) == names


def listed(template: str) -> ResourceTemplate:
    """Return a template as a server lists it."""
    return ResourceTemplate.from_wire(Raw(b'{"uriTemplate":"%s"}' % template.encode()))


def test_a_listed_template_knows_its_variables_and_expands() -> None:
    item = listed("test://{self}/{name}{?q*}")
    assert item.variables == ["self", "name", "q"]
    assert item.expand(self="me", name="a b", q={"x": 1}) == "test://me/a%20b?x=1"
    assert item.expand(name="n") == "test:///n"
    assert item.raw == {"uriTemplate": "test://{self}/{name}{?q*}"}


def test_a_listed_template_that_is_none_is_still_listed() -> None:
    item = listed("test://{item-name}")
    assert item.uri_template == "test://{item-name}"
    with pytest.raises(LocalProtocolError, match=r"'item-name' in \{item-name\} is no name"):
        item.expand(name="x")
    with pytest.raises(LocalProtocolError, match=r"'item-name' in \{item-name\} is no name"):
        _ = item.variables
