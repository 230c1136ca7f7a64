"""What bad input gets: one clear line that names the thing, an exit code, and no traceback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from archon import Generator
from archon.cli import EXIT_CODES, exit_code, run_folder
from archon.config import LoadedPipeline
from archon.errors import ArchonError, AuthError, BudgetExceeded, ConfigError, NoSandbox, OrderError

ROW = {"id": "q", "kind": "maths", "prompt": "What is 1 + 1?", "answer": "2"}


def archon(*arguments: object, cwd: Path, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from archon.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, input=stdin, capture_output=True, env={**os.environ, **env, "COLUMNS": "400"}, timeout=120
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    log = tmp_path / "calls.log"
    log.touch()
    script = Path(__file__).parent / "run" / "counting_server.py"
    with subprocess.Popen([sys.executable, str(script), str(log)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1#m"
        process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "task.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "off.yaml").write_text("name: down\npipeline:\n- generator: {model: 'http://127.0.0.1:9/v1#m'}\n")
    return tmp_path


def write(folder: Path, text: str | bytes, name: str = "p.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pipeline:\n- generatr: {model: local/smollm2}\n", "generator"),
        ("pipeline:\n- generator: {model: local/smollm2, tempratur: 1}\n", "temperature"),
        ("pipeline:\n- critic\n", "no generator"),
        ("pipeline: [\n", "p.yaml"),
        ("", "p.yaml"),
        (b"pipeline: \xff\xfe\n", "UTF-8"),
        ("pipeline:\n- generator: {model: local/smolm2}\n", "smollm2"),
        ("pipeline:\n- generator: {model: nothing-we-know}\n", "nothing-we-know"),
    ],
)
def test_a_bad_pipeline_file_is_one_line(folder: Path, text: str | bytes, says: str) -> None:
    done = archon("eval", write(folder, text), "--task", "task.jsonl", cwd=folder)
    assert_one_line(done, says)
    assert done.returncode in (2, 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"{", "task.jsonl line 1"),
        (b'{"id": "q"}\n', "task.jsonl line 1"),
        (b"\xff\n", "UTF-8"),
        (json.dumps({**ROW, "answr": "2"}).encode(), "answer"),
        ((json.dumps(ROW) + "\n").encode() * 2, "'q'"),
        (b"", "task.jsonl"),
    ],
)
def test_a_bad_task_file_is_one_line(folder: Path, text: bytes, says: str) -> None:
    (folder / "task.jsonl").write_bytes(text)
    done = archon("eval", "off.yaml", "--task", "task.jsonl", cwd=folder)
    assert_one_line(done, says)
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("eval", "off.yaml", "--task", "humanevil"), 2, "humaneval"),
        (("eval", "none.yaml", "--task", "task.jsonl"), 2, "none.yaml"),
        (("report", "nowhere"), 6, "'nowhere' is not a run folder"),
        (("compare", "nowhere", "elsewhere"), 6, "'nowhere' is not a run folder"),
        (("models", "pull", "smolm2"), 2, "smollm2"),
        (("models", "verify", "smolm2"), 2, "smollm2"),
        (("serve", "smolm2"), 2, "smollm2"),
        (("solve", "off.yaml", "hello"), 3, "127.0.0.1:9"),
        (("solve", "off.yaml", "hello", "--kind", "poem"), 2, "'poem'"),
        (("solve", "off.yaml", "hello", "--max-usd", "1"), 4, "no known price"),
        (("solve", "off.yaml", "hello", "--max-tokens", "-1"), 2, "tokens=-1"),
        (("solve", "off.yaml", "hello", "--max-calls", "many"), 2, "--max-calls"),
        (("solve", "off.yaml", "hello", "--sandbox", "dokcer"), 2, "did you mean 'docker'?"),
        (("solve", "off.yaml", "  "), 2, "the problem is empty"),
        (("eval", "off.yaml", "--task", "task.jsonl", "--limit", "0"), 2, "--limit"),
        (("eval", "off.yaml", "--task", "task.jsonl", "--seed", "9223372036854775808"), 2, "--seed"),
        (("eval", "off.yaml", "--tsak", "task.jsonl"), 2, "--task"),
        (("evla", "off.yaml"), 2, "'eval'"),
        (("serve", "smollm2", "--port", "65536"), 2, "--port"),
    ],
)
def test_a_bad_argument_is_one_line_with_its_exit_code(
    folder: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = archon(*arguments, cwd=folder)
    assert_one_line(done, says)
    assert done.returncode == code


def test_bad_utf8_on_standard_input_is_one_line(folder: Path) -> None:
    done = archon("solve", "off.yaml", cwd=folder, stdin=b"\xff")
    assert_one_line(done, "standard input is not UTF-8")
    assert done.returncode == 2


def test_a_missing_extra_says_what_to_install(folder: Path) -> None:
    write(folder, "pipeline:\n- generator: {model: litellm/openai/gpt-4o-mini}\n")
    hide = "import sys; sys.modules['litellm'] = None; from archon.cli import main; main()"
    command = [sys.executable, "-c", hide, "solve", "p.yaml", "hello"]
    done = subprocess.run(command, cwd=folder, capture_output=True, env={**os.environ, "COLUMNS": "400"})
    assert_one_line(done, "archon-ttc[providers]")
    assert done.returncode == 2


def test_eval_report_and_compare_on_a_real_endpoint(folder: Path, server: str) -> None:
    write(folder, f"name: one\npipeline:\n- generator: {{model: '{server}', n: 1}}\n", "one.yaml")
    write(folder, f"name: four\npipeline:\n- generator: {{model: '{server}', n: 4}}\n", "four.yaml")
    done = archon("eval", "one.yaml", "four.yaml", "--task", "task.jsonl", "--out", "out", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    printed = json.loads(done.stdout)
    assert [run["info"]["system"] for run in printed["runs"]] == ["one", "four"]
    four = printed["runs"][1]["records"][0]
    assert len(four["samples"]) == 4
    assert four["usage"]["saved_calls"] == 1, "the first pipeline's sample is shared"
    assert (folder / "out" / "report.html").is_file()
    for arguments in (("report", "out/one", "out/four", "--out", "both"), ("compare", "out/one", "out/four")):
        again = archon(*arguments, cwd=folder)
        assert again.returncode == 0, again.stderr.decode()
        assert again.stdout


def test_solve_and_plan_print_json_for_programs(folder: Path, server: str) -> None:
    write(folder, f"name: one\npipeline:\n- generator: {{model: '{server}', n: 2}}\n")
    solved = json.loads(archon("solve", "p.yaml", "hello", "--json", cwd=folder).stdout)
    assert solved["answer"].startswith("The answer is")
    assert solved["trace"]["usage"]["calls"] == 2
    planned = json.loads(archon("plan", "p.yaml", "--json", cwd=folder).stdout)
    assert planned["calls"] == 2


def test_an_answer_is_printed_as_it_is(folder: Path, server: str) -> None:
    write(folder, f"name: one\npipeline:\n- generator: {{model: '{server}'}}\n")
    command = [sys.executable, "-c", "from archon.cli import main; main()", "solve", "p.yaml", "hello"]
    done = subprocess.run(command, cwd=folder, capture_output=True, env={**os.environ, "COLUMNS": "9"}, timeout=120)
    assert len(done.stdout.splitlines()) == 1, "not wrapped to the width of a terminal"
    assert b"cost not known" in done.stderr


def test_no_answer_within_the_budget_is_its_exit_code(folder: Path) -> None:
    done = archon("solve", "off.yaml", "hello", "--max-calls", "0", cwd=folder)
    assert done.returncode == 4
    assert b"budget of 0 calls" in done.stderr


def test_a_report_that_cannot_be_written_is_one_line(folder: Path, server: str) -> None:
    write(folder, f"name: one\npipeline:\n- generator: {{model: '{server}'}}\n")
    assert archon("eval", "p.yaml", "--task", "task.jsonl", "--out", "out", cwd=folder).returncode == 0
    done = archon("report", "out", "--out", "p.yaml", cwd=folder)
    assert_one_line(done, "'p.yaml'")
    assert done.returncode == 6


def test_a_name_does_not_lead_out_of_the_run_folder() -> None:
    def loaded(name: str) -> LoadedPipeline:
        return LoadedPipeline(name=name, pipeline=Generator(model="local/smollm2"))

    two = [loaded("../../x"), loaded("a/b")]
    assert [run_folder(Path("out"), each, two) for each in two] == [Path("out/-..-x"), Path("out/a-b")]
    with pytest.raises(ConfigError, match="two pipelines are named"):
        run_folder(Path("out"), two[1], [*two, loaded("a-b")])


def test_every_error_has_an_exit_code() -> None:
    assert [exit_code(error("x")) for error in (ConfigError, OrderError, AuthError, BudgetExceeded, NoSandbox)] == [
        2,
        2,
        3,
        4,
        5,
    ]
    assert exit_code(ArchonError("x")) == 1
    assert len({code for _, code in EXIT_CODES}) == 5


def assert_one_line(done: subprocess.CompletedProcess[bytes], says: str) -> None:
    text = done.stderr.decode()
    assert "Traceback" not in text
    assert done.returncode != 0, text
    lines = [line for line in text.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, text
    assert says in lines[0], text
