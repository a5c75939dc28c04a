"""`maskwell fit`: a model fitted to a release, as if to the original."""

from __future__ import annotations

import json
import os
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInput, BadPlan, CannotWrite, MaskwellError
from .file_options import JsonOption, given_options
from .messages import echo_message, warnings_told
from .seal_command import IdentityOption, PassphraseFileOption, passphrase_for

if TYPE_CHECKING:
    import pyarrow as pa

    from ..masking import Release
    from ..masking.card_delivery import CardAccess

NO = 1  # exit code: the answer is no
ENDINGS = (".csv", ".parquet")
CHECKS = {"moment": "moment_correction", "calibration": "regression_calibration", "simex": "simex"}


def fit(
    release: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="The folder of a release, or a data file with --card.")
    ],
    formula: Annotated[
        str, typer.Argument(metavar="FORMULA", help="The model, e.g. 'y ~ x1*x2 + sex + (1|school)'.")
    ],
    family: Annotated[
        str | None,
        typer.Option(
            help="gaussian, binary, logit, probit, ordered, poisson or negative binomial.",
            show_default="gaussian",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="Values that are missing or coded: draw them with the rest, or drop their records.",
            show_default="draw",
        ),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(help="The noise card, open or sealed (.age).", show_default="that of the release"),
    ] = None,
    identity: IdentityOption = None,
    passphrase_file: PassphraseFileOption = None,
    schema: Annotated[
        Path | None, typer.Option(help="Of a data file: the schema (TOML).", show_default="one is proposed")
    ] = None,
    options: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Other options (TOML): chains, draws, weights, priors, level, ..."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same draws.")] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="METHOD", help="Also a cheap correction: moment, calibration or simex."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the intervals, adjusted and not.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the draws of the model (.csv, .parquet).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a model to a release as if to the original: estimates that the noise does not bias, honest intervals.

    The fit that takes the released values for true stands beside. Exit code 1 where the chains do not agree. The file
    of --options has the arguments of `fit` in Python, and level and truths (where to write what is known of each true
    value).

    Examples:

    - `maskwell fit out "INCOME ~ AGE + SEX"`

    - `maskwell fit data.csv "PASSED ~ SCORE + (1|SCHOOL)" --family binary --card card.json`

    - `maskwell fit out "INCOME ~ AGE + SEX" --identity key.txt`
    """
    from ..analysis import fit as run
    from ..plan import FitPlan

    plan = FitPlan.read(options, given_options(family=family, missing=missing, seed=seed))
    _check_outputs(check, picture, plan.truths, save)
    with warnings_told() as told:
        held = _read(release, schema, _card_opening(release, card, identity, passphrase_file))
        beside = None if check is None else _run_cross_check(check, formula, held, plan.arguments)
        found = run(formula, held, **plan.arguments)
        told += map(str, [*found.notes, *([found.warning] if found.warning else [])])
    _print(found, beside, plan.level, as_json)
    if picture is not None:
        from ..analysis.results.plots import draw_fit

        echo_message(f"drawn: {draw_fit(found, picture)}")
    if save is not None:
        echo_message(f"written: {_write(_draws_table(found), save)}")
    if plan.truths is not None:
        fitted = fitted_records(formula, held, plan.missing)
        echo_message(f"written: {_write(_truths_table(found, fitted, plan.level), plan.truths)}")
    if not found.converged:
        raise typer.Exit(NO)


def _check_outputs(check: str | None, picture: Path | None, *tables: Path | None) -> None:
    """Refuse, before any work, options that cannot be met."""
    from ..figure_style import check_picture

    if check is not None and check not in CHECKS:
        raise BadPlan(f"--check is one of {', '.join(CHECKS)}, not {check!r}")
    if picture is not None:
        check_picture(picture)
    for path in tables:
        if path is not None:
            _check_table(path)


def _check_table(path: Path) -> None:
    if path.suffix.lower() not in ENDINGS:
        raise BadPlan(f"{str(path)!r} must end in {' or '.join(ENDINGS)}")
    if os.path.lexists(path):
        raise CannotWrite(f"{str(path)!r} is already there; name another file or remove it")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise CannotWrite(f"the folder {str(path.parent)!r} does not exist or is not writable")


def _card_opening(release: Path, card: Path | None, identity: Path | None, file: Path | None) -> CardAccess:
    """Return what opens the card: the passphrase is asked for where the card has one and someone can answer."""
    from ..masking.card_delivery import SEALED_CARD, CardAccess

    own = release / SEALED_CARD if release.is_dir() else None
    return CardAccess(card, identity, passphrase_for(card or own, file))


def _read(path: Path, schema: Path | None, opening: CardAccess) -> Release:
    """Read a release from its folder, or from a data file and its card."""
    from ..masking import read_release

    if path.is_dir():
        if schema is not None:
            raise BadPlan("a release has its schema: leave --schema out")
        return read_release(path, card=opening.card, identity=opening.identity, passphrase=opening.passphrase)
    if "~" in str(path) and not path.exists():
        raise BadPlan("the release comes first, then the formula: maskwell fit RELEASE 'y ~ x'")
    if opening.card is None and path.exists():
        raise BadPlan(f"{str(path)!r} is a data file: name its noise card too (--card card.json)")
    return _of_file(path, schema, opening)


def _of_file(path: Path, schema: Path | None, opening: CardAccess) -> Release:
    """Read a data file as a release; a card that was written for another file is refused."""
    import hashlib

    from ..card import NoiseCard
    from ..masking import Release
    from ..pipeline import read_table
    from ..plan import InputPlan

    table = read_table(InputPlan(file=path, schema=schema))
    noise = NoiseCard() if opening.card is None else opening.read(opening.card)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if noise.data_sha256 not in ("", digest):
        raise BadInput(
            f"the card was written for another file than {str(path)!r}: its hash is not that of this file; give the "
            "data file as it was released, or the folder of the release"
        )
    return Release(table, noise)


def _run_cross_check(check: str, formula: str, held: Release, options: dict[str, Any]) -> Any:
    """Run a cheap correction, before the fit: what it refuses is said at once."""
    from ..analysis.corrections import cross_checks
    from ..analysis.model_fit import family_of
    from ..analysis.system import FAMILIES

    passed = {name: value for name, value in options.items() if name in ("measurement_error", "weights")}
    family = FAMILIES[family_of(options["family"], options.get("link"))]
    if check == "moment":
        if family != "gaussian":
            raise BadPlan("--check moment is for gaussian models: take calibration or simex")
    else:
        passed["family"] = family
    if check == "simex" and "seed" in options:
        passed["seed"] = options["seed"]
    try:
        return getattr(cross_checks, CHECKS[check])(formula, held, **passed)
    except MaskwellError as error:
        raise type(error)(f"--check {check}: {problem}" for problem in error.problems) from None


def _print(found: Any, beside: Any, level: float, as_json: bool) -> None:
    if as_json:
        out = found.to_dict(level) | ({} if beside is None else {"check": _finite(beside.to_dict())})
        typer.echo(json.dumps(out, indent=2, allow_nan=False))
        return
    typer.echo("\n".join(found.lines(level, None)))
    if beside is not None:
        typer.echo(f"\n{beside!r}")


def _finite(data: Any) -> Any:
    """Return plain data with None for what is no finite number."""
    if isinstance(data, dict):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data


def _draws_table(found: Any) -> pa.Table:
    """Return one row for each draw: its chain, its number and the parameters."""
    import numpy as np
    import pyarrow as pa

    chains, draws, _ = found.draws.values.shape
    columns = {
        "chain": np.repeat(np.arange(chains), draws) + 1,
        "draw": np.tile(np.arange(draws), chains) + 1,
    }
    columns |= {name: found.draws_of(name).ravel() for name in found.names}
    arrays: list[Any] = [pa.array(column) for column in columns.values()]
    return pa.Table.from_arrays(arrays, names=list(columns))


def fitted_records(formula: str, held: Release, missing: str) -> Release:
    """Return the records that were fitted: where missing values are dropped, those that have all of the model."""
    from ..analysis.complete_records import complete
    from ..analysis.model import read_formula
    from ..analysis.model_fit import DROP

    return complete(held, [*read_formula(formula, held)[1]])[0] if missing == DROP else held


def _truths_table(found: Any, held: Release, level: float) -> pa.Table:
    """Return one row for each record, in the order of the release."""
    import pyarrow as pa

    ids, name = held.table.ids, held.table.schema.id_column
    columns: dict[str, Any] = {} if ids is None or name is None else {name: ids}
    for column in found.draws.truth_names:
        table = found.truths(column, level).table
        columns |= dict(zip(table.column_names, table.columns, strict=True))
    return pa.table(columns)


def _write(table: pa.Table, path: Path) -> Path:
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    try:
        if path.suffix.lower() == ".csv":
            csv.write_csv(table, path)
        else:
            parquet.write_table(table, path)
    except OSError as error:
        raise CannotWrite(f"{str(path)!r} cannot be written: {error.strerror}") from None
    return path
