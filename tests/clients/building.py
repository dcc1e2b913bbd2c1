"""Building Go programs from the module proxy, and calling programs in bounded time."""
import json, os, shutil, subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "target" / "clients"
BUILD_SECONDS, STEP_SECONDS = 900, 120


class Unavailable(Exception):
    """A client cannot be had here: no fault of the gateway."""


def call(command, seconds=STEP_SECONDS, **options):
    """The finished process, with its output and errors as one text; 124 is a time-out."""
    try:
        return subprocess.run([str(part) for part in command], timeout=seconds, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    except subprocess.TimeoutExpired as late:
        shown = late.stdout.decode(errors="replace") if late.stdout else ""
        return subprocess.CompletedProcess(command, 124, f"{shown}\nnot done within {seconds} s", "")


def module(path, version):
    """A writable copy of a module's source."""
    copy = WORK / f"{path.rsplit('/', 1)[1]}-{version}"
    if not copy.exists():
        got = call(["go", "mod", "download", "-json", f"{path}@{version}"], cwd=WORK)
        if got.returncode != 0:
            raise Unavailable(f"the Go module proxy does not give {path} {version}:\n{got.stdout.strip()}")
        partial = copy.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(json.loads(got.stdout)["Dir"], partial, copy_function=shutil.copy)
        for folder, _, files in os.walk(partial):
            os.chmod(folder, 0o755)
            for name in files:
                os.chmod(Path(folder, name), 0o644)
        partial.rename(copy)
    return copy


def build(program, folder, command):
    if not program.exists():
        print(f"building {program.name} (minutes when Go's cache is cold)", flush=True)
        built = call(command, BUILD_SECONDS, cwd=folder)
        if built.returncode != 0 or not program.exists():
            raise Unavailable(f"{program.name} does not build:\n" + "\n".join(built.stdout.splitlines()[-8:]))
    return program
