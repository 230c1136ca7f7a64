"""The command line: parse, load, call one function, write one file.

Exit codes: 0 done; 1 `fix` found no patch that passes; 2 bad input (arguments, configuration, problem set, missing
packages); 3 a model or its server; 4 a budget; 5 the sandbox; 6 a run folder; 130 stopped with Ctrl-C. Every error is
one line on standard error.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import warnings
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import orjson
import typer
from rich.console import Console

from archon import __version__
from archon.budget import Budget
from archon.cli_fix import fix
from archon.cli_options import (
    AsJson,
    Engine,
    Lenient,
    MaxCalls,
    MaxSeconds,
    MaxTokens,
    MaxUsd,
    PipelineFile,
    Seed,
    narrowed,
)
from archon.config import LoadedPipeline, dump_pipeline, load_pipeline, pipeline_hash
from archon.errors import (
    ArchonError,
    BudgetError,
    ConfigError,
    ModelError,
    RunError,
    SandboxError,
    ServingError,
    TaskError,
)
from archon.pipeline.graph import drawn
from archon.pipeline.pipeline import Pipeline
from archon.report import compare as compare_runs
from archon.report import table, write_report
from archon.report.findings import findings
from archon.report.grids import comparisons
from archon.report.records import Run, RunInfo
from archon.report.table import draw
from archon.run.evaluate import EvalOptions, evaluate
from archon.run.journal import Journal, read_run
from archon.run.machine import describe_machine
from archon.run.progress import ProgressBar
from archon.run.remembering import RememberingGrader
from archon.run.runtime import Runtime
from archon.serving import store
from archon.serving.server import ServeOptions, ensure_server
from archon.tasks import load_tasks
from archon.tasks.protocol import TaskSet
from archon.types import Kind, Problem, Trace

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
models_app = typer.Typer(no_args_is_help=True, help="List, fetch and check local models.")
app.add_typer(models_app, name="models")
app.command("fix")(fix)
_out = Console()
_err = Console(stderr=True)
_USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
"""What every mistake in the arguments is raised as; typer exports only this class below it."""

EXIT_CODES: tuple[tuple[type[ArchonError], int], ...] = (
    (ConfigError, 2),
    (TaskError, 2),
    (ModelError, 3),
    (ServingError, 3),
    (BudgetError, 4),
    (SandboxError, 5),
    (RunError, 6),
)
"""The first class that an error is an instance of gives the exit code; any other ArchonError gives 1."""


@app.command()
def solve(
    pipeline: PipelineFile,
    prompt: Annotated[str | None, typer.Argument(help="The problem; left out: read from standard input.")] = None,
    kind: Annotated[str, typer.Option(help="code, maths or text.")] = "text",
    entry_point: Annotated[str | None, typer.Option(help="For code: the function that tests call.")] = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    max_calls: MaxCalls = None,
    seed: Seed = 0,
    sandbox: Engine = None,
    lenient: Lenient = False,
    as_json: AsJson = False,
) -> None:
    """Solve one problem and print the answer; --json prints the whole trace."""
    loaded = load_pipeline(pipeline, lenient=lenient)
    problem = _problem(prompt, kind, entry_point)
    if not problem.text.strip():
        raise ConfigError("the problem is empty: give it as an argument or on standard input")
    given = Budget(tokens=max_tokens, usd=max_usd, seconds=max_seconds, calls=max_calls)
    budget = narrowed(loaded.budget, given)

    async def work() -> Trace:
        compiled = loaded.pipeline.compiled(loaded.name)
        async with Runtime(specs=loaded.models, engine=sandbox) as runtime:
            engine = await runtime.sandbox_for(compiled, problem)
            ready = compiled.resolved(await runtime.models(compiled), engine)
            return await ready.run(problem, budget=budget, sandbox=engine, seed=seed)

    trace = asyncio.run(work())
    unanswered = trace.stop == "budget" and trace.answer is None
    if as_json:
        _print_json({"answer": None if trace.answer is None else trace.answer.text, "trace": asdict(trace)})
        raise typer.Exit(4 if unanswered else 0)
    _say("(no answer)" if trace.answer is None else trace.answer.text)
    usage = trace.usage
    tokens = "tokens not known" if usage.tokens is None else f"{usage.tokens:,} tokens"
    cost = "cost not known" if usage.cost_usd is None else f"${usage.cost_usd:.6f}"
    passed = None if trace.answer is None else trace.answer.passed
    verdict = {True: "verified", False: "rejected", None: "not judged"}[passed]
    stop = f" · stopped: {trace.stop_reason or trace.stop}" if trace.stop else ""
    _note(f"{verdict} · {usage.calls} calls · {tokens} · {cost} · {usage.critical_s:.1f} s critical path{stop}")
    raise typer.Exit(4 if unanswered else 0)


@app.command()
def plan(
    pipeline: PipelineFile,
    task: Annotated[str | None, typer.Option(help="Plan for a problem set's longest problem.")] = None,
    prompt: Annotated[str, typer.Option(help="Plan for this problem.")] = "",
    kind: Annotated[str, typer.Option(help="code, maths or text, with --prompt.")] = "text",
    lenient: Lenient = False,
    as_json: AsJson = False,
) -> None:
    """Print the exact calls of each layer and a bound of its tokens; nothing is run or spent."""
    loaded = load_pipeline(pipeline, lenient=lenient)
    compiled = loaded.pipeline.compiled(loaded.name)
    problem = _problem(prompt, kind, None)
    if task is not None:
        problem = max(load_tasks(task).problems, key=lambda each: len(each.text))
    planned = compiled.plan(problem)
    if as_json:
        rows = [asdict(row) for row in planned.rows]
        totals = {"calls": planned.calls, "max_calls": planned.max_calls, "max_tokens": planned.max_tokens}
        _print_json(
            {"name": loaded.name, "hash": pipeline_hash(compiled, models=loaded.models), "layers": rows, **totals}
        )
        return
    _out.print(f"{'layer':<24}{'calls':>8}{'at most':>10}{'tokens in ≤':>14}{'tokens out ≤':>14}", highlight=False)
    for row in planned.rows:
        line = f"{row.layer:<24}{row.calls:>8}{row.max_calls:>10}{row.prompt_tokens:>14,}{row.completion_tokens:>14,}"
        _out.print(line, markup=False, highlight=False)
    _out.print(f"{'total':<24}{planned.calls:>8}{planned.max_calls:>10}{planned.max_tokens:>28,}", highlight=False)
    _out.print(drawn(compiled.graph), markup=False, highlight=False)
    _list_ignored(loaded)


@app.command("eval")
def evaluate_command(
    pipelines: Annotated[
        list[Path], typer.Argument(help="Pipeline files; several are evaluated and put side by side.")
    ],
    task: Annotated[
        str, typer.Option(help="A problem set's name, or a .jsonl or .yaml file of your own.")
    ] = "original",
    out: Annotated[Path | None, typer.Option(help="The run folder; left out: runs/TASK-PIPELINE.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take this many problems.")] = None,
    difficulty: Annotated[
        list[int] | None, typer.Option(help="Take problems of this level only; may be given several times.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Problems solved at the same time.")] = 8,
    cache: Annotated[Path | None, typer.Option(help="A completion cache to share between runs.")] = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    max_calls: MaxCalls = None,
    total_usd: Annotated[float | None, typer.Option(help="Budget for each evaluation, in dollars.")] = None,
    total_tokens: Annotated[int | None, typer.Option(help="Budget for each evaluation, in tokens.")] = None,
    seed: Seed = 0,
    sandbox: Engine = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Drop damaged journal rows first; solve those again.")
    ] = False,
    lenient: Lenient = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate pipelines on a problem set: journal, table, report. The same command resumes a stopped run.

    Several pipelines share one completion cache, so a sample that two of them ask for is generated once; each is
    charged for it all the same.
    """
    loaded = [load_pipeline(path, lenient=lenient) for path in pipelines]
    for each in loaded:
        _list_ignored(each)
    tasks = load_tasks(task, limit=limit, difficulties=difficulty, seed=seed)
    tasks = replace(tasks, grader=RememberingGrader(tasks.grader))
    folder = out or Path("runs") / f"{tasks.name}-{'-'.join(_folder_name(each) for each in loaded)}"
    options = EvalOptions(
        concurrency=concurrency,
        budget=Budget(tokens=max_tokens, usd=max_usd, seconds=max_seconds, calls=max_calls),
        total=Budget(usd=total_usd, tokens=total_tokens),
        seed=seed,
    )
    specs = {name: spec for each in loaded for name, spec in each.models.items()}

    async def work() -> list[Run]:
        async with Runtime(specs=specs, cache=cache or folder / "completions.sqlite", engine=sandbox) as runtime:
            return [
                await _evaluate(each, tasks, run_folder(folder, each, loaded), runtime, options, repair=repair)
                for each in loaded
            ]

    try:
        runs = asyncio.run(work())
    except KeyboardInterrupt:
        _note(f"stopped; finished problems are in {folder}: the same command goes on from there")
        raise typer.Exit(130) from None
    paths = write_report(runs, folder)
    if as_json:
        written = {"folder": str(folder), "report": {kind: str(path) for kind, path in asdict(paths).items()}}
        compared = [asdict(compare_runs(runs[0], run)) for run in runs[1:]]
        _print_json({**written, "runs": [asdict(run) for run in runs], "compare": compared})
        return
    _out.print(table(runs), markup=False, highlight=False, soft_wrap=True)
    for run in runs[1:]:
        _print_comparison(runs[0], run)
    _say(f"report: {paths.html}")


