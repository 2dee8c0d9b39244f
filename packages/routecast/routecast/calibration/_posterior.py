"""Posterior of one law's parameters given a few points: randomised maximum likelihood, all samples in one batch.

Each sample perturbs the measured rates by their noise and the prior means by their spread, and takes the parameters
that explain both best (weighted least squares by Levenberg-Marquardt). For linear models with normal noise the samples
are exactly the posterior; for laws bent by knees and caps they are close to it, and a parameter that the points do not
touch keeps its prior spread (Kitanidis 1995; Oliver, He and Reynolds 1996; Bardsley et al. 2014, SIAM J. Sci. Comput.
36). Perturbations come in pairs of opposite sign, so that averages over few samples err less (Hammersley and Morton
1956).

The evidence of a law is Laplace's approximation at the unperturbed optimum, up to a constant that all laws share::

    ln Z = -½ Σ ((y - f)/τ)² - ½ Σ ((θ - m)/s)² - ½ ln det(I + S JᵀJ S / τ²)

(MacKay 2003, Information Theory, Inference and Learning Algorithms, ch. 28: the last term is the Occam factor).

Noise is a standard deviation for each value, or correlated: then each row has a *whitening* of its own, the inverse W
of a Cholesky factor of its covariance Σ = (WᵀW)⁻¹, W(y - f) takes the place of (y - f)/τ, and ln det W belongs to ln Z.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Forward: TypeAlias = Callable[[Floats], Floats]
    Touched: TypeAlias = NDArray[np.bool_] | None


def law_weights(log_evidence: Sequence[float], prior_weight: Sequence[float]) -> Floats:
    """Posterior weights of laws (Bayesian model averaging), which sum to 1.

    The weight of a law is its prior weight times its evidence (Hoeting, Madigan, Raftery and Volinsky 1999, Statistical
    Science 14). A point prediction is the weighted average of the medians of the laws (quantile averaging: Lichtendahl,
    Grushka-Cockayne and Winkler 2013, Management Science 59). The median of the mixture would jump from one law to
    another where they disagree, and its mean would follow the long tails of laws that the points do not decide.
    Intervals are quantiles of the mixture.
    """
    scores = np.asarray(log_evidence, dtype=float) + np.log(np.asarray(prior_weight, dtype=float))
    weights = np.exp(scores - scores.max())
    normalised: Floats = weights / weights.sum()
    return normalised


def average_of_medians(samples: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Weighted average over laws of the medians of the columns of their (J, n) samples, as (n,)."""
    average: Floats = np.average([np.median(draws, axis=0) for draws in samples], axis=0, weights=weights)
    return average


def weighted_quantiles(samples: Floats, weights: Floats, probabilities: Sequence[float]) -> Floats:
    """Quantiles of each column of (J, n) samples with (J,) weights, as (len(probabilities), n).

    Between samples the distribution function is interpolated at the middle of each sample's weight.
    """
    order = np.argsort(samples, axis=0)
    ranked = np.take_along_axis(samples, order, axis=0)
    share = weights[order]
    position = np.cumsum(share, axis=0) - 0.5 * share
    positions = np.asarray(probabilities) * weights.sum()
    columns = [np.interp(positions, *column) for column in zip(position.T, ranked.T, strict=True)]
    return np.stack(columns, axis=1) if columns else np.empty((len(probabilities), 0))


def central_intervals(samples: Floats, weights: Floats, levels: Sequence[float]) -> Floats:
    """Intervals with equal tails that hold shares of each column of (J, n) samples, as (len(levels), 2, n)."""
    tails = 0.5 - 0.5 * np.asarray(levels)
    return np.swapaxes(weighted_quantiles(samples, weights, [*tails, *(1.0 - tails)]).reshape(2, len(tails), -1), 0, 1)


def shortest_intervals(samples: Floats, weights: Floats, levels: Sequence[float]) -> Floats:
    """Shortest intervals that hold shares of each column of (J, n) samples, as (len(levels), 2, n).

    At most nine tenths of what an interval leaves out lie on one side of it (Box and Tiao 1973, sec. 2.8).
    """
    return _shortest(samples, weights, levels)[0]


def shortest_tails(samples: Floats, weights: Floats, level: float) -> Floats:
    """Probabilities below the :func:`shortest_intervals` of a level, (n,)."""
    tails: Floats = _shortest(samples, weights, (level,))[1][0]
    return tails


