"""What the runs came to, as a document for people, and what of it may not be."""

import collections
import dataclasses
import datetime
import re
import textwrap

WIDTH = 120
OUTCOMES = ("passed", "failed", "skipped", "missing")


@dataclasses.dataclass
class Run:
    """One server's part of the comparison."""

    name: str
    version: str
    # Test -> {"outcome", "seconds", "why", "tries", "asks_server"}.
    tests: dict
    # (session, command, what was printed) for each step.
    transcript: list


def missing():
    return {"outcome": "missing", "why": "no result: the run was cut short", "tries": 1}


def test_differences(real, ours):
    """The tests that did not come to the same: (test, on the one, on the other)."""
    names = dict.fromkeys([*real.tests, *ours.tests])
    pairs = [(name, real.tests.get(name, missing()), ours.tests.get(name, missing())) for name in names]
    return [(name, a, b) for name, a, b in pairs if a["outcome"] != b["outcome"]]


def transcript_differences(real, ours):
    """The steps that were not answered alike: (session, command, on the one, on the other)."""
    pairs = zip(real.transcript, ours.transcript, strict=True)
    return [(session, command, a, b) for (session, command, a), (_, _, b) in pairs if a != b]


def reason_for_test(name, expectations, server):
    return reason(expectations.get("difference", []), server, lambda entry: covers(entry["test"], name))


def reason_for_command(command, expectations, server):
    return reason(expectations.get("zkcli_difference", []), server, lambda entry: entry["command"] == command)


def reason(entries, server, fits):
    """The reason on record, or none. An entry may be about one server only."""
    found = [entry["reason"] for entry in entries if fits(entry) and entry.get("server", server) == server]
    return found[0] if found else None


def covers(pattern, name):
    return name == pattern or name.startswith(pattern + "::")


def regressions(real, ours, expectations):
    """What a person has to look at: worse than the real server, or other than it, and for no reason on record."""
    found = []
    for name, a, b in test_differences(real, ours):
        if a["outcome"] == "passed" and not reason_for_test(name, expectations, ours.name):
            found.append(f"{name}: {real.name} {a['outcome']}, {ours.name} {b['outcome']}: {last_line(b['why'])}")
    for session, command, a, b in transcript_differences(real, ours):
        if not reason_for_command(command, expectations, ours.name):
            found.append(f"zkCli ({session}) `{command}`:\n  {real.name}: {a}\n  {ours.name}: {b}")
    return found


def failures(run):
    """For a run that is compared with nothing."""
    return [f"{run.name}: {name}: {last_line(test['why'])}" for name, test in run.tests.items() if is_bad(test)]


def is_bad(test):
    return test["outcome"] not in ("passed", "skipped")


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return (errors[0] if errors else lines[-1] if lines else "").replace("|", "\\|")


def document(runs, expectations, versions, command):
    """The whole of `docs/keeper-compatibility.md`."""
    real, *others = runs
    parts = [
        "# Is the keeper a ZooKeeper?",
        paragraph(
            "What clients who do not know the keeper make of it: the test suite of kazoo, the Python client, and a "
            "session of `zkCli.sh`, ZooKeeper's own shell, on a real ZooKeeper and on the keeper, on one machine. "
            f"This file is written by `{command}`; edit `crates/keeper/compat/` instead."
        ),
        paragraph(
            "Both servers stand alone, keep their data on disk, are stopped and started as the tests demand, and begin "
            "empty for every class of tests. Reasons are kept in `crates/keeper/compat/expectations.toml`; the "
            "command fails when the keeper does worse than ZooKeeper, or answers zkCli otherwise, for no reason there."
        ),
        table(["what", "version, as it says"], [*versions, ("date", datetime.datetime.now(datetime.UTC).date().isoformat())]),
        "## kazoo's suite",
        module_table(runs),
        "Left out, as one plain server cannot be asked:",
        table(["test", "reason"], [(f"`{e['test']}`", e["reason"]) for e in expectations["left_out"]]),
        *notes(runs),
    ]
    for ours in others:
        rows = [
            (f"`{name}`", a["outcome"], b["outcome"], reason_for_test(name, expectations, ours.name) or unexplained(b))
            for name, a, b in test_differences(real, ours)
        ]
        parts.append(f"### {real.name} and {ours.name}")
        parts.append(table(["test", real.name, ours.name, "reason"], rows) if rows else "No test differs.")
    parts += ["## zkCli", *zkcli(runs, expectations)]
    return "\n\n".join(parts) + "\n"


