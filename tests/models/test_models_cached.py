import asyncio
import dataclasses
import random

import pytest
from models_contract import asking, scripted

from archon.budget import Budget, Ledger
from archon.errors import AnswerLost, BudgetExceeded, JournalError, ModelUnavailable
from archon.models.cached import Cached, key_of
from archon.models.completion_store import CompletionStore
from archon.models.metered import Metered
from archon.models.openai_http import OpenAIModel
from archon.models.protocol import Completion, Price
from archon.models.splitting import Splitting
from archon.testing import ScriptedModel
from archon.types import Image, Message, Usage, beside


@pytest.fixture
def store(tmp_path):
    with_store = CompletionStore(tmp_path / "cache.sqlite")
    yield with_store
    with_store.close()


def stochastic():
    rng = random.Random(7)
    return ScriptedModel(lambda *_: f"draw {rng.random()}", price=Price(prompt_usd=1.0, completion_usd=2.0))


async def test_five_samples_are_distinct_and_a_rerun_gives_the_same_in_order(store):
    backend = stochastic()
    first = await Cached(backend, store).sample(asking(n=5))
    again = await Cached(backend, store).sample(asking(n=5))
    assert len({each.text for each in first}) == 5
    assert [each.text for each in again] == [each.text for each in first]
    assert backend.calls == 5


async def test_eight_after_five_asks_for_three(store):
    backend = stochastic()
    model = Cached(backend, store)
    five = await model.sample(asking(n=5, seed=100))
    eight = await model.sample(asking(n=8, seed=100))
    assert [each.text for each in eight[:5]] == [each.text for each in five]
    assert [(each.n, each.sample_index, each.seed) for each in backend.requests] == [(5, 0, 100), (3, 5, 105)]
    assert [each.seed for each in eight] == list(range(100, 108))


async def test_a_gap_is_asked_for_alone(store):
    backend = scripted()
    model = Cached(backend, store)
    await model.sample(asking(n=2))
    await model.sample(asking(n=1, sample_index=4))
    texts = [each.text for each in await model.sample(asking(n=6))]
    assert texts == [f"sample {i}" for i in range(6)]
    assert sorted((each.sample_index, each.n) for each in backend.requests[2:]) == [(2, 2), (5, 1)]


async def test_two_urls_and_two_temperatures_are_four_entries(server, store):
    for model in (OpenAIModel(server.url, "m"), OpenAIModel(server.url.replace("127.0.0.1", "localhost"), "m")):
        for temperature in (0.0, 1.0):
            await Cached(model, store).sample(asking(temperature=temperature))
            await Cached(model, store).sample(asking(temperature=temperature))
        await model.close()
    assert len(server.bodies) == 4


def test_every_setting_that_decides_the_answer_is_in_the_key():
    base = asking()
    other = [
        {"temperature": 0.0},
        {"temperature": 1.0},
        {"top_p": 0.5},
        {"max_tokens": 7},
        {"stop": ("x",)},
        {"seed": 0},
        {"seed": 1},
        {"effort": "none"},
        {"messages": (Message(role="system", content="What is 6 × 7?"),)},
        {"messages": (Message(role="user", content=("What is 6 × 7?",)),)},
        {"messages": (Message(role="user", content=("What is 6 × 7?", Image(url="http://e.org/a.png"))),)},
        {
            "messages": (
                Message(role="user", content=("What is 6 × 7?", Image(url="http://e.org/a.png", detail="low"))),
            )
        },
    ]
    keys = {key_of("a", base), key_of("b", base), *[key_of("a", dataclasses.replace(base, **each)) for each in other]}
    assert len(keys) == 2 + len(other)
    known = {field.name for field in dataclasses.fields(base)}
    assert known == {name for each in other for name in each} | {"n", "sample_index"}


def test_n_and_the_place_in_the_series_are_not_in_the_key():
    whole = asking(n=8, seed=10)
    assert key_of("a", whole) == key_of("a", dataclasses.replace(whole, n=3, seed=15, sample_index=5))
    assert key_of("a", asking(temperature=1)) == key_of("a", asking(temperature=1.0))


async def test_a_cached_answer_says_what_it_took_and_that_it_was_not_paid(store):
    model = Cached(stochastic(), store)
    first = beside(each.usage for each in await model.sample(asking(n=3)))
    again = beside(each.usage for each in await model.sample(asking(n=3)))
    assert (again.tokens, again.cost_usd, again.critical_s) == (first.tokens, first.cost_usd, first.critical_s)
    assert (again.saved_calls, again.saved_tokens) == (3, first.tokens)
    assert (again.paid_calls, again.paid_tokens, again.attempts) == (0, 0, 0)
    assert again.paid_usd == pytest.approx(0.0)
    assert first.paid_usd == first.cost_usd > 0


async def test_a_ledger_charges_cached_answers_nothing(store):
    backend = stochastic()
    first = Ledger()
    await Metered(Cached(backend, store), first).sample(asking(n=4))
    second = Ledger(Budget(calls=4))
    model = Metered(Cached(backend, store), second)
    for _ in range(3):
        await model.sample(asking(n=4))
    assert (second.spent.calls, second.spent.paid_calls, second.spent.paid_usd) == (12, 0, 0.0)
    await model.sample(asking("new", n=4))
    with pytest.raises(BudgetExceeded):
        await model.sample(asking("one more"))


