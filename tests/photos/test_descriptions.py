import pytest

from searchlab.photos.descriptions import NEAR, SURE, SURE_KIND, Sight, describe, name_subject


def seen(*labels, kinds=()):
    return Sight(labels, kinds)


def test_a_sure_label_is_stated():
    sight = seen(("red fox", 0.7), kinds=(("an animal", 1.0),))
    long, short = describe(sight, colors=["orange", "white"], orientation="landscape")
    assert short == "Photo of a red fox, mostly orange and white (generated)."
    assert long == (
        "A wide photo showing a red fox. Its main colours are orange and white. "
        "Generated description."
    )


def test_of_unsure_labels_the_kind_is_stated_and_they_are_listed():
    sight = seen(("oboe", 0.5), ("cello", 0.48), kinds=(("a musical instrument", 0.9),))
    long, short = describe(sight, colors=["orange"], orientation="portrait")
    assert short == "Photo of a musical instrument, mostly orange (generated)."
    assert long == (
        "A tall photo showing a musical instrument. Nearest labels: oboe, cello. "
        "Its main colour is orange. Generated description."
    )


def test_of_labels_of_no_kind_nothing_is_stated():
    sight = seen(("Golden Retriever", 0.5), ("a house", 0.48), kinds=(("a dog", 0.6),))
    long, short = describe(sight, colors=["white"], orientation="square")
    assert short == "Photo, mostly white (generated)."
    assert long.startswith("A square photo. Nearest labels: Golden Retriever, a house.")


def test_the_narrowest_sure_kind_is_stated():
    kinds = (("a dog", 0.69), ("an animal", 0.95))
    assert name_subject(seen(("dingo", 0.5), kinds=kinds)) == "an animal"
    kinds = (("a dog", 0.8), ("an animal", 0.95))
    assert name_subject(seen(("dingo", 0.5), kinds=kinds)) == "a dog"


def test_what_is_stated_is_not_listed_and_far_labels_are_left_out():
    sight = seen(("dingo", 0.7), ("red fox", 0.66), ("coyote", 0.45), ("teapot", 0.44))
    long, short = describe(sight, colors=[], orientation="square")
    assert long == (
        "A square photo showing a dingo. Nearest labels: red fox, coyote. Generated description."
    )
    assert short == "Photo of a dingo (generated)."
    sight = seen(("the sky", 0.5), kinds=(("the sky", 0.9),))
    assert "Nearest" not in describe(sight, colors=[], orientation="square")[0]


def test_borders_count_as_reached():
    assert name_subject(seen(("cat", SURE))) == "a cat"
    assert name_subject(seen(("cat", SURE - 0.0001))) == ""
    assert name_subject(seen(("cat", 0.5), kinds=(("a cat", SURE_KIND),))) == "a cat"
    assert name_subject(seen(("cat", 0.5), kinds=(("a cat", SURE_KIND - 0.0001),))) == ""
    assert "cat" in describe(seen(("cat", NEAR)), colors=[], orientation="square")[0]
    assert "cat" not in describe(seen(("cat", NEAR - 0.0001)), colors=[], orientation="square")[0]


@pytest.mark.parametrize("labels", [(), (("teapot", 0.1),), (("teapot", -1.0),)])
def test_a_model_that_names_nothing_leaves_colours_and_shape(labels):
    long, short = describe(seen(*labels), colors=["blue"], orientation="landscape")
    assert long == "A wide photo. Its main colour is blue. Generated description."
    assert short == "Photo, mostly blue (generated)."


def test_nothing_known_is_still_a_sentence_that_says_it_is_generated():
    long, short = describe(Sight(), colors=[], orientation="square")
    assert long == "A square photo. Generated description."
    assert short == "Photo (generated)."


@pytest.mark.parametrize("orientation", ["landscape", "portrait", "square"])
@pytest.mark.parametrize("cosine", [0.9, 0.6, 0.0])
def test_every_text_says_that_it_is_generated(orientation, cosine):
    for text in describe(seen(("cat", cosine)), colors=["red"], orientation=orientation):
        assert "generated" in text.lower()


def test_of_many_colours_three_are_told_and_each_once():
    colors = ["red", "red", "blue", "green", "red", "yellow", "pink"]
    long, short = describe(Sight(), colors=colors, orientation="square")
    assert "Its main colours are red, blue and green." in long
    assert short == "Photo, mostly red and blue (generated)."


def test_one_colour_is_told_in_the_singular():
    long, _ = describe(Sight(), colors=["red"], orientation="square")
    assert "colour is red" in long


@pytest.mark.parametrize(
    ("label", "phrase"),
    [
        ("apple", "an apple"),
        ("Egyptian cat", "an Egyptian cat"),
        ("ice cream", "an ice cream"),
        ("otter", "an otter"),
        ("umbrella", "an umbrella"),
        ("zebra", "a zebra"),
        ("yawl", "a yawl"),
        ("hourglass", "an hourglass"),
        ("unicycle", "a unicycle"),
        ("one-piece bathing suit", "a one-piece bathing suit"),
        ("European polecat", "a European polecat"),
        ("triceratops", "a triceratops"),
        ("praying mantis", "a praying mantis"),
        ("pajamas", "pajamas"),
        ("sunglasses", "sunglasses"),
        ("mashed potatoes", "mashed potatoes"),
    ],
)
def test_the_article_goes_by_sound_and_number(label, phrase):
    _, short = describe(seen((label, 0.9)), colors=[], orientation="square")
    assert short == f"Photo of {phrase} (generated)."


def test_the_same_label_is_not_told_twice():
    long, _ = describe(seen(("cat", 0.5), ("cat", 0.45)), colors=[], orientation="square")
    assert long.count("cat") == 1


def test_labels_are_told_as_they_are_never_interpreted():
    long, _ = describe(seen(("<b>{x}</b> %s", 0.9)), colors=["{0}"], orientation="square")
    assert "<b>{x}</b> %s" in long
    assert "{0}" in long
