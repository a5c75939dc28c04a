"""Write releases in circumstances that kill or starve the writer; test_bundle.py runs this as a program.

`serve` forks one child for each line of its input, so that a crash costs no start of Python.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maskwell.errors import CannotWrite
from maskwell.io.bundle import private_half, verify_bundle, write_halves

LINE = 16
PIECE_LINES = 4096
PIECES = 80  # of 64 KiB: 5 MiB


def write_release(root: Path, tag: str, pieces: int = PIECES) -> str:
    """Write a release all of whose files say `tag`."""
    piece = f"{tag:<{LINE - 1}}\n".encode() * PIECE_LINES

    def in_pieces(count: int) -> Callable[[Path], None]:
        def write(path: Path) -> None:
            with path.open("wb") as file:
                for _ in range(count):
                    file.write(piece)

        return write

    def text(path: Path) -> None:
        path.write_text(json.dumps({"tag": tag}))

    public = {"data.csv": in_pieces(pieces), "card.json": text, "codebook.md": text}
    private = {"key": text, "links.csv": in_pieces(4)}
    return write_halves(root / "public", root / "private", public, private, extra={"tag": tag})


def tag_in_place(root: Path, pieces: int | None = None) -> str:
    """Return the tag of a release that is wholly there, both halves."""
    manifest = verify_bundle(root / "public")
    private = private_half(root / "private", manifest.bundle)
    tag = str(manifest.extra["tag"])
    data = (root / "public/data.csv").read_bytes()
    assert data == f"{tag:<{LINE - 1}}\n".encode() * (len(data) // LINE)
    assert pieces is None or len(data) == pieces * PIECE_LINES * LINE
    for path in (root / "public/card.json", root / "public/codebook.md", private / "key"):
        assert json.loads(path.read_text()) == {"tag": tag}
    return tag


def left_overs(root: Path) -> list[str]:
    """Return the names of folders that a writer should have removed."""
    return sorted(path.name for path in root.rglob(".*"))


def attempt(root: Path, tag: str, failpoint: str = "", delay: float | None = None) -> dict[str, Any]:
    """Write in a child; kill it after `delay` seconds, or let it kill itself at a failpoint."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.environ["MASKWELL_FAILPOINT"] = failpoint
        os.write(writer, b"!")
        write_release(root, tag)
        os._exit(0)
    os.read(reader, 1)
    start = time.monotonic()
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seconds = time.monotonic() - start
    os.close(reader)
    os.close(writer)
    return {"status": status, "seconds": seconds}


def serve() -> None:
    """Answer each line of JSON, the arguments of `attempt`, by one."""
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(attempt(Path(asked.pop("root")), **asked)), flush=True)


@contextmanager
def file_limit(_: Path, size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def little_space(root: Path, size: int) -> Iterator[None]:
    """Leave `size` bytes on the disk of `root`."""
    space = os.statvfs(root)
    filler = root / "filler"
    filler.write_bytes(bytes(max(0, space.f_bavail * space.f_frsize - size)))
    try:
        yield
    finally:
        filler.unlink()


def starve(root: Path, limit: Callable[[Path, int], Any]) -> list[dict[str, Any]]:
    """Write under ever wider limits; report each outcome."""
    write_release(root, "earlier", pieces=1)
    outcomes = []
    for size in range(0, 7 * 2**18, 2**16 + 1000):
        error = ""
        with limit(root, size):
            try:
                write_release(root, f"size{size}", pieces=16)
            except CannotWrite as refusal:
                error = str(refusal)
        outcomes.append({"size": size, "error": error, "tag": tag_in_place(root), "left": left_overs(root)})
        if not error:
            break
    return outcomes


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        limits = {"file limit": file_limit, "full disk": little_space}
        print(json.dumps(starve(Path(sys.argv[2]), limits[sys.argv[1]])))
