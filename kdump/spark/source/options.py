"""The options of the Spark source, each declared once with its name, parser and meaning.

The conventions are those of Spark's Kafka source: ends are exclusive, and names are case-insensitive.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kdump.answers import QUESTIONS, question_named
from kdump.answers.collector import camel_case
from kdump.answers.recompression import target
from kdump.answers.topic_configs import given_config
from kdump.arrow import schema
from kdump.dump_log_segments.dialects import known_release
from kdump.errors import UsageError
from kdump.log_dirs.finder import Wanted
from kdump.primitives import timestamps
from kdump.primitives.compression import DEFAULT_LIMIT
from kdump.primitives.messages import did_you_mean
from kdump.primitives.terminal import path_text
from kdump.queries.conditions import Values, compared
from kdump.rows.columns import TYPED
from kdump.schemas.decoder import FORMATS
from kdump.spark.source import kafka_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kdump.answers.question import FieldOption, QuestionOption
    from kdump.log_dirs.partition import Partition
    from kdump.schemas.store import SchemaStore
    from kdump.spark.source.kafka_options import KafkaQuery


PERMISSIVE: Final = "PERMISSIVE"
DROPMALFORMED: Final = "DROPMALFORMED"
FAILFAST: Final = "FAILFAST"
RECORDS: Final = "records"
DAMAGED: Final = "damaged"
ACCOUNT: Final = "account"
BATCHES: Final = "batches"
FINDINGS: Final = "findings"
ANSWERS: Final = tuple(name for name in QUESTIONS if question_named(name).collector is not None)
"""Outputs whose rows are the lines of the command with the same name, and its messages on damage."""
OF_WHOLE: Final = (FINDINGS, *ANSWERS)
"""Outputs that always cover whole partitions."""
NONE: Final = "none"
AUTO: Final = "auto"
_TYPED: Final = tuple(column.name for column in TYPED)
READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"
_SIZES: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The options of a reader. Times are ms since 1970, sizes are bytes; None means no limit, or not given."""

    paths: tuple[str, ...]
    topic: tuple[str, ...] = ()
    partition: frozenset[int] = frozenset()
    starting_offset: int | None = None
    ending_offset: int | None = None
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    isolation: str = READ_UNCOMMITTED
    mode: str = PERMISSIVE
    include_control: bool = False
    output: str = RECORDS
    columns: tuple[str, ...] = ()
    decode: str = NONE
    schemas: str | None = None
    schemas_topic: str = "_schemas"
    schema: str | None = None
    """The subject that determines the typed columns."""
    by_subject: bool = False
    """Whether the records of each subject have typed columns of their own (only in an export)."""
    split_bytes: int = 128 << 20
    min_partitions: int = 2 * (os.cpu_count() or 1)
    dedupe: bool = False
    leftovers: bool = False
    remote: tuple[str, ...] = ()
    remote_key: tuple[tuple[str, str], ...] = ()
    max_batch_bytes: int = DEFAULT_LIMIT
    max_files_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    max_records_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    skip_unreadable: bool = False
    pushdown: bool = False
    at: int | None = None
    answer: tuple[tuple[str, Any], ...] = ()
    """The options of the question that were given: pairs of a field of its options class, and the value."""
    surveyed: bool = False
    """Whether the headers of all batches are read before the splits are made, even if no other option needs them."""
    kafka: KafkaQuery | None = None
    """The query, if ``subscribe``, ``subscribePattern`` or ``assign`` is given."""
    ignored: tuple[str, ...] = ()
    """The names of given options of Kafka's source that have no effect."""
    store: SchemaStore | None = None
    """The schemas in the log. The driver reads them; None before, and if no payload is decoded."""
    typed_names: tuple[str, ...] = ()
    """The columns of the subject. The driver sets them after it has read the schemas."""
    pushed: Pushed | None = None

    @property
    def committed(self) -> bool:
        """Whether records of aborted, open and unknown transactions are left out (read_committed)."""
        return self.isolation == READ_COMMITTED

    @property
    def names(self) -> tuple[str, ...]:
        if self.columns:
            return self.columns
        decoded = () if self.decode == NONE else (schema.DECODED.name,)
        return (*schema.RECORD_NAMES, *decoded, *self.typed_names)

    @property
    def decodes(self) -> bool:
        return self.decode != NONE or self.schema is not None or self.by_subject

    def wanted(self, **choices: Any) -> Wanted:
        """Return the finder's selection: topics, partitions and batch limit of these options, and ``choices``."""
        return Wanted(topics=self.topic, partitions=self.partition, max_batch_bytes=self.max_batch_bytes, **choices)

    @property
    def now(self) -> int:
        """The option ``at``, or the clock, in ms since 1970."""
        return timestamps.now() if self.at is None else self.at

    def narrowed(self, filters: Iterable[Any]) -> SourceOptions:
        """Return options that read less, by ``filters`` on topic, partition, and (for records) offset and timestamp."""
        spans = {"topic": Values(), "partition": Values()}
        if self.output == RECORDS:
            spans |= {
                "offset": Values(self.starting_offset, _plus(-1, self.ending_offset)),
                "timestamp": Values(self.starting_timestamp, _plus(-1, self.ending_timestamp)),
            }
        for one in filters:
            column = ".".join(getattr(one, "attribute", ()))
            if column in spans:
                spans[column] = spans[column].both(_passing(type(one).__name__, getattr(one, "value", None)))
        is_nothing = any(span.none for span in spans.values())
        options = replace(self, pushed=Pushed(spans["topic"], spans["partition"], is_nothing))
        if is_nothing or self.output != RECORDS:
            return options
        (first, last), (since, until) = spans["offset"].range, spans["timestamp"].range
        return replace(
            options,
            starting_offset=first,
            ending_offset=_plus(1, last),
            starting_timestamp=since,
            ending_timestamp=_plus(1, until),
        )


