"""Names of columns in several languages, and what `anonlib init` guesses by them."""

import pytest

from anonlib.guesses.guess import ColumnProfile, guess_role
from anonlib.identifiers.column_names import translate_name

#: By what is guessed: names of columns of text with 900 values in 10,000 rows.
ROLES = {
    "identifier": [
        *("Patientennummer", "Personalnummer", "Kundennummer", "Kunden-Nr.", "Pat-Nr", "KundenNr"),
        *("Mitgliedsnr.", "Versichertennr", "Haushaltsnummer", "Kd-Nr", "Klantnr", "Kontonummer"),
        *("nr_klienta", "numer pacjenta", "numero_client", "N\u00famero de paciente"),
        *("codice_cliente", "Vorname", "Nachname", "NACHNAME", "Kundenname", "Nom", "PR\u00c9NOM"),
        *("Pre\u0301nom", "Imi\u0119", "nazwisko", "apellidos", "cognome", "achternaam"),
        *("Anschrift", "Adresse", "E-Mail-Adresse", "Stra\u00dfe", "Telefonnummer", "Handynummer"),
        *("Reisepassnr", "Sozialversicherungsnummer", "codice_fiscale", "licensePlate"),
    ],
    "sensitive": [
        *("Diagnose", "Hauptdiagnose", "Krankheit", "Vorerkrankung", "Konfession", "Medikament"),
        *("Haushaltseinkommen", "Gehalt", "Schulden", "Vorstrafen", "Schwerbehinderung"),
        *("Gewerkschaft", "maladie", "m\u00e9dicaments", "casier judiciaire", "choroba"),
        *("niepe\u0142nosprawno\u015b\u0107", "wyznanie", "enfermedad", "afiliaci\u00f3n_sindical"),
        *("malattia", "reddito", "ziekte", "vakbond", "ethnicity", "ethnic_group"),
        *("union_member", "pregnant", "genotype", "gross_pay", "Jahresbrutto", "Entgelt"),
        *("Besoldung", "brutoloon", "retribuzione", "p\u0142aca", "n\u00f3mina", "Verg\u00fctung"),
        *("vote_intention", "intenci\u00f3n_de_voto", "Wahlabsicht", "stemgedrag", "allergies"),
        *("HbA1c", "bmi", "blood_type", "Blutgruppe", "Pflegegrad", "OPS", "DRG", "vih", "Krebs"),
        *("depression", "cancer_stage", "nowotw\u00f3r", "cause_of_death", "Todesursache"),
        *("asylum_status", "credit_score", "SCHUFA", "arrears", "gender_identity", "caste"),
    ],
    "quasi_identifier": [
        *("Postleitzahl", "PLZ", "code postal", "kod_pocztowy", "CAP", "postcode", "Geburtsdatum"),
        *("Geschlecht", "Beruf", "race", "wohnort", "patient_inr", "cap-shape", "Haushalt"),
    ],
}
#: English names that no other language may claim.
ENGLISH = [
    *("age", "sex", "gender", "race", "workclass", "education", "education-num"),
    *("marital-status", "occupation", "relationship", "capital-gain", "hours-per-week"),
    *("native-country", "fnlwgt", "job", "housing", "loan", "balance", "duration"),
    *("campaign", "market_cap", "number_of_children", "n_patients", "via", "data", "note"),
    *("filename", "product_url", "snr", "nir", "cp", "thalach", "chol", "fbs"),
    *("spending_score", "family_size", "country", "state", "region", "date", "height"),
    *("weight", "revenue", "rent", "cost", "price", "unit", "union", "european_union"),
    *("card_type", "personal_loan", "has_nurs", "finance", "pay_grade", "payment", "pay_method"),
    *(
        "credit",
        "credit_limit",
        "party_size",
        "party",
        "vote",
        "gender",
        "procedure",
        "drgs",
        "ops_2",
    ),
    *("blood_pressure", "voto", "brutto", "partia", "tumble", "cancel", "allegro", "kredit"),
]


@pytest.mark.parametrize(
    ("name", "role"), [(name, role) for role, names in ROLES.items() for name in names]
)
def test_roles_by_name(name: str, role: str) -> None:
    assert guess_role(ColumnProfile(name, "string", 10_000, 900)).role == role


@pytest.mark.parametrize("name", ENGLISH)
def test_english_names_mean_what_they_say(name: str) -> None:
    # An employee (`personal`) alone is no number of one, and a number alone is nobody's.
    assert translate_name(name) in (set(), {"employee"}, {"patient"}, {"number"})


@pytest.mark.parametrize("name", ["Postleitzahl", "PLZ", "code_postal", "kod pocztowy", "CAP"])
def test_postal_codes_are_categories(name: str) -> None:
    """However many there are, as numbers or texts."""
    for kind, n_distinct in (("bigint", 5_000), ("string", 7_000), ("string", 10_000)):
        found = guess_role(ColumnProfile(name, kind, 10_000, n_distinct, n_distinct == 10_000))
        assert (found.role, found.scale) == ("quasi_identifier", "nominal")


