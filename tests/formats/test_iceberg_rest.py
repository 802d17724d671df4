"""Tables of a REST catalog: Iceberg's own client, and its own handlers behind a small HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.formats.conftest import Ice

ENDPOINTS = [
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
]


class Many:
    """How many tasks the server sends at once."""

    def applyAsInt(self, _scan: Any) -> int:
        return 1000

    class Java:
        implements = ("java.util.function.ToIntFunction",)


class Server(BaseHTTPRequestHandler):
    """Loads tables of a catalog of files, commits to them, and plans scans of those that ``plans`` names."""

    jvm: Any
    catalog: Any
    plans: set[str]
    asked: list[str]

    def do_GET(self) -> None:
        if self.path.startswith("/v1/config"):
            self.answer({"defaults": {}, "overrides": {}, "endpoints": ENDPOINTS})
        else:
            everything = self.rest.RESTCatalogProperties.SnapshotMode.valueOf("ALL")
            self.loaded(self.rest.CatalogHandlers.loadTable(self.catalog, self.table(), everything))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append(self.path)
        if self.path.endswith("/plan"):
            request = self.rest.requests.PlanTableScanRequestParser.fromJson(body)
            never = self.jvm.java.util.function.Predicate.isEqual("a scan that is planned later")
            planned = self.rest.CatalogHandlers.planTableScan(self.catalog, self.table(), request, never, Many())
            self.answer(json.loads(self.rest.responses.PlanTableScanResponseParser.toJson(planned)))
        else:
            request = self.rest.requests.UpdateTableRequestParser.fromJson(body)
            self.loaded(self.rest.CatalogHandlers.updateTable(self.catalog, self.table(), request))

    @property
    def rest(self) -> Any:
        return self.jvm.org.apache.iceberg.rest

    def table(self) -> Any:
        parts = self.path.split("?")[0].split("/")
        return self.jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"{parts[3]}.{parts[5]}")

    def loaded(self, response: Any) -> None:
        text = json.loads(self.rest.responses.LoadTableResponseParser.toJson(response))
        if self.table().name() in self.plans:
            text.setdefault("config", {})["scan-planning-mode"] = "server"
        self.answer(text)

    def answer(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(ice: Ice) -> Iterator[type[Server]]:
    """A catalog ``rest`` that has the tables of ``ice``."""
    jvm: Any = ice.spark._jvm
    conf = ice.spark._jsparkSession.sessionState().newHadoopConf()
    catalog = jvm.org.apache.iceberg.hadoop.HadoopCatalog(conf, ice.spark.conf.get("spark.sql.catalog.ice.warehouse"))
    members = {"jvm": jvm, "catalog": catalog, "plans": set(), "asked": []}
    handler: type[Server] = type("Handler", (Server,), members)
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    settings = {"type": "rest", "uri": f"http://127.0.0.1:{http.server_port}", "cache-enabled": "false"}
    settings |= {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO", "rest-metrics-reporting-enabled": "false"}
    ice.spark.conf.set("spark.sql.catalog.rest", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in settings.items():
        ice.spark.conf.set(f"spark.sql.catalog.rest.{key}", value)
    yield handler
    http.shutdown()
    http.server_close()


@pytest.mark.long
def test_a_rest_catalog(ice: Ice, server: type[Server]) -> None:
    name = ice.table("id bigint, v bigint")
    remote = name.replace("ice.", "rest.", 1)
    ice.insert(remote, *[f"SELECT id, id AS v FROM range({i * 10}, {i * 10 + 10})" for i in range(3)])
    ice.sql(f"REFRESH TABLE {name}")
    assert len(server.asked) == 3  # the commits went through the server
    assert ice.same(f"SELECT * FROM {remote} WHERE id + 0 = 12", name).files == 1
    ice.sql(f"DELETE FROM {remote} WHERE id + 0 < 5").collect()
    ice.sql(f"REFRESH TABLE {name}")
    assert len(ice.same(f"SELECT * FROM {remote} WHERE id + 0 < 12", name).rows) == 7

    # A table that the server plans: what it leaves out may be more than statistics tell, so it stays the server's.
    server.plans.add(name.split(".")[-1])
    compared = ice.same(f"SELECT * FROM {remote} WHERE id + 0 = 12", name)
    assert server.asked[-1].endswith("/plan")
    assert [reason.text for reason in compared.summary.scans[0].reasons] == [
        f"{remote} is left to Spark: its catalog plans the scan"
    ]
