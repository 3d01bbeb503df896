"""Whether a history of transactions that append to rows, and read them, is strictly serializable.

Each append adds a value of its own, and a read shows all that was appended to the row, in order: so a
read tells which transactions came before it. From that a graph is made, in linear time (after Elle, by
Kingsbury and Alvaro, 2020):

  wrote before   of two appends to a row, in the order that reads show
  was read       from an append to a read that shows it last
  was not read   from a read to the append that comes next, or to those that no read shows
  was over       from a transaction to those that began after its end

A cycle cannot be put in any order. What needs no graph is looked at before: reads that contradict each
other, values that nobody appended, or that were refused, appends of one transaction of which a read shows
some only.
"""

import dataclasses

FOREVER = float('inf')


@dataclasses.dataclass
class Transaction:
    """`steps` are ('append', row, value) and ('read', row, values), in order. `end` is FOREVER if the outcome
    is not known: then its reads have None. One that was surely not done is `refused`."""

    begin: float
    end: float
    steps: list
    refused: bool = False


def fault(transactions):
    """What is wrong, as a sentence; None if the history is strictly serializable."""
    writer = {}
    for number, transaction in enumerate(transactions):
        for kind, row, value in transaction.steps:
            if kind != 'append':
                continue
            if (row, value) in writer:
                raise ValueError(f'{value!r} is appended to {row!r} twice: the history tells nothing')
            writer[row, value] = number
    orders, wrong = _orders(transactions)
    wrong = wrong or _fault_of_reads(transactions, writer)
    if wrong:
        return wrong
    return _fault_of_graph(transactions, writer, orders)


def _reads(transactions):
    for number, transaction in enumerate(transactions):
        for place, (kind, row, values) in enumerate(transaction.steps):
            if kind == 'read' and values is not None:
                yield number, place, row, list(values)


def _orders(transactions):
    """For each row the values in order, as the longest read shows them."""
    orders = {}
    for number, _, row, values in _reads(transactions):
        longest = orders.setdefault(row, values)
        short, long = sorted((longest, values), key=len)
        if long[:len(short)] != short:
            return orders, f'transaction {number} read {row!r} in another order than others'
        orders[row] = long
    for row, values in orders.items():
        if len(set(values)) != len(values):
            return orders, f'a value stands twice in {row!r}'
    return orders, None


def _fault_of_reads(transactions, writer):
    own = [{} for _ in transactions]
    for number, transaction in enumerate(transactions):
        for kind, row, value in transaction.steps:
            if kind == 'append':
                own[number].setdefault(row, []).append(value)
    for number, place, row, values in _reads(transactions):
        for value in values:
            source = writer.get((row, value))
            if source is None:
                return f'transaction {number} read {value!r} in {row!r}, which nobody appended'
            if transactions[source].refused:
                return f'transaction {number} read {value!r} in {row!r}, which was refused'
        # Of one transaction's appends either all, or none; of its own what it has appended so far.
        so_far = [step[2] for step in transactions[number].steps[:place] if step[:2] == ('append', row)]
        if so_far and values[-len(so_far):] != so_far:
            return f'transaction {number} did not read its own appends to {row!r}'
        others = values[:len(values) - len(so_far)]
        if set(others) & set(own[number].get(row, ())):
            return f'transaction {number} read what it was still to append to {row!r}'
        if others:
            source = writer[row, others[-1]]
            if own[source][row][-1] != others[-1]:
                return f'transaction {number} read {row!r} in the middle of transaction {source}'
    return None


def _fault_of_graph(transactions, writer, orders):
    edges = {number: set() for number, each in enumerate(transactions) if not each.refused}

    def edge(a, b):
        if a != b:
            edges[a].add(b)

    place_of = {row: {value: place for place, value in enumerate(values)} for row, values in orders.items()}
    unseen = {}
    for (row, value), number in writer.items():
        if not transactions[number].refused and value not in place_of.get(row, ()):
            unseen.setdefault(row, []).append(number)
    for row, values in orders.items():
        for before, after in zip(values, values[1:]):
            edge(writer[row, before], writer[row, after])
        for number in unseen.get(row, ()):
            # No read shows it. If it was done, then behind all that are shown.
            if transactions[number].end != FOREVER and values:
                edge(writer[row, values[-1]], number)
    for number, _, row, values in _reads(transactions):
        if values:
            edge(writer[row, values[-1]], number)
        rest = orders[row][len(values):]
        own = {step[2] for step in transactions[number].steps if step[:2] == ('append', row)}
        following = next((value for value in rest if value not in own), None)
        if following is not None:
            edge(number, writer[row, following])
        for later in unseen.get(row, ()):
            if transactions[later].end != FOREVER:
                edge(number, later)
    _add_time(transactions, edges)
    cycle = _cycle(edges)
    if cycle is None:
        return None
    names = ' -> '.join(str(each) for each in cycle if isinstance(each, int))
    return f'transactions {names} -> ... stand in no order'


def _add_time(transactions, edges):
    """Edges from a transaction to those that began after its end, by way of moments: each end has one, which
    leads to the next; a linear number of edges. What is not known to be done has no end, and one that
    nobody has seen no place."""
    marks = []
    for number in list(edges):
        marks.append((transactions[number].begin, 0, number))
        if transactions[number].end != FOREVER:
            marks.append((transactions[number].end, 1, number))
    moment = None
    for time, is_end, number in sorted(marks):
        if not is_end:
            if moment is not None:
                edges[moment].add(number)
            continue
        following = ('until', time, number)
        edges[following] = set()
        if moment is not None:
            edges[moment].add(following)
        edges[number].add(following)
        moment = following


def _cycle(edges):
    """The nodes of a strongly connected component of more than one (Tarjan, without recursion)."""
    index, low, on_stack, stack, count = {}, {}, set(), [], 0
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        on_stack.add(root)
        while work:
            node, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = count
                    count += 1
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(edges[other])))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    if len(component) > 1:
                        return component[::-1]
    return None
