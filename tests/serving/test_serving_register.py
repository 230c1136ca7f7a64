from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from serving_fakes import launch, record_of_this_process

from archon.serving._register import folder_of, forget, read_record, running_servers, users_path, write_record
from archon.serving.options import ServeOptions

OPTIONS = ServeOptions(start_timeout_s=20.0)


def test_a_folder_is_shared_by_equal_models_and_options_whatever_the_timeout(archon_home: Path):
    folder = folder_of(launch(), OPTIONS)
    assert folder.parent == archon_home / "servers"
    assert folder.name.startswith("fake-")
    assert folder_of(launch("silent"), replace(OPTIONS, start_timeout_s=90.0)) == folder
    assert folder_of(launch(), replace(OPTIONS, max_num_seqs=3)) != folder
    assert folder_of(launch(name="other"), OPTIONS) != folder


def test_an_entry_comes_back_and_only_living_servers_run(archon_home: Path):
    alive = record_of_this_process()
    gone = replace(alive, started_ticks=alive.started_ticks - 1)
    for name, record in (("a", alive), ("b", gone)):
        (archon_home / "servers" / name).mkdir(parents=True)
        write_record(archon_home / "servers" / name, record)
        assert read_record(archon_home / "servers" / name) == record
    assert running_servers() == (alive,)


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"model": "x"}', "\x00\xff"])
def test_a_damaged_entry_is_none(tmp_path: Path, damaged: str):
    (tmp_path / "server.json").write_text(damaged)
    assert read_record(tmp_path) is None


def test_forgetting_leaves_the_entry_of_another_server(tmp_path: Path):
    old = record_of_this_process()
    new = replace(old, server_id="new")
    for record in (old, new):
        users_path(tmp_path, record.server_id).touch()
    write_record(tmp_path, new)
    forget(tmp_path, old)
    assert read_record(tmp_path) == new
    assert sorted(path.name for path in tmp_path.iterdir()) == ["server.json", "users-new"]
    forget(tmp_path, new)
    assert list(tmp_path.iterdir()) == []
