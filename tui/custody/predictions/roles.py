"""Which column is what: as declared, else by honest common names. Two candidates are never chosen between."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tui.model.metrics import Population


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_IDS = (
    ("id", "ids"),
    ("sampleid", "exampleid", "imageid", "uid", "uuid", "guid", "itemid", "rowid"),
    ("filename", "file", "filepath", "path", "key"),
    ("index", "idx"),
)
_TARGETS = _words(
    "target targets label labels y ytrue gt groundtruth truth gold reference references actual expected "
    "targetlabel truelabel gtlabel targetclass trueclass targetimage targetimages gtimage gtimages "
    "targetmask targetmasks gtmask gtmasks targetids"
)
_PREDICTIONS = _words(
    "prediction predictions pred preds predicted ypred yhat output outputs estimate predlabel predictedlabel "
    "predictionlabel predclass predictedclass predimage predimages predictedimage reconstruction "
    "predmask predmasks predictedmask"
)
_SCORES = _words(
    "scores probs probabilities probability prob softmax yscore yscores yprob yproba predprob predprobs "
    "predproba predscore classprobs classscores"
)
_LONE_SCORES = ("score", "positivescore", "scorepositive", "probpositive", "ppositive", "posprob", "probpos")
_LOGITS = ("logits", "logit", "predlogits", "outputlogits")
BOXES = {
    "pred_boxes": ("predboxes", "predictedboxes", "predbboxes", "predictionboxes", "boxespred"),
    "pred_scores": ("predscores", "predictedscores", "predictionscores", "boxscores"),
    "pred_labels": ("predlabels", "predictedlabels", "predclasses", "predictionlabels"),
    "target_boxes": ("targetboxes", "gtboxes", "gtbboxes", "trueboxes", "targetbboxes"),
    "target_labels": ("targetlabels", "gtlabels", "gtclasses", "truelabels", "targetclasses"),
}
_STORED = {
    "accuracy": ("correct", "iscorrect", "hit", "acc", "accuracy", "top1"),
    "mae": ("abserror", "absoluteerror", "ae", "mae", "abserr"),
    "mse": ("squarederror", "sqerror", "se", "mse", "sqerr"),
    "nll": ("nll", "logloss", "crossentropy", "negativeloglikelihood"),
    "psnr": ("psnr",),
    "ssim": ("ssim",),
    "iou": ("iou", "miou", "jaccard"),
}
_GROUP = re.compile(
    r"(?P<kind>prob|probs|probability|softmax|score|scores|logit|logits)[_\-. ]+(?P<class>.+)\Z",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"(?P<kind>p|prob|probs|probability|softmax|score|scores|logit|logits)[_\-. ]?(?P<class>\d+)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Scores:
    """Columns of scores: one per class, or a single one that holds lists or the positive class's score.

    Attributes:
        classes: class names in column order; None where nothing names them.
    """

    columns: tuple[str, ...]
    classes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Roles:
    """Columns by role. `unclear` holds, per role, why none was chosen."""

    id: str | None = None
    target: str | None = None
    prediction: str | None = None
    scores: Scores | None = None
    logits: Scores | None = None
    boxes: dict[str, str] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def predicts(self) -> bool:
        """There is a column a metric could be computed from."""
        return bool(self.prediction or self.scores or self.logits or "pred_boxes" in self.boxes)


def plain_name(name: str) -> str:
    """A column name for comparison: lower case, letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def recognise(columns: Sequence[str], declared: Population | None) -> Roles:
    """The roles of a file's columns.

    A declared role is taken as it stands, also where no such column exists: reading it then says so.
    """
    finder = _Finder(columns)
    given = declared or Population(files=("-",))
    boxes = {role: getattr(given, role) or finder.one(role, names) for role, names in BOXES.items()}
    detection = boxes["pred_boxes"] is not None
    scores = _declared_scores(given.scores, given.classes)
    logits = _declared_scores(given.logits, given.classes)
    if scores is None and logits is None:
        scores, logits = finder.scores("scores", given.classes), finder.scores("logits", given.classes)
    prediction = given.prediction or (None if detection else finder.one("prediction", _PREDICTIONS))
    if scores is None and logits is None and prediction is None and not finder.unclear.get("scores"):
        lone = finder.one("scores", _LONE_SCORES, quiet=True)  # beside a prediction it may be anything
        scores = None if lone is None else Scores((lone,), given.classes)
    stored = {key: finder.one(f"stored {key}", names, quiet=True) for key, names in _STORED.items()}
    roles = Roles(
        id=given.id or finder.id(),
        target=given.target or (None if detection else finder.one("target", _TARGETS)),
        prediction=prediction,
        scores=None if detection else scores,
        logits=None if detection else logits,
        boxes={role: column for role, column in boxes.items() if column is not None},
        stored={key: column for key, column in stored.items() if column is not None},
        unclear=finder.unclear,
    )
    return Roles(**{**roles.__dict__, "notes": tuple(_notes(roles, given))})


