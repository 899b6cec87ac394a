"""What names of columns say, in several languages, in English words.

Patterns are in lower case and without accents, as names are compared: `*` stands for any letters
of a word, `?` for one; `+` is between words that follow each other or are written as one; `=` is
before what must be the whole name. `oneperson` is a word for a person that is all of a name: each
value stands for one.
"""

import re
from functools import cache
from unicodedata import combining, normalize

#: The languages that names are read in.
LANGUAGES = "English, German, French, Polish, Spanish, Italian or Dutch"

#: By language and English word: patterns that mean it. Plurals are left out where a name may be
#: that of a count (`numero_clientes`), and so are words that mean something else in English.
_MEANINGS = {
    "English": {
        "tradeunion": "union+member* trade+union*",
        "licenseplate": "=vin vin+number vin+no vin+code vehicle+vin car+vin",
        "oneperson": "=patient =customer =client =member =employee =student =citizen =respondent "
        "=borrower =participant =pupil =learner =applicant =claimant =tenant =voter =taxpayer "
        "=donor "
        "=guest =passenger =pseudonym",
        "salary": "=pay gross+pay net+pay base+pay basic+pay annual+pay monthly+pay weekly+pay "
        "hourly+pay pay+rate remuneration",
        "politics": "vote+intention voting+intention party+affiliation party+preference",
        "disease": "hb+a+1+c phq+9 viral+load mental+health cause+of+death dx",
        "treatment": "=drg drg+code procedure+code",
        "genotype": "blood+type blood+group",
        "ethnicity": "asylum* refugee*",
        "sexuality": "gender+identity transgender",
        "conviction": "police+record arrest arrests",
        "debt": "credit+score credit+rating arrears loan+default",
    },
    "German": {
        "name": "?*enname geburtsname mitgliedsname",
        "forename": "vorname vornamen rufname",
        "surname": "nachname nachnamen familienname zuname",
        "username": "benutzername nutzername",
        "address": "anschrift* adresse* *adresse hausnummer hausnr",
        "street": "strasse *strasse",
        "phone": "telefon* handy handynummer handynr mobilnummer mobiltelefon festnetz* *rufnummer",
        "fax": "faxnummer telefax*",
        "passport": "reisepass* passnummer passnr ausweis* personalausweis*",
        "nin": "steuer+id steuernummer steuernr steueridentifikationsnummer *versicherungsnummer "
        "*versicherungsnr *versichertennummer svnr svnummer matrikel*",
        "licenseplate": "kfz+kennzeichen autokennzeichen nummernschild",
        "id": "kennung ?*enkennung",
        "number": "*nummer nr ?*ennr ?*ernr ?*alnr ??*tnr ??*dsnr ?*gsnr ?*tsnr kontonr "
        "persnr kdnr *schluessel *schlussel kennung ?*enkennung",
        "patient": "patient* pat versicherte*",
        "customer": "kunde* kd mandant* klient*",
        "employee": "personal* pers mitarbeiter* beschaftigte* beschaeftigte*",
        "person": "personen* proband* teilnehmer* bewohner* buerger*",
        "oneperson": "=proband =probandin =kunde =kundin =klient =klientin =mitarbeiter "
        "=versicherter "
        "=teilnehmer =schuler =schueler =mitglied =vertragskonto vertragskonto+nummer "
        "vertragskonto+nr",
        "member": "mitglied*",
        "student": "schuler* schueler* studierende* studenten*",
        "household": "haushalt*",
        "account": "konto*",
        "card": "karte*",
        "policy": "versicherung*",
        "postcode": "plz postleitzahl* plz?*",
        "city": "stadt ort wohnort gemeinde",
        "county": "landkreis",
        "birthdate": "geburtsdatum geburtstag gebdat*",
        "age": "alter",
        "date": "datum *datum",
        "diagnosis": "diagnose* *diagnose *diagnosen befund*",
        "disease": "krankheit* *krankheit erkrankung* *erkrankung allergie* krebs krebsart "
        "krebsdiagnose tumor* todesursache* depression*",
        "symptom": "symptom*",
        "medication": "medikament* medikation* arznei*",
        "therapy": "therapie*",
        "treatment": "behandlung* =ops ops+code ops+schlussel ops+schluessel",
        "religion": "konfession* religion* glauben* kirchensteuer*",
        "politics": "politisch* partei* wahlabsicht* wahlverhalten wahlentscheidung",
        "sexuality": "sexuell* sexualitat",
        "ethnicity": "ethnie ethnisch* ethnizitat migrationshintergrund asyl* fluchtling* "
        "fluechtling* aufenthaltsstatus aufenthaltstitel kaste",
        "tradeunion": "gewerkschaft*",
        "disability": "behinderung* *behinderung behindert* schwerbehindert* behinderungsgrad gdb "
        "pflegegrad* pflegestufe*",
        "pregnancy": "schwanger*",
        "genotype": "genotyp genotypen gendefekt blutgruppe*",
        "conviction": "vorstrafe* vorbestraft* straftat* delikt*",
        "income": "einkommen* *einkommen",
        "salary": "gehalt bruttogehalt nettogehalt jahresgehalt monatsgehalt grundgehalt "
        "jahresbrutto monatsbrutto jahresnetto monatsnetto =entgelt bruttoentgelt nettoentgelt "
        "jahresentgelt monatsentgelt arbeitsentgelt =verguetung =vergutung bezuge bezuege "
        "besoldung*",
        "wage": "lohn bruttolohn nettolohn stundenlohn arbeitslohn",
        "debt": "schulden* schuldenstand verschuldung* schufa* bonitat* bonitaet* mahnstufe",
    },
    "French": {
        "name": "nom noms nom+de+famille",
        "forename": "prenom*",
        "address": "adresse* domicile",
        "street": "rue",
        "email": "courriel*",
        "nin": "matricule numero+nir securite+sociale rpps",
        "oneperson": "=assure =eleve =etudiant =salarie =adherent",
        "passport": "passeport*",
        "licenseplate": "immatriculation",
        "id": "identifiant*",
        "number": "numero num no cle identifiant",
        "patient": "assure",
        "customer": "client",
        "employee": "salarie employe",
        "member": "adherent beneficiaire",
        "student": "eleve etudiant",
        "household": "foyer menage",
        "account": "compte",
        "card": "carte",
        "postcode": "code+postal",
        "city": "ville commune",
        "birthdate": "date+naissance date+de+naissance",
        "diagnosis": "diagnostic diagnostics",
        "disease": "maladie* pathologie* allergie* tumeur* cause+deces cause+de+deces vih sida",
        "symptom": "symptome*",
        "medication": "medicament*",
        "therapy": "therapie*",
        "treatment": "traitement*",
        "religion": "confession croyance*",
        "politics": "politique* intention+vote intention+de+vote",
        "sexuality": "sexuelle",
        "ethnicity": "ethnie* ethnique*",
        "tradeunion": "syndicat syndicats syndical syndicale syndique*",
        "disability": "handicap* invalidite",
        "pregnancy": "grossesse* enceinte",
        "genotype": "genotype* groupe+sanguin",
        "conviction": "condamnation* casier+judiciaire",
        "income": "revenu revenus",
        "salary": "salaire* remuneration* net+a+payer",
        "debt": "dette* endettement impaye*",
    },
    "Polish": {
        "forename": "imie imiona",
        "surname": "nazwisko nazwiska",
        "address": "adres adresu",
        "street": "ulica ulicy",
        "phone": "telefon* komorka",
        "passport": "paszport* nr+dowodu numer+dowodu dowod+osobisty",
        "nin": "=nip nr+nip numer+nip nip+klienta nip+numer",
        "id": "identyfikator*",
        "number": "numer nr klucz identyfikator",
        "patient": "pacjent pacjenta ubezpieczonego",
        "customer": "klient klienta",
        "employee": "pracownik pracownika",
        "person": "osoba osoby",
        "oneperson": "=pacjent =klient =pracownik =uczen =ubezpieczony",
        "member": "czlonek czlonka",
        "student": "uczen ucznia studenta",
        "household": "gospodarstwo gospodarstwa",
        "account": "konta",
        "card": "karta karty",
        "policy": "polisa polisy",
        "postcode": "kod+pocztowy pocztowy",
        "city": "miasto gmina",
        "county": "powiat",
        "birthdate": "data+urodzenia",
        "age": "wiek",
        "diagnosis": "diagnoza diagnozy rozpoznanie rozpoznania",
        "disease": "chorob* nowotwor* alergi* depresja zdrowie+psychiczne przyczyna+zgonu",
        "symptom": "objaw objawy",
        "medication": "=lek leki leku",
        "therapy": "terapia terapii",
        "treatment": "leczenie leczenia",
        "religion": "wyznanie wyznania religia religii",
        "politics": "poglady+polityczne glos+na preferencje+wyborcze",
        "ethnicity": "etniczn*",
        "tradeunion": "zwiazek+zawodowy zwiazki+zawodowe",
        "disability": "niepelnospraw*",
        "pregnancy": "ciaza ciazy",
        "genotype": "genotyp",
        "conviction": "karalnosc karany wyrok wyroki",
        "income": "dochod dochody dochodu",
        "salary": "pensja pensji wynagrodzeni* zarobki =placa placa+zasadnicza placa+brutto "
        "placa+netto",
        "debt": "dlug dlugi zadluzeni*",
    },
    "Spanish": {
        "name": "nombre nombres",
        "surname": "apellido*",
        "address": "direccion domicilio",
        "street": "calle",
        "email": "correo*",
        "phone": "telefono* movil",
        "passport": "pasaporte*",
        "nin": "=dni =nif dni+paciente dni+cliente dni+titular numero+dni num+dni nro+dni "
        "nif+cliente nif+titular numero+nif cedula =nhc nhc+paciente historia+clinica",
        "holder": "titular",
        "oneperson": "=paciente =cliente =empleado =trabajador =alumno =asegurado =socio =poliza",
        "licenseplate": "=matricula matricula+coche matricula+vehiculo",
        "id": "identificador*",
        "number": "numero num nro clave identificador",
        "patient": "paciente asegurado",
        "customer": "cliente",
        "employee": "empleado trabajador",
        "person": "persona",
        "member": "socio afiliado",
        "student": "alumno estudiante",
        "household": "hogar",
        "account": "cuenta",
        "card": "tarjeta",
        "policy": "poliza",
        "postcode": "codigo+postal",
        "city": "ciudad municipio",
        "birthdate": "fecha+nacimiento fecha+de+nacimiento",
        "age": "edad",
        "date": "fecha",
        "diagnosis": "diagnostico*",
        "disease": "enfermedad* patologia* alergia* depresion vih sida causa+muerte "
        "causa+de+muerte "
        "salud+mental",
        "symptom": "sintoma*",
        "medication": "medicamento* medicacion",
        "therapy": "terapia*",
        "treatment": "tratamiento*",
        "religion": "creencia*",
        "politics": "politica politico ideologia intencion+voto intencion+de+voto",
        "orientation": "orientacion+sexual",
        "ethnicity": "etnia etnias",
        "tradeunion": "sindicato* sindical",
        "disability": "discapacidad* minusvalia*",
        "pregnancy": "embarazo embarazada",
        "genotype": "genotipo* grupo+sanguineo",
        "conviction": "condena condenas antecedentes+penales",
        "income": "ingresos renta",
        "salary": "salario* sueldo* =nomina nomina+mensual nomina+bruta nomina+neta retribucion*",
        "debt": "deuda* morosidad",
    },
    "Italian": {
        "name": "nome nominativo",
        "surname": "cognome cognomi",
        "address": "indirizzo*",
        "phone": "cellulare",
        "passport": "passaporto*",
        "nin": "codice+fiscale matricola",
        "oneperson": "=paziente =cliente =dipendente =alunno =studente =assistito =tessera",
        "licenseplate": "targa",
        "id": "identificativo*",
        "number": "numero num chiave identificativo codice",
        "patient": "paziente assistito",
        "customer": "cliente",
        "employee": "dipendente",
        "person": "persona",
        "member": "socio",
        "student": "alunno studente",
        "household": "nucleo+familiare",
        "account": "conto",
        "card": "tessera",
        "policy": "polizza",
        "postcode": "=cap codice+postale",
        "city": "citta comune",
        "birthdate": "data+nascita data+di+nascita",
        "diagnosis": "diagnosi",
        "disease": "malattia malattie patologia patologie allergi* tumore tumori causa+morte "
        "causa+di+morte",
        "politics": "intenzione+voto intenzione+di+voto preferenza+politica",
        "genotype": "gruppo+sanguigno",
        "symptom": "sintomo sintomi",
        "medication": "farmaco farmaci",
        "therapy": "terapia terapie",
        "religion": "religione",
        "orientation": "orientamento+sessuale",
        "tradeunion": "sindacato sindacale",
        "disability": "disabilita invalidita",
        "pregnancy": "gravidanza incinta",
        "conviction": "condanna condanne precedenti+penali",
        "income": "reddito redditi",
        "salary": "stipendio stipendi retribuzion*",
        "debt": "=debito debito+residuo debito+totale debiti",
    },
    "Dutch": {
        "name": "naam *naam",
        "address": "adres huisnummer",
        "street": "straat *straat",
        "phone": "telefoon* mobielnummer",
        "passport": "paspoort*",
        "nin": "burgerservicenummer",
        "licenseplate": "kenteken",
        "number": "sleutel ?*elsnr ?*onsnr",
        "oneperson": "=patient =klant =medewerker =werknemer =leerling =deelnemer",
        "customer": "klant* client*nr client*nummer",
        "employee": "medewerker* werknemer* personeel*",
        "person": "persoon* deelnemer*",
        "member": "lidnummer lidnr",
        "student": "leerling*",
        "household": "huishouden huishoud?*",
        "account": "rekening*",
        "card": "kaart*",
        "city": "stad gemeente woonplaats",
        "birthdate": "geboortedatum",
        "age": "leeftijd",
        "disease": "ziekte* aandoening* kanker* allergie* doodsoorzaak* depressie",
        "politics": "stemgedrag stemintentie partijvoorkeur vote+intentie",
        "genotype": "bloedgroep*",
        "medication": "medicijn* medicatie",
        "treatment": "behandeling*",
        "religion": "geloof* godsdienst* religie",
        "ethnicity": "etniciteit etnisch*",
        "tradeunion": "vakbond*",
        "pregnancy": "zwanger*",
        "conviction": "strafblad veroordeling*",
        "income": "inkomen* *inkomen",
        "salary": "salaris* brutoloon nettoloon uurloon jaarloon maandloon bezoldiging",
        "wage": "loon",
        "debt": "schuld betalingsachterstand*",
    },
}
#: Letters that Unicode does not take apart into a plain one and an accent.
_PLAIN = str.maketrans({"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ß": "ss"})


def name_words(name: str) -> list[str]:
    """The words of a column name, in lower case and without accents: `nationalID` gives national,
    id."""
    plain = "".join(c for c in normalize("NFD", name.translate(_PLAIN)) if not combining(c))
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+", plain)
    return [word.lower() for word in words]


@cache
def translate_name(name: str) -> frozenset[str]:
    """The English words for what a column name says in one of the languages: `Patientennummer`
    gives patient, number."""
    words = "_".join(name_words(name))
    return frozenset(word for word, shape in _shapes() if shape.search(words))


@cache
def _shapes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """English words, and what means them among words that are joined by `_`."""
    return tuple(
        (word, re.compile("|".join(map(_to_regex, patterns.split()))))
        for meanings in _MEANINGS.values()
        for word, patterns in meanings.items()
    )


def _to_regex(pattern: str) -> str:
    signs = {"*": "[^_]*", "?": "[^_]", "+": "_?"}
    shape = "".join(signs.get(c, c) for c in pattern.removeprefix("="))
    return f"^{shape}$" if pattern.startswith("=") else f"(?:^|_){shape}(?:_|$)"