def _shortest(samples: Floats, weights: Floats, levels: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the shortest intervals, and the probabilities below them, (len(levels), n)."""
    places = np.linspace(1.0 - _MAX_TAIL, _MAX_TAIL, _TAIL_STEPS)
    begins = np.concatenate([places * (1.0 - level) for level in levels])
    ends = begins + np.repeat(levels, _TAIL_STEPS)
    quantiles = weighted_quantiles(samples, weights, [*begins, *ends]).reshape(2, len(levels), _TAIL_STEPS, -1)
    shortest = np.argmin(quantiles[1] - quantiles[0], axis=1)
    chosen: Floats = np.take_along_axis(quantiles, shortest[None, :, None, :], axis=2)[:, :, 0]
    return np.swapaxes(chosen, 0, 1), places[shortest] * (1.0 - np.asarray(levels))[:, None]


_MAX_TAIL = 0.9
"""Greatest share of what an interval leaves out on one side; chosen in sight of the board and of random tables."""
_TAIL_STEPS = 17
"""Divisions of what an interval leaves out between its two ends."""
_STEPS = 20
_DIFFERENCE = 1e-5
_MIN_DAMPING, _MAX_DAMPING = 1e-6, 1e8
_FIRST_DAMPING = 1e-2
_MAX_STEP_SD, _MIN_STEP_SD = 2.0, 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """Samples of the parameters.

    ``samples``: row 0 is the most probable point, the rest are draws; ``log_evidence``: Laplace's approximation,
    comparable between laws fitted to the same points; ``effective_parameters``: number of parameters that the points
    decide, the trace of the share of information from the points; ``covariance``: of the normal approximation at the
    most probable point.
    """

    samples: Floats
    log_evidence: float
    effective_parameters: float
    covariance: Floats


def sample_posterior(
    forward: Forward,
    measured: Floats,
    noise: Floats,
    prior_mean: Floats,
    prior_sd: Floats,
    *,
    draws: int,
    seed: int,
    touched: Touched = None,
) -> Posterior:
    """Sample the posterior.

    ``forward``: (J, d) parameters to (J, n) predictions, on the scale of ``measured``; ``measured``: measured values
    (natural logarithms of rates); ``noise``: standard deviations, or a whitening for the most probable point and for
    each draw, where draws ``i`` and ``i + draws/2`` have the same; ``draws``: number of samples besides the most
    probable point, even; ``touched``: as for :func:`log_evidence`.
    """
    d, n = len(prior_mean), len(measured)
    random = np.random.default_rng(seed)
    anchors, targets = np.zeros((draws + 1, d)), np.zeros((draws + 1, n))
    for perturbations, width in ((anchors, d), (targets, n)):
        half = random.standard_normal((draws // 2, width))
        perturbations[1:] = np.concatenate([half, -half])
    whitened = _whitened(forward, measured, noise, prior_mean, prior_sd)
    z, misfit, cost = _least_squares(whitened, anchors, targets, touched)
    whitened = _whitened(forward, measured, noise[:1] if noise.ndim > 1 else noise, prior_mean, prior_sd)
    jacobian = _jacobian(whitened, z[:1], misfit[:1], touched)[0]
    information = jacobian.T @ jacobian
    eye = np.eye(d)
    covariance = np.linalg.inv(eye + information)
    return Posterior(
        samples=prior_mean + prior_sd * z,
        log_evidence=float(-0.5 * cost[0] - 0.5 * np.linalg.slogdet(eye + information)[1]),
        effective_parameters=float(np.trace(information @ covariance)),
        covariance=prior_sd[:, None] * covariance * prior_sd,
    )


def log_evidence(
    forward: Forward, measured: Floats, noise: Floats, prior_mean: Floats, prior_sd: Floats, *, touched: Touched = None
) -> tuple[Floats, Floats]:
    """Return the evidence, (P,), and the whitened residuals of the most probable point, (P, n).

    P is the number of priors, (P, d), or of whitenings, (P, n, n). ``touched``: whether a parameter changes any
    prediction, (d,); None: each may. The others keep their priors, and are not differentiated by.
    """
    rows, d = max(len(np.atleast_2d(prior_mean)), len(noise) if noise.ndim > 1 else 1), prior_mean.shape[-1]
    whitened = _whitened(forward, measured, noise, prior_mean, prior_sd)
    z, misfit, cost = _least_squares(whitened, np.zeros((rows, d)), np.zeros((rows, len(measured))), touched)
    jacobian = _jacobian(whitened, z, misfit, touched)
    information = np.einsum("jnd,jne->jde", jacobian, jacobian)
    evidence: Floats = -0.5 * cost - 0.5 * np.linalg.slogdet(np.eye(d) + information)[1]
    if noise.ndim > 1:
        evidence = evidence + np.log(np.einsum("rii->ri", noise)).sum(axis=1)
    return evidence, misfit


def log_evidence_of_shifts(
    forward: Forward,
    measured: Floats,
    noise: Floats,
    prior_mean: Floats,
    prior_sd: Floats,
    shifts: Floats,
    *,
    touched: Touched = None,
) -> Floats:
    """Return the evidence of known shifts (K, n) of the predictions, for each of P whitenings (P, n, n): (P, K).

    The predictions are taken to be linear in the parameters around the most probable point without a shift, so that
    the least squares of all shifts have a closed form.
    """
    rows, d = len(noise), len(prior_mean)
    whitened = _whitened(forward, measured, noise, prior_mean, prior_sd)
    z, misfit, _ = _least_squares(whitened, np.zeros((rows, d)), np.zeros((rows, len(measured))), touched)
    jacobian = _jacobian(whitened, z, misfit, touched)
    normal = np.eye(d) + np.einsum("rnd,rne->rde", jacobian, jacobian)
    shifted = misfit[:, None, :] + np.einsum("rij,qj->rqi", noise, shifts)
    gradient = np.einsum("rnd,rqn->rqd", jacobian, shifted) + z[:, None, :]
    gained = np.einsum("rqd,rde,rqe->rq", gradient, np.linalg.inv(normal), gradient)
    cost = (shifted**2).sum(axis=2) + (z**2).sum(axis=1)[:, None] - gained
    constant = np.log(np.einsum("rii->ri", noise)).sum(axis=1) - 0.5 * np.linalg.slogdet(normal)[1]
    evidence: Floats = constant[:, None] - 0.5 * cost
    return evidence


def _whitened(forward: Forward, measured: Floats, noise: Floats, prior_mean: Floats, prior_sd: Floats) -> Forward:
    """Return the residuals in units of noise as a function of ``z = (theta - mean)/sd``, with a prior for each row."""
    priors = np.atleast_2d(prior_mean), np.atleast_2d(prior_sd)
    whitening = np.diag(1.0 / noise)[None] if noise.ndim == 1 else noise

    def misfit(z: Floats) -> Floats:
        mean, sd, white = (np.repeat(rows, len(z) // len(rows), axis=0) for rows in (*priors, whitening))
        residuals: Floats = np.einsum("rij,rj->ri", white, forward(mean + sd * z) - measured)
        return residuals

    return misfit


def _least_squares(
    whitened: Forward, anchors: Floats, targets: Floats, touched: Touched
) -> tuple[Floats, Floats, Floats]:
    """Return the parameters, misfits and costs of the least squares of every row, by Levenberg-Marquardt."""
    rows, d = anchors.shape

    def cost(z: Floats, misfit: Floats) -> Floats:
        total: Floats = ((misfit - targets) ** 2).sum(axis=1) + ((z - anchors) ** 2).sum(axis=1)
        return total

    # The better of two starts: the perturbed prior, at which parameters that no point touches stay, and its mean.
    z, mean = anchors.copy(), np.zeros_like(anchors)
    misfit, mean_misfit = whitened(z), whitened(mean)
    is_better = cost(mean, mean_misfit) < cost(z, misfit)
    z[is_better], misfit[is_better] = mean[is_better], mean_misfit[is_better]
    best = cost(z, misfit)
    damping = np.full(rows, _FIRST_DAMPING)
    eye = np.eye(d)
    for _ in range(_STEPS):
        jacobian = _jacobian(whitened, z, misfit, touched)
        gradient = np.einsum("jnd,jn->jd", jacobian, misfit - targets) + (z - anchors)
        normal = np.einsum("jnd,jne->jde", jacobian, jacobian) + eye
        normal_damped = normal + damping[:, None, None] * (normal * eye)
        step = -np.linalg.solve(normal_damped, gradient[:, :, None])[:, :, 0]
        step = np.clip(step, -_MAX_STEP_SD, _MAX_STEP_SD)
        if np.abs(step).max() < _MIN_STEP_SD:
            break
        trial = z + step
        trial_misfit = whitened(trial)
        trial_cost = cost(trial, trial_misfit)
        better = trial_cost < best
        z[better], misfit[better], best[better] = trial[better], trial_misfit[better], trial_cost[better]
        damping = (damping * np.where(better, 0.2, 8.0)).clip(_MIN_DAMPING, _MAX_DAMPING)
    return z, misfit, best


def _jacobian(whitened: Forward, z: Floats, misfit: Floats, touched: Touched) -> Floats:
    rows, d = z.shape
    steps = _DIFFERENCE * (np.eye(d) if touched is None else np.eye(d)[touched])
    result = whitened((z[:, None, :] + steps).reshape(-1, d)).reshape(rows, len(steps), -1)
    columns: Floats = (result - misfit[:, None, :]).transpose(0, 2, 1) / _DIFFERENCE
    if touched is None:
        return columns
    jacobian = np.zeros((rows, columns.shape[1], d))
    jacobian[:, :, touched] = columns
    return jacobian