def notes(runs):
    """What a table of outcomes would hide."""
    again = [(f"`{name}`", run.name) for run in runs for name, test in run.tests.items() if test["tries"] > 1]
    asking = sum(test["asks_server"] for test in runs[0].tests.values())
    tls = paragraph(
        f"Of the {len(runs[0].tests)} tests, {asking} talk to a server; the others are about kazoo alone. "
        "`TestSSLClient` runs against the servers' own TLS. A keeper's port speaks either plain or TLS, so there the "
        "harness asks a keeper that speaks TLS, and looks after it through a plain front; and its certificates are made "
        "anew as X.509's version 3, as the keeper's TLS takes no version 1."
    )
    if not again:
        return [tls, "Every result is a test's first; none had to be tried again."]
    told = "Failed at first, and ran a second time while nothing else did; the table has the second result:"
    return [tls, told, table(["test", "on"], again)]


def module_table(runs):
    modules = sorted({name.split("::")[0] for run in runs for name in run.tests})
    header = ["passed / failed / skipped", *(run.name for run in runs)]
    rows = [(f"`{module}`", *(counts(run, module) for run in runs)) for module in modules]
    return table(header, [*rows, ("**all**", *(f"**{counts(run)}**" for run in runs))])


def counts(run, module=None):
    seen = collections.Counter(
        test["outcome"] for name, test in run.tests.items() if module in (None, name.split("::")[0])
    )
    shown = " / ".join(str(seen[outcome]) for outcome in OUTCOMES[:3])
    return shown + (f" ({seen['missing']} missing)" if seen["missing"] else "")


def unexplained(test):
    return f"not explained: {last_line(test['why'])}"[:WIDTH]


def zkcli(runs, expectations):
    real, *others = runs
    steps = len(real.transcript)
    sessions = len({session for session, _, _ in real.transcript})
    yield paragraph(
        f"{steps} commands in {sessions} sessions and over one restart (`crates/keeper/compat/zkcli.txt`): what zkCli "
        "prints, errors, stats, transaction numbers and watch events included, without times, session ids and ports."
    )
    for ours in others:
        differing = transcript_differences(real, ours)
        if not differing:
            yield f"{ours.name}: all {steps} answers are those of {real.name}."
            continue
        yield f"{ours.name}: {steps - len(differing)} of {steps} answers are those of {real.name}. The others:"
        for command in dict.fromkeys(command for _, command, _, _ in differing):
            alike = [(a, b) for _, other, a, b in differing if other == command]
            why = reason_for_command(command, expectations, ours.name) or "not explained"
            yield paragraph(f"`{command}` ({len(alike)} times): {why}")
            lines = [line for a, b in alike for line in difference_lines(a, b)]
            yield "```diff\n" + "\n".join(dict.fromkeys(lines)) + "\n```"


def difference_lines(a, b):
    """Only the lines that one of the two has and the other has not."""
    lines = [f"- {line}" for line in a if line not in b] + [f"+ {line}" for line in b if line not in a]
    return [line[:WIDTH] for line in lines] or ["(the same lines in another order, or another number of times)"]


def table(header, rows):
    lines = ["| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *rows]]
    return "\n".join(lines)


def paragraph(text):
    """Wrapped, but not within code."""
    kept = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    return textwrap.fill(kept, WIDTH, break_long_words=False, break_on_hyphens=False).replace("\0", " ")
