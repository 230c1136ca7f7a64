"""The adapter against a stand-in for litellm; the last tests run where litellm itself is installed."""

import importlib.util
import logging
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest
from models_chat_server import chat_reply
from models_contract import asking

from archon.errors import (
    AnswerLost,
    AuthError,
    ConfigError,
    MissingExtra,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from archon.models.litellm_model import LiteLLMModel, table_price
from archon.models.protocol import Price

KEY = "sk-sentinel-0123456789abcdef"


class Failure(Exception):
    def __init__(self, message="", status_code=None, headers=None):
        super().__init__(message)
        self.status_code = status_code
        self.response = SimpleNamespace(headers=headers or {})


class FakeLiteLLM(ModuleType):
    def __init__(self):
        super().__init__("litellm")
        self.__spec__ = ModuleSpec("litellm", None)
        self.Timeout = type("Timeout", (Failure,), {})
        self.APIConnectionError = type("APIConnectionError", (Failure,), {})
        self.BadRequestError = type("BadRequestError", (Failure,), {})
        self.model_cost = {
            "gpt-4o-mini": {
                "input_cost_per_token": 1e-6,
                "output_cost_per_token": 2e-6,
                "cache_read_input_token_cost": 5e-7,
                "litellm_provider": "openai",
            },
            "free/half": {"input_cost_per_token": 1e-6},
        }
        self.asked = []
        self.closed = 0
        self.known = ["n", "seed"]
        self.reply = lambda body: chat_reply(*["two words"] * body.get("n", 1))

    def get_supported_openai_params(self, model):
        return self.known

    async def acompletion(self, **body):
        self.asked.append(body)
        reply = self.reply(body)
        if isinstance(reply, BaseException):
            raise reply
        return SimpleNamespace(model_dump=lambda: reply)

    async def close_litellm_async_clients(self):
        self.closed += 1


@pytest.fixture
def litellm(monkeypatch):
    fake = FakeLiteLLM()
    monkeypatch.setitem(sys.modules, "litellm", fake)
    monkeypatch.setenv("PROVIDER_KEY", KEY)
    level = logging.getLogger("LiteLLM").level
    yield fake
    logging.getLogger("LiteLLM").setLevel(level)


def test_without_litellm_it_says_which_extra_is_missing(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"archon-ttc\[providers\]"):
        LiteLLMModel("openai/gpt-4o-mini")


async def test_asks_once_with_what_the_request_sets_and_no_retries_inside(litellm):
    model = LiteLLMModel("openai/gpt-4o-mini", api_key_env="PROVIDER_KEY", base_url="http://h", extra_body={"top_k": 3})
    completions = await model.sample(asking("hi", n=2, temperature=0.0, seed=4, max_tokens=9, effort="high"))
    assert litellm.asked == [
        {
            "model": "openai/gpt-4o-mini",
            "messages": [{"role": "user", "content": "hi"}],
            "max_tokens": 9,
            "n": 2,
            "temperature": 0.0,
            "seed": 4,
            "reasoning_effort": "high",
            "top_k": 3,
            "api_key": KEY,
            "base_url": "http://h",
            "timeout": 600.0,
            "num_retries": 0,
            "max_retries": 0,
        }
    ]
    assert [each.seed for each in completions] == [4, 5]
    assert completions[0].usage.cost_usd == pytest.approx((20 * 1.0 + 2 * 2.0) / 1e6)
    assert KEY not in repr(model) + model.identity


async def test_a_seed_that_the_provider_lacks_is_neither_sent_nor_claimed(litellm):
    litellm.known = []
    (completion,) = await LiteLLMModel("anthropic/claude").sample(asking(seed=4))
    assert "seed" not in litellm.asked[0]
    assert completion.seed is None
    with pytest.raises(ModelRefused, match="'n'"):
        await LiteLLMModel("anthropic/claude").sample(asking(n=2))


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure("bad", 400), ModelRefused),
        (Failure(f"key {KEY}", 401), AuthError),
        (Failure(f"key {KEY}", 403), AuthError),
        (Failure("pay", 402), QuotaExhausted),
        (Failure("unknown", 404), ModelRefused),
        (Failure("slow", 408), ModelUnavailable),
        (Failure(f"slow {KEY}", 429), RateLimited),
        (Failure("insufficient_quota", 429), QuotaExhausted),
        (Failure("down", 500), ModelUnavailable),
        (ConnectionResetError("reset"), ModelUnavailable),
        (TimeoutError(), AnswerLost),
        (Failure("gateway", 504), AnswerLost),
    ],
)
async def test_each_exception_becomes_its_own_error(litellm, failure, kind):
    litellm.reply = lambda _: failure
    model = LiteLLMModel("openai/gpt-4o-mini", api_key_env="PROVIDER_KEY")
    with pytest.raises(kind) as caught:
        await model.sample(asking())
    assert type(caught.value) is kind
    assert KEY not in repr(caught.value)
    assert len(litellm.asked) == 1


