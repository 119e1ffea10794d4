"""`likewise wordnet`: the senses of a noun, and how alike nouns are."""

from __future__ import annotations

import json

from tests.cli.conftest import run


def test_the_command_prints_a_pair() -> None:
    assert run("wordnet", "dog.n.01", "n02123045").stdout == (
        "measure  dog.n.01 - tabby.n.01\n"
        "-------  ---------------------\n"
        "path     0.2500\n"
        "wup      0.8000\n"
        "lch      2.2513\n"
    )


def test_the_command_prints_a_table_of_more() -> None:
    printed = run("wordnet", "dog.n.01", "n02123045", "truck.n.01").stdout.split("\n\n")
    assert printed[0] == (
        "path        dog.n.01  tabby.n.01  truck.n.01\n"
        "----------  --------  ----------  ----------\n"
        "dog.n.01    1.0000    0.2500      0.0769\n"
        "tabby.n.01  0.2500    1.0000      0.0714\n"
        "truck.n.01  0.0769    0.0714      1.0000"
    )
    assert [table.split()[0] for table in printed] == ["path", "wup", "lch"]


def test_the_command_lists_senses_and_asks_for_one() -> None:
    assert run("wordnet", "mouse").stdout == (
        "id         name         a kind of               words\n"
        "---------  -----------  ----------------------  ------------------------\n"
        "n02330245  mouse.n.01   rodent.n.01             mouse\n"
        "n14289387  shiner.n.01  bruise.n.01             shiner, black eye, mouse\n"
        "n10335563  mouse.n.03   person.n.01             mouse\n"
        "n03793489  mouse.n.04   electronic_device.n.01  mouse, computer mouse\n"
    )
    asked = run("wordnet", "mouse", "cat.n.01")
    assert (asked.returncode, asked.stdout) == (1, "")
    assert asked.stderr.startswith("likewise: the noun 'mouse' has 4 senses in WordNet 3.0: ")
    assert asked.stderr.count("\n") == 1


def test_the_command_speaks_json() -> None:
    sense = json.loads(run("wordnet", "mouse", "--json").stdout)[0]
    assert (sense["wnid"], sense["parents"]) == ("n02330245", ["rodent.n.01"])
    pair = json.loads(run("wordnet", "dog.n.01", "cat.n.01", "--json").stdout)
    assert pair["path"] == [[1.0, 0.2], [0.2, 1.0]]
    assert [synset["name"] for synset in pair["synsets"]] == ["dog.n.01", "cat.n.01"]
