"""Blocks that name their file: what they replace, and what they must not touch."""

from __future__ import annotations

from archon.codefix.answer import read_answer
from archon.codefix.apply import apply
from archon.codefix.types import File, Patch, Refused

SHAPES = b'''"""Shapes."""

from math import pi

SIDES = 4


def area(side):
    return side + side


class Circle:
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return pi * self.radius

    def doubled(self):
        return Circle(2 * self.radius)


class Square:
    def doubled(self):
        return 2
'''
TREE = (
    File(path="geo/__init__.py", content=b""),
    File(path="geo/shapes.py", content=SHAPES),
    File(path="tests/test_shapes.py", content=b"def test_it():\n    assert False\n"),
)


def block(code: str, path: str = "geo/shapes.py") -> str:
    return f"Here it is:\n```python\n# {path}\n{code}```\n"


def changed(answer: str) -> str:
    patch = read_answer(answer, TREE)
    assert isinstance(patch, Patch), patch
    after = apply(TREE, patch)
    assert not isinstance(after, Refused)
    return next(file.content for file in after if file.path == "geo/shapes.py").decode()


def refused(answer: str) -> str:
    patch = read_answer(answer, TREE)
    assert isinstance(patch, Refused), patch
    return f"{patch.status}: {patch.reason}"


def test_a_function_replaces_the_one_of_its_name_and_nothing_else():
    after = changed(block("def area(side):\n    return side * side\n"))
    assert after == SHAPES.decode().replace("side + side", "side * side")


def test_a_method_may_stand_alone_where_one_class_has_it():
    after = changed(block("def __init__(self, radius):\n    self.radius = abs(radius)\n"))
    assert after == SHAPES.decode().replace("= radius\n", "= abs(radius)\n")


def test_a_class_with_some_of_its_methods_keeps_the_others():
    after = changed(block("class Circle:\n    def area(self):\n        return pi * self.radius**2\n"))
    assert after == SHAPES.decode().replace("pi * self.radius\n", "pi * self.radius**2\n")


def test_a_whole_class_is_replaced_whole():
    after = changed(block("class Square:\n    SIZE = 1\n\n    def doubled(self):\n        return 2 * self.SIZE\n"))
    assert "    SIZE = 1\n" in after
    assert "class Circle" in after


def test_new_imports_come_along():
    after = changed(block("from math import pow\n\n\ndef area(side):\n    return pow(side, 2)\n"))
    assert "from math import pow\n" in after
    assert "SIDES = 4" in after


def test_two_blocks_of_two_functions_and_a_short_path():
    answer = block("def area(side):\n    return side**2\n", "shapes.py") + block(
        "class Circle:\n    def area(self):\n        return 0\n"
    )
    after = changed(answer)
    assert "return side**2" in after
    assert "return 0" in after


def test_a_method_of_two_classes_alone_is_not_guessed():
    assert "defines nothing that" in refused(block("def doubled(self):\n    return 3\n"))


def test_a_path_that_is_not_there_gets_the_nearest():
    assert "geo/shapes.py" in refused(block("def area(side):\n    return 1\n", "geo/shape.py"))


def test_code_that_does_not_parse_is_refused():
    assert refused(block("def area(side:\n    return 1\n")).startswith("patch_rejected")


def test_tests_are_not_a_fixs_to_change():
    patch = read_answer(block("def test_it():\n    assert True\n", "tests/test_shapes.py"), TREE)
    assert isinstance(patch, Patch)
    assert (patch.text, patch.dropped) == ("", ("tests/test_shapes.py",))
