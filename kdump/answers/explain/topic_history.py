"""What the metadata log says of topics: which there are, which were deleted, how they are configured."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kdump.answers.metadata.copies import Copies, Said
from kdump.answers.metadata.image import MetadataLog
from kdump.answers.topic_configs import TopicConfigs
from kdump.log_reader.remote_segments import RemoteSegments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kdump.answers.metadata.cluster_image import ClusterImage
    from kdump.answers.metadata.events import Event
    from kdump.errors import UnreadableError
    from kdump.log_dirs.partition import Partition


class TopicHistory:
    """The topics of a metadata log, and those that it saw deleted. Without one ``image`` is None.

    ``past`` yields the events of the log; it is called when a deletion is asked for.
    """

    def __init__(
        self,
        image: ClusterImage | None,
        past: Callable[[], Iterable[Event]],
        listed: Callable[[], RemoteSegments] = RemoteSegments,
    ) -> None:
        """``listed`` returns what ``__remote_log_metadata`` lists; it is called once it matters."""
        self.image = image
        self._past = past
        self._listed = listed
        self._configs = None if image is None else TopicConfigs(image)

    @cached_property
    def _removals(self) -> list[Event]:
        return [event for event in self._past() if event.what == "TopicDeleted"]

    @cached_property
    def listed(self) -> RemoteSegments:
        """The segments that are listed as copied to remote storage, or on the way there."""
        return self._listed()

    def removals(self, topic: str) -> list[Event]:
        """Return the deletions of topics of a name, the oldest first."""
        return [event for event in self._removals if event.name == topic]

    def config(self, topic: str, name: str) -> str | None:
        """Return a config in force: the topic's, the brokers' dynamic one, or Kafka's default.

        None when no metadata log tells. Properties files of brokers are in no log dir.
        """
        return None if self._configs is None else self._configs.of(topic, None).settings[name].value

    def number(self, topic: str, name: str) -> int | None:
        """Return a config that is a number, None when it is not known."""
        text = self.config(topic, name)
        return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def topic_history(
    partitions: Iterable[Partition],
    damage: Callable[[str], None],
    fail: Callable[[UnreadableError], None],
    listed: Callable[[], RemoteSegments] = RemoteSegments,
) -> TopicHistory:
    """Return what the copies of ``__cluster_metadata`` among partitions say of topics, and what ``listed`` returns."""
    copies = Copies((one for one in partitions if one.topic is not None), Said(damage, lambda _: None, fail))
    if not copies:
        return TopicHistory(None, tuple, listed)
    log = MetadataLog(copies, damage)
    return TopicHistory(log.image(), log.history, listed)
