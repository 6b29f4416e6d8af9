"""What one line of a log says about how far training is.

Every trainer prints its own form. Instead of one pattern per trainer, a line is searched for the things all
of them print: an epoch, a step, their totals, a loss, the time that remains, a regular end. What a line does
not say stays unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf(?:inity)?)\b"
_COUNT = r"\d[\d,]*+"
_CLOCK = (
    r"(?:(?:\d{1,9} days?, *)?(?:\d{1,9}:)?\d{1,9}:\d\d(?!\d)"
    r"|\d{1,9}(?:\.\d+)? ?(?:[dhms]|min|sec|hours?|minutes?|seconds?)\b)"
)

# Anything else cannot hold progress; most lines of a noisy log end here.
_HINT = re.compile(
    r"(?i)epoch|step|batch=|up\. \d"
    r"|iter|loss|update|it/s|s/it|\d\s*/\s*\d|train|finish|complete|done|exit|synced|stop"
    r"|ending timing|find logs|model saved|best metric|训练|訓練|损失|第\s*\d|步数"
    r"|^\[\d+\]\s|^\d+:\s+learn|\d \(\d[\d.]*%\)"
)

# Bars and lines about something other than training: validation, loading, preparing data.
_OTHER_WORK = (
    r"(?:val(?:id(?:ation|ating)?)?|eval(?:uat\w*)?|test(?:ing)?|predict\w*|sanity"
    r"|load\w*|download\w*|upload\w*|map|filter|token\w*|cach\w*|scan\w*|extract\w*|process\w*|generat\w*|sampl\w*"
    r"|fetch\w*|saving|shard\w*|infer\w*|convert\w*|resolv\w*|creat\w*|prepar\w*|pack\w*|group\w*|class)\b(?!/s)"
)
_ASIDE = re.compile(
    rf"(?i)^\W*(?:\S+ ){{0,3}}?{_OTHER_WORK}[^|=]*?[:|%]|valid on |epoch\((?:val|test)\)"
    rf"|iter\((?:val|test)\)|^wandb:"
    r'|:::MLLOG .+"event_type": "INTERVAL_END"'
    rf"|(?:[\]:|-]|INFO) *{_OTHER_WORK}[^|=:%]{{0,40}}: *\d+%\|"  # a bar behind a logger's prefix
)

_BAR = re.compile(
    rf"(?P<step>{_COUNT})\s*/\s*(?P<steps>{_COUNT})\s*"
    rf"(?:\[\d+:\d\d[:\d]*<(?P<eta>\?|{_CLOCK}),"  # tqdm
    r"|(?P<keras>\[[=>.\s]*\]|[━╸╺─]+ +\d+m?s\b)"  # Keras 2 and 3
    rf"|\d+:\d\d:\d\d *• *(?P<eta_rich>\d{{1,9}}:\d\d:\d\d|-:--:--)"  # rich, in Lightning
    rf"|\s\d*\.?\d+(?:it/s|s/it))"  # Ultralytics
)
_EPOCH = re.compile(
    r"(?i)(?<![a-z0-9_])epoch(?P<many>s)?(?:\(train\))?['\"]?\s*[:：=#]?\s*\[?\s*"
    r"(?P<epoch>\d+)(?P<part>\.\d+)?\s*"
    rf"(?:(?:/|of)\s*(?P<epochs>\d+))?"
    rf"(?:\]?\s*[\[:,|]?\s*\[?\s*(?:(?:step|iter|batch)\w*:?\s*)?(?P<step>{_COUNT})\s*/\s*(?P<steps>{_COUNT}))?"
)
_TIMM = re.compile(
    rf"(?i)\btrain:? +(?:(?P<epoch>\d+) +|\[(?P<epoch_of>\d+)/(?P<epochs>\d+)\])"
    rf"\[ *(?P<step>{_COUNT}) */ *(?P<steps>{_COUNT})"
)
_CHINESE = re.compile(
    r"第\s*(?P<epoch>\d+)\s*(?:轮|代|回合)?\s*(?:/\s*共?\s*(?P<epochs>\d+)\s*)?(?:轮|代|回合)"
)
_ESPNET = re.compile(r"(?<![\w.])(?P<epoch>\d+)epoch:train:")
_YOLO = re.compile(r"^\s*(?P<epoch>\d+)/(?P<epochs>\d+)\s+\d+(?:\.\d+)?[GM]i?B?\s")
_MARIAN = re.compile(r"\bEp\. (?P<epoch>\d+) : ")
_EPOCHS = (_YOLO, _EPOCH, _TIMM, _ESPNET, _MARIAN, _CHINESE)
_COUNTED = r"(?i)(?<![a-z0-9])(?:global[_ ]?|current[_ ]?|train(?:ing)?[_ ]?)?"
_COUNTERS = (
    r"(?:step|iter(?:ation)?|num_update|update)(?P<many>s)?(?:/(?:max|total)_?steps)?|(?<=: )up\.(?= )"
)
_COLON = r"(?:\(train\))?['\"]?\s*[:：=#]?\s*\[?['\"]?\s*"
_STEP = re.compile(rf"{_COUNTED}(?:{_COUNTERS}){_COLON}(?P<step>{_COUNT})(?![\d.]*\d*(?:ms|s|it)?/)(?!\.\d)")
_STEP_OF = re.compile(
    rf"{_COUNTED}(?:{_COUNTERS}|(?<=\[)batch(?==)|it(?==)|batch(?=\W)){_COLON}(?P<step>{_COUNT})\s*(?:/|of)\s*(?P<steps>{_COUNT})"
)
_TOTAL = re.compile(
    rf"(?i)\btotal[ _](?:optimi[sz]ation[ _]|train(?:ing)?[ _])?steps['\"]?\s*[:=]\s*(?P<steps>{_COUNT})"
)
_CHINESE_STEP = re.compile(rf"第\s*(?P<step>{_COUNT})\s*(?:/\s*(?P<steps>{_COUNT})\s*)?步")
_CHINESE_COUNT = re.compile(
    rf"(?:步数|步骤|迭代(?:次数)?|批次)\s*[:：]?\s*(?P<step>{_COUNT})(?:\s*/\s*(?P<steps>{_COUNT}))?"
)
_CELLS = re.compile(
    rf"\|\s+(?:time/)?total_timesteps\s+\|\s+(?P<step>{_COUNT})\s+\|\s*\Z"
)  # Stable-Baselines3
_SHARE = re.compile(rf"(?P<step>{_COUNT}) \(\d+\.\d+%\)\s+[\d.,]+ m?s\b")  # Nerfstudio
# git, pip and copies count so, too: only beside a loss, an epoch or the word
_PERCENT = re.compile(rf"\d{{1,3}}(?:\.\d+)?% ?\((?P<step>{_COUNT}) ?/ ?(?P<steps>{_COUNT})\)")
_DARKNET = re.compile(r"\s*(?P<step>\d+): [-\w.]+, (?P<loss>-?nan|\d+\.\d+) avg loss,")
# XGBoost "[10]  train-rmse:0.4", LightGBM "[10]  valid_0's l2: 0.4"; "[10] step: 4" is what rank 10 says
_BOOSTED = re.compile(r"\[(?P<step>\d+)\]\s+\w+(?:-|'s )[\w@.-]+: ?-?[\d.]+\b")
_CATBOOST = re.compile(r"(?P<step>\d+):\s+learn: ")
_OTHER_STEPS = (_CHINESE_STEP, _CHINESE_COUNT, _CELLS, _SHARE, _DARKNET, _CATBOOST)
_THOUSANDS = re.compile(r"\bstep:(?P<step>\d+)K\b")  # LeRobot: "step:10K"
# What stands before a counter that is a setting: how many there will be, or how often something is done.
_SETTING = re.compile(
    r"(?i)(?:(?:\b|_)(?:num(?:ber)?(?:[ _]of)?|total|max(?:imum)?|min(?:imum)?|warm-?up|decay|accum\w*"
    r"|sav(?:e|ing)|eval\w*|val\w*|logging|inference|diffusion|per|every|each)[ _](?:\w+[ _])?"
    r"|--(?:\w+[_-])?)\Z"
)
_OF_THE_BEST = re.compile(r"(?i)\bbest\b")
_LOSS = re.compile(
    r"(?i)(?<![\w.-])(?P<name>"
    r"(?:(?:reduced_)?train(?:ing)?[_/ ]|total[_ ]|lm[ _]|last|av[gr]_?|mean |(?:step|batch)_)?"
    r"loss(?: train(?=:)|/train(?:/total)?|_step)?"
    r"|(?<= : )cost|(?:训练)?损失)['\"]?"
    rf"\s*(?:[:=：|]|is|为)?\s*[('\"]?(?P<loss>{_NUMBER})"
)
_NOT_TRAINING = re.compile(r"(?i)(?:val|valid|validation|eval|test|dev|best|min|minimum|aux|nll)[ _/]\Z")
_ETA = re.compile(
    rf"(?i)\b(?:eta|remaining(?:_time)?|time left)\b['\"]?\s*[:=]?\s*['\"]?(?P<eta>{_CLOCK}(?:\s*{_CLOCK})*)"
)
_CLOCK_PART = re.compile(r"(\d+(?:\.\d+)?) ?(d|h|min|m|s)")
_UNIT_S = {"d": 86400.0, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0}

_END = re.compile(
    r"(?i)`?trainer\.fit`? stopped: `?max_\w+=\S+ reached"  # Lightning
    r"|^\W*\{?['\"]?train_runtime['\"]?\s*[:=]"  # Hugging Face
    r"|\b\d+ epochs completed in "  # Ultralytics
    r"|\boverall training speed:|\btotal training time:"  # detectron2
    r"|\bdone training in "  # fairseq
    r"|\bprocess \d+ exits successfully"  # DeepSpeed
    r"|^LAUNCH INFO .{0,40}\bPod completed$"  # Paddle
    r"|\bsynced \d+ w&b file|^wandb: Find logs at:"  # Weights & Biases closes a run
    r"|\btraining of experiment is done\b"  # YOLOX
    r"|^\W*model saved\.$"  # kohya
    r"|^\*\*\* best metric: [\d.]+ \(epoch \d+\)"  # timm
    r"|\bloss for final step: "  # TensorFlow's Estimator
    r"|(?:^|[|:\d\]] )\W*end of training\b(?! (?:step|batch|epoch|set|data))"
    r"|\b(?:finished|completed|done) training\b"
    r"|\btrain(?:ing)? (?:has |is |was )?(?:successfully )?(?:finished|completed?|done|ended)\b"
    r"|\b(?:job|run|training|script|process)\b.{0,40}"
    r"\b(?:finished|completed|exited) with (?:exit )?(?:code|status)[ :=]*0\b"
    r"|(?:训练|訓練)\s*已?(?:结束|結束|完成|完毕)"
    r"|\bearly ?stopping\b.*\b(?:triggered|stopping training)|\bstopping training early\b"
)
# An end whatever else the line says: Lightning's early stopping, and MLPerf's record of a success.
_SURE_END = re.compile(
    r"^(?:Monitored metric .{1,80} did not improve in|Stopping threshold reached: ).+ Signaling Trainer"
    r'|:::MLLOG (?:(?=.*"key": "run_stop").*"status": "success"|.+"key": "status", "value": "success")'
    r"|^(?:\d+: )?ENDING TIMING RUN AT "
)
# Hugging Face's table of what a whole run came to; its losses are no training.
_SUMMARY = re.compile(r"^ {2}(?:epoch|total_flos|(?:train|eval|test|predict)_\w+)(?: {2,}= +| += {2,})\S+$")
_NO_END = re.compile(
    r"(?i)\b(?:not|n't|until|when|once|if|will|fail\w*)\b|未|没有|^.{0,200}\b(?:after|before)\b.*\btrain"
)


@dataclass(frozen=True, slots=True)
class Found:
    """What one line says.

    Attributes:
        steps: the total; without a `step` where the line says no more than that.
        in_epoch: `step` counts within the epoch.
        overall_eta: `eta_s` is that of the whole run.
        fraction: the epoch had decimals, so it is derived from the step.
        closed: the bar is full and its program writes nothing more into it.
    """

    epoch: int | None = None
    epochs: int | None = None
    step: int | None = None
    steps: int | None = None
    loss: float | None = None
    eta_s: float | None = None
    in_epoch: bool = False
    overall_eta: bool = True
    fraction: bool = False
    closed: bool = False
    finished: bool = False

    @property
    def training(self) -> bool:
        return self.epoch is not None or self.step is not None or self.loss is not None


NOTHING = Found()
_READS = 2048  # characters: an operator's pattern may backtrack, and those here take the square of a length
_GAP = re.compile(r"\s{9,}")  # the forms would try every way to share a long gap among their blanks


def read_line(text: str) -> Found:
    """Everything about progress in one line of plain text."""
    text = _GAP.sub(" " * 8, text)[:_READS]
    if not _HINT.search(text):
        return NOTHING
    if (_END.search(text) and not _NO_END.search(text)) or _SURE_END.search(text):
        return Found(finished=True)
    if _ASIDE.search(text) or _SUMMARY.search(text):
        return NOTHING
    bar = _BAR.search(text)
    loss = _loss(text)
    epoch = next((found for form in _EPOCHS if (found := _epoch(form, text, loss))), None)
    counted = _STEP_OF.search(text) or (None if bar else _counted(text, plain=loss is None and epoch is None))
    total = _TOTAL.search(text)
    eta, overall = _eta(text, bar, epoch)
    step, steps = _count(bar, "step"), _count(bar, "steps")
    in_epoch = bar is not None and epoch is not None
    if bar is None and _count(epoch, "steps") is not None:
        step, steps, in_epoch = _count(epoch, "step"), _count(epoch, "steps"), True
    elif bar is None and counted is not None:
        step, steps = _count(counted, "step"), _count(counted, "steps")
    if steps is None and total is not None:
        steps = _count(total, "steps")
    if epoch is None and bar is None and counted is None and loss is None and steps is None:
        return NOTHING
    if steps is not None and step is not None and step > steps:
        step = steps = None  # a ratio or a date, not progress
    return Found(
        _count(epoch, "epoch") if _count(epoch, "epoch") is not None else _count(epoch, "epoch_of"),
        _count(epoch, "epochs"),
        step,
        steps,
        loss,
        eta,
        in_epoch,
        overall,
        fraction=epoch is not None and epoch.re is _EPOCH and epoch["part"] is not None,
        closed=bar is not None and bar["keras"] is not None and step == steps and eta is None,
    )


def _epoch(form: re.Pattern[str], text: str, loss: float | None) -> re.Match[str] | None:
    """The epoch of a line; not how many there will be, and not the one that was best so far."""
    for match in form.finditer(text):
        if form is not _EPOCH or match["epochs"] or match["step"] or loss is not None:
            return match
        if (
            not match["many"]
            and not _before_setting(match)
            and not _OF_THE_BEST.search(text[: match.start()])
        ):
            return match
    return None


def _counted(text: str, *, plain: bool) -> re.Match[str] | None:
    """The counter of a line that names no total. Settings count in the plural, and beside nothing else."""
    whole = _BOOSTED.match(text) or _THOUSANDS.search(text)
    if whole:
        return whole
    for match in _STEP.finditer(text):
        if not _before_setting(match) and not (
            plain and match["many"] and not re.match(r"(?i)global|current", match[0])
        ):
            return match
    forms = _OTHER_STEPS if plain and "train" not in text.lower() else (*_OTHER_STEPS, _PERCENT)
    return next((found for form in forms if (found := form.match(text) or form.search(text))), None)


def _before_setting(match: re.Match[str]) -> bool:
    return _SETTING.search(match.string[max(0, match.start() - 80) : match.start()]) is not None


def read_own(pattern: re.Pattern[str], text: str) -> Found:
    """What a line says by the operator's own pattern; its groups are those `RunSpec` names."""
    match = pattern.search(text[:_READS])
    if match is None:
        return NOTHING
    said = match.groupdict()
    try:
        loss = float(said["loss"]) if said.get("loss") else None
    except ValueError:
        loss = None
    return Found(step=_count(match, "done"), steps=_count(match, "total"), loss=loss)


