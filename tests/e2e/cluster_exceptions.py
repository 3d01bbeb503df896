"""Tests that a cluster of several sets cannot pass as they are, and why: by file, class or test, the nearest counts."""

import os
import re
import sys

SKIP = "skip"
ALONE = "alone"            # on a server of its own
ONE_NODE = "one node"      # all clients come to one node
ONE_TABLET = "one tablet"  # tables are not cut, and each lies on one set
STILL = "still"            # in chaos nothing moves; tablets are split and merged
CALM = "calm"              # there is no chaos
# Several of the last four at once stand in one text.

TELLS_TABLETS = (SKIP, "TABLE INFO tells of placement and tablets, too")

PLANS = (f"{ONE_TABLET}, {STILL}", "each set plans for the rows that it has, and STATS tell of it")
FEEDS = (SKIP, "feeds over several sets come with one moment")
STAMPS = (SKIP, "stamps of a set ascend, and its own records have used up later ones")

A_NODES_CLIENTS = (ONE_NODE, "INFO, CLIENT, limits and what PUBLISH counts are of a node")

A_NODES_WAITING = (f"{ONE_NODE}, {CALM}", "who makes chaos waits, too, and is counted among those who do")

COPIES = (SKIP, "snapshots and copies over several sets come with one moment")

OWN_DIGEST = (SKIP, "DEBUG DIGEST is of what the node has")
STILL_DIGEST = (STILL, OWN_DIGEST[1])


