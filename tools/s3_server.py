"""A real S3 server on this machine for tests and measurements: versitygw over a temporary folder.

It is built once by `go install` into a cache folder, from the module proxy that Go is set to. Between it and Spark a
small proxy may be put that counts, delays, refuses or drops requests.
"""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyspark

VERSION = "v1.8.0"
MODULE = "github.com/versity/versitygw/cmd/versitygw"
KEY, SECRET = "testing-key-id", "testing-secret-of-the-key"
REMEDY = "Install Go 1.25 or later (go.dev/doc/install) and put it on the PATH."


def binary() -> Path:
    """The server's program, built if it is not there yet."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "secateur" / f"versitygw-{VERSION}"
    program = home / "versitygw"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise RuntimeError(
            f"the tests of object stores need an S3 server, which Go builds, but there is no go. {REMEDY}"
        )
    build = subprocess.run(
        [go, "install", f"{MODULE}@{VERSION}"],
        env={**os.environ, "GOBIN": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    if build.returncode:
        raise RuntimeError(f"{MODULE}@{VERSION} could not be built: {build.stderr.strip()[-500:]}")
    return program


def hadoop_aws() -> str:
    """The S3 connector that fits the Hadoop of this PySpark, as a Maven coordinate."""
    jars = Path(pyspark.__file__).parent / "jars"
    version = next(jars.glob("hadoop-client-api-*.jar")).stem.removeprefix("hadoop-client-api-")
    return f"org.apache.hadoop:hadoop-aws:{version}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def settings(endpoint: str, bucket: str | None = None) -> dict[str, str]:
    """Keys and endpoint as a user sets them, in Spark's configuration only; for all buckets or for one."""
    prefix = "spark.hadoop.fs.s3a." + (f"bucket.{bucket}." if bucket else "")
    return {
        f"{prefix}endpoint": endpoint,
        f"{prefix}endpoint.region": "us-east-1",
        f"{prefix}path.style.access": "true",
        f"{prefix}connection.ssl.enabled": "false",
        f"{prefix}access.key": KEY,
        f"{prefix}secret.key": SECRET,
        f"{prefix}aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }


@contextmanager
def server(folder: Path, *, readonly: bool = False) -> Iterator[str]:
    """The endpoint of a server whose buckets are the folders in ``folder/buckets``."""
    buckets, sidecar = folder / "buckets", folder / "attributes"
    for place in (buckets, sidecar):
        place.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [str(binary()), "--port", f"127.0.0.1:{port}", "--access", KEY, "--secret", SECRET, "--quiet"]
    command += ["--readonly"] if readonly else []
    # Files that tests put into the folder themselves have no tag yet, and S3A wants one.
    command += ["--keep-alive", "posix", "--sidecar", str(sidecar), "--default-etag", "0123456789abcdef", str(buckets)]
    with (folder / f"server-{port}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the S3 server did not come up on port {port}")


@dataclass
class Proxy:
    """A proxy before the server, and what it does to requests."""

    endpoint: str
    delay: float = 0.0
    """Seconds before each request is passed on."""
    throttle: int = 0
    """Every so many requests one is answered with 503 SlowDown; 0: none."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each that came, with its query."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """How many requests of each method come in a block of code."""
        with self.lock:
            before = len(self.requests)
        counts: Counter[str] = Counter()
        yield counts
        with self.lock:
            counts.update(_kind(*request) for request in self.requests[before:])


def _kind(method: str, path: str) -> str:
    return "LIST" if method == "GET" and ("list-type=2" in path or "prefix=" in path) else method


_SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection"}


@contextmanager
def proxy(target: str, **manners: Any) -> Iterator[Proxy]:
    """A proxy before the server at ``target``; requests keep their Host, which is signed."""
    upstream = target.removeprefix("http://")
    state: Proxy

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def _pass_on(self) -> None:
            with state.lock:
                state.requests.append((self.command, self.path))
                slow = state.throttle and len(state.requests) % state.throttle == 0
            body = self._body()
            if state.delay:
                time.sleep(state.delay)
            if slow:
                self._answer(503, [("Content-Type", "application/xml")], _SLOW_DOWN)
                return
            connection = http.client.HTTPConnection(upstream, timeout=60)
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            chunked = self.headers.get("Transfer-Encoding", "").lower() == "chunked"
            for name, value in self.headers.items():
                if name.lower() not in _HOP and name.lower() != "expect":
                    connection.putheader(name, value)
            if chunked:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            length = answer.getheader("Content-Length")
            data = answer.read()
            headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in _HOP | {"content-length"}]
            self._answer(answer.status, headers, data, length if self.command == "HEAD" else None)
            connection.close()

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes, length: str | None = None) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            if status not in (204, 304):
                self.send_header("Content-Length", length or str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)
            self.wfile.flush()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

        def handle_expect_100(self) -> bool:
            done = super().handle_expect_100()
            self.wfile.flush()
            return done

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except (ConnectionError, TimeoutError):  # the client went away
                self.close_connection = True

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    listening = Server(("127.0.0.1", 0), Handler)
    state = Proxy(f"http://127.0.0.1:{listening.server_address[1]}", **manners)
    threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield state
    finally:
        listening.shutdown()
        listening.server_close()
