# SPDX-License-Identifier: Apache-2.0
"""The vLLM plug-in: weight-transfer backends `pushrod_tcp` and `pushrod_shm`.

vLLM finds it by itself, by the entry point `pushrod` of the group `vllm.general_plugins`, and calls
register() once in each of its processes. Start a server with
`--weight-transfer-config '{"backend": "pushrod_tcp"}'` and VLLM_SERVER_DEV_MODE=1.
"""

BACKENDS = {"pushrod_tcp": "TcpEngine", "pushrod_shm": "ShmEngine"}


def register() -> None:
    """Makes the backends known to vLLM. Their code is imported by the workers that use one."""
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    for backend, engine in BACKENDS.items():
        # vLLM may call this again in a process that has them, and refuses a second registration.
        if backend not in WeightTransferEngineFactory._registry:
            WeightTransferEngineFactory.register_engine(backend, f"{__name__}.engines", engine)