EXCEPTIONS = {
    "test_feeds.HowItIsRead.test_waiting": (SKIP, "what $ is all sets are asked, which takes a moment"),
    "test_feeds.HowItIsRead.test_waiting_ends": A_NODES_CLIENTS,
    "test_feeds.WhoMayRead.test_rights_that_go_end_the_wait": A_NODES_WAITING,
    "test_feeds.HowItIsRead.test_figures": (SKIP, "FEED INFO tells of the feed's home, and of sets that hold it back, too"),
    "test_feed_groups.OwnTest.test_a_reader_with_claim_waits_until_something_is_idle": A_NODES_CLIENTS,
    "test_feed_groups.OwnTest.test_a_pause_of_writes_holds_readers_of_groups": A_NODES_CLIENTS,
    "test_feed_groups.OwnTest.test_no_pending_beyond_the_limit": (SKIP, "INFO is of a node, and groups are at their home"),
    "test_feed_groups.OwnTest.test_events": (SKIP, "keyspace events are not passed on to other nodes"),
    "test_feed_old.WhatOldTells.test_deletions_are_told_cell_by_cell": (SKIP, "what sets delete for one command is told in the order of their clocks"),
    "test_folds.HllTest.test_export_and_import_keep_states": OWN_DIGEST,
    **{name: (ALONE, "its passwords are CONFIG SET requirepass, and those of a cluster belong to its users")
       for name in ("test_web", "test_web_access", "test_web_console", "test_web_graphs", "test_web_rows", "test_web_state")},
    "test_web_set.TestSetPage": (ALONE, "it makes sets of its own"),
    "test_web_set.ClusterPage": (ALONE, "it makes sets of its own"),
    "test_whole_rows.WholeRowsTest.test_long_rows": (SKIP, "EXEC over sets is not built"),
    "test_snapshots.Snapshots.test_what_its_own_exec_writes_behind_it_is_behind_its_id": (SKIP, "EXEC over sets is not built"),
    "test_reply_memory": (SKIP, "what a client has not read is counted at its node, and rows are read at others"),
    "test_tracking": (SKIP, "what other sets change is told a moment later: test_tracking_sets waits for it"),
    "test_table_events": (SKIP, "keyspace events are not passed on to other nodes"),
    "test_clients.ExporterTest": (SKIP, "an exporter asks one node, whose INFO counts what it carries out itself"),
    "test_snapshots.Snapshots.test_every_reading_command_sees_the_moment": OWN_DIGEST,
    "test_snapshots.Snapshots.test_memory": (SKIP, "INFO is of a node, and rows lie on others"),
    "test_snapshots.Snapshots.test_the_file_has_each_leaf_once": COPIES,
    "test_io_threads": A_NODES_CLIENTS,
    "test_io_threads.ThreadsTest.test_memory_held_for_who_does_not_read_is_counted":
        (f"{ONE_NODE}, {CALM}", "what tablets that move or are cut leave in the node's log and its buffers is counted, too"),
    "test_io_threads.ThreadsTest.test_the_place_of_who_has_left_is_free": (SKIP, "other nodes take places as clients do, and come and go"),
    "test_turns": A_NODES_CLIENTS,
    "test_turns.TurnsTest.test_a_long_pipeline_does_not_keep_the_others_waiting": (SKIP, "what is passed on is not sliced here"),
    "test_whole_rows.WholeRowsTest.test_long_rows_among_short_ones": (SKIP, "EXEC over sets is not built"),
    "test_orders.SchemaTest.test_table_show_rebuilds_the_table": OWN_DIGEST,
    "test_column_types.ColumnTypesTest.test_show_and_info_and_restart": OWN_DIGEST,
    "test_column_types.TypeChangeTest.test_events": (SKIP, "keyspace events are not passed on to other nodes"),
    "test_avro.AvroTest.test_debians_library_reads_and_writes_it": OWN_DIGEST,
    "test_avro.AvroTest.test_it_comes_back_the_same": OWN_DIGEST,
    "test_avro.AvroTest.test_an_import_and_an_export_that_are_killed_go_on": OWN_DIGEST,
    "test_snapshots.Snapshots.test_info_and_list": (SKIP, "what tables hold for snapshots is told of the node's own rows"),
    "test_server.OperatorTest.test_monitor_and_slow_log_show_no_secrets": (SKIP, "MONITOR shows what each node carries out"),
    "test_feed_old.WhatExpiredTells":
        (SKIP, "entries of several sets come in the order of their clocks, which these tests stop"),
    "test_export.ExportTest.test_a_wide_row_is_several_lines": OWN_DIGEST,
    "test_export.ExportTest.test_rows_read_back_give_the_same_store": OWN_DIGEST,
    "test_limits.PatternTest.test_a_feed_is_read_a_few_times_by_a_command":
        (SKIP, "groups of two feeds may have two homes, which no XREADGROUP goes over"),
    "test_io_threads.ThreadsTest.test_connections_are_spread_evenly_and_info_counts_them":
        (SKIP, "nodes have connections of each other"),
    "test_errors.StaleCursorTest.test_a_snapshot_cursor_dies_with_the_server":
        (SKIP, "its moment is in the logs of all sets, and outlives a node"),
    "test_monitor": (SKIP, "MONITOR shows what each node carries out"),
    "test_sentinel_answers": (SKIP, "a sentinel watches one set"),
    "test_operator": A_NODES_CLIENTS,
    "test_operator.BlockedTest": A_NODES_WAITING,
    "test_operator.TransactionTest.test_paused_clients_count_as_blocked": A_NODES_WAITING,
    "test_copy.Copies.test_a_copy_that_is_not_finished_leaves_nothing": COPIES,
    "test_limits.ClientLimitsTest.test_timeout_spares_who_waits_and_who_reads": FEEDS,
    "test_server.TransactionTest.test_multi_atomic_undoes_all": (SKIP, "DDL goes over all sets, not into an EXEC"),
    "test_limits": A_NODES_CLIENTS,
    "test_limits.PatternTest.test_words_that_a_client_has_us_keep_are_bounded": (SKIP, "CLIENT TRACKING ON BCAST is refused over several sets"),
    "test_server.PubSubTest": A_NODES_CLIENTS,
    "test_server.OperatorTest": A_NODES_CLIENTS,
    "test_retention.RetentionTest.test_a_looser_policy_brings_nothing_back": STAMPS,
    "test_folds.SumTest.test_the_examples_of_the_contract": STAMPS,
    "test_schema.KeyspaceTest.test_create_list_drop": (SKIP, "a cluster has a keyspace of its own"),
    "test_schema.TableTest.test_create_info_show_drop": TELLS_TABLETS,
    "test_heat.TestHotKeys": (SKIP, "HOTKEYS tells of each node by itself"),
    "test_index_choice.ChoiceTest": PLANS,
    "test_no_surprise.NotesOfAnyRead": PLANS,
    "test_explain.ExplainTest.test_the_fields": PLANS,
    "test_explain.ExplainTest.test_bounds_of_the_table": PLANS,
    "test_explain.ExplainTest.test_analyze": PLANS,
    "test_indexes.IndexTest.test_the_smallest_column_group_serves_scans_that_do_not_name_it": PLANS,
    "test_cassandra.CassandraTest.test_forms_of_the_same_dump": STILL_DIGEST,
    "test_copy.Copies.test_the_copy_is_equal_and_a_table_of_its_own": STILL_DIGEST,
    "test_copy.Copies.test_others_are_served_and_the_moment_is_the_beginning": STILL_DIGEST,
    "test_limits.MemoryTest.test_beyond_maxmemory_writes_are_refused_and_the_rest_goes_on":
        (f"{ONE_NODE}, {STILL}", "maxmemory and DEBUG DIGEST are of what the node has"),
    "test_snapshots.Snapshots.test_time_stands_still_and_a_ttl_is_exact": STILL_DIGEST,
    "test_heat.TestHeat":
        (STILL, "a set divides what it counts by the rows that it had then; those that come later lie where they are dense"),
    "test_put_many.PutManyTest": (CALM, STAMPS[1]),
    "test_times.TimeUuidsTest.test_now_makes_new_ones_that_ascend": (STILL, "they tell which set has made them"),
    "test_python_client.PythonClientTest.test_the_readme_is_true":
        (SKIP, "a feed tells of a change when all clocks are there, and a snapshot puts them some milliseconds ahead"),
    "test_index_limits.CountTest.test_it_takes_no_longer_for_a_large_table": (SKIP, "counts ask other sets: times tell nothing"),
    "test_acl.AclTest": (ONE_NODE, "ACL LOG is a node's"),
    "test_acl.AclTest.test_a_hidden_family_is_as_good_as_absent":
        (f"{ONE_NODE}, {CALM}", "MEMORY USAGE is a node's, and TABLE INFO tells how many tablets there are"),
    "test_acl.AclTest.test_a_snapshot_cursor_dies_with_the_right_to_it": (SKIP, "each page shows what its user may read by then"),
    "test_cells.ScanTest.test_a_snapshot_cursor_sees_the_table_as_at_its_first_call":
        (SKIP, "the snapshot is dropped behind the last page, of which nodes hear a moment later"),
    "test_examples.TimeSeriesTest.test_old_readings_are_never_seen_from_the_moment_they_are_due": STAMPS,
    "test_cells.RetentionTest.test_versions_and_ages": TELLS_TABLETS,
    "test_watches.OtherStateTest.test_caches_are_told_to_forget_everything": (SKIP, "DEBUG RELOAD is not allowed in a set"),
    **{name: (STILL, "a tablet that moves ends what is watched: EXEC is null")
       for name in ("test_watches", "test_chunking", "test_update.UpdateTest.test_watch",
                    "test_folds.SumTest.test_indexes_and_watches_see_folds",
                    "test_server.TransactionTest.test_cwatch_looks_at_one_row")},
    "test_update.SlicedUpdateTest.test_killed_in_the_middle_each_row_is_whole":
        (SKIP, "sets carry out their pieces beside each other: what a crash leaves done is not the first rows"),
}

# What the contract has a cluster refuse. A test that fails behind such a refusal is done again with tables that lie on one
# set each; if that does not help either, it is skipped.
REFUSALS = (
    (r"CROSSSET .*(feeds? |FEED)", "feeds over several sets come with one moment"),
    (r"CROSSSET .* touches set .* nothing was done", "EXEC over sets is not built"),
    (r"CROSSSET table .* goes over them; nothing was done", "EXEC over sets is not built"),
    (r"CROSSSET .* goes over all sets, not into an EXEC", "EXEC over sets is not built"),
    (r"CROSSSET .* watch its rows", "WATCH of a table on several sets"),
    (r"a UNIQUE index needs TABLE ALTER", "UNIQUE needs one set"),
    (r"CROSSSET table .* has rows on other sets: TABLET MOVE its tablets", "COLOCATE and WHOLE come while one set has the table"),
    (r"CROSSSET CLIENT TRACKING ON BCAST", "what is changed on other sets is not told"),
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
