"""Which "her" it was, and whether an article still agrees."""

from __future__ import annotations

import pytest

from twinspan.instrumentation.perturbation import Axis, Slot, builtin_axis
from twinspan.instrumentation.perturbation.agreement import article_for

# Each line holds the same sentence of a woman and of a man.
SENTENCES = """
She took her coat. | He took his coat.
We met her at noon. | We met him at noon.
Give it to her. | Give it to him.
The car is hers. | The car is his.
Hers is the red one. | His is the red one.
A friend of hers, a lawyer, called. | A friend of his, a lawyer, called.
A friend of her father called. | A friend of his mother called.
Her results were normal. | His results were normal.
The nurse told her that the results were normal. | The nurse told him that the results were normal.
I called her yesterday. | I called him yesterday.
I called her doctor yesterday. | I called his doctor yesterday.
I saw her last week. | I saw him last week.
I read the notes of her last visit. | I read the notes of his last visit.
They asked her to wait. | They asked him to wait.
They asked her why the form was late. | They asked him why the form was late.
They thanked her for her patience. | They thanked him for his patience.
Call her back today. | Call him back today.
She fell on her back. | He fell on his back.
She reports pain in her back. | He reports pain in his back.
She hurt her back. | He hurt his back.
Her back pain is worse. | His back pain is worse.
Please drive her home. | Please drive him home.
Her home is far away. | His home is far away.
She was at her best. | He was at his best.
She raised her right arm. | He raised his right arm.
The dose made her sleepy. | The dose made him sleepy.
The news made her happy. | The news made him happy.
Please let her go. | Please let him go.
Please let her know by Monday. | Please let him know by Monday.
We helped her fill in the form. | We helped him fill in the form.
They "helped" her recover. | They "helped" him recover.
We helped her family. | We helped his family.
They saw her leaving the building. | They saw him leaving the building.
Her training was paid for. | His training was paid for.
Her early work was praised. | His early work was praised.
Her highly praised work was shown. | His highly praised work was shown.
They treated her well. | They treated him well.
They treated her quietly and quickly. | They treated him quietly and quickly.
Her only child is ill. | His only child is ill.
Her family is here. | His family is here.
Her own view differs. | His own view differs.
She sold her two houses. | He sold his two houses.
The nurse gave her 5 mg. | The nurse gave him 5 mg.
She lives with her 2 dogs. | He lives with his 2 dogs.
We gave her the keys. | We gave him the keys.
We gave her a second chance. | We gave him a second chance.
We gave her another chance. | We gave him another chance.
She found her keys. | He found his keys.
They found her unconscious. | They found him unconscious.
They left her alone. | They left him alone.
She kept her promise. | He kept his promise.
The drug keeps her awake. | The drug keeps him awake.
Nobody knows her. | Nobody knows him.
Did you see her? | Did you see him?
"Ask her," said the clerk. | "Ask him," said the clerk.
The clerk wrote "her" and left. | The clerk wrote "him" and left.
She loves her "little brother" dearly. | He loves his "little sister" dearly.
We, unlike her, agreed. | We, unlike him, agreed.
They hired her because the team was small. | They hired him because the team was small.
They hired her and promoted her. | They hired him and promoted him.
The manager who hired her said so. | The manager who hired him said so.
It was her who called. | It was him who called.
It was her idea. | It was his idea.
It depends on her. | It depends on him.
It depends on her income. | It depends on his income.
She lost her US passport. | He lost his US passport.
She left her IT job. | He left his IT job.
She missed her May appointment. | He missed his May appointment.
They paid her more. | They paid him more.
Her more recent scans are clear. | His more recent scans are clear.
Her very first job was here. | His very first job was here.
I told her I would write. | I told him I would write.
I told her it was fine. | I told him it was fine.
I told her she'd be late. | I told him he'd be late.
I know her well-being matters. | I know his well-being matters.
She invited her in-laws. | He invited his in-laws.
Tell her please. | Tell him please.
Her then employer paid. | His then employer paid.
The offer was hers to refuse. | The offer was his to refuse.
The decision was hers alone. | The decision was his alone.
That book of hers is out. | That book of his is out.
She said the house was hers, not the bank's. | He said the house was his, not the bank's.
Her sister wants her to stay. | His brother wants him to stay.
HER NAME WAS ON THE LIST. | HIS NAME WAS ON THE LIST.
The committee interviewed her (twice). | The committee interviewed him (twice).
They interviewed her; the vote was close. | They interviewed him; the vote was close.
They rely on her every day. | They rely on him every day.
They watched her every move. | They watched his every move.
We visited her during the trial. | We visited him during the trial.
The letter reached her before the deadline. | The letter reached him before the deadline.
Her due date has passed. | His due date has passed.
We owe her due to the error. | We owe him due to the error.
Her medication was changed. | His medication was changed.
The bank denied her loan. | The bank denied his loan.
The bank denied her again. | The bank denied him again.
I would hire her without hesitation. | I would hire him without hesitation.
Her being late was no problem. | His being late was no problem.
Everyone likes her here. | Everyone likes him here.
"""

# Sentences the rules get wrong, and will until they parse.
KNOWN_MISSES = """
We gave her flowers. | We gave him flowers.
They offered her shelter. | They offered him shelter.
We saw her work at night. | We saw him work at night.
Everyone who met her loved the talk. | Everyone who met him loved the talk.
A friend of hers called. | A friend of his called.
"""


def pairs(lines: str) -> list[tuple[str, str]]:
    found = [tuple(line.split(" | ")) for line in lines.strip().splitlines()]
    return [(woman, man) for woman, man in found]


GENDER = builtin_axis("gender")


