from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from io import BufferedReader
from pathlib import Path
from typing import Any

import pytest

from maskwell.errors import BadBundle, CannotWrite
from maskwell.io import bundle
from maskwell.io.bundle import (
    FAILPOINTS,
    check_halves,
    check_target,
    private_half,
    verify_bundle,
    write_bundle,
    write_halves,
)

PROGRAM = Path(__file__).with_name("crash_writer.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(bundle.__file__).parents[2])}
Attempt = Callable[..., dict[str, Any]]


def load_program() -> Any:
    spec = spec_from_file_location("crash_writer", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


crash_writer = load_program()


def saying(content: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(content)

    return write


def texts(**contents: str) -> dict[str, Callable[[Path], None]]:
    """Return writers of small files; `data_csv` stands for `data.csv`."""
    return {name.replace("_", "."): saying(content) for name, content in contents.items()}


def write_small(root: Path, tag: str = "a") -> str:
    files = texts(data_csv=f"x\n{tag}\n", card_json=tag)
    return write_halves(root / "public", root / "private", files, texts(key=f"key of {tag}"))


def entries(folder: Path) -> set[str]:
    return set(os.listdir(folder))


# --- kill -9


@pytest.fixture(scope="module")
def attempt() -> Iterator[Attempt]:
    """Yield a function that writes a release in a child of a warm process, which may die of it."""
    command = [sys.executable, str(PROGRAM), "serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        stdin, stdout = server.stdin, server.stdout

        def ask(root: Path, tag: str, **options: Any) -> dict[str, Any]:
            print(json.dumps({"root": str(root), "tag": tag, **options}), file=stdin, flush=True)
            reply: dict[str, Any] = json.loads(stdout.readline())
            return reply

        yield ask
        stdin.close()


def write_after_crash(attempt: Attempt, root: Path, tag: str) -> float:
    """Write once more, undisturbed; check that nothing of the crash remains; return the seconds it took."""
    reply = attempt(root, tag)
    assert reply["status"] == 0
    assert crash_writer.tag_in_place(root, crash_writer.PIECES) == tag
    assert crash_writer.left_overs(root) == []
    assert entries(root) == {"public", "private"}
    return float(reply["seconds"])


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_killed_at_failpoint_leaves_earlier_or_new(attempt: Attempt, tmp_path: Path, failpoint: str) -> None:
    assert attempt(tmp_path, "earlier")["status"] == 0
    assert attempt(tmp_path, "new", failpoint=failpoint)["status"] == -signal.SIGKILL
    exchanged = FAILPOINTS.index(failpoint) >= FAILPOINTS.index("after exchange")
    assert crash_writer.tag_in_place(tmp_path, crash_writer.PIECES) == ("new" if exchanged else "earlier")
    assert len(crash_writer.left_overs(tmp_path)) == (
        2 if failpoint.startswith("private ") and failpoint != "private half" else 1
    )
    write_after_crash(attempt, tmp_path, "next")


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_killed_at_first_write_leaves_nothing_or_all(
    attempt: Attempt, tmp_path: Path, failpoint: str
) -> None:
    assert attempt(tmp_path, "new", failpoint=failpoint)["status"] == -signal.SIGKILL
    if (tmp_path / "public").exists():
        assert crash_writer.tag_in_place(tmp_path, crash_writer.PIECES) == "new"
    else:
        assert FAILPOINTS.index(failpoint) < FAILPOINTS.index("after exchange")
    write_after_crash(attempt, tmp_path, "next")


def test_killed_at_random_moments_leaves_earlier_or_new(attempt: Attempt, tmp_path: Path) -> None:
    rng = random.Random(20240611)
    seconds = [write_after_crash(attempt, tmp_path, f"warm{i}") for i in range(3)]
    earlier, seen = "warm2", Counter[str]()
    for i in rng.sample(range(50), 50):
        # spread evenly from the start of a write to a little after its end, as lately measured
        delay = (i + rng.random()) / 50 * 1.25 * statistics.median(seconds[-3:])
        reply = attempt(tmp_path, f"new{i}", delay=delay)
        tag = crash_writer.tag_in_place(tmp_path, crash_writer.PIECES)
        assert tag in (earlier, f"new{i}")
        inside = "inside" if crash_writer.left_overs(tmp_path) else "outside"
        seen[f"{inside}, {'earlier' if tag == earlier else 'new'}"] += 1
        assert reply["status"] in (0, -signal.SIGKILL)
        earlier = f"next{i}"
        seconds.append(write_after_crash(attempt, tmp_path, earlier))
    print(f"a write takes {statistics.median(seconds):.3f} s; kills: {dict(seen)}")
    assert seen["inside, earlier"] + seen["inside, new"] >= 15
    assert seen["inside, earlier"] + seen["outside, earlier"] >= 5
    assert seen["inside, new"] + seen["outside, new"] >= 2


# --- no space, interruptions, failing writers


def check_starved(outcomes: list[dict[str, Any]], reason: str) -> None:
    *refused, accepted = outcomes
    assert len(refused) >= 10
    for outcome in refused:
        assert reason in outcome["error"]
        assert "; free some space" in outcome["error"]
        assert "\n" not in outcome["error"]
        assert outcome["tag"] == "earlier"
    assert accepted["tag"] == f"size{accepted['size']}"
    assert all(outcome["left"] == [] for outcome in outcomes)


def test_file_too_large_leaves_earlier(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), "file limit", str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    check_starved(json.loads(done.stdout), "File too large")


def test_full_disk_leaves_earlier(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small disk needs root and unshare")
    script = 'mount -t tmpfs -o size=4m none "$1" || exit 77; exec "$2" "$3" "full disk" "$1"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), sys.executable, str(PROGRAM)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no small disk can be mounted here")
    assert done.returncode == 0, done.stderr
    check_starved(json.loads(done.stdout), "No space left on device")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("half", ["public", "private"])
def test_failing_writer_leaves_earlier(tmp_path: Path, error: type[BaseException], half: str) -> None:
    def fail(path: Path) -> None:
        path.write_text("part of")
        raise error

    first = write_small(tmp_path)
    writers = {"public": texts(data_csv="b"), "private": texts(key="b")}
    writers[half]["failing"] = fail
    with pytest.raises(error):
        write_halves(tmp_path / "public", tmp_path / "private", writers["public"], writers["private"])
    assert verify_bundle(tmp_path / "public").bundle == first
    assert entries(tmp_path) == {"public", "private"}
    assert entries(tmp_path / "private") == {first}


def write_nothing(path: Path) -> None:
    assert not path.exists()


def write_another(path: Path) -> None:
    path.write_text("a")
    path.with_name("other").write_text("b")


@pytest.mark.parametrize("writer", [write_nothing, write_another])
def test_writer_that_leaves_other_files_is_refused(tmp_path: Path, writer: Callable[[Path], None]) -> None:
    with pytest.raises(CannotWrite, match="not data as planned"):
        write_bundle(tmp_path / "public", {"data": writer})
    assert entries(tmp_path) == set()


@pytest.mark.parametrize("name", ["manifest.json", "../data", "a/b", "", ".", "..", ".hidden"])
def test_file_names_are_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="plain"):
        write_bundle(tmp_path / "public", {name: lambda path: None})
    assert entries(tmp_path) == set()


def test_left_overs_of_the_dead_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    names = {
        "dead": f".public.building-{process.pid}-{'0' * 16}",
        "ours, not locked": f".public.building-{os.getpid()}-{'1' * 16}",
        "alive": f".public.building-{os.getppid()}-{'2' * 16}",
        "other target": f".other.building-{process.pid}-{'3' * 16}",
        "not ours": f".public.building-{process.pid}",
    }
    for name in names.values():
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.csv").write_text("part of")
    write_bundle(tmp_path / "public", texts(data_csv="a"))
    kept = {names[name] for name in ("alive", "other target", "not ours")}
    assert entries(tmp_path) == {"public"} | kept


def test_without_locks_the_process_id_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with subprocess.Popen(["true"]) as process:
        process.wait()
    ours = f".public.building-{os.getpid()}-{'1' * 16}"
    for name in (ours, f".public.building-{process.pid}-{'0' * 16}"):
        (tmp_path / name).mkdir()
    for tag in "ab":
        write_small(tmp_path, tag)
    assert entries(tmp_path) == {"public", "private", ours}


def test_all_is_synced_before_the_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small(tmp_path, "a")
    synced: list[int] = []
    before: list[int] = []
    exchange, sync = bundle._exchange, os.fsync

    def recorded_exchange(one: Path, two: Path) -> None:
        before.extend(synced)
        synced.clear()
        exchange(one, two)

    def recorded_sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(bundle, "_exchange", recorded_exchange)
    monkeypatch.setattr(os, "fsync", recorded_sync)
    half = tmp_path / "private" / write_small(tmp_path, "b")
    folders = [tmp_path / "public", half, half.parent]
    expected = [*folders, *folders[0].iterdir(), *folders[1].iterdir()]
    assert {path.stat().st_ino for path in expected} <= set(before)
    assert synced == [tmp_path.stat().st_ino]


# --- replacing


def read_at_once(folder: Path) -> tuple[str, str]:
    """Return what the manifest and the card say, through one open folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        contents = []
        for name in ("manifest.json", "card.json"):
            with open(name, opener=lambda file, flags: os.open(file, flags, dir_fd=descriptor)) as file:
                contents.append(file.read())
        return str(json.loads(contents[0])["tag"]), contents[1]
    finally:
        os.close(descriptor)


def test_readers_never_see_a_mixture(tmp_path: Path) -> None:
    public, done, failures, seen = tmp_path / "public", threading.Event(), list[str](), Counter[str]()

    def read() -> None:
        while not done.is_set():
            try:
                tag, card = read_at_once(public)
                if tag != card:
                    failures.append(f"{tag} with {card}")
                seen["read"] += 1
            except FileNotFoundError:
                seen["gone"] += 1  # the open folder was replaced and removed: nothing read, no mixture
            try:
                seen[str(verify_bundle(public).extra["tag"])] += 1
            except BadBundle as error:
                failures.append(str(error))

    def replace(tag: str) -> None:
        write_bundle(public, texts(data_csv=tag * 1000, card_json=tag), extra={"tag": tag})

    replace("0")
    reader = threading.Thread(target=read)
    reader.start()
    for i in range(1, 101):
        replace(str(i))
    done.set()
    reader.join()
    assert failures == []
    assert seen["read"] >= 10
    assert len(seen) >= 10


def test_verifying_starts_again_when_the_bundle_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, later, original = write_small(tmp_path, "a"), list[str](), bundle._hash

    def hash_after_replacement(file: BufferedReader) -> bundle.FileEntry:
        if not later:
            later.append("being written")
            later.append(write_small(tmp_path, "b"))
        return original(file)

    monkeypatch.setattr(bundle, "_hash", hash_after_replacement)
    assert verify_bundle(tmp_path / "public").bundle == later[-1] != first


def test_two_writers_at_once_leave_one_of_their_bundles(tmp_path: Path) -> None:
    failures = []

    def replace(tag: str) -> None:
        try:
            for i in range(20):
                write_small(tmp_path, f"{tag}{i}")
        except Exception as error:
            failures.append(error)

    write_small(tmp_path, "first")
    threads = [threading.Thread(target=replace, args=(tag,)) for tag in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (tmp_path / "public/card.json").read_text() in ("a19", "b19")
    private_half(tmp_path / "private", verify_bundle(tmp_path / "public").bundle)
    assert crash_writer.left_overs(tmp_path) == []
    assert len(entries(tmp_path / "private")) == 41


def test_replacing_is_refused_without_an_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    first = write_bundle(tmp_path / "public", texts(data_csv="a"))
    called: list[Path] = []
    with pytest.raises(CannotWrite, match="choose a new folder"):
        write_bundle(tmp_path / "public", {"data.csv": called.append})
    assert called == []
    assert verify_bundle(tmp_path / "public").bundle == first
    assert entries(tmp_path) == {"public"}


def test_target_may_be_empty_or_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for tag in "ab":
        made = write_bundle(tmp_path / "link", texts(data_csv=tag))
        assert verify_bundle(tmp_path / "real").bundle == made
    assert (tmp_path / "link").is_symlink()
    assert entries(tmp_path) == {"real", "link"}


@pytest.mark.parametrize("foreign", ["a file", "no manifest", "another's manifest", "a note", "newer"])
def test_what_is_not_ours_is_not_replaced(tmp_path: Path, foreign: str) -> None:
    target = tmp_path / "public"
    if foreign == "a file":
        target.write_text("mine")
    elif foreign in ("a note", "newer"):
        write_bundle(target, texts(data_csv="a"))
        manifest = target / "manifest.json"
        if foreign == "newer":
            manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 2'))
        else:
            (target / "note.txt").write_text("mine")
    else:
        target.mkdir()
        (target / "manifest.json" if "manifest" in foreign[3:] else target / "x").write_text(
            '{"name": "app"}'
        )
    before = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(CannotWrite, match="choose a new folder"):
        write_bundle(target, texts(data_csv="b"))
    assert {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_folder_that_turns_up_during_the_write_is_not_replaced(tmp_path: Path) -> None:
    def write(path: Path) -> None:
        path.write_text("a")
        (tmp_path / "public").mkdir()
        (tmp_path / "public/mine").write_text("mine")

    with pytest.raises(CannotWrite, match="not replaced"):
        write_bundle(tmp_path / "public", {"data.csv": write})
    assert entries(tmp_path) == {"public"}
    assert entries(tmp_path / "public") == {"mine"}


# --- identity and permissions


def test_same_bytes_same_id(tmp_path: Path) -> None:
    files = texts(data_csv="a", card_json="b")
    made = [
        write_bundle(tmp_path / "one", files),
        write_bundle(tmp_path / "two", dict(reversed(files.items())), private=True, extra={"note": 1}),
    ]
    assert made[0] == made[1]
    others = [texts(data_csv="a", card_json="c"), texts(data_csv="b", card_json="a"), texts(data_csv="a")]
    ids = {write_bundle(tmp_path / "other", other) for other in others}
    assert len({*made, *ids}) == 4
    manifest = json.loads((tmp_path / "two/manifest.json").read_text())
    assert list(manifest) == ["format", "version", "bundle", "files", "note"]
    assert (manifest["format"], manifest["version"], manifest["bundle"]) == ("maskwell bundle", 1, made[0])
    assert manifest["files"]["data.csv"]["bytes"] == 1


def test_manifest_bytes_hold_no_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_bundle(tmp_path / name, texts(data_csv="a"), extra={"tag": "a"})
    assert (tmp_path / "one/manifest.json").read_bytes() == (tmp_path / "two/manifest.json").read_bytes()


def test_extra_cannot_change_our_keys(tmp_path: Path) -> None:
    made = write_bundle(
        tmp_path / "public", texts(data_csv="a"), extra={"bundle": "x", "version": 9, "tag": 1}
    )
    manifest = verify_bundle(tmp_path / "public")
    assert manifest.bundle == made
    assert manifest.extra == {"tag": 1}


def test_writing_the_same_release_again_keeps_the_private_half(tmp_path: Path) -> None:
    first = write_small(tmp_path)
    half = tmp_path / "private" / first
    before = half.stat().st_ino
    assert write_small(tmp_path) == first
    assert half.stat().st_ino == before
    other = {"public": texts(data_csv="x\na\n", card_json="a"), "private": texts(key="another key")}
    with pytest.raises(CannotWrite, match="holds another private half"):
        write_halves(tmp_path / "public", tmp_path / "private", other["public"], other["private"])
    assert (half / "key").read_text() == "key of a"
    assert crash_writer.left_overs(tmp_path) == []


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_permissions(tmp_path: Path, umask: int) -> None:
    seen = []

    def write(path: Path) -> None:
        seen.append((mode(path), mode(path.parent)))
        path.unlink()
        path.write_text("written anew, with ordinary permissions")

    before = os.umask(umask)
    try:
        made = write_halves(tmp_path / "public", tmp_path / "private", texts(data_csv="a"), {"key": write})
        write_bundle(tmp_path / "secret", {"key": write}, private=True)
    finally:
        os.umask(before)
    assert seen == [(0o600, 0o700)] * 2
    for folder in (tmp_path / "private" / made, tmp_path / "secret"):
        assert mode(folder) == 0o700
        assert {mode(path) for path in folder.iterdir()} == {0o600}
    assert mode(tmp_path / "private") == 0o700
    assert mode(tmp_path / "public") == 0o777 & ~umask
    assert {mode(path) for path in (tmp_path / "public").iterdir()} == {0o666 & ~umask}


@pytest.mark.parametrize("opened", ["", "key", "manifest.json"])
@pytest.mark.parametrize("bits", [0o040, 0o004, 0o020, 0o001])
def test_private_half_open_to_others_is_refused(tmp_path: Path, opened: str, bits: int) -> None:
    made = write_small(tmp_path)
    path = tmp_path / "private" / made / opened
    path.chmod(mode(path) | bits)
    with pytest.raises(BadBundle, match="chmod 700 folders, 600 files") as caught:
        private_half(tmp_path / "private", made)
    assert str(path) in str(caught.value)


# --- verifying


def damage_byte(path: Path) -> None:
    path.write_bytes(b"X" + path.read_bytes()[1:])


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path: Path) -> None:
    outside = path.parent.parent / "outside"
    path.rename(outside)
    path.symlink_to(outside)


DAMAGES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "changed byte": ("data.csv is damaged or was changed", lambda path: damage_byte(path / "data.csv")),
    "truncated": ("data.csv is damaged", lambda path: os.truncate(path / "data.csv", 1)),
    "longer": ("data.csv is damaged", lambda path: os.truncate(path / "data.csv", 99)),
    "missing": ("data.csv cannot be read", lambda path: (path / "data.csv").unlink()),
    "link": ("data.csv cannot be read", lambda path: replace_by_link(path / "data.csv")),
    "pipe": ("data.csv is damaged", lambda path: replace_by_pipe(path / "data.csv")),
    "extra file": ("note is not part of the bundle", lambda path: (path / "note").write_text("")),
    "extra hidden file": (".note is not part", lambda path: (path / ".note").write_text("")),
    "extra folder": ("sub is not part", lambda path: (path / "sub").mkdir()),
    "no manifest": ("has no readable manifest.json", lambda path: (path / "manifest.json").unlink()),
    "no folder": ("is no folder to be read", shutil.rmtree),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named(tmp_path: Path, damage: str) -> None:
    write_small(tmp_path)
    verify_bundle(tmp_path / "public")
    sentence, inflict = DAMAGES[damage]
    inflict(tmp_path / "public")
    with pytest.raises(BadBundle) as caught:
        verify_bundle(tmp_path / "public")
    assert sentence in str(caught.value)
    assert len(caught.value.problems) == 1


def test_all_damages_are_listed(tmp_path: Path) -> None:
    write_small(tmp_path)
    for name in ("data.csv", "card.json", "note"):
        (tmp_path / "public" / name).write_text("other")
    with pytest.raises(BadBundle) as caught:
        verify_bundle(tmp_path / "public")
    assert len(caught.value.problems) == 3


MANIFESTS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "newer": (r"written by a newer maskwell \(version 7\)", lambda raw: raw | {"version": 7}),
    "newer, without files": (
        r"newer maskwell \(version 2\)",
        lambda raw: {"format": raw["format"], "version": 2},
    ),
    "version of another kind": ("damaged", lambda raw: raw | {"version": "1"}),
    "another's": ("not written by maskwell", lambda raw: raw | {"format": "other"}),
    "a list": ("not written by maskwell", lambda raw: [raw]),
    "no id": ("damaged", lambda raw: raw | {"bundle": None}),
    "id that is a path": ("damaged", lambda raw: raw | {"bundle": "../../etc"}),
    "other id": ("manifest.json is damaged", lambda raw: raw | {"bundle": "0" * 32}),
    "files that are a list": ("damaged", lambda raw: raw | {"files": list(raw["files"])}),
    "file outside": ("damaged", lambda raw: raw | {"files": {"../data.csv": raw["files"]["data.csv"]}}),
    "entry of another kind": ("damaged", lambda raw: raw | {"files": dict.fromkeys(raw["files"], 3)}),
}


@pytest.mark.parametrize("change", MANIFESTS)
def test_bad_manifests_are_refused(tmp_path: Path, change: str) -> None:
    write_small(tmp_path)
    path = tmp_path / "public/manifest.json"
    sentence, changed = MANIFESTS[change]
    path.write_text(json.dumps(changed(json.loads(path.read_text()))))
    with pytest.raises(BadBundle, match=sentence):
        verify_bundle(tmp_path / "public")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000])
def test_manifests_that_are_not_json_are_refused(tmp_path: Path, content: bytes) -> None:
    write_small(tmp_path)
    (tmp_path / "public/manifest.json").write_bytes(content)
    with pytest.raises(BadBundle, match=r"manifest\.json is damaged"):
        verify_bundle(tmp_path / "public")


def test_private_half_of_another_release_is_refused(tmp_path: Path) -> None:
    first, second = write_small(tmp_path, "a"), write_small(tmp_path, "b")
    private = tmp_path / "private"
    assert private_half(private, first) == private / first
    assert private_half(private, second) == private / second
    for absent in ("0" * 32, "", ".", "../public"):
        with pytest.raises(BadBundle, match="the private half of this release is not in"):
            private_half(private, absent)
    shutil.rmtree(private / second)
    (private / first).rename(private / second)
    with pytest.raises(BadBundle, match="belongs to another release"):
        private_half(private, second)


def test_damaged_private_half_is_refused(tmp_path: Path) -> None:
    made = write_small(tmp_path)
    damage_byte(tmp_path / "private" / made / "key")
    with pytest.raises(BadBundle, match="key is damaged") as caught:
        private_half(tmp_path / "private", made)
    assert "key of" not in str(caught.value)


# --- refusing before any work


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="absent does not exist or is not a folder; create it"):
        check_target(tmp_path / "absent/public", ())
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="not a folder"):
        check_target(tmp_path / "file/public", ())
    for private in (tmp_path / "absent/private", tmp_path / "file"):
        with pytest.raises(CannotWrite, match="not a folder"):
            check_halves(tmp_path / "public", private, ())


def test_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("root may write anywhere")
        with pytest.raises(CannotWrite, match=f"{tmp_path} is not writable; choose another"):
            check_target(tmp_path / "public", ())
    finally:
        tmp_path.chmod(0o700)


def test_unwritable_folder_is_named_also_for_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(CannotWrite, match=f"{tmp_path} is not writable; choose another"):
        check_target(tmp_path / "public", ())


@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
def test_output_that_is_an_input_is_refused(tmp_path: Path, link: str) -> None:
    source, target = tmp_path / "survey.csv", tmp_path / "output"
    source.write_text("x\n1\n")
    if link == "symbolic":
        target.symlink_to(source)
    elif link == "hard":
        target.hardlink_to(source)
    else:
        target = source
    with pytest.raises(CannotWrite, match="would overwrite the input"):
        check_target(target, [source])
    with pytest.raises(CannotWrite, match="would overwrite the input"):
        check_target(source, [tmp_path / "other.csv", target])


def test_input_inside_the_output_is_refused(tmp_path: Path) -> None:
    write_small(tmp_path)
    public = tmp_path / "public"
    (tmp_path / "link.csv").symlink_to(public / "data.csv")
    (tmp_path / "folder").symlink_to(public)
    for source in (public / "data.csv", tmp_path / "link.csv", tmp_path / "folder/data.csv"):
        with pytest.raises(CannotWrite, match="would overwrite the input"):
            check_target(public, [source])
        with pytest.raises(CannotWrite, match="would overwrite the input"):
            check_halves(tmp_path / "folder", tmp_path / "private", [source])
    check_target(public, [tmp_path / "survey.csv", tmp_path / "private/truth.csv"])


def test_link_inside_the_output_is_an_input_inside_it(tmp_path: Path) -> None:
    (tmp_path / "survey.csv").write_text("x\n1\n")
    (tmp_path / "public").mkdir()
    (tmp_path / "public/link.csv").symlink_to(tmp_path / "survey.csv")
    with pytest.raises(CannotWrite, match="would overwrite the input"):
        check_target(tmp_path / "public", [tmp_path / "public/link.csv"])


def test_private_folder_inside_the_public_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "public")
    called: list[Path] = []
    for existing in (False, True):
        if existing:
            write_bundle(tmp_path / "public", texts(data_csv="a"))
        inside = [
            "public",
            "link",
            "other/../public",
            *(["public/private", "link/private"] if existing else []),
        ]
        for private in inside:
            with pytest.raises(CannotWrite, match=r"lies in the public|would lie inside the bundle"):
                write_halves(
                    tmp_path / "public", tmp_path / private, {"a": called.append}, {"b": called.append}
                )
    assert called == []
    assert entries(tmp_path / "public") == {"data.csv", "manifest.json"}


def test_public_folder_inside_a_private_half_is_refused(tmp_path: Path) -> None:
    made = write_small(tmp_path)
    private = tmp_path / "private"
    for public in (private / made, private / made / "public"):
        with pytest.raises(CannotWrite, match=r"not replaced|would lie inside the bundle"):
            write_halves(public, private, texts(data_csv="a"), texts(key="a"))
    private_half(private, made)


def test_no_bundle_is_written_inside_another(tmp_path: Path) -> None:
    made = write_small(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "public")
    for target in (tmp_path / "public/sub", tmp_path / "link/sub"):
        with pytest.raises(CannotWrite, match="would lie inside the bundle"):
            write_bundle(target, texts(data_csv="a"))
    assert verify_bundle(tmp_path / "public").bundle == made


def test_writers_may_read_the_files_before_theirs(tmp_path: Path) -> None:
    def card(path: Path) -> None:
        path.write_text(path.with_name("data.csv").read_text().upper())

    write_bundle(tmp_path / "public", {**texts(data_csv="a"), "card.json": card})
    assert (tmp_path / "public/card.json").read_text() == "A"
