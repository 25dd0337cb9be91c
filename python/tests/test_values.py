"""Durations, instants and ids as text."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone

import pytest

from bellwether import InvalidInput
from bellwether.values import Duration, duration_text, instant_of, instant_text, new_id, seconds_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (30, "30s"),
        (0, "0s"),
        (1.5, "1500ms"),
        (0.0001, "1ms"),
        (0.1 + 0.2, "300ms"),
        (timedelta(hours=1), "3600s"),
        ("5m", "5m"),
    ],
)
def test_a_duration_is_a_text_of_the_api(value: Duration, text: str) -> None:
    assert duration_text(value) == text


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "", "5", "5 m", "-1s", "1w", "9" * 19 + "s", "1s\n"])
def test_an_invalid_duration_is_refused(value: Duration) -> None:
    with pytest.raises(InvalidInput):
        duration_text(value)


def test_a_text_is_read_in_seconds() -> None:
    assert [seconds_of(text) for text in ("500ms", "30s", "5m", "1h", "1d")] == [0.5, 30, 300, 3600, 86400]


def test_an_instant_has_a_zone_and_any_number_of_digits() -> None:
    noon = datetime(2026, 11, 21, 12, 0, 0, tzinfo=timezone.utc)
    assert instant_text(noon) == "2026-11-21T12:00:00.000Z"
    assert instant_of("2026-11-21T12:00:00Z") == noon
    assert instant_of("2026-11-21T13:00:00+01:00") == noon
    assert instant_of("2026-11-21T12:00:00.1234567Z").microsecond == 123456
    with pytest.raises(InvalidInput, match="time zone"):
        instant_text(datetime(2026, 11, 21, 12, 0, 0))


def test_ids_are_unique_and_ordered_uuids_of_version_7() -> None:
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert {uuid.UUID(id_).version for id_ in ids} == {7}
    assert [id_[:13] for id_ in ids] == sorted(id_[:13] for id_ in ids)
