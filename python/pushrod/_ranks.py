# SPDX-License-Identifier: Apache-2.0
"""Who this rank is and where the ranks meet, as arguments or torch.distributed say."""

from __future__ import annotations

import os
import pathlib
import socket
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ._errors import ConfigError
from ._log import logger

# Nothing is sent there: a datagram socket that is "connected" tells which local address routes out.
_ANYWHERE = ("192.0.2.1", 9)


@dataclass
class Ranks:
    """What the native coordinator is told. None: the environment says."""

    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    store: str | None = None
    held: socket.socket | None = None  # keeps the store's port ours until the ranks have met

    def release(self) -> None:
        if self.held is not None:
            self.held.close()
            self.held = None


def _distributed() -> Any:
    """torch.distributed when this process uses it, else None. Never imports it."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module


def _boot_id() -> str:
    given = os.environ.get("PUSHROD_HOST_ID")
    return given or pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _own_address() -> str:
    """This host's address as the job's other hosts reach it."""
    master = os.environ.get("MASTER_ADDR")
    target = (master, 9) if master else _ANYWHERE
    try:
        family = socket.getaddrinfo(*target, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def _hold_port() -> socket.socket:
    """A port of the system's choice. The socket is bound and does not listen, so that the store, which
    reuses addresses as this one does, can still take the port and nobody else gets it."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("", 0))
    return held


def _meet(distributed: Any, group: Any, ranks: Ranks, needs_store: bool) -> None:
    """Who shares a host, and where the store will be, which rank 0 of the group says. A collective."""
    offer: dict[str, Any] = {"host": _boot_id()}
    if ranks.rank == 0 and needs_store:
        ranks.held = _hold_port()
        offer |= {"address": _own_address(), "port": ranks.held.getsockname()[1]}
    offers: list[Any] = [None] * (ranks.world_size or 1)
    distributed.all_gather_object(offers, offer, group=group)
    hosts = [each["host"] for each in offers]
    ranks.local_rank = hosts[: ranks.rank].count(offer["host"])
    if needs_store:
        address = "127.0.0.1" if len(set(hosts)) == 1 else offers[0]["address"]
        host = f"[{address}]" if ":" in address else address
        ranks.store = f"tcp://{host}:{offers[0]['port']}"


def find(
    config_store: str,
    rank: int | None,
    world_size: int | None,
    store: str | None,
    group: Any,
) -> Ranks:
    """Arguments, then torch.distributed where it is in use, then the environment."""
    if (rank is None) != (world_size is None):
        raise ConfigError("give both rank and world_size, or none of them")
    if rank is not None and world_size is not None:
        if group is not None:
            raise ConfigError("give either group, or rank and world_size")
        for name, value in (("rank", rank), ("world_size", world_size)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigError(f"{name} is {value!r}, not an int")
        return Ranks(rank, world_size, None, store)
    distributed = _distributed()
    if distributed is None:
        if group is not None:
            raise ConfigError("a group was given, but torch.distributed is not initialised")
        return Ranks(store=store)
    found = Ranks(distributed.get_rank(group), distributed.get_world_size(group), None, store)
    if found.rank is None or found.rank < 0:
        raise ConfigError("this process is not in the given group; only its members push")
    if found.world_size != 1:
        _meet(distributed, group, found, store is None and config_store == "auto")
    return found


def watchdog(group: Any) -> timedelta | None:
    """The limit after which torch.distributed ends a hanging collective of this group; None: unknown."""
    distributed = _distributed()
    if distributed is None:
        return None
    used = group if group is not None else distributed.group.WORLD
    shortest: timedelta | None = None
    for device in ("cpu", "cuda"):
        try:
            backend = used._get_backend(sys.modules["torch"].device(device))
            limit = backend.options._timeout
        except (AttributeError, RuntimeError):
            continue
        if isinstance(limit, timedelta) and (shortest is None or limit < shortest):
            shortest = limit
    return shortest


def check_watchdog(gather_seconds: float, group: Any) -> None:
    """P35: a gather that hangs must end by our limit, with a cause, not by the trainer's watchdog."""
    limit = watchdog(group)
    if limit is not None and limit.total_seconds() <= gather_seconds:
        logger.warning(
            "timeouts.gather is %g s, but torch.distributed ends a hanging collective of this group after "
            "%g s: its watchdog would end the trainer before Pushrod can say which rank hangs; set "
            "timeouts.gather below it",
            gather_seconds,
            limit.total_seconds(),
        )
