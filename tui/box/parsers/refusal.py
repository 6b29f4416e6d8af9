"""Why a tool gave no answer: the sentences of shells, timeouts, drivers and file systems, as stable words."""

from __future__ import annotations

import re

from tui.box.parsers.lines import lines
from tui.box.parsers.report import Output, Refusal
from tui.model.text import SafeText, safe

_TIMED_OUT = frozenset({124})  # timeout(1); 137 when its -k had to be used
_KILLED = 137
_NOT_FOUND = 127
_NOT_EXECUTABLE = 126

# A shell that does not know a program. bash, dash, zsh, fish, busybox; also translated.
_MISSING = re.compile(
    r"command not found|executable file not found|: not found\b|no such file or directory|unknown command|"
    r"未找到命令|找不到命令|"
    r"Befehl nicht gefunden|Kommando nicht gefunden|commande introuvable|команда не найдена|"
    r"コマンドが見つかりません|orden no encontrada",
    re.IGNORECASE,
)
_LINK = re.compile(
    r"^(?:ssh: |kex_exchange_identification|ssh_exchange_identification|client_loop: |"
    r"Connection (?:closed|reset|to \S+ closed by remote|timed out)|packet_write_wait|"
    r"Host key verification failed|\S+: Permission denied \()",
    re.MULTILINE,
)
_OPTION = re.compile(
    r"unrecogni[sz]ed option|invalid option|unknown option|illegal option|is not recognized\. Please run|"
    r"Invalid combination of input arguments|无法识别的选项|不适用的选项|unbekannte Option|option invalide|"
    r"unrecognized arguments|invalid choice",
    re.IGNORECASE,
)

# NVML and nvidia-smi. The order matters: the first sentence that is there names the refusal.
_NVIDIA: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("bad_query_field", re.compile(r"Field \"?(?P<subject>[^\"\n]+?)\"? is not a valid field")),
    ("driver_mismatch", re.compile(r"Driver/library version mismatch")),
    ("driver_not_loaded", re.compile(r"couldn'?t communicate with the NVIDIA driver|Driver Not Loaded")),
    (
        "gpu_lost",
        re.compile(r"Unable to determine the device handle for (?P<subject>.+?): (?:Unknown|GPU|Not)"),
    ),
    ("gpu_lost", re.compile(r"Unable to determine the device handle|GPU is lost|fallen off the bus")),
    ("permission", re.compile(r"Failed to initialize NVML: Insufficient Permissions")),
    ("access_lost", re.compile(r"Failed to initialize NVML: Unknown Error")),
    ("access_blocked", re.compile(r"GPU access blocked by the operating system")),
    ("library_missing", re.compile(r"couldn'?t find libnvidia-ml|NVML Shared Library Not Found")),
    ("nvml_failed", re.compile(r"Failed to initialize NVML|Failed to properly shut down NVML")),
    (
        "no_devices",
        re.compile(r"No (?:NVIDIA )?(?:devices|GPUs) (?:were )?found|No supported GPUs", re.IGNORECASE),
    ),
)
_AMD: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "driver_not_loaded",
        re.compile(
            r"[Dd]river not initialized|amdgpu not found in modules|initstate: No such file|"
            r"AMDSMI_STATUS_DRIVER_NOT_LOADED|AMDSMI_STATUS_NOT_INIT|rsmi_init.*fail|"
            r"Unable to (?:initialize|detect) (?:the )?(?:amdgpu|AMD GPU) driver|"
            r"Unable to detect any GPU devices"
        ),
    ),
    (
        "permission",
        re.compile(r"AMDSMI_STATUS_NO_PERM|not a member of .*(?:render|video) group", re.IGNORECASE),
    ),
    ("no_devices", re.compile(r"No AMD GPUs? (?:specified|devices|were|found)|No GPUs? (?:were )?found")),
)
# The log itself may hold such sentences about other things; those of its readers begin with their name.
_OF_A_READER = re.compile(
    r"(?:\S*/)?(?:dmesg|journalctl|cat|tail|head|grep|busybox|sudo): |No journal files|Failed to "
)
_KERNEL_LOG = re.compile(
    r"read kernel buffer failed|klogctl|/dev/kmsg: |Operation not permitted|Permission denied|"
    r"insufficient permissions|No journal files were (?:found|opened)|不允许的操作|权限不够|"
    r"Operation nicht erlaubt|Keine Berechtigung|Opération non permise",
    re.IGNORECASE,
)

