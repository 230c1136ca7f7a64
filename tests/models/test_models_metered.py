import asyncio
import socket

import pytest
from models_contract import asking, scripted

from archon.budget import Budget, Ledger
from archon.errors import AnswerLost, BudgetExceeded, ModelRefused, ModelUnavailable, UnknownPrice
from archon.models.litellm_model import table_price
from archon.models.metered import Metered, worst_case
from archon.models.openai_http import OpenAIModel
from archon.models.protocol import FREE, Price
from archon.models.retrying import Retrying
from archon.models.splitting import Splitting
from archon.models.throttled import Throttled
from archon.testing import ScriptedModel
from archon.types import Usage

PRICE = Price(prompt_usd=1.0, completion_usd=10.0)


async def test_a_budget_for_10_calls_lets_10_of_100_concurrent_tasks_through():
    backend = scripted(latency_s=0.005)
    ledger = Ledger(Budget(calls=10))
    model = Metered(backend, ledger)
    answers = await asyncio.gather(*[model.sample(asking(str(i))) for i in range(100)], return_exceptions=True)
    assert backend.calls == 10
    assert sum(isinstance(each, BudgetExceeded) for each in answers) == 90
    assert (ledger.refusals, ledger.overruns, ledger.spent.calls) == (90, 0, 10)


async def test_a_budget_for_10_calls_counts_the_choices_of_one_request():
    backend = scripted(latency_s=0.001)
    model = Metered(backend, Ledger(Budget(calls=10)))
    await asyncio.gather(*[model.sample(asking(n=4)) for _ in range(100)], return_exceptions=True)
    assert backend.calls == 8


async def test_a_dollar_budget_is_not_passed_over_http(server):
    ledger = Ledger(Budget(usd=0.02))
    server.latency_s = 0.005
    endpoint = OpenAIModel(server.url, "m", price=PRICE)
    model = Metered(Splitting(Retrying(Throttled(endpoint))), ledger)
    answers = await asyncio.gather(
        *[model.sample(asking(str(i), max_tokens=500)) for i in range(300)], return_exceptions=True
    )
    paid = len(server.bodies) * (20 * 1.0 + 2 * 10.0) / 1e6
    assert ledger.spent.cost_usd == pytest.approx(paid)
    assert 0 < paid <= 0.02
    assert {type(each) for each in answers} <= {tuple, BudgetExceeded}
    await model.close()


async def test_an_unknown_price_is_an_error_under_a_dollar_budget_and_not_without():
    backend = scripted(price=None)
    with pytest.raises(UnknownPrice, match="no known price"):
        await Metered(backend, Ledger(Budget(usd=100.0))).sample(asking())
    assert backend.requests == []
    ledger = Ledger(Budget(calls=5))
    await Metered(backend, ledger).sample(asking())
    assert ledger.spent.cost_usd is None


async def test_a_free_model_spends_no_dollars():
    ledger = Ledger(Budget(usd=0.0))
    await Metered(scripted(price=FREE), ledger).sample(asking())
    assert ledger.spent.cost_usd == 0.0


async def test_a_failed_call_counts_as_a_call_and_takes_no_tokens():
    ledger = Ledger(Budget(calls=2, tokens=10_000))
    model = Metered(ScriptedModel(lambda *_: ModelUnavailable("down")), ledger)
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await model.sample(asking())
    assert (ledger.spent.calls, ledger.spent.tokens) == (2, 0)
    with pytest.raises(BudgetExceeded, match="2 calls"):
        await model.sample(asking())


async def test_a_failed_call_settles_with_its_attempts_and_its_waiting():
    ledger = Ledger()
    error = ModelUnavailable("down").with_spent(attempts=4, wait_s=7.5)
    with pytest.raises(ModelUnavailable):
        await Metered(ScriptedModel(lambda *_: error), ledger).sample(asking(n=2))
    assert ledger.spent == Usage(calls=2, attempts=4, wait_s=7.5)


