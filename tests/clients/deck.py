"""decK: round trips over tests/deck, changes, select tags, pages, mistakes."""
import os, re, tempfile
from pathlib import Path

from building import HERE, ROOT, WORK, Unavailable, build, call, module
from go_tests import run_tests, settle
from nodes import EXPRESSIONS, with_node

DECK = ("github.com/kong/deck", "v1.64.0")
HASHED = re.compile(r"""password"?: "?[0-9a-f]{40}\b""")


def build_deck():
    """decK without its linter, whose dependencies the module proxy does not always serve; nothing here lints."""
    folder = module(*DECK)
    edit = ["go", "mod", "edit", f"-replace=github.com/daveshanley/vacuum={HERE / 'no-linter'}",
            "-droprequire=github.com/pb33f/doctor"]
    if (edited := call(edit, cwd=folder)).returncode != 0:
        raise Unavailable(f"decK's go.mod cannot be edited: {edited.stdout}")
    program = WORK / f"deck-{DECK[1]}.program"
    return build(program, folder, ["go", "build", "-mod=mod", "-o", program, "."])


def certificates():
    """What the files ask of the environment: DECK_CERTIFICATE and so on, made anew."""
    with tempfile.TemporaryDirectory() as folder:
        def openssl(*arguments):
            done = call(["openssl", *arguments], cwd=folder)
            if done.returncode != 0:
                raise SystemExit(f"error: openssl {arguments[0]} failed:\n{done.stdout}")
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-keyout", "ca.key", "-out", "ca.pem",
                "-subj", "/CN=authority", "-addext", "basicConstraints=critical,CA:TRUE")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                "-keyout", "leaf.key", "-out", "leaf.pem", "-subj", "/CN=one.example")
        openssl("rsa", "-in", "ca.key", "-pubout", "-out", "public.pem")
        names = {"CERTIFICATE": "leaf.pem", "CERTIFICATE_KEY": "leaf.key", "AUTHORITY": "ca.pem",
                 "PUBLIC_KEY": "public.pem", "PRIVATE_KEY": "ca.key"}
        return {f"DECK_{name}": Path(folder, file).read_text().strip() for name, file in names.items()}


def build_deck_tests():
    """decK's own integration tests; build_deck comes first."""
    program = WORK / f"deck-{DECK[1]}.test"
    return build(program, module(*DECK), ["go", "test", "-mod=mod", "-tags=integration", "-c", "-o", program, "./tests/integration"])


def run_deck_tests(gwctl, program, results):
    """Those of its tests that ask a gateway; linting and converting files do not, and want the linter."""
    tests, folder = {}, module(*DECK) / "tests" / "integration"
    with tempfile.TemporaryDirectory() as home:
        with_node(gwctl, {}, "decK's tests node {}", results, lambda node: run_tests(
            program, folder, {"KONG_ADMIN_URL": node.url, "DECK_KONG_ADDR": node.url, "DECK_ANALYTICS": "off", "HOME": home},
            tests, "-test.skip=^(Test_Lint|Test_FileConvert)"))
    settle("decK's tests", tests, results)


class Deck:
    """decK's gateway commands against one node, each a result by its title."""

    def __init__(self, program, node, variables, results, name):
        self.program, self.results, self.name = program, results, name
        self.variables = {**variables, "PATH": os.environ["PATH"], "DECK_ANALYTICS": "off", "DECK_KONG_ADDR": node.url}

    def step(self, title, wanted, *arguments):
        with tempfile.TemporaryDirectory() as home:
            done = call([self.program, "gateway", *arguments], env={**self.variables, "HOME": home})
        good = done.returncode == wanted
        said = f"fail: ended with {done.returncode}\n{done.stdout[-3000:]}"
        self.results[f"deck {self.name}: {title}"] = "pass" if good else said
        return good

    def same(self, title, path):
        self.step(f"{title} shows no difference", 0, "diff", "--non-zero-exit-code", path)
        return True  # a difference is a failure, but no reason to stop


def from_one_to_the_other(deck, one, other):
    """A sync reaches the other file's state whatever there was, and the way back too."""
    for title, file in ("first", one), ("changes", other), ("way back", one):
        if not deck.step(f"sync of the {title}", 0, "sync", file):
            return
        deck.same(f"diff after the {title}", file)


TEAM = """_format_version: "3.0"
_info: {{select_tags: [team-{0}]}}
services:
- {{name: of-{0}, url: "http://{0}.example", routes: [{{name: route-of-{0}, paths: [/{0}], plugins: [{{name: cors}}]}}]}}
upstreams:
- {{name: pool-of-{0}, targets: [{{target: "10.0.0.1:80"}}]}}
consumers:
- {{username: user-of-{0}, acls: [{{group: all}}], jwt_secrets: [{{key: jwt-of-{0}, algorithm: HS256, secret: "{0}"}}]}}
"""


def two_teams(deck, folder):
    """Files with their own tags leave each other alone."""
    files = {team: Path(folder, f"{team}.yaml") for team in "ab"}
    for team, file in files.items():
        file.write_text(TEAM.format(team))
        deck.step(f"sync of team {team}", 0, "sync", file)
    for team, file in files.items():
        deck.same(f"diff of team {team}", file)
    deck.step("reset of team a", 0, "reset", "--force", "--select-tag", "team-a")
    deck.same("diff of team b after the reset of team a", files["b"])
    deck.step("diff of team a after its reset", 2, "diff", "--non-zero-exit-code", files["a"])
    deck.step("apply of team a beside team b", 0, "apply", files["a"])
    deck.same("diff of team a after apply", files["a"])
    deck.same("diff of team b after apply", files["b"])