# strerror texts of GNU libc, busybox and macOS, and their translations, by errno.
_ERRNO: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "ESTALE",
        re.compile(r"stale (?:nfs )?file handle|过时的文件句柄|失效的.*句柄|"
                   r"Veraltete.*(?:handle|Dateizugriff)|périmé|устаревш", re.IGNORECASE),
    ),
    (
        "ENOTCONN",
        re.compile(r"transport endpoint is not connected|socket is not connected|传输端点尚未连接|"
                   r"nicht verbunden|n'est pas connecté|не подсоединена", re.IGNORECASE),
    ),
    (
        "EIO",
        re.compile(r"input/output error|\bi/o error|输入/输出错误|Eingabe-/Ausgabefehler|entrée/sortie|"
                   r"ввода/вывода|入力/出力エラー", re.IGNORECASE),
    ),
    ("EHOSTDOWN", re.compile(r"host is down|主机关闭", re.IGNORECASE)),
    ("EHOSTUNREACH", re.compile(r"no route to host", re.IGNORECASE)),
    ("ETIMEDOUT", re.compile(r"connection timed out|operation timed out|连接超时", re.IGNORECASE)),
    ("ECONNREFUSED", re.compile(r"connection refused", re.IGNORECASE)),
    ("ENOKEY", re.compile(r"required key not available|key has expired", re.IGNORECASE)),
    (
        "EPERM",
        re.compile(r"operation not permitted|不允许的操作|nicht erlaubt|non permise", re.IGNORECASE),
    ),
    (
        "EACCES",
        re.compile(r"permission denied|权限不够|拒绝访问|Keine Berechtigung|Permission non accordée|"
                   r"Permiso denegado|Отказано в доступе|許可がありません", re.IGNORECASE),
    ),
    (
        "ENOENT",
        re.compile(r"no such file or directory|没有那个文件或目录|Datei oder Verzeichnis nicht gefunden|"
                   r"Aucun fichier|No existe el|Нет такого файла|そのような", re.IGNORECASE),
    ),
    ("ELOOP", re.compile(r"too many levels of symbolic links", re.IGNORECASE)),
    ("ENOTDIR", re.compile(r"not a directory|不是目录", re.IGNORECASE)),
    ("ENODEV", re.compile(r"no such device", re.IGNORECASE)),
)  # fmt: skip


def errno_of(message: str) -> str | None:
    """The symbol of the error that `message` spells out, in any of the languages known; else None."""
    return next((symbol for symbol, pattern in _ERRNO if pattern.search(message)), None)


def no_answer(output: Output, tool: str, limited: bool) -> Refusal | None:
    """Ends that say nothing about the thing asked: a timeout, a kill, a missing program, a lost link.

    Args:
        tool: name of the program, as it stands in the shell's complaint.
        limited: the program ran under `timeout`.
    """
    if output.exit in _TIMED_OUT or (output.exit == _KILLED and limited):
        return Refusal("timeout", SafeText(f"{tool} did not answer in time"), answered=False)
    sentence = _sentence(output.both, _MISSING)
    if output.exit == _NOT_FOUND or (sentence and _names(tool, sentence) and not output.stdout.strip()):
        return Refusal("tool_missing", safe(sentence or f"{tool}: command not found"))
    if output.exit == _NOT_EXECUTABLE:
        return Refusal("not_executable", safe(_last_line(output.both) or tool), answered=False)
    if output.exit == 255 and _LINK.search(output.stderr):
        return Refusal("not_reached", safe(_last_line(output.stderr)), answered=False)
    if output.exit is not None and (output.exit < 0 or 128 < output.exit < 160):
        return Refusal(
            "killed", SafeText(f"{tool} was ended by a signal (exit {output.exit})"), answered=False
        )
    return None


def _names(tool: str, sentence: str) -> bool:
    """Whether a "not found" is about the program itself and not about a file it was given."""
    return re.search(
        rf"\b{re.escape(tool)}['’\"]?:?\s*(?:command |commande |Befehl |\S*)?", sentence
    ) is not None and (re.search(rf"{re.escape(tool)}: (?:/|['‘])", sentence) is None)


def nvidia_refusal(text: str) -> Refusal | None:
    """The sentence with which nvidia-smi refuses, if `text` has one."""
    return _first(text, _NVIDIA) or _bad_option(text)


def amd_refusal(text: str) -> Refusal | None:
    """The sentence with which rocm-smi or amd-smi refuses, if `text` has one."""
    return _first(text, _AMD) or _bad_option(text)


def kernel_log_refusal(text: str) -> Refusal | None:
    """Why a kernel log cannot be read, if `text` says so."""
    said = "\n".join(line for line in lines(text) if _OF_A_READER.match(line))
    sentence = _sentence(said, _KERNEL_LOG)
    return Refusal("no_kernel_log", safe(sentence), answered=False) if sentence else None


def bad_option(text: str) -> Refusal | None:
    """A usage text or a complaint about an option."""
    return _bad_option(text)


def path_refusal(text: str) -> Refusal | None:
    """An error about a path, as the only thing that was printed."""
    for line in lines(text):
        symbol = errno_of(line)
        if symbol:
            return Refusal(_PATH_WORDS.get(symbol, "io_error"), safe(line))
    return None


_PATH_WORDS = {"ENOENT": "no_such_file", "EACCES": "permission", "EPERM": "permission"}


def _bad_option(text: str) -> Refusal | None:
    sentence = _sentence(text, _OPTION)
    return Refusal("unsupported_option", safe(sentence)) if sentence else None


def _first(text: str, table: tuple[tuple[str, re.Pattern[str]], ...]) -> Refusal | None:
    for error, pattern in table:
        match = pattern.search(text)
        if match:
            subject = match.groupdict().get("subject") or ""
            return Refusal(error, safe(_line_around(text, match.start())), safe(subject))
    return None


def _sentence(text: str, pattern: re.Pattern[str]) -> str:
    match = pattern.search(text)
    return _line_around(text, match.start()) if match else ""


def _line_around(text: str, place: int) -> str:
    start = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place)
    return text[start : end if end >= 0 else len(text)].strip()


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(lines(text)) if line.strip()), "")
