"""Bundles: folders of files tied by a manifest, written whole or not at all.

A bundle is built beside its target, synced, and put in place by one atomic exchange (`renameat2` on Linux,
`renamex_np` on macOS), so a kill at any moment leaves the earlier or the new one, whole. Where the file system
has no exchange, a first bundle can be written but none replaced. A release's private half goes first, to
`private/<bundle id>/`, which no later write touches: the public bundle in place always has its private half.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

from maskwell.errors import BadBundle, CannotWrite, raise_all

Writers = Mapping[str, Callable[[Path], None]]
Extra = Mapping[str, object]
FileEntry = Mapping[str, str | int]  # {"sha256": in hexadecimal, "bytes": the length}
MANIFEST: Final = "manifest.json"
FORMAT: Final = "maskwell bundle"
VERSION: Final = 1
FAILPOINTS: Final = (
    *(f"{half} {stage}" for half in ("public", "private") for stage in ("first file", "all files", "sealed")),
    *("private half", "before exchange", "after exchange", "before clean-up"),
)
_NOTHING: Final[Extra] = {}
_PRIVATE: Final[Extra] = {"half": "private"}
_BUNDLE_ID: Final = re.compile(r"[0-9a-f]{32}")
_FILE_NAME: Final = re.compile(r"(?!manifest\.json$)[^./\0\ud800-\udfff][^/\0\ud800-\udfff]{0,254}")
_EXCHANGE: Final = 2  # RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS; -100 is AT_FDCWD
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
MOST_MANIFEST: Final = 2**20  # bytes: of ten files it has about a thousand
_STARTING: Final = threading.Lock()  # so that no thread takes another's folder, not yet locked, for abandoned


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a bundle holds; `extra` is its writer's own, and says "half": "private" in a private half."""

    bundle: str
    files: Mapping[str, FileEntry]
    extra: Extra

    def to_dict(self) -> dict[str, object]:
        """Return the content of `manifest.json`; of a key of ours, `extra` cannot change the value."""
        ours = {"format": FORMAT, "version": VERSION, "bundle": self.bundle, "files": self.files}
        return {**ours, **self.extra, **ours}


def failpoint(name: str) -> None:
    """Kill this process here when the environment says so; the crash tests do, nothing else should."""
    if os.environ.get("MASKWELL_FAILPOINT") == name:
        os.kill(os.getpid(), signal.SIGKILL)


def write_bundle(target: Path, writers: Writers, *, private: bool = False, extra: Extra = _NOTHING) -> str:
    """Write a bundle, replacing an earlier one; return its id, which depends on the bytes of its files alone.

    Writers are called in order, each with the path of its file, and may read the files already written beside
    it. A private bundle's files exist beforehand, empty and closed to others.
    """
    check_target(target, ())
    target = _real(target)
    with _write_error_context(target), _staging_folder(target, private=private) as folder:
        manifest = _build(folder, writers, extra, private=private)
        _put_in_place(folder, target)
    return manifest.bundle


def write_halves(
    public: Path, private: Path, public_writers: Writers, private_writers: Writers, *, extra: Extra = _NOTHING
) -> str:
    """Write the private half to `private/<bundle id>/`, then put the public one in place; return the id.

    The public writers are called first; `extra` goes into the public manifest.
    """
    check_halves(public, private, ())
    public, private = _real(public), _real(private)
    with _write_error_context(public), _staging_folder(public, private=False) as folder:
        manifest = _build(folder, public_writers, extra, private=False)
        with _write_error_context(private):
            _add_private_half(private, manifest.bundle, private_writers)
        _put_in_place(folder, public)
    return manifest.bundle


def _add_private_half(private: Path, bundle: str, writers: Writers) -> None:
    target = private / bundle
    with _ensure_private_folder(private), _staging_folder(private / "half", private=True) as folder:
        manifest = _build(folder, writers, _PRIVATE, private=True, bundle=bundle)
        if not os.path.lexists(target):
            os.rename(folder, target)
            _sync(private)
        elif verify_bundle(private_half(private, bundle)) != manifest:
            raise CannotWrite(f"{target} holds another private half; move it or choose a new private folder")
    failpoint("private half")


