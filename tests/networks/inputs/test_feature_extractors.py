"""Sounds as audio networks take them, against the network's own feature extractor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import likewise
from likewise.networks.forward import call, padding_mask, prepare_inputs
from tests.fuzz.tiny_transformers import build, extractor, save
from tests.networks.helpers import refused, said

pytestmark = pytest.mark.usefixtures("vision")

RNG = np.random.default_rng(0)
SOUNDS = [RNG.normal(size=n).astype(np.float32) for n in (4000, 9000, 6000, 5000)]


def given(kind: str, sounds: Any = SOUNDS, **options: Any) -> Any:
    config = build(kind).config
    return extractor(config)(list(sounds), sampling_rate=16_000, return_tensors="pt", **options)


@pytest.mark.parametrize("kind", ["wav2vec2", "wav2vec2-layer-norm", "hubert", "wavlm", "ast", "whisper"])
def test_sounds_of_different_length_are_shown_as_the_extractor_gives_them(tmp_path: Path, kind: str) -> None:
    save(kind, tmp_path)
    net, _ = said(lambda: likewise.network(f"hf:{tmp_path}"))
    padded = {} if kind in ("ast", "whisper") else {"padding": True}
    expected = given(kind, **padded)
    whole = build(kind)
    whole = whole if kind == "ast" else whole.get_encoder() if kind == "whisper" else whole.base_model
    with torch.no_grad():
        answer, _ = said(lambda: call(net, SOUNDS))
        oracle = whole(**expected)
    name = "logits" if kind == "ast" else "last_hidden_state"
    torch.testing.assert_close(answer[name], oracle[name])


@pytest.mark.parametrize("kind", ["wav2vec2", "wav2vec2-layer-norm", "whisper", "sew"])
def test_padding_is_left_out_of_what_is_averaged(tmp_path: Path, kind: str) -> None:
    save(kind, tmp_path)
    net, _ = said(lambda: likewise.network(f"hf:{tmp_path}"))
    view, _ = said(lambda: likewise.extract(net, SOUNDS, "logits", reduce="mean", progress=False))
    with torch.no_grad():
        states = call(net, SOUNDS).last_hidden_state
    # of the frames of a sound, those that begin before it ends
    lengths = torch.tensor([-(-len(sound) // (160 if kind == "whisper" else 1)) for sound in SOUNDS])
    frames = net._get_feat_extract_output_lengths(lengths)
    expected = torch.stack([state[:count].mean(dim=0) for state, count in zip(states, frames, strict=True)])
    np.testing.assert_allclose(view.values, expected, atol=1e-5)


def test_a_network_that_takes_a_mask_gives_a_padded_sound_what_it_gives_it_alone(tmp_path: Path) -> None:
    save("wav2vec2-layer-norm", tmp_path)
    net = likewise.network(f"hf:{tmp_path}")
    together = likewise.extract(net, SOUNDS, "embedding", reduce="mean", progress=False)
    alone = likewise.extract(net, [SOUNDS[0], SOUNDS[0]], "embedding", reduce="mean", progress=False)
    np.testing.assert_allclose(together.values[0], alone.values[0], atol=1e-5)


def test_rows_of_samples_and_lists_of_arrays_are_the_same(tmp_path: Path) -> None:
    save("hubert", tmp_path)
    net = likewise.network(f"hf:{tmp_path}")
    rows = np.stack([sound[:4000] for sound in SOUNDS])
    views = [
        likewise.extract(net, data, "embedding", reduce="mean", progress=False, batch_size=3)
        for data in (rows, list(rows), torch.from_numpy(rows), list(torch.from_numpy(rows)))
    ]
    for view in views[1:]:
        np.testing.assert_allclose(view.values, views[0].values, atol=1e-6)


def test_whole_numbers_are_taken_as_files_of_sound_hold_them(tmp_path: Path) -> None:
    save("whisper", tmp_path)
    net, _ = said(lambda: likewise.network(f"hf:{tmp_path}"))
    loud = (np.clip(SOUNDS[0] / 8, -1, 1) * 32767).astype(np.int16)
    features = prepare_inputs(net, [loud])["input_features"]
    expected = given("whisper", [(loud / 32768).astype(np.float32)])["input_features"]
    torch.testing.assert_close(features, expected)


def test_samples_of_another_rate_are_brought_to_the_extractor_s(tmp_path: Path) -> None:
    save("hubert", tmp_path)
    time = np.arange(8000) / 8000
    slow, fast = np.sin(440 * 2 * np.pi * time), np.sin(440 * 2 * np.pi * np.arange(16_000) / 16_000)
    net = likewise.network(f"hf:{tmp_path},sampling_rate=8000")
    values = prepare_inputs(net, [slow])["input_values"]
    expected = given("hubert", [fast])["input_values"]
    assert values.shape == expected.shape
    torch.testing.assert_close(values[:, 200:-200], expected[:, 200:-200], atol=0.02, rtol=0)


def test_sounds_that_are_cut_are_counted(tmp_path: Path) -> None:
    save("whisper", tmp_path)
    net, _ = said(lambda: likewise.network(f"hf:{tmp_path}"))
    _, notes = said(lambda: prepare_inputs(net, [np.zeros(16_001), np.zeros(16_000), np.zeros(20_000)]))
    assert notes == ["2 of 3 sounds are longer than 1 seconds, and are cut there."]


def test_sounds_of_several_channels_are_refused(tmp_path: Path) -> None:
    save("hubert", tmp_path)
    net = likewise.network(f"hf:{tmp_path}")
    assert refused(lambda: net.from_samples([SOUNDS[0], np.zeros((2, 100))])) == (
        "sound 1 is an array of shape (2, 100) and type float64. Give one row of samples per sound, such as "
        "sound.mean(axis=0) of several channels."
    )


def test_sounds_that_differ_where_their_text_does_not_are_another_probe(tmp_path: Path) -> None:
    save("hubert", tmp_path)
    net = likewise.network(f"hf:{tmp_path}")
    other = [sound.copy() for sound in SOUNDS]
    other[0][2000] += 1  # in the middle, which numpy leaves out of the text of an array
    views = [
        likewise.extract(net, sounds, "embedding", reduce="mean", progress=False) for sounds in (SOUNDS, other, SOUNDS)
    ]
    assert views[0].probe != views[1].probe
    assert views[0].probe == views[2].probe


def test_a_mask_of_samples_is_reduced_to_the_frames_there_are(tmp_path: Path) -> None:
    save("wav2vec2", tmp_path)
    net = likewise.network(f"hf:{tmp_path}")
    inputs = prepare_inputs(net, SOUNDS)
    assert "attention_mask" not in inputs  # it was trained without one
    frames = call(net, SOUNDS).last_hidden_state.shape[1]
    own = net._get_feature_vector_attention_mask(frames, inputs.mask)
    assert torch.equal(padding_mask(net, inputs, frames).bool(), own)
    assert padding_mask(net, inputs, frames - 1) is None


def test_sounds_of_two_networks_are_compared(tmp_path: Path) -> None:
    for kind in ("wav2vec2", "hubert"):
        save(kind, tmp_path / kind)
    networks = [f"hf:{tmp_path}/wav2vec2", f"hf:{tmp_path}/hubert"]
    matrix, _ = said(lambda: likewise.compare(networks, "cka", data=SOUNDS, progress=False))
    assert matrix.names == ("wav2vec2", "hubert")
    assert 0 < matrix["wav2vec2", "hubert"] < 1
