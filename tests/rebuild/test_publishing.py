"""``node-N.properties``: the lines of server.properties that a rebuilt node needs."""

from __future__ import annotations

from kdump.broker_start import release
from kdump.formats import meta_properties
from kdump.rebuild import metadata
from kdump.rebuild.nodes import Listeners, parse_nodes
from kdump.rebuild.publishing import properties
from tests.rebuild.test_metadata import found, log_dir


def lines(tmp_path, *specs, number=0, to="4.3.1", listeners=Listeners(), delays=False, old=()):  # noqa: B008  a constant
    lost = found(log_dir(tmp_path / f"{len(specs)}-{to}"))
    for name, protocol in old:
        endpoint = {"name": name, "host": "h", "port": 1, "securityProtocol": protocol}
        lost.image.cluster.brokers[9] = {"endPoints": [endpoint]}
    nodes = parse_nodes(specs)
    cluster = metadata.NewCluster(release.of(to), nodes, {}, {}, -1, listeners)
    text = "\n".join(properties(nodes[number], cluster, lost, "/data", 4321, delays=delays))
    return meta_properties.read(text.encode()).values  # the syntax is the same


def test_a_node_of_several_knows_the_quorum_and_its_own_address(tmp_path):
    found_ = lines(tmp_path, "1@k1:9092/9093", "2@[::1]:9092", "3@k3:9094/9095", number=1)
    assert found_["node.id"] == "2"
    assert found_["process.roles"] == "broker"
    assert found_["controller.quorum.bootstrap.servers"] == "k1:9093,k3:9095"
    assert "controller.quorum.voters" not in found_
    assert found_["listeners"] == "PLAINTEXT://:9092"
    assert found_["advertised.listeners"] == "PLAINTEXT://[::1]:9092"
    assert found_["log.dirs"] == "/data"
    assert found_["offsets.retention.minutes"] == "4321"
    assert found_["transaction.state.log.replication.factor"] == "3"
    assert "log.initial.task.delay.ms" not in found_


def test_a_release_without_voters_in_the_log_has_them_here(tmp_path):
    found_ = lines(tmp_path, "1@k1:9092/9093", "3@k3:9094/9095", to="3.8.1")
    assert found_["controller.quorum.voters"] == "1@k1:9093,3@k3:9095"
    assert "controller.quorum.bootstrap.servers" not in found_
    assert "share.coordinator.state.topic.min.isr" not in found_


def test_listeners_keep_their_names_and_protocols(tmp_path):
    names = Listeners("REPLICATION-9091", "CONTROLPLANE-9090")
    found_ = lines(tmp_path, listeners=names, old=[("REPLICATION-9091", 1)])
    assert found_["inter.broker.listener.name"] == "REPLICATION-9091"
    assert found_["controller.listener.names"] == "CONTROLPLANE-9090"
    assert found_["listener.security.protocol.map"] == "REPLICATION-9091:SSL,CONTROLPLANE-9090:PLAINTEXT"


def test_the_first_retention_check_waits_where_it_would_delete(tmp_path):
    assert lines(tmp_path, delays=True)["log.initial.task.delay.ms"] == "3600000"
