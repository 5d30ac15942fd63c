"""The protocol's text is what protoc takes, and what our messages are made of."""

from __future__ import annotations

import pytest

pytest.importorskip("grpc_tools", reason="grpcio-tools is a development dependency")

from importlib.resources import files

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

from kubetide.clouds.externalgrpc.messages import METHODS, PACKAGE, SERVICE, file_descriptor, proto_text


def plain(message):
    """Return a message's descriptor without what only protoc adds."""
    del message.reserved_range[:]
    for field in message.field:
        field.ClearField("json_name")
    for one in message.nested_type:
        plain(one)
    return message


def test_protoc_reads_what_we_read(tmp_path):
    """Each message that protoc makes of the text has our fields, numbers and types, and the service our methods."""
    (tmp_path / "protocol.proto").write_text(proto_text(), encoding="utf-8")
    out = tmp_path / "set"
    shipped = files(grpc_tools).joinpath("_proto")
    code = protoc.main(["", f"-I{tmp_path}", f"-I{shipped}", f"--descriptor_set_out={out}", "protocol.proto"])
    assert code == 0
    [theirs] = FileDescriptorSet.FromString(out.read_bytes()).file
    ours = file_descriptor(proto_text())
    assert theirs.package == PACKAGE
    assert [plain(one) for one in theirs.message_type] == list(ours.message_type)
    [service] = theirs.service
    assert f"{PACKAGE}.{service.name}" == SERVICE
    reported = {
        one.name: (one.input_type.rpartition(".")[2], one.output_type.rpartition(".")[2])
        for one in service.method
    }
    assert reported == dict(METHODS)
    assert len(reported) == 15
