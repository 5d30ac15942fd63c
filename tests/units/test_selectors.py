from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.patches.field_selectors import FieldSelector, FieldSelectorError
from kubetide.objects.meta import LabelSelector, LabelSelectorRequirement
from kubetide.units import names
from kubetide.units.selectors import Selector, SelectorError

label_keys = st.sampled_from(["app", "tier", "example.com/zone", "in", "notin"])
label_values = st.sampled_from(["", "web", "db", "10", "9", "in"])
labels = st.dictionaries(label_keys, label_values, max_size=4)


@st.composite
def terms(draw):
    key = draw(label_keys)
    shape = draw(st.sampled_from(["=", "==", "!=", "in", "notin", "exists", "!", ">", "<"]))
    if shape == "exists":
        return key
    if shape == "!":
        return f"!{key}"
    if shape in {"in", "notin"}:
        return (
            f"{key} {shape} ({','.join(draw(st.lists(label_values, min_size=1, max_size=3, unique=True)))})"
        )
    return f"{key} {shape} {draw(st.sampled_from(['9', '10'])) if shape in '<>' else draw(label_values)}"


@given(st.lists(terms(), max_size=4), labels)
@settings(max_examples=100)
def test_a_selector_means_the_same_after_printing(parts, subject):
    """The canonical text is sorted by key, prints the same again and matches the same labels."""
    selector = Selector.parse(" , ".join(parts))
    again = Selector.parse(str(selector))
    assert str(again) == str(selector)
    assert again.matches(subject) is selector.matches(subject)
    assert [r.key for r in selector.requirements] == sorted(r.key for r in selector.requirements)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("  ", ""),
        ("app in (web,db)", "app in (db,web)"),
        ("queue in (b,a),!dead", "!dead,queue in (a,b)"),
        ("x=a,y=b", "x=a,y=b"),
        ("y==b , x = a", "x=a,y==b"),
        ("x notin (a)", "x notin (a)"),
        ("x in ()", "x in ()"),
        ("x in (,)", "x in ()"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("x in (a,a)", "x in (a)"),
        ("x=", "x="),
        ("x=,y", "x=,y"),
        ("x>1,y<2", "x>1,y<2"),
        ("in in (in)", "in in (in)"),
        ("notin", "notin"),
        ("x!=a", "x!=a"),
    ],
)
def test_selectors_print_in_canonical_form(text, canonical):
    """A selector prints as apimachinery prints it: by key, values sorted in parentheses."""
    assert str(Selector.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("a cheese b", "unable to parse requirement: found 'cheese', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (,,)", "unable to parse requirement: found ')', expected: ',', or identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a==!", "unable to parse requirement: found '!', expected: identifier"),
        ("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        (
            "x>y",
            (
                'unable to parse requirement: values[0]: Invalid value: "y": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        (
            "a=_,b=b=b",
            (
                'unable to parse requirement: values[0][a]: Invalid value: "_": '
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
                "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
                "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ),
        ),
        ("/a", 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'),
    ],
)
def test_a_bad_selector_is_refused_in_upstreams_words(text, detail):
    """The first mistake is named in the words that show up in HPA conditions."""
    with pytest.raises(SelectorError) as caught:
        Selector.parse(text)
    assert caught.value.detail == detail
    assert str(caught.value) == f'couldn\'t parse the selector string "{text}": {detail}'


@pytest.mark.parametrize(
    ("text", "subject", "expected"),
    [
        ("a=1", {"a": "1"}, True),
        ("a=1", {}, False),
        ("a=", {}, False),
        ("a=", {"a": ""}, True),
        ("a!=1", {}, True),
        ("a notin (1)", {}, True),
        ("a notin (1)", {"a": "1"}, False),
        ("a in (1,2)", {"a": "2"}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a>5", {"a": "10"}, True),
        ("a>5", {"a": "x"}, False),
        ("a<5", {}, False),
        ("a>5", {"a": "+6"}, True),
        ("a>5", {"a": "99999999999999999999"}, False),
        ("a,!b", {"a": "1", "b": "1"}, False),
    ],
)
def test_operators_match_as_documented(text, subject, expected):
    """Negative operators match an absent key, all others do not."""
    assert Selector.parse(text).matches(subject) is expected


def test_the_object_form_none_selects_nothing_and_empty_selects_all():
    """No selector matches nothing, an empty one everything, and both print as the empty text."""
    nothing, everything = Selector.from_object(None), Selector.from_object(LabelSelector())
    assert not nothing.matches({"a": "b"})
    assert everything.matches(None)
    assert str(nothing) == str(everything) == ""
    assert nothing != everything
    assert (nothing.is_empty(), everything.is_empty()) == (False, True)


def test_the_object_form_prints_like_the_text_form():
    """Labels and expressions become one sorted conjunction."""
    selector = Selector.from_object(
        LabelSelector(
            match_labels={"tier": "front", "app": "web"},
            match_expressions=(
                LabelSelectorRequirement(key="queue", operator="In", values=("b", "a")),
                LabelSelectorRequirement(key="dead", operator="DoesNotExist"),
            ),
        )
    )
    assert str(selector) == "app=web,!dead,queue in (a,b),tier=front"
    assert selector.exact_values() == {"app": "web", "tier": "front"}
    assert selector.allowed_values(2) == {"app": ("web",), "tier": ("front",), "queue": ("b", "a")}
    assert selector.allowed_values(1) == {"app": ("web",), "tier": ("front",)}


@pytest.mark.parametrize(
    ("operator", "values", "message"),
    [
        ("Bogus", (), '"Bogus" is not a valid label selector operator'),
        ("In", (), "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (
            "Exists",
            ("a",),
            'values: Invalid value: ["a"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_a_bad_expression_is_refused(operator, values, message):
    """An operator outside the four, or values that do not suit it, are named."""
    term = LabelSelectorRequirement(key="a", operator=operator, values=values)
    with pytest.raises(SelectorError) as caught:
        Selector.from_object(LabelSelector(match_expressions=(term,)))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "back"),
    [("app==web", "app=web"), ("app in (web,db),x", "app in (db,web),x"), ("a=1,a=2", "a=2")],
)
def test_a_scale_selector_comes_back_rewritten(text, back):
    """The scale client turns the text into the object form and prints it again."""
    assert str(Selector.parse(text).as_scale_selector()) == back


@pytest.mark.parametrize(("text", "operator"), [("a!=1", "!="), ("a>1", "gt"), ("a<1", "lt")])
def test_a_scale_selector_cannot_say_everything(text, operator):
    """The object form has no inequality, so such a scale selector is an error."""
    with pytest.raises(SelectorError) as caught:
        Selector.parse(text).as_scale_selector()
    assert str(caught.value) == f'"{operator}" is not a valid label selector operator'


POD = {"metadata.name": "web-1", "status.phase": "Running", "spec.nodeName": "", "spec.hostNetwork": "true"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("metadata.name=web-1", True),
        ("metadata.name==web-1,status.phase!=Succeeded", True),
        ("status.phase!=Running", False),
        ("spec.nodeName=", True),
        ("spec.absent.deep=", True),
        ("spec.hostNetwork=true", True),
        ("metadata=", True),
    ],
)
def test_field_selectors_compare_texts(text, expected):
    """Fields are compared as texts, an absent one as the empty text."""
    selector = FieldSelector.parse(text)
    assert selector.matches(POD.get) is expected
    assert FieldSelector.parse(str(selector)) == selector
    assert selector.is_empty() is (text == "")


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b.c"]), st.booleans(), st.text(",=\\xé", max_size=4)), max_size=3
    )
)
@settings(max_examples=100)
def test_field_selectors_escape_and_read_back(parts):
    """Commas, equals signs and backslashes in values survive printing and reading."""
    escaped = [
        (path, equal, value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\="))
        for path, equal, value in parts
    ]
    text = ",".join(f"{path}{'=' if equal else '!='}{value}" for path, equal, value in escaped)
    selector = FieldSelector.parse(text)
    assert sorted((t.path, t.equal, t.value) for t in selector.terms) == sorted(parts)
    assert FieldSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b=c", "unescaped character in value: ="),
        ("a=\\x", "invalid escape sequence: \\x"),
    ],
)
def test_a_bad_field_selector_is_refused(text, message):
    """A term without an operator, or with a bad escape, is named."""
    with pytest.raises(FieldSelectorError) as caught:
        FieldSelector.parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (
            names.valid_label_key,
            ["a", "A.b_c-1", "example.com/a", "x" * 63],
            ["", "-a", "a/b/c", "/a", "Up/a", "x" * 64],
        ),
        (names.valid_label_value, ["", "a", "A_b.c-1"], ["-a", "a b", "ü", "a\n", "x" * 64]),
        (
            lambda text: not names.dns1123_label_errors(text),
            ["a", "a-1", "1a"],
            ["", "A", "a.b", "a-", "x" * 64, "a\n"],
        ),
        (
            lambda text: not names.dns1123_subdomain_errors(text),
            ["a.b-c", "x" * 253],
            ["", "a..b", ".a", "A", "x" * 254],
        ),
        (
            lambda text: not names.port_name_errors(text),
            ["http", "web-1"],
            ["", "80", "a--b", "-a", "x" * 16, "Http"],
        ),
    ],
)
def test_names_are_validated_as_in_the_server(check, good, bad):
    """Good names pass and bad ones do not, for each kind of name."""
    assert all(check(text) for text in good)
    assert not any(check(text) for text in bad)
