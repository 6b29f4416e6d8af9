"""One job on one box, worked out: which run it is, where it lies, and what it needs there."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tui.fleet.profile_schema import Facts, Tier
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.job import Job
from tui.model.run import RunSpec
from tui.model.via import JobExec, PodExec, SlurmStep
from tui.runs import kube_job
from tui.runs.book import Page
from tui.runs.boot_hook import hook_file
from tui.runs.code_tree import CodeTree, read_tree
from tui.runs.detach import How
from tui.runs.job_file import read_job
from tui.runs.launch import Launch
from tui.runs.plan_files import RGT, Where, filled, plan_files
from tui.runs.scheduler import batch_files, words

_HOME = "~/rgt"
"""Where runs lie on a platform that has no data disk of its own."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}\Z")


@dataclass(frozen=True, slots=True)
class Errand:
    """A job, its code, its box and its place.

    Attributes:
        run_id: the same job with the same code is the same run, unless it is given another name.
        folder: of the project on the box; may begin with ``~/`` until the box was asked.
        values: script values of the platform's profile that are known.
        boot_hook: a file that the platform runs again at every start of the box.
    """

    job: Job
    tree: CodeTree
    instance: Instance
    run_id: str
    folder: str
    values: Mapping[str, str] = field(default_factory=dict)
    cell: Mapping[str, str] = field(default_factory=dict)
    shared: tuple[Tier, ...] = ()
    boot_hook: str | None = None

    @property
    def run(self) -> str:
        """The run's own folder."""
        return f"{self.folder}/active/{self.run_id}"

    @property
    def store(self) -> str:
        """Where the box keeps code by its hash."""
        return f"{self.folder}/cache/code"

    @property
    def config(self) -> str | None:
        """Digest of the configuration. Raises Failure: it does not travel."""
        return self.tree.identity(self.job.code.config, "code.config")

    @property
    def data(self) -> str | None:
        """Digest of the data's manifest. Raises Failure: it does not travel."""
        return self.tree.identity(self.job.data, "data")

    @property
    def python(self) -> str:
        """The interpreter the job means: its own first word where that is one, else the profile's."""
        first = self.job.chain()[-1].run[0]
        return first if "python" in posixpath.basename(first) else self.values.get("PY", "python3")

    @property
    def session(self) -> str:
        """tmux takes neither dots nor colons in a name."""
        return "rgt-" + self.run_id.replace(".", "_").replace(":", "_")

    @property
    def how(self) -> How:
        """How runs are started on this platform."""
        detach = self.values.get("DETACH")
        known: dict[str | None, How] = {"sbatch": "sbatch", "job": "job", "nohup": "nohup"}
        return known.get(detach, "tmux")

    @property
    def scheduled(self) -> bool:
        """A scheduler starts it, on another machine than the one it is laid down on."""
        return self.how in ("sbatch", "job")

    def way_inside(self, job: str) -> str | None:
        """How the machine that a scheduler runs it on is added as a box; None where it is this one."""
        via = self.instance.via
        if self.how == "job" and isinstance(via, PodExec):
            return str(JobExec(via.namespace, job, "run", via.context))
        return str(SlurmStep(job, self.instance.name)) if self.how == "sbatch" else None

    def batch(self, tasks: int = 0) -> dict[str, bytes]:
        """What a scheduler needs besides the plan; nothing where there is none.

        Args:
            tasks: of an array, 0: one run.
        """
        if self.how == "job":
            return kube_job.wanted(self.job, tasks=tasks)
        told = words(self.job, tasks=tasks, at_once=self.job.slurm.at_once if tasks else None)
        return batch_files(told) if self.how == "sbatch" else {}

    def inputs(self) -> tuple[str, ...]:
        """Paths of the inputs on the box. Raises Failure: one names a place that is not known here."""
        return tuple(filled(one.path, self.job, self.where()) for one in self.job.inputs)

    def where(self) -> Where:
        return Where(self.run, self.values, self.cell)

    def at(self, run: str) -> Errand:
        """The same with the folder as the box resolves it."""
        return replace(self, folder=run.removesuffix(f"/active/{self.run_id}"))

    def secrets_file(self, home: str) -> str | None:
        """Where the job's secrets lie: with the run, or at home where the run lies on a shared disk."""
        if not self.job.secrets:
            return None
        lies_shared = any(_below(self.run, path) for tier in self.shared for path in tier.paths)
        return f"{home}/.rgt/secrets-{self.run_id}" if lies_shared else f"{self.run}/{RGT}/secrets"

    def launch(self, secrets_file: str | None) -> Launch:
        """What is laid down and started. Raises Failure: a word names a place that is not known here."""
        files = plan_files(
            self.job,
            self.where(),
            code=self.tree.digest,
            secrets_file=secrets_file,
            more=self.batch(),
        )
        return Launch(self.run, files, self.job.log, self.session, self.how)

    def page(self, file: Path, plan: str, at: str) -> Page:
        """What the book keeps of it.

        Args:
            plan: digest of what is laid down.
            at: now, as a date.
        """
        return Page(
            run=self.run_id,
            box=self.instance.name,
            platform=self.instance.platform,
            instance_id=self.instance.instance_id,
            folder=self.run,
            root=self.folder,
            session=self.session,
            file=str(file.resolve()),
            plan=plan,
            code=self.tree.digest,
            commit=self.tree.commit,
            dirty=self.tree.dirty,
            config=self.config,
            data=self.data,
            python=self.python,
            at=at,
            cell=dict(self.cell),
            job=self.job,
        )

    def spec(self, start: Mapping[str, str], *, tmux: bool, job: str | None = None) -> RunSpec:
        """How the run is watched: by its wrapper, which lives as long as the run does.

        Args:
            job: the scheduler's name of it; its process is on another machine, and no pid tells of it here.
        """
        session = self.session if tmux else None
        if job:
            start, session = {}, f"{'slurm' if self.how == 'sbatch' else 'job'}:{job}"
        return _spec(self.run_id, self.instance.name, self.run, self.job, start, session)