@pytest.mark.parametrize(("of_woman", "of_man"), pairs(SENTENCES))
def test_a_sentence_of_a_woman_becomes_the_sentence_of_a_man(of_woman: str, of_man: str) -> None:
    """The word "her" becomes "him" or "his", whichever the sentence needs."""
    assert GENDER.swap(of_woman, to="man").payload == of_man


@pytest.mark.parametrize(("of_woman", "of_man"), pairs(SENTENCES))
def test_a_sentence_of_a_man_becomes_the_sentence_of_a_woman(of_woman: str, of_man: str) -> None:
    """The word "his" becomes "her" or "hers", whichever the sentence needs."""
    assert GENDER.swap(of_man, to="woman").payload == of_woman


@pytest.mark.parametrize(("of_woman", "of_man"), pairs(KNOWN_MISSES))
def test_what_the_rules_are_documented_to_miss_they_miss(of_woman: str, of_man: str) -> None:
    """A miss that has become a hit belongs in the other list."""
    there = GENDER.swap(of_woman, to="man").payload == of_man
    back = GENDER.swap(of_man, to="woman").payload == of_woman
    assert not (there and back)


def test_her_is_his_before_a_noun_and_him_elsewhere() -> None:
    """One mapping for every "her" would make "I met his"."""
    twin = GENDER.swap("I met her at her office; the office is hers.", to="man")
    assert twin.payload == "I met him at his office; the office is his."


def test_both_pronouns_of_a_coordinated_pair_are_left_alone() -> None:
    """The pair "his or her" speaks of nobody's gender."""
    assert GENDER.swap("Each applicant signs his or her form.").no_op


def test_his_or_her_is_a_pair_of_determiners_where_an_axis_does_not_shield_it() -> None:
    """A coordinated possessive is read by the noun after both."""
    slots = (
        Slot(name="a", role="determiner", forms={"woman": ("her",), "man": ("his",)}),
        Slot(name="b", role="object", forms={"woman": ("her",), "man": ("him",)}),
        Slot(name="c", role="pronoun", forms={"woman": ("hers",), "man": ("his",)}),
    )
    axis = Axis(name="gender", groups=("woman", "man"), slots=slots)
    assert axis.swap("his or her doctor", to="woman").payload == "her or his doctor"


@pytest.mark.parametrize(
    ("phrase", "article"),
    [
        ("old man", "an"), ("young man", "a"), ("Asian man", "an"), ("European man", "a"),
        ("unemployed man", "an"), ("unidentified man", "an"), ("uninsured man", "an"),
        ("university", "a"), ("unique case", "a"), ("urgent case", "an"), ("urinary tract", "a"),
        ("US citizen", "a"), ("hourly rate", "an"), ("honest man", "an"), ("house", "a"),
        ("heir", "an"), ("8-year-old", "an"), ("18-year-old", "an"), ("11-year-old", "an"),
        ("80-year-old", "an"), ("118 pages", "a"), ("34-year-old", "a"), ("one-time fee", "a"),
        ('"elderly" man', "an"), ("", "a"),
    ],
)  # fmt: skip
def test_the_article_follows_the_sound_of_the_next_word(phrase: str, article: str) -> None:
    """Spelling stands in for sound, with the usual exceptions."""
    assert article_for(phrase) == article


@pytest.mark.parametrize(
    ("text", "to", "expected"),
    [
        ("An elderly man waits.", "younger", "A young man waits."),
        ("a young man", "older", "an old man"),
        ("A YOUNG MAN came", "older", "AN OLD MAN came"),
        ("He saw a  young man", "older", "He saw an  old man"),
        ("the young man", "older", "the old man"),
        ("plan A young man", "older", "plan An old man"),
    ],
)
def test_an_article_is_edited_with_the_word_it_agrees_with(
    text: str, to: str, expected: str
) -> None:
    """The word "a" turns into "an" and back, in its own case."""
    assert builtin_axis("age").swap(text, to=to).payload == expected


def test_an_article_that_did_not_agree_before_is_left_alone() -> None:
    """A mistake of the author's is no business of the swap's."""
    assert builtin_axis("age").swap("an young man").payload == "an old man"
    assert builtin_axis("race_ethnicity").swap("an Black man", to="white").payload == (
        "an White man"
    )


def test_an_article_that_a_term_has_taken_is_not_edited_twice() -> None:
    """A phrase that ends in an article keeps it."""
    slot = Slot(name="phrase", forms={"x": ("is a", "dog"), "y": ("was a", "owl")})
    twin = Axis(name="tense", groups=("x", "y"), slots=(slot,)).swap("it is a dog")
    assert twin.payload == "it was a owl"


def test_an_axis_of_another_language_leaves_articles_alone() -> None:
    """Hungarian has an "a" of its own."""
    slot = Slot(name="person", forms={"x": ("ember",), "y": ("nő",)})
    axis = Axis(name="nem", groups=("x", "y"), slots=(slot,), language="hu")
    assert axis.swap("a nő", to="x").payload == "a ember"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She is Christian.", "She is Jewish."),
        ("He is a Christian.", "He is a Jewish person."),
        ("A devout Christian, she spoke.", "A devout Jewish person, she spoke."),
        ("a Christian family", "a Jewish family"),
        ("Religion: Christian", "Religion: Jewish"),
        ("The Christian said no.", "The Jewish person said no."),
    ],
)
def test_an_adjective_that_is_also_a_noun_gets_the_counterpart_it_needs(
    text: str, expected: str
) -> None:
    """Where both meanings share a word, the neighbours decide."""
    assert builtin_axis("religion").swap(text, to="jewish").payload == expected
