"""Nodes of the gateway as processes."""
import contextlib, itertools, os, socket, subprocess, tempfile, time, urllib.request
from pathlib import Path

EXPRESSIONS = {"router_flavor": "expressions"}
GIVEN = itertools.count()


def free_ports(count):
    """Ports that connections do not take for their own end on a system with its usual settings: until somebody listens
    there, nobody comes to one by chance. None is given twice."""
    ports = []
    while len(ports) < count:
        port = 10_000 + (os.getpid() * 211 + next(GIVEN)) % 22_000
        with contextlib.suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            ports.append(port)
    return ports


class NoNode(Exception):
    """A node does not start."""


class Node:
    """A `gwctl start` on free ports of loopback with a fresh prefix."""

    def __init__(self, gwctl, **settings):
        self.folder = tempfile.TemporaryDirectory(prefix="gwctl-clients-")
        admin, proxy = free_ports(2)
        self.url = f"http://127.0.0.1:{admin}"
        variables = {"prefix": self.folder.name, "admin_listen": f"127.0.0.1:{admin}",
                     "proxy_listen": f"127.0.0.1:{proxy}", "status_listen": "off", **settings}
        self.log = Path(self.folder.name, "node.log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen([gwctl, "start"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={
                "PATH": os.environ["PATH"], **{f"KONG_{key.upper()}": value for key, value in variables.items()}})

    def __enter__(self):
        give_up = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(self.url + "/status", timeout=5).close()
                return self
            except OSError as refused:
                if self.process.poll() is not None or time.monotonic() > give_up:
                    self.__exit__()
                    raise NoNode(f"the node does not answer: {refused}\n{self.shown}") from refused
                time.sleep(0.05)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.shown = self.log.read_text(errors="replace")[-4000:]
        self.folder.cleanup()


def with_node(gwctl, settings, title, results, work):
    """Runs work with a node of these settings; a node that does not start is a result too."""
    try:
        with Node(gwctl, **settings) as node:
            work(node)
            results[title] = "pass"
    except NoNode as fault:
        results[title] = f"fail\n{fault}"
