"""A code-fix instance as a problem that any pipeline can solve: what is wrong, the failing tests, the code, the form.

Every form of answer that `read_answer` knows is accepted; the prompt asks for one. `functions`: whole corrected
functions in code blocks that name their file, which even small models write. `edits`: search/replace edits, shorter,
and able to change anything, for models that copy exactly. A worked example stands before the problem as a turn of its
own: without one a 0.5B model repeats the description of the form (9 of 12 answers) in place of filling it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from archon.codefix.localise import Place, localise
from archon.codefix.types import Instance, TestRun
from archon.types import Message, Problem

_OUTPUT_CHARACTERS = 2_500
"""Of the failing run's output the end is shown: pytest's summary and the last failures."""
_SHOWN_TESTS = 12

Form = Literal["functions", "edits"]

_ASKED: Mapping[Form, str] = {
    "functions": (
        "Write the function or method that is wrong, whole and corrected, in one ```python code block whose first line "
        "is a comment with the path of its file. When several are wrong, write a block for each. Do not change tests."
    ),
    "edits": """Write only the edits that fix it, each in exactly this form:

path of the file
<<<<<<< SEARCH
the lines as they are now, copied exactly, enough of them to occur only once in the file
=======
the lines that take their place
>>>>>>> REPLACE

Do not change tests.""",
}
_ONE_FUNCTION = "Write the whole corrected function `{name}` in one ```python code block, with nothing left out."

_EXAMPLE = """The last day of the week is left out.

These tests fail:
tests/test_week.py::test_all_days

What the tests printed:
```
E   assert 6 == 7
```

shop/week.py
```python
DAYS = 7


def days():
    \"\"\"Return the days of a week, from 1 to 7.\"\"\"
    return list(range(1, DAYS))
```

"""
_EXAMPLE_ANSWER: Mapping[Form, str] = {
    "functions": """```python
# shop/week.py
def days():
    \"\"\"Return the days of a week, from 1 to 7.\"\"\"
    return list(range(1, DAYS + 1))
```""",
    "edits": """shop/week.py
<<<<<<< SEARCH
    return list(range(1, DAYS))
=======
    return list(range(1, DAYS + 1))
>>>>>>> REPLACE""",
}


def problem_of(
    instance: Instance, seen: TestRun | None, *, form: Form = "functions", most_characters: int = 12_000
) -> Problem:
    """Return an instance as a problem.

    Args:
        instance: what is to be fixed.
        seen: what the visible tests said of the tree as it is; None when there are none.
        form: how the answer is asked for; an instance with an entry point is always asked for that function.
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
    one = instance.entry_point
    asked = _ASKED[form] if one is None else _ONE_FUNCTION.format(name=one)
    parts = [instance.statement.strip(), _tests(failing, output), _code(places), asked]
    return Problem(
        id=instance.id,
        prompt="\n\n".join(part for part in parts if part),
        kind="code",
        entry_point=one,
        history=_example(form) if one is None else (),
    )


def _example(form: Form) -> tuple[Message, ...]:
    return (
        Message(role="user", content=_EXAMPLE + _ASKED[form]),
        Message(role="assistant", content=_EXAMPLE_ANSWER[form]),
    )


def _failing(instance: Instance, seen: TestRun | None) -> Sequence[str]:
    """Return the failing tests that a solver may know of: those whose file it can see, else those seen to fail."""
    files = {file.path for file in instance.tree}
    named = [name for name in instance.fail_to_pass if name.partition("::")[0] in files]
    if named or seen is None:
        return named
    return [name for name, outcome in seen.outcomes if outcome in ("failed", "error")]


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
