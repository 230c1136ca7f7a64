import pytest

from archon.models.thinking import split_thinking


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        ("42", "42", None),
        ("", "", None),
        ("<think>hm</think>42", "42", "hm"),
        ("<think>\nhm\n</think>\n\n42\n", "42", "hm"),
        ("<think></think>42", "42", None),
        ("<think>one</think>a\n<think>two</think>b", "a\nb", "one\n\ntwo"),
        ("<think>never closed, cut at", "", "never closed, cut at"),
        ("a\n<think>later, cut at", "a", "later, cut at"),
        ("opened by the template</think>42", "42", "opened by the template"),
        ("first</think>\n<think>second</think>42", "42", "first\n\nsecond"),
        ("print('<think>')", "print('<think>')", None),
        ("s.split('</think>')", "s.split('</think>')", None),
        ('x = "<think>" in s\ny = "</think>"', 'x = "<think>" in s\ny = "</think>"', None),
        ("I rethink>this", "I rethink>this", None),
    ],
)
def test_thinking_is_taken_out_of_the_answer(text, answer, thinking):
    assert split_thinking(text) == (answer, thinking)


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        ("all thinking, cut at", "", "all thinking, cut at"),
        ("thinking</think>42", "42", "thinking"),
        ("<think>its own tag, cut at", "", "<think>its own tag, cut at"),
        ("", "", None),
    ],
)
def test_a_template_that_opens_the_thinking(text, answer, thinking):
    assert split_thinking(text, opened=True) == (answer, thinking)


def test_a_long_text_of_tags_is_read_in_linear_time():
    text = "<think>" * 50_000
    assert split_thinking(text)[0] == ""
