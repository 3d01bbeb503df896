"""From single measurements to the tables: medians, ratios, Markdown, an SVG plot. Pure functions."""

import html
import statistics


def median_of(results, path):
    """Median of a figure over several JSON results; `path` is its keys, joined by '/'."""
    values = []
    for result in results:
        for key in path.split("/"):
            result = result[key]
        values.append(result)
    return statistics.median(values)


def ratio(cellar, redis):
    """cellar / redis, None when one of them is unknown."""
    if cellar is None or redis is None or cellar < 0 or redis <= 0:
        return None
    return cellar / redis


def show(value, digits=2):
    """A number for the table: enough digits to read, thousands set apart."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}f}"


def summarize_pair(name, pipeline, cellar_results, redis_results):
    """One row of the main table: a dict of medians and ratios."""
    row = {"name": name, "pipeline": pipeline}
    for kind, results in (("cellar", cellar_results), ("redis", redis_results)):
        if not results:
            continue
        row[kind] = {
            "ops": median_of(results, "commands_per_second"),
            "cpu": median_of(results, "server_cpu_us_per_command"),
            "p50": median_of(results, "latency_us/p50"),
            "p99": median_of(results, "latency_us/p99"),
            "p99.9": median_of(results, "latency_us/p99.9"),
            "errors": sum(r["errors"] for r in results),
        }
    if "cellar" in row and "redis" in row:
        row["cpu_ratio"] = ratio(row["cellar"]["cpu"], row["redis"]["cpu"])
        row["ops_ratio"] = ratio(row["cellar"]["ops"], row["redis"]["ops"])
    return row


def pair_cells(row):
    """The text of each column of a row of the main table."""
    cells = [row["name"], str(row["pipeline"])]
    for kind in ("cellar", "redis"):
        figures = row.get(kind)
        if figures is None:
            cells += ["-", "-", "-"]
            continue
        latency = "/".join(f"{figures[p]:,.0f}" for p in ("p50", "p99", "p99.9"))
        cells += [show(figures["ops"], 0), show(figures["cpu"], 3), latency]
    cells += [show(row.get("cpu_ratio")), show(row.get("ops_ratio"))]
    if any(row.get(kind, {}).get("errors") for kind in ("cellar", "redis")):
        cells[0] += " (ERRORS)"
    return cells


PAIR_HEADER = ["pair", "pipeline", "Cellar req/s", "CPU us", "p50/p99/p99.9 us", "Redis req/s",
               "CPU us", "p50/p99/p99.9 us", "CPU ratio", "req/s ratio"]
FIGURE_HEADER = ["figure", "unit", "Cellar", "Redis", "ratio"]


def figure_cells(row):
    """(name, unit, cellar, redis) with its ratio, as text."""
    name, unit, cellar, redis = row
    return [name, unit, show(cellar), show(redis), show(ratio(cellar, redis))]


def markdown(header, rows):
    """A Markdown table: first column to the left, the others to the right."""
    lines = ["| " + " | ".join(header) + " |",
             "| --- |" + " ---: |" * (len(header) - 1)]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join(lines)


def plain(header, rows):
    """The same for a terminal, in aligned columns."""
    table = [header] + rows
    widths = [max(len(cells[i]) for cells in table) for i in range(len(header))]
    lines = []
    for cells in table:
        aligned = [cells[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(cells[1:], widths[1:])]
        lines.append("  ".join(aligned).rstrip())
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def svg_bars(title, bars):
    """Horizontal bars of (label, ratio), a line at 1.0: shorter than the line is cheaper than Redis."""
    left, width, step, top = 330, 420, 22, 46
    most = max([1.2] + [value for _, value in bars])
    scale = width / most
    height = top + step * len(bars) + 20
    one = left + scale
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 70}" '
             f'height="{height}" font-family="sans-serif" font-size="13">',
             f'<text x="10" y="22" font-size="16">{html.escape(title)}</text>']
    for i, (label, value) in enumerate(bars):
        y = top + step * i
        color = "#3a7" if value <= 1.0 else "#c53"
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{html.escape(label)}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{value * scale:.1f}" height="{step - 6}" '
                     f'fill="{color}"/>')
        parts.append(f'<text x="{left + value * scale + 5:.1f}" y="{y + 13}">{value:.2f}</text>')
    parts.append(f'<line x1="{one:.1f}" y1="{top - 8}" x2="{one:.1f}" y2="{height - 12}" stroke="#333" '
                 'stroke-dasharray="4 3"/>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def instructions_each(few, many, few_commands, many_commands):
    """Instructions per command from two runs: what both have in common (start-up) cancels out."""
    if many_commands <= few_commands:
        raise ValueError("the second run must have more commands")
    return (many - few) / (many_commands - few_commands)


def callgrind_total(text):
    """The sum of all instructions from a callgrind output file."""
    for line in text.splitlines():
        if line.startswith(("summary:", "totals:")):
            return int(line.split()[1])
    raise ValueError("no total in the callgrind file")
