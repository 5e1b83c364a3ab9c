"""`budget shuffle`: both directions, the closed form beside, and what has to be true."""

from __future__ import annotations

import pytest

from fedprivacy.errors import InputError
from scenarios.budgets.shuffle import ShuffleQuestion


def test_a_thousand_answers_of_epsilon_1() -> None:
    document = ShuffleQuestion(clients=1000, local_epsilon=1.0).document()
    assert document["epsilon"] == pytest.approx(0.154, abs=5e-4)
    assert document["closed_form"] == pytest.approx(0.532, abs=5e-4)
    assert "at most ln(n/(16 ln(2/delta))) = 1.633" in document["closed_form_condition"]
    for assumption in document["assumptions"]:
        assert assumption in document["words"]
    for said in ("epsilon = 0.1541", "a shuffler that the observer does not control",
                 "Against whoever sees an answer with its sender the epsilon is 1 at delta = 0.",
                 "gives epsilon = 0.532 at delta = 1e-05."):  # fmt: skip
        assert said in document["words"]


def test_back_again() -> None:
    document = ShuffleQuestion(clients=1000, epsilon=0.154).document()
    assert document["local_epsilon"] == pytest.approx(1.0, abs=1e-3)
    assert document["epsilon"] <= 0.154 * (1 + 1e-8)


def test_few_clients_have_no_closed_form() -> None:
    document = ShuffleQuestion(clients=10, local_epsilon=1.0).document()
    assert document["closed_form"] is None
    assert "The closed form does not apply" in document["words"]


def test_a_delta_of_one_client_is_refused() -> None:
    with pytest.raises(InputError, match="1/clients is too much"):
        ShuffleQuestion(clients=1000, local_epsilon=1.0, delta=1e-3).document()


def test_the_epsilon_of_one_answer_is_rounded_up() -> None:
    words = ShuffleQuestion(clients=1000, local_epsilon=1.5383714).document()["words"]
    assert words.count("1.53838 at delta = 0") == 2
