"""A driver is killed while a log grows: its stream has each record once, and loses none."""

import random
import shutil
import time
from threading import Event, Thread

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kdump[spark]'")

from tests.conftest import java_is_missing
from tests.helpers.growing import Log
from tools.prove.stream import Driver, streamed

KILLS = 2
BATCHES = 400
PATIENCE = 600
"""Seconds that a driver may take for work of thirty seconds on an idle machine."""


class Writer(Thread):
    """Appends to three partitions like a broker: in regions, with transactions, rolled and deleted segments."""

    def __init__(self, folder):
        super().__init__()
        self.logs = [Log(folder / f"live-{number}") for number in range(3)]
        self.enough = Event()
        self.wanted, self.committed = set(), set()
        self._random = random.Random(7)

    def run(self):
        done = 0
        while done < BATCHES or not self.enough.is_set():
            log = self._random.choice(self.logs)
            number = self.logs.index(log)
            kind = self._random.randrange(8)
            if kind == 0:
                log.roll()
            elif kind == 1:
                self._transaction(log, number)
            else:
                self._count(number, log, 3, committed=True)
                self._append(log, log.batch())
            done += 1
            time.sleep(0.02)

    def _count(self, number, log, count, *, committed):
        keys = {("live", number, log.next + each) for each in range(count)}
        self.wanted |= keys
        self.committed |= keys if committed else set()

    def _transaction(self, log, number):
        commits = self._random.random() < 0.5
        self._count(number, log, 3, committed=commits)
        self._append(log, log.batch(attributes=0x10, producer_id=9, producer_epoch=0))
        self._append(log, log.marker(9, commits))

    def _append(self, log, made):
        cut = self._random.randrange(len(made))
        for region in (made[:cut], made[cut:]):
            with log.file.open("ab") as file:
                file.write(region)
            time.sleep(self._random.choice([0, 0, 0.02]))


def killed(driver):
    """Kill the driver in the middle of a micro-batch, and start it again."""
    end = time.monotonic() + PATIENCE
    while True:
        assert time.monotonic() < end, driver.said
        assert driver.ended() is None, driver.said
        if driver.in_batch():
            break
        time.sleep(0.005)
    driver.kill()
    driver.start()


@pytest.mark.xdist_group("spark-processes")
def test_each_record_is_written_once_however_often_the_driver_is_killed(tmp_path):
    if reason := java_is_missing():
        pytest.skip(reason)
    writer = Writer(tmp_path / "logs")
    driver = Driver(tmp_path / "logs", tmp_path, {"maxRecordsPerTrigger": "300"})
    writer.start()
    driver.start()
    try:
        for _ in range(KILLS):
            killed(driver)
        writer.enough.set()
        writer.join()
        (tmp_path / "stop").touch()
        end = time.monotonic() + PATIENCE
        while (status := driver.ended()) is None:
            assert time.monotonic() < end, driver.said
            time.sleep(0.1)
        assert status == 0, driver.said
    finally:
        writer.enough.set()
        if driver.ended() is None:
            driver.kill()
    assert len(writer.wanted) > BATCHES
    for isolation, expected in (("read_uncommitted", writer.wanted), ("read_committed", writer.committed)):
        rows = streamed(tmp_path / f"{isolation}.all")
        assert sorted(key for key, _ in rows) == sorted(expected)
        assert all(facts[3] == b"%d" % key[2] for key, facts in rows)
    shutil.rmtree(tmp_path / "scratch", ignore_errors=True)
