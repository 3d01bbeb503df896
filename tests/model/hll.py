"""HyperLogLog (cellar-model(7), "AGGREGATE FAMILIES"): a state as a set of (register, rank), its bytes, its estimate.

Written from the papers and from what a Redis says of the same inputs, not from the server's code.
"""

import math

REGISTERS = 16384
MAGIC = b'HYLL'
DENSE_BYTES = 16 + REGISTERS * 6 // 8
_MASK = 2**64 - 1


def _hash(text):
    """MurmurHash64A."""
    multiplier = 0xc6a4a7935bd1e995
    value = 0xadc83b19 ^ (len(text) * multiplier & _MASK)
    whole = len(text) // 8 * 8
    for at in range(0, whole, 8):
        part = int.from_bytes(text[at:at + 8], 'little') * multiplier & _MASK
        part ^= part >> 47
        value = (value ^ (part * multiplier & _MASK)) * multiplier & _MASK
    if len(text) > whole:
        value = (value ^ int.from_bytes(text[whole:], 'little')) * multiplier & _MASK
    value ^= value >> 47
    value = value * multiplier & _MASK
    return value ^ (value >> 47)


def add(state, text):
    value = _hash(text)
    rest = value >> 14 | 1 << 50
    return merge(state, ((value & (REGISTERS - 1), (rest & -rest).bit_length()),))


def merge(state, other):
    ranks = dict(state)
    for register, rank in other:
        if rank > ranks.get(register, 0):
            ranks[register] = rank
    return tuple(sorted(ranks.items()))


def _sigma(part):
    if part == 1.0:
        return math.inf
    weight, total, before = 1.0, part, None
    while total != before:
        part *= part
        before = total
        total += part * weight
        weight += weight
    return total


def _tau(part):
    if part in (0.0, 1.0):
        return 0.0
    weight, total, before = 1.0, 1 - part, None
    while total != before:
        part = math.sqrt(part)
        before = total
        weight *= 0.5
        total -= (1 - part)**2 * weight
    return total / 3


def estimate(state):
    counts = [0] * 64
    counts[0] = REGISTERS - len(state)
    for _, rank in state:
        counts[rank] += 1
    total = REGISTERS * _tau((REGISTERS - counts[51]) / REGISTERS)
    for rank in range(50, 0, -1):
        total = (total + counts[rank]) * 0.5
    total += REGISTERS * _sigma(counts[0] / REGISTERS)
    found = 0.721347520444481703680 * REGISTERS * REGISTERS / total
    return math.floor(found + 0.5)


def _runs(state):
    """(value, how many) of neighbours that are alike."""
    at = 0
    found = []
    for register, rank in state:
        if register > at:
            found.append([0, register - at])
        if found and found[-1][0] == rank and register == at:
            found[-1][1] += 1
        else:
            found.append([rank, 1])
        at = register + 1
    if at < REGISTERS:
        found.append([0, REGISTERS - at])
    return found


def encode(state):
    header = MAGIC + bytes([1, 0, 0, 0]) + bytes(7) + b'\x80'
    if all(rank <= 32 for _, rank in state):
        out = bytearray(header)
        for value, count in _runs(state):
            while count:
                if value:
                    some = min(count, 4)
                    out.append(0x80 | value - 1 << 2 | some - 1)
                elif count > 64:
                    some = min(count, 16384)
                    out += bytes([0x40 | some - 1 >> 8, some - 1 & 0xff])
                else:
                    some = count
                    out.append(some - 1)
                count -= some
        if len(out) <= 3000:
            return bytes(out)
    number = 0
    for register, rank in state:
        number |= rank << 6 * register
    return MAGIC + bytes(4) + bytes(7) + b'\x80' + number.to_bytes(REGISTERS * 6 // 8, 'little')


def decode(text):
    """The state that `text` says, or None."""
    if len(text) < 16 or text[:4] != MAGIC:
        return None
    ranks = []
    if text[4] == 0:
        if len(text) != DENSE_BYTES:
            return None
        number = int.from_bytes(text[16:], 'little')
        ranks = [number >> 6 * register & 63 for register in range(REGISTERS)]
    elif text[4] == 1:
        at = 16
        while at < len(text):
            byte = text[at]
            if byte & 0x80:
                ranks += [(byte >> 2 & 31) + 1] * ((byte & 3) + 1)
            elif byte & 0x40:
                at += 1
                if at == len(text):
                    return None
                ranks += [0] * (((byte & 63) << 8 | text[at]) + 1)
            else:
                ranks += [0] * ((byte & 63) + 1)
            at += 1
            if len(ranks) > REGISTERS:
                return None
    if len(ranks) != REGISTERS or max(ranks) > 51:
        return None
    return tuple((register, rank) for register, rank in enumerate(ranks) if rank)