@contextmanager
def _ensure_private_folder(private: Path) -> Iterator[None]:
    """Make the private folder where it is not there; where nothing comes to lie in it, take it away again."""
    is_new = not os.path.lexists(private)
    private.mkdir(mode=0o700, exist_ok=True)
    try:
        _sync(private.parent)
        yield
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty
                private.rmdir()


def _build(folder: Path, writers: Writers, extra: Extra, *, private: bool, bundle: str = "") -> Manifest:
    """Fill the folder, manifest last, and sync it; with `bundle` as the private half of that one."""
    half = "private" if private else "public"
    for name, write in writers.items():
        if not _FILE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a plain file name")
        if private:
            (folder / name).touch(0o600, exist_ok=False)
        write(folder / name)
        failpoint(f"{half} first file")
    failpoint(f"{half} all files")
    if set(os.listdir(folder)) != set(writers):
        raise CannotWrite(f"the files written are not {', '.join(writers)} as planned; report this as a bug")
    files = {name: _sync_and_hash(folder / name, private=private) for name in sorted(writers)}
    manifest = Manifest(bundle or _bundle_id(files), files, extra)
    _write_manifest(folder / MANIFEST, manifest, private=private)
    failpoint(f"{half} sealed")
    return manifest


def _sync_and_hash(path: Path, *, private: bool) -> FileEntry:
    if private:
        path.chmod(0o600)  # a writer may have put another file in the place of ours
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return _hash(file)


def _hash(file: BufferedReader) -> FileEntry:
    digest, status = hashlib.file_digest(file, "sha256"), os.fstat(file.fileno())
    return {"sha256": digest.hexdigest(), "bytes": status.st_size}


