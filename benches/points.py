#!/usr/bin/env python3
"""Says what sizes chosen by expected information (D-optimal) would save over the grid of `perfprop bench`.

Wants numpy. For each model: the wall time until the confidence region of the coefficients is as small as that of 12 log-spaced sizes
with as many runs each, over the grid's time. The noise is a part of the time. Two choices: as many runs as possible tell the most
(the usual D-optimal design), or as much wall time as possible does.
"""

import numpy

MODELS = {
    "a + b * n": lambda n: [1 + 0 * n, n],
    "a + b * n * log2(1 + n)": lambda n: [1 + 0 * n, n * numpy.log2(1 + n)],
    "a + b * n + c * n * n": lambda n: [1 + 0 * n, n, n * n],
}
SIZES = numpy.geomspace(10, 10_000, 12)
MIDDLE = numpy.sqrt(SIZES[0] * SIZES[-1])


def design(rows, cost):
    """How often to run each size for a unit of cost: the multiplicative algorithm (Titterington 1978)."""
    scaled, share = rows / numpy.sqrt(cost)[:, None], numpy.ones(len(cost)) / len(cost)
    for _ in range(20_000):
        inverse = numpy.linalg.inv((scaled * share[:, None]).T @ scaled)
        share *= numpy.einsum("ij,jk,ik->i", scaled, inverse, scaled) / rows.shape[1]
    return share / cost


def main():
    print("| model | constant's part of the time in the middle | D-optimal by runs | by time | sizes that it uses |\n|---|---:|---:|---:|---|")
    for name, model in MODELS.items():
        columns, middle = numpy.array(model(SIZES)).T, numpy.array(model(MIDDLE))
        for constant in [0.01, 0.1, 0.5, 0.9]:
            coefficients = (1 - constant) / middle / (len(middle) - 1)
            coefficients[0] = constant
            times = columns @ coefficients
            rows = columns / times[:, None]

            def information(runs):
                runs = runs / (runs * times).sum()
                return numpy.exp(numpy.linalg.slogdet((rows * runs[:, None]).T @ rows)[1] / rows.shape[1])

            grid = information(numpy.ones(len(SIZES)))
            by_runs, by_time = design(rows, numpy.ones(len(SIZES))), design(rows, times)
            used = ", ".join(f"{size:.0f}" for size in SIZES[by_time * times > 1e-3 * (by_time * times).sum()])
            print(f"| {name} | {constant:.0%} | {grid / information(by_runs):.2f} | {grid / information(by_time):.2f} | {used} |")


if __name__ == "__main__":
    main()
