from __future__ import annotations

import pytest

from archon.codefix.functions import definitions, replace_function
from archon.codefix.types import Refused

SOURCE = '''#!/usr/bin/env python
# A licence.
"""What it does."""

from __future__ import annotations

import os


@decorated
def f(a):
    """Say.

  odd indent
    """
    return a  # wrong


class C:
    x = 1

    def g(self):
        return f(self.x)

    def h(self): return 2


Y = f(1)  # stays
'''


def new(source: str, name: str, code: str) -> str:
    result = replace_function(source, name, code)
    assert isinstance(result, str), result
    return result


def refused(source: str, name: str, code: str) -> Refused:
    result = replace_function(source, name, code)
    assert isinstance(result, Refused), result
    return result


def test_a_function_is_replaced_with_its_decorators_and_nothing_else_changes() -> None:
    start, end = SOURCE.index("@decorated"), SOURCE.index("\n\nclass C")
    code = "def f(a):\n    return a + 1  # right\n"
    assert new(SOURCE, "f", code) == SOURCE[:start] + code + SOURCE[end:]


def test_a_method_is_moved_to_its_column_and_its_strings_stay() -> None:
    code = 'def g(self):\n    text = """a\n  b\n"""\n\n    return text\n'
    body = '    def g(self):\n        text = """a\n  b\n"""\n\n        return text\n'
    expected = SOURCE.replace("    def g(self):\n        return f(self.x)\n", body)
    assert new(SOURCE, "C.g", code) == expected
    assert new(SOURCE, "C.g", f"class C:\n{body}") == expected
    assert new(SOURCE, "C.h", "def h(self):\n    return 3\n").endswith(
        "    def h(self):\n        return 3\n\n\nY = f(1)  # stays\n"
    )


def test_imports_and_helpers_come_along_and_trials_do_not() -> None:
    code = "import re\nimport os\n\ndef helper():\n    return re\n\ndef f(a):\n    return helper()\n"
    code += "\nprint(f(1))\nassert f(1)\n"
    result = new(SOURCE, "f", code)
    assert "import re\nimport os\n" in result
    assert "def helper():\n    return re\n\n\ndef f(a):\n    return helper()\n" in result
    assert result.count("import os") == 1
    assert "print" not in result
    assert result.startswith('#!/usr/bin/env python\n# A licence.\n"""What it does."""\n')
    compile(result, "x", "exec")


def test_an_import_goes_below_what_must_stay_first() -> None:
    code = "import re\n\ndef f():\n    return re\n"
    for head in (
        "",
        "#!/bin/python\n# -*- coding: utf-8 -*-\n",
        '"""Doc."""\n',
        "from __future__ import annotations\n",
    ):
        result = new(f"{head}def f():\n    pass\n", "f", code)
        assert result == f"{head}import re\ndef f():\n    return re\n"


def test_another_definition_of_the_source_is_replaced_too() -> None:
    code = "class C:\n    x = 2\n\ndef f(a):\n    return 1\n"
    result = new(SOURCE, "f", code)
    assert "class C:\n    x = 2\n\n\nY" in result
    assert "def f(a):\n    return 1\n" in result


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_line_ends_and_the_last_one_stay_as_they_are(end: str, last: str) -> None:
    source = "x = 1\ndef f():\n    return 1".replace("\n", end) + last.replace("\n", end)
    code = "def f():\n    y = 2\n    return y"
    assert new(source, "f", code) == f"x = 1\n{code}".replace("\n", end) + last.replace("\n", end)


def test_form_feeds_and_other_separators_are_not_line_ends() -> None:
    source = "x = 'a\x0cb\u2028c'\n\x0c\ndef f():\n    return 1\n"
    assert new(source, "f", "def f():\n    return 2\n") == source.replace("return 1", "return 2")


def test_indented_code_is_taken_out_of_its_indentation() -> None:
    assert new("def f():\n    return 1\n", "f", "    def f():\n        return 2\n") == "def f():\n    return 2\n"


def test_async_functions_and_classes_are_definitions() -> None:
    assert new("async def f():\n    pass\n", "f", "async def f():\n    return 1\n") == "async def f():\n    return 1\n"
    assert definitions(SOURCE) == ("f", "C")
    assert definitions("def") is None


def test_what_is_not_clear_is_refused() -> None:
    code = "def f():\n    return 2\n"
    assert "there is no definition of 'g'" in refused("def f(): pass\n", "g", code).reason
    assert "there is no definition of 'g'" in refused("def g(): pass\n", "g", code).reason
    assert "defined 2 times" in refused("def f(): pass\ndef f(): return 1\n", "f", code).reason
    assert refused("def f(): pass\n", "f", "def f(:\n").status == "patch_rejected"
    assert refused("def f(:\n", "f", code).status == "patch_rejected"
