import pytest

from kdump.schemas import SchemaError
from kdump.schemas.proto_model import Pool
from kdump.schemas.proto_text import parse

SCHEMA = """// a comment
syntax = 'proto3'; /* another
   one */ package a.b;
import public "x.proto"; import "y" ".proto";
option java_package = "q;{"; option (own).part = { a: 1 b: "}" };
message message { optional string optional = 1; repeated int32 repeated = 2 [packed = false, (x) = {y: [1, 2]}];
  oneof oneof { string option = 3; } reserved 4, 6 to max; reserved "old"; map<string, message> map = 5;
  enum enum { option allow_alias = true; ZERO = 0; NULL = 0x0; MINUS = -1; reserved 7; }
  enum enum = 7; int32 reserved = 8; ; }
service S { rpc Call (stream message) returns (message) { option deprecated = true; } }
"""


def test_words_of_the_language_are_names_too():
    file = parse(SCHEMA)
    assert (file.package, file.imports) == ("a.b", ["x.proto", "y.proto"])
    (message,) = file.messages
    assert [(one.name, one.number, one.repeated, one.presence) for one in message.fields] == [
        ("optional", 1, False, True),
        ("repeated", 2, True, False),
        ("option", 3, False, True),
        ("map", 5, True, False),
        ("enum", 7, False, False),
        ("reserved", 8, False, False),
    ]
    assert message.enums[0].values == (("ZERO", 0), ("NULL", 0), ("MINUS", -1))
    assert [one.full_name for one in message.nested] == ["a.b.message.MapEntry"]


def test_a_text_cut_at_every_byte_is_read_or_refused():
    refused = 0
    for end in range(len(SCHEMA)):
        try:
            parse(SCHEMA[:end])
        except SchemaError:
            refused += 1
    assert refused > len(SCHEMA) * 0.9


@pytest.mark.parametrize(
    "text",
    [
        "message {",
        "message A { int32 x = 0; }",
        "message A { int32 x = 19500; }",
        "message A { int32 x = 536870912; }",
        "message A { int32 x = 1; int32 y = 1; }",
        "message A { int32 x = 1; int32 x = 2; }",
        "message A { message B {} enum B { X = 0; } }",
        "message A { map<float, int32> m = 1; }",
        'syntax = "proto4";',
        'syntax = "proto3"; message A { required int32 x = 1; }',
        'syntax = "proto3"; enum E { A = 1; }',
        "enum E {}",
        "enum E { A = 0; A = 1; }",
        "enum E { A = 4294967296; }",
        "message A { int32 x = 1.5; }",
        "message A { int32 a.b = 1; }",
        "message A { int32 x = 1 [packed = ); }",
        "what now",
        'import "x',
        "/* never ends",
        "message A { " * 100,
        "\0",
    ],
)
def test_what_is_no_schema_is_refused(text):
    with pytest.raises(SchemaError):
        parse(text)


def test_names_are_looked_up_from_the_innermost_scope():
    pool = Pool()
    pool.add(parse("package p; message B { } message A { message B { } B inner = 1; .p.B outer = 2; p.B other = 3; }"))
    fields = {one.name: one.resolved.full_name for one in pool.known["p.A"].fields}
    assert fields == {"inner": "p.A.B", "outer": "p.B", "other": "p.B"}


@pytest.mark.parametrize(
    "text", ["message A { no.Such x = 1; }", "message A {} message A {}", "extend X { int32 a = 1; }"]
)
def test_names_that_mean_nothing_are_refused(text):
    with pytest.raises(SchemaError):
        Pool().add(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "package p . q; message A { message B {} p . q . A . B x = 1; . p.q.A y = 2; map<int32, p . q.A> z = 3; }",
        "message A { int32 x = 1 [(own).(a.b).c = 'x', (own).s = { s: ';]' o < n: 1 > l: [{}, {}] [a.b] { } }]; }",
        'edition = "2024"; import option "own.proto"; local message A { export enum E { Z = 0; } local message B {} }',
        'edition = "2023"; option features.(pb.go).api_level = API_OPAQUE; message A {}',
    ],
)
def test_rare_spellings_are_read(text):
    file = parse(text)
    assert ([each.name for each in file.messages], file.imports) == (["A"], [])


@pytest.mark.parametrize(
    ("option", "presence"),
    [
        ("", True),
        ("[features.field_presence = IMPLICIT]", False),
        ("[deprecated = true]", True),
        ("[deprecated = true, features.field_presence = IMPLICIT]", False),
        ("[features = { [pb.cpp] { string_type: VIEW } field_presence: IMPLICIT }]", False),
        ("[(own) = { field_presence: IMPLICIT }]", True),
        ("[(own).features.field_presence = IMPLICIT]", True),
        ('[(own) = "features.field_presence = IMPLICIT"]', True),
    ],
)
def test_editions_decide_about_presence(option, presence):
    (message,) = parse(f'edition = "2023"; message A {{ int32 x = 1 {option}; }}').messages
    assert message.fields[0].presence is presence


def test_editions_may_write_messages_as_groups():
    text = 'edition = "2023"; option features.message_encoding = DELIMITED; message A { A a = 1; int32 x = 2; }'
    assert [one.group for one in parse(text).messages[0].fields] == [True, False]


def test_a_byte_order_mark_is_ignored():
    assert [each.name for each in parse("\ufeffmessage M {}").messages] == ["M"]
