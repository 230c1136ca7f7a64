"""Batches end to end in a real sandbox, with a scripted model: fixed, not fixed, refused, resumed, reported."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from archon import Generator
from archon.budget import Budget
from archon.codefix.batch import Batch, FixOptions, fix_batch
from archon.codefix.types import File, Instance
from archon.config import LoadedPipeline
from archon.errors import JournalError, TaskError
from archon.models.protocol import Request
from archon.run.runtime import Runtime
from archon.testing import ScriptedModel
from archon.types import text_of

pytestmark = [
    pytest.mark.bubblewrap,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is not installed"),
]

SUITE = b"""from app import add


def test_add():
    assert add(1, 2) == 3


def test_zero():
    assert add(0, 0) == 0
"""
HELD_OUT = (
    File(
        path="test_more.py", content=b"from app import add\n\n\ndef test_strings():\n    assert add('a', 'b') == 'ab'\n"
    ),
)


def instance(identity: str, **changes: object) -> Instance:
    tree = (
        File(path="app.py", content=b"def add(a, b):\n    return a - b\n"),
        File(path="test_app.py", content=SUITE),
    )
    return replace(Instance(id=identity, tree=tree, statement=f"Adding is wrong in {identity}."), **changes)


def edit(after: str) -> str:
    return f"app.py\n<<<<<<< SEARCH\n    return a - b\n=======\n    return {after}\n>>>>>>> REPLACE\n"


ANSWERS = {
    "right": ["nothing useful", edit("a + b")],
    "never": [edit("a * b"), edit("a - b - 0")],
    "late": [edit("a * b"), edit("b - a")],
    "cheats": [edit("a + b if isinstance(a, int) else None"), edit("3 if a else 0")],
}


def reply(request: Request, index: int) -> str:
    """Answer by the problem's name; in a later round, rightly where it is `late`."""
    asked = "\n".join(text_of(message.content) for message in request.messages)
    name = next(name for name in ANSWERS if f"in {name}." in asked)
    if name == "late" and "was checked and not accepted" in asked:
        return edit("a + b")
    return ANSWERS[name][index]


class Scripts(Runtime):
    """A runtime whose one model is scripted."""

    scripted: ScriptedModel

    async def model(self, name: str) -> ScriptedModel:
        return self.scripted


LOADED = LoadedPipeline(name="samples", pipeline=Generator(model="local/scripted", n=2, max_tokens=64))
INSTANCES = (instance("right"), instance("never"), instance("late"), instance("cheats", held_out=HELD_OUT))
OPTIONS = FixOptions(rounds=2, repeats=1, concurrency=2)


async def fixed(folder: Path, instances=INSTANCES, options: FixOptions = OPTIONS) -> tuple[Batch, ScriptedModel]:
    model = ScriptedModel(reply)
    async with Scripts(engine="bubblewrap") as runtime:
        runtime.scripted = model
        batch = await fix_batch(LOADED, instances, name="made", folder=folder, runtime=runtime, options=options)
    return batch, model


async def test_a_batch_is_fixed_graded_and_reported(tmp_path: Path):
    batch, model = await fixed(tmp_path)
    assert batch.resolved == ("late", "right")
    assert batch.unusable == ()
    assert model.calls == 2 + 4 + 4 + 2  # late and never take a second round
    records = {record.problem_id: record for record in batch.run.records}
    assert {name: record.correct for name, record in records.items()} == {
        "right": True,
        "never": False,
        "late": True,
        "cheats": False,  # passes what it was shown, not what was held out
    }
    assert [sample.correct for sample in records["right"].samples] == [False, True]
    predictions = [json.loads(line) for line in (tmp_path / "preds.jsonl").read_text().splitlines()]
    assert [row["instance_id"] for row in predictions] == ["cheats", "late", "never", "right"]
    assert "+    return a + b\n" in predictions[1]["model_patch"]
    report = json.loads((tmp_path / "samples.made.json").read_text())
    assert report["resolved_ids"] == ["late", "right"]
    assert report["unresolved_ids"] == ["cheats", "never"]
    one = json.loads((tmp_path / "reports" / "late" / "report.json").read_text())["late"]
    assert one["tests_status"]["FAIL_TO_PASS"]["success"] == ["test_app.py::test_add"]
    assert one["tests_status"]["PASS_TO_PASS"]["success"] == ["test_app.py::test_zero"]


async def test_the_same_command_goes_on_and_asks_nothing_again(tmp_path: Path):
    first, _ = await fixed(tmp_path)
    before = (tmp_path / "samples.made.json").read_bytes()
    again, model = await fixed(tmp_path)
    assert model.calls == 0
    assert again.finals == first.finals
    assert (tmp_path / "samples.made.json").read_bytes() == before


async def test_a_stopped_batch_ends_as_an_uninterrupted_one(tmp_path: Path):
    whole, _ = await fixed(tmp_path / "whole")
    task = asyncio.ensure_future(fixed(tmp_path / "stopped"))
    await asyncio.sleep(1.5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    resumed, _ = await fixed(tmp_path / "stopped")

    def plain(batch: Batch) -> list[object]:
        return [(f.instance_id, f.patch, f.grade and f.grade.status) for f in batch.finals]

    assert plain(resumed) == plain(whole)
    for name in ("samples.made.json", "preds.jsonl"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


async def test_an_instance_whose_tests_pass_already_is_named_and_the_rest_goes_on(tmp_path: Path):
    sound = tuple(File(path=f.path, content=f.content.replace(b"a - b", b"a + b")) for f in instance("x").tree)
    batch, _ = await fixed(tmp_path, (instance("right"), instance("sound", tree=sound)))
    assert batch.resolved == ("right",)
    ((name, reason),) = batch.unusable
    assert name == "sound"
    assert "nothing to fix" in reason
    assert json.loads((tmp_path / "samples.made.json").read_text())["incomplete_ids"] == ["sound"]
    with pytest.raises(TaskError, match="no instance can be used; sound: "):
        await fixed(tmp_path / "alone", (instance("sound", tree=sound),))


async def test_a_budget_stops_the_loop_with_the_best_so_far(tmp_path: Path):
    batch, model = await fixed(tmp_path, (instance("late"),), replace(OPTIONS, budget=Budget(calls=2)))
    assert model.calls == 2
    assert batch.resolved == ()
    assert batch.finals[0].patch is not None


async def test_another_batch_in_the_same_folder_is_refused(tmp_path: Path):
    await fixed(tmp_path, (instance("right"),))
    with pytest.raises(JournalError, match="holds another run"):
        await fixed(tmp_path, (instance("right"),), replace(OPTIONS, rounds=3))
