import random

import pytest
from models_contract import asking, scripted

from archon.errors import (
    AnswerLost,
    AuthError,
    ConfigError,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
    ScriptExhausted,
)
from archon.models.openai_http import OpenAIModel
from archon.models.retrying import Retrying
from archon.models.splitting import Splitting
from archon.models.throttled import Throttled
from archon.testing import ScriptedModel


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now_s = 0.0
        self.slept_s = []

    def clock(self):
        return self.now_s

    async def sleep(self, seconds):
        self.slept_s.append(seconds)
        self.now_s += seconds


def retrying(model, **settings):
    time = FakeTime()
    return Retrying(model, sleep=time.sleep, clock=time.clock, rng=random.Random(0), **settings), time


@pytest.mark.parametrize("retries", [0, 1, 3])
@pytest.mark.parametrize("error", [ModelUnavailable("down"), RateLimited("slow"), RateLimited("slow", 2.0)])
async def test_r_retries_are_r_plus_1_attempts(retries, error):
    backend = ScriptedModel(lambda *_: error)
    model, time = retrying(backend, max_retries=retries)
    with pytest.raises(type(error)):
        await model.sample(asking())
    assert len(backend.requests) == retries + 1
    assert len(time.slept_s) == retries


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_r_retries_are_r_plus_1_posts_through_the_whole_stack(server, retries):
    server.answer = lambda *_: (503, "down", {})
    model = Splitting(Retrying(Throttled(OpenAIModel(server.url, "m")), max_retries=retries, base_s=0.0))
    with pytest.raises(ModelUnavailable):
        await model.sample(asking())
    assert len(server.bodies) == retries + 1
    await model.close()


@pytest.mark.parametrize("kind", [ModelRefused, AuthError, QuotaExhausted, ScriptExhausted])
async def test_what_a_retry_cannot_help_is_tried_once(kind):
    backend = ScriptedModel(lambda *_: kind("no"))
    model, _ = retrying(backend)
    with pytest.raises(kind):
        await model.sample(asking())
    assert len(backend.requests) == 1


async def test_failed_attempts_and_their_time_are_on_the_usage_and_not_in_the_critical_path():
    time = FakeTime()
    replies = iter([RateLimited("slow", 10.0), ModelUnavailable("down"), "fine"])

    def reply(*_):
        time.now_s += 1.0  # each attempt takes a second
        return next(replies)

    model = Retrying(ScriptedModel(reply), sleep=time.sleep, clock=time.clock, rng=random.Random(0))
    (completion,) = await model.sample(asking())
    usage = completion.usage
    assert usage.attempts == 3
    assert usage.wait_s == pytest.approx(2.0 + sum(time.slept_s))
    assert time.slept_s[0] >= 10.0
    assert usage.critical_s == 0.0


async def test_an_error_says_what_all_attempts_took():
    time = FakeTime()
    last = ModelUnavailable("down")

    def reply(*_):
        time.now_s += 1.0  # each attempt takes a second
        return next(replies)

    model = Retrying(
        ScriptedModel(reply), max_retries=2, sleep=time.sleep, clock=time.clock, rng=random.Random(0), base_s=0.0
    )
    for first, may_be_billed in [(RateLimited("slow", 10.0), False), (AnswerLost("gone"), True)]:
        replies = iter([first, last, last])
        slept_s = sum(time.slept_s)
        with pytest.raises(ModelUnavailable, match="down") as caught:
            await model.sample(asking())
        assert type(caught.value) is ModelUnavailable
        assert caught.value.attempts == 3
        assert caught.value.wait_s == pytest.approx(3.0 + sum(time.slept_s) - slept_s)
        assert caught.value.may_be_billed is may_be_billed
    assert last.attempts == 1


async def test_a_429_is_waited_for_in_wait_s_over_http(server):
    def limited_once(body, number):
        return (429, "slow", {"Retry-After": "0.2"}) if number == 0 else server.usual(body, number)

    server.answer = limited_once
    model = Retrying(Throttled(OpenAIModel(server.url, "m")), base_s=0.0)
    (completion,) = await model.sample(asking())
    assert 0.2 <= completion.usage.wait_s < 1.0
    assert completion.usage.critical_s < 0.15
    assert completion.usage.attempts == 2
    await model.close()


async def test_back_off_doubles_to_its_cap_with_full_jitter():
    model, time = retrying(ScriptedModel(lambda *_: ModelUnavailable("down")), max_retries=8, base_s=1.0, cap_s=20.0)
    for _ in range(200):
        with pytest.raises(ModelUnavailable):
            await model.sample(asking())
    for n, most in enumerate([1, 2, 4, 8, 16, 20, 20, 20]):
        waits = time.slept_s[n::8]
        assert all(0.0 <= wait <= most for wait in waits)
        assert max(waits) > 0.9 * most
        assert min(waits) < 0.1 * most


async def test_retry_after_is_kept_to_and_spread_and_given_up_beyond_patience():
    model, time = retrying(ScriptedModel(lambda *_: RateLimited("slow", 300.0)), max_retries=1)
    with pytest.raises(RateLimited):
        await model.sample(asking())
    assert 300.0 < time.slept_s[0] <= 300.5
    backend = ScriptedModel(lambda *_: RateLimited("slow", 300.1))
    model, time = retrying(backend, max_retries=5)
    with pytest.raises(RateLimited):
        await model.sample(asking())
    assert (len(backend.requests), time.slept_s) == (1, [])


def test_negative_retries_are_refused():
    with pytest.raises(ConfigError, match="-1"):
        Retrying(scripted(), max_retries=-1)