async def test_the_same_question_at_the_same_time_is_asked_once(store):
    backend = scripted(latency_s=0.01)
    model = Cached(backend, store)
    answers = await asyncio.gather(*[model.sample(asking(n=3)) for _ in range(10)])
    assert len({tuple(each.text for each in answer) for answer in answers}) == 1
    assert backend.calls == 3
    assert sum(each.usage.paid_calls for answer in answers for each in answer) == 3


async def test_overlapping_questions_ask_only_for_what_is_new(store):
    backend = scripted(latency_s=0.01)
    model = Cached(backend, store)
    await asyncio.gather(*[model.sample(asking(n=n, sample_index=start)) for start, n in [(2, 2), (0, 5), (3, 4)]])
    asked = [index for each in backend.requests for index in range(each.sample_index, each.sample_index + each.n)]
    assert sorted(asked) == list(range(7))


async def test_when_the_one_who_asks_is_cancelled_another_asks(store):
    backend = scripted(latency_s=0.02)
    model = Cached(backend, store)
    first = asyncio.create_task(model.sample(asking()))
    await asyncio.sleep(0.005)
    second = asyncio.create_task(model.sample(asking()))
    await asyncio.sleep(0.005)
    first.cancel()
    assert (await asyncio.wait_for(second, 1))[0].text == "sample 0"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_failures_and_broken_completions_are_not_kept(store):
    replies = iter(
        [
            ModelUnavailable("down"),
            Completion(text="cut", model="m", finish_reason="abort", usage=Usage(calls=1)),
            Completion(text="", model="m", error="lost", usage=Usage(calls=1)),
            "good",
        ]
    )
    backend = ScriptedModel(lambda *_: next(replies))
    model = Cached(backend, store)
    with pytest.raises(ModelUnavailable):
        await model.sample(asking())
    texts = [(await model.sample(asking()))[0].text for _ in range(4)]
    assert texts == ["cut", "", "good", "good"]
    assert backend.calls == 4


async def test_what_was_lost_is_on_the_account_of_the_one_who_asked(store):
    error = AnswerLost("gone").with_spent(attempts=3, wait_s=2.5, may_be_billed=True)
    model = Cached(ScriptedModel(lambda *_: error, latency_s=0.01), store)
    one, other = await asyncio.gather(*[model.sample(asking(n=2)) for _ in range(2)], return_exceptions=True)
    assert (one.attempts, one.wait_s, one.may_be_billed) == (3, 2.5, True)
    assert (other.attempts, other.wait_s, other.may_be_billed) == (0, 0.0, False)
    assert str(one) == str(other) == "gone"


async def test_a_completion_lost_among_others_says_what_it_took_and_only_once(store):
    def first_is_lost(_, index):
        return ModelUnavailable("down").with_spent(attempts=4, wait_s=1.5) if index == 0 else f"sample {index}"

    model = Cached(Splitting(ScriptedModel(first_is_lost, latency_s=0.01), max_n=1), store)
    one, other = await asyncio.gather(*[model.sample(asking(n=2)) for _ in range(2)])
    assert [each.error for each in one] == [each.error for each in other] == ["down", None]
    assert (one[0].usage.attempts, one[0].usage.wait_s) == (4, 1.5)
    assert other[0].usage == Usage(calls=1)


async def test_a_stored_sample_beside_a_lost_one_is_not_lost(store):
    replies = iter(["kept", AnswerLost("gone").with_spent(attempts=2, wait_s=1.0, may_be_billed=True)])
    model = Cached(ScriptedModel(lambda *_: next(replies)), store)
    await model.sample(asking())
    kept, lost = await model.sample(asking(n=2))
    assert (kept.text, kept.usage.saved_calls, kept.usage.attempts) == ("kept", 1, 0)
    assert (lost.error, lost.usage.attempts, lost.usage.wait_s, lost.usage.tokens) == ("gone", 2, 1.0, None)


async def test_a_truncated_completion_is_kept(store):
    replies = iter([Completion(text="cut", model="m", finish_reason="length", usage=Usage(calls=1))])
    model = Cached(ScriptedModel(replies), store)
    for _ in range(2):
        assert (await model.sample(asking()))[0].truncated


async def test_a_store_that_cannot_be_read_stops_the_call(tmp_path):
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"not a database, " * 1000)
    backend = scripted()
    model = Cached(backend, CompletionStore(path))
    with pytest.raises(JournalError, match="move it away"):
        await model.sample(asking())
    assert backend.requests == []


async def test_no_key_is_in_the_file(server, tmp_path, monkeypatch):
    secret = "sk-sentinel-0123456789abcdef"
    monkeypatch.setenv("ENDPOINT_KEY", secret)
    store = CompletionStore(tmp_path / "cache.sqlite")
    model = Cached(OpenAIModel(server.url, "m", api_key_env="ENDPOINT_KEY"), store)
    await model.sample(asking(n=2))
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"sample 1" in written
    assert secret.encode() not in written
    await model.close()