class Option(NamedTuple):
    """An option: name, parser (raises ValueError), description of valid texts, meaning, and its outputs (most: ())."""

    name: str
    read: Callable[[str], Any]
    shape: str
    doc: str
    of: tuple[str, ...] = ()
    parts: Mapping[str, FieldOption] = {}
    """Output -> how its question declares this option. Empty for options that are not of questions."""

    @property
    def field(self) -> str:
        return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", self.name)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)


def _switch(text: str) -> bool:
    words = {"true": True, "false": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def size(text: str) -> int:
    """Return the number of bytes of a size such as 64m. Raises ValueError, for 0 too."""
    found = re.fullmatch(r"(\d+)\s*([kmg]?)(?:i?b)?", text.strip().lower())
    if found is None or int(found[1]) == 0:
        raise ValueError(text)
    return int(found[1]) * _SIZES[found[2]]


def _time(text: str) -> int:
    """Return ms since 1970 from a number, or from ISO 8601 (UTC unless it has a zone) with fractions rounded up."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    moment = datetime.fromisoformat(text)
    return timestamps.rounded_up(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _times(text: str) -> tuple[int, ...]:
    return tuple(map(_time, _names(text)))


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(text)
    return names


def _keys(text: str) -> tuple[tuple[str, str], ...]:
    found = tuple((name, file) for name, _, file in (word.partition("=") for word in _names(text)))
    if not all(name and file for name, file in found):
        raise ValueError(text)
    return found


_MOST_PARTITIONS: Final = 1_000_000


def _partitions(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in _names(text):
        first, _, last = part.partition("-")
        numbers = range(_whole(first), _whole(last or first) + 1)
        if not 0 < len(numbers) <= _MOST_PARTITIONS:  # a typing error, which would fill the memory or select all
            raise ValueError(part)
        found.update(numbers)
    return frozenset(found)


def _columns(text: str) -> tuple[str, ...]:
    known = {name.lower(): name for name in (*schema.RECORD_NAMES, schema.DECODED.name, *_TYPED)}
    names = _names(text)
    for name in names:
        if name.lower() not in known:
            raise UsageError(f"option columns: there is no column {name!r}{did_you_mean(name, known.values())}")
    return tuple(dict.fromkeys(known[name.lower()] for name in names))


Parser: TypeAlias = "tuple[Callable[[str], Any], str]"
"""A function that parses the text of an option (and raises ValueError), and a description of the valid texts."""


def _choice(*words: str) -> Parser:
    def read(text: str) -> str:
        for word in words:
            if text.lower() == word.lower():
                return word
        raise ValueError(text)

    return read, f"{', '.join(words[:-1])} or {words[-1]}"


_SWITCH: Final[Parser] = _switch, "true or false"
_COUNT: Final[Parser] = size, "a number"
_NUMBER: Final[Parser] = _whole, "a number, 0 or more"
_SIZE: Final[Parser] = size, "bytes, or a size such as 64m"
_TIME: Final[Parser] = _time, "ms since 1970, or ISO 8601"
_KINDS: Final[dict[str, Parser]] = {
    "switch": _SWITCH,
    "count": _COUNT,
    "moment": _TIME,
    "moments": (_times, "times, separated by commas"),
    "duration": (_whole, "ms"),
    "release": (known_release, "a release of Kafka, such as 3.9"),
    "configs": (lambda text: tuple(map(given_config, _names(text))), "TOPIC:KEY=VALUE, separated by commas"),
    "names": (_names, "ids or globs, separated by commas"),
    "codecs": (lambda text: tuple(map(target, _names(text))), "codecs such as zstd:9, separated by commas"),
    "text": (str, "a text"),
}
"""Kind of the option of a question -> parser of the text, and description of the valid texts."""


def _kind(words: QuestionOption) -> Parser:
    return _KINDS.get(words.kind) or (_choice(*words.choices)[0], ", ".join(words.choices))


def _of_questions() -> list[Option]:
    """Return the options of the questions that ``output`` can name. An option of several questions is listed once."""
    found: dict[str, Option] = {}
    for output in ANSWERS:
        for part in question_named(output).parts():
            words = part.words
            name = camel_case(words.flag.lstrip("-").replace("-", "_"))
            read, shape = _kind(words)
            text = f": {words.doc[0].lower()}{words.doc[1:].rstrip('.')}."
            doc = f"Of {output}{text}"
            known = found.get(name)
            if known is not None:
                shape = known.shape if shape in known.shape else f"{known.shape}; {shape}"
                same = known.doc.endswith(text)
                doc = (
                    f"{known.doc.removesuffix(text)} and {output}{text}" if same else f"{known.doc[:-1]}; of {doc[3:]}"
                )
            before = {} if known is None else known.parts
            found[name] = Option(name, read, shape, doc, (*before, output), {**before, output: part})
    return list(found.values())


OPTIONS: Final = (
    Option("topic", _names, "names or globs, separated by commas", "Read only these topics."),
    Option(
        "partition",
        _partitions,
        f"numbers or ranges such as 0-3, of at most {_MOST_PARTITIONS}, separated by commas",
        "Read only these partitions.",
    ),
    Option("startingOffset", *_NUMBER, "The first offset to read."),
    Option("endingOffset", *_NUMBER, "Read records below this offset."),
    Option("startingTimestamp", *_TIME, "Read records from this time on."),
    Option("endingTimestamp", *_TIME, "Read records before this time."),
    Option(
        "isolation",
        *_choice(READ_UNCOMMITTED, READ_COMMITTED),
        "read_committed leaves out aborted records, and all records from the first open transaction on.",
    ),
    Option(
        "mode",
        *_choice(PERMISSIVE, DROPMALFORMED, FAILFAST),
        "The effect of damage. PERMISSIVE leaves damaged ranges out, and the output 'damaged' lists them. "
        "DROPMALFORMED leaves them out, FAILFAST ends the job. Default: FAILFAST for records, PERMISSIVE for other "
        "outputs.",
    ),
    Option(
        "skipUnreadable",
        *_SWITCH,
        "Count bytes as damage if a failing local disk does not return them (EIO). By default they end the job in "
        "every mode. Other unreadable files always end it.",
    ),
    Option("includeControl", *_SWITCH, "Also read control records, such as transaction markers."),
    Option(
        "output",
        *_choice(RECORDS, BATCHES, DAMAGED, ACCOUNT, FINDINGS, *ANSWERS),
        "What the rows are: records, headers of batches, damaged ranges, the account of every byte of the files, or "
        "the findings of kdump check. The name of another command, such as retention, returns the lines of that "
        "command.",
    ),
    Option("columns", _columns, "names, separated by commas", "Return only these columns; others are not computed."),
    Option(
        "decode",
        *_choice(NONE, AUTO, *FORMATS),
        "auto decodes records of Kafka's own topics and payloads with a schema id, as JSON in the column 'decoded'.",
    ),
    Option(
        "schema",
        str,
        "a subject, or subject:version",
        "Columns with the types of this subject: keyDecoded, valueDecoded, schemaId, problem, why.",
    ),
    Option("schemas", str, "a path", "The path of the topic of the schema registry, if it is elsewhere."),
    Option("schemasTopic", str, "a name", "The name of the topic of the schema registry. Default: _schemas."),
    Option("splitBytes", *_SIZE, "Divide larger segments between several tasks."),
    Option("minPartitions", *_COUNT, "The approximate minimum number of tasks, if there is enough data."),
    Option("dedupe", *_SWITCH, "Return each offset of several replicas once: the highest leader epoch wins."),
    Option("leftovers", *_SWITCH, "Also read .deleted, .swap and .cleaned files, and stray folders."),
    Option(
        "remote",
        _names,
        "folders or URIs, separated by commas",
        "Also read segments of tiered topics here. Remote and local segments of a partition are read as one log.",
    ),
    Option(
        "remoteKey",
        _keys,
        "NAME=FILE, separated by commas",
        "Private keys (PEM) that decrypt segments in remote storage. They are sent to the executors.",
    ),
    Option(
        "maxBatchBytes",
        *_SIZE,
        "Largest batch accepted, compressed or uncompressed. A larger one is reported as damage.",
    ),
    Option("maxFilesPerTrigger", *_COUNT, "Maximum number of segments that a trigger of a stream opens."),
    Option("maxBytesPerTrigger", *_SIZE, "Maximum number of bytes that a trigger of a stream reads."),
    Option("maxRecordsPerTrigger", *_COUNT, "Maximum number of records that a trigger of a stream reads."),
    Option(
        "failOnDataLoss",
        *_SWITCH,
        "For a stream, and with options of Kafka's source: fail if requested records are gone (true, the default), "
        "or print a note and continue.",
    ),
    Option(
        "pushdown",
        *_SWITCH,
        "Use Spark's filters on topic, partition, offset and timestamp to read less, if Spark passes them.",
    ),
    Option("at", *_TIME, "For findings and answers: the time that counts as now. Default: the clock.", OF_WHOLE),
    *_of_questions(),
)
"""The options that users set; ``path`` and ``paths`` come from Spark."""

_BY_NAME: Final = {option.name.lower(): option for option in OPTIONS}


def parse(given: Mapping[str, str]) -> SourceOptions:
    """Parse the options from Spark. Raises UsageError for an unknown name, a bad value, no path, and contradictions."""
    given, kafka, ignored = kafka_options.translate({name.lower(): text for name, text in given.items()})
    values: dict[str, Any] = {"paths": _paths(given), "ignored": ignored}
    asked: list[tuple[Option, str]] = []
    for name, text in given.items():
        if name not in ("path", "paths"):
            option = _BY_NAME.get(name)
            if option is None:
                raise UsageError(_unknown(name))
            if option.parts:
                asked.append((option, text))
            else:
                values[option.field] = read(option, text)
    values["answer"] = _of_question(values.get("output", RECORDS), asked)
    values.setdefault("mode", FAILFAST if values.get("output", RECORDS) == RECORDS else PERMISSIVE)
    options = SourceOptions(**values)
    _agree(options)
    if kafka is None:
        return options
    if options.output in OF_WHOLE:
        raise UsageError(f"option {kafka.asked}: output={options.output} always covers whole partitions")
    query = kafka.at_times(options.starting_timestamp, options.ending_timestamp)
    return replace(options, kafka=query, starting_timestamp=None, ending_timestamp=None)


def _of_question(output: str, asked: Iterable[tuple[Option, str]]) -> tuple[tuple[str, Any], ...]:
    """Return the options of a question: field of its options class, and value. Raises UsageError for other options.

    An option of other questions is ignored if it has the default value of one of them.
    """
    found = []
    for option, text in asked:
        part = option.parts.get(output)
        if part is not None:
            found.append((part.name, _value(option, part.words, text)))
        elif all(_value(option, other.words, text) != other.default for other in option.parts.values()):
            raise UsageError(f"option {option.name}: only for output={' or '.join(option.of)}")
    return tuple(found)


def _value(option: Option, words: QuestionOption, text: str) -> Any:
    one, shape = _kind(words)
    return read(option._replace(read=one, shape=shape), text)


def read(option: Option, text: str) -> Any:
    """Parse the text of one option. Raises UsageError."""
    try:
        return option.read(text)
    except ValueError:
        raise UsageError(f"option {option.name}: expected {option.shape}, found {text!r}") from None


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    try:
        paths = json.loads(given["paths"]) if "paths" in given else [given.get("path", "")]
    except (ValueError, RecursionError):
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise UsageError("option paths: expected a JSON array of texts")
    if not all(paths):
        raise UsageError("no path: name a segment, a partition folder or a log dir, as in .load(PATH)")
    return tuple(paths)


def _unknown(name: str) -> str:
    known = [option.name for option in OPTIONS]
    hint = did_you_mean(name, (*known, *kafka_options.NAMES)) or f"; there are {', '.join(known)}"
    return f"there is no option {name!r}{hint}"


def _agree(options: SourceOptions) -> None:
    for unit in ("Offset", "Timestamp"):
        first, last = (getattr(options, f"{end}_{unit.lower()}") for end in ("starting", "ending"))
        if first is not None and last is not None and last < first:
            raise UsageError(f"option ending{unit}: {last} is below starting{unit} {first}")
    if options.columns and options.output != RECORDS:
        raise UsageError(f"option columns: output={options.output} has columns of its own")
    if options.remote_key and not options.remote:
        raise UsageError("option remoteKey: it needs the option remote")
    if options.remote and options.output in (ACCOUNT, BATCHES):
        raise UsageError(f"option remote: output={options.output} covers only files, not segments in remote storage")
    if options.output == BATCHES and (options.dedupe or options.committed):
        raise UsageError(
            "output=batches always has the batches of all replicas, and of all transactions: remove the options "
            "dedupe and isolation"
        )
    _check_taken(options)
    if options.schema is None and not set(_TYPED).isdisjoint(options.columns):
        raise UsageError(f"option columns: {', '.join(_TYPED)} need the option schema")
    if schema.DECODED.name in options.columns and options.decode == NONE:
        raise UsageError(f"option columns: {schema.DECODED.name} needs decode={AUTO}")


WHOLE: Final = ("paths", "topic", "partition", "output", "min_partitions", "max_batch_bytes", "skip_unreadable")
"""The outputs of :data:`OF_WHOLE` accept these fields of :class:`SourceOptions`, and options of their own."""


def _check_taken(options: SourceOptions) -> None:
    """Raise UsageError for an option of other outputs, or not in WHOLE for OF_WHOLE, if it is not the default."""
    for option in OPTIONS:
        if option.parts:
            continue
        default = SourceOptions.__dataclass_fields__[option.field].default
        if options.output in option.of or getattr(options, option.field) == default:
            continue
        if option.of:
            raise UsageError(f"option {option.name}: only for output={' or '.join(option.of)}")
        if options.output in OF_WHOLE and option.field not in WHOLE:
            raise UsageError(f"option {option.name}: output={options.output} always covers whole partitions")


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_SIGNS: Final = {
    "EqualTo": "==",
    "EqualNullSafe": "==",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
"""Class of a filter of Spark -> its sign."""


@dataclass(frozen=True)
class Pushed:
    """The topics and partitions that filters allow, and files without them. ``is_nothing``: filters allow no row."""

    topic: Values
    partition: Values
    is_nothing: bool

    def takes(self, partition: Partition) -> bool:
        if self.is_nothing or partition.topic is None or partition.partition is None:
            return not self.is_nothing
        return self.topic.takes(path_text(partition.topic)) and self.partition.takes(partition.partition)


def _passing(kind: str, value: Any) -> Values:
    """Return the values that can pass a filter. ``kind``: the name of its class, ``value``: one value, or several."""
    if kind == "In":
        found = [_compared("==", one) for one in value if one is not None]
        return reduce(Values.either, found, Values(only=frozenset()))
    return _compared(_SIGNS.get(kind, ""), value)


def _compared(sign: str, value: object) -> Values:
    if isinstance(value, datetime) and value.tzinfo is not None:  # a time, which may be inside a millisecond
        sign, value = {">": ">=", "<": "<="}.get(sign, sign), (value - _EPOCH) // _MILLISECOND
    kind = "text" if isinstance(value, str) else "number" if type(value) is int else ""
    return compared("", sign, kind, value).get("", Values())


def _plus(step: int, limit: int | None) -> int | None:
    return None if limit is None else limit + step
