"""Tests that a cluster of several sets cannot pass as they are, and why: by file, class or test, the nearest counts."""

import os
import re
import sys

SKIP = "skip"
ALONE = "alone"            # on a server of its own
ONE_NODE = "one node"      # all clients come to one node
ONE_TABLET = "one tablet"  # tables are not cut, and each lies on one set

TELLS_TABLETS = (SKIP, "TABLE INFO tells of placement and tablets, too")

PLANS = (ONE_TABLET, "each set plans for the rows that it has, and STATS tell of it")
FEEDS = (SKIP, "feeds over several sets come with one moment")
STAMPS = (SKIP, "stamps of a set ascend, and its own records have used up later ones")
EXPORTS = (SKIP, "cellar-export reads a snapshot, which comes with one moment")

A_NODES_CLIENTS = (ONE_NODE, "INFO, CLIENT, limits and what PUBLISH counts are of a node")

COPIES = (SKIP, "snapshots and copies over several sets come with one moment")
TYPES = (SKIP, "types are not changed over several sets yet")

OWN_DIGEST = (SKIP, "DEBUG DIGEST is of what the node has")

OPEN = "no reply of one server was taken against the cluster's yet: "

EXCEPTIONS = {
    "test_tracking": (SKIP, OPEN + "who is told of changes on other sets"),
    "test_table_events": (SKIP, "keyspace events are not passed on to other nodes"),
    "test_watches": (SKIP, OPEN + "reloads and crashes under transactions"),
    "test_clients": (SKIP, OPEN + "suites of clients of other languages"),
    "test_snapshots.Snapshots.test_the_file_has_each_leaf_once": COPIES,
    "test_io_threads": A_NODES_CLIENTS,
    "test_turns": A_NODES_CLIENTS,
    "test_turns.TurnsTest.test_a_long_pipeline_does_not_keep_the_others_waiting": (SKIP, "what is passed on is not sliced here"),
    "test_whole_rows.WholeRowsTest.test_long_rows_among_short_ones": (SKIP, "EXEC over sets is not built"),
    "test_orders.SchemaTest.test_table_show_rebuilds_the_table": OWN_DIGEST,
    "test_monitor": (SKIP, "MONITOR shows what each node carries out"),
    "test_sentinel_answers": (SKIP, "a sentinel watches one set"),
    "test_operator": A_NODES_CLIENTS,
    "test_copy.Copies.test_a_copy_that_is_not_finished_leaves_nothing": COPIES,
    "test_copy.DropKeep": (SKIP, "drop-keep does not hold tables on several sets until one moment is built"),
    "test_column_types.TypeChangeTest.test_a_client_that_leaves_and_a_process_that_ends": TYPES,
    "test_limits.ClientLimitsTest.test_timeout_spares_who_waits_and_who_reads": FEEDS,
    "test_server.TransactionTest.test_multi_atomic_undoes_all": (SKIP, "DDL goes over all sets, not into an EXEC"),
    "test_limits": A_NODES_CLIENTS,
    "test_server.PubSubTest": A_NODES_CLIENTS,
    "test_server.OperatorTest": A_NODES_CLIENTS,
    "test_retention.RetentionTest.test_a_looser_policy_brings_nothing_back": STAMPS,
    "test_folds.SumTest.test_the_examples_of_the_contract": STAMPS,
    "test_schema.KeyspaceTest.test_create_list_drop": (SKIP, "a cluster has a keyspace of its own"),
    "test_schema.TableTest.test_create_info_show_drop": TELLS_TABLETS,
    "test_heat": (SKIP, "HEAT and HOTKEYS are of one node yet"),
    "test_heat_tools": (SKIP, "HEAT and HOTKEYS are of one node yet"),
    "test_export": EXPORTS,
    "test_folds.HllTest.test_export_and_import_keep_states": EXPORTS,
    "test_import.ImportTest.test_types_of_a_header_are_those_of_columns": EXPORTS,
    "test_avro": EXPORTS,
    "test_index_choice.ChoiceTest": PLANS,
    "test_indexes.IndexTest.test_the_smallest_column_group_serves_scans_that_do_not_name_it": PLANS,
    "test_index_limits.CountTest.test_it_takes_no_longer_for_a_large_table": (SKIP, "counts ask other sets: times tell nothing"),
    "test_acl.AclTest": (ONE_NODE, "ACL LOG is a node's"),
    "test_cells.RetentionTest.test_versions_and_ages": TELLS_TABLETS,
    "test_update.SlicedUpdateTest.test_killed_in_the_middle_each_row_is_whole":
        (SKIP, "sets carry out their pieces beside each other: what a crash leaves done is not the first rows"),
}

# What the contract has a cluster refuse. A test that fails behind such a refusal is done again with tables that lie on one
# set each; if that does not help either, it is skipped.
REFUSALS = (
    (r"CROSSSET CSCAN \.\.\. SNAPSHOT", "a SNAPSHOT cursor over several sets comes with one moment"),
    (r"CROSSSET table .* (SNAPSHOT CREATE|COPY) takes", "snapshots and copies over several sets come with one moment"),
    (r"CROSSSET snapshots and copies are not over", "snapshots and copies over several sets come with one moment"),
    (r"CROSSSET .*(feeds? |FEED)", "feeds over several sets come with one moment"),
    (r"CROSSSET .* touches set .* nothing was done", "EXEC over sets is not built"),
    (r"CROSSSET table .* goes over them; nothing was done", "EXEC over sets is not built"),
    (r"CROSSSET .* goes over all sets, not into an EXEC", "EXEC over sets is not built"),
    (r"CROSSSET .* watch its rows", "WATCH of a table on several sets"),
    (r"a UNIQUE index needs TABLE ALTER", "UNIQUE needs one set"),
    (r"CROSSSET table .*: no (CEXPLAIN|TABLE SAMPLE) goes over", "not over several sets yet"),
    (r"CROSSSET (CNEAR|CUPDATE) \.\.\. INDEX", "not over several sets yet"),
    (r"CROSSSET table .* is not changed over several sets yet", "not over several sets yet"),
    (r"CROSSSET EACH: a group may lie", "not over several sets yet"),
)


def refusal_of(errors):
    """Why the contract has a cluster refuse what one server does; None: it has not refused any of it."""
    for error in errors:
        for pattern, reason in REFUSALS:
            if re.search(pattern, error):
                return f"{reason}: {error[:120].strip()}"
    return None


def exception_of(test):
    """The kind of exception that a test, or a class of tests, is, and its reason."""
    cls = test if isinstance(test, type) else type(test)
    file = os.path.basename(sys.modules[cls.__module__].__file__)[:-len(".py")]
    names = [file, f"{file}.{cls.__name__}"]
    if cls is not test:
        names.append(f"{names[-1]}.{test._testMethodName}")
    for name in reversed(names):
        if name in EXCEPTIONS:
            return EXCEPTIONS[name]
    return None, ""