def errand(
    file: Path,
    instance: Instance,
    facts: Facts | None,
    *,
    name: str | None = None,
    folder: str | None = None,
    cell: Mapping[str, str] | None = None,
) -> Errand:
    """Read a job file and its code, and work out where it lies on a box.

    Args:
        name: of the run; by default made of the job and its code.
        folder: of all projects on the box, in place of its data disk.

    Raises:
        Failure: file, code or name cannot be used.
    """
    job = read_job(file)
    if isinstance(instance.via, SlurmStep | JobExec):
        login = instance.via.login if isinstance(instance.via, SlurmStep) else "a box with pod:…"
        raise Failure(
            f"{instance.name} is a job that runs already; what is started in it ends with it.",
            means="Nothing was started.",
            do=f"Launch where jobs of their own are made: --on {login}.",
            exit=Exit.USAGE,
            code="inside-a-job",
        )
    tree = read_tree((file.parent / job.code.path).resolve(), job.code.exclude)
    values = _values(facts) | ({"DATA_DIR": instance.data_dir} if instance.data_dir else {})
    run_id = name or _run_id(job, tree, cell or {})
    if not _NAME.match(run_id):
        raise Failure(
            "A run's name is made of letters, digits, dot, dash and underscore, 96 at most.",
            do="Give another --id.",
            exit=Exit.USAGE,
            code="bad-run-name",
        )
    base = (folder or values.get("DATA_DIR") or _HOME).rstrip("/")
    shared = tuple(t for t in facts.tiers if t.scope not in ("instance", "machine")) if facts else ()
    hook = hook_file(facts.detach.boot_hook) if facts else None
    made = Errand(job, tree, instance, run_id, f"{base}/{job.project}", values, cell or {}, shared, hook)
    _ = made.config, made.data  # what is named and does not travel is refused before anything is asked
    return made


def spec_of(page: Page, start: Mapping[str, str], job: str | None) -> RunSpec:
    """How a run of the book is watched; in what session it runs was not seen. As `Errand.spec`."""
    kind = {"slurm": "slurm", "kubernetes": "job"}.get(page.platform)
    session = f"{kind}:{job}" if job and kind else None
    return _spec(page.run, page.box, page.folder, page.job, {} if job else start, session)


def _spec(name: str, box: str, run: str, job: Job, start: Mapping[str, str], session: str | None) -> RunSpec:
    pid, ticks = start.get("pid", ""), start.get("ticks", "")
    return RunSpec(
        name=name,
        box=box,
        log=f"{run}/{job.log}",
        checkpoints=f"{run}/{job.checkpoints}" if job.checkpoints else None,
        pid=int(pid) if pid.isdecimal() else None,
        pid_start=int(ticks) if ticks.isdecimal() else None,
        boot_id=start.get("boot") or None,
        session=session,
    )


def secrets_of(job: Job, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The values of the job's secrets from this computer's environment.

    Raises:
        Failure: one is not set, or cannot be a line; its value is never told.
    """
    found = {}
    for name in job.secrets:
        value = environment.get(name)
        if not value or "\n" in value or "\0" in value:
            wrong = "holds a line break" if value else "is not set here"
            raise Failure(
                f"The job needs the secret {name}, which {wrong}.",
                means="Nothing was started.",
                do=f"Set {name} in this shell's environment, or take it out of secrets.",
                code="secret-missing",
            )
        found[name] = value
    return found


def _values(facts: Facts | None) -> dict[str, str]:
    if facts is None:
        return {}
    return {name: value for name, value in facts.script.model_dump().items() if isinstance(value, str)}


def _run_id(job: Job, tree: CodeTree, cell: Mapping[str, str]) -> str:
    """The job's name and eight digits of everything that makes it the run that it is."""
    whole = hashlib.sha256(job.words().encode())
    whole.update(tree.digest.encode())
    for name in sorted(cell):
        whole.update(f"{name}={cell[name]}\n".encode())
    return f"{job.name}-{whole.hexdigest()[:8]}"


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
