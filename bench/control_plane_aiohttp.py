# SPDX-License-Identifier: Apache-2.0
"""The aiohttp arm of control_plane: the same pushes with one session and gather.

Reads one JSON object on standard input: ports, pushes, steps ([method, target, body bytes]).
Prints one: cpu_s and wall_s of the pushes after a warm-up, aiohttp's version.
"""
import asyncio
import json
import sys
import time

import aiohttp


async def push(session, ports, steps):
    for method, target, body in steps:

        async def ask(port):
            headers = {"Content-Type": "application/json"} if body is not None else {}
            url = f"http://127.0.0.1:{port}{target}"
            async with session.request(method, url, data=body, headers=headers) as reply:
                await reply.read()
                assert reply.status == 200

        await asyncio.gather(*(ask(port) for port in ports))


async def main():
    plan = json.load(sys.stdin)
    steps = [
        (method, target, None if size < 0 else b"x" * size) for method, target, size in plan["steps"]
    ]
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await push(session, plan["ports"], steps)
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(plan["pushes"]):
            await push(session, plan["ports"], steps)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(json.dumps({"cpu_s": cpu, "wall_s": wall, "aiohttp": aiohttp.__version__}))


asyncio.run(main())
