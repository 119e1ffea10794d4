"""Which networks to choose: for an ensemble, or for being unlike; what choices are worth; which measure predicts it."""

from __future__ import annotations

from likewise.analysis.picks.diverse import pick_diverse
from likewise.analysis.picks.ensemble import Pick, matched, pick_ensemble, regrets
from likewise.analysis.picks.predictors import GainPredictors, gain_predictors
from likewise.analysis.picks.trials import Trial, greedy_members, make_trial

__all__ = [
    "GainPredictors",
    "Pick",
    "Trial",
    "gain_predictors",
    "greedy_members",
    "make_trial",
    "matched",
    "pick_diverse",
    "pick_ensemble",
    "regrets",
]
