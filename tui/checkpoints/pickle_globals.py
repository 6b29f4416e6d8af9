"""Which imports of a pickle are harmless, which are foreign types, and which can do anything.

``weights_only=True`` lets in the list of `torch._weights_only_unpickler` (torch 2.13, read there) and the
names its users add. Dangerous names: what the standard library, NumPy and torch offer for running commands,
code or further pickles, by module; some of them also as a later part of a dotted name
(``torch.serialization.os.system``), for protocol 4 resolves that attribute by attribute.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable

from tui.checkpoints.tensors import BITS
from tui.model.verdict import Danger

_RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg", "exceptions": "builtins"}


def _below(module: str, names: str) -> set[str]:
    return {f"{module}.{name}" for name in names.split()}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STORAGE = re.compile(
    r"torch\.(?:cuda\.)?(?:sparse\.)?"
    r"(?:BFloat16|Bool|Byte|Char|ComplexDouble|ComplexFloat|Double|Float|Half|Int|Long|Short"
    r"|QInt8|QInt32|QUInt8|QUInt2x4|QUInt4x2)(?:Storage|Tensor)"
)
_REBUILDERS = """
    tensor tensor_v2 tensor_v3 parameter parameter_with_state qtensor sparse_tensor meta_tensor_no_storage
    nested_tensor wrapper_subclass device_tensor_from_cpu_tensor device_tensor_from_numpy
"""
_QUANTISED = """
    channel_affine channel_affine_float_qparams channel_symmetric tensor_affine tensor_symmetric
"""
_TORCH_OWN = frozenset(
    {f"torch.{dtype}" for dtype in BITS}
    | {f"torch.{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)}
    | {f"torch._utils._rebuild_{what}" for what in _REBUILDERS.split()}
    | {f"torch.per_{what}" for what in _QUANTISED.split()}
    | _below("torch", "bits1x8 bits2x4 bits4x2 Size Tensor device nn.parameter.Parameter")
    | _below("torch", "_tensor._rebuild_from_type_v2 serialization._get_layout")
    | _below("torch.storage", "TypedStorage UntypedStorage")
    | _below("collections", "OrderedDict Counter")
    | _below("builtins", "bytearray complex set")
    | {"_codecs.encode"}
)

NUMPY_SCALARS = (
    "numpy._core.multiarray.scalar",
    "numpy.core.multiarray.scalar",
    "numpy.dtype",
    "numpy._core.multiarray._reconstruct",
    "numpy.core.multiarray._reconstruct",
    "numpy.ndarray",
)
"""The named allow-list: plain numbers and arrays, which trainers save beside the weights."""

_PLAIN = frozenset(
    _below("builtins", "bool bytes dict float frozenset int list object range slice str tuple")
    | _below("datetime", "date datetime time timedelta timezone")
    | _below("collections", "defaultdict deque")
    | {"argparse.Namespace", "types.SimpleNamespace", "copyreg._reconstructor"}
    | {"decimal.Decimal", "fractions.Fraction", "uuid.UUID"}
)
_PATHS = re.compile(r"pathlib\.(?:_local\.)?(?:Pure)?(?:Posix|Windows)?Path")
_NUMPY_TYPE = re.compile(r"numpy\.dtypes\.\w+|numpy\.(?:bool_?|str_|bytes_|(?:u?int|float|complex)\d{1,3})")

_MODULES_OF_POWER = _words("""
    os posix nt ntpath posixpath subprocess _posixsubprocess sys shutil socket _socket pty commands popen2
    importlib _frozen_importlib imp runpy code codeop ctypes _ctypes cffi multiprocessing concurrent
    threading _thread webbrowser pdb bdb timeit cProfile profile trace pickle _pickle cPickle marshal shelve
    inspect operator _operator io _io tempfile nturl2path idlelib doctest distutils setuptools pkg_resources
    pip venv ensurepip unittest test antigravity lib2to3 logging sqlite3 linecache site zipimport zipfile
    tarfile signal platform getpass resource mmap fileinput tokenize asyncio ssl http urllib urllib2 urllib3
    httplib requests httpx aiohttp ftplib smtplib poplib imaplib telnetlib xmlrpc socketserver paramiko
    fabric sh pexpect gc weakref atexit builtins dill cloudpickle jsonpickle yaml hydra cython Cython
    numba cupy pathlib torch.hub torch.jit torch.package torch.serialization torch.storage._load_from_bytes
    torch.utils.cpp_extension
    torch.utils.collect_env torch.utils.bottleneck torch.utils.model_zoo torch.utils._config_module torch.fx
    torch._inductor torch._dynamo torch.distributed.rpc torch.multiprocessing torch.testing
    torch.utils.data.datapipes numpy.f2py numpy.testing numpy.distutils numpy.ctypeslib pandas.io
    pandas.eval pandas.core.computation IPython pydoc cgitb nose py pytest _pytest _xxsubinterpreters
    _testcapi types
