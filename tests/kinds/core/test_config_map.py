from typing import Any

import pytest

from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.core.config_map import MAX_DATA_SIZE, ConfigMapStrategy, decoded_length
from tests.kinds.write import create, update

STRATEGY = ConfigMapStrategy()
METADATA = {"name": "c", "namespace": "ns"}
FROZEN = "field is immutable when `immutable` is set"


@pytest.mark.parametrize(
    ("fields", "messages"),
    [  # validation-a-067, -068, -070 of the corpus
        ({"data": {"a": "1"}, "binaryData": {"b": "MQ=="}}, []),
        ({"data": None}, []),
        (
            {"data": {"bad key!": "x"}},
            [f'data[bad key!]: Invalid value: "bad key!": {name_formats.config_map_key("bad key!")[0]}'],
        ),
        (
            {"data": {"a": "1"}, "binaryData": {"a": "MQ=="}},
            ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
        ),
        (
            {"data": {"k" * 254: ""}},
            [f'data[{"k" * 254}]: Invalid value: "{"k" * 254}": must be no more than 253 characters'],
        ),
        ({"binaryData": {"..": ""}}, ["binaryData[..]: Invalid value: \"..\": must not be '..'"]),
    ],
)
def test_valid_data_of_a_config_map(fields: dict[str, Any], messages: list[str]) -> None:
    assert create(STRATEGY, {"metadata": METADATA, **fields}).messages == messages


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"data": {"a": "x" * MAX_DATA_SIZE}}, True),
        ({"data": {"a": "x" * MAX_DATA_SIZE, "b": "x"}}, False),
        ({"data": {"a": "é" * (MAX_DATA_SIZE // 2 + 1)}}, False),
        ({"data": {"a": "x" * (MAX_DATA_SIZE - 1)}, "binaryData": {"b": "MQ=="}}, True),
        ({"data": {"a": "x" * (MAX_DATA_SIZE - 1)}, "binaryData": {"b": "MTI="}}, False),
    ],
)
def test_all_values_together_have_at_most_a_mebibyte(fields: dict[str, Any], fits: bool) -> None:
    messages = create(STRATEGY, {"metadata": METADATA, **fields}).messages
    assert messages == ([] if fits else ["[]: Too long: may not be more than 1048576 bytes"])


@pytest.mark.parametrize(("encoded", "length"), [("", 0), ("MQ==", 1), ("MTI=", 2), ("MTIz", 3), ("MTIzNA==", 4)])
def test_the_length_of_encoded_data_counts(encoded: str, length: int) -> None:
    assert decoded_length(encoded) == length


@pytest.mark.parametrize(
    ("change", "messages"),
    [  # patch-a-022 and -023 of the corpus
        ({"metadata": {**METADATA, "uid": "u", "resourceVersion": "5", "labels": {"a": "b"}}}, []),
        ({"data": {"x": "y", "later": "1"}}, [f"data: Forbidden: {FROZEN}"]),
        ({"binaryData": {"b": "MQ=="}}, [f"binaryData: Forbidden: {FROZEN}"]),
        ({"immutable": False}, [f"immutable: Forbidden: {FROZEN}"]),
        ({"immutable": None, "data": None}, [f"immutable: Forbidden: {FROZEN}", f"data: Forbidden: {FROZEN}"]),
    ],
)
def test_an_immutable_config_map_cannot_change(change: dict[str, Any], messages: list[str]) -> None:
    old = {"metadata": METADATA, "data": {"x": "y"}, "immutable": True}
    assert update(STRATEGY, old, change).messages == messages


def test_a_mutable_config_map_can_be_made_immutable() -> None:
    old = {"metadata": METADATA, "data": {"x": "y"}, "immutable": False}
    assert update(STRATEGY, old, {"data": {"x": "z"}, "immutable": True}).messages == []
