"""`archon fix`: one repository, a set of instances, or a folder of durable jobs."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from archon.budget import Budget
from archon.cli_options import AsJson, Engine, MaxCalls, MaxSeconds, MaxTokens, MaxUsd, Seed, narrowed
from archon.codefix.batch import Batch, FixOptions, fix_batch
from archon.codefix.fix import Cancelled, loaded_from, run_job
from archon.codefix.jobs import Jobs, Request, Result
from archon.codefix.pytest_command import selection
from archon.codefix.repository_tests import SUITE_LIMITS
from archon.codefix.sets import load_instances
from archon.codefix.tree import read_folder
from archon.config import LoadedPipeline, dump_pipeline, load_pipeline
from archon.errors import ConfigError
from archon.layers.generator import Generator
from archon.report.write import write_report
from archon.run.progress import ProgressBar
from archon.run.runtime import Runtime

NOT_FIXED = 1
"""The exit code of a fix that ran to its end and found nothing that passes."""

_out = Console()
_err = Console(stderr=True)
_DEFAULT_JOBS = Path("runs/fix")


def fix(
    repository: Annotated[
        Path | None, typer.Argument(help="The repository's folder; it is read and never written.")
    ] = None,
    test: Annotated[str, typer.Option(help="The command that fails now; it runs in the sandbox.")] = "pytest -q",
    issue: Annotated[Path | None, typer.Option(help="A file that says what is wrong, in words.")] = None,
    pipeline: Annotated[
        Path | None, typer.Option(help="What writes the patches; left out: samples of --model.")
    ] = None,
    model: Annotated[str, typer.Option(help="The model, where no --pipeline is given.")] = "local/qwen2.5-coder-0.5b",
    n: Annotated[int, typer.Option(min=1, help="Samples a round, where no --pipeline is given.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds at most; later ones see what failed.")] = 3,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of the suite that tell flaky tests.")] = 3,
    test_seconds: Annotated[float, typer.Option(min=1, help="The longest that one run of the suite may take.")] = 300.0,
    instances: Annotated[
        str | None, typer.Option("--set", help="In place of a repository: a set's name, or a SWE-bench-shaped file.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Of a set: this many instances.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Of a set: instances at the same time.")] = 4,
    out: Annotated[Path | None, typer.Option(help="Of a set: the run folder; left out: runs/fix-SET-PIPELINE.")] = None,
    jobs: Annotated[Path, typer.Option(help="The folder of durable jobs.")] = _DEFAULT_JOBS,
    submit: Annotated[bool, typer.Option("--submit", help="Store the job and do not run it yet.")] = False,
    list_jobs: Annotated[bool, typer.Option("--list", help="List the jobs.")] = False,
    show: Annotated[str | None, typer.Option(help="Show a job by its id.")] = None,
    cancel: Annotated[str | None, typer.Option(help="Cancel a job by its id.")] = None,
    resume: Annotated[
        str | None, typer.Option(help="Go on with a job by its id, or with `all` that are waiting.")
    ] = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    max_calls: MaxCalls = None,
    seed: Seed = 0,
    sandbox: Engine = None,
    as_json: AsJson = False,
) -> None:
    """Find a patch that makes failing tests pass, in a sandbox, and write it; your working tree is not touched.

    Exit code 0: fixed (for a set: it ran); 1: no patch passes.
    """
    store = Jobs(folder=jobs)
    budget = Budget(tokens=max_tokens, usd=max_usd, seconds=max_seconds, calls=max_calls)
    asked = [repository is not None, instances is not None, list_jobs, show is not None, cancel is not None]
    if sum([*asked, resume is not None]) != 1:
        raise ConfigError("archon fix needs exactly one of: a REPOSITORY, --set, --list, --show, --cancel, --resume")
    if list_jobs:
        _list(store, as_json=as_json)
    elif show is not None:
        _show(store, show, as_json=as_json)
    elif cancel is not None:
        _say({"id": cancel, "state": store.cancel(cancel)}, as_json=as_json)
    elif resume is not None:
        _resume(store, resume, sandbox, as_json=as_json)
    elif instances is not None:
        loaded = _loaded(pipeline, model, n)
        budget = narrowed(loaded.budget, budget)
        limits = replace(SUITE_LIMITS, wall_s=test_seconds)
        options = FixOptions(
            rounds=rounds, concurrency=concurrency, budget=budget, seed=seed, repeats=repeats, limits=limits
        )
        _fix_set(instances, limit, loaded, options, out, sandbox, as_json=as_json)
    elif repository is not None:
        loaded = _loaded(pipeline, model, n)
        options = FixOptions(rounds=rounds, budget=narrowed(loaded.budget, budget), seed=seed, repeats=repeats)
        request = _request(repository, test, issue, loaded, options, test_seconds)
        _fix_repository(store, request, repository, sandbox, submit=submit, as_json=as_json)


def _loaded(pipeline: Path | None, model: str, n: int) -> LoadedPipeline:
    if pipeline is not None:
        return load_pipeline(pipeline)
    return LoadedPipeline(name="fix", pipeline=Generator(model=model, n=n, temperature=0.8, max_tokens=1024))


def _request(
    repository: Path,
    test: str,
    issue: Path | None,
    loaded: LoadedPipeline,
    options: FixOptions,
    test_seconds: float,
) -> Request:
    budget = options.budget
    return Request(
        id="",
        repository=str(repository),
        submitted_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        statement="" if issue is None else _text(issue),
        test_command=_command(test),
        pipeline_yaml=dump_pipeline(loaded.pipeline, name=loaded.name, models=loaded.models),
        rounds=options.rounds,
        repeats=options.repeats,
        seed=options.seed,
        test_seconds=test_seconds,
        budget_tokens=budget.tokens,
        budget_usd=budget.usd,
        budget_seconds=budget.seconds,
        budget_calls=budget.calls,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--issue {str(path)!r} cannot be read: {error}") from error


def _command(test: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(test))
    except ValueError as error:
        raise ConfigError(f"--test {test!r}: {error}; valid: a command such as 'pytest -q tests/test_x.py'") from error
    if not words:
        raise ConfigError("--test is empty; valid: a command such as 'pytest -q tests/test_x.py'")
    selection(words)  # a command that is not understood is said before anything is stored
    return words


def _fix_repository(
    store: Jobs, request: Request, repository: Path, sandbox: str | None, *, submit: bool, as_json: bool
) -> None:
    folder = read_folder(repository, leave_out=(str(store.folder),) if _inside(store.folder, repository) else ())
    stored = store.submit(_with_links(request, folder.closed), folder.tree)
    if submit:
        _say({"id": stored.id, "state": store.state(stored.id)}, as_json=as_json)
        return
    result = _run(store, stored.id, sandbox)
    _tell(store, stored.id, result, as_json=as_json)
    if not result.fixed:
        raise typer.Exit(NOT_FIXED)


def _inside(folder: Path, other: Path) -> bool:
    return folder.resolve().is_relative_to(other.resolve())


def _with_links(request: Request, links: tuple[str, ...]) -> Request:
    return replace(request, links=links)


def _run(store: Jobs, identity: str, sandbox: str | None) -> Result:
    async def work() -> Result:
        home, models = store.home(identity), loaded_from(store.request(identity)).models
        async with Runtime(specs=models, cache=home / "completions.sqlite", engine=sandbox) as runtime:
            with ProgressBar(f"fix {identity}", console=_err) as bar:
                return await run_job(store, identity, runtime, progress=bar)

    try:
        return asyncio.run(work())
    except Cancelled:
        _err.print(f"{identity} was cancelled; --resume {identity} goes on with it", highlight=False)
        raise typer.Exit(NOT_FIXED) from None
    except KeyboardInterrupt:
        _err.print(f"stopped; --resume {identity} goes on with it", highlight=False)
        raise typer.Exit(130) from None


def _resume(store: Jobs, which: str, sandbox: str | None, *, as_json: bool) -> None:
    names = [each.id for each in store if store.state(each.id) == "waiting"] if which == "all" else [which]
    every = True
    for identity in names:
        store.revive(identity)
        result = store.result(identity) or _run(store, identity, sandbox)
        _tell(store, identity, result, as_json=as_json)
        every = every and result.fixed
    if not every:
        raise typer.Exit(NOT_FIXED)


def _fix_set(
    name: str,
    limit: int | None,
    loaded: LoadedPipeline,
    options: FixOptions,
    out: Path | None,
    sandbox: str | None,
    *,
    as_json: bool,
) -> None:
    chosen = load_instances(name, limit=limit, seed=options.seed)
    title = Path(name).stem
    folder = out or Path("runs") / f"fix-{title}-{loaded.name}"

    async def work() -> Batch:
        async with Runtime(specs=loaded.models, cache=folder / "completions.sqlite", engine=sandbox) as runtime:
            with ProgressBar(f"{loaded.name} on {title}", console=_err) as bar:
                return await fix_batch(
                    loaded, chosen, name=title, folder=folder, runtime=runtime, options=options, progress=bar
                )

    try:
        batch = asyncio.run(work())
    except KeyboardInterrupt:
        _err.print(f"stopped; what is done is in {folder}: the same command goes on from there", highlight=False)
        raise typer.Exit(130) from None
    paths = write_report([batch.run], folder)
    summary: dict[str, Any] = {
        "instances": len(chosen),
        "resolved": len(batch.resolved),
        "resolved_ids": batch.resolved,
        "unusable": dict(batch.unusable),
        "predictions": str(folder / "preds.jsonl"),
        "report": str(paths.html),
    }
    _say(summary, as_json=as_json)


def _list(store: Jobs, *, as_json: bool) -> None:
    rows = [{"id": each.id, "state": store.state(each.id), "repository": each.repository} for each in store]
    if as_json:
        _say(rows, as_json=True)
        return
    for row in rows:
        _out.print(
            f"{row['id']}  {row['state']:<10} {row['repository']}", markup=False, highlight=False, soft_wrap=True
        )


def _show(store: Jobs, identity: str, *, as_json: bool) -> None:
    asked, result = store.request(identity), store.result(identity)
    row = {**asdict(asked), "state": store.state(identity), "result": None if result is None else asdict(result)}
    _say(row, as_json=as_json)


def _tell(store: Jobs, identity: str, result: Result, *, as_json: bool) -> None:
    patch = store.home(identity) / "fix.patch"
    row = {"id": identity, **asdict(result), "patch": str(patch) if patch.is_file() else None}
    _say(row, as_json=as_json)


def _say(value: Any, *, as_json: bool) -> None:  # noqa: ANN401 (anything that JSON can hold)
    if as_json:
        _out.file.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    for key, each in value.items():
        _out.print(f"{key}: {each}", markup=False, highlight=False, soft_wrap=True)
