from __future__ import annotations

from pathlib import Path

from archon.errors import MissingExtra, ServingError
from archon.serving._log import cause, failure, stage

CHAIN = """INFO Resolved architecture: Qwen2ForCausalLM
(Worker pid=7) ERROR Traceback (most recent call last):
(Worker pid=7) ERROR   File "x.py", line 3, in load
(Worker pid=7) ERROR ValueError: No available memory for the cache blocks
(EngineCore pid=6) RuntimeError: Engine core initialization failed. See root cause above.
(APIServer pid=5) RuntimeError: Engine core initialization failed. See root cause above.
"""


def test_the_first_error_is_the_cause():
    assert cause(CHAIN) == "ValueError: No available memory for the cache blocks"


def test_without_an_error_the_last_lines_are_shown():
    assert cause("one\n\ntwo\nKilled\n") == "one | two | Killed"
    assert cause("") == "it wrote nothing"


def test_failures_that_have_a_remedy_say_it(tmp_path: Path):
    path = tmp_path / "log"
    path.write_text("/usr/bin/python: Error while finding module spec: No module named 'vllm'\n")
    assert isinstance(failure("m", path), MissingExtra)
    path.write_text("RuntimeError: operator torchvision::nms does not exist\n")
    assert "python -m archon.serving.mend" in str(failure("m", path))
    path.write_text(CHAIN)
    error = failure("m", path)
    assert isinstance(error, ServingError)
    assert "\n" not in str(error)
    assert str(path) in str(error)
    assert isinstance(failure("m", tmp_path / "absent"), ServingError)


def test_stages_follow_the_log():
    assert stage("") == "importing"
    assert stage(CHAIN) == "starting the engine"
    assert stage(CHAIN + "Starting to load model x") == "loading weights"