def _declared_scores(columns: tuple[str, ...] | str | None, classes: tuple[str, ...] | None) -> Scores | None:
    if columns is None:
        return None
    return Scores((columns,) if isinstance(columns, str) else tuple(columns), classes)


class _Finder:
    """Looks names up among the columns; a role with two candidates stays open, with the reason."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._by_name: dict[str, list[str]] = {}
        for column in columns:
            self._by_name.setdefault(plain_name(column), []).append(column)
        self.unclear: dict[str, str] = {}

    def _candidates(self, names: Iterable[str]) -> list[str]:
        return [column for name in names for column in self._by_name.get(name, ())]

    def one(self, role: str, names: Iterable[str], *, quiet: bool = False) -> str | None:
        found = self._candidates(names)
        if len(found) > 1 and not quiet:
            self.unclear[role] = f"the {role} could be {_either(found)}; name it in [custody]"
        return found[0] if len(found) == 1 else None

    def id(self) -> str | None:
        for names in _IDS:
            found = self._candidates(names)
            if found:
                if len(found) == 1:
                    return found[0]
                self.unclear["id"] = f"the id could be {_either(found)}; name it in [custody]"
                return None
        return None

    def scores(self, role: str, classes: tuple[str, ...] | None) -> Scores | None:
        single = self._candidates(_SCORES if role == "scores" else _LOGITS)
        groups = self._groups(lambda kind: kind.startswith("logit") == (role == "logits"))
        found = len(single) + len(groups)
        if found > 1:
            names = [*single, *(f"{next(iter(group.values()))} …" for group in groups.values())]
            self.unclear[role] = f"the {role} could be {_either(names)}; name them in [custody]"
            return None
        if single:
            return Scores((single[0],), classes)
        for group in groups.values():
            return self._grouped(role, group, classes)
        return None

    def _groups(self, wanted: Callable[[str], bool]) -> dict[str, dict[str, str]]:
        """Columns of one prefix, by class suffix; a lone one is no group."""
        groups: dict[str, dict[str, str]] = {}
        for column in self._columns:
            match = _NUMBERED.match(column) or _GROUP.match(column)
            if match and wanted(match["kind"].lower()):
                groups.setdefault(match["kind"].lower(), {})[match["class"]] = column
        return {kind: group for kind, group in groups.items() if len(group) > 1}

    def _grouped(self, role: str, group: dict[str, str], classes: tuple[str, ...] | None) -> Scores | None:
        if all(name.isdigit() for name in group):
            order = sorted(group, key=int)
            if [int(name) for name in order] != list(range(len(order))):
                self.unclear[role] = f"the {role} columns are not numbered 0 to {len(order) - 1}"
                return None
            return Scores(tuple(group[name] for name in order), classes or tuple(str(int(n)) for n in order))
        return Scores(tuple(group.values()), classes or tuple(group))


def _either(names: Sequence[str]) -> str:
    return " or ".join(repr(name[:80]) for name in names[:4])


def _notes(roles: Roles, given: Population) -> Iterable[str]:
    """What was recognised by its name rather than declared."""
    for role in ("id", "target", "prediction"):
        column = getattr(roles, role)
        if column is not None and getattr(given, role) is None:
            yield f"{role} is taken to be the column {column[:80]!r}"
    for role in ("scores", "logits"):
        found: Scores | None = getattr(roles, role)
        if found is not None and getattr(given, role) is None:
            last = f" … {found.columns[-1][:80]!r}" if len(found.columns) > 1 else ""
            yield f"{role} are taken to be {found.columns[0][:80]!r}{last}"
    for role, column in roles.boxes.items():
        if getattr(given, role) is None:
            yield f"{role} are taken to be the column {column[:80]!r}"
