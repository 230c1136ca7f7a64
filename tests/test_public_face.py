"""The public face is explicit and sorted; imports point one way; the core needs no heavy package."""

import subprocess
import sys
from pathlib import Path

import pytest

import archon

ROOT = Path(__file__).parent.parent


def test_the_face_is_sorted_and_every_name_is_there() -> None:
    assert list(archon.__all__) == sorted(archon.__all__)
    for name in archon.__all__:
        assert getattr(archon, name).__doc__, f"{name} has no docstring"


def test_the_version_is_the_projects() -> None:
    assert f'version = "{archon.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_imports_go_downward() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["archon", "archon.config", "archon.run", "archon.cli"])
def test_the_core_imports_no_heavy_package(module: str) -> None:
    heavy = ["torch", "vllm", "transformers", "litellm", "dspy", "optuna", "pandas", "matplotlib", "plotly", "sympy"]
    code = f"import sys, {module}; print(sorted(set({heavy}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