def _write_manifest(path: Path, manifest: Manifest, *, private: bool) -> None:
    path.touch(0o600 if private else 0o666)
    path.write_text(json.dumps(manifest.to_dict(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    _sync(path)
    _sync(path.parent)


def _bundle_id(files: Mapping[str, FileEntry]) -> str:
    lines = "".join(f"{files[name]['sha256']} {name}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()[:32]


def _put_in_place(folder: Path, target: Path) -> None:
    failpoint("before exchange")
    raise_all(_replacement_obstacles(target), CannotWrite)
    if os.path.lexists(target / MANIFEST):
        _exchange(folder, target)
    else:
        os.rename(folder, target)  # by POSIX, never over a file or a folder that is not empty
    failpoint("after exchange")
    _sync(target.parent)
    failpoint("before clean-up")


def _exchange(one: Path, two: Path) -> None:
    """Let two folders change places in one step that no crash can divide."""
    libc, first, second = ctypes.CDLL(None, use_errno=True), os.fsencode(one), os.fsencode(two)
    if hasattr(libc, "renameat2"):
        failure = libc.renameat2(-100, first, -100, second, _EXCHANGE) and ctypes.get_errno()
    elif hasattr(libc, "renamex_np"):
        failure = libc.renamex_np(first, second, _EXCHANGE) and ctypes.get_errno()
    else:
        failure = errno.ENOSYS
    if failure in _NO_EXCHANGE:
        raise CannotWrite(f"bundles in {two.parent} cannot be replaced at one stroke; choose a new folder")
    if failure:
        raise OSError(failure, os.strerror(failure))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _staging_folder(target: Path, *, private: bool) -> Iterator[Path]:
    """Yield a new folder beside the target; whatever bears its name at the end is removed."""
    folder = target.parent / f".{target.name}.building-{os.getpid()}-{os.urandom(8).hex()}"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        with _STARTING:
            _remove_abandoned(target)
            os.mkdir(folder, 0o700 if private else 0o777)
            with suppress(OSError):  # not every file system locks folders
                stack.callback(os.close, _lock(folder))
        yield folder


def _remove_abandoned(target: Path) -> None:
    """Remove what killed processes left of their attempts at this target."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.building-([0-9]{{1,9}})-[0-9a-f]{{16}}")
    for entry in target.parent.iterdir():
        found = pattern.fullmatch(entry.name)
        if found and _is_abandoned(entry, int(found[1])):
            shutil.rmtree(entry, ignore_errors=True)


def _is_abandoned(folder: Path, pid: int) -> bool:
    """Ask the process id, then the lock: ids are used again, and each container has its own."""
    with suppress(ProcessLookupError):
        if pid != os.getpid() and os.getpgid(pid) >= 0:
            return False
    try:
        os.close(_lock(folder))
    except OSError as error:  # locked, or there are no locks here
        return error.errno != errno.EWOULDBLOCK and pid != os.getpid()
    return True


def _lock(folder: Path) -> int:
    """Return a descriptor that locks the folder until it is closed, also by death."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def check_target(path: Path, inputs: Sequence[Path]) -> None:
    """Refuse, before any work, a target that cannot be written or holds an input or anything not ours."""
    target = _real(path)
    with _write_error_context(target):
        overwritten = [
            f"the output {target} would overwrite the input {source}; choose another output folder"
            for source in inputs
            if _inside(_real(source), target) or _inside(_real(source.parent) / source.name, target)
        ]
        raise_all([*_parent_problems(target), *_replacement_obstacles(target), *overwritten], CannotWrite)
        _try_exchange(target)


def check_halves(public: Path, private: Path, inputs: Sequence[Path]) -> None:
    """Refuse, before any work, a pair of folders that `write_halves` could not or must not write."""
    folder = _real(private)
    if _inside(folder, _real(public)):
        raise CannotWrite(
            f"the private folder {private} lies in the public one, {public}; choose one outside it"
        )
    with _write_error_context(folder):
        raise_all(_parent_problems(folder / "half" if os.path.lexists(folder) else folder), CannotWrite)
    check_target(public, inputs)


def _parent_problems(target: Path) -> Iterator[str]:
    if not os.path.isdir(target.parent):
        yield f"the folder {target.parent} does not exist or is not a folder; create it or choose another"
    elif not os.access(target.parent, os.R_OK | os.W_OK | os.X_OK):
        yield f"the folder {target.parent} is not writable; choose another or change its permissions"
    for folder in target.parents:
        if os.path.lexists(folder / MANIFEST) and _read_ours(folder):
            yield f"{target} would lie inside the bundle {folder}; choose a folder outside it"


def _replacement_obstacles(target: Path) -> Iterator[str]:
    """Say why what is at the target may not be replaced; nothing when it is absent, empty or ours."""
    if os.path.lexists(target) and (not os.path.isdir(target) or os.path.ismount(target)):
        yield f"{target} is a file or a mount point, not a folder of maskwell's; choose a new folder"
    elif os.path.lexists(target) and (entries := set(os.listdir(target))):
        manifest = _read_ours(target)
        if manifest is None or manifest.extra == _PRIVATE:
            yield f"{target} is not replaced: it is no release that this maskwell wrote; choose a new folder"
        elif others := entries - {MANIFEST, *manifest.files}:
            yield f"{target} is not replaced: {min(others)} in it is not maskwell's; move it or choose a new folder"


def _try_exchange(target: Path) -> None:
    """Try it on two empty folders, so that nobody learns after hours of work that it cannot be had here."""
    if os.path.lexists(target / MANIFEST):
        with _staging_folder(target, private=True) as one, _staging_folder(target, private=True) as two:
            _exchange(one, two)


@contextmanager
def _write_error_context(target: Path) -> Iterator[None]:
    """Turn the system's errors into a sentence of ours."""
    try:
        yield
    except OSError as error:
        full, reason = error.errno in _NO_SPACE, os.strerror(error.errno or errno.EIO)
        remedy = "free some space or choose a folder on another disk" if full else "choose another folder"
        raise CannotWrite(f"cannot write {target} ({reason}); {remedy}") from error


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _inside(path: Path, folder: Path) -> bool:
    """Is the path the folder or in it, by any name (link, hard link, other case)?"""
    ancestors = [ancestor for ancestor in (path, *path.parents) if os.path.exists(ancestor)]
    same = os.path.exists(folder) and any(folder.samefile(ancestor) for ancestor in ancestors)
    return same or path.is_relative_to(folder)


def verify_bundle(path: Path) -> Manifest:
    """Return the manifest of a bundle after checking that its files are all there, unharmed and alone."""
    return _steadily(path, _verify)


def private_bundles(private: Path) -> tuple[str, ...]:
    """Return the ids of the bundles whose private halves lie in a folder."""
    if not private.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in private.iterdir() if _BUNDLE_ID.fullmatch(entry.name)))


def private_half(private: Path, bundle_id: str) -> Path:
    """Return the verified folder of a release's private half; refuse one that others can open."""
    folder = _real(private) / bundle_id
    if not _BUNDLE_ID.fullmatch(bundle_id) or not os.access(f"{folder}/", os.R_OK | os.X_OK):
        raise BadBundle(f"the private half of this release is not in {private}; give the folder that has it")
    opened = [path for path in (folder, *sorted(folder.iterdir())) if path.lstat().st_mode & 0o077]
    raise_all(
        (
            f"{path} is open to others; chmod 700 folders, 600 files: {_chmod_command(path)}"
            for path in opened
        ),
        BadBundle,
    )
    if verify_bundle(folder).bundle != bundle_id:
        raise BadBundle(f"{folder} belongs to another release; restore it from a copy")
    return folder


def _chmod_command(path: Path) -> str:
    """Return the command that closes a private folder or file to others."""
    return f"chmod {'700' if path.is_dir() else '600'} {shlex.quote(str(path))}"


def _steadily(path: Path, read: Callable[[Path, int], Manifest]) -> Manifest:
    """Read through one descriptor, so from one bundle; again if it was exchanged meanwhile."""
    while True:
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise BadBundle(f"{path} is no folder to be read; give one that maskwell wrote") from error
        try:
            return read(path, folder)
        except BadBundle:
            if os.path.exists(path) and os.path.samestat(os.stat(path), os.fstat(folder)):
                raise
        finally:
            os.close(folder)


def _verify(path: Path, folder: int) -> Manifest:
    manifest = _read_manifest(path, folder)
    raise_all(_damages(path, folder, manifest), BadBundle)
    if manifest.extra != _PRIVATE and manifest.bundle != _bundle_id(manifest.files):
        raise BadBundle(f"{path / MANIFEST} is damaged or was changed; restore the bundle from a copy")
    return manifest


def _damages(path: Path, folder: int, manifest: Manifest) -> Iterator[str]:
    for name in sorted(set(os.listdir(folder)) - {MANIFEST, *manifest.files}):
        yield f"{path / name} is not part of the bundle; remove it"
    for name, entry in manifest.files.items():
        try:
            with _open_at(folder, name) as file:
                if _hash(file) != entry:
                    yield f"{path / name} is damaged or was changed; restore the bundle from a copy"
        except OSError as error:
            yield f"{path / name} cannot be read ({error.strerror}); restore the bundle from a copy"


def _open_at(folder: int, name: str) -> BufferedReader:
    """Open a file of an open folder, following no link and waiting on no pipe."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    return open(name, "rb", opener=lambda file, _: os.open(file, flags, dir_fd=folder))


def _read_ours(path: Path) -> Manifest | None:
    with suppress(BadBundle):
        return _steadily(path, _read_manifest)
    return None


def _read_manifest(path: Path, folder: int) -> Manifest:
    try:
        with _open_at(folder, MANIFEST) as file:
            return _parse(path / MANIFEST, json.loads(file.read(MOST_MANIFEST)))
    except OSError as error:
        raise BadBundle(f"{path} has no readable {MANIFEST}; give a folder that maskwell wrote") from error
    except (ValueError, RecursionError):
        raise BadBundle(f"{path / MANIFEST} is damaged; restore the bundle from a copy") from None


def _parse(path: Path, raw: Any) -> Manifest:
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise BadBundle(f"{path} was not written by maskwell; give a folder that maskwell wrote")
    match raw:
        case {"version": int(version)} if version > VERSION:
            raise BadBundle(f"{path} was written by a newer maskwell (version {version}); update maskwell")
        case {"format": _, "version": 1, "bundle": str(bundle), "files": dict(files), **extra}:
            if _BUNDLE_ID.fullmatch(bundle) and all(map(_FILE_NAME.fullmatch, files)):
                return Manifest(bundle, files, extra)
    raise ValueError
