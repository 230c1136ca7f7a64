import asyncio

import pytest

from archon.errors import ModelUnavailable, ScriptExhausted
from archon.models.protocol import Completion, Model, Price, Request
from archon.testing import ScriptedModel, reply_tokens
from archon.types import Message


def asking(text="one two three", **settings):
    return Request(messages=(Message(role="user", content=text),), **settings)


async def test_reads_its_script_in_order_and_says_when_it_ends():
    model = ScriptedModel(["a", "b b", "c"])
    assert isinstance(model, Model)
    assert [each.text for each in await model.sample(asking(n=2))] == ["a", "b b"]
    assert [each.text for each in await model.sample(asking())] == ["c"]
    with pytest.raises(ScriptExhausted, match="'scripted' was asked for call 4"):
        await model.sample(asking())
    assert model.calls == 4


async def test_a_script_that_is_too_short_for_n_is_exhausted():
    with pytest.raises(ScriptExhausted):
        await ScriptedModel(["a", "b"]).sample(asking(n=3))


async def test_a_function_gets_the_request_and_the_sample_index():
    model = ScriptedModel(lambda request, index: f"{request.messages[0].content} {index}")
    assert [each.text for each in await model.sample(asking("q", n=2, sample_index=5))] == ["q 5", "q 6"]


async def test_errors_and_whole_completions_are_given_as_they_are():
    whole = Completion(text="x", model="other", finish_reason="length")
    model = ScriptedModel([ModelUnavailable("down"), whole])
    with pytest.raises(ModelUnavailable, match="down"):
        await model.sample(asking())
    assert (await model.sample(asking()))[0] is whole


async def test_counts_words_as_tokens_and_prices_them():
    model = ScriptedModel(["a b", "c"], price=Price(prompt_usd=1e6, completion_usd=1e6))
    first, second = (each.usage for each in await model.sample(asking(n=2)))
    assert (first.prompt_tokens, first.completion_tokens, first.cost_usd, first.attempts) == (3, 2, 5.0, 1)
    assert (second.prompt_tokens, second.completion_tokens, second.cost_usd, second.attempts) == (0, 1, 1.0, 0)
    assert reply_tokens("") == 1
    (unpriced,) = await ScriptedModel(["a"], price=None).sample(asking())
    assert unpriced.usage.cost_usd is None


async def test_shows_how_many_were_in_flight():
    model = ScriptedModel(lambda *_: "x", latency_s=0.01)
    await asyncio.gather(*[model.sample(asking()) for _ in range(7)])
    assert (model.in_flight, model.most_in_flight) == (0, 7)
