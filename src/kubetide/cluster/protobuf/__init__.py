"""Objects in protobuf, read into the structs that JSON gives, too: needs the extra ``kubetide[protobuf]``."""

from __future__ import annotations

from kubetide.cluster.protobuf.codec import ProtobufCodec

__all__ = ["ProtobufCodec"]
