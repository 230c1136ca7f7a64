"""Every pipeline that ships loads, compiles, plans, comes back from YAML, and makes the calls that it plans."""

import re
from pathlib import Path

import pytest
from config_doubles import CODE, MATHS, TEXT, planned_and_run

from archon.config import dump_pipeline, load_pipeline, pipeline_hash
from archon.config.document import parse_document
from archon.config.pipeline_file import read_pipeline

FILES = sorted((Path(__file__).parents[2] / "configs" / "pipelines").iterdir())
CALLS = {
    # file: calls for prose, calls for code, calls at most for code
    "archon": (None, 8 + 1 + 1 + 1, 8 + 1 + 1 + 1),
    "best_of_8_tests": (17, 1 + 8, 1 + 8),
    "demo": (None, 4 + 1 + 1 + 1, 4 + 1 + 1 + 1),
    "demo_single": (1, 1, 1),
    "judge_1.5b": (8 + 1 + 1 + 1 + 2 * 4, 8 + 1 + 1 + 1 + 2 * 4, 8 + 1 + 1 + 1 + 2 * 4),
    "majority": (8, 8, 8),
    "refine": (4 + 1 + 4, 4 + 1, 9),
    "single": (1, 1, 1),
    "single_1.5b": (1, 1, 1),
    "tournament": (2 + 2 + 2 + 12, 2 + 2 + 2 + 12, 2 + 2 + 2 + 12),
}


def compiled(path):
    loaded = load_pipeline(path)
    return loaded, loaded.pipeline.compiled(loaded.name)


def test_only_yaml_files_are_there():
    assert FILES
    assert {path.suffix for path in FILES} == {".yaml"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_file(path):
    loaded, pipeline = compiled(path)
    assert all(model.startswith("local/qwen2.5-coder-") for model in pipeline.named_models)
    again = read_pipeline(parse_document(dump_pipeline(loaded.pipeline, name=loaded.name, budget=loaded.budget)))
    assert again == loaded
    assert pipeline_hash(again.pipeline) == pipeline_hash(pipeline)
    assert path.read_text(encoding="utf-8").startswith("# ")


def test_names_and_contents_are_all_different():
    loaded = [load_pipeline(path) for path in FILES]
    assert len({each.name for each in loaded}) == len({pipeline_hash(each.pipeline) for each in loaded}) == len(FILES)


@pytest.mark.parametrize("problem", [TEXT, MATHS, CODE], ids=lambda problem: problem.kind)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_planned_calls_are_made(path, problem):
    _, pipeline = compiled(path)
    plan, trace = await planned_and_run(pipeline, problem, path)
    made = {row.layer: 0 for row in plan.rows}
    for span in trace.spans:
        made[span.layer] += span.usage.calls
    # Where nothing could be judged a loop goes on, so its calls lie between those of one pass and those at most.
    assert all(row.calls <= made[row.layer] <= row.max_calls for row in plan.rows), (made, plan.rows)
    if trace.round == 0:
        assert made == {row.layer: row.calls for row in plan.rows}
    assert trace.answer is not None


@pytest.mark.parametrize("path", [path for path in FILES if path.stem in CALLS], ids=lambda path: path.stem)
def test_planned_calls_by_hand(path):
    pipeline = compiled(path)[1]
    prose, code, most = CALLS[path.stem]
    assert (pipeline.plan(CODE).calls, pipeline.plan(CODE).max_calls) == (code, most)
    if prose is not None:
        assert pipeline.plan(TEXT).calls == prose


def test_the_files_in_the_guide_load():
    guide = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    assert len(blocks) == 2
    whole, nested = (
        read_pipeline(parse_document(block.replace("my_module:", "config_layers:"))).pipeline for block in blocks
    )
    assert whole.compiled().plan(CODE).calls == 8 + 1 + 1 + 1 + 1
    assert [leaf.kind for leaf in nested.leaves][-1] == "shorten"
