"""Compare the hanging transactions of kdump with those of a broker, and run the commands that kdump prints.

    python -m tools.prove.transactions [RELEASE] [--folder DIR]

A broker of a release (4.2.2) gets committed, aborted and open transactions. It is stopped, transactional batches that
no coordinator knows are appended to its logs, and it is started again: find-hanging and kdump must name the same. Each
line that kdump prints is then run: it must end the transaction, and the last stable offset must move.
"""

import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kdump.formats import record_layout
from kdump.records import magic_2
from tools import arguments
from tools.prove.broker import Broker, logger
from tools.record.fetch_jars import fetch

COMMAND = "org.apache.kafka.tools.TransactionsCommand"
TOOLS = "4.3.1"
"""The first release whose tools Maven Central has (4.3). It works with all brokers since 3.0."""
CLIENT = Path(__file__).with_name("TransactionClient.java")
TOPICS = ["orders-0", "orders-1", "payments-0"]
SCRIPT = [
    "commit:orders-0,payments-0",
    "abort:orders-0",
    "open:orders-1",
    "commit:orders-1",
    "abort:payments-0,orders-1",
]
HANGING = {"orders-0": 987_654, "payments-0": 987_655}
"""Partition -> producer id of the batch that is appended to it."""
AGE = 3_600_000


def tool(*words: str) -> str:
    """Run kafka-transactions.sh; return its output. Raises RuntimeError."""
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    command = ["java", level, "-cp", f"{fetch(TOOLS)}/*:{logger()}", COMMAND, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr[-3000:])
    return done.stdout


def kdump(*words: str) -> list[dict[str, object]]:
    """Return the lines of an answering command of kdump."""
    done = subprocess.run([sys.executable, "-m", "kdump", *words, "-o", "jsonl"], check=True, capture_output=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def offsets(logs: Path) -> dict[str, dict[str, object]]:
    """Return the offsets that kdump reads, by partition."""
    return {f"{line['topic']}-{line['partition']}": line for line in kdump("offsets", str(logs))}


def hang(logs: Path, now: int) -> None:
    """Append a transactional batch of a producer that no coordinator knows, an hour old, to the logs of HANGING."""
    ends = offsets(logs)
    for partition, producer_id in HANGING.items():
        line = ends[partition]
        record = magic_2.write_record(timestamp_delta=0, offset_delta=0, key=None, value=b"late")
        header = record_layout.BatchHeader(
            base_offset=int(str(line["latest"])),
            length=0,
            partition_leader_epoch=int(str(line["leaderEpoch"])),
            magic=2,
            crc=0,
            attributes=record_layout.TRANSACTIONAL_FLAG,
            last_offset_delta=0,
            base_timestamp=now - AGE,
            max_timestamp=now - AGE,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            records_count=1,
        )
        with max((logs / partition).glob("*.log")).open("ab") as log:
            log.write(magic_2.write_batch(header, record))


def found_by_broker(broker: Broker) -> set[tuple[str, ...]]:
    """Return topic, partition, producer id and start offset from the output of find-hanging."""
    asked = (
        "--bootstrap-server",
        broker.address,
        "find-hanging",
        "--broker-id",
        "1",
        "--max-transaction-timeout",
        "15",
    )
    rows = [[cell.strip() for cell in line.split("\t")] for line in tool(*asked).splitlines()]
    return {(row[0], row[1], row[2], row[5]) for row in rows[1:] if len(row) > 5}


def found_by_kdump(broker: Broker) -> dict[tuple[str, ...], str]:
    """Return the same from kdump, with the command that ends each transaction."""
    lines = kdump("transactions", str(broker.logs), "--bootstrap-server", broker.address)
    names = ("topic", "partition", "producerId", "startOffset")
    return {
        tuple(str(line[name]) for name in names): str(line["abort"]) for line in lines if line.get("state") == "hanging"
    }


def prove(broker: Broker) -> list[str]:
    wrong = []
    theirs, ours = found_by_broker(broker), found_by_kdump(broker)
    if theirs != set(ours) or len(theirs) != len(HANGING):
        wrong.append(f"find-hanging names {sorted(theirs)}, kdump {sorted(ours)}")
    before = offsets(broker.logs)
    for key, line in ours.items():
        name, *words = shlex.split(line)
        if name != "kafka-transactions.sh":
            wrong.append(f"no line of the tool: {line}")
            continue
        tool(*words)
        print(f"{'-'.join(key[:2])}: ran {line}")
    if left := found_by_broker(broker):
        wrong.append(f"find-hanging still names {sorted(left)}")
    if left_here := found_by_kdump(broker):
        wrong.append(f"kdump still finds {sorted(left_here)}")
    after = offsets(broker.logs)
    for topic, number, _, _ in ours:
        name = f"{topic}-{number}"
        moved = before[name]["lastStable"], after[name]["lastStable"]
        print(f"{name}: last stable offset {moved[0]} -> {moved[1]}, log end {after[name]['latest']}")
        if moved[1] != after[name]["latest"] or moved[0] == moved[1]:
            wrong.append(f"the last stable offset of {name} does not move to the end: {moved}")
    still_open = {
        str(line["transactionalId"]) for line in kdump("transactions", str(broker.logs)) if line.get("state") == "open"
    }
    if still_open != {"open-3"}:
        wrong.append(f"open are {still_open}, and not open-3 alone")
    return wrong


def main() -> int:
    parser = arguments.parser(__doc__)
    parser.add_argument("release", nargs="?", default="4.2.2")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        settings = {"transaction.state.log.num.partitions": "3", "transaction.state.log.min.isr": "1"}
        with Broker(options.release, folder, settings) as broker:
            broker.create(TOPICS)
            if broker.client(CLIENT, broker.address, *SCRIPT).wait(300):
                raise RuntimeError("the client failed")
            broker.stop()
            hang(broker.logs, int(time.time() * 1000))
            broker.crash()
            broker.start()
            wrong = prove(broker)
    print("\n".join(wrong) if wrong else f"{len(HANGING)} hanging transactions: found, and ended by kdump's lines")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
