from __future__ import annotations

import pytest

from ctrlmgr.engine.request_options import APPLY_PATCH, JSON_PATCH, Body
from ctrlmgr.largebodies.jobs import LARGE, MANY, is_large
from ctrlmgr.schema.codec import JSON
from ctrlmgr.schema.protobuf.protobuf_decoding import MEDIA_TYPE as PROTOBUF


@pytest.mark.parametrize(
    ("media_type", "data", "large"),
    [
        (JSON, b'{"a":"' + b"x" * (LARGE - 8) + b'"}', False),
        (JSON, b'{"a":"' + b"x" * LARGE + b'"}', True),
        (JSON, b"[" + b"{}," * (MANY // 2 - 10) + b"1]", False),
        (JSON, b"[" + b"{}," * (MANY // 2 + 1) + b"1]", True),
        (PROTOBUF, b"k8s\x00" + b"\x0a\x00" * 9_000, True),
        (APPLY_PATCH, b"a: &x [1]\nb: *x\n", True),
        (APPLY_PATCH, b"a: b\n" * 2_000, True),
        (APPLY_PATCH, b'{"a":"' + b"x" * 9_000 + b'"}', False),
        (JSON_PATCH, b'[{"op":"copy","from":"/a","path":"/b"}]', True),
        (JSON_PATCH, rb'[{"op":"\u0063opy","from":"/a","path":"/b"}]', True),
        (JSON_PATCH, rb'[{"op":"add","path":"/a","value":"a \u003c b"}]', False),
    ],
)
def test_a_body_is_large_by_its_bytes_its_values_or_its_expansion(media_type: str, data: bytes, large: bool) -> None:
    assert is_large(Body(media_type, data), 1) is large


def test_a_costlier_schema_lowers_the_threshold() -> None:
    data = b'{"a":"' + b"x" * (LARGE // 4) + b'"}'
    assert [is_large(Body(JSON, data), cost) for cost in (1, 4)] == [False, True]
