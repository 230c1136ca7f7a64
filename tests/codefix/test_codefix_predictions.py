import json
from pathlib import Path

import pytest

from archon.codefix import _write
from archon.codefix.predictions import (
    Graded,
    Prediction,
    instance_report,
    read_predictions,
    run_report,
    write_instance_report,
    write_predictions,
    write_run_report,
)
from archon.errors import TaskError
from archon.tasks.data_folder import Source, data_folder, find, json_lines

DATA = data_folder()
GOLD = find(Source(stem="swebench_lite_gold_preds300", fields=(), published=""), DATA)
FIXTURES = find(Source(stem="mini_swe_agent_fixtures", fields=(), published=""), DATA)
ROW = {"instance_id": "a-1", "model_name_or_path": "m", "model_patch": "diff"}


def prediction(identity: str, patch: str | None = "diff") -> Prediction:
    return Prediction(instance_id=identity, model_name_or_path="org/model", model_patch=patch)


def graded(identity: str = "a", **values: object) -> Graded:
    given = {"patch": "diff", "applied": True, "fail_to_pass": ("f1", "f2"), "pass_to_pass": ("p1",)} | values
    return Graded(instance_id=identity, **given)  # type: ignore[arg-type]


def outcomes(**by_id: str) -> tuple[tuple[str, str], ...]:
    return tuple(by_id.items())


@pytest.mark.parametrize("content", [json.dumps(ROW), json.dumps([ROW]), json.dumps({"a-1": ROW})])
def test_the_three_shapes_of_predictions(tmp_path: Path, content: str):
    (tmp_path / "preds.json").write_text(content)
    (read,) = read_predictions(tmp_path / "preds.json")
    assert read == Prediction(instance_id="a-1", model_name_or_path="m", model_patch="diff")


def test_written_predictions_are_read_again_in_order(tmp_path: Path):
    given = [prediction("b", "line\nwith \u2028 and \x00"), prediction("a", None), prediction("c", "")]
    write_predictions(tmp_path / "out" / "preds.jsonl", given)
    assert read_predictions(tmp_path / "out" / "preds.jsonl") == (given[1], given[0], given[2])
    assert len((tmp_path / "out" / "preds.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps({"instance_id": "a"}), r"preds\.json line 1: no 'model_patch'; a prediction needs"),
        (f"{json.dumps(ROW)}\n{json.dumps(ROW)}", "line 2: the id 'a-1' is there twice"),
        (json.dumps({"b": ROW}), "key 'b': its instance_id is 'a-1'"),
        (json.dumps([1]), "item 1: '1' is not a JSON object"),
        (json.dumps({**ROW, "model_patch": 3}), "model_patch '3' is not a text"),
        ('{"instance_id": "a', "line 1: not JSON"),
    ],
)
def test_wrong_predictions(tmp_path: Path, content: str, message: str):
    (tmp_path / "preds.json").write_text(content)
    with pytest.raises(TaskError, match=message):
        read_predictions(tmp_path / "preds.json")


@pytest.mark.parametrize(
    ("seen", "resolution"),
    [
        (outcomes(f1="passed", f2="passed", p1="passed"), "RESOLVED_FULL"),
        (outcomes(f1="passed", f2="passed", p1="skipped"), "RESOLVED_FULL"),
        (outcomes(f1="passed", f2="skipped", p1="passed"), "RESOLVED_PARTIAL"),
        (outcomes(f1="passed", p1="passed"), "RESOLVED_PARTIAL"),
        (outcomes(f1="failed", f2="error", p1="passed"), "RESOLVED_NO"),
        (outcomes(f1="passed", f2="passed", p1="failed"), "RESOLVED_NO"),
        (outcomes(f1="passed", f2="passed"), "RESOLVED_NO"),
        ((), "RESOLVED_NO"),
    ],
)
def test_resolution(seen: tuple[tuple[str, str], ...], resolution: str):
    assert graded(outcomes=seen).resolution == resolution


def test_nothing_is_resolved_without_tests_or_without_a_run():
    passed = outcomes(f1="passed", f2="passed", p1="passed")
    assert not graded(fail_to_pass=(), pass_to_pass=(), outcomes=passed).resolved
    assert not graded(outcomes=passed, applied=False).resolved
    assert not graded(outcomes=passed, infra_failure="the engine went away").resolved
    assert graded(outcomes=passed).resolved


