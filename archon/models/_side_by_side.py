"""Run coroutines at the same time; the first exception cancels the others and is raised as itself."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def side_by_side(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results in the order of the coroutines.

    Unlike asyncio.gather it leaves nothing running after an exception, and unlike a task group it raises the exception
    itself, so that callers can go by its class.
    """
    if len(works) == 1:
        return [await works[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]
