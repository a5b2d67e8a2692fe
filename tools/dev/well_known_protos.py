"""Print the .proto files that schemas import without a reference.

``python -m tools.dev.well_known_protos > kdump/schemas/well_known.txt`` writes them from the descriptors of the
packages protobuf and googleapis-common-protos. No package has Confluent's own files, so they are in this module.
Options and comments are left out, because they do not change the encoding.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_PROTOBUF: Final = "any api descriptor duration empty field_mask source_context struct timestamp type wrappers"
_TYPE: Final = (
    "calendar_period color date datetime dayofweek decimal expr fraction interval latlng localized_text money month "
    "phone_number postal_address quaternion timeofday"
)
GOOGLE: Final = [f"protobuf.{name}" for name in _PROTOBUF.split()] + [f"type.{name}" for name in _TYPE.split()]
CONFLUENT: Final = """
file confluent/meta.proto
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
file confluent/type/decimal.proto
syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
file confluent/types/decimal.proto
syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
file confluent/type/variant.proto
syntax = "proto3";
package confluent.type;
message Variant { bytes metadata = 1; bytes value = 2; }
"""
_TYPES: Final = (
    "double float int64 uint64 int32 fixed64 fixed32 bool string group message bytes uint32 enum sfixed32 sfixed64 "
    "sint32 sint64"
)
_LABELS: Final = {1: "optional ", 2: "required ", 3: "repeated "}


def main() -> None:
    """Print all files."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    for name in GOOGLE:
        found = FileDescriptorProto()
        import_module(f"google.{name}_pb2").DESCRIPTOR.CopyToProto(found)
        print(f"file {found.name}")
        print(f'syntax = "{found.syntax or "proto2"}";')
        print(f"package {found.package};")
        for imported in found.dependency:
            print(f'import "{imported}";')
        for enum in found.enum_type:
            print(_enum(enum))
        for message in found.message_type:
            print(_message(message, proto3=found.syntax == "proto3"))
    print(CONFLUENT.strip())


def _enum(enum: Any) -> str:
    return f"enum {enum.name} {{ {' '.join(f'{value.name} = {value.number};' for value in enum.value)} }}"


def _message(message: Any, *, proto3: bool) -> str:
    entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    parts = [_enum(enum) for enum in message.enum_type]
    parts += [_message(nested, proto3=proto3) for nested in message.nested_type if nested.name not in entries]
    oneofs: dict[int, list[str]] = {}
    for field in message.field:
        entry = entries.get(field.type_name.rpartition(".")[2])
        oneof = field.HasField("oneof_index") and not field.proto3_optional
        if entry is not None:
            key, value = entry.field
            parts.append(f"map<{_type(key)}, {_type(value)}> {field.name} = {field.number};")
        elif oneof:
            oneofs.setdefault(field.oneof_index, []).append(f"{_type(field)} {field.name} = {field.number};")
        else:
            label = "" if proto3 and field.label != 3 and not field.proto3_optional else _LABELS[field.label]
            parts.append(f"{label}{_type(field)} {field.name} = {field.number};")
    parts += [f"oneof {message.oneof_decl[index].name} {{ {' '.join(each)} }}" for index, each in oneofs.items()]
    parts += [f"extensions {each.start} to {each.end - 1};" for each in message.extension_range]
    return f"message {message.name} {{ {' '.join(parts)} }}"


def _type(field: Any) -> str:
    return field.type_name or _TYPES.split()[field.type - 1]


if __name__ == "__main__":
    main()