async def test_a_lost_answer_is_charged_at_its_worst():
    request = asking(max_tokens=1500)
    ledger = Ledger(Budget(tokens=3000))
    lost = ScriptedModel(lambda *_: AnswerLost("gone"), price=PRICE)
    with pytest.raises(AnswerLost):
        await Metered(lost, ledger).sample(request)
    unknown = {"prompt_tokens": None, "completion_tokens": None, "reasoning_tokens": None, "cached_prompt_tokens": None}
    assert ledger.spent == Usage(calls=1, attempts=1, cost_usd=None, **unknown)
    with pytest.raises(BudgetExceeded, match="3000 tokens"):
        await Metered(scripted(), ledger).sample(request)
    assert ledger.overruns == 0


async def test_a_lost_answer_of_a_free_model_costs_nothing():
    ledger = Ledger(Budget(usd=0.0))
    with pytest.raises(AnswerLost):
        await Metered(ScriptedModel(lambda *_: AnswerLost("gone")), ledger).sample(asking())
    assert (ledger.spent.cost_usd, ledger.spent.tokens) == (0.0, None)


async def test_over_http_a_time_out_is_charged_and_a_refused_connection_is_not(server):
    server.latency_s = 2.0
    slow = Retrying(OpenAIModel(server.url, "m", timeout_s=0.1), max_retries=1, base_s=0.0)
    ledger = Ledger(Budget(tokens=3000))
    with pytest.raises(AnswerLost):
        await Metered(slow, ledger).sample(asking(max_tokens=1500))
    assert (ledger.spent.attempts, ledger.spent.tokens) == (2, None)
    assert ledger.spent.wait_s >= 0.2
    with pytest.raises(BudgetExceeded):
        await Metered(slow, ledger).sample(asking(max_tokens=1500))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    nobody = Retrying(OpenAIModel(url, "m"), max_retries=1, base_s=0.0)
    ledger = Ledger(Budget(tokens=3000))
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await Metered(nobody, ledger).sample(asking(max_tokens=1500))
    assert (ledger.spent.attempts, ledger.spent.tokens) == (4, 0)
    await slow.close()
    await nobody.close()


async def test_the_deadline_cuts_a_call_off():
    ledger = Ledger(Budget(seconds=0.05))
    backend = scripted(latency_s=5.0)
    with pytest.raises(BudgetExceeded, match=r"cut off at 0\.05 s"):
        await Metered(backend, ledger).sample(asking())
    assert backend.in_flight == 0
    assert (ledger.spent.prompt_tokens, ledger.spent.completion_tokens, ledger.spent.cost_usd) == (None, None, 0.0)
    with pytest.raises(BudgetExceeded):
        await Metered(backend, ledger).sample(asking())
    assert len(backend.requests) == 1


async def test_a_time_out_of_the_models_own_is_not_the_budgets():
    class Slow(ScriptedModel):
        async def sample(self, request):
            raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await Metered(Slow([]), Ledger(Budget(seconds=60.0))).sample(asking())


async def test_a_cancelled_call_is_charged_at_its_worst():
    ledger = Ledger(Budget(tokens=3000))
    request = asking(max_tokens=1500)
    task = asyncio.create_task(Metered(scripted(latency_s=5.0), ledger).sample(request))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(BudgetExceeded, match="3000 tokens"):
        await Metered(scripted(), ledger).sample(request)


def test_the_worst_case_by_hand():
    request = asking("x" * 20, n=3, max_tokens=100)
    assert request.prompt_tokens_bound == 64 + 16 + 20
    worst = worst_case(request, Price(prompt_usd=1.0, completion_usd=10.0, cached_prompt_usd=2.0))
    assert (worst.calls, worst.tokens) == (3, 600)
    assert worst.usd == pytest.approx((300 * 2.0 + 300 * 10.0) / 1e6)
    assert worst_case(request, None).usd is None


def test_a_name_that_resembles_a_known_one_has_no_price():
    pytest.importorskip("litellm")
    assert table_price("gpt-4o-mini") is not None
    assert table_price("gpt-4o-mini-foo") is None


async def test_text_that_is_not_unicode_is_one_clear_error_and_no_call():
    backend = scripted()
    ledger = Ledger(Budget(calls=1))
    with pytest.raises(ModelRefused, match="UTF-8: surrogates not allowed"):
        await Metered(backend, ledger).sample(asking("bad \udcff byte"))
    assert backend.calls == 0
    assert ledger.spent == Usage()