def _count(match: re.Match[str] | None, name: str) -> int | None:
    """A named number of a match; None when there is none, or none that fits a counter."""
    if match is None or name not in match.re.groupindex or not match[name]:
        return None
    digits = match[name].replace(",", "")
    if len(digits) > 15:
        return None
    return int(digits) * (1000 if match.re is _THOUSANDS else 1)


def _loss(text: str) -> float | None:
    for match in _LOSS.finditer(text):
        if not _NOT_TRAINING.search(text[: match.start("name")]):
            return float(match["loss"])
    behind = _DARKNET.search(text)
    return float(behind["loss"]) if behind else None


def _eta(text: str, bar: re.Match[str] | None, epoch: re.Match[str] | None) -> tuple[float | None, bool]:
    """Seconds that remain, and whether they are those of the whole run."""
    if bar is not None:
        return _seconds(bar["eta"] or bar["eta_rich"] or ""), False  # of its own loop: of all where steps are
    named = _ETA.search(text)
    if named is None:
        return None, True
    per_epoch = epoch is not None and ": [" in epoch.group()  # "Epoch: [3]  [ 10/2500]  eta: ..."
    return _seconds(named["eta"]), not per_epoch


def _seconds(words: str) -> float | None:
    """A duration as logs write it: ``1:02:03``, ``6 days, 15:22:46``, ``21s``, ``3h 12m``."""
    days, _, clock = words.rpartition(",")
    total = 86400.0 * int(re.sub(r"\D", "", days) or 0)
    if ":" in clock:
        fields = clock.strip().split(":")
        if not all(field.isdecimal() for field in fields):
            return None
        seconds = 0
        for field in fields:
            seconds = 60 * seconds + int(field)
        return total + seconds
    parts = _CLOCK_PART.findall(clock)
    return total + sum(float(n) * _UNIT_S[unit] for n, unit in parts) if parts else None
