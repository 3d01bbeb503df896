"""A refused command: the exception that the model raises and turns into an error reply."""

from .resp import Error


class Refused(Exception):
    """`code` is the first word. `alternatives` are codes that the manual leaves equally possible."""

    def __init__(self, code, text=None, alternatives=()):
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.alternatives = alternatives

    def reply(self):
        return Error(self.code, self.text, self.alternatives)


def syntax_error():
    return Refused('ERR')
