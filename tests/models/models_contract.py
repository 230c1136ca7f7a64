"""What every model keeps to, whatever is inside: test classes inherit this and say how theirs is made."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from archon.errors import ModelError, ModelRefused
from archon.models.protocol import Model, Request
from archon.testing import ScriptedModel
from archon.types import Message, beside


@dataclass
class Made:
    """A model, and what the back-end behind it saw."""

    model: Model
    temperatures: Callable[[], list[float | None]]
    calls: Callable[[], int]
    completion_tokens: Callable[[], int]


def asking(text: str = "What is 6 × 7?", **settings: object) -> Request:
    return Request(messages=(Message(role="user", content=text),), **settings)


def scripted(fails: bool = False, **settings: object) -> ScriptedModel:
    """A back-end whose replies are two words that name the sample, or that refuses everything."""
    return ScriptedModel(lambda _, index: ModelRefused("no") if fails else f"sample {index}", **settings)


def around(backend: ScriptedModel, model: Model) -> Made:
    """A made model over a scripted back-end."""
    return Made(
        model,
        temperatures=lambda: [request.temperature for request in backend.requests],
        calls=lambda: backend.calls,
        completion_tokens=lambda: 2 * backend.calls,
    )


class ModelContract:
    threads = True
    """Whether it may be used from several threads at once."""

    @pytest.fixture
    def make(self) -> Callable[..., Made]:
        """Returns a function that makes the model, over a back-end that refuses everything when `fails=True`."""
        raise NotImplementedError

    @pytest.mark.parametrize("n", [1, 2, 7])
    async def test_gives_exactly_n_completions_with_distinct_seeds(self, make, n):
        made = make()
        completions = await made.model.sample(asking(n=n, seed=100, sample_index=3))
        assert [completion.seed for completion in completions] == list(range(100, 100 + n))
        assert all(completion.error is None and completion.text for completion in completions)
        assert len({completion.text for completion in completions}) == n
        assert all(completion.model == made.model.name for completion in completions)
        assert made.calls() == n
        await made.model.close()

    async def test_temperature_zero_reaches_the_back_end_as_zero(self, make):
        made = make()
        await made.model.sample(asking(temperature=0.0))
        await made.model.sample(asking(temperature=None))
        assert made.temperatures() == [0.0, None]
        await made.model.close()

    async def test_a_request_that_fails_raises_a_model_error(self, make):
        made = make(fails=True)
        for n in (1, 3):
            with pytest.raises(ModelError):
                await made.model.sample(asking(n=n))
        await made.model.close()

    async def test_success_at_once_is_one_call(self, make):
        made = make()
        (completion,) = await made.model.sample(asking())
        assert made.calls() == 1
        assert (completion.usage.calls, completion.usage.attempts) == (1, 1)
        await made.model.close()

    async def test_usage_of_50_concurrent_calls_is_what_the_back_end_counted(self, make):
        made = make()
        answers = await asyncio.gather(*[made.model.sample(asking(f"question {i}", n=1 + i % 2)) for i in range(50)])
        usage = beside(completion.usage for completions in answers for completion in completions)
        assert usage.calls == made.calls() == 75
        assert usage.completion_tokens == made.completion_tokens()
        await made.model.close()

    async def test_closes_twice_and_before_any_use(self, make):
        made = make()
        await made.model.close()
        await made.model.sample(asking())
        await made.model.close()
        await made.model.close()

    def test_serves_two_event_loops_in_a_row(self, make):
        made = make()
        for question in ("first", "second"):
            assert len(asyncio.run(made.model.sample(asking(question, n=2)))) == 2
        assert made.calls() == 4

    def test_serves_two_threads_at_once(self, make):
        if not self.threads:
            pytest.skip("belongs to one event loop by contract")
        made, counts = make(), []

        async def several(name: str) -> int:
            return len(await asyncio.gather(*[made.model.sample(asking(f"{name} {i}")) for i in range(10)]))

        threads = [
            threading.Thread(target=lambda name=name: counts.append(asyncio.run(several(name)))) for name in "ab"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        assert counts == [10, 10]
        assert made.calls() == 20
