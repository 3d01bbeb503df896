"""Redis' glob patterns over bytes: * ? [a-c] [^a] and a backslash that escapes."""


def matches(pattern, text):
    p, t = 0, 0
    while p < len(pattern):
        mark = pattern[p:p + 1]
        if mark == b'*':
            while pattern[p + 1:p + 2] == b'*':
                p += 1
            if p + 1 == len(pattern):
                return True
            return any(matches(pattern[p + 1:], text[at:]) for at in range(t, len(text) + 1))
        if t >= len(text):
            return False
        if mark == b'?':
            t += 1
        elif mark == b'[':
            p, held = _class(pattern, p + 1, text[t])
            if not held:
                return False
            t += 1
        else:
            if mark == b'\\' and p + 1 < len(pattern):
                p += 1
            if pattern[p] != text[t]:
                return False
            t += 1
        p += 1
    return t == len(text)


def _class(pattern, p, byte):
    """(position of the closing bracket, whether `byte` is in the class that opens before `p`)."""
    negated = pattern[p:p + 1] == b'^'
    if negated:
        p += 1
    found = False
    while p < len(pattern) and pattern[p:p + 1] != b']':
        if pattern[p:p + 1] == b'\\' and p + 1 < len(pattern):
            p += 1
            found |= pattern[p] == byte
        elif pattern[p + 1:p + 2] == b'-' and p + 2 < len(pattern):
            low, high = sorted((pattern[p], pattern[p + 2]))
            found |= low <= byte <= high
            p += 2
        else:
            found |= pattern[p] == byte
        p += 1
    return min(p, len(pattern) - 1), found != negated
