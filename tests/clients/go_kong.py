"""go-kong, the Go library under decK and the Terraform providers: its own integration tests against a node."""
import json, os, subprocess
from pathlib import Path

from building import STEP_SECONDS, WORK, build, call, module
from nodes import EXPRESSIONS, with_node

GO_KONG = ("github.com/kong/go-kong", "v0.77.0")
# What is changed in go-kong's tests: file, text there, text instead, how often it is there.
GO_KONG_CHANGES = [
    # LMDB is a database as good as the one they know by name.
    ("test_utils.go", "if dbMode != dbmode {", 'if dbMode != dbmode && !(dbMode == "lmdb" && dbmode == "postgres") {', 1),
    # Left out for old versions of Kong, or without a word; they hold for 3.9.
    ("key_service_test.go", 'T.Skip("Key without set fails until Kong/kong@302f2f7")', 'RunWhenDBMode(T, "postgres")', 3),
    ("custom_entity_service_test.go", 'T.Skip()', 'RunWhenDBMode(T, "postgres")', 1),
]


def build_go_kong():
    folder = module(*GO_KONG)
    program = WORK / f"go-kong-{GO_KONG[1]}.test"
    done = folder / "changes-made"
    if not done.exists():
        for name, there, instead, times in GO_KONG_CHANGES:
            file = folder / "kong" / name
            text = file.read_text()
            if text.count(there) != times:
                raise SystemExit(f"error: go-kong {GO_KONG[1]}: {there!r} is not in {name} {times} times; look at GO_KONG_CHANGES")
            file.write_text(text.replace(there, instead))
        done.touch()
        program.unlink(missing_ok=True)
    return build(program, folder, ["go", "test", "-c", "-o", program, "./kong"])


def go_kong(program, node, tests):
    """Adds what each of go-kong's tests came to at this node: test -> {(outcome, text)}."""
    done = call([program, "-test.v=test2json", "-test.count=1", "-test.timeout", f"{STEP_SECONDS}s"], STEP_SECONDS + 10,
                cwd=module(*GO_KONG) / "kong", env={"PATH": os.environ["PATH"], "KONG_ADMIN_URL": node.url})
    events = subprocess.run(["go", "tool", "test2json"], input=done.stdout, text=True, stdout=subprocess.PIPE,
                            timeout=STEP_SECONDS, check=True)
    said, began = {}, set()
    for event in map(json.loads, events.stdout.splitlines()):
        test, action = event.get("Test"), event["Action"]
        if test is None:
            continue
        began.add(test)
        if action == "output":
            said[test] = said.get(test, "") + event["Output"]
        elif action in ("pass", "fail", "skip"):
            began.discard(test)
            tests.setdefault(test, []).append((action, said.get(test, "")))
    for test in began:
        tests.setdefault(test, []).append(("fail", said.get(test, "") + "did not end"))
    if not tests:
        raise SystemExit(f"error: go-kong's tests did not run:\n{done.stdout[-3000:]}")


def run_go_kong(gwctl, program, results):
    """A test passes when it passed at some node and failed at none."""
    tests = {}
    for settings in ({}, EXPRESSIONS, {"database": "off"}):
        with_node(gwctl, settings, f"go-kong node {settings}", results, lambda node: go_kong(program, node, tests))
    for test, runs in tests.items():
        failed = [text for action, text in runs if action == "fail"]
        skipped = "\n".join(text for action, text in runs if action == "skip")
        passed = any(action == "pass" for action, _ in runs)
        results[f"go-kong {test}"] = f"fail\n{failed[0]}" if failed else "pass" if passed else f"skip\n{skipped}"
