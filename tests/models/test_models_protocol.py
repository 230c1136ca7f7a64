import pytest
from models_contract import asking

from archon.models.protocol import Request
from archon.types import Image, Message


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 0), ("x" * 20, 20), ("π", 2), ("bad \udcff byte", 12)],
    ids=["empty", "ascii", "two bytes", "not Unicode"],
)
def test_the_prompts_bound_counts_bytes_also_of_text_that_cannot_be_sent(text, size):
    assert asking(text).prompt_tokens_bound == 64 + 16 + size


def test_each_turn_and_each_image_adds_to_the_prompts_bound():
    image = Image(url="http://e.org/a.png")
    turns = (Message(role="system", content="ab"), Message(role="user", content=("cd", image, "ef", image)))
    assert Request(messages=turns).prompt_tokens_bound == 64 + (16 + 2) + (16 + len("cd\nef") + 2 * 4096)
