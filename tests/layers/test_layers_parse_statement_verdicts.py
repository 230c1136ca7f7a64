import pytest

from archon.layers.parse_statement_verdicts import parse_statement_verdicts


@pytest.mark.parametrize(
    ("reply", "verdicts", "status"),
    [
        ("Test 1: [Passed]\nTest 2: [Failed]\nTest 3: [Passed]", (True, False, True), "ok"),
        ("Test 3: [Passed]\nTest 1: [Failed]\nTest 2: [Failed]", (False, False, True), "ok"),
        ("Unit Test #1: [Passed]\nunit test #2: failed\n3. Pass", (True, False, True), "repaired"),
        ("**Test 1:** Passed\n- Test 2: [Failed] since it says nothing", (True, False, None), "repaired"),
        ("Test 2: [Failed]", (None, False, None), "repaired"),
        ("Test 1: [Passed]\nTest 1: [Failed]\nTest 2: [Passed]", (None, True, None), "repaired"),
        ("Test 1: [Passed] or [Failed]", (None, None, None), "failed"),
        ("Test 9: [Passed]", (None, None, None), "failed"),
        ("The past is failing to pass.", (None, None, None), "failed"),
        ("Test 1: passable", (None, None, None), "failed"),
        ("", (None, None, None), "failed"),
    ],
)
def test_verdicts_are_read_by_index(reply, verdicts, status):
    assert parse_statement_verdicts(reply, 3) == (verdicts, status)
