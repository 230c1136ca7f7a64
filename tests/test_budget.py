import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archon.budget import Budget, Ledger, Worst
from archon.errors import BudgetExceeded, ConfigError, UnknownPrice
from archon.types import Usage


def worst(calls=1, tokens=100, usd: float | None = 0.0):
    return Worst(calls=calls, tokens=tokens, usd=usd)


def took(tokens=10, calls=1, usd: float | None = 0.0, **more):
    return Usage(calls=calls, prompt_tokens=0, completion_tokens=tokens, cost_usd=usd, **more)


class Clock:
    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.mark.parametrize("name", ["tokens", "usd", "seconds", "calls"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_a_limit_that_cannot_be_is_refused(name, value):
    with pytest.raises(ConfigError, match=name):
        Budget(**{name: value})


async def test_without_limits_everything_passes():
    ledger = Ledger()
    for _ in range(3):
        ledger.settle(await ledger.reserve(worst(usd=None)), took(usd=None))
    assert (ledger.spent.calls, ledger.spent.tokens, ledger.spent.cost_usd) == (3, 30, None)
    assert ledger.seconds_left is None


@pytest.mark.parametrize(
    ("budget", "cost"),
    [
        (Budget(calls=3), worst(calls=1)),
        (Budget(tokens=300), worst(tokens=100)),
        (Budget(usd=0.3), worst(usd=0.1 - 1e-12)),
    ],
)
async def test_what_fits_exactly_passes_and_one_more_does_not(budget, cost):
    ledger = Ledger(budget)
    for _ in range(3):
        ledger.settle(await ledger.reserve(cost), took(cost.tokens, cost.calls, cost.usd))
    with pytest.raises(BudgetExceeded, match="'m' could pass the budget"):
        await ledger.reserve(cost, model="m")
    assert ledger.refusals == 1


async def test_a_budget_of_nothing_lets_nothing_through():
    for budget in (Budget(calls=0), Budget(tokens=0), Budget(seconds=0)):
        with pytest.raises(BudgetExceeded):
            await Ledger(budget).reserve(worst())


async def test_waits_for_calls_in_flight_that_may_take_less_than_their_worst():
    ledger = Ledger(Budget(tokens=150))
    first = await ledger.reserve(worst())
    waiting = asyncio.create_task(ledger.reserve(worst()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    ledger.settle(first, took(50))
    assert isinstance(await asyncio.wait_for(waiting, 1), int)


async def test_a_waiter_is_refused_once_the_call_in_flight_took_its_room():
    ledger = Ledger(Budget(tokens=150))
    first = await ledger.reserve(worst())
    waiting = asyncio.create_task(ledger.reserve(worst()))
    await asyncio.sleep(0)
    ledger.settle(first, took(51))
    with pytest.raises(BudgetExceeded, match="150 tokens"):
        await asyncio.wait_for(waiting, 1)


async def test_waiters_are_served_in_order_and_a_small_one_does_not_pass_a_large_one():
    ledger, served = Ledger(Budget(tokens=100)), []

    async def call(name, tokens):
        reservation = await ledger.reserve(worst(tokens=tokens))
        served.append(name)
        await asyncio.sleep(0)
        ledger.settle(reservation, took(0))

    await asyncio.gather(call("first", 60), call("large", 100), call("small", 1), call("smaller", 0))
    assert served == ["first", "large", "small", "smaller"]


async def test_a_cancelled_waiter_does_not_hold_up_the_next():
    ledger = Ledger(Budget(tokens=100))
    first = await ledger.reserve(worst())
    waiters = [asyncio.create_task(ledger.reserve(worst())) for _ in range(3)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    waiters[1].cancel()
    await asyncio.sleep(0)
    ledger.settle(first, took(0))
    assert isinstance(await asyncio.wait_for(waiters[2], 1), int)
    assert [each.cancelled() for each in waiters] == [True, True, False]


async def test_an_unknown_price_is_refused_under_a_dollar_limit_only():
    with pytest.raises(UnknownPrice, match="'m' has no known price"):
        await Ledger(Budget(usd=1000.0)).reserve(worst(usd=None), model="m")
    await Ledger(Budget(tokens=1000)).reserve(worst(usd=None), model="m")


async def test_the_deadline_ends_reserving_and_waiting():
    clock = Clock()
    ledger = Ledger(Budget(seconds=5.0), clock=clock)
    await ledger.reserve(worst())
    clock.now_s += 4.9
    assert ledger.seconds_left == pytest.approx(0.1)
    await ledger.reserve(worst())
    clock.now_s += 0.1
    with pytest.raises(BudgetExceeded, match=r"5\.0 seconds"):
        await ledger.reserve(worst())

    waits = Ledger(Budget(seconds=0.05, calls=1))
    await waits.reserve(worst())
    answers = await asyncio.wait_for(
        asyncio.gather(*[waits.reserve(worst()) for _ in range(3)], return_exceptions=True), 2
    )
    assert {type(answer) for answer in answers} == {BudgetExceeded}


async def test_cached_answers_are_charged_nothing_even_with_unknown_tokens():
    ledger = Ledger(Budget(tokens=100, calls=1, usd=1.0))
    for tokens in (50, None):
        saved = Usage(calls=1, prompt_tokens=tokens, cost_usd=None, saved_calls=1, saved_tokens=tokens, saved_usd=None)
        ledger.settle(await ledger.reserve(worst(usd=1.0)), saved)
    await ledger.reserve(worst(usd=1.0))


async def test_half_a_request_from_the_cache_charges_the_other_half():
    ledger = Ledger(Budget(tokens=100, calls=3))
    ledger.settle(await ledger.reserve(worst(calls=2)), took(80, calls=2, saved_calls=1, saved_tokens=40))
    await ledger.reserve(worst(calls=2, tokens=60))
    with pytest.raises(BudgetExceeded):
        await Ledger(Budget(tokens=59)).reserve(worst(tokens=60))


async def test_what_an_endpoint_does_not_say_is_charged_at_its_worst():
    ledger = Ledger(Budget(tokens=150))
    ledger.settle(await ledger.reserve(worst()), Usage(calls=1, prompt_tokens=None))
    with pytest.raises(BudgetExceeded):
        await ledger.reserve(worst(tokens=51))
    await ledger.reserve(worst(tokens=50))


async def test_an_endpoint_that_takes_more_than_allowed_is_counted_and_ends_the_run():
    ledger = Ledger(Budget(tokens=10_000))
    ledger.settle(await ledger.reserve(worst()), took(101))
    assert ledger.overruns == 1
    with pytest.raises(BudgetExceeded, match="more than it was allowed"):
        await ledger.reserve(worst())


async def test_dollars_do_not_drift_under_many_small_calls():
    ledger = Ledger(Budget(usd=1.0))
    for _ in range(1000):
        ledger.settle(await ledger.reserve(worst(usd=0.001)), took(usd=0.0007))
    assert ledger.overruns == 0
    assert ledger._in_flight.usd == 0.0
    assert ledger.spent.cost_usd == pytest.approx(0.7)


CALLS = st.lists(
    st.tuples(
        st.integers(1, 4),  # completions
        st.integers(0, 60),  # tokens at worst
        st.floats(0.0, 1.0),  # the share of them that it takes
        st.integers(0, 4),  # turns of the loop before it starts
        st.integers(0, 4),  # turns that it lasts
        st.sampled_from(["done", "failed", "cached", "cancelled"]),
    ),
    min_size=1,
    max_size=25,
)


@settings(deadline=None, max_examples=150)
@given(
    calls=CALLS,
    limit_calls=st.none() | st.integers(0, 20),
    limit_tokens=st.none() | st.integers(0, 200),
    limit_usd=st.none() | st.floats(0.0, 0.2),
)
def test_no_limit_is_ever_passed_and_waiters_are_served_in_order(calls, limit_calls, limit_tokens, limit_usd):
    """Random calls at once against an account kept apart: at every moment what was paid and what may yet be fits."""
    budget = Budget(calls=limit_calls, tokens=limit_tokens, usd=limit_usd)
    ledger = Ledger(budget)
    paid = [0, 0, 0.0]
    open_: dict[int, Worst] = {}
    came: list[int] = []
    served: list[int] = []
    refused: list[int] = []

    def check():
        for limit, used, name in zip(
            (limit_calls, limit_tokens, limit_usd), paid, ("calls", "tokens", "usd"), strict=True
        ):
            at_worst = used + sum(getattr(each, name) for each in open_.values())
            assert limit is None or at_worst <= limit + 1e-9

    async def one(number, n, most, share, start, lasts, end):
        for _ in range(start):
            await asyncio.sleep(0)
        cost = Worst(calls=n, tokens=most, usd=most / 1000)
        came.append(number)
        try:
            reservation = await ledger.reserve(cost)
        except BudgetExceeded:
            refused.append(number)
            return
        served.append(number)
        open_[number] = cost
        check()
        for _ in range(lasts):
            await asyncio.sleep(0)
        used = int(most * share)
        usage = {
            "done": took(used, n, used / 1000),
            "failed": took(0, n, 0.0),
            "cached": took(used, n, used / 1000, saved_calls=n, saved_tokens=used, saved_usd=used / 1000),
            "cancelled": Usage(calls=n, prompt_tokens=None, cost_usd=None),
        }[end]
        charged = {"done": used, "failed": 0, "cached": 0, "cancelled": most}[end]
        del open_[number]
        paid[:] = [paid[0] + (0 if end == "cached" else n), paid[1] + charged, paid[2] + charged / 1000]
        ledger.settle(reservation, usage)
        check()

    async def all_of_them():
        async with asyncio.timeout(10):
            await asyncio.gather(*[one(number, *call) for number, call in enumerate(calls)])

    asyncio.run(all_of_them())
    assert sorted(served + refused) == list(range(len(calls)))
    assert served == [number for number in came if number in served]
    assert ledger.overruns == 0
    assert ledger.refusals == len(refused)
    assert ledger._in_flight == Worst(calls=0, tokens=0, usd=0.0)
