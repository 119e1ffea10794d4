"""What editors and type checkers know of the measures. Written by scripts/facts.py."""

from typing import Any

from likewise.measures.facts import Info as Info
from likewise.measures.function import Measure as Measure
from likewise.measures.pair import Pair as Pair
from likewise.measures.planning import Cost as Cost
from likewise.measures.planning import cost as cost
from likewise.measures.registry import RESI as RESI
from likewise.measures.registry import get as get
from likewise.measures.registry import measure as measure
from likewise.measures.registry import names as names
from likewise.measures.registry import register as register
from likewise.measures.registry import unregister as unregister
from likewise.measures.representation import Representation as Representation

__all__ = ["RESI", "Cost", "Info", "Measure", "Pair", "Representation", "cost", "get", "measure", "names", "register", "unregister"]

def __getattr__(name: str) -> Measure: ...

class _Cka(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far two networks agree on which inputs are alike, by the biased estimator."""

cka: _Cka

class _CkaDebiased(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far two networks agree on which inputs are alike, about 0 for unrelated ones whatever n and d."""

cka_debiased: _CkaDebiased

class _CkaMinibatch(Measure):
    def __call__(self, x: Any, y: Any, *, batch: int = 256, reduce: str | None = None) -> float:  # type: ignore[override]
        """Debiased CKA from small batches, for activations that never stand in memory together."""

cka_minibatch: _CkaMinibatch

class _CkaRbf(Measure):
    def __call__(self, x: Any, y: Any, *, bandwidth: float = 0.5, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far two networks agree on which inputs are near each other, with a Gaussian kernel."""

cka_rbf: _CkaRbf

class _CkaDeconfounded(Measure):
    def __call__(self, x: Any, y: Any, *, confounder: Any, reduce: str | None = None) -> float:  # type: ignore[override]
        """CKA without what the inputs themselves already have in common."""

cka_deconfounded: _CkaDeconfounded

class _DistanceCorrelation(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far distances between inputs in one network correlate with those in the other."""

distance_correlation: _DistanceCorrelation

class _Rsa(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """Whether two networks order pairs of inputs alike, from most to least correlated."""

rsa: _Rsa

class _RsmDifference(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How much distances between inputs differ, in the units of the activations."""

rsm_difference: _RsmDifference

class _Eos(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far two networks span the same space of functions on the inputs."""

eos: _Eos

class _Gulp(Measure):
    def __call__(self, x: Any, y: Any, *, ridge: float = 0.0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How differently two networks can predict, over all linear targets, by ridge regression."""

gulp: _Gulp

class _Riemann(Measure):
    def __call__(self, x: Any, y: Any, *, shrinkage: float = 0.1, reduce: str | None = None) -> float:  # type: ignore[override]
        """The shortest path between two networks' similarity matrices among positive definite matrices."""

riemann: _Riemann

class _Pnka(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How alike two networks place each single input among the others, on average."""

pnka: _Pnka

class _MeanCca(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How well, on average, each direction of the smaller network is found in the other."""

mean_cca: _MeanCca

class _Svcca(Measure):
    def __call__(self, x: Any, y: Any, *, variance: float = 0.99, reduce: str | None = None) -> float:  # type: ignore[override]
        """Mean canonical correlation of the directions that matter."""

svcca: _Svcca

class _Pwcca(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """Canonical correlations weighted by how much of the network each direction carries."""

pwcca: _Pwcca

class _Procrustes(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far apart two networks stay after the best rotation, at equal size."""

procrustes: _Procrustes

class _ProcrustesSize(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far apart two networks stay after the best rotation, in the units of the activations."""

procrustes_size: _ProcrustesSize

class _AngularShape(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """The angle between two networks after the best rotation."""

angular_shape: _AngularShape

class _Shape(Measure):
    def __call__(self, x: Any, y: Any, *, alpha: float = 0.5, reduce: str | None = None) -> float:  # type: ignore[override]
        """The angle between two partly whitened networks: from CCA (alpha 0) to Procrustes (alpha 1)."""

shape: _Shape

class _Nbs(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """Normalised Bures similarity: how well one network turns into the other."""

nbs: _Nbs

class _AlignedCosine(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How well each input points the same way in both networks, after the best rotation."""

aligned_cosine: _AlignedCosine

class _PermutationProcrustes(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far apart two networks stay after the best one-to-one matching of neurons."""

permutation_procrustes: _PermutationProcrustes

class _HardCorrelation(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How well neurons of two networks pair off one to one."""

hard_correlation: _HardCorrelation

class _SoftCorrelation(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How well each neuron finds a partner in the other network, partners shared if need be."""

soft_correlation: _SoftCorrelation

class _SoftMatching(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far apart neurons stay after the best matching, split between partners if widths differ."""

soft_matching: _SoftMatching

class _LinearRegression(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How much of the first network is a linear function of the second, on the same inputs."""

linear_regression: _LinearRegression

class _RidgePredictivity(Measure):
    def __call__(self, x: Any, y: Any, *, folds: int = 5, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How well the first network can be predicted linearly from the second, on inputs not fitted."""

ridge_predictivity: _RidgePredictivity

class _Jaccard(Measure):
    def __call__(self, x: Any, y: Any, *, k: int = 10, reduce: str | None = None) -> float:  # type: ignore[override]
        """How many of each input's nearest neighbours are the same in both networks."""

jaccard: _Jaccard

class _MutualKnn(Measure):
    def __call__(self, x: Any, y: Any, *, k: int = 10, reduce: str | None = None) -> float:  # type: ignore[override]
        """What share of each input's nearest neighbours is the same in both networks."""

mutual_knn: _MutualKnn

class _RankSimilarity(Measure):
    def __call__(self, x: Any, y: Any, *, k: int = 10, reduce: str | None = None) -> float:  # type: ignore[override]
        """Whether shared neighbours also stand in the same order."""

rank_similarity: _RankSimilarity

class _SecondOrderCosine(Measure):
    def __call__(self, x: Any, y: Any, *, k: int = 10, reduce: str | None = None) -> float:  # type: ignore[override]
        """Whether each input stands equally near to its neighbours in both networks."""

second_order_cosine: _SecondOrderCosine

class _Cknna(Measure):
    def __call__(self, x: Any, y: Any, *, k: int = 10, reduce: str | None = None) -> float:  # type: ignore[override]
        """CKA that looks only at inputs which are neighbours in both networks."""

cknna: _Cknna

class _Imd(Measure):
    def __call__(self, x: Any, y: Any, *, mode: str = 'auto', vectors: int = 64, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How differently heat spreads on the neighbour graphs of two networks."""

imd: _Imd

class _Rtd(Measure):
    def __call__(self, x: Any, y: Any, *, batch: int = 500, trials: int = 1, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How long holes of one network's point cloud stay open while the other has them filled."""

rtd: _Rtd

class _MagnitudeDifference(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How differently long the mean activations of two networks are."""

magnitude_difference: _MagnitudeDifference

class _ConcentricityDifference(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How differently tight two networks' activations gather around their mean direction."""

concentricity_difference: _ConcentricityDifference

class _UniformityDifference(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How differently evenly two networks spread the inputs over the directions they have."""

uniformity_difference: _UniformityDifference

class _AccuracyDifference(Measure):
    def __call__(self, x: Any, y: Any, *, labels: Any = None, reduce: str | None = None) -> float:  # type: ignore[override]
        """How much more often one network is right than the other."""

accuracy_difference: _AccuracyDifference

class _Disagreement(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How often two networks predict different classes."""

disagreement: _Disagreement

class _DisagreementNormalised(Measure):
    def __call__(self, x: Any, y: Any, *, labels: Any = None, reduce: str | None = None) -> float:  # type: ignore[override]
        """Disagreement on the scale from the least to the most that the two accuracies allow."""

disagreement_normalised: _DisagreementNormalised

class _Jsd(Measure):
    def __call__(self, x: Any, y: Any, *, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far apart two networks' predicted probabilities are."""

jsd: _Jsd

class _ErrorConsistency(Measure):
    def __call__(self, x: Any, y: Any, *, labels: Any = None, reduce: str | None = None) -> float:  # type: ignore[override]
        """Whether two networks are right and wrong on the same inputs, beyond chance."""

error_consistency: _ErrorConsistency

class _SameMistake(Measure):
    def __call__(self, x: Any, y: Any, *, labels: Any = None, reduce: str | None = None) -> float:  # type: ignore[override]
        """How often two networks that are both wrong are wrong in the same way."""

same_mistake: _SameMistake

class _Kl(Measure):
    def __call__(self, x: Any, y: Any, *, statistic: str = 'mean', window: int = 512, context: int = 1, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How much worse the second language model predicts what the first one would say next."""

kl: _Kl

class _SameTop(Measure):
    def __call__(self, x: Any, y: Any, *, window: int = 512, context: int = 1, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How often two language models find the same next token the most likely."""

same_top: _SameTop

class _DeltaP(Measure):
    def __call__(self, x: Any, y: Any, *, statistic: str = 'rms', window: int = 512, context: int = 1, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How much the probability of the true next token changes from one language model to another."""

delta_p: _DeltaP

class _PerplexityChange(Measure):
    def __call__(self, x: Any, y: Any, *, window: int = 512, context: int = 1, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far the perplexities of two language models on the texts are apart."""

perplexity_change: _PerplexityChange

class _BitsPerByteChange(Measure):
    def __call__(self, x: Any, y: Any, *, window: int = 512, context: int = 1, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far two language models are apart in the bits that they need per byte of the texts."""

bits_per_byte_change: _BitsPerByteChange

class _ClassAlignment(Measure):
    def __call__(self, x: Any, y: Any, *, of: str = 'logits', metric: str = 'pearson', labels: Any = None, reduce: str | None = None) -> float:  # type: ignore[override]
        """Whether two networks find the same classes alike."""

class_alignment: _ClassAlignment

class _Sat(Measure):
    def __call__(self, x: Any, y: Any, *, attack: str = 'pgd', eps: float | None = None, iterations: int | None = None, batch_size: int = 64, smoothed: bool = False, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far what fools one network fools the other: similarity by attack transferability."""

sat: _Sat

class _SatLinear(Measure):
    def __call__(self, x: Any, y: Any, *, eps: float = 0.03137254901960784, reduce: str | None = None) -> float:  # type: ignore[override]
        """How far a step along one network's gradient would fool the other if it were linear: SAT without an attack."""

sat_linear: _SatLinear

class _BoundaryAgreement(Measure):
    def __call__(self, x: Any, y: Any, *, triplets: int = 20, resolution: int = 50, seed: int = 0, reduce: str | None = None) -> float:  # type: ignore[override]
        """The share of points on planes through images that two networks put into one class."""

boundary_agreement: _BoundaryAgreement

class _BoundaryDistance(Measure):
    def __call__(self, x: Any, y: Any, *, direction: str = 'adversarial', inputs: int = 200, limit: float = 20.0, seed: int = 0, of: str = 'distance', reduce: str | None = None) -> float:  # type: ignore[override]
        """By how much the boundaries of two networks differ in their distance from an image."""

boundary_distance: _BoundaryDistance
