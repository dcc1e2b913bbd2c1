"""Running a compiled Go test program and reading what became of each test."""
import json, os, subprocess

from building import STEP_SECONDS, call


def run_tests(program, folder, variables, tests, *arguments):
    """Adds what each test came to at this node: test -> [(outcome, text)]."""
    done = call([program, "-test.v=test2json", "-test.count=1", f"-test.timeout={STEP_SECONDS}s", *arguments],
                STEP_SECONDS + 10, cwd=folder, env={"PATH": os.environ["PATH"], **variables})
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
        raise SystemExit(f"error: no test of {program.name} ran:\n{done.stdout[-3000:]}")


def settle(suite, tests, results):
    """A test passes when it passed at some node and failed at none."""
    for test, runs in tests.items():
        failed = [text for action, text in runs if action == "fail"]
        skipped = "\n".join(text for action, text in runs if action == "skip")
        passed = any(action == "pass" for action, _ in runs)
        results[f"{suite} {test}"] = f"fail\n{failed[0]}" if failed else "pass" if passed else f"skip\n{skipped}"
