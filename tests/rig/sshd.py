"""A real OpenSSH server on loopback, as the current user, that can be broken on purpose.

It touches nothing outside its own directory (as root also ``/run/sshd``, which sshd insists on), and every
process it started can be found again: its sessions carry ``RGT_RIG`` in their environment.
"""

from __future__ import annotations

import getpass
import os
import shlex
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.real import need

_START_S = 10.0


class Sshd:
    """One server. Make it with `Sshd.start`; end it with `stop`.

    Attributes:
        host, port, user: where and as whom to log in.
        client_key: path of a private key that is let in; the public half lies beside it.
        host_key_pub: the server's public key line, ``ssh-ed25519 AAAA…``.
        pid: of the listener.
        home: HOME of the sessions, empty at the start.
    """

    def __init__(self, tmp: Path, binaries: dict[str, str]) -> None:
        self.tmp = tmp
        self.host = "127.0.0.1"
        self.port = 0
        self.user = getpass.getuser()
        self.client_key = tmp / "client"
        self.home = tmp / "home"
        self.rig_id = uuid.uuid4().hex
        self._binaries = binaries
        self._authorized = tmp / "authorized_keys"
        self._config = tmp / "sshd_config"
        self._host_key = tmp / "host"
        self._options = ""
        self._key_prefix = ""
        self._before: tuple[str, ...] = ()
        self._environment: list[str] = []
        self._listener: subprocess.Popen[bytes] | None = None
        self._sessions: list[psutil.Process] = []

    @classmethod
    def start(
        cls,
        tmp: Path,
        *,
        max_sessions: int = 10,
        login_shell: str | None = None,
        rc_text: str | None = None,
        host_key_type: str = "ed25519",
        max_startups: str = "100:30:200",
        extra_config: Sequence[str] = (),
    ) -> Sshd:
        """Start a server whose files lie under `tmp`; skips the test where sshd is not installed.

        Args:
            max_sessions: sshd's MaxSessions, per connection.
            login_shell: absolute path of a shell that gets the command line as ``SHELL -c LINE``, as a login
                shell would; the user's own one by default.
            rc_text: POSIX-sh source that runs before every command, as a start-up file would.
            host_key_type: ``ed25519``, ``rsa`` or ``ecdsa``.
            max_startups: sshd's MaxStartups; generous by default, since sshd drops at random beyond it.
            extra_config: further lines of sshd_config; of several SetEnv lines sshd heeds the first alone, so
                theirs are put into one.
        """
        rig = cls(Path(tmp).resolve(), need("sshd", "ssh-keygen"))
        rig.home.mkdir(parents=True)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd's privilege separation directory
        rig._keygen(rig.client_key, "ed25519")
        rig._keygen(rig._host_key, host_key_type)
        rig._prepare_login(login_shell, rc_text)
        told = [line for line in extra_config if not line.startswith("SetEnv ")]
        rig._options = "\n".join([f"MaxSessions {max_sessions}", f"MaxStartups {max_startups}", *told])
        rig._environment = [line[7:] for line in extra_config if line.startswith("SetEnv ")]
        rig.restore_key()
        rig._listen()
        return rig

    @property
    def pid(self) -> int:
        assert self._listener is not None, "not started"
        return self._listener.pid

    @property
    def host_key_pub(self) -> str:
        return " ".join(self._host_key.with_suffix(".pub").read_text().split()[:2])

    @property
    def host_key_fingerprint(self) -> str:
        """``SHA256:…``, as ssh-keygen prints it."""
        listed = self._run("ssh-keygen", "-l", "-f", f"{self._host_key}.pub")
        return listed.split()[1]

    # --- faults -------------------------------------------------------------------------------------------

    def kill_sessions(self) -> int:
        """Cut every connection without a word, as a dead machine would. Returns how many processes ended."""
        victims = self._session_processes()
        _kill(victims)
        return len(victims)

    def freeze(self, *, listener: bool = False) -> None:
        """Stop the processes behind the connections: TCP stays open and nobody answers (half-open).

        With `listener`, new connections are accepted by the kernel and never served, too.
        """
        for process in self._session_processes():
            _signal(process, signal.SIGSTOP)
        if listener:
            os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        if self._listener is not None and self._listener.poll() is None:
            os.kill(self.pid, signal.SIGCONT)
        for process in self._session_processes():
            _signal(process, signal.SIGCONT)

    def new_host_key(self, key_type: str = "ed25519") -> None:
        """Listen on the same port with another host key, as a rebuilt machine would. Sessions live on."""
        self._end_listener()
        self._host_key.unlink()
        self._host_key.with_suffix(".pub").unlink()
        self._keygen(self._host_key, key_type)
        self._listen()

    def restart(self) -> None:
        """A new listener on the same port; sessions that are open live on."""
        self._end_listener()
        self._listen()

    def stop_listening(self) -> None:
        """New connections are refused; open ones live on. `restart` undoes it."""
        self._end_listener()

    def revoke_key(self) -> None:
        """New logins are refused; open connections live on. `restore_key` undoes it."""
        self._authorized.write_text("")

    def restore_key(self) -> None:
        self.authorize(self.client_key.with_suffix(".pub").read_text())

    def authorize(self, *public_keys: str) -> None:
        """Let exactly these public key lines in."""
        self._authorized.write_text("".join(f"{self._key_prefix}{line.strip()}\n" for line in public_keys))

    def new_client_key(self, name: str, passphrase: str = "", key_type: str = "ed25519") -> Path:
        """Make another client key (not yet let in) and return the path of its private half."""
        path = self.tmp / name
        self._keygen(path, key_type, passphrase)
        return path

    # --- what is there ------------------------------------------------------------------------------------

    def processes(self) -> list[psutil.Process]:
        """What runs on the "box": every living process that one of our sessions started, orphans included."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("RGT_RIG") == self.rig_id and process.status() != "zombie":
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def ssh_config(self, alias: str = "box", *lines: str) -> Path:
        """An ssh client configuration that knows this server as `alias`."""
        path = self.tmp / f"ssh_config_{alias}"
        body = [
            f"HostName {self.host}",
            f"Port {self.port}",
            f"User {self.user}",
            f'IdentityFile "{self.client_key}"',
            "IdentitiesOnly yes",
            f'UserKnownHostsFile "{self.tmp / "known_hosts"}"',
            "GlobalKnownHostsFile /dev/null",
            *lines,
        ]
        path.write_text(f"Host {alias}\n" + "".join(f"  {line}\n" for line in body))
        return path

    def stop(self) -> None:
        """End the server, its sessions and whatever they left behind."""
        if self._listener is not None:
            self.thaw()
        left = [*self._session_processes(), *self.processes()]
        self._end_listener()
        _kill(left)

    # --- inside -------------------------------------------------------------------------------------------

    def _session_processes(self) -> list[psutil.Process]:
        """The server's own processes behind each connection (from OpenSSH 9.8 on: ``sshd-session``)."""
        self._sessions = [p for p in self._sessions if p.is_running()]
        if self._listener is None:
            return list(self._sessions)
        try:
            children = psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            children = []
        for process in children:
            try:
                if process.name().startswith("sshd") and process not in self._sessions:
                    self._sessions.append(process)
            except psutil.Error:
                continue
        return list(self._sessions)

    def _prepare_login(self, login_shell: str | None, rc_text: str | None) -> None:
        if login_shell is None and rc_text is None:
            return
        shell = shlex.quote(login_shell or "/bin/sh")
        login = self.tmp / "login.sh"
        login.write_text(
            f"{rc_text or ''}\n"
            f'if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec {shell} -c "$SSH_ORIGINAL_COMMAND"\n'
            f"else exec {shell}; fi\n"
        )
        self._key_prefix = f'command="exec /bin/sh {login}" '

    def _listen(self) -> None:
        for _ in range(5):
            self.port = self.port or _free_port()
            self._write_config()
            log = (self.tmp / "sshd.log").open("ab")
            self._listener = subprocess.Popen(
                [*self._before, self._binaries["sshd"], "-D", "-e", "-f", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
            log.close()
            if self._answers():
                return
            self._end_listener()
            self.port = 0
        raise RuntimeError(f"sshd did not start: {(self.tmp / 'sshd.log').read_text()[-2000:]}")

    def _write_config(self) -> None:
        self._config.write_text(
            "\n".join(
                [
                    f"Port {self.port}",
                    f"ListenAddress {self.host}",
                    f"HostKey {self._host_key}",
                    f"PidFile {self.tmp / 'sshd.pid'}",
                    f"AuthorizedKeysFile {self._authorized}",
                    # HOME: the real one's start-up files would make every test slow and different elsewhere
                    " ".join([f'SetEnv "HOME={self.home}" RGT_RIG={self.rig_id}', *self._environment]),
                    "StrictModes no",
                    "UsePAM no",
                    "PasswordAuthentication no",
                    "KbdInteractiveAuthentication no",
                    "PermitRootLogin prohibit-password",
                    "PrintMotd no",
                    "PrintLastLog no",
                    "UseDNS no",
                    "Subsystem sftp internal-sftp",
                    "LogLevel VERBOSE",
                    self._options,
                    "",
                ]
            )
        )

    def _answers(self) -> bool:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self._listener is None or self._listener.poll() is not None:
                return False
            try:
                with socket.create_connection((self.host, self.port), timeout=1) as probe:
                    return probe.recv(4) == b"SSH-"
            except OSError:
                time.sleep(0.02)
        return False

    def _end_listener(self) -> None:
        if self._listener is None:
            return
        self._session_processes()  # remember the sessions: they outlive their parent
        self._listener.terminate()
        try:
            self._listener.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._listener.kill()
            self._listener.wait(timeout=5)

    def _keygen(self, path: Path, key_type: str, passphrase: str = "") -> None:
        bits = ["-b", "2048"] if key_type == "rsa" else []
        self._run("ssh-keygen", "-q", "-t", key_type, *bits, "-N", passphrase, "-C", "rig", "-f", str(path))

    def _run(self, tool: str, *args: str) -> str:
        done = subprocess.run(
            [self._binaries[tool], *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=True,
        )
        return done.stdout.decode()


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        pass


def _kill(processes: list[psutil.Process]) -> None:
    """End these and wait until they have ended; an orphan may stay a zombie, and that is ended, too."""
    for process in processes:
        _signal(process, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(_lives(process) for process in processes):
        time.sleep(0.005)


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
