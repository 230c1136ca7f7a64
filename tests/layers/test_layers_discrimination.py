import pytest

from archon.layers.agreement import Observation
from archon.layers.discrimination import TRIVIAL, discriminate, run_trivial
from archon.types import UnitTest


def made(expected="6", args="(3,)", kwargs="{}", source="model"):
    return UnitTest(text="t", source=source, function="f", args=args, kwargs=kwargs, expected=expected)


def saw(*outcomes):
    return tuple(Observation(passed=passed) for passed in outcomes)


def nothing(tests):
    """Return what trivial programs do when they pass none of some tests."""
    return [saw(*[False] * tests)] * len(TRIVIAL)


@pytest.mark.parametrize(
    ("test", "passing"),
    [
        (made(), []),
        (made(expected="None"), ["returns_none"]),
        (made(args="([1, 2],)", expected="[1, 2]"), ["returns_first_argument"]),
        (made(args="()", kwargs="{'x': 5}", expected="5"), ["returns_first_argument"]),
        (made(args="()", expected="1"), []),
        (made(expected="0"), ["returns_constant"]),
        (made(expected="''"), ["returns_constant"]),
        (made(args="([],)", expected="[]"), ["returns_first_argument", "returns_constant"]),
        (made(expected="{}"), ["returns_constant"]),
        (made(expected="False"), []),  # a truth value has no constant
        (made(expected="True"), []),
    ],
)
async def test_which_trivial_programs_pass(sandbox, test, passing):
    ran = await run_trivial(sandbox, [test], per_call_s=1.0)
    assert [name for name, one in zip(TRIVIAL, ran, strict=True) if one.observations[0].passed] == passing


async def test_all_trivial_programs_run_in_one_job(sandbox):
    tests = [made(expected="0"), made(), made(expected="None")]
    ran = await run_trivial(sandbox, tests, per_call_s=1.0)
    assert len(sandbox.programs) == 1
    assert [[o.passed for o in one.observations] for one in ran] == [
        [False, False, True],
        [False, False, False],
        [False, False, False],
        [True, False, False],
    ]


async def test_an_engine_that_fails_drops_nothing(sandbox):
    sandbox.broken = ("returns_none",)
    tests = [made(expected="None"), made()]
    ran = await run_trivial(sandbox, tests, per_call_s=1.0)
    told = discriminate(tests, [saw(True, True), saw(True, False)], [one.observations for one in ran])
    assert told.kept == (True, True)


def test_reasons_are_counted():
    tests = [made(), made(), made(), made()]
    trivial = [saw(True, False, False, False), saw(True, True, False, False), *nothing(4)[2:]]
    told = discriminate(tests, [saw(True, True, False, True), saw(True, True, False, False)], trivial)
    assert told.kept == (False, False, False, True)
    assert told.notes == (
        "dropped failed_by_all: 1",
        "dropped passed_by_returns_first_argument: 1",
        "dropped passed_by_returns_none: 1",
    )


def test_a_test_that_everyone_passes_stays():
    told = discriminate([made()], [saw(True), saw(True)], nothing(1))
    assert (told.kept, told.notes) == ((True,), ())


def test_one_program_says_nothing_of_a_test_that_it_fails():
    assert discriminate([made()], [saw(False)], nothing(1)).kept == (True,)
    assert discriminate([made()], [saw(False), saw(None)], nothing(1)).kept == (True,)
    assert discriminate([made()], [saw(False), saw(False)], nothing(1)).kept == (False,)


def test_examples_stay_whatever_passes_them():
    tests = [made(source="example"), made()]
    trivial = [saw(True, False), *nothing(2)[1:]]
    assert discriminate(tests, [saw(False, True), saw(False, False)], trivial).kept == (True, True)


def test_weak_tests_come_back_when_no_other_is_left_and_impossible_ones_do_not():
    tests = [made(source="example"), made(), made()]
    trivial = [saw(False, True, True), *nothing(3)[1:]]
    told = discriminate(tests, [saw(True, True, False), saw(True, False, False)], trivial)
    assert told.kept == (True, True, False)
    assert told.notes == (
        "dropped failed_by_all: 1",
        "kept though trivial programs pass them, since no others are left: 1",
    )
    hopeless = discriminate([made()], [saw(False), saw(False)], nothing(1))
    assert hopeless.notes == ("dropped failed_by_all: 1",)
