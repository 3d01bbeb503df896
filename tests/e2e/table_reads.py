"""A call of every command that reads a table by its name, for tests of what all of them owe.

The table is `t`: a row `r` with a column `f:a`, and an index `i` of that column.
"""

READS = {
    "cagg": "CAGG t REDUCE COUNT f:a",
    "ccount": "CCOUNT t",
    "cexists": "CEXISTS t r",
    "cexplain": "CEXPLAIN CGET t r f:a",
    "cget": "CGET t r f:a",
    "cmget": "CMGET t r f:a f:b",
    "cnear": "CNEAR t r",
    "crow": "CROW t r",
    "crows": "CROWS t 1 r",
    "cscan": "CSCAN t 0",
    "exists": "EXISTS t",
    "family|info": "FAMILY INFO t f",
    "heat": "HEAT t",
    "index|info": "INDEX INFO t i",
    "index|list": "INDEX LIST t",
    "memory|usage": "MEMORY USAGE t",
    "object|encoding": "OBJECT ENCODING t",
    "object|idletime": "OBJECT IDLETIME t",
    "object|refcount": "OBJECT REFCOUNT t",
    "pttl": "PTTL t",
    "table|info": "TABLE INFO t",
    "table|sample": "TABLE SAMPLE t 2",
    "table|show": "TABLE SHOW t",
    "touch": "TOUCH t",
    "ttl": "TTL t",
    "type": "TYPE t",
}
# Those that answer another way: of feeds and the map of a cluster, and what is always refused.
OTHERS = {
    "eval_ro", "evalsha_ro", "fcall_ro", "feed|behind", "feed|entries", "feed|info", "feed|resolved", "object|freq", "xinfo|consumers", "xinfo|groups",
    "xinfo|stream", "xlen", "xpending", "xrange", "xread", "xrevrange", "tablet|list", "tablet|route",
}
# Of those, the ones whose changes are told by the row.
OF_ROWS = {"cexists", "cget", "cmget", "crow"}


def reading_commands(client):
    """The full names of all commands that read and name a key."""
    found = set()

    def add(row):
        flags = {flag.decode() if isinstance(flag, bytes) else str(flag) for flag in row[2]}
        names_keys = row[3] > 0 or "movablekeys" in flags
        if "readonly" in flags and names_keys:
            found.add(row[0].decode() if isinstance(row[0], bytes) else str(row[0]))
        for subcommand in row[9]:
            add(subcommand)

    for row in client("COMMAND"):
        add(row)
    return found
