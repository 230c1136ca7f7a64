import pytest
from hypothesis import given
from hypothesis import strategies as st
from models_chat_server import chat_reply
from models_contract import asking

from archon.models.openai_wire import completions_of, usages_of


def read(reply, n=1, opened=False):
    return completions_of(reply, asking(n=n), name="m", price=None, seconds=1.0, attempts=1, opened=opened)


def test_thinking_inside_the_text_is_taken_out_and_its_tokens_are_estimated():
    (completion,) = read(chat_reply("<think>" + "t" * 30 + "</think>" + "a" * 10, completion=40))
    assert (completion.text, completion.reasoning) == ("a" * 10, "t" * 30)
    assert (completion.usage.completion_tokens, completion.usage.reasoning_tokens) == (40, 30)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_in_a_field_of_its_own(field):
    details = {"completion_tokens_details": {"reasoning_tokens": 7}}
    (completion,) = read(chat_reply({"content": "42", field: "hm"}, completion=9, **details))
    assert (completion.text, completion.reasoning) == ("42", "hm")
    assert (completion.usage.completion_tokens, completion.usage.reasoning_tokens) == (9, 7)


def test_thinking_as_a_part_of_the_content():
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
    (completion,) = read(chat_reply({"content": parts}))
    assert (completion.text, completion.reasoning) == ("42", "hm")


def test_thinking_counted_beside_the_completion_is_added():
    details = {"completion_tokens_details": {"reasoning_tokens": 50}, "total_tokens": 20 + 5 + 50}
    (completion,) = read(chat_reply("42", prompt=20, completion=5, **details))
    assert (completion.usage.completion_tokens, completion.usage.reasoning_tokens) == (55, 50)


def test_what_is_not_reported_is_not_known():
    (completion,) = read({"choices": [{"message": {"content": "x"}}]})
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost_usd) == (None, None, None)
    assert completion.finish_reason is None


def test_no_content_is_an_empty_text():
    (completion,) = read(chat_reply({"content": None}))
    assert completion.text == ""


def test_choices_are_put_in_the_order_of_their_index():
    reply = chat_reply("first", "second", "third")
    reply["choices"].reverse()
    assert [each.text for each in read(reply, n=3)] == ["first", "second", "third"]


def test_more_choices_than_asked_for_are_cut():
    assert [each.text for each in read(chat_reply("a", "b", "c"), n=2)] == ["a", "b"]


@given(
    total=st.integers(0, 10_000),
    texts=st.lists(st.tuples(st.text(max_size=20), st.none() | st.text(max_size=20)), min_size=1, max_size=9),
    reasoning=st.none() | st.integers(0, 12_000),
)
def test_shares_add_up_to_the_total_and_are_never_negative(total, texts, reasoning):
    usage = {"prompt_tokens": 11, "completion_tokens": total}
    if reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": min(reasoning, total)}
    shares = usages_of(usage, texts, price=None, seconds=0.0, attempts=1)
    assert sum(share.completion_tokens for share in shares) == total
    assert sum(share.prompt_tokens for share in shares) == 11
    assert sum(share.attempts for share in shares) == 1
    assert all(0 <= (share.reasoning_tokens or 0) <= share.completion_tokens for share in shares)