async def test_a_connection_error_that_says_500_and_a_retry_after(litellm):
    litellm.reply = lambda _: litellm.APIConnectionError("gone")
    with pytest.raises(ModelUnavailable) as caught:
        await LiteLLMModel("openai/gpt-4o-mini").sample(asking())
    assert not caught.value.may_be_billed
    litellm.reply = lambda _: litellm.Timeout("no answer", 408)
    with pytest.raises(AnswerLost):
        await LiteLLMModel("openai/gpt-4o-mini").sample(asking())
    litellm.reply = lambda _: Failure("slow", 429, {"retry-after": "7"})
    with pytest.raises(RateLimited) as caught:
        await LiteLLMModel("openai/gpt-4o-mini").sample(asking())
    assert caught.value.retry_after_s == 7.0


async def test_a_fault_of_the_program_is_not_dressed_up(litellm):
    litellm.reply = lambda _: ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError):
        await LiteLLMModel("openai/gpt-4o-mini").sample(asking())


def test_prices_are_found_by_the_exact_name(litellm):
    price = Price(prompt_usd=1.0, completion_usd=2.0, cached_prompt_usd=0.5)
    assert table_price("gpt-4o-mini") == table_price("openai/gpt-4o-mini") == price
    for other in ("gpt-4o-mini-foo", "gpt-4o", "azure/gpt-4o-mini", "openai/gpt-4o-mini-2030", "free/half", ""):
        assert table_price(other) is None
    assert LiteLLMModel("gpt-4o-mini-foo").price is None
    own = Price(prompt_usd=9.0, completion_usd=9.0)
    assert LiteLLMModel("gpt-4o-mini", price=own).price == own


async def test_names_keys_and_closing(litellm, monkeypatch):
    with pytest.raises(ConfigError):
        LiteLLMModel("")
    one, two = LiteLLMModel("a/b"), LiteLLMModel("a/b", base_url="http://h")
    assert one.identity != two.identity != LiteLLMModel("a/b", base_url="http://h", extra_body={"x": 1}).identity
    monkeypatch.delenv("PROVIDER_KEY")
    with pytest.raises(AuthError, match="PROVIDER_KEY"):
        await LiteLLMModel("a/b", api_key_env="PROVIDER_KEY").sample(asking())
    await one.close()
    await one.close()
    assert litellm.closed == 2


@pytest.mark.slow
async def test_the_real_litellm_against_a_server(server, monkeypatch):
    pytest.importorskip("litellm")
    monkeypatch.setenv("PROVIDER_KEY", KEY)
    model = LiteLLMModel("openai/gpt-4o-mini", api_key_env="PROVIDER_KEY", base_url=server.url)
    completions = await model.sample(asking(n=2, temperature=0.0, seed=3))
    assert [each.text for each in completions] == ["sample 3", "sample 4"]
    assert server.bodies[0]["temperature"] == 0.0
    server.answer = lambda *_: (503, "down", {})
    with pytest.raises(ModelUnavailable):
        await model.sample(asking())
    assert len(server.bodies) == 2
    await model.close()
