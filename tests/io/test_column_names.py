"""Names of columns are read by their words."""

from __future__ import annotations

import pytest

from maskwell.io.column_names import (
    says_amount,
    says_code,
    says_group,
    says_id,
    says_personal,
    says_weight,
    words_of,
)


def names(listed: str) -> list[str]:
    return listed.split()


def test_words_are_parted_by_signs_digits_and_camel_case() -> None:
    assert words_of("ori_hid") == ("ori", "hid")
    assert words_of("Ketchup.hid") == ("ketchup", "hid")
    assert words_of("schoolNR") == ("school", "nr")
    assert words_of("weightsEmployees") == ("weights", "employees")
    assert words_of("schoolidk1") == ("schoolidk",)
    assert words_of("12") == ()


@pytest.mark.parametrize(
    "name",
    names(
        "id ID hid hhid HHID ori_hid hhno famid idhh pid persnr nr idcode schid schidkn UTILITYID childid "
        "PersonId case_id school_nr provnum villnum townid seqn patient-no Ketchup.hid id2 StudentID "
        "household_id firmid employer_no studyid USUBJID"
    ),
)
def test_names_of_ids(name: str) -> None:
    assert says_id(name)


@pytest.mark.parametrize(
    "name",
    names(
        "humid paid child medicaid covid valid fluid bid kid grid acid partyid no_of_days num_children rooms "
        "number width period hours whid idea ideology identity_score index solid steroids residence thyroid "
        "opioid rapid CD15NR yngkid bladewid"
    ),
)
def test_names_that_only_sound_like_ids(name: str) -> None:
    assert not says_id(name)


def test_labels_of_ids() -> None:
    assert says_id("v1", "Household identification")
    assert says_id("v1", "Person number")
    assert not says_id("v1", "Number of persons in household")
    assert not says_id("v1", "Party identification")


@pytest.mark.parametrize(
    "name",
    names(
        "weight weights wt WGT wght weightsEmployees AFNLWGT fnlwgt perwt hhwt dweight pspwght anweight "
        "sampling_weight household_weights WTMEC2YR pond ponderation gewicht phrf finalwt person_wt w prob "
        "PWGTP WTSSALL hwtfinl expansion_factor wfinal"
    ),
)
def test_names_of_weights(name: str) -> None:
    assert says_weight(name)


@pytest.mark.parametrize(
    "name",
    names(
        "bwght bwt lwt birthweight lowbirthweight BirthWeightOz price.weight harvwt overweight weight_gain w1 "
        "wage width waist ponds respondents weeks lbwght wtloss wtkg"
    ),
)
def test_names_that_only_sound_like_weights(name: str) -> None:
    assert not says_weight(name)


def test_labels_of_weights() -> None:
    assert says_weight("v9", "Sampling weight, persons")
    assert not says_weight("v9", "Weight in kg")


def test_codes_groups_persons_and_amounts() -> None:
    assert all(map(says_code, ("occupation", "occ1990", "isco08", "zip", "state_code", "country_of_birth")))
    assert not any(map(says_code, ("state_income", "occupation_prestige", "industry_growth", "income")))
    assert says_group("student")
    assert not says_group("student_loans")
    assert says_personal("fake_last_name")
    assert not says_personal("mfr_name")
    assert says_amount("hourly_wage")
    assert not says_amount("wagering")
