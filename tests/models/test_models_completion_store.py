import multiprocessing
import sqlite3
import threading
import warnings
from pathlib import Path

import pytest

from archon.errors import JournalError
from archon.models.completion_store import CompletionStore
from archon.models.protocol import Completion
from archon.types import Usage

KEY = b"k" * 32


def completion(text="x", **settings):
    usage = Usage(calls=1, prompt_tokens=3, completion_tokens=None, cost_usd=0.25, critical_s=1.5, attempts=2)
    return Completion(text=text, model="m", usage=usage, **settings)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "cache.sqlite"


@pytest.fixture
def store(path):
    made = CompletionStore(path)
    yield made
    made.close()


def test_gives_back_what_was_put(store, path):
    given = completion("ünï\ud7ff\x00", finish_reason="stop", reasoning="hm", seed=2**62)
    store.put(KEY, {5: given})
    store.close()
    again = CompletionStore(path)
    (got,) = again.get(KEY, 0, 10).values()
    again.close()
    assert (got.text, got.finish_reason, got.reasoning, got.seed) == (given.text, "stop", "hm", 2**62)
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.cost_usd) == (3, None, 0.25)
    assert (got.usage.critical_s, got.usage.attempts) == (1.5, 0)


def test_gives_only_the_asked_samples_of_the_asked_key(store):
    store.put(KEY, {i: completion(str(i)) for i in range(6)})
    store.put(b"o" * 32, {2: completion("other")})
    assert {i: each.text for i, each in store.get(KEY, 2, 3).items()} == {2: "2", 3: "3", 4: "4"}
    assert store.get(KEY, 6, 5) == {}


def test_the_later_answer_is_kept(store):
    store.put(KEY, {0: completion("first")})
    store.put(KEY, {0: completion("second")})
    assert store.get(KEY, 0, 1)[0].text == "second"


@pytest.mark.parametrize("body", [b"", b"\xff", b"{}", b"[]", b'{"text": 3}', b"null"])
def test_a_row_that_cannot_be_read_is_left_out_with_one_warning(store, path, body):
    store.put(KEY, {0: completion("lost"), 1: completion("whole")})
    with sqlite3.connect(path) as other:
        other.execute("UPDATE completions SET body = ? WHERE sample = 0", (body,))
    other.close()
    with pytest.warns(RuntimeWarning, match="sample 0 cannot be read") as caught:
        found = store.get(KEY, 0, 2)
    assert [each.text for each in found.values()] == ["whole"]
    assert len(caught) == 1
    store.put(KEY, {0: completion("again")})
    assert store.get(KEY, 0, 1)[0].text == "again"


def test_a_file_that_is_no_database_is_one_clear_error(path):
    path.parent.mkdir()
    path.write_bytes(b"something else " * 500)
    store = CompletionStore(path)
    for use in (lambda: store.get(KEY, 0, 1), lambda: store.put(KEY, {0: completion()})):
        with pytest.raises(JournalError, match=r"cache\.sqlite.*move it away"):
            use()
    assert path.read_bytes().startswith(b"something else")


def test_a_file_damaged_in_the_middle_is_one_clear_error(store, path):
    store.put(KEY, {i: completion("x" * 500) for i in range(100)})
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    with pytest.raises(JournalError, match="move it away"):
        store.get(KEY, 0, 100)


def test_a_database_of_something_else_is_refused_and_left_alone(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    store = CompletionStore(path)
    with pytest.raises(JournalError, match="not a cache of completions"):
        store.get(KEY, 0, 1)
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    other.close()


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot be opened"):
        CompletionStore(tmp_path / "file" / "cache.sqlite").get(KEY, 0, 1)


def put_three(store):
    for i in range(1, 4):
        store.put(KEY, {i: completion("x" * 10_000)})


def test_a_full_disk_warns_once_and_keeps_what_was_there(store):
    store.put(KEY, {0: completion("kept")})
    connection = store._open()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.warns(RuntimeWarning, match="not kept until that is mended") as caught:
        put_three(store)
    assert len(caught) == 1
    assert "full" in str(caught[0].message)
    assert [each.text for each in store.get(KEY, 0, 9).values()] == ["kept"]
    connection.execute("PRAGMA max_page_count=100000")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.put(KEY, {1: completion("mended")})
    assert store.get(KEY, 1, 1)[1].text == "mended"


def test_threads_share_a_store(store):
    def write(first):
        for i in range(first, first + 20):
            store.put(KEY, {i: completion(str(i))})

    threads = [threading.Thread(target=write, args=(20 * t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(store.get(KEY, 0, 100)) == list(range(80))


def _write(path: Path, first: int) -> None:
    store = CompletionStore(path)
    for i in range(first, first + 20):
        store.put(KEY, {i: completion(str(i))})
    store.close()


def test_processes_share_a_file_from_its_making_on(store, path):
    workers = [multiprocessing.get_context("fork").Process(target=_write, args=(path, 20 * w)) for w in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert sorted(store.get(KEY, 0, 100)) == list(range(60))
