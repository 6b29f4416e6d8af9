"""Reads a pickle without unpickling: nothing is imported, nothing called, nothing built but plain data.

A pickle is a program for a stack machine. It is run here on stand-ins: a global becomes its name, a call a
record of function and arguments. So the names it would import are exact, also where they are put together
from pieces (`STACK_GLOBAL` on memoised strings), and tensors are found with their place in the file.

Opcodes: PEP 307, PEP 3154, PEP 574 and the standard library's `pickletools` table, which gives argument
formats and stack effects of all opcodes not treated by name here.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from tui.checkpoints.pickle_globals import UNKNOWN
from tui.checkpoints.pickle_values import OPAQUE, Call, Global, Opaque, called, named
from tui.checkpoints.tensors import Storage

MAX_BYTES = 64 << 20
MAX_OPS = 4_000_000
MAX_NODES = 400_000
"""Values that are kept; behind them the rest of the pickle is still searched for globals."""

_TEXT_KEPT = 4096
_GLOBALS_KEPT = 1000


class PickleDamaged(Exception):
    """It is no pickle, or a damaged one. `truncated`: it ends before its STOP."""

    def __init__(self, what: str, *, truncated: bool = False) -> None:
        self.truncated = truncated
        super().__init__(what)


class PickleTooLong(Exception):
    """More opcodes or bytes than are looked at."""


@dataclass(slots=True)
class Pickle:
    """What one pickle holds.

    Attributes:
        value: its result, of plain data, `Tensor`, `Storage`, `Global`, `Call` and `OPAQUE`.
        globals: names in the order they appear, each once.
        protocol: of its PROTO opcode.
        newer: opcodes behind protocol 2 occur, which torch's safe loading does not know.
        storages: every storage it refers to, by key.
        complete: False where values had to be left out.
        end: bytes it takes.
    """

    value: object = OPAQUE
    globals: list[str] = field(default_factory=list)
    storages: dict[str, Storage] = field(default_factory=dict)
    protocol: int = 0
    newer: bool = False
    complete: bool = True
    end: int = 0


def read_pickle(stream: BinaryIO, *, found: Pickle | None = None) -> Pickle:
    """Read one pickle from where `stream` stands to its STOP.

    Args:
        found: filled step by step, so that globals seen before damage are known.

    Raises:
        PickleDamaged, PickleTooLong.
    """
    found = Pickle() if found is None else found
    try:
        _Machine(stream, found).run()
    except (IndexError, struct.error, UnicodeDecodeError, ValueError, TypeError, OverflowError) as error:
        raise PickleDamaged(f"not a pickle ({type(error).__name__})") from None
    return found


_NEWER_THAN_2 = frozenset(ord(op.code) for op in pickletools.opcodes if op.proto > 2)
_TABLE = {ord(op.code): op for op in pickletools.opcodes}
_U1, _U2, _U4, _U8, _I4 = (struct.Struct(form) for form in ("<B", "<H", "<I", "<Q", "<i"))
_FIXED = {code: op.arg.n if op.arg and op.arg.n > 0 else 0 for code, op in _TABLE.items()}
_COUNTED = {
    **dict.fromkeys(b"UC\x8c\x8a", _U1),  # SHORT_BINSTRING, SHORT_BINBYTES, SHORT_BINUNICODE, LONG1
    **dict.fromkeys(b"TXB\x8b", _U4),  # BINSTRING, BINUNICODE, BINBYTES, LONG4
    **dict.fromkeys(b"\x8d\x8e\x96", _U8),  # BINUNICODE8, BINBYTES8, BYTEARRAY8
}
_TEXTS = frozenset(b"UTX\x8c\x8d")
_LINES = frozenset(b"IFLSVPgp")  # INT, FLOAT, LONG, STRING, UNICODE, PERSID, GET, PUT
_INTEGERS = {ord("J"): _I4, ord("K"): _U1, ord("M"): _U2}
_CONSTANTS = {ord("N"): None, 0x88: True, 0x89: False}
_MARK_OPS = frozenset(
    code for code, op in _TABLE.items() if pickletools.markobject in op.stack_before and op.name != "POP"
)


class _Machine:
    """The stack machine on stand-ins. Ends at STOP; every other way out is an exception."""

    def __init__(self, stream: BinaryIO, found: Pickle) -> None:
        self._stream = stream
        self._found = found
        self._stack: list[object] = []
        self._marked: list[list[object]] = []
        self._memo: dict[int, object] = {}
        self._seen: set[str] = set()
        self._nodes = 0
        self._begin = stream.tell()
        self._ops: dict[int, Callable[[], None]] = {
            ord("c"): self._global, 0x93: self._stack_global, ord("i"): self._inst, ord("o"): self._obj,
            ord("R"): self._reduce, 0x81: self._reduce, 0x92: self._newobj_ex, ord("b"): self._build,
            ord("Q"): self._persistent, ord("("): self._mark, ord("0"): self._pop, ord("1"): self._pop_mark,
            ord("2"): self._dup, ord("t"): self._tuple, ord("l"): self._list, ord("d"): self._dict,
            ord(")"): lambda: self._push(()), ord("]"): lambda: self._push([]),
            ord("}"): lambda: self._push({}), 0x8F: lambda: self._push([]),
            0x85: lambda: self._tuple_of(1), 0x86: lambda: self._tuple_of(2), 0x87: lambda: self._tuple_of(3),
            ord("a"): self._append, ord("e"): self._extend, 0x90: self._extend,
            0x91: self._list, ord("s"): self._set_item, ord("u"): self._set_items,
            0x94: self._memoise, ord("q"): lambda: self._remember(self._take(1)[0]),
            ord("r"): lambda: self._remember(self._number(_U4)),
            ord("h"): lambda: self._recall(self._take(1)[0]),
            ord("j"): lambda: self._recall(self._number(_U4)),
            0x80: self._proto, ord("G"): lambda: self._push(struct.unpack(">d", self._take(8))[0]),
            **dict.fromkeys((0x82, 0x83, 0x84), self._extension),
        }  # fmt: skip

    def run(self) -> None:
        read, ops = self._stream.read, self._ops
        for count in range(MAX_OPS):
            raw = read(1)
            if not raw:
                raise PickleDamaged("it ends before its STOP", truncated=True)
            code = raw[0]
            self._code = code
            if code in _NEWER_THAN_2:
                self._found.newer = True
            if code == 0x2E:  # STOP
                self._found.value = self._stack.pop()
                self._found.end = self._stream.tell() - self._begin
                return
            special = ops.get(code)
            if special is not None:
                special()
            else:
                self._plain(code)
            if not count & 0xFFF and self._stream.tell() - self._begin > MAX_BYTES:
                break
        raise PickleTooLong

    # reading arguments

    def _take(self, length: int) -> bytes:
        data = self._stream.read(length)
        if len(data) < length:
            raise PickleDamaged("it ends inside a value", truncated=True)
        return data

    def _line(self) -> str:
        line = self._stream.readline(_TEXT_KEPT)
        if not line.endswith(b"\n"):
            raise PickleDamaged("an argument without its end", truncated=len(line) < _TEXT_KEPT)
        return line[:-1].decode("utf-8", "surrogateescape")

    def _number(self, form: struct.Struct) -> int:
        number: int = form.unpack(self._take(form.size))[0]
        return number

    def _counted(self, code: int) -> object:
        """Text is kept where it is short, everything else passed over."""
        length = self._number(_COUNTED[code])
        if length > MAX_BYTES:
            self._skip(length)
            return OPAQUE
        if code in (0x8A, 0x8B):  # LONG1, LONG4
            return (
                int.from_bytes(self._take(length), "little", signed=True)
                if length <= 16
                else self._skip(length)
            )
        if code in _TEXTS and length <= _TEXT_KEPT:
            self._nodes += length >> 6  # long texts count for more than one value
            return self._take(length).decode("utf-8", "surrogateescape")
        return self._skip(length)

    def _skip(self, length: int) -> Opaque:
        """Pass over a long value; one that leads behind the end is found by the read that follows."""
        if length > 1 << 40:
            raise PickleDamaged("a value longer than any file", truncated=True)
        if length:
            self._stream.seek(length - 1, 1)
            self._take(1)
        return OPAQUE

    def _plain(self, code: int) -> None:
        """Opcodes that only put a constant on the stack, or that the table describes well enough."""
        if code in _COUNTED:
            self._push(self._counted(code))
        elif code in _INTEGERS:
            self._push(self._number(_INTEGERS[code]))
        elif code in _CONSTANTS:
            self._push(_CONSTANTS[code])
        elif code in _LINES:
            self._line_op(code)
        elif code in _TABLE:
            self._by_table(code)
        else:
            raise PickleDamaged(f"no opcode 0x{code:02x}")

    def _line_op(self, code: int) -> None:
        text = self._line()
        if code == ord("g"):
            self._recall(int(text))
        elif code == ord("p"):
            self._remember(int(text))
        elif code == ord("S"):
            self._push(text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else OPAQUE)
        elif code == ord("V"):
            self._push(text if "\\" not in text else OPAQUE)
        elif code in b"IL" and text.strip().rstrip("L").lstrip("+-").isdigit() and len(text) < 40:
            self._push({"00": False, "01": True}.get(text, int(text.strip().rstrip("L"))))
        else:
            self._push(OPAQUE)

    def _by_table(self, code: int) -> None:
        """FRAME, NEXT_BUFFER, READONLY_BUFFER and whatever is harmless."""
        op = _TABLE[code]
        self._take(_FIXED[code])
        if code in _MARK_OPS:
            self._to_mark()
        else:
            for _ in op.stack_before:
                self._stack.pop()
        for _ in op.stack_after:
            self._push(OPAQUE)

    # stack and memo

    def _push(self, value: object) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._found.complete = False
            if not isinstance(value, str | Global):  # names must stay exact to the end
                value = OPAQUE
        self._stack.append(value)

    def _mark(self) -> None:
        if len(self._marked) > 100_000:
            raise PickleDamaged("nested absurdly deep")
        self._marked.append(self._stack)
        self._stack = []

    def _to_mark(self) -> list[object]:
        items, self._stack = self._stack, self._marked.pop()
        return items

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._to_mark()

    def _pop_mark(self) -> None:
        self._to_mark()

    def _dup(self) -> None:
        self._stack.append(self._stack[-1])

    def _remember(self, place: int) -> None:
        value = self._stack[-1]
        if self._nodes <= MAX_NODES or isinstance(value, str | Global):
            self._memo[place] = value
        else:
            self._memo.pop(place, None)  # what stood there before must not be taken for it

    def _memoise(self) -> None:
        if self._nodes > MAX_NODES:
            raise PickleTooLong  # its place is the number of places, which is no longer known
        self._remember(len(self._memo))

    def _recall(self, place: int) -> None:
        if place not in self._memo and self._found.complete:
            raise PickleDamaged("uses a value it never stored")
        self._stack.append(self._memo.get(place, OPAQUE))

    # containers

    def _tuple(self) -> None:
        self._push(tuple(self._to_mark()))

    def _tuple_of(self, count: int) -> None:
        items = self._stack[-count:]
        if len(items) < count:
            raise PickleDamaged("a tuple of what is not there")
        del self._stack[-count:]
        self._push(tuple(items))

    def _list(self) -> None:
        self._push(self._to_mark())

    def _dict(self) -> None:
        items = self._to_mark()
        made: dict[object, object] = {}
        self._fill(made, items)
        self._push(made)

    def _append(self) -> None:
        value = self._stack.pop()
        self._grow([value])

    def _extend(self) -> None:
        self._grow(self._to_mark())

    def _grow(self, items: list[object]) -> None:
        target = self._stack[-1]
        if isinstance(target, list) and self._found.complete:
            target.extend(items)

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._fill(self._stack[-1], [key, value])

    def _set_items(self) -> None:
        items = self._to_mark()
        self._fill(self._stack[-1], items)

    def _fill(self, target: object, items: list[object]) -> None:
        if len(items) % 2:
            raise PickleDamaged("a key without its value")
        if isinstance(target, Call):  # an OrderedDict's relative: what it would hold is kept as its state
            if not isinstance(target.state, dict):
                target.state = {}
            target = target.state
        if isinstance(target, dict):
            for key, value in zip(items[::2], items[1::2], strict=True):
                plain = isinstance(key, str | int | float | bool)
                target[key if plain else f"[{len(target)}]"] = value

    # what it would import and call

    def _name(self, module: object, name: object) -> Global:
        known = isinstance(module, str) and isinstance(name, str)
        full = f"{module}.{name}" if known else UNKNOWN
        if full not in self._seen:
            if len(self._seen) >= _GLOBALS_KEPT:
                full = UNKNOWN  # nobody needs so many, except to hide one behind them
            if full not in self._seen:
                self._seen.add(full)
                self._found.globals.append(full)
        return Global(full)

    def _global(self) -> None:
        module = self._line()
        self._push(self._name(module, self._line()))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self._push(self._name(module, name))

    def _extension(self) -> None:
        number = self._number({0x82: _U1, 0x83: _U2, 0x84: _I4}[self._code])
        self._push(self._name("copyreg", f"extension_{number}"))

    def _inst(self) -> None:
        module = self._line()
        function = self._name(module, self._line())
        self._push(called(function, tuple(self._to_mark())))

    def _obj(self) -> None:
        items = self._to_mark()
        self._push(called(items[0], tuple(items[1:])))

    def _reduce(self) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        self._push(called(function, arguments))

    def _newobj_ex(self) -> None:
        self._stack.pop()
        self._reduce()

    def _build(self) -> None:
        state, target = self._stack.pop(), self._stack[-1]
        if isinstance(target, Call):
            target.state = state

    def _persistent(self) -> None:
        storage = Storage.of(self._stack.pop(), named)
        if storage and len(self._found.storages) < MAX_NODES:
            storage = self._found.storages.setdefault(storage.key, storage)
        self._push(storage or OPAQUE)

    def _proto(self) -> None:
        self._found.protocol = self._take(1)[0]
        if self._found.protocol > 5:
            raise PickleDamaged(f"pickle protocol {self._found.protocol}")
