"""Take hidden thinking out of a reply, so that it never leaks into a candidate.

Reasoning models write `<think>…</think>` before their answer. What is seen in practice and handled here: several
blocks, a block that the token limit cut before its closing tag, and a text without its opening tag (chat templates
such as DeepSeek-R1's put that tag into the prompt). A tag counts only where a model would put it: an opening tag at the
start of the text or of a line, a closing one not inside quotation marks, so that code about such tags stays whole.
"""

from __future__ import annotations

import re

_BLOCK = re.compile(r"^[ \t]*<think>(.*?)(?:</think>|\Z)", re.DOTALL | re.MULTILINE)
_CLOSING = re.compile(r"(?<![\"'`])</think>")


def split_thinking(text: str, *, opened: bool = False) -> tuple[str, str | None]:
    """Return the answer and the thinking (None without any).

    Args:
        text: The reply as the endpoint gave it.
        opened: The prompt already holds the opening tag, so a text without a closing tag is all thinking.
    """
    if "think>" not in text:
        return ("", text.strip() or None) if opened else (text, None)
    thoughts: list[str] = []
    closing = _CLOSING.search(text)
    if closing and "<think>" not in text[: closing.start()]:
        thoughts.append(text[: closing.start()])
        text = text[closing.end() :]
    elif opened and closing is None:
        return "", text.strip()
    thoughts += (match.group(1) for match in _BLOCK.finditer(text))
    answer = _BLOCK.sub("", text)
    if not thoughts:
        return text, None
    return answer.strip(), "\n\n".join(thought.strip() for thought in thoughts if thought.strip()) or None