def run_folder(folder: Path, one: LoadedPipeline, every: list[LoadedPipeline]) -> Path:
    """Return the folder of one pipeline's run: the evaluation's own, or one inside it for each of several.

    Raises:
        ConfigError: two pipelines have the same name.
    """
    if [_folder_name(each) for each in every].count(_folder_name(one)) > 1:
        raise ConfigError(f"two pipelines are named {one.name!r}: give each its own `name:`")
    return folder if len(every) == 1 else folder / _folder_name(one)


def _folder_name(loaded: LoadedPipeline) -> str:
    """Return a pipeline's name as one folder: a name from a file must not lead out of the run folder."""
    return re.sub(r"[/\\\0]+", "-", loaded.name).strip(". ") or "pipeline"


async def _evaluate(
    loaded: LoadedPipeline,
    tasks: TaskSet,
    folder: Path,
    runtime: Runtime,
    options: EvalOptions,
    *,
    repair: bool,
) -> Run:
    compiled = loaded.pipeline.compiled(loaded.name)
    options = replace(options, budget=narrowed(loaded.budget, options.budget))
    with Journal(folder) as journal:
        info = await _info(loaded, compiled, tasks, options.seed, runtime)
        journal.begin(info)  # before a repair: nothing is dropped from another run's folder
        if repair and (dropped := journal.drop_damaged()):
            _note(f"dropped {len(dropped)} damaged rows; their problems are solved again")
        with ProgressBar(f"{loaded.name} on {tasks.name}", console=_err) as bar:
            return await evaluate(
                compiled, tasks, journal=journal, info=info, runtime=runtime, options=options, progress=bar
            )


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders; several are put side by side.")],
    out: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report"),
    as_json: AsJson = False,
) -> None:
    """Write the report of one or several runs: HTML, Markdown, CSV, Parquet, PNG."""
    paths = write_report([read_run(folder) for folder in folders], out)
    if as_json:
        _print_json({kind: str(path) for kind, path in asdict(paths).items()})
        return
    for path in asdict(paths).values():
        _say(str(path))


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="A run folder.")],
    second: Annotated[Path, typer.Argument(help="Another run folder on the same problem set.")],
    as_json: AsJson = False,
) -> None:
    """Compare two runs problem by problem: McNemar's test and paired bootstrap intervals."""
    one, other = read_run(first), read_run(second)
    if as_json:
        _print_json(asdict(compare_runs(one, other)))
        return
    _print_comparison(one, other)


