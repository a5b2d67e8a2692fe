from kdump.answers.metadata.answer import ChangedRecord
from kdump.printers.answer_tables import metadata


def test_changed_credentials_of_one_user_have_their_mechanisms():
    def changed(mechanism):
        data = {"name": "alice", "mechanism": mechanism, "iterations": 8192}
        was = {"type": "USER_SCRAM_CREDENTIAL_RECORD", "version": 0, "data": {**data, "iterations": 4096}}
        return ChangedRecord("USER_SCRAM_CREDENTIAL_RECORD", 0, data, was, None)

    (table,) = metadata.differences([changed(1), changed(2)])
    assert [row[-1] for row in table.rows] == [
        "name=alice mechanism=1 iterations=4096->8192",
        "name=alice mechanism=2 iterations=4096->8192",
    ]
