"""Tests of the comparison; `run.py` runs them first."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import report
import zkcli


def run_of(name, outcomes, transcript=()):
    tests = {test: {"outcome": outcome, "why": "E  boom", "tries": 1} for test, outcome in outcomes.items()}
    return report.Run(name, "1", list(transcript), tests, [])


class Regressions(unittest.TestCase):
    def test_a_test_that_fails_only_on_the_keeper_is_a_regression_unless_its_reason_is_recorded(self):
        real, ours = run_of("zookeeper", {"a.py::T::x": "passed"}), run_of("keeper", {"a.py::T::x": "failed"})
        self.assertEqual(1, len(report.regressions(real, ours, {})))
        for pattern, left in [("a.py::T", 0), ("a.py::T::x", 0), ("a.py::T::xy", 1), ("a.py::T2", 1)]:
            on_record = {"difference": [{"test": pattern, "reason": "meant"}]}
            self.assertEqual(left, len(report.regressions(real, ours, on_record)), pattern)

    def test_a_test_without_a_result_is_a_regression(self):
        real, ours = run_of("zookeeper", {"a.py::x": "passed"}), run_of("keeper", {})
        self.assertEqual(1, len(report.regressions(real, ours, {})))

    def test_a_test_that_fails_on_zookeeper_is_no_regression(self):
        real, ours = run_of("zookeeper", {"a.py::x": "failed"}), run_of("keeper", {"a.py::x": "passed"})
        self.assertEqual([], report.regressions(real, ours, {}))

    def test_a_different_output_of_zkcli_is_a_regression_unless_its_reason_is_recorded_for_this_server(self):
        real = run_of("zookeeper", {}, [("s", "ls /", ["[a]"])])
        ours = run_of("keeper", {}, [("s", "ls /", ["[b]"])])
        self.assertEqual(1, len(report.regressions(real, ours, {})))
        for server, left in [("keeper", 0), ("keeper --compat 3.8.0", 1)]:
            on_record = {"zkcli_difference": [{"command": "ls /", "server": server, "reason": "meant"}]}
            self.assertEqual(left, len(report.regressions(real, ours, on_record)), server)


class Transcript(unittest.TestCase):
    def test_only_values_that_differ_between_runs_are_masked(self):
        for line, masked in [
            ("ctime = Sat Nov 21 14:18:12 UTC 2026", "ctime = TIME"),
            ("ephemeralOwner = 0x1000dabe0001", "ephemeralOwner = SESSION"),
            ("ephemeralOwner = 0xff0000000036ee80", "ephemeralOwner = 0xff0000000036ee80"),
            ("ephemeralOwner = 0x0", "ephemeralOwner = 0x0"),
            ("cZxid = 0x2", "cZxid = 0x2"),
            ("[b, a]", "[a, b]"),
        ]:
            self.assertEqual(masked, zkcli.mask(line))

    def test_a_script_is_parsed_into_steps(self):
        script = "# why\n!session one\nls /\nset /a x\n!events 2\n\n!restart\n!session two\nls /\n"
        expected = [("one", "ls /", 0), ("one", "set /a x", 2), ("one", "!restart", 0), ("two", "ls /", 0)]
        self.assertEqual(expected, zkcli.commands(script))


class Document(unittest.TestCase):
    def test_text_is_wrapped_but_not_within_code_spans(self):
        text = report.paragraph("word " * 23 + "`cargo xtask compat`")
        self.assertIn("`cargo xtask compat`", text)
        self.assertLessEqual(max(map(len, text.splitlines())), report.WIDTH)


if __name__ == "__main__":
    unittest.main()