@models_app.command("list")
def models_list(as_json: AsJson = False) -> None:
    """List the models of the catalogue and whether they are here."""
    entries = store.list_models()
    if as_json:
        _print_json([asdict(entry) for entry in entries])
        return
    for entry in entries:
        _say(str(entry))


@models_app.command("pull")
def models_pull(name: Annotated[str, typer.Argument(help="A name of `archon models list`.")]) -> None:
    """Fetch a model, check its SHA-256, and make it ready to serve."""
    path = store.pull(name, progress=_note)
    _say(str(path))


@models_app.command("verify")
def models_verify(name: Annotated[str, typer.Argument(help="A name of `archon models list`.")]) -> None:
    """Hash a fetched model again and compare with the pinned SHA-256."""
    store.verify(name)
    _say(f"{name}: the SHA-256 is the pinned one")


@app.command()
def serve(
    model: Annotated[str, typer.Argument(help="A name of `archon models list`.")],
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Left out: a free one.")] = None,
) -> None:
    """Serve a local model behind an OpenAI-compatible endpoint until Ctrl-C."""

    async def work() -> None:
        server = await ensure_server(model, options=ServeOptions(port=port))
        _say(f"{server.base_url}#{model}")
        try:
            await asyncio.Event().wait()
        finally:
            await server.stop()

    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def main() -> NoReturn:
    """Run the command line, turning every error that a user can mend into one line and an exit code."""
    warnings.showwarning = lambda message, *_: _note(f"warning: {message}")
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except ArchonError as error:
        _fail(str(error), exit_code(error))
    except _USAGE_ERROR as error:
        _fail_usage(error)
    except (KeyboardInterrupt, typer.Abort):
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's last flush fails too
        raise SystemExit(0) from None
    except OSError as error:
        if error.filename is None and error.strerror is None:
            raise
        place = "" if error.filename is None else f"{str(error.filename)!r}: "
        _fail(f"{place}{error.strerror}; check the folder's permissions and the free space", 6)
    raise SystemExit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> NoReturn:
    _err.print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise SystemExit(code) from None


