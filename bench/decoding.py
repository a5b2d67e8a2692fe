"""Decoded payloads as JSON lines, compared with the libraries: fastavro with json, protobuf with json_format.

    python -m bench.decoding [--records N] [--plain N] [--rounds N] [--folder DIR]

Writes a topic of Avro records (8 fields: a decimal, a timestamp, an enum, 3 nested records, a map), and the same in
Protobuf. kdump's processor seconds are those of its whole process minus those of a run over only the schemas; the
libraries decode the same payloads in this process. Then dumps N records without a schema (10-byte keys, JSON values of
100 bytes; with a header, then without) in each form that decodes, in turn with and without ``--decode auto``. Both
print the same, except an empty last column of CSV. All figures are medians. The exit status is 1 if an aim is missed.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench import segments
from bench.runs import Tool, measure, measured
from testing import forge
from tools import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AVRO_AIM: Final = 1.5
PROTOBUF_AIM: Final = 2.0
PLAIN_AIM: Final = 1.03
"""Maximum time with --decode for a topic without schemas, as a multiple of that without."""
FORMS: Final = ("text", "jsonl", "csv", "table")
PLAIN_SHAPES: Final = ("none", "no-headers")
BATCH: Final = 200
NESTED: Final = {
    "C1": [("name", "string"), ("email", ["null", "string"])],
    "C2": [("street", "string"), ("zip", "int")],
}
AVRO: Final[dict[str, Any]] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B", "C"]}},
        *(
            {
                "name": name.lower(),
                "type": {
                    "type": "record",
                    "name": name,
                    "fields": [{"name": one, "type": kind} for one, kind in NESTED[name]],
                },
            }
            for name in NESTED
        ),
        {"name": "c3", "type": "C1"},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}
PROTO: Final = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; string price = 2; google.protobuf.Timestamp at = 3; Kind kind = 4; C1 c1 = 5; C2 c2 = 6;
C1 c3 = 7; map<string, string> tags = 8; enum Kind { A = 0; B = 1; C = 2; } message C1 { string name = 1;
optional string email = 2; } message C2 { string street = 1; int32 zip = 2; } }"""