@pytest.mark.parametrize("name", ["nombre_enfants", "direccion", "Hausnummer"])
def test_numbers_are_no_names(name: str) -> None:
    """French `nombre` is how many; Spanish `direccion` may be that of the wind."""
    assert guess_role(ColumnProfile(name, "bigint", 10_000, 90)).role == "quasi_identifier"
    assert guess_role(ColumnProfile(name, "string", 10_000, 90)).role == "identifier"


#: Names that are those of identifiers, or may be in another language.
OTHERS = [
    *("dni_pobytu", "liczba_dni", "zwolnienia_dni", "vin_rouge", "prix_vin", "curso_matricula"),
    *("lek_dicht", "water_treatment", "traitement_eau", "debito_formativo", "product_name"),
    *("ward_name", "station name", "nom_commune", "naam gemeente", "stop_id", "route_id"),
    *("street_type", "login_count", "id_type", "ip_version"),
]


@pytest.mark.parametrize("name", OTHERS)
def test_names_that_mean_something_else(name: str) -> None:
    assert guess_role(ColumnProfile(name, "string", 10_000, 900)).role == "quasi_identifier"


@pytest.mark.parametrize("name", ["stop_id", "route id", "product_ids"])
def test_numbers_of_things_are_categories(name: str) -> None:
    found = guess_role(ColumnProfile(name, "bigint", 10_000, 900))
    assert (found.role, found.scale, found.why) == (
        "quasi_identifier",
        "nominal",
        "named like a code",
    )


@pytest.mark.parametrize(
    "name",
    [
        *("dni", "nif_cliente", "matricula", "vin", "vehicle_vin", "hospital_id", "state id"),
        *("dni_empleado", "paciente_dni", "titular_nif", "nip_pacjenta", "num_matricula"),
        *("matricula_alumno", "customer_vin", "vin_nr", "station_nurse_name", "shop_owner_name"),
        *("route_driver_name", "department_head_name", "country_id_number"),
    ],
)
def test_short_words_mean_it_alone(name: str) -> None:
    assert guess_role(ColumnProfile(name, "string", 10_000, 900)).role == "identifier"


PERSONS = [
    *("mrn", "MRN", "pesel", "nr_pesel", "bsn", "ssn", "SSN", "nhs_number", "uid", "cpf"),
    *(
        "card_token",
        "tessera",
        "borrower",
        "Respondent",
        "pupil_ref",
        "patient_hash",
        "student_code",
    ),
    *("patient_pseudonym", "passenger", "tenant", "Proband", "personeelsnr", "staff_no"),
    *("matricola", "codice_fiscale", "Vertragskonto", "nhc", "RPPS", "p\u00f3liza"),
]


@pytest.mark.parametrize("name", PERSONS)
def test_names_of_what_stands_for_a_person(name: str) -> None:
    for kind in ("string", "bigint"):
        found = ColumnProfile(name, kind, 10_000, 900)
        assert found.names_person
        assert guess_role(found).role == "identifier"


@pytest.mark.parametrize(
    "name",
    ["Personalkosten", "Personenzahl", "patients", "product_code", "token", "Haushalt", "card"],
)
def test_names_of_what_stands_for_no_person(name: str) -> None:
    assert not ColumnProfile(name, "bigint", 10_000, 900).names_person


@pytest.mark.parametrize(
    ("name", "n_distinct", "told"),
    [
        *(("id", 900, True), ("ID", 20, True), ("Kundennr", 900, True), ("person", 9_000, True)),
        *(("patient_id", 7, True), ("surname", 9_000, False), ("id", 19, False)),
        *(
            ("ward_id", 900, False),
            ("station_nr", 900, False),
            ("x", 5_000, True),
            ("Nachname", 9_000, False),
        ),
    ],
)
def test_what_an_identifier_may_stand_for(name: str, n_distinct: int, *, told: bool) -> None:
    """Its role says that it identifies: the name of a number is enough, or many values."""
    assert ColumnProfile(name, "string", 10_000, n_distinct).may_stand_for_persons is told


@pytest.mark.parametrize(
    "name", ["patient_no_show", "key_account", "household_no_children", "is_mobile", "street"]
)
def test_few_values_identify_nobody(name: str) -> None:
    """Whatever their name says: too few to tell persons apart. In a small table, few are many."""
    for n, n_distinct, role in (
        (600, 4, "quasi_identifier"),
        (600, 5, "identifier"),
        (20, 4, "quasi_identifier"),
        (19, 4, "identifier"),
    ):
        found = guess_role(ColumnProfile(name, "string", n, n_distinct))
        assert found.role == role
        assert ("values in" in found.why) == (role == "quasi_identifier")


@pytest.mark.parametrize(
    ("name", "n_rows", "role"),
    [
        ("Beleg-Nr", 400, "identifier"),
        ("Beleg-Nr", 19, "quasi_identifier"),
        ("points", 400, "quasi_identifier"),
    ],
)
def test_a_number_of_every_row(name: str, n_rows: int, role: str) -> None:
    """Few rows tell it, if its name does."""
    assert guess_role(ColumnProfile(name, "bigint", n_rows, n_rows, unique=True)).role == role
