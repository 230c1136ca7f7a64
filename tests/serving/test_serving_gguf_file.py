from __future__ import annotations

import struct
from pathlib import Path

import pytest
from serving_fakes import gguf_bytes, metadata, tensors

from archon.errors import ServingError
from archon.serving.gguf_file import read_header


def test_metadata_and_shapes_are_read_as_written(tmp_path: Path):
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf_bytes())
    header = read_header(path)
    wanted = metadata("qwen2", "qwen2")
    assert {k: v for k, v in header.metadata.items() if not isinstance(v, float)} == {
        k: v for k, v in wanted.items() if not isinstance(v, float)
    }
    assert {tensor.name: tensor.shape for tensor in header.tensors} == {
        name: array.shape for name, array in tensors("qwen2").items()
    }
    assert all(tensor.offset % 32 == 0 for tensor in header.tensors)


def test_every_cut_of_a_header_is_a_clear_error(tmp_path: Path):
    path = tmp_path / "a.gguf"
    data = gguf_bytes()
    path.write_bytes(data)
    end = min(tensor.offset for tensor in read_header(path).tensors) - 32  # padding may follow the header
    for size in [*range(64), *range(64, end, 53), end]:
        path.write_bytes(data[:size])
        with pytest.raises(ServingError, match=r"a\.gguf"):
            read_header(path)


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04" + bytes(100),
        b"GGUF" + struct.pack("<IQQ", 9, 0, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 2**63, 2**63),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62),
        b"GGUF" + struct.pack("<IQQQ4sIIQ", 3, 0, 1, 4, b"\xff\xff\xff\xff", 9, 4, 2**60),
        b"GGUF" + struct.pack("<IQQQ4sIIQ", 3, 0, 1, 4, b"name", 9, 4, 2**60),
    ],
)
def test_hostile_headers_are_refused(tmp_path: Path, data: bytes):
    path = tmp_path / "a.gguf"
    path.write_bytes(data)
    with pytest.raises(ServingError):
        read_header(path)
