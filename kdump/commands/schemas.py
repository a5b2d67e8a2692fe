"""``kdump schemas``: the schemas that a registry keeps in its topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdump.command_line.answering import FORM, write_answer
from kdump.command_line.limit_options import PATHS, AtLeast
from kdump.command_line.options import LIMITS, REMOTE, add, remote_storage
from kdump.command_line.session import Session
from kdump.errors import UsageError, many

if TYPE_CHECKING:
    from kdump.answers.collector import AnswerLine


@click.command("schemas")
@PATHS
@add(REMOTE)
@click.option("--all", "deleted", is_flag=True, help="List deleted versions too, if they are still in the log.")
@click.option("--id", "number", type=AtLeast(0), metavar="N", help="Only this schema id.")
@click.option("--guid", metavar="GUID", help="Only the schema with this GUID. Record headers have GUIDs.")
@click.option("--subject", metavar="GLOB", help="Only this subject, or a glob such as 'orders-*'.")
@click.option(
    "--type", "schema_type", type=click.Choice(("avro", "protobuf", "json")), help="Only schemas of this type."
)
@click.option("--subjects", is_flag=True, help="One line per subject, with its config and mode.")
@click.option("--history", is_flag=True, help="One line per record of the topic, in offset order.")
@click.option("--export", "folder", metavar="DIR", help="Write the schemas as files for protoc and Avro's tools.")
@click.option(
    "--import-script",
    is_flag=True,
    help="Print a script that restores subjects, versions and ids on a new, empty registry.",
)
@click.option(
    "--schemas-topic",
    default="_schemas",
    show_default=True,
    metavar="NAME",
    help="The name of the schema registry's topic.",
)
@add(FORM)
@add(LIMITS)
def command(paths: tuple[str, ...], *, output: str, quiet: bool, **given: Any) -> int:
    """List the schemas of a schema registry, from its topic.

    \b
    Examples:
      kdump schemas /var/kafka
      kdump schemas /var/kafka --id 17 -o jsonl | jq -r .schema
      kdump schemas /var/kafka --subjects --all
      kdump schemas /var/kafka --export exported
      kdump schemas /var/kafka --import-script > restore.sh

    Without --all, only current versions are listed. A deleted version stays readable until the topic is compacted.
    Records may have its id: restore it with --import-script --all. --history lists deleted versions always.

    Exit status: 0 answered; 1 something cannot be read or there is no such topic; 2 wrong usage; 3 damage was found.
    """
    if sum((given["subjects"], given["history"], given["folder"] is not None, given["import_script"])) > 1:
        raise UsageError("only one of --subjects, --history, --export and --import-script can be used")
    from kdump.answers import schemas as answer
    from kdump.log_reader.registry_topic import no_record, read_store
    from kdump.printers.answer_tables import schemas as tables

    run = Session(quiet=quiet)
    topic = given["schemas_topic"]
    store = read_store(
        paths,
        topic=topic,
        max_batch_bytes=given["max_batch_bytes"],
        remote=remote_storage(given),
        report=run.report,
        lost=lambda item: run.damaged_range(item.file.name, item.damage),
    )
    run.sum_up()
    if not store.history and not run.statuses:
        run.fail(no_record(topic, paths))
    guid = given["guid"].lower() if given["guid"] is not None else None
    query = answer.SchemaQuery(given["deleted"], given["number"], guid, given["subject"], given["schema_type"])
    if given["folder"] is not None:
        from kdump.output import files
        from kdump.output.access import ANY
        from kdump.schemas.export import ExportedSchemas

        files.outside(paths, given["folder"])
        run.must_be_whole(given["folder"])
        made = ExportedSchemas(query.versions(store), store)
        with files.new_folder(given["folder"], note=run.note) as part:
            for name, data in made.files.items():
                *folders, last = name.split("/")
                files.fill(files.make_folders(part, *folders, access=ANY) / last, data, ANY)
        for text in made.notes:
            run.insist(text)
        run.note(f"{many(len(made.files), 'file')} written to {given['folder']}")
        return run.status
    if given["import_script"]:
        from kdump.schemas.export import import_script

        whole = query == answer.SchemaQuery(deleted=query.deleted)
        click.echo("\n".join(import_script(query.versions(store), store, whole=whole)))
        return run.status
    lines: list[AnswerLine]
    if given["history"]:
        lines = [*query.history(store)]
    elif given["subjects"]:
        lines = list(answer.subject_lines(store, query))
    else:
        lines = [answer.schema_line(version) for version in query.versions(store)]
    write_answer(lines, output, tables.tables)
    return run.status
