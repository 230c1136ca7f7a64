"""The two small things below the models: a value per event loop, and works side by side."""

import asyncio
import threading

import pytest

from archon.errors import ModelUnavailable
from archon.models._per_loop import PerLoop
from archon.models._side_by_side import side_by_side


def test_each_loop_has_its_own_value_and_closed_loops_are_forgotten():
    values = PerLoop(object)

    async def twice():
        assert values.get() is values.get()
        return values.get()

    seen = [asyncio.run(twice()) for _ in range(5)]
    assert len({id(each) for each in seen}) == 5
    assert len(values._values) == 1


def test_threads_do_not_share_a_value():
    values, seen = PerLoop(object), []
    barrier = threading.Barrier(4)

    async def one():
        barrier.wait(5)
        return values.get()

    threads = [threading.Thread(target=lambda: seen.append(asyncio.run(one()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len({id(each) for each in seen}) == 4


async def test_a_value_can_be_taken_back_once():
    values = PerLoop(object)
    assert values.pop() is None
    value = values.get()
    assert values.pop() is value
    assert values.pop() is None
    assert values.get() is not value


async def test_results_come_in_the_order_of_the_works():
    async def after(seconds, value):
        await asyncio.sleep(seconds)
        return value

    assert await side_by_side([after(0.02, "a"), after(0.0, "b"), after(0.01, "c")]) == ["a", "b", "c"]
    assert await side_by_side([]) == []


@pytest.mark.parametrize("others", [0, 3])
async def test_the_first_exception_is_raised_as_itself_and_nothing_runs_on(others):
    ended = []

    async def fails():
        await asyncio.sleep(0)
        raise ModelUnavailable("down")

    async def lasts():
        try:
            await asyncio.sleep(10)
        finally:
            ended.append(True)

    with pytest.raises(ModelUnavailable, match="down"):
        await side_by_side([*(lasts() for _ in range(others)), fails()])
    assert len(ended) == others
