"""Five vendors' words for one account: requests become acts on a `World`, machines become bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from tests.platforms.world import Box, Reply, World

Dialect = Callable[[World, str, str, dict[str, str], Any], Reply]


def ok(body: Any, status: int = 200) -> Reply:
    return status, body, {}


def _slice(world: World, rows: list[Any], start: int) -> tuple[list[Any], bool]:
    return rows[start : start + world.page], start + world.page < len(rows) or world.short_page


# --- RunPod -------------------------------------------------------------------------------------------------

_POD_STATES = {"starting": "PROVISIONING", "running": "RUNNING", "stopping": "RUNNING", "stopped": "EXITED",
               "destroying": "RUNNING", "gone": "TERMINATED"}  # fmt: skip


def runpod_pod(box: Box) -> dict[str, Any]:
    up = box.state == "running"
    end = {"host": box.host, "port": box.port, "username": "root", "command": f"ssh root@{box.host}"}
    proxy = {"host": "ssh.runpod.io", "port": 22, "username": f"{box.id}-64411eb2", "command": "ssh x"}
    mounts: dict[str, Any] = {"persistent": {"size": box.disk_gb, "path": "/workspace"}}
    if box.volume:
        mounts = {"network": [{"volumeId": box.volume, "path": "/workspace"}]}
    return {
        "id": box.id, "name": box.name, "status": _POD_STATES[box.state], "actions": ["stop", "terminate"],
        "image": "runpod/pytorch:1", "args": "", "disk": 50, "ports": ["22/tcp"],
        "env": {"HF_TOKEN": "hf_leak_leak_leak"}, "registry": None, "mounts": mounts,
        "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 1}, "cloud": "SECURE", "dataCenterId": "US-TX-3",
        "cudaVersion": "12.8", "ssh": {"proxy": proxy, "direct": end if up else None}, "template": None,
        "cost": box.price if up else 0.0, "locked": False, "globalNetworking": {"enabled": False},
        "runtime": None, "createdAt": box.created, "startedAt": box.created if up else None,
    }  # fmt: skip


def runpod_problem(status: int, detail: str) -> Reply:
    return status, {"title": "Problem", "status": status, "detail": detail}, {}


def runpod(world: World, method: str, path: str, query: dict[str, str], body: Any) -> Reply:
    parts = path.strip("/").split("/")
    if world.auth == "401":
        return runpod_problem(401, "invalid bearer token")
    if path == "/graphql":
        told = {"myself": {"clientBalance": world.balance, "currentSpendPerHr": 1.7}}
        return ok({"data": told} if world.balance is not None else {"errors": [{"message": "retired"}]})
    if parts[1] == "network-volumes":
        return ok({"networkVolumes": [
            {"id": v, "name": v, "size": 50, "dataCenter": "EU-RO-1", "type": "STANDARD"}
            for v in sorted(world.volumes)
        ]})  # fmt: skip
    if parts[1] == "catalog":
        return ok({"gpus": [_runpod_gpu("NVIDIA H100", 2.99, "HIGH"), _runpod_gpu("NVIDIA L4", 0.44, "LOW")]})
    if path == "/v2/pods" and method == "POST":
        return ok(runpod_pod(world.create(body["name"])), 201)
    if path == "/v2/pods":
        return ok({"pods": [] if world.auth == "empty" else [runpod_pod(b) for b in world.all()]}
                  | ({"nextCursor": "more"} if world.short_page else {}))  # fmt: skip
    id_ = unquote(parts[2])
    if method == "GET":
        box = None if world.auth in ("404", "empty") else world.one(id_)
        return ok(runpod_pod(box)) if box else runpod_problem(404, "pod not found")
    verb = "destroy" if method == "DELETE" else body["action"]
    there = world.act(verb, id_)
    if not there:
        return runpod_problem(404, "pod not found")
    return (204, None, {}) if method == "DELETE" else ok(runpod_pod(world.boxes[id_]))


def _runpod_gpu(name: str, price: float, stock: str) -> dict[str, Any]:
    return {
        "id": name, "name": name.removeprefix("NVIDIA "), "pool": None, "manufacturer": "NVIDIA",
        "memory": 80,
        "secure": True, "community": False, "price": {"secure": price, "community": 0.0},
        "maxCount": {"secure": 8, "community": 0}, "availability": stock,
        "dataCenters": [{"id": "US-CA-2", "name": "US California 2", "availability": stock}],
    }  # fmt: skip


# --- vast.ai ------------------------------------------------------------------------------------------------

_VAST_STATES = {"starting": "loading", "running": "running", "stopping": "running", "stopped": "exited",
                "destroying": "running", "gone": "exited"}  # fmt: skip


def vast_instance(box: Box) -> dict[str, Any]:
    stopped = box.state in ("stopped", "stopping")
    wanted = "stopped" if stopped else "running"
    return {
        "id": int(box.id), "label": box.name, "actual_status": _VAST_STATES[box.state], "cur_state": wanted,
        "next_state": wanted, "intended_status": wanted, "image_runtype": "ssh_direct ssh_proxy",
        "ssh_host": "ssh4.vast.ai", "ssh_port": 10600, "public_ipaddr": f" {box.host}\n",
        "ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(box.port)}]} if not stopped else None,
        "gpu_name": "RTX 4090", "num_gpus": 2, "start_date": 1790000000.5, "end_date": 1800000000.0,
        "is_bid": False, "dph_total": box.price, "jupyter_token": "leaky-token-0123456789",
        "extra_env": [["HF_TOKEN", "hf_leak_leak_leak"]], "onstart": "echo secret",
        "instance": {"totalHour": 0.02 if stopped else box.price},
    }  # fmt: skip


def vast_error(status: int, code: str, msg: str) -> Reply:
    return status, {"success": False, "error": code, "msg": msg}, {}


def vast(world: World, method: str, path: str, query: dict[str, str], body: Any) -> Reply:
    parts = path.strip("/").split("/")[1:]
    if world.auth == "401":
        return vast_error(401, "auth_error", "Invalid user key")
    if world.auth == "404":
        return vast_error(404, "not_found", "no such thing")
    if parts == ["v0", "users", "current"]:
        return ok({"id": world.account, "email": "a@b.c", "balance": 0.0, "credit": world.balance})
    if parts == ["v0", "volumes"]:
        return ok({"volumes": [{"id": v} for v in sorted(world.volumes)]})
    if parts == ["v0", "bundles"]:
        return ok({"offers": [
            {"id": 77, "gpu_name": "H100", "num_gpus": 1, "gpu_ram": 81920, "dph_total": 1.9,
             "disk_space": 500.0, "geolocation": "US", "reliability2": 0.991, "rentable": True},
        ]})  # fmt: skip
    if parts[:2] == ["v0", "asks"]:
        return ok({"success": True, "new_contract": int(world.create(body["label"]).id)})
    if parts == ["v1", "instances"]:
        rows = [] if world.auth == "empty" else [vast_instance(b) for b in world.all()]
        start = int(query.get("after_token", "0"))
        page, more = _slice(world, rows, start)
        return ok({
            "success": True, "instances_found": len(page), "total_instances": len(rows), "label_counts": {},
            "next_token": str(start + world.page) if more else None, "instances": page,
        })  # fmt: skip
    if parts == ["v0", "instances"]:
        return ok({"success": False, "error": "deprecated_endpoint", "msg": "use v1"})
    id_ = unquote(parts[2])
    if method == "GET":
        box = None if world.auth == "empty" else world.one(id_)
        return ok({"instances": vast_instance(box) if box else None})
    verb = "destroy" if method == "DELETE" else {"stopped": "stop", "running": "start"}[body["state"]]
    if not world.act(verb, id_):
        return vast_error(404, "no_such_instance", "Instance not found")
    return ok({"success": True})


# --- Lambda -------------------------------------------------------------------------------------------------

_LAMBDA_STATES = {"starting": "booting", "running": "active", "stopping": "active", "stopped": "unhealthy",
                  "destroying": "terminating", "gone": "terminated"}  # fmt: skip
_LAMBDA_TYPE = {
    "name": "gpu_1x_a100", "description": "1x A100", "gpu_description": "A100 (40 GB SXM4)",
    "price_cents_per_hour": 129, "specs": {"vcpus": 30, "memory_gib": 200, "storage_gib": 512, "gpus": 1},
}  # fmt: skip
_REGION = {"name": "us-south-1", "description": "Texas, USA"}


def lambda_instance(box: Box) -> dict[str, Any]:
    can = {"available": True}
    found = {
        "id": box.id, "name": box.name, "status": _LAMBDA_STATES[box.state], "ssh_key_names": ["k"],
        "file_system_names": [box.volume] if box.volume else [], "region": _REGION, "hostname": "h",
        "instance_type": _LAMBDA_TYPE, "jupyter_token": "leaky-token-0123456789", "is_reserved": False,
        "jupyter_url": "https://j.example/?token=leaky-token-0123456789",
        "actions": dict.fromkeys(("migrate", "rebuild", "restart", "cold_reboot", "terminate"), can),
    }  # fmt: skip
    if box.state != "starting":
        found["ip"] = box.host
    return found


def lambda_error(status: int, code: str, message: str) -> Reply:
    return status, {"error": {"code": code, "message": message, "suggestion": "Look again."}}, {}


def lambda_cloud(world: World, method: str, path: str, query: dict[str, str], body: Any) -> Reply:
    if world.auth == "401":
        return lambda_error(401, "global/invalid-api-key", "API key was invalid, expired, or deleted.")
    what = path.removeprefix("/api/v1/")
    if what == "file-systems":
        user = {"id": "u1", "email": "a@b.c", "status": "active"}
        return ok({"data": [
            {"id": v, "name": v, "mount_point": f"/lambda/nfs/{v}", "created": "2026-01-01T00:00:00+00:00",
             "created_by": user, "is_in_use": False, "region": _REGION}
            for v in sorted(world.volumes)
        ]})  # fmt: skip
    if what == "instance-types":
        item = {"instance_type": _LAMBDA_TYPE, "regions_with_capacity_available": [_REGION]}
        return ok({"data": {"gpu_1x_a100": item}})
    if what == "instance-operations/launch":
        return ok({"data": {"instance_ids": [world.create(body["name"]).id]}})
    if what == "instance-operations/terminate":
        ended = []
        for id_ in body["instance_ids"]:
            if not world.act("destroy", id_):
                return lambda_error(404, "global/object-does-not-exist", "Specified instance does not exist.")
            ended.append(lambda_instance(Box(id_, state="destroying")))
        return ok({"data": {"terminated_instances": ended}})
    if what == "instances":
        return ok({"data": [] if world.auth == "empty" else [lambda_instance(b) for b in world.all()]})
    box = None if world.auth in ("404", "empty") else world.one(unquote(what.split("/")[1]))
    if box is None:
        return lambda_error(404, "global/object-does-not-exist", "Specified instance does not exist.")
    return ok({"data": lambda_instance(box)})


# --- Paperspace ---------------------------------------------------------------------------------------------

_PS_STATES = {"starting": "starting", "running": "ready", "stopping": "stopping", "stopped": "off",
              "destroying": "stopping", "gone": "off"}  # fmt: skip


def paperspace_machine(box: Box) -> dict[str, Any]:
    found = {
        "id": box.id, "name": box.name, "state": _PS_STATES[box.state], "machineType": "A4000",
        "accelerators": [{"name": "A4000", "count": 1, "memory": "16GB"}], "publicIp": box.host,
        "publicIpType": "static" if box.volume else "dynamic", "usageRate": box.price, "storageRate": 7.0,
        "autoShutdownEnabled": False, "dtCreated": box.created, "dtDeleted": None,
    }  # fmt: skip
    if box.state == "gone":
        found["dtDeleted"] = box.created
    return found


def paperspace_error(status: int, code: str) -> Reply:
    return status, {"code": code, "message": "It did not work out", "issues": []}, {}


def paperspace(world: World, method: str, path: str, query: dict[str, str], body: Any) -> Reply:
    parts = path.strip("/").split("/")
    if world.auth == "401":
        return paperspace_error(401, "UNAUTHORIZED")
    if parts[0] == "auth":
        return ok({"user": {"id": "u1"}, "team": {"id": f"t{world.account}"}})
    if parts[0] in ("snapshots", "shared-drives"):
        return ok({"hasMore": False, "items": []})
    if parts[0] == "public-ips":
        return ok({"hasMore": False, "items": [{"ip": v} for v in sorted(world.volumes)]})
    if parts == ["machines"] and method == "POST":
        return ok({"data": paperspace_machine(world.create(body["name"])), "event": {"state": "new"}})
    if parts == ["machines"]:
        rows = [] if world.auth == "empty" else [paperspace_machine(b) for b in world.all()]
        start = int(query.get("after", "0"))
        page, more = _slice(world, rows, start)
        nxt = {"nextPage": str(start + world.page)} if more and not world.short_page else {}
        return ok({"hasMore": more, "items": page} | nxt)
    id_ = unquote(parts[1])
    if method == "GET":
        box = None if world.auth in ("404", "empty") else world.one(id_)
        return ok(paperspace_machine(box)) if box else paperspace_error(404, "NOT_FOUND")
    verb = "destroy" if method == "DELETE" else parts[2]
    if method == "PATCH" and body != {}:
        return paperspace_error(400, "BAD_REQUEST")
    if not world.act(verb, id_):
        return paperspace_error(404, "NOT_FOUND")
    return ok({"data": None, "event": {"id": "e1", "name": verb, "state": "new", "error": None}})


# --- AutoDL Pro ---------------------------------------------------------------------------------------------

_AUTODL_STATES = {"starting": "starting", "running": "running", "stopping": "shutting_down",
                  "stopped": "shutdown", "destroying": "releasing", "gone": "released"}  # fmt: skip


def autodl_row(box: Box) -> dict[str, Any]:
    def when(text: str, valid: bool) -> dict[str, Any]:
        return {"Time": text, "Valid": valid}

    return {
        "uuid": box.id, "name": box.name, "machine_id": "m", "status": _AUTODL_STATES[box.state],
        "sub_status": "", "start_mode": "gpu", "charge_type": "payg", "gpu_spec_uuid": "5090-p",
        "req_gpu_amount": 1, "created_at": box.created, "started_at": when(box.created, True),
        "stopped_at": when(box.created, box.state == "stopped"),
        "expired_at": when("0001-01-01T00:00:00Z", False),
        "timed_shutdown_at": when("0001-01-01T00:00:00Z", False),
    }  # fmt: skip


def autodl_envelope(code: str, data: Any = None, msg: str = "") -> Reply:
    return 200, {"code": code, "msg": msg, "data": data, "request_id": "r1"}, {}


def autodl(world: World, method: str, path: str, query: dict[str, str], body: Any) -> Reply:
    what = path.removeprefix("/api/v1/dev/").removeprefix("instance/pro/")
    if world.auth == "401":
        return autodl_envelope("AuthorizeFailed", msg="登录超时")
    if what == "wallet/balance":
        return autodl_envelope("Success", {"assets": int((world.balance or 0) * 1000), "voucher_balance": 0})
    if what == "list":
        rows = [] if world.auth == "empty" else [autodl_row(b) for b in world.all()]
        index = body["page_index"]
        page, _ = _slice(world, rows, (index - 1) * world.page)
        pages = max(1, -(-len(rows) // world.page)) + (1 if world.short_page else 0)
        told = {"page_index": index, "page_size": world.page, "max_page": pages, "result_total": len(rows)}
        if world.short_page:
            told["result_total"] += 1
        return autodl_envelope("Success", told | {"list": page})
    if what == "create":
        return autodl_envelope("Success", world.create(body["instance_name"]).id)
    id_ = query.get("instance_uuid") or (body or {}).get("instance_uuid", "")
    if method == "GET":
        box = None if world.auth in ("404", "empty") else world.one(id_)
        if box is None:
            return autodl_envelope("RecordNotFoundError", msg="record not found")
        if what == "status":
            return autodl_envelope("Success", _AUTODL_STATES[box.state])
        return autodl_envelope("Success", {
            "payg_price": int(box.price * 1000), "snapshot_gpu_alias_name": "RTX 5090",
            "ssh_command": f"ssh -p {box.port} root@{box.host}", "proxy_host": box.host,
            "ssh_port": box.port, "root_password": "leaky-password-0123", "jupyter_token": "leaky-token-0123",
        })  # fmt: skip
    box = world.boxes.get(id_)
    verb = {"power_off": "stop", "power_on": "start", "release": "destroy"}[what]
    if box is None:
        return autodl_envelope("RecordNotFoundError", msg="record not found")
    if verb == "destroy" and box.state != "stopped":
        return autodl_envelope("BadRequest", msg="请先关机")
    if verb == "stop" and box.state == "starting":
        return autodl_envelope("Success")  # accepted, and ignored
    world.act(verb, id_)
    return autodl_envelope("Success")


DIALECTS: dict[str, Dialect] = {
    "runpod": runpod,
    "vastai": vast,
    "lambda": lambda_cloud,
    "paperspace": paperspace,
    "autodl": autodl,
}
