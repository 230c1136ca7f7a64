import asyncio
import time

import pytest
from models_contract import asking, scripted

from archon.errors import AuthError, ConfigError, ModelError, ModelUnavailable, QuotaExhausted, RateLimited
from archon.models.throttled import Limiter, Throttled
from archon.testing import ScriptedModel


@pytest.mark.parametrize("places", [1, 3, 8])
async def test_never_more_in_flight_than_the_limit(places):
    backend = scripted(latency_s=0.002)
    model = Throttled(backend, Limiter(start=places, most=places))
    await asyncio.gather(*[model.sample(asking()) for _ in range(30)])
    assert backend.most_in_flight == places


async def test_one_limiter_holds_several_models():
    backend = scripted(latency_s=0.002)
    limiter = Limiter(start=2, most=2)
    await asyncio.gather(*[Throttled(backend, limiter).sample(asking()) for _ in range(10)])
    assert backend.most_in_flight == 2


async def test_a_queue_is_served_in_order_and_waits_outside_the_critical_path():
    order = []

    def reply(request, _):
        order.append(request.messages[0].content)
        return "x"

    model = Throttled(ScriptedModel(reply, latency_s=0.05), Limiter(start=1, most=1))
    answers = await asyncio.gather(*[model.sample(asking(str(i))) for i in range(4)])
    assert order == ["0", "1", "2", "3"]
    usages = [completion.usage for (completion,) in answers]
    assert usages[0].wait_s == 0.0
    assert all(usages[i].wait_s >= 0.05 * i - 0.005 for i in range(1, 4))
    assert {usage.critical_s for usage in usages} == {0.05}


async def test_grows_by_about_one_a_window_while_it_holds_requests_back():
    limiter = Limiter(start=4, most=6)
    model = Throttled(scripted(latency_s=0.001), limiter)
    await model.sample(asking())
    assert limiter.limit == 4  # one request at a time says nothing about 5
    await asyncio.gather(*[model.sample(asking()) for _ in range(4)])
    assert limiter.limit <= 5
    await asyncio.gather(*[model.sample(asking()) for _ in range(60)])
    assert limiter.limit == 6


async def test_a_burst_of_429_shrinks_it_once():
    limiter = Limiter(start=10, most=100)
    model = Throttled(ScriptedModel(lambda *_: RateLimited("slow"), latency_s=0.001), limiter)
    await asyncio.gather(*[model.sample(asking()) for _ in range(10)], return_exceptions=True)
    assert limiter.limit == 7
    with pytest.raises(RateLimited):
        await model.sample(asking())
    assert limiter.limit == 4


async def test_never_shrinks_below_one_place():
    limiter = Limiter(start=2, most=2)
    model = Throttled(ScriptedModel(lambda *_: RateLimited("slow")), limiter)
    for _ in range(10):
        with pytest.raises(RateLimited):
            await model.sample(asking())
    assert limiter.limit == 1


async def test_other_errors_do_not_shrink_it():
    limiter = Limiter(start=5, most=5)
    model = Throttled(ScriptedModel(lambda *_: ModelUnavailable("down")), limiter)
    with pytest.raises(ModelUnavailable):
        await model.sample(asking())
    assert limiter.limit == 5


async def test_retry_after_closes_the_gate_for_all():
    replies = iter([RateLimited("slow", 0.15), "a", "b"])
    model = Throttled(ScriptedModel(lambda *_: next(replies)), Limiter(start=8, most=8))
    with pytest.raises(RateLimited):
        await model.sample(asking())
    start = time.monotonic()
    answers = await asyncio.gather(model.sample(asking()), model.sample(asking()))
    assert 0.14 <= time.monotonic() - start < 1.0
    assert all(completion.usage.wait_s >= 0.14 for (completion,) in answers)


@pytest.mark.parametrize("kind", [QuotaExhausted, AuthError])
async def test_a_terminal_error_fails_the_queue_without_asking(kind):
    backend = ScriptedModel(lambda *_: kind("over"), latency_s=0.01)
    model = Throttled(backend, Limiter(start=2, most=2))
    answers = await asyncio.gather(*[model.sample(asking()) for _ in range(50)], return_exceptions=True)
    assert all(type(answer) is kind for answer in answers)
    assert [answer.attempts for answer in answers] == [1, 1] + [0] * 48
    assert len(backend.requests) == 2
    with pytest.raises(kind):  # the gate itself is whole
        await asyncio.wait_for(model.sample(asking()), 1)


async def test_cancelled_waiters_give_no_place_away():
    backend = scripted(latency_s=0.01)
    model = Throttled(backend, Limiter(start=1, most=1))
    tasks = [asyncio.create_task(model.sample(asking())) for _ in range(20)]
    await asyncio.sleep(0.001)
    for task in tasks[1::2]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(each, asyncio.CancelledError) for each in done) == 10
    assert len(backend.requests) == 10
    assert backend.most_in_flight == 1


async def test_an_error_gives_its_place_back():
    model = Throttled(ScriptedModel(lambda *_: ModelError("no")), Limiter(start=1, most=1))
    for _ in range(3):
        with pytest.raises(ModelError):
            await asyncio.wait_for(model.sample(asking()), 1)


@pytest.mark.parametrize("settings", [{"start": 0}, {"start": 9, "most": 8}, {"decrease": 1.0}, {"decrease": 0.0}])
def test_settings_that_cannot_be_are_refused(settings):
    with pytest.raises(ConfigError):
        Limiter(**settings)
