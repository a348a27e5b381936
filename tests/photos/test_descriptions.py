import pytest

from searchlab.photos.descriptions import describe


def test_a_sure_label_is_stated():
    long, short = describe([("red fox", 0.7)], colors=["orange", "white"], orientation="landscape")
    assert short == "Photo of a red fox, mostly orange and white (generated)."
    assert long == (
        "A wide photo showing a red fox. Its main colours are orange and white. "
        "Generated description."
    )


def test_an_unsure_label_is_hedged():
    long, short = describe([("red fox", 0.5)], colors=["orange"], orientation="portrait")
    assert short == "Photo, may show a red fox, mostly orange (generated)."
    assert long == (
        "A tall photo that may show a red fox. Its main colour is orange. Generated description."
    )


def test_other_near_labels_are_resemblances_and_far_ones_are_left_out():
    tags = [("dingo", 0.7), ("red fox", 0.66), ("coyote", 0.45), ("teapot", 0.44)]
    long, short = describe(tags, colors=[], orientation="square")
    assert long == (
        "A square photo showing a dingo. It resembles a red fox or a coyote. Generated description."
    )
    assert short == "Photo of a dingo (generated)."


def test_borders_of_sure_and_unsure_count_as_reached():
    assert "showing a cat" in describe([("cat", 0.6)], colors=[], orientation="square")[0]
    assert "may show a cat" in describe([("cat", 0.45)], colors=[], orientation="square")[0]
    assert "cat" not in describe([("cat", 0.4499)], colors=[], orientation="square")[0]


@pytest.mark.parametrize("tags", [[], [("teapot", 0.1)], [("teapot", -1.0)]])
def test_a_model_that_names_nothing_leaves_colours_and_shape(tags):
    long, short = describe(tags, colors=["blue"], orientation="landscape")
    assert long == "A wide photo. Its main colour is blue. Generated description."
    assert short == "Photo, mostly blue (generated)."


def test_nothing_known_is_still_a_sentence_that_says_it_is_generated():
    long, short = describe([], colors=[], orientation="square")
    assert long == "A square photo. Generated description."
    assert short == "Photo (generated)."


@pytest.mark.parametrize("orientation", ["landscape", "portrait", "square"])
@pytest.mark.parametrize("cosine", [0.9, 0.6, 0.0])
def test_every_text_says_that_it_is_generated(orientation, cosine):
    for text in describe([("cat", cosine)], colors=["red"], orientation=orientation):
        assert "generated" in text.lower()


def test_of_many_colours_three_are_told_and_each_once():
    colors = ["red", "red", "blue", "green", "red", "yellow", "pink"]
    long, short = describe([], colors=colors, orientation="square")
    assert "Its main colours are red, blue and green." in long
    assert short == "Photo, mostly red and blue (generated)."


def test_one_colour_is_told_in_the_singular():
    long, _ = describe([], colors=["red"], orientation="square")
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
    _, short = describe([(label, 0.9)], colors=[], orientation="square")
    assert short == f"Photo of {phrase} (generated)."


def test_the_same_label_is_not_told_twice():
    long, _ = describe([("cat", 0.5), ("cat", 0.45)], colors=[], orientation="square")
    assert long.count("cat") == 1


def test_labels_are_told_as_they_are_never_interpreted():
    long, _ = describe([("<b>{x}</b> %s", 0.9)], colors=["{0}"], orientation="square")
    assert "<b>{x}</b> %s" in long
    assert "{0}" in long
