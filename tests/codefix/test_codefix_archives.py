import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from archon.codefix.archives import read_archive
from archon.codefix.types import File
from archon.errors import TaskError


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def member(name: str, content: bytes = b"x", *, mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.mode = mode
    return info, content


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info, b""


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_read_in_order_of_paths(tmp_path: Path, mode: str):
    path = tar(tmp_path / "a.bin", member("b.py", b"2"), member("./a/run.sh", b"1", mode=0o755), mode=mode)
    assert read_archive(path) == (
        File(path="a/run.sh", content=b"1", executable=True),
        File(path="b.py", content=b"2"),
    )


def test_a_zip_is_read(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("pkg/", "")
        archive.writestr("pkg/a.py", "1")
    assert read_archive(tmp_path / "a.zip") == (File(path="pkg/a.py", content=b"1"),)


def test_a_root_is_taken_off_and_what_is_beside_it_left_out(tmp_path: Path):
    path = tar(tmp_path / "a.tar", member("repo-1/a.py"), member("other/b.py"))
    assert [file.path for file in read_archive(path, root="repo-1")] == ["a.py"]
    with pytest.raises(TaskError, match=r"no files below 'repo-2'"):
        read_archive(path, root="repo-2")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (link("a", "/etc/passwd"), "link"),
        (link("a", "b", tarfile.LNKTYPE), "link"),
        (link("a", "", tarfile.CHRTYPE), "device"),
        (member("../a"), "leads out"),
        (member("/etc/a"), "absolute"),
        (member("a\\..\\b"), "backslash"),
        (member(".git/config"), "git's own"),
    ],
)
def test_what_a_tar_must_not_hold(tmp_path: Path, entry: tuple[tarfile.TarInfo, bytes], reason: str):
    with pytest.raises(TaskError, match=reason):
        read_archive(tar(tmp_path / "a.tar", entry))


@pytest.mark.parametrize(("name", "mode"), [("a", 0o120777), ("../a", 0o100644)])
def test_what_a_zip_must_not_hold(tmp_path: Path, name: str, mode: int):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "x")
    with pytest.raises(TaskError, match="link|leads out"):
        read_archive(tmp_path / "a.zip")


def test_names_that_cannot_be_together(tmp_path: Path):
    with pytest.raises(TaskError, match="twice"):
        read_archive(tar(tmp_path / "a.tar", member("a"), member("a")))
    with pytest.raises(TaskError, match=r"'a' is a file and 'a/b' needs it"):
        read_archive(tar(tmp_path / "b.tar", member("a"), member("a-b"), member("a/b")))


def test_sizes_are_counted_unpacked(tmp_path: Path):
    bomb = tar(tmp_path / "a.tgz", member("a", bytes(300_000)), mode="w:gz")
    assert bomb.stat().st_size < 3_000
    with pytest.raises(TaskError, match="more than"):
        read_archive(bomb, most_bytes=100_000, most_files=10)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(300_000))
    with pytest.raises(TaskError, match="more than"):
        read_archive(tmp_path / "a.zip", most_bytes=100_000, most_files=10)


def test_too_many_files(tmp_path: Path):
    with pytest.raises(TaskError, match="2 files"):
        read_archive(tar(tmp_path / "a.tar", *(member(name) for name in "abc")), most_files=2)


@pytest.mark.parametrize("content", [b"", b"not an archive at all", b"\x1f\x8b broken"])
def test_what_is_no_archive(tmp_path: Path, content: bytes):
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(TaskError, match=r"a\.tar"):
        read_archive(tmp_path / "a.tar")


def test_a_missing_archive(tmp_path: Path):
    with pytest.raises(TaskError, match="cannot read the archive"):
        read_archive(tmp_path / "none.zip")
