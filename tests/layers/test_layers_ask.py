import pytest

from archon.budget import Budget, Ledger
from archon.errors import (
    AnswerLost,
    AuthError,
    ConfigError,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
    ScriptExhausted,
    UnknownPrice,
)
from archon.layers import Critic
from archon.layers.ask import ask, derive_seed, over_budget, request_of, spent, tally
from archon.models.metered import Metered
from archon.models.protocol import Request
from archon.testing import ScriptedModel
from archon.types import Message

REQUEST = Request(messages=(Message(role="user", content="hi"),), n=3)


@pytest.mark.parametrize("error", [ModelUnavailable("down"), RateLimited("slow down"), ModelRefused("bad request")])
async def test_a_failed_request_is_n_lost_completions(error):
    completions = await ask(ScriptedModel([error] * 3), REQUEST)
    assert [c.error for c in completions] == [f"{type(error).__name__}: {error}"] * 3
    assert spent(completions).calls == 3
    assert spent(completions).attempts == 1
    assert over_budget(completions) is None


async def test_a_lost_answer_is_booked_as_the_ledger_books_it():
    failed = AnswerLost("cut off").with_spent(attempts=4, wait_s=1.5, may_be_billed=True)
    took = spent(await ask(ScriptedModel([failed] * 3), REQUEST))
    assert (took.calls, took.attempts, took.wait_s) == (3, 4, 1.5)
    assert took.tokens is None  # the provider may have billed it


@pytest.mark.parametrize("error", [AuthError("key"), QuotaExhausted("empty")])
async def test_terminal_errors_are_raised(error):
    with pytest.raises(type(error)):
        await ask(ScriptedModel([error] * 3), REQUEST)


async def test_a_dry_script_and_an_unknown_price_are_raised():
    with pytest.raises(ScriptExhausted):
        await ask(ScriptedModel(["one"]), REQUEST)
    with pytest.raises(UnknownPrice):
        await ask(Metered(ScriptedModel(["a"] * 3, price=None), Ledger(Budget(usd=1.0))), REQUEST)


async def test_a_forbidden_call_is_marked_and_takes_nothing():
    model = ScriptedModel(["a"] * 3)
    completions = await ask(Metered(model, Ledger(Budget(calls=2))), REQUEST)
    assert model.calls == 0
    assert [c.finish_reason for c in completions] == ["budget"] * 3
    assert "2 calls" in over_budget(completions)
    assert spent(completions).calls == 0


async def test_a_name_is_no_model():
    with pytest.raises(ConfigError, match="'gpt'"):
        await ask("gpt", REQUEST)


def test_seeds_are_stable_and_differ():
    assert derive_seed(0, "generator", 0) == derive_seed(0, "generator", 0) == 1669905029
    seeds = {derive_seed(s, label, r) for s in range(20) for label in ("a", "b") for r in range(20)}
    assert len(seeds) == 800
    assert all(0 <= seed < 2**31 - 2**20 for seed in seeds)


def test_a_layers_request_has_its_settings_and_a_seed_of_its_place():
    critic = Critic(label="nitpick", temperature=0.3, max_tokens=9, effort="low", seed=4)
    request = request_of(critic, REQUEST.messages, 1, "verdict", n=3)
    seed = derive_seed(4, "nitpick", 1, "verdict")
    assert request == Request(
        messages=REQUEST.messages, n=3, temperature=0.3, max_tokens=9, seed=seed, effort="low", sample_index=0
    )
    assert request_of(critic, REQUEST.messages, 1).seed == derive_seed(4, "nitpick", 1) != seed


def test_tally_keeps_the_order_of_the_statuses():
    assert tally(["failed", "ok", "failed"]) == (("ok", 1), ("failed", 2))
