"""Private empirical risk minimisation of linear predictors: five approaches, one result.

>>> import numpy as np
>>> from fedprivacy.erm import Logistic, Objective, OutputPerturbation
>>> from fedprivacy.randomness.streams import Streams
>>> stream = np.random.default_rng(1)
>>> x = stream.uniform(-0.5, 0.5, (2000, 2))
>>> y = np.where(stream.random(2000) < 1 / (1 + np.exp(-x @ [4.0, -4.0])), 1, -1)
>>> objective = Objective(Logistic(), regularisation=0.01, records=2000, dimension=2)
>>> estimate = OutputPerturbation(objective, epsilon=1.0).fit(x, y, Streams(1).noise("estimate"))
>>> estimate.guarantee.epsilon, estimate.guarantee.unit, estimate.guarantee.adjacency
(1.0, 'example', 'replace-one')

Sources: Chaudhuri, Monteleoni and Sarwate 2011 (output and objective perturbation), Kifer, Smith and Thakurta
2012, Iyengar et al. 2019, Bassily, Smith and Thakurta 2014 (gradient perturbation), McSherry and Talwar 2007.
"""

from fedprivacy.erm.approach import Approach, Estimate
from fedprivacy.erm.exponential_grid import GridExponential, regular_grid
from fedprivacy.erm.federated import Federated, FederatedEstimate
from fedprivacy.erm.gradient_perturbation import GradientPerturbation
from fedprivacy.erm.losses import HuberSVM, Logistic, Loss, Squared
from fedprivacy.erm.objective import Objective
from fedprivacy.erm.objective_perturbation import ObjectivePerturbation
from fedprivacy.erm.output_perturbation import OutputPerturbation
from fedprivacy.erm.silos import OneShotAverage, SiloGradients
from fedprivacy.erm.solver import minimise, minimise_within
from fedprivacy.erm.sufficient_statistics import SufficientStatistics

LOSSES: dict[str, type[Loss]] = {kind.name: kind for kind in (Logistic, HuberSVM, Squared)}
APPROACHES: dict[str, type[Approach]] = {
    kind.name: kind
    for kind in (
        OutputPerturbation,
        ObjectivePerturbation,
        GradientPerturbation,
        SufficientStatistics,
        GridExponential,
    )
}
__all__ = [
    "APPROACHES",
    "LOSSES",
    "Approach",
    "Estimate",
    "Federated",
    "FederatedEstimate",
    "GradientPerturbation",
    "GridExponential",
    "HuberSVM",
    "Logistic",
    "Loss",
    "Objective",
    "ObjectivePerturbation",
    "OneShotAverage",
    "OutputPerturbation",
    "SiloGradients",
    "Squared",
    "SufficientStatistics",
    "minimise",
    "minimise_within",
    "regular_grid",
]