def main() -> int:
    """Measure, print a table, and return whether the aims hold."""
    parser = arguments.parser(__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--plain", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "kdump-decoding")
    given = parser.parse_args()
    avro, protobuf = avro_payloads(given.records), protobuf_payloads(given.records)
    schemas = [("avro-value", json.dumps(AVRO), "AVRO"), ("protobuf-value", PROTO, "PROTOBUF")]
    write(given.folder, "_schemas", [schema(number, *each) for number, each in enumerate(schemas, 1)])
    write(given.folder, "avro", [(b"k", b"\0\0\0\0\1" + each) for each in avro])
    write(given.folder, "protobuf", [(b"k", b"\0\0\0\0\2\0" + each) for each in protobuf])

    def best(run: Callable[[], float]) -> float:
        return median(run() for _ in range(given.rounds))

    start = best(lambda: decoded(given.folder, "_schemas"))
    took = {topic: best(lambda: decoded(given.folder, topic)) - start for topic in ("avro", "protobuf")}  # noqa: B023  called at once
    libraries = {"avro": best(lambda: by_fastavro(avro)), "protobuf": best(lambda: by_protobuf(protobuf))}
    missed = False
    for topic, aim in (("avro", AVRO_AIM), ("protobuf", PROTOBUF_AIM)):
        times = libraries[topic] / took[topic]
        missed |= times < aim
        rates = (
            f"{given.records / took[topic]:,.0f} lines a second, the library {given.records / libraries[topic]:,.0f}"
        )
        print(f"{topic:9} {rates}: {times:.2f} times (aim: {aim})")
    for shape in PLAIN_SHAPES:
        log = str(segments.make(given.folder, segments.SHAPES[shape], given.plain))
        for form in FORMS:
            missed |= costs_too_much(log, f"{form}, {shape}", form, given.rounds)
    return int(missed)


def costs_too_much(log: str, name: str, form: str, rounds: int) -> bool:
    """Print the extra time of ``--decode auto`` in a dump of a log without schemas; return whether the aim is missed.

    Raises ValueError if the output differs.
    """
    plain, auto = (dump_of([log, "-o", form, "--decode", mode]) for mode in ("none", "auto"))
    if any(one != other for one, other in zip(printed(plain), printed(auto, cut=form == "csv"), strict=True)):
        raise ValueError(f"{log}: -o {form} --decode auto prints something else than without --decode")
    before, after = measured([plain, auto], (), rounds)
    ratio = after.cpu / before.cpu
    print(f"{name:18} {before.cpu:.3f} s, --decode auto {after.cpu:.3f} s: {ratio:.3f} times (aim: {PLAIN_AIM})")
    return ratio > PLAIN_AIM


def printed(tool: Tool, *, cut: bool = False) -> Iterator[bytes]:
    """Yield the lines that a run prints; with ``cut`` without their last column."""
    with subprocess.Popen(tool.command, stdout=subprocess.PIPE) as process:
        for line in process.stdout or ():
            yield line.rpartition(b",")[0] + b"\n" if cut else line


def dump_of(options: list[str]) -> Tool:
    return Tool("dump", [sys.executable, "-m", "kdump", "dump", *options, "--jobs", "1"], {})


def schema(number: int, subject: str, text: str, kind: str) -> tuple[bytes, bytes]:
    """Return the record of a schema."""
    key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
    value = {"subject": subject, "version": 1, "id": number, "schemaType": kind, "schema": text}
    return json.dumps(key).encode(), json.dumps(value).encode()


def write(folder: Path, topic: str, records: list[tuple[bytes, bytes]]) -> None:
    """Write a topic of one segment."""
    target = folder / f"{topic}-0"
    target.mkdir(parents=True, exist_ok=True)
    with (target / f"{0:020}.log").open("wb") as out:
        for base in range(0, len(records), BATCH):
            made = [forge.record(*each, offset=n) for n, each in enumerate(records[base : base + BATCH])]
            out.write(forge.batch(made, base_offset=base, base_timestamp=1_790_000_000_000 + base))


def decoded(folder: Path, topic: str) -> float:
    """Return the processor seconds of ``kdump dump -o jsonl --decode auto``."""
    options = [str(folder / f"{topic}-0"), "-o", "jsonl", "--decode", "auto", "--schemas", str(folder)]
    return measure(dump_of(options), ()).cpu


def order(number: int) -> dict[str, Any]:
    """Return the values of a record."""
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=number * 777)
    customer = {"name": f"name {number}", "email": None if number % 2 else "someone@example.org"}
    return {
        "id": number,
        "price": decimal.Decimal(number) / 1000,
        "at": at,
        "kind": "ABC"[number % 3],
        "c1": customer,
        "c2": {"street": f"street {number}", "zip": number},
        "c3": customer,
        "tags": {"a": "x", "b": "y"},
    }


def avro_payloads(count: int) -> list[bytes]:
    import fastavro

    parsed = fastavro.parse_schema(AVRO)
    made = []
    for number in range(count):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, order(number))
        made.append(out.getvalue())
    return made


def by_fastavro(payloads: list[bytes]) -> float:
    """Return the processor seconds of fastavro and json."""
    import fastavro

    parsed = fastavro.parse_schema(AVRO)
    begun = time.process_time()
    for payload in payloads:
        json.dumps(fastavro.schemaless_reader(io.BytesIO(payload), parsed, None), default=str)
    return time.process_time() - begun


def proto_class() -> Any:
    """Return protobuf's class of the message."""
    import grpc_tools
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "a.proto"), Path(folder, "out")
        path.write_text(PROTO, encoding="utf-8")
        own = Path(grpc_tools.__file__).parent / "_proto"
        protoc.main(
            ["protoc", f"-I{folder}", f"-I{own}", f"--descriptor_set_out={out}", "--include_imports", str(path)]
        )
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
            pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def protobuf_payloads(count: int) -> list[bytes]:
    kind = proto_class()
    made = []
    for number in range(count):
        values = order(number)
        message = kind(id=number, price=str(values["price"]), kind=values["kind"], tags=values["tags"])
        message.at.FromDatetime(values["at"])
        for name in ("c1", "c2", "c3"):
            inner = getattr(message, name)
            for field, value in values[name].items():
                if value is not None:
                    setattr(inner, field, value)
        made.append(message.SerializeToString())
    return made


def by_protobuf(payloads: list[bytes]) -> float:
    """Return the processor seconds of protobuf's own reader and json_format."""
    from google.protobuf import json_format

    kind = proto_class()
    begun = time.process_time()
    for payload in payloads:
        json_format.MessageToJson(
            kind.FromString(payload), preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
    return time.process_time() - begun


if __name__ == "__main__":
    sys.exit(main())
