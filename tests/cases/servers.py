# SPDX-License-Identifier: Apache-2.0
"""Servers that do what no reference engine does with its connections."""

import select
import socket
import struct
import threading


def answer(head, body):
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{head}\r\n\r\n".encode() + body


class Relay:
    """A TCP relay in front of an engine that ends connections as a server may. `at_write`: a route,
    and which of its requests on used connections meets the connection's end."""

    def __init__(self, engine, idle=None, after_reply=False, at_write=(None, 0)):
        self.name, self.engine, self.idle, self.after_reply = engine.name, engine, idle, after_reply
        self.route, self.left = at_write
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.closed = 0
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self.carry, args=(client,))
            self.threads.append(thread)
            thread.start()

    def carry(self, client):
        with client, socket.create_connection(("127.0.0.1", self.engine.port)) as server:
            answering = used = False
            while True:
                # Idle only where nothing is owed.
                limit = None if answering else self.idle
                if self.after_reply and answering:
                    limit = 0.2
                ready, _, _ = select.select([client, server], [], [], limit)
                if not ready:
                    self.closed += 1
                    return
                for source in ready:
                    try:
                        data = source.recv(65536)
                        if not data:
                            return
                        if source is client and used and self.meets_its_close(data):
                            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                              struct.pack("ii", 1, 0))
                            return
                        used = used or source is server
                        (server if source is client else client).sendall(data)
                    except OSError:
                        return
                    answering = source is server if self.after_reply else source is client

    def meets_its_close(self, data):
        words = data.split(b" ", 2)
        if len(words) > 2 and words[1].decode().lstrip("/").partition("?")[0] == self.route:
            self.left -= 1
            self.closed += self.left == 0
            return self.left == 0
        return False

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join()


class Flood:
    """Answers everything with chunks without an end, and counts what a connection takes."""

    name = "flood"

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.most = 0
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                client.settimeout(5)
                try:
                    if client.recv(65536):
                        client.sendall(answer("Transfer-Encoding: chunked", b""))
                        for count in range(64):
                            client.sendall(b"100000\r\n" + b"9" * (1 << 20) + b"\r\n")
                            self.most = max(self.most, (count + 1) << 20)
                except OSError:
                    continue

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
