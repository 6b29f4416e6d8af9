"""What the ``ssh`` program, or asyncssh's exceptions, say when a login or a channel fails.

Wordings follow OpenSSH 5 to 10 (ssh.c, sshconnect.c, clientloop.c, mux.c) and macOS's resolver.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from tui.box.parsers.lines import lines
from tui.model.text import SafeText, safe


class Trouble(Enum):
    """Which part of the way failed. None of these says whether the machine runs or is billed."""

    UNREACHABLE = "unreachable"  # no name, no TCP
    AUTH = "login refused"
    HOST_KEY = "host key"
    DROPPED = "dropped"  # cut before or in the session
    CHANNEL = "channel refused"  # connected; exec, forward or sftp is not offered
    LOCAL = "local setting"  # our own command line or configuration


@dataclass(frozen=True, slots=True)
class SshTrouble:
    """One failure.

    Attributes:
        detail: a stable word within the kind, ``""`` where none is needed.
        methods: login methods that the server still offers; None when it did not say.
        known_hosts_line: the offending line of known_hosts.
        line: what was said.
    """

    kind: Trouble
    detail: str = ""
    methods: tuple[SafeText, ...] | None = None
    known_hosts_line: int | None = None
    line: SafeText = SafeText("")


_U, _A, _K, _D, _C, _L = (
    Trouble.UNREACHABLE, Trouble.AUTH, Trouble.HOST_KEY, Trouble.DROPPED, Trouble.CHANNEL, Trouble.LOCAL,
)  # fmt: skip

# The order is that of the causes: a changed key is named although the login is refused after it.
_FORMS: tuple[tuple[re.Pattern[str], Trouble, str], ...] = tuple(
    (re.compile(form, re.IGNORECASE), kind, detail)
    for form, kind, detail in (
        (r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for \S+ has changed"
         r"|POSSIBLE DNS SPOOFING", _K, "changed"),
        (r"revoked host key|Host key \S+ .*revoked|is marked as revoked", _K, "revoked"),
        (r"No \S+ host key is known for|authenticity of host .* can't be established"
         r"|Host key is not trusted", _K, "unknown"),
        (r"certificate (?:invalid|has expired)|Certificate .* expired", _K, "certificate"),
        (r"Host key verification failed|HostKeyNotVerifiable|host key.*mismatch", _K, ""),
        (r"UNPROTECTED PRIVATE KEY FILE|Permissions \d+ for .* are too open"
         r"|: bad permissions", _A, "key_permissions"),
        (r"password has expired|Password change required|password is expired"
         r"|PasswordChangeRequired", _A, "password_expired"),
        (r"Too many authentication failures", _A, "too_many_failures"),
        (r"no matching (?:host key type|key exchange method|cipher|MAC|compression)"
         r"|no mutual signature|KeyExchangeFailed"
         r"|no hostkey alg|Unable to negotiate|not in PubkeyAccepted", _A, "algorithms"),
        (r"account (?:is currently not available|has expired|is locked)"
         r"|User account has expired", _A, "account"),
        (r"agent refused operation|signing failed|sign_and_send_pubkey", _A, "agent"),
        (r"Load key .*: (?:invalid format|error in libcrypto)|incorrect passphrase"
         r"|KeyImportError", _A, "key_format"),
        (r"Permission denied, please try again|Permission denied \(|PermissionDenied|Authentication failed"
         r"|No supported authentication methods|Access denied", _A, ""),
        (r"doesn't support PTY|client does not support PTY"
         r"|exec request(?:s)? (?:is|are) not (?:supported|allowed)", _C, "proxy_no_exec"),
        (r"subsystem request failed|Unable to start subsystem"
         r"|SFTP.*not (?:supported|available)", _C, "no_sftp"),
        (r"administratively prohibited", _C, "prohibited"),
        (r"resource shortage", _C, "resource_shortage"),
        (r"Session open refused|session request failed|disabling multiplexing|too many sessions|MaxSessions"
         r"|ChannelOpenError|Session open failed", _C, "max_sessions"),
        (r"PTY allocation request failed", _C, "no_pty"),
        (r"open failed: connect failed|channel \d+: open failed", _C, "connect_failed"),
        (r"(?:exec|shell|env) request failed on channel|ChannelListenError|remote port forwarding failed"
         r"|Port forwarding.*failed|forwarding request failed", _C, "request_failed"),
        (r"Could not resolve hostname|Name or service not known|nodename nor servname"
         r"|Temporary failure in name resolution"
         r"|No address associated with hostname|getaddrinfo|Name does not resolve"
         r"|未知的名称或服务", _U, "dns"),
        (r"banner exchange", _D, "banner_timeout"),
        (r"kex_exchange_identification|ssh_exchange_identification|Exceeded MaxStartups"
         r"|Not allowed at this time", _D, "handshake"),
        (r"ssh: connect to (?:host|address).*refused|connect to .* port \d+: Connection refused"
         r"|ConnectionRefusedError"
         r"|Connect call failed|connect failed: Connection refused", _U, "refused"),
        (r"(?:connect to (?:host|address)|ssh: connect).*timed out|Operation timed out$"
         r"|connect timed out|login timed out|TimeoutError", _U, "timeout"),
        (r"No route to host", _U, "no_route"),
        (r"Network is (?:unreachable|down)|Host is down"
         r"|Can't assign requested address", _U, "network_unreachable"),
        (r"Broken pipe", _D, "broken_pipe"),
        (r"Timeout, server \S+ not responding|keepalive|Connection to \S+ timed out"
         r"|Connection timed out", _D, "timeout"),
        (r"closed by remote host|closed by \S+ port|Connection lost|ConnectionLost"
         r"|Connection closed", _D, "closed"),
        (r"Connection reset|ConnectionResetError|packet_write_wait|Connection aborted", _D, "reset"),
        (r"Corrupted MAC|Bad packet length|message authentication code incorrect|padding error"
         r"|invalid format", _D, "corrupt"),
        (r"Bad (?:configuration option|owner or permissions)|no argument after keyword|Bad local forwarding"
         r"|Identity file .* not accessible|unknown option -- "
         r"|Could not (?:open|create) .*ControlPath", _L, "configuration"),
    )
)  # fmt: skip
_METHODS = re.compile(r"Permission denied \(([\w,@.-]{1,512})\)")
_OFFENDING = re.compile(r"Offending (?:\S{1,32} )?key in \S.{0,1024}?:(\d{1,9})\b")
_NOISE = re.compile(
    r"^(?:debug\d|Warning: Permanently added|Pseudo-terminal will not|Warning: Identity file|\*\* )"
)
_OWN_STATUS = 255
_MOST_LINES = 500


def classify(text: str, status: int | None = None) -> SshTrouble | None:
    """The trouble that an error text of ssh, scp, sftp or asyncssh names; None when it names none.

    Args:
        text: standard error, or the text of an exception.
        status: exit status of the program: 255 is ssh's own, anything else comes from the far side.
    """
    said = [line.strip() for line in lines(text)[:_MOST_LINES]]
    said = [line for line in said if line and not _NOISE.match(line)]
    own = status in {None, _OWN_STATUS}
    for form, kind, detail in _FORMS:
        if not own and kind in {Trouble.UNREACHABLE, Trouble.DROPPED}:
            continue  # a program over there that reached nobody; we did reach it
        line = next((line for line in said if form.search(line)), None)
        if line is not None:
            return SshTrouble(kind, detail, _methods(text), _known_hosts_line(text), safe(line, 300))
    if status == _OWN_STATUS and not said:
        return SshTrouble(Trouble.DROPPED, "silent")
    return None


def _methods(text: str) -> tuple[SafeText, ...] | None:
    match = _METHODS.search(text)
    return tuple(safe(part, 64) for part in match.group(1).split(",") if part) if match else None


def _known_hosts_line(text: str) -> int | None:
    match = _OFFENDING.search(text)
    return int(match.group(1)) if match else None