def test_an_instance_report_has_the_published_keys(tmp_path: Path):
    one = graded("org/a-1", outcomes=outcomes(f1="passed", f2="failed", p1="passed"))
    path = write_instance_report(tmp_path, one)
    assert path == tmp_path / "org__a-1" / "report.json"
    assert json.loads(path.read_text()) == {
        "org/a-1": {
            "patch_is_None": False,
            "patch_exists": True,
            "patch_successfully_applied": True,
            "resolved": False,
            "infra_failure": False,
            "tests_status": {
                "FAIL_TO_PASS": {"success": ["f1"], "failure": ["f2"]},
                "PASS_TO_PASS": {"success": ["p1"], "failure": []},
                "FAIL_TO_FAIL": {"success": [], "failure": []},
                "PASS_TO_FAIL": {"success": [], "failure": []},
            },
        }
    }


def test_a_missing_patch_and_a_failed_engine_in_a_report():
    none = instance_report(graded("a", patch=None, applied=False))["a"]
    assert none == {
        "patch_is_None": True,
        "patch_exists": False,
        "patch_successfully_applied": False,
        "resolved": False,
        "infra_failure": False,
    }
    failed = instance_report(graded("a", infra_failure="no engine"))["a"]
    assert (failed["infra_failure"], failed["infra_failure_reason"]) == (True, "no engine")
    assert "tests_status" not in failed


def test_a_run_report_counts_every_instance_once(tmp_path: Path):
    good = outcomes(f1="passed", f2="passed", p1="passed")
    ids = ("good", "bad", "flaky", "engine", "conflict", "lost", "empty", "none", "absent")
    report = run_report(
        ids,
        [
            *(prediction(each) for each in ids[:6]),
            prediction("empty", " \n"),
            prediction("none", None),
            prediction("x"),
        ],
        [
            graded("good", outcomes=good),
            graded("bad"),
            graded("flaky", ambiguous_failure="no network"),
            graded("engine", infra_failure="no engine", applied=False),
            graded("conflict", applied=False, reason="does not fit"),
        ],
    )
    assert report == {
        "total_instances": 9,
        "submitted_instances": 8,
        "completed_instances": 3,
        "resolved_instances": 1,
        "unresolved_instances": 2,
        "infra_failure_instances": 1,
        "ambiguous_failure_instances": 1,
        "empty_patch_instances": 2,
        "error_instances": 2,
        "submitted_ids": ["bad", "conflict", "empty", "engine", "flaky", "good", "lost", "none"],
        "completed_ids": ["bad", "flaky", "good"],
        "resolved_ids": ["good"],
        "unresolved_ids": ["bad", "flaky"],
        "infra_failure_ids": ["engine"],
        "ambiguous_failure_ids": ["flaky"],
        "empty_patch_ids": ["empty", "none"],
        "error_ids": ["conflict", "lost"],
        "incomplete_ids": ["absent"],
        "failure_reasons": {"conflict": "does not fit", "engine": "no engine", "flaky": "no network"},
        "schema_version": 2,
    }
    path = write_run_report(tmp_path, report, model="org/model", run_id="r1")
    assert path.name == "org__model.r1.json"
    assert json.loads(path.read_text()) == report


@pytest.mark.parametrize("identity", ["..", "", ".", "a\nb", "x" * 300])
def test_an_id_that_cannot_name_a_folder(tmp_path: Path, identity: str):
    with pytest.raises(TaskError, match="cannot name a file"):
        write_instance_report(tmp_path, graded(identity))
    assert write_instance_report(tmp_path, graded("../up")).parent == tmp_path / "..__up"


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "preds.jsonl"
    write_predictions(path, [prediction("a")])

    def crash(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(_write.os, "fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        write_predictions(path, [prediction("b")])
    assert [each.instance_id for each in read_predictions(path)] == ["a"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(GOLD is None, reason="needs the folder of public data sets")
def test_published_predictions_are_read_and_written_unchanged(tmp_path: Path):
    assert GOLD is not None
    read = read_predictions(GOLD)
    assert len(read) == len({each.instance_id for each in read}) > 100
    write_predictions(tmp_path / "again.jsonl", read)
    assert set(read_predictions(tmp_path / "again.jsonl")) == set(read)


@pytest.mark.skipif(FIXTURES is None, reason="needs the folder of public data sets")
def test_a_published_file_keyed_by_id_is_read(tmp_path: Path):
    assert FIXTURES is not None
    (keyed,) = (row["data"] for _, row in json_lines(FIXTURES) if isinstance(row["data"], dict))
    (tmp_path / "preds.json").write_text(json.dumps(keyed, indent=2))
    read = read_predictions(tmp_path / "preds.json")
    assert {each.instance_id for each in read} == set(keyed)
    assert all(each.model_patch and each.model_patch.startswith("diff --git") for each in read)
