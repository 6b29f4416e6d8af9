"""What a file's name claims, and what it gives away. Names are `os.fsdecode`d; nothing is opened here."""

from __future__ import annotations

import re
from typing import Literal

Claim = Literal["torch", "safetensors", "pickle", "weights", "other"]
"""What a name says the file is. ``weights``: ``.bin``, which may be weights and may be anything. ``other``: a
checkpoint format that is not judged here."""

_WEIGHTS = r"(?:pytorch_model|model|adapter_model|diffusion_pytorch_model|optimizer|training_args)"
_FOREIGN = r"h5|hdf5|keras|onnx|pt2|orbax|gguf|ggml|msgpack|pdparams|pdopt|distcp|mar|tflite|engine"
_CLAIM_TABLE: tuple[tuple[str, Claim], ...] = (
    (r".\.safetensors\Z", "safetensors"),
    (r".\.(?:ckpt|pth?)(?:\.tar)?\Z", "torch"),
    (rf"{_WEIGHTS}[^/]*\.bin\Z", "torch"),
    (r".\.(?:pkl|pickle)\Z", "pickle"),
    (r".\.bin\Z", "weights"),
    (rf".\.(?:{_FOREIGN})\Z", "other"),
    (r".\.data-\d{5}-of-\d{5}\Z", "other"),
)
_CLAIMS = tuple((re.compile(pattern, re.IGNORECASE), claim) for pattern, claim in _CLAIM_TABLE)

_TRANSFERS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"(?P<base>.+)\.baiduyun\.(?:p\.downloading|uploading\.cfg)\Z",
        r"(?P<base>.+)\.(?:part|partial|tmp|temp|incomplete|crdownload|filepart|aria2|download|opdownload|!qb|!ut|"
        r"bc!|unconfirmed|unfinished|uploading|downloading|xltd|fdmdownload|dtapart|swp|swx|"
        r"in[_-]?progress|writing|saving|lftp-pget-status)\Z",
        r"(?P<base>.+)\.(?:tmp|part)[._-]?\d+\Z",
        r"(?P<base>.+)\.[0-9a-z]{6,10}\.(?:partial|incomplete|tmp)\Z",
        r"\.~tmp~/?(?P<base>.*)\Z",
        r"\.syncthing\.(?P<base>.+)\.tmp\Z",
        r"\.goutputstream-(?P<base>\w+)\Z",
        r"\.(?:nfs|fuse_hidden)(?P<base>[0-9a-f]{8,})\Z",
        r"(?P<base>.*)\.rsync-(?:partial|tmp)\Z",
        r"tmp-(?P<base>checkpoint-\d+)\Z",
        r"(?P<base>checkpoint-\d+)[.-]tmp\Z",
    )
)
_RSYNC = re.compile(r"\.(?P<base>.+)\.(?P<random>[A-Za-z0-9]{6})", re.DOTALL)
_AWS = re.compile(r"(?P<base>.+)\.(?=[0-9a-f]*[A-F])[0-9a-fA-F]{8}", re.DOTALL)
"""`s3transfer` appends eight hexadecimal digits of both cases; a commit's or a date's have no capitals."""

_LEFT = re.compile(
    r"(?P<base>.+?)(?:(?:\.(?:bak|orig|old))?~|\.(?:bak|orig|old|st))\Z|#(?P<hash>.+)#\Z", re.DOTALL
)
"""What an editor leaves, and the state that axel keeps of a download."""

CONTROL_FILES = (".aria2", ".st", ".lftp-pget-status")
"""What a downloader keeps beside a file it has made at its full size, until all of it has come."""

_MARKS = r"(?:done|success|completed?|committed|commit_success(?:\.txt)?|finished|ready|saved)"
_MARKER = re.compile(rf"[._]?{_MARKS}|.+\.(?:lock|{_MARKS})", re.IGNORECASE | re.DOTALL)
MEGATRON = "latest_checkpointed_iteration.txt"
POINTERS = frozenset({"latest", "last_checkpoint", MEGATRON})
"""Files of one line that name the checkpoint to go on from."""

SHARD = re.compile(
    r"(?P<stem>.+)-(?P<number>\d{5,6})-of-(?P<total>\d{5,6})\.(?P<end>safetensors|bin)", re.DOTALL
)

