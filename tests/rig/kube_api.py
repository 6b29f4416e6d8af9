"""An API server of Kubernetes on loopback, as far as ``kubectl`` asks it: pods, Jobs, and exec by websocket.

What a container runs are processes of this computer. It can lie on purpose: forbid, be another cluster, keep
pods whose Job is deleted.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import socket
import struct
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KINDS = {"pods": "Pod", "jobs": "Job"}
_PATHS = {"/api/v1": ("v1", "pods"), "/apis/batch/v1": ("batch/v1", "jobs")}


class Cluster:
    """The state of the cluster, and its server.

    Attributes:
        objects: by ``kind/namespace/name``.
        denied: words of verbs that are forbidden: get, delete, exec…
        sticky: deleted Jobs leave their pods behind.
        shell: False: containers have no ``/bin/sh``.
        runs_jobs: what is created as a Job runs; otherwise it waits for a card for ever.
        namespace: another name than ``ml`` makes it the wrong cluster.
        asked: method and path of every request.
        posted: what was created.
    """

    def __init__(self, tmp: Path) -> None:
        self.objects: dict[str, Object] = {}
        self.denied: set[str] = set()
        self.sticky = False
        self.shell = True
        self.namespace = "ml"
        self.runs_jobs = False
        self.asked: list[str] = []
        self.posted: list[Object] = []
        self.sockets: list[socket.socket] = []
        self.tmp = tmp
        handler = type("Handler", (_Handler,), {"cluster": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.kubeconfig = tmp / "kubeconfig"
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "rig",
                    "clusters": [{"name": "rig", "cluster": {"server": self.url}}],
                    "users": [{"name": "ada", "user": {"token": "t0ken"}}],
                    "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "ada"}}],
                }
            )
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def pod(self, name: str, *, phase: str = "Running", job: str | None = None, **status: object) -> Object:
        labels = {"batch.kubernetes.io/job-name": job, "job-name": job} if job else {}
        made = self.put(
            "Pod", name, {"containers": [{"name": "main", "image": "x"}]}, {"phase": phase, **status}
        )
        made["metadata"]["labels"] = labels
        if job:
            owner = {"kind": "Job", "name": job, "controller": True, "apiVersion": "batch/v1", "uid": "u"}
            made["metadata"]["ownerReferences"] = [owner]
        return made

    def run_job(self, name: str, made: Object) -> None:
        """Carry a Job's pods out, one after another, as processes of this computer."""
        spec, code = made["spec"], 0
        for index in range(spec.get("completions") or 1):
            pod = self.pod(f"{name}-{index}", job=name)
            (container,) = spec["template"]["spec"]["containers"]
            environment = {"PATH": os.environ["PATH"], "RGT_IN_POD": f"{name}-{index}"}
            if spec.get("completionMode") == "Indexed":
                environment["JOB_COMPLETION_INDEX"] = str(index)
            one = subprocess.run(container["command"], env=environment, timeout=60, check=False)
            code = code or one.returncode
            pod["status"]["phase"] = "Failed" if one.returncode else "Succeeded"
        word = "Failed" if code else "Complete"
        made["status"] = {"conditions": [{"type": word, "status": "True"}]}

    def put(self, kind: str, name: str, spec: Object, status: Object) -> Object:
        made = {
            "apiVersion": "v1" if kind == "Pod" else "batch/v1",
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": "ml",
                "uid": str(uuid.uuid4()),
                "creationTimestamp": "2026-11-01T00:00:00Z",
            },
            "spec": spec,
            "status": status,
        }
        self.objects[f"{kind}/ml/{name}"] = made
        return made

    def cut(self) -> None:
        """Every exec loses its connection, as when a node or a proxy dies."""
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self.cut()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: Cluster

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.cluster.asked.append(f"GET {parts.path}")
        if parts.path.endswith("/exec"):
            _exec(self, parse_qs(parts.query))
        elif parts.path == f"/api/v1/namespaces/{self.cluster.namespace}":
            self._answer(200, {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "ml"}})
        elif (discovered := _discovery(parts.path)) is not None:
            self._answer(200, discovered)
        else:
            self._object("get", parts.path, parse_qs(parts.query))

    def do_POST(self) -> None:
        self.cluster.asked.append(f"POST {urlsplit(self.path).path}")
        body = self._body()
        if urlsplit(self.path).path.endswith("/exec"):  # the older protocol, which kubectl falls back to
            if self._allowed("exec"):
                self._refuse(400, "BadRequest", "only websockets here")
            return
        if self.path.endswith("/selfsubjectreviews") or "/selfsubjectreviews?" in self.path:
            self._answer(201, {**body, "status": {"userInfo": {"username": "ada"}}})
            return
        kind, name = body.get("kind", ""), body.get("metadata", {}).get("name", "")
        if f"{kind}/ml/{name}" in self.cluster.objects:
            self._refuse(409, "AlreadyExists", f'jobs.batch "{name}" already exists')
            return
        self.cluster.posted.append(body)
        made = self.cluster.put(kind, name, body.get("spec", {}), {"active": 1, "conditions": []})
        self._answer(201, made)
        if self.cluster.runs_jobs:
            threading.Thread(target=self.cluster.run_job, args=(name, made), daemon=True).start()

    def do_PATCH(self) -> None:
        self.cluster.asked.append(f"PATCH {urlsplit(self.path).path}")
        body = self._body()
        found = self._find(urlsplit(self.path).path)
        if found is None or not self._allowed("patch"):
            return
        if body.get("metadata", {}).get("uid", found["metadata"]["uid"]) != found["metadata"]["uid"]:
            self._refuse(422, "Invalid", "Job is invalid: metadata.uid: Invalid value: field is immutable")
            return
        found["spec"] |= body.get("spec", {})
        if found["spec"].get("suspend"):
            found["status"] = {"conditions": [{"type": "Suspended", "status": "True"}]}
        self._answer(200, found)

    def do_DELETE(self) -> None:
        self.cluster.asked.append(f"DELETE {urlsplit(self.path).path}")
        wanted = (self._body().get("preconditions") or {}).get("uid")
        found = self._find(urlsplit(self.path).path)
        if found is None or not self._allowed("delete"):
            return
        if wanted != found["metadata"]["uid"]:
            said = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: other"
            self._refuse(409, "Conflict", f"Operation cannot be fulfilled on {found['kind']}: {said}")
            return
        kind, name = found["kind"], found["metadata"]["name"]
        del self.cluster.objects[f"{kind}/ml/{name}"]
        if kind == "Job" and not self.cluster.sticky:
            for key, one in list(self.cluster.objects.items()):
                if one["metadata"].get("labels", {}).get("job-name") == name:
                    del self.cluster.objects[key]
        self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    # --- inside -------------------------------------------------------------------------------------------

    def _body(self) -> Object:
        if self.headers.get("Transfer-Encoding") == "chunked":  # what kubectl passes on from its stdin
            raw = b""
            while size := int(self.rfile.readline(), 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            told: Object = json.loads(raw)
        except ValueError:
            return {}
        return told

    def _answer(self, status: int, body: Object) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _refuse(self, status: int, reason: str, message: str) -> None:
        told = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        self._answer(status, {**told, "reason": reason, "message": message, "code": status})

    def _allowed(self, verb: str) -> bool:
        if verb in self.cluster.denied:
            self._refuse(403, "Forbidden", f'pods is forbidden: User "ada" cannot {verb} resource')
            return False
        return True

    def _find(self, path: str) -> Object | None:
        """The object of a path; answers 404 and gives None where there is none."""
        words = path.strip("/").split("/")
        plural, name = words[-2], words[-1]
        found = self.cluster.objects.get(f"{_KINDS.get(plural)}/ml/{name}")
        if found is None:
            group = "jobs.batch" if plural == "jobs" else plural
            self._refuse(404, "NotFound", f'{group} "{name}" not found')
        return found

    def _object(self, verb: str, path: str, query: dict[str, list[str]]) -> None:
        if not self._allowed(verb):
            return
        plural = path.rstrip("/").rpartition("/")[2]
        if plural not in _KINDS:
            found = self._find(path)
            if found is not None:
                self._answer(200, found)
            return
        label, _, value = (query.get("labelSelector") or [""])[0].partition("=")
        items = [
            one
            for one in self.cluster.objects.values()
            if one["kind"] == _KINDS[plural]
            and (not label or one["metadata"].get("labels", {}).get(label) == value)
        ]
        version = "v1" if plural == "pods" else "batch/v1"
        self._answer(
            200, {"kind": f"{_KINDS[plural]}List", "apiVersion": version, "metadata": {}, "items": items}
        )


def _discovery(path: str) -> Object | None:
    group: Object = {"name": "batch", "versions": [{"groupVersion": "batch/v1", "version": "v1"}]}
    group["preferredVersion"] = {"groupVersion": "batch/v1", "version": "v1"}
    if path == "/version":
        return {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}
    if path in _PATHS:
        version, plural = _PATHS[path]
        one = {"name": plural, "singularName": plural[:-1], "namespaced": True, "kind": _KINDS[plural]}
        one["verbs"] = ["get", "list", "create", "delete", "patch"]
        return {"kind": "APIResourceList", "groupVersion": version, "resources": [one]}
    return None


# --- exec -------------------------------------------------------------------------------------------------


def _exec(handler: _Handler, query: dict[str, list[str]]) -> None:
    """``kubectl exec`` in the remote command protocol v5: one channel a stream, the end as a Status."""
    cluster = handler.cluster
    if not handler._allowed("exec"):
        return
    pod = cluster.objects.get(f"Pod/ml/{urlsplit(handler.path).path.split('/')[-2]}")
    if pod is None:
        handler._refuse(404, "NotFound", "pods not found")
        return
    accept = hashlib.sha1((handler.headers["Sec-WebSocket-Key"] + _GUID).encode()).digest()
    handler.send_response(101)
    handler.send_header("Upgrade", "websocket")
    handler.send_header("Connection", "Upgrade")
    handler.send_header("Sec-WebSocket-Accept", base64.b64encode(accept).decode())
    handler.send_header("Sec-WebSocket-Protocol", "v5.channel.k8s.io")
    handler.end_headers()
    handler.wfile.flush()
    handler.close_connection = True
    cluster.sockets.append(handler.connection)
    if not cluster.shell:
        text = 'exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown'
        _send(
            handler,
            b"\x03" + json.dumps({"status": "Failure", "message": text, "reason": "InternalError"}).encode(),
        )
        _close(handler)
        return
    child = subprocess.Popen(
        query["command"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "RGT_IN_POD": pod["metadata"]["name"]},
    )
    lock = threading.Lock()
    pumps = [
        threading.Thread(target=_pump, args=(handler, lock, stream, number), daemon=True)
        for number, stream in ((1, child.stdout), (2, child.stderr))
    ]
    feeder = threading.Thread(target=_feed, args=(handler, child), daemon=True)
    for thread in (*pumps, feeder):
        thread.start()
    child.wait()
    for thread in pumps:
        thread.join(10)
    with lock, contextlib.suppress(OSError):
        _send(handler, b"\x03" + json.dumps(_status(child.returncode)).encode())
        _close(handler)


def _status(code: int) -> Object:
    if code == 0:
        return {"status": "Success"}
    cause = {"reason": "ExitCode", "message": str(code if code > 0 else 128 - code)}
    return {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": "command terminated with non-zero exit code",
        "details": {"causes": [cause]},
    }


def _pump(handler: _Handler, lock: threading.Lock, stream: Any, number: int) -> None:
    while data := stream.read1(32768):
        with lock, contextlib.suppress(OSError):
            _send(handler, bytes([number]) + data)


def _feed(handler: _Handler, child: subprocess.Popen[bytes]) -> None:
    """What comes goes to stdin; the end of the stream, or of the connection, is the end of stdin."""
    assert child.stdin is not None
    with contextlib.suppress(OSError, ValueError):
        for data in _frames(handler):
            if data[:1] == b"\x00":
                child.stdin.write(data[1:])
                child.stdin.flush()
            elif data[:2] == b"\xff\x00":
                break
    with contextlib.suppress(OSError):
        child.stdin.close()


def _frames(handler: _Handler) -> Iterator[bytes]:
    """Payloads of binary frames until the connection ends."""
    whole = b""
    while True:
        head = handler.rfile.read(2)
        if len(head) < 2:
            return
        size = head[1] & 127
        if size == 126:
            (size,) = struct.unpack(">H", handler.rfile.read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", handler.rfile.read(8))
        mask = handler.rfile.read(4)
        data = handler.rfile.read(size)
        repeated = (mask * (size // 4 + 1))[:size]
        data = (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
        if head[0] & 15 == 8:
            return
        if head[0] & 15 in (0, 1, 2):
            whole += data
            if head[0] & 128:
                yield whole
                whole = b""


def _send(handler: _Handler, data: bytes, kind: int = 2) -> None:
    size = len(data)
    head = struct.pack(">BB", 128 | kind, size) if size < 126 else struct.pack(">BBH", 128 | kind, 126, size)
    handler.connection.sendall(head + data)


def _close(handler: _Handler) -> None:
    _send(handler, struct.pack(">H", 1000), kind=8)
    time.sleep(0.05)