def _fail_usage(error: Any) -> NoReturn:  # noqa: ANN401 (typer exports no name for what it raises)
    if not (message := error.format_message()).strip():  # a group without a command, which has printed its help
        raise SystemExit(2) from None
    see = "" if error.ctx is None else f"; `{error.ctx.command_path} --help` says what is valid"
    _fail(message.rstrip(".") + see, 2)


def exit_code(error: ArchonError) -> int:
    """Return the exit code of an error."""
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)


async def _info(loaded: LoadedPipeline, compiled: Pipeline, tasks: TaskSet, seed: int, runtime: Runtime) -> RunInfo:
    executes = any(problem.kind == "code" for problem in tasks.problems)
    sandbox = await runtime.sandbox() if executes else None
    return RunInfo(
        system=loaded.name,
        task=tasks.name,
        pipeline_yaml=dump_pipeline(loaded.pipeline, name=loaded.name),
        pipeline_hash=pipeline_hash(compiled, models=loaded.models),
        seed=seed,
        started_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        archon_version=__version__,
        machine=describe_machine(),
        sandbox=None if sandbox is None else f"{sandbox.engine}: {', '.join(sandbox.enforces)}",
        parameters=await runtime.parameters(compiled),
    )


def _problem(prompt: str | None, kind: str, entry_point: str | None) -> Problem:
    kinds: dict[str, Kind] = {"code": "code", "maths": "maths", "text": "text"}
    if kind not in kinds:
        raise ConfigError(f"--kind {kind!r}: valid: {', '.join(kinds)}")
    if prompt is None:
        raw = sys.stdin.buffer.read()
        try:
            prompt = raw.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"standard input is not UTF-8 (byte {error.start}): give the problem as UTF-8") from None
    return Problem(id="problem", prompt=prompt, kind=kinds[kind], entry_point=entry_point)


def _list_ignored(loaded: LoadedPipeline) -> None:
    for key in loaded.ignored:
        _note(f"ignored: {key}")


def _print_comparison(base: Run, run: Run) -> None:
    compared = compare_runs(base, run)
    named = [(run.info.system, base.info.system, compared)]
    for sentence in findings([], named):
        _out.print(sentence, markup=False, highlight=False, soft_wrap=True)
    _out.print(draw(comparisons(named)), markup=False, highlight=False, soft_wrap=True)


def _say(line: str) -> None:
    """Print on standard output as it is: never wrapped, since an answer may be code and a path is to be copied."""
    _out.print(line, markup=False, highlight=False, soft_wrap=True)


def _note(line: str) -> None:
    _err.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_json(value: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str) + b"\n")


if __name__ == "__main__":
    main()
