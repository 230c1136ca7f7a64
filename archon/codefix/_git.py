"""Run git where nothing of the user's can reach it: a throwaway repository of objects and an index, no work tree.

Its environment holds no variable of ours, its configuration is only what is written here, and there are no hooks, no
remotes and no history but the commits that we make. Files never lie on disk: commits come in as a stream, patches are
applied to the index, results are read back from objects. So no filter, no line-end rule, no symlink and no path of a
hostile tree has anything to act on.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from archon.codefix.types import File, Tree
from archon.errors import ConfigError, SandboxFailed

_CONFIG = """[core]
\trepositoryFormatVersion = 0
\tbare = false
\tfileMode = true
\tautocrlf = false
\tfsmonitor = false
\tuntrackedCache = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
[gc]
\tauto = 0
[fastimport]
\tunpackLimit = 1
[apply]
\twhitespace = nowarn
"""
_NEUTRAL = "* !text !eol !crlf !filter !ident !merge !diff !whitespace !working-tree-encoding !conflict-marker-size\n"
"""Takes away whatever a `.gitattributes` of the tree says; this file has the last word."""
_LONGEST_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A throwaway repository; lives as long as the `repository()` block that made it."""

    git_dir: Path
    work_tree: Path
    """An empty folder, unless the files of a real folder are to be listed."""

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Return what a git command that has to work printed.

        Raises:
            SandboxFailed: it did not work.
        """
        done = self.attempt(*arguments, stdin=stdin)
        if done.returncode != 0:
            raise SandboxFailed(f"git {arguments[0]} failed: {said(done)}")
        return done.stdout

    def attempt(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a git command that may fail.

        Raises:
            ConfigError: there is no git on this machine.
            SandboxFailed: it ran for two minutes.
        """
        try:
            return subprocess.run(
                ["git", *arguments],
                input=stdin,
                capture_output=True,
                cwd=self.work_tree,
                env=self._environment(),
                timeout=_LONGEST_S,
                check=False,
            )
        except FileNotFoundError:
            raise ConfigError("git is not installed, and code-fix jobs need it to read and apply patches") from None
        except subprocess.TimeoutExpired:
            raise SandboxFailed(f"git {arguments[0]} took longer than {_LONGEST_S:.0f} s") from None

    def commit(self, **branches: Iterable[File]) -> None:
        """Make branches of one commit each, without parents, that hold these files."""
        stream = list[bytes]()
        for branch, files in branches.items():
            stream.append(b"commit refs/heads/%b\ncommitter archon <archon> 0 +0000\ndata 0\n" % branch.encode())
            for file in files:
                mode = b"100755" if file.executable else b"100644"
                stream.append(b"M %b inline %b\ndata %d\n" % (mode, _quoted(file.path), len(file.content)))
                stream += [file.content, b"\n"]
        self.git("fast-import", "--quiet", stdin=b"".join(stream))

    def index(self) -> list[tuple[str, File]]:
        """Return the mode and the file of every entry of the index, as far as it is merged."""
        rows = [row.split(b"\t", 1) for row in self.git("ls-files", "--stage", "-z").split(b"\0") if row]
        heads = [row[0].decode().split() for row in rows]
        contents = self._blobs([blob for _, blob, _ in heads])
        return [
            (mode, File(path=os.fsdecode(row[1]), content=content, executable=mode == "100755"))
            for row, (mode, _, _), content in zip(rows, heads, contents, strict=True)
        ]

    def attributes(self, text: str = _NEUTRAL) -> None:
        """Say what attributes every file has, whatever the tree itself says."""
        (self.git_dir / "info").mkdir(exist_ok=True)
        (self.git_dir / "info" / "attributes").write_text(text)

    def _blobs(self, names: list[str]) -> list[bytes]:
        output = self.git("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
        contents, at = list[bytes](), 0
        for _ in names:
            end = output.index(b"\n", at)
            size = int(output[at:end].split()[-1])
            contents.append(output[end + 1 : end + 1 + size])
            at = end + size + 2
        return contents

    def _environment(self) -> dict[str, str]:
        home = str(self.git_dir)
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,
            "XDG_CONFIG_HOME": home,
            "LC_ALL": "C",
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.work_tree),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_LITERAL_PATHSPECS": "1",
        }


@contextmanager
def repository(work_tree: Path | None = None) -> Iterator[Repository]:
    """Make a repository with nothing in it, and remove it at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="archon-git-") as name:
        git_dir, empty = Path(name, "git"), Path(name, "empty")
        for folder in (git_dir / "objects", git_dir / "refs", empty):
            folder.mkdir(parents=True)
        (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
        (git_dir / "config").write_text(_CONFIG)
        made = Repository(git_dir=git_dir, work_tree=work_tree or empty)
        made.attributes()
        yield made


def blob_name(content: bytes) -> str:
    """Return the name that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what a failed command complained of, as one printable line."""
    lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return "; ".join(line.removeprefix("error: ").removeprefix("fatal: ") for line in lines[:2]) or "no reason given"


def changed(before: Tree, after: Tree) -> tuple[str, ...]:
    """Return the paths that two trees do not have in common, in order."""
    return tuple(sorted({file.path for file in set(before) ^ set(after)}))


def _quoted(path: str) -> bytes:
    raw = path.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'
