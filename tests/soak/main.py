"""A soak: a node, and a control plane with a data plane, under mixed traffic while their configuration changes.

Prints figures each minute. Ends with 1 when a request failed, a node panicked or ended, or when memory of its own
(RssAnon) or descriptors of a node are not flat: the median of the last third of the time is compared with that of the
first third after the warm-up.
"""

import http.client
import json
import multiprocessing
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

import traffic
import upstream

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "clients"))
from nodes import free_ports

# Seconds between two looks at the nodes, and between two rounds of one kind of traffic.
LOOK = 5
PAUSE = 0.05
# How much of the time is warm-up, and what counts as flat.
WARM_UP = 0.2
MEMORY = (1.10, 16 * 1024)
FILES = (1.10, 32)
SHOWN_FAILURES = 20
LOG_SHOWN = 3000


class Node:
    def __init__(self, program, folder, name, role, cluster=None, workers=2):
        self.name, self.role = name, role
        admin, plain, tls, self.status = free_ports(4)
        self.admin = None if role == "data_plane" else admin
        settings = {"role": role, "prefix": folder / name, "nginx_worker_processes": workers,
                    "status_listen": f"127.0.0.1:{self.status}"}
        if self.admin:
            settings["admin_listen"] = f"127.0.0.1:{admin}"
        if role != "control_plane":
            settings["proxy_listen"] = f"127.0.0.1:{plain} http2, 127.0.0.1:{tls} ssl http2"
            self.gateway = {"plain": plain, "tls": tls}
        if cluster:
            settings |= {"cluster_cert": folder / "cluster.crt", "cluster_cert_key": folder / "cluster.key",
                         "cluster_control_plane": f"127.0.0.1:{cluster}"}
            if role == "control_plane":
                settings["cluster_listen"] = f"127.0.0.1:{cluster}"
        environment = {f"KONG_{key.upper()}": str(value) for key, value in settings.items()}
        self.log = folder / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, "start"], env={"PATH": os.environ["PATH"]} | environment,
                                            stdout=log, stderr=log)
        until("the node to answer", lambda: self.ask("/status") is not None)
        self.samples = []

    def ask(self, path):
        expect_running(self)
        try:
            client = http.client.HTTPConnection("127.0.0.1", self.status, timeout=30)
            client.request("GET", path)
            return client.getresponse().read().decode()
        except OSError:
            return None

    def look(self):
        """Kilobytes of its own and in all, descriptors, connections of clients, requests in flight."""
        process = pathlib.Path(f"/proc/{self.process.pid}")
        fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
        own, all_ = (int(fields[name].split()[0]) for name in ("RssAnon", "VmRSS"))
        server = json.loads(self.ask("/status") or "{}").get("server", {})
        threads = int(fields["Threads"])
        files = len(os.listdir(process / "fd"))
        self.samples.append((own, all_, files, threads, server.get("connections_active", 0)))
        return self.samples[-1]

    def faults(self):
        """What is not flat, in words."""
        samples = self.samples[int(len(self.samples) * WARM_UP):]
        third = max(len(samples) // 3, 1)
        for place, words, (factor, more) in [(0, "memory (RssAnon, KiB)", MEMORY), (2, "descriptors", FILES)]:
            first, last = (statistics.median(sample[place] for sample in part)
                           for part in (samples[:third], samples[-third:]))
            if last > first * factor + more:
                yield f"{self.name}: {words} grew from {first:.0f} to {last:.0f}"
        if "panicked" in self.log.read_text(errors="replace"):
            yield f"{self.name}: a panic, see its log"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(120)
            return [] if code == 0 else [f"{self.name}: ended with {code}"]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return [f"{self.name}: did not stop"]


def expect_running(node):
    if node.process.poll() is not None:
        sys.exit(f"error: {node.name} ended with {node.process.returncode}\n{node.log.read_text()[-2000:]}")


def until(what, condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"error: waited 60 s for {what}")
        time.sleep(0.1)


def admin(port, method, path, body=None):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    text = None if body is None else json.dumps(body)
    client.request(method, path, text, {"content-type": "application/json"} if text else {})
    answer = client.getresponse()
    data = answer.read()
    traffic.expect(answer.status in (200, 201, 204), f"{method} {path}: {answer.status} {data[:200]!r}")


def configure(port, upstream_port):
    """What the traffic is sent to; it is never taken away."""
    admin(port, "PUT", "/services/soak", {"host": "127.0.0.1", "port": upstream_port})
    for name in ("plain", "keys", "limited"):
        admin(port, "PUT", f"/services/soak/routes/{name}", {"paths": [f"/{name}"]})
    admin(port, "POST", "/routes/keys/plugins", {"name": "key-auth"})
    admin(port, "POST", "/routes/limited/plugins", {"name": "rate-limiting",
                                                    "config": {"second": 5, "policy": "local"}})
    admin(port, "PUT", "/consumers/soak", {})
    admin(port, "POST", "/consumers/soak/key-auth", {"key": "soak"})


def change(port, upstream_port, number):
    """One round of changes: everything that is made is taken away again."""
    name = f"churn-{number}"
    admin(port, "PUT", f"/services/{name}", {"host": "127.0.0.1", "port": upstream_port})
    admin(port, "PUT", f"/services/{name}/routes/{name}", {"paths": [f"/{name}"], "hosts": [f"{name}.test"]})
    admin(port, "PUT", f"/consumers/{name}", {})
    admin(port, "POST", f"/consumers/{name}/key-auth", {"key": name})
    admin(port, "POST", f"/routes/{name}/plugins", {"name": "correlation-id"})
    admin(port, "PATCH", "/services/soak", {"retries": number % 5})
    admin(port, "PUT", f"/upstreams/{name}", {"slots": 100})
    admin(port, "POST", f"/upstreams/{name}/targets", {"target": f"127.0.0.1:{upstream_port}"})
    for path in (f"/upstreams/{name}", f"/routes/{name}", f"/services/{name}", f"/consumers/{name}"):
        admin(port, "DELETE", path)


class Counts:
    """Shared by all processes."""

    def __init__(self, stop):
        self.requests, self.failures, self.changes = (multiprocessing.Value("Q", 0) for _ in range(3))
        self.stop, self.words = stop, multiprocessing.Queue()

    def count(self, which):
        with which.get_lock():
            which.value += 1

    def drive(self, name, work, counted):
        """Works until it is told to stop, whatever goes wrong."""
        while not self.stop.is_set():
            try:
                work(lambda: self.count(counted))
            except Exception as error:  # Whatever it is, it is a failure of the soak.
                self.count(self.failures)
                where = "" if isinstance(error, (traffic.Wrong, OSError)) else traceback.format_exc()
                self.words.put(f"{time.strftime('%H:%M:%S')} {name}: {error!r} {where}")
            time.sleep(PAUSE)


def processes(counts, nodes, upstream_port):
    def spawn(name, work, counted):
        process = multiprocessing.Process(target=counts.drive, args=(name, work, counted), daemon=True)
        process.start()
        return process

    for node in nodes:
        if node.role != "control_plane":
            for kind in traffic.KINDS:
                work = lambda count, kind=kind, gateway=node.gateway: kind(gateway, count)
                yield spawn(f"{node.name} {kind.__name__}", work, counts.requests)
        if node.admin:
            numbers = iter(range(1 << 60))

            def work(count, port=node.admin, numbers=numbers):
                change(port, upstream_port, next(numbers))
                count()

            yield spawn(f"{node.name} changes", work, counts.changes)


def report(counts, nodes, began, before):
    requests, failures, changes = (value.value for value in (counts.requests, counts.failures, counts.changes))
    print(f"{(time.monotonic() - began) / 60:5.1f} min  {requests - before:8} requests  {failures:5} failures  "
          f"{changes:6} rounds of changes", flush=True)
    for node in nodes:
        own, all_, files, threads, connections = node.samples[-1]
        print(f"           {node.name:14} own {own / 1024:7.1f} MiB  rss {all_ / 1024:7.1f} MiB  {files:5} files  "
              f"{threads:3} threads  {connections:5} connections", flush=True)
    return requests


def soak(program, minutes, folder):
    subprocess.run([program, "certs", "init", "--dir", folder], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    receive, send = multiprocessing.Pipe()
    multiprocessing.Process(target=upstream.run, args=(send,), daemon=True).start()
    upstream_port = receive.recv()
    [cluster] = free_ports(1)
    nodes, counts = [], Counts(multiprocessing.Event())
    try:
        nodes.append(Node(program, folder, "node", "traditional"))
        nodes.append(Node(program, folder, "control-plane", "control_plane", cluster))
        nodes.append(Node(program, folder, "data-plane", "data_plane", cluster))
        for node in nodes:
            if node.admin:
                configure(node.admin, upstream_port)
        for node in (node for node in nodes if node.role != "control_plane"):
            client = traffic.plain(node.gateway)
            until("the routes to be there", lambda: ready(client))
        running = list(processes(counts, nodes, upstream_port))
        began, shown, before = time.monotonic(), 1, 0
        while time.monotonic() < began + minutes * 60:
            time.sleep(LOOK)
            for node in nodes:
                expect_running(node)
                node.look()
            if time.monotonic() - began >= min(shown, minutes) * 60:
                before = report(counts, nodes, began, before)
                shown += 1
        counts.stop.set()
        for process in running:
            process.join(2 * traffic.TIME_OUT)
        return verdict(counts, nodes)
    finally:
        for node in nodes:
            node.process.kill()


def ready(client):
    client.request("GET", "/keys/bytes/1", headers={"apikey": "soak"})
    answer = client.getresponse()
    answer.read()
    return answer.status == 200


def verdict(counts, nodes):
    faults = [fault for node in nodes for fault in [*node.faults(), *node.stop()]]
    words = []
    while not counts.words.empty():
        words.append(counts.words.get())
    for word in words[:SHOWN_FAILURES]:
        print(f"failed: {word}")
    if counts.failures.value:
        faults.append(f"{counts.failures.value} requests or changes failed")
    if not counts.requests.value:
        faults.append("no request was answered")
    for fault in faults:
        print(f"error: {fault}")
    for node in nodes if faults else []:
        print(f"--- end of the log of {node.name}\n{node.log.read_text(errors='replace')[-LOG_SHOWN:]}")
    print("not flat or not clean" if faults else f"clean: {counts.requests.value} requests, "
          f"{counts.changes.value} rounds of changes, memory and descriptors flat")
    return 1 if faults else 0


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    with tempfile.TemporaryDirectory(prefix="gwctl-soak-") as place:
        sys.exit(soak(sys.argv[1], float(sys.argv[2]), pathlib.Path(place)))