PART = re.compile(r"__(?P<rank>\d{1,6})_(?P<part>\d{1,6})\.distcp")
"""What a rank of ``torch.distributed.checkpoint`` writes."""

STEP_FOLDER = re.compile(r"(?:checkpoint|ckpt|step|epoch|global_?step|iter)s?[-_=]?\d+", re.IGNORECASE)
"""Folders that a trainer makes for one step."""

_STEPS = re.compile(r"(?<![A-Za-z])(?:global_?step|steps?|iters?|iterations?|it)[_=-]?(\d+)", re.IGNORECASE)
_EPOCHS = re.compile(r"(?<![A-Za-z])(?:epochs?|ep)[_=-]?(\d+)", re.IGNORECASE)
_FIGURES = re.compile(r"(?<=[=_-])-?\d+\.\d+(?![0-9])")
"""Metrics behind the step, such as ``epoch=3-val_loss=0.25.ckpt``: each of a series has its own."""
_NUMBERED = re.compile(
    r"(?P<stem>(?:.*[_.=-])?(?:model|weights?|checkpoint|ckpt|snapshot|save|net|state|ema|unet|policy|generator"
    r"|discriminator|gen|disc?)s?[_.=-]?|[gd][_.=-]|e|)(?P<number>\d{1,15})(?P<end>k?\.[A-Za-z0-9.]+|)",
    re.DOTALL | re.IGNORECASE,
)
_NUMBER_FIRST = re.compile(r"(?P<number>\d{1,15})(?P<end>[_.-][A-Za-z][A-Za-z_.-]*)")
"""The step before the net's name, such as ``50_net_G.pth``."""
_PORTABLE = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9._=+@,-]{0,199}")


def claim_of(name: str) -> Claim | None:
    """What the name says the file is; None where it says nothing about checkpoints."""
    return next((claim for pattern, claim in _CLAIMS if pattern.search(name)), None)


def transfer_of(name: str) -> str | None:
    """The name a transfer will give the file, or an editor took; None for a name that stands by itself."""
    match: re.Match[str] | None
    for pattern in _TRANSFERS:
        match = pattern.fullmatch(name)
        if match:
            return match["base"] or name
    match = _RSYNC.fullmatch(name)
    if match and (claim_of(match["base"]) or not match["random"].islower()):
        return match["base"]  # six small letters are more often an ending, except behind a checkpoint's name
    match = _AWS.fullmatch(name)
    if match and claim_of(match["base"]):
        return match["base"]
    match = _LEFT.fullmatch(name)
    base = match and (match["base"] or match["hash"])
    if not base:
        return None
    return base if claim_of(base) or transfer_of(base) else None  # an editor's text is nobody's checkpoint


def is_marker(name: str) -> bool:
    """A file whose being there says something, such as ``_SUCCESS`` or ``checkpoint-500.lock``."""
    return _MARKER.fullmatch(name) is not None


def is_part(name: str) -> bool:
    """A file of many parts, of which the folder's ``.metadata`` knows the places."""
    return PART.fullmatch(name) is not None


def is_portable(name: str) -> bool:
    """Whether every tool takes the name as it is: ASCII letters, digits and a few signs, not too long."""
    return _PORTABLE.fullmatch(name) is not None and name.strip(".") != ""


def number_of(name: str) -> tuple[str, int] | None:
    """The series a name belongs to, and its place there: ``step_*.pt``, 1000. None: no series."""
    for pattern in (_STEPS, _EPOCHS):
        matches = list(pattern.finditer(name))
        if matches:
            last = matches[-1]
            others = _EPOCHS.sub(lambda m: m.group().replace(m[1], "*"), name[: last.start(1)])
            return f"{others}*{_FIGURES.sub('*', name[last.end(1) :])}", int(last[1][:15])
    match = _NUMBERED.fullmatch(name)
    if match:
        return f"{match['stem']}*{match['end']}", int(match["number"])
    match = _NUMBER_FIRST.fullmatch(name)
    return (f"*{match['end']}", int(match["number"])) if match else None


def step_and_epoch(name: str) -> tuple[int | None, int | None]:
    """The step and the epoch a name speaks of, such as ``epoch=07-step=4200.ckpt``."""
    step, epoch = _STEPS.search(name), _EPOCHS.search(name)
    return (int(step[1][:15]) if step else None), (int(epoch[1][:15]) if epoch else None)
