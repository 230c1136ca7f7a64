"""Code blocks that name their file: whole functions, methods or classes in the place of the old ones.

The form that small models keep to: a fenced Python block whose first line is a comment with the path. What stands in it
is put over what the file has of the same name; a method may stand alone where only one class has one of its name. A
block that has everything that the file has replaces the file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from archon.codefix._refuse import Refuse, conflict, rejected
from archon.codefix.edits import patch_to
from archon.codefix.functions import replace_function
from archon.codefix.patch import near_paths
from archon.codefix.policy import DEFAULT_POLICY, PatchPolicy
from archon.codefix.types import File, Patch, Refused, Tree
from archon.tasks.source import parse_source

_BLOCK = re.compile(r"^(`{3,}|~{3,})[ \t]*(?:python|py|python3)?[ \t]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"\s*#[ \t]*(?:file(?:name)?:[ \t]*)?([\w./-]+\.pyi?)[ \t]*\n", re.IGNORECASE)

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def has_blocks(text: str) -> bool:
    """Return whether a text holds a code block that names its file."""
    return any(True for _ in _named(text))


def read_blocks(text: str, tree: Tree, policy: PatchPolicy = DEFAULT_POLICY) -> Patch | Refused:
    """Return the change that named code blocks make, or why there is none.

    Of several blocks for one definition the last counts: models correct themselves.
    """
    try:
        files = {file.path: file for file in tree}
        for shown, code in _named(text):
            path = _known(shown, files)
            files[path] = replace(files[path], content=_merged(files[path], code).encode())
        return patch_to(tree, files, policy, "function")
    except Refuse as refuse:
        return refuse.refused


def _named(text: str) -> Iterator[tuple[str, str]]:
    for match in _BLOCK.finditer(text):
        head = _PATH.match(match.group(2))
        if head is not None:
            yield head.group(1), match.group(2)[head.end() :]


def _known(shown: str, files: Mapping[str, File]) -> str:
    if shown in files:
        return shown
    ending = [path for path in files if path.endswith("/" + shown)]
    if len(ending) != 1:
        raise conflict(f"there is no file {shown!r}; {near_paths(shown, dict(files))}")
    return ending[0]


def _merged(file: File, code: str) -> str:
    try:
        source = file.content.decode()
    except UnicodeDecodeError:
        raise conflict(f"{file.path}: it is not UTF-8, so write search/replace edits of it") from None
    old, new = parse_source(source), parse_source(code)
    if new is None:
        raise rejected(f"the code block for {file.path!r} is not Python that parses")
    if old is None or _top_names(old) <= _top_names(new):
        return code.replace("\n", "\r\n") if "\r\n" in source else code
    units = list(_units(old, new, code))
    if not units:
        raise conflict(f"the code block defines nothing that {file.path!r} has: {', '.join(sorted(_top_names(old)))}")
    for name, unit in units:
        merged = replace_function(source, name, unit)
        if isinstance(merged, Refused):
            raise Refuse(merged.status, merged.reason)
        source = merged
    return source


def _top_names(module: ast.Module) -> set[str]:
    """Return what a module defines or assigns at its top level."""
    names = {node.name for node in module.body if isinstance(node, _Definition)}
    for node in module.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return names


def _units(old: ast.Module, new: ast.Module, code: str) -> Iterator[tuple[str, str]]:
    """Return what is to be replaced, by its dotted name, each with source that defines it and no more."""
    imports = "\n".join(ast.unparse(node) for node in new.body if isinstance(node, ast.Import | ast.ImportFrom))
    classes = {node.name: _methods(node) for node in old.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in old.body if isinstance(node, _Definition)} - classes.keys()
    for node in new.body:
        if not isinstance(node, _Definition):
            continue
        unit = f"{imports}\n\n{_text(node, code)}\n"
        owners = [name for name, methods in classes.items() if node.name in methods]
        if node.name in functions:
            yield node.name, unit
        elif isinstance(node, ast.ClassDef) and node.name in classes:
            for name in _of_class(node, classes[node.name]):
                yield name, unit
        elif len(owners) == 1:
            yield f"{owners[0]}.{node.name}", unit


def _of_class(node: ast.ClassDef, old: set[str]) -> list[str]:
    """Return the class where the new one has all methods of the old, else the methods that both have."""
    new = _methods(node)
    return [node.name] if old <= new else [f"{node.name}.{name}" for name in sorted(old & new)]


def _methods(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def _text(node: _Definition, code: str) -> str:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return "\n".join(code.splitlines()[first - 1 : node.end_lineno])
