"""What the README shows runs: its Python with a scripted model, its commands' small variants, its links."""

import re
import subprocess
from pathlib import Path

import pytest

from archon.testing import ScriptedModel

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DOCS = sorted((ROOT / "docs").glob("*.md"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_the_python_runs(code: str) -> None:
    model = ScriptedModel(lambda request, index: "```python\ndef double(x):\n    return 2 * x\n```")
    assert '"local/qwen2.5-coder-0.5b"' in code
    names: dict[str, object] = {"model": model}
    exec(compile(code.replace('"local/qwen2.5-coder-0.5b"', "model"), "README.md", "exec"), names)
    assert model.calls > 0


def test_both_commands_are_there_and_make_knows_them() -> None:
    commands = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    for command in ("make demo", "make test"):
        assert command in commands
        done = subprocess.run([*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target!r}, which is not there"