def more_than_a_page(deck, folder):
    """decK reads lists in pages of 1000."""
    file, count = Path(folder, "pages.yaml"), 1050
    file.write_text('_format_version: "3.0"\nconsumers:\n' + "".join(
        f"- {{username: user-{number}, keyauth_credentials: [{{key: key-{number}}}]}}\n" for number in range(count)))
    deck.step("sync", 0, "sync", file)
    deck.same("diff after sync", file)
    dumped = Path(folder, "dump.yaml")
    deck.step("dump", 0, "dump", "--yes", "-o", dumped)
    found = dumped.read_text().count("username: user-")
    deck.results[f"deck {deck.name}: dump has all"] = "pass" if found == count else f"fail: {found} of {count}"
    deck.same("dump", dumped)
    deck.step("reset", 0, "reset", "--force")


def mistakes(deck, folder):
    """What is wrong is said before and while it is written."""
    file = Path(folder, "mistakes.yaml")
    for title, text in {
        "port": "services:\n- {name: one, host: one.example, port: 99999}\n",
        "plugin": "plugins:\n- {name: no-such-plugin}\n",
        "setting": "plugins:\n- {name: cors, config: {no_such_setting: 1}}\n",
        "consumer group": "consumer_groups:\n- {name: one}\n",
    }.items():
        file.write_text(f'_format_version: "3.0"\n{text}')
        if title != "consumer group":  # decK asks nobody about these before it writes them
            deck.step(f"validate refuses a wrong {title}", 1, "validate", file)
        deck.step(f"sync refuses a wrong {title}", 1, "sync", file)
    file.write_text('_format_version: "3.0"\n')
    deck.same("nothing of it is there: diff", file)


def round_trip(deck, file):
    """Everything decK's gateway commands do with one file; stops where the next step makes no sense."""
    name, step, same = deck.name, deck.step, deck.same
    selected = ["--select-tag", "by-defaults"] if name == "defaults" else []
    with tempfile.TemporaryDirectory() as folder:
        def steps():
            yield step("ping", 0, "ping")
            yield step("reset", 0, "reset", "--force")
            yield step("validate", 0, "validate", file)
            yield step("diff on an empty node shows the file", 2, "diff", "--non-zero-exit-code", file)
            yield step("sync", 0, "sync", file)
            yield same("diff after sync", file)
            for form in ("yaml", "json"):
                for ids in ([], ["--with-id"]):
                    title, dumped = " ".join([form, *ids]), Path(folder, f"dump{len(ids)}.{form}")
                    yield step(f"dump as {title}", 0, "dump", "--yes", "--format", form, *ids, *selected, "-o", dumped)
                    yield same(f"dump as {title}", dumped)
                    yield step(f"validate dump as {title}", 0, "validate", dumped)
                    yield step(f"reset before {title}", 0, "reset", "--force", *selected)
                    yield step(f"sync of dump as {title}", 0, "sync", dumped)
                    yield same(f"dump as {title} after its sync", dumped)
                    again = Path(folder, f"again{len(ids)}.{form}")
                    yield step(f"second dump as {title}", 0, "dump", "--yes", "--format", form, *ids, *selected, "-o", again)
                    # A password is hashed once more on its way back in, as with Kong; decK warns of it.
                    equal = HASHED.sub("", dumped.read_text()) == HASHED.sub("", again.read_text())
                    deck.results[f"deck {name}: second dump as {title} equals the first"] = "pass" if equal else "fail"
                    # Ids that the file names are lost in a dump without ids, so the file itself is entered again.
                    yield step(f"sync after {title}", 0, "sync", file) if ids else step("reset", 0, "reset", "--force")
                    if ids:
                        yield same(f"diff after {title}", file)
                    else:
                        yield step(f"sync after {title}", 0, "sync", file)
            yield step("reset at the end", 0, "reset", "--force")

        for good in steps():
            if not good:
                return


def run_deck(gwctl, program, results):
    files = {file.stem: file for file in sorted((ROOT / "tests/deck").glob("*.yaml"))}
    variables = certificates()

    def work(node):
        def deck(name):
            return Deck(program, node, variables, results, name)
        for name, file in files.items():
            if name != "expressions":
                round_trip(deck(name), file)
        from_one_to_the_other(deck("changes"), files["everything"], files["changed"])
        from_one_to_the_other(deck("other file"), files["plugins"], files["keys"])
        with tempfile.TemporaryDirectory() as folder:
            deck("two teams").step("reset", 0, "reset", "--force")
            two_teams(deck("two teams"), folder)
            deck("mistakes").step("reset", 0, "reset", "--force")
            mistakes(deck("mistakes"), folder)
            more_than_a_page(deck("pages"), folder)
    with_node(gwctl, {}, "deck node {}", results, work)
    with_node(gwctl, EXPRESSIONS, f"deck node {EXPRESSIONS}", results, lambda node: round_trip(
        Deck(program, node, variables, results, "expressions"), files["expressions"]))