""")
_WORDS_OF_POWER = _words("""
    system popen Popen exec eval execfile compile open __import__ import_module getattr setattr delattr
    globals locals vars input breakpoint reload apply fork forkpty kill killpg remove unlink rmdir
    removedirs rmtree rename truncate check_call check_output getoutput getstatusoutput exec_command
    run_code run_module run_path runcode runsource runstring loads load fromfile load_module load_dynamic
    load_library LoadLibrary CDLL FunctionType CodeType attrgetter methodcaller reduce_graph_module
    _make_function _create_function _create_code _load_type spawn urlopen urlretrieve
""")
_ANYWHERE = _words("""
    os posix nt subprocess sys shutil socket importlib runpy ctypes builtins __builtin__ pty commands
    marshal pickle _pickle
""")
"""Modules that count wherever in a dotted name they stand; packages call their own parts by the others."""

_BUILTINS = frozenset(dir(builtins)) | _words(
    "apply execfile file reload buffer intern coerce raw_input unichr"
)
_FAMILIES = re.compile(
    r"(?:spawn|exec|popen)(?:l|le|lp|lpe|v|ve|vp|vpe)|posix_spawnp?|\w*_spawn|"
    r"(?:\w*_)?(?:pickle|unpickle|command|shell|subprocess)(?:_\w*)?|"
    r"_?import_\w+|\w+_from_(?:string|dotted_path|module|dynamic_module)|instantiate|locate|_locate"
)


UNKNOWN = "unknown.name"
"""Stands for a name that a pickle puts together in a way that cannot be told without running it."""


def plain_name(name: str) -> str:
    """The name as Python 3 spells it."""
    module, dot, rest = name.partition(".")
    return f"{_RENAMED.get(module, module)}{dot}{rest}"


def allowed(name: str, *, torchscript: bool = False) -> bool:
    """Whether safe loading lets the name in without being asked."""
    plain = plain_name(name)
    if torchscript and plain.startswith(("__torch__.", "torch.jit._pickle.")):
        return True  # read by the C++ loader, which knows no Python
    return plain in _TORCH_OWN or _STORAGE.fullmatch(plain) is not None


def danger(name: str) -> Danger:
    """What a name that safe loading keeps out can do: ``low`` plain data, ``medium`` a package's code."""
    plain = plain_name(name)
    if plain in NUMPY_SCALARS or plain in _PLAIN or _PATHS.fullmatch(plain) or _NUMPY_TYPE.fullmatch(plain):
        return "low"
    parts = plain.split(".")
    if plain == UNKNOWN:
        return "high"
    if plain.startswith("copyreg.extension_"):
        return "medium"  # nobody registers any, so it stands for nothing
    if parts[0] == "builtins" and len(parts) == 2 and parts[1] not in _BUILTINS:
        return "medium"  # there is no such name
    if not _MODULES_OF_POWER.isdisjoint(".".join(parts[:count]) for count in range(1, len(parts) + 1)):
        return "high"
    if any(part in _ANYWHERE or part.startswith("__") for part in parts[1:]):
        return "high"
    return "high" if parts[-1] in _WORDS_OF_POWER or _FAMILIES.fullmatch(parts[-1]) else "medium"


def refused(names: Iterable[str], *, torchscript: bool = False) -> tuple[str, ...]:
    """The names that safe loading does not let in, in their order."""
    return tuple(name for name in names if not allowed(name, torchscript=torchscript))


def worst(names: Iterable[str]) -> Danger | None:
    """The greatest danger among names that safe loading does not let in."""
    found = {danger(name) for name in names}
    levels: tuple[Danger, ...] = ("high", "medium", "low")
    return next((level for level in levels if level in found), None)


def certain(names: Iterable[str]) -> tuple[str, ...]:
    """Without those that damage can feign: in a pickle that is damaged anyway, only a plain name counts."""
    return tuple(n for n in names if n != UNKNOWN and all(part.isidentifier() for part in n.split(".")))


def numpy_only(names: Iterable[str]) -> bool:
    """Whether all of them are of the named allow-list, so that torch may be told to let them in."""
    return all(plain_name(n) in NUMPY_SCALARS or _NUMPY_TYPE.fullmatch(plain_name(n)) for n in names)
