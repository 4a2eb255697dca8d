"""Text from a cell stays text, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reports.escape import clean, escape_markdown, markdown_code, markdown_fence
from reports.paths import slug

GITHUB = MarkdownIt("gfm-like", {"linkify": False})

HOSTILE = [
    "<script>alert(1)</script>",
    "[click](javascript:alert(1))",
    "![x](//evil.example/x.png)",
    "a | b | c",
    "| --- |",
    "# heading",
    "- item",
    "1. item",
    "> quote",
    "```\nfence",
    "**bold** _it_ ~~gone~~ `code`",
    "&lt;b&gt; &amp;",
    "$x$",
    "line\nbreak\n\nparagraph",
    "back\\slash \\* \\",
    "___",
    "===",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_of_a_text_is_the_text(text: str) -> None:
    """Rendered, the escaped text shows the same words and no mark-up."""
    (opening, inline, closing) = GITHUB.parse(escape_markdown(text))
    assert (opening.type, closing.type) == ("paragraph_open", "paragraph_close")
    assert {child.type for child in inline.children or ()} <= {"text", "text_special"}
    shown = "".join(child.content for child in inline.children or ())
    assert shown.replace("\u2060", "") == " ".join(text.split())


@given(st.text())
def test_no_text_makes_markup(text: str) -> None:
    """The same for any text at all."""
    for token in GITHUB.parse(escape_markdown(text)):
        assert token.type in ("paragraph_open", "inline", "paragraph_close")
        for child in token.children or ():
            assert child.type in ("text", "text_special")


@given(st.text() | st.text(st.sampled_from("|`\\ a\n-")))
def test_no_text_leaves_its_cell_of_a_table(text: str) -> None:
    """What stands behind it is still in its own column."""
    row = f"| {escape_markdown(text)} | {markdown_code(text)} | behind |"
    tokens = GITHUB.parse(f"| a | b | c |\n|---|---|---|\n{row}\n")
    cells = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "td_open"]
    assert len(cells) == 3
    assert cells[2] == "behind"


@given(st.text())
def test_no_text_ends_its_fence(text: str) -> None:
    """A fenced block holds the whole text and nothing follows it."""
    assert [token.type for token in GITHUB.parse(markdown_fence(text))] == ["fence"]


@pytest.mark.parametrize("text", ["see @somebody", "closes #12", "http://evil.example", "www.x.y"])
def test_nothing_becomes_a_mention_a_reference_or_a_link(text: str) -> None:
    """What GitHub would link is taken apart by a character that is not seen."""
    assert "\u2060" in escape_markdown(text)


@given(st.text(st.characters(exclude_categories=[])))
def test_clean_text_can_be_written_anywhere(text: str) -> None:
    """No surrogates, no control characters, nothing that turns the direction of text."""
    result = clean(text)
    result.encode("utf-8")
    assert not set(result) & set("\x00\x07\x1b\x7f\u202e\u2066\ufffe")


@given(st.text(st.characters(exclude_categories=[])))
def test_a_slug_is_one_plain_name(text: str) -> None:
    """It is never empty, never hidden, never a path, and safe in an attribute."""
    name = slug(text)
    assert name
    assert not name.startswith(".")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-")


@given(st.text(), st.text())
def test_different_names_have_different_slugs(one: str, other: str) -> None:
    """Also on file systems that fold case."""
    assert (slug(one).lower() == slug(other).lower()) == (one == other)


@pytest.mark.parametrize("name", ["5.16.1", "main", "5.19.0.dev0", "4.41.0rc1"])
def test_a_plain_name_keeps_its_path(name: str) -> None:
    """The page of a release is where its version says."""
    assert slug(name) == name
