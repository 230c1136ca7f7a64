"""A code-fix instance as a problem that any pipeline can solve: what is wrong, the failing tests, the code, the form.

The answer's form depends on what is to be fixed. One function: the whole corrected function in a code block, which even
small models write. A repository: search/replace edits, which say where they belong and cannot be applied elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from archon.codefix.localise import Place, localise
from archon.codefix.types import Instance, TestRun
from archon.types import Problem

_OUTPUT_CHARACTERS = 2_500
"""Of the failing run's output the end is shown: pytest's summary and the last failures."""
_SHOWN_TESTS = 12

EDIT_FORM = """Write only the edits that fix it, each in exactly this form:

path/to/file.py
<<<<<<< SEARCH
the lines as they are now, copied exactly, enough of them to occur only once in the file
=======
the lines that take their place
>>>>>>> REPLACE

Do not change tests."""

FUNCTION_FORM = "Write the whole corrected function `{name}` in one ```python code block, with nothing left out."


def problem_of(instance: Instance, seen: TestRun | None, *, most_characters: int = 12_000) -> Problem:
    """Return an instance as a problem.

    Args:
        instance: what is to be fixed.
        seen: what the visible tests said of the tree as it is; None when there are none.
        most_characters: a bound of the code that is shown.
    """
    failing = _failing(instance, seen)
    output = "" if seen is None else seen.output
    places = localise(
        instance.tree,
        statement=instance.statement,
        test_output=output,
        failing=failing,
        most_characters=most_characters,
    )
    parts = [instance.statement.strip(), _tests(failing, output), _code(places), _form(instance)]
    return Problem(
        id=instance.id,
        prompt="\n\n".join(part for part in parts if part),
        kind="code",
        entry_point=instance.entry_point,
    )


def _failing(instance: Instance, seen: TestRun | None) -> Sequence[str]:
    if instance.fail_to_pass:
        return instance.fail_to_pass
    return () if seen is None else [name for name, outcome in seen.outcomes if outcome in ("failed", "error")]


def _tests(failing: Sequence[str], output: str) -> str:
    if not failing and not output.strip():
        return ""
    shown = "\n".join(failing[:_SHOWN_TESTS])
    more = f"\nand {len(failing) - _SHOWN_TESTS} more" if len(failing) > _SHOWN_TESTS else ""
    named = f"These tests fail:\n{shown}{more}\n\n" if failing else ""
    cut = output.strip()[-_OUTPUT_CHARACTERS:]
    return f"{named}What the tests printed:\n```\n{cut}\n```" if cut else named.strip()


def _code(places: Sequence[Place]) -> str:
    return "\n\n".join(f"{_heading(place)}\n```python\n{place.text.rstrip()}\n```" for place in places)


def _heading(place: Place) -> str:
    return place.path if place.whole else f"{place.path}, from line {place.first_line}"


def _form(instance: Instance) -> str:
    return EDIT_FORM if instance.entry_point is None else FUNCTION_FORM.format(name=instance.entry_point)
